//! The lines above the table: which server, which workload, and what differs from the defaults.
//!
//! Not here: factors that vary; they are in the table.

use std::collections::BTreeMap;

use isobench_plan::Plan;
use isobench_result::document::{Document, Server};
use isobench_result::factor::{Factor, FactorId, constant};
use isobench_result::numbers::{counted, short};
use isobench_result::phrases::length;
use isobench_result::view::Line;

use super::layout::{Spans, wrap_line};

/// PostgreSQL's own values of the settings that are always recorded, the ones that decide what a
/// commit costs first. Source: PostgreSQL 18's manual, chapter 19 (Server Configuration).
const USUAL: [(&str, &str); 13] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("wal_level", "replica"),
    ("commit_delay", "0"),
    ("autovacuum", "on"),
    ("deadlock_timeout", "1s"),
    ("default_transaction_isolation", "read committed"),
    ("max_pred_locks_per_page", "2"),
    ("max_pred_locks_per_relation", "-2"),
    ("max_pred_locks_per_transaction", "64"),
    ("max_wal_size", "1GB"),
    ("shared_buffers", "128MB"),
];

/// The setting whose default changed within the versions supported: on since PostgreSQL 19, which then
/// writes a line for each wait longer than `deadlock_timeout` (its release notes).
const LOG_LOCK_WAITS: &str = "log_lock_waits";

/// Settings of which nothing follows for a reader: room for connections; what an installation
/// chooses by itself.
const DULL: [&str; 3] = ["max_connections", "wal_sync_method", "data_checksums"];

/// The most settings that are named.
const MOST_SETTINGS: usize = 4;

/// The most scripts that are named above the table on one screen.
const MOST_SCRIPTS: usize = 3;

/// The lines above the table in a terminal: no more than what isn't the default.
pub fn lines(document: &Document, width: usize) -> Vec<Spans> {
    let incomplete = incomplete(document).map(Line::grave);
    let about = [server(document), measured(document, &Plan::defaults())].map(Line::plain);
    incomplete.into_iter().chain(about).flat_map(|line| wrap_line(&line, width, 2)).collect()
}

/// The same in one line, for the report on one screen.
pub fn brief(document: &Document, width: usize) -> Vec<Spans> {
    let incomplete = incomplete(document).map(Line::grave);
    let mut text = join(&[&measured(document, &Plan::defaults()), &server(document)], ", ");
    if let Some((name, scripts)) = many_scripts(document) {
        text = text.replacen(name, &scripts, 1);
    }
    let about = Line::plain(text);
    incomplete.into_iter().chain([about]).flat_map(|line| wrap_line(&line, width, 2)).collect()
}

/// A mix of more scripts than a line should name: its name, and their number.
fn many_scripts(document: &Document) -> Option<(&str, String)> {
    let scripts = document.plan.file.as_ref().map_or(0, Vec::len);
    let name = document.cells.first().map(|cell| cell.workload.as_str())?;
    // A cell has the name of its whole mix.
    let is_mix = name.split('+').count() >= scripts;
    (scripts > MOST_SCRIPTS && is_mix).then(|| (name, counted(scripts as u64, "script")))
}

/// The server, where it is, and its settings that are unusual.
fn server(document: &Document) -> String {
    let Server { embedded, description, hot_standby, host, .. } = &document.server;
    let place = match host {
        _ if *embedded => " started by isobench".to_owned(),
        // Of several hosts the one that answered; the description has all.
        Some(host) => format!(" at {host}"),
        None if description.is_empty() => String::new(),
        None => format!(" at {description}"),
    };
    let standby = if *hot_standby { ", a hot standby" } else { "" };
    let settings = unusual(&document.server);
    let with = match settings.len().saturating_sub(MOST_SETTINGS) {
        _ if settings.is_empty() => String::new(),
        0 => format!(", with {}", settings.join(", ")),
        more => {
            let more = counted(more as u64, "more setting");
            format!(", with {} and {more}", settings[..MOST_SETTINGS].join(", "))
        }
    };
    format!("{}{standby}{place}{with}", versions(document))
}

/// The settings that aren't PostgreSQL's own, as name=value.
fn unusual(server: &Server) -> Vec<String> {
    let major = server.version.split(|c: char| !c.is_ascii_digit()).next().and_then(|text| text.parse().ok());
    let logs_waits = if major.is_some_and(|major: u32| major >= 19) { "on" } else { "off" };
    let place = |name: &str| USUAL.iter().position(|(known, _)| *known == name).unwrap_or(USUAL.len());
    let differs = |name: &str, value: &str| {
        !DULL.contains(&name)
            && !USUAL.contains(&(name, value))
            && (name, value) != (LOG_LOCK_WAITS, logs_waits)
    };
    let mut unusual: Vec<(&str, &str)> =
        server.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    unusual.retain(|(name, value)| differs(name, value));
    unusual.sort_by_key(|(name, _)| place(name));
    unusual.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Every line about server, client and plan, whatever the defaults are.
pub fn full(document: &Document) -> Vec<String> {
    let texts = [
        incomplete(document),
        Some(servers(document)),
        settings(&document.server.settings),
        Some(client(document)),
        Some(format!("Measured: {}", measured(document, &Plan::default()))),
    ];
    texts.into_iter().flatten().collect()
}

fn incomplete(document: &Document) -> Option<String> {
    let reason = document.incomplete_reason.as_deref().unwrap_or("it ended before everything was measured");
    (!document.complete).then(|| format!("INCOMPLETE: {reason}"))
}

/// The product, and all versions of it that were measured.
fn versions(document: &Document) -> String {
    let product = &document.server.product;
    let product = if product.is_empty() { "unknown product" } else { product };
    let versions: Vec<&str> = document.servers().map(|server| server.version.as_str()).collect();
    join(&[product, &join(&versions, ", ")], " ")
}

/// The server, in a line of its own.
fn servers(document: &Document) -> String {
    let Server { embedded, host, hot_standby, .. } = &document.server;
    let started = if *embedded { " (started by isobench)" } else { "" };
    let standby = if *hot_standby { ", a hot standby" } else { "" };
    let host = host.as_ref().map_or_else(String::new, |host| format!(", host {host}"));
    let word = if document.other_servers.is_empty() { "Server" } else { "Servers" };
    format!("{word}: {}{standby}{host}{started}", versions(document))
}

fn settings(settings: &BTreeMap<String, String>) -> Option<String> {
    let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!settings.is_empty()).then(|| format!("Settings: {}", settings.join(", ")))
}

fn client(document: &Document) -> String {
    let client = &document.client;
    let cores = if client.cores > 0 { counted(client.cores.into(), "core") } else { String::new() };
    let version = join(&["isobench", &client.version], " ");
    format!("Client: {}", join(&[&version, &client.cpu, &cores, &client.os], ", "))
}

/// What was run, how long, and everything that differs from another plan.
fn measured(document: &Document, usual: &Plan) -> String {
    let plan = &document.plan;
    let mut parts = factors(document, usual);
    let readers = u64::from(plan.readers());
    let waiting = if plan.waits_for_lsn() { " that they wait for" } else { "" };
    parts.extend((readers > 0).then(|| format!("{} on a standby{waiting}", counted(readers, "reader"))));
    parts.extend(length(document));
    if plan.warmup != usual.warmup {
        let warmup = plan.warmup();
        parts.extend((warmup > 0.0).then(|| format!("{warmup} s warm-up")));
        parts.extend((warmup <= 0.0 && usual.warmup.is_some()).then(|| "no warm-up".to_owned()));
    }
    if plan.max_tries.or(Some(0)) != usual.max_tries {
        parts.push(plan.max_tries().map_or_else(
            || "unlimited attempts".to_owned(),
            |tries| format!("at most {}", counted(tries.into(), "attempt")),
        ));
    }
    if !plan.rates().is_empty() {
        let rates: Vec<String> = plan.rates().iter().map(|rate| short(*rate)).collect();
        parts.push(format!("{} transactions per second wanted", rates.join(", ")));
    }
    parts.extend(plan.latency_limit.map(|limit| format!("latency limit {} ms", short(limit))));
    parts.extend((plan.connect == Some(true)).then(|| "a connection for each transaction".to_owned()));
    parts.extend(plan.think_time.map(|pause| format!("think time {} ms", short(pause))));
    parts.extend(plan.seed.filter(|seed| Some(*seed) != usual.seed).map(|seed| format!("seed {seed}")));
    parts.join(", ")
}

/// The factors that all cells have in common: workload and clients, and those that differ from
/// another plan's.
fn factors(document: &Document, usual: &Plan) -> Vec<String> {
    let Some(first) = document.cells.first() else { return Vec::new() };
    let said = |factor: &Factor| match factor.id() {
        FactorId::Workload => Some(first.workload.clone()),
        // No strategy and no rate are nothing to speak of; rates have words of their own.
        FactorId::Strategy if first.strategy.is_none() => None,
        FactorId::Rate => None,
        FactorId::Scale if first.scale == usual.scale() => None,
        FactorId::Jobs if first.jobs == usual.jobs() => None,
        FactorId::Protocol if first.protocol == usual.protocol() => None,
        FactorId::Backoff if usual.backoff() == [first.backoff.as_str()] => None,
        _ => Some(factor.said(first)),
    };
    constant(document).iter().filter_map(said).collect()
}

fn join(parts: &[&str], between: &str) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_postgresql_itself_are_not_unusual() {
        let recorded = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            unusual(&Server { settings: pairs.collect(), version: "18.4".to_owned(), ..Server::default() })
        };
        assert!(recorded(&USUAL).is_empty());
        assert_eq!(
            recorded(&[
                ("fsync", "off"),
                ("max_connections", "200"),
                ("autovacuum", "off"),
                ("a_new_one", "x")
            ]),
            ["fsync=off", "autovacuum=off", "a_new_one=x"]
        );
    }

    #[test]
    fn the_default_of_a_setting_may_depend_on_the_version() {
        let named = |version: &str, value: &str| {
            let settings = [(LOG_LOCK_WAITS.to_owned(), value.to_owned())].into();
            unusual(&Server { settings, version: version.to_owned(), ..Server::default() })
        };
        assert!(named("18.4", "off").is_empty() && named("19rc1", "on").is_empty());
        assert_eq!(named("18.4", "on"), ["log_lock_waits=on"]);
        assert_eq!(named("19.0", "off"), ["log_lock_waits=off"]);
    }

    #[test]
    fn many_settings_are_counted() {
        let mut document =
            Document::new(Server::default(), isobench_result::document::Client::default(), Plan::default());
        document.server.product = "PostgreSQL".to_owned();
        document.server.version = "18.1".to_owned();
        document.server.description = "db:5432/bench as app".to_owned();
        let settings = (1..=5).map(|number| (format!("setting{number}"), "x".to_owned()));
        document.server.settings = settings.collect();
        assert_eq!(
            server(&document),
            "PostgreSQL 18.1 at db:5432/bench as app, with setting1=x, setting2=x, setting3=x, setting4=x and 1 \
             more setting"
        );
    }
}
