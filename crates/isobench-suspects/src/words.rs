//! What a template does, and what goes wrong, in words.

use std::collections::BTreeSet;

use isobench_sql::normal::Normal;

use crate::copied::Copied;
use crate::suspect::{Kind, Suspect};
use crate::template::{Template, is_write};

/// The most deeds that a name lists.
const MOST_DEEDS: usize = 3;

/// What a template does, writes first: "update item, insert orders".
pub(crate) fn deeds(template: &Template) -> Option<String> {
    let mut found: Vec<(bool, String)> = Vec::new();
    for step in template.statements.iter().filter(|step| step.savepoint.is_none()) {
        let Some(deed) = deed(&step.normal) else { continue };
        let reads = !is_write(&step.normal.verb());
        if !found.iter().any(|(_, known)| *known == deed) {
            found.push((reads, deed));
        }
    }
    let only_reads = found.iter().all(|(reads, _)| *reads);
    let named: Vec<&str> =
        found.iter().filter(|(reads, _)| *reads == only_reads).map(|(_, deed)| deed.as_str()).collect();
    let (first, rest) = named.split_at_checked(MOST_DEEDS).unwrap_or((&named, &[]));
    let more = if rest.is_empty() { "" } else { ", …" };
    (!first.is_empty()).then(|| format!("{}{more}", first.join(", ")))
}

/// A statement as its verb and table: "update item".
pub(crate) fn deed(normal: &Normal) -> Option<String> {
    let verb = normal.verb();
    if verb == "copy" {
        return Copied::of(&normal.key)?.deed();
    }
    let table = table(normal);
    let verb = if verb == "select" || verb == "with" { "read".to_owned() } else { verb };
    table.map(|table| format!("{verb} {table}"))
}

/// What a statement does with rows, by its words: `WITH …` may update.
pub(crate) fn verb(normal: &Normal) -> String {
    let first = normal.verb();
    if first == "copy" {
        return "insert".to_owned();
    }
    if is_write(&first) {
        return first;
    }
    let words = normal.key.split([' ', '(']).map(str::to_ascii_lowercase);
    let mut writes = words.filter(|word| ["insert", "update", "delete", "merge"].contains(&word.as_str()));
    writes.next().unwrap_or_else(|| "write".to_owned())
}

/// The table that a statement writes, or the first one that it reads.
fn table(normal: &Normal) -> Option<String> {
    let words: Vec<&str> =
        normal.key.split([' ', '(', ')', ',', ';']).filter(|word| !word.is_empty()).collect();
    let writes = ["insert", "update", "delete", "merge", "lock"].contains(&normal.verb().as_str());
    let before = |word: &str| {
        let word = word.to_ascii_uppercase();
        if writes { ["INTO", "UPDATE", "FROM", "TABLE"].contains(&word.as_str()) } else { word == "FROM" }
    };
    // `FROM (SELECT … FROM t)` reads the inner one.
    let mut places = (0..words.len()).filter(|at| before(words[*at]));
    places.find_map(|at| {
        let named = words[at + 1..]
            .iter()
            .find(|word| !["ONLY", "TABLE"].contains(&word.to_ascii_uppercase().as_str()))?;
        let plain: Vec<&str> = named.split('.').map(|part| part.trim_matches('"')).collect();
        Some(plain.last()?.to_string()).filter(|name| !name.eq_ignore_ascii_case("select"))
    })
}

/// A suspect's title: what it does, and after what.
pub(crate) fn title(suspect: &Suspect, templates: &[Template]) -> String {
    let (read, back) = (short(&suspect.read_table), short(&suspect.back_table));
    let verb = verb(&templates[suspect.split].statements[suspect.steps[1]].normal);
    match suspect.kind {
        Kind::LostUpdate => format!("{verb} {back} after reading it"),
        Kind::Duplicate => format!("insert {back} after looking for it"),
        Kind::WriteSkew if suspect.earlier && read == back => {
            format!("{verb} {back} before reading other rows of it")
        }
        Kind::WriteSkew if suspect.earlier => format!("{verb} {back} before reading {read}"),
        Kind::WriteSkew if read == back => format!("{verb} {back} after reading other rows of it"),
        Kind::WriteSkew => format!("{verb} {back} after reading {read}"),
        Kind::StaleRead if read == back => format!("read {read} twice"),
        Kind::StaleRead => format!("read {read}, then {back}"),
    }
}

/// Why that is wrong, in one phrase.
pub(crate) fn reason(kind: Kind, columns: &BTreeSet<String>) -> String {
    let named = || {
        let few: Vec<&str> = columns.iter().take(3).map(String::as_str).collect();
        let more = if columns.len() > few.len() { ", …" } else { "" };
        format!("{}{more}", few.join(", "))
    };
    match kind {
        Kind::LostUpdate if columns.is_empty() => "a change in between is lost".to_owned(),
        Kind::LostUpdate => format!("a change of {} in between is lost", named()),
        Kind::Duplicate => "both find none, and both insert".to_owned(),
        Kind::WriteSkew if columns.is_empty() => "rows that it looked for change meanwhile".to_owned(),
        Kind::WriteSkew => format!("{} changes after it was read", named()),
        Kind::StaleRead => "its reads are of two moments".to_owned(),
    }
}

/// A table without the schema public.
pub(crate) fn short(table: &str) -> &str {
    table.strip_prefix("public.").unwrap_or(table)
}
