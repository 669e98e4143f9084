//! The environment of the measurement: the server, its settings, the tables' sizes, the client's
//! machine.
//!
//! Not here: what was asked for (`method`).

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::part::{pairs, table};
use isobench_result::document::{Client, Document, Server};
use isobench_result::numbers::{count, counted, short};
use isobench_result::view::{Entry, Heading, Table};

/// The section's body.
#[expect(clippy::unnecessary_wraps, reason = "sections stand in one table, and others may be left out")]
pub fn body(document: &Document) -> Option<Markup> {
    let Document { client, .. } = document;
    let several = !document.other_servers.is_empty();
    Some(html! {
        @for server in document.servers() {
            h3 { "Server" @if several { ": " (server.name()) } }
            (about(document, server))
        }
        h3 { "Client" }
        (pairs(&about_client(document, client)))
    })
}

fn about(document: &Document, server: &Server) -> Markup {
    html! {
        (pairs(&about_server(server)))
        (settings("Settings that differ from the defaults, or decide what a commit costs", &server.settings))
        (settings("Settings that the server was started with", &document.plan.server_settings()))
        (settings("Extensions", &server.extensions))
        @if !server.role_settings.is_empty() {
            h4 { "Settings of the role or the database" }
            ul { @for setting in &server.role_settings { li { code { (setting) } } } }
        }
        (relations(server))
        @if !server.notes.is_empty() {
            h4 { "What couldn't be read" }
            ul { @for note in &server.notes { li { (note) } } }
        }
    }
}

fn present(rows: Vec<(&str, String)>) -> Vec<(String, String)> {
    rows.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn about_server(server: &Server) -> Vec<(String, String)> {
    present(vec![
        ("product", server.name()),
        ("version()", server.version_text.clone()),
        ("where", server.description.clone()),
        (
            "started by",
            if server.embedded { "isobench, for this measurement" } else { "someone else" }.to_owned(),
        ),
    ])
}

fn about_client(document: &Document, client: &Client) -> Vec<(String, String)> {
    let cores = if client.cores > 0 { counted(client.cores.into(), "core") } else { String::new() };
    let memory = if client.memory_bytes > 0 { bytes(client.memory_bytes) } else { String::new() };
    let where_ = if client.same_machine || document.server.embedded {
        "the same machine as the server's"
    } else {
        "another machine than the server's, or not known"
    };
    present(vec![
        ("isobench", client.version.clone()),
        ("processor", client.cpu.clone()),
        ("cores it may use", cores),
        ("memory", memory),
        ("system", client.os.clone()),
        ("machine", where_.to_owned()),
        ("started", document.started_at.clone().unwrap_or_default()),
        ("ended", document.finished_at.clone().unwrap_or_default()),
    ])
}

fn settings(caption: &str, settings: &BTreeMap<String, String>) -> Markup {
    if settings.is_empty() {
        return Markup::default();
    }
    let columns = Heading::all(&[("name", false), ("value", false)]);
    let rows = settings.iter().map(|(name, value)| vec![name.as_str().into(), value.as_str().into()]);
    table(caption, &Table::new(columns, rows))
}

fn relations(server: &Server) -> Markup {
    if server.relations.is_empty() {
        return Markup::default();
    }
    let rows = server.relations.iter().map(|relation| {
        let (name, kind) = (relation.name.as_str().into(), relation.kind.as_str().into());
        vec![name, kind, bytes(relation.bytes).into(), Entry::Count(relation.rows)]
    });
    let columns =
        Heading::all(&[("name", false), ("kind", false), ("size", true), ("rows, estimated", true)]);
    table("Tables and indexes after the first set-up", &Table::new(columns, rows))
}

/// A size in bytes as people read it.
pub fn bytes(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{} {unit}", short(bytes as f64 / *size as f64)),
        None => format!("{} B", count(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_short() {
        for (size, text) in [(0, "0 B"), (1023, "1,023 B"), (1024, "1.00 KiB"), (8 << 30, "8.00 GiB")] {
            assert_eq!(bytes(size), text);
        }
    }
}
