//! Results of many servers: for each server and workload, what each level costs and what it keeps; and
//! what speaks against counting on a result.
//!
//! Not here: where results are found, and the page (`isobench-report`).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::conclusions::summarised;
use crate::document::{Cell, Document, MEASUREMENT_VERSION};
use crate::numbers::counted;
use crate::view::{Line, Proof, Tables};

/// A result with its place.
#[derive(Debug, Clone, Copy)]
pub struct Submitted<'a> {
    /// The path of its file, relative to the page.
    pub file: &'a str,
    /// The result.
    pub document: &'a Document,
}

/// The results of many servers, side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerMatrix {
    /// The levels, the weakest first, and levels for each script after them.
    pub levels: Vec<String>,
    /// A row for each server, workload and number of clients.
    pub rows: Vec<ServerRow>,
    /// What was left out, a sentence each.
    pub left_out: Vec<String>,
}

/// A server with a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerRow {
    /// Product and version.
    pub server: String,
    /// The workload.
    pub workload: String,
    /// The number of clients.
    pub clients: u32,
    /// The entries, by level. The newest result counts; none where a level wasn't measured.
    pub entries: BTreeMap<String, ServerEntry>,
}

/// A level of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerEntry {
    /// The throughput of the level (committed transactions per second) relative to that of the first
    /// level of the same result, paired by round; null if it is the only one.
    pub ratio: Option<f64>,
    /// The interval of the ratio, with 95 % confidence for all of its result together.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// The level to which the ratio is.
    pub to: Option<String>,
    /// Failed attempts by a conflict, of all attempts.
    pub conflicts: f64,
    /// The verdict in a few words: the strongest models that the history doesn't contradict.
    pub verdict: Vec<String>,
    /// The state of the tables in a few words; empty if nothing must be true of them.
    pub tables: Vec<String>,
    /// True if a history or an invariant breaks what the level promises.
    pub broken: bool,
    /// The file.
    pub file: String,
    /// The start of measuring, RFC 3339.
    pub started_at: Option<String>,
    /// The machine that measured: processor and number of cores; empty if unknown.
    pub machine: String,
    /// The files of older results of the same level, the newest first.
    pub older: Vec<String>,
}

impl ServerMatrix {
    /// Puts those results side by side that can be counted on ([`objections`]). Cells with a strategy or
    /// with other factors than level and clients are left out.
    pub fn of(results: &[Submitted<'_>]) -> ServerMatrix {
        let mut rows: BTreeMap<(String, String, u32), BTreeMap<String, Vec<ServerEntry>>> = BTreeMap::new();
        let (mut levels, mut left_out) = (Vec::new(), Vec::new());
        for Submitted { file, document } in results {
            let why = objections(document);
            if !why.is_empty() {
                left_out.push(format!("{file}: {}", why.join("; ")));
                continue;
            }
            let document = summarised(document);
            for cell in document.cells.iter().filter(|cell| is_plain(cell)) {
                let level = cell.level.name();
                let key = (document.server_of(cell).name(), cell.workload.clone(), cell.clients);
                rows.entry(key)
                    .or_default()
                    .entry(level.clone())
                    .or_default()
                    .push(entry(file, &document, cell));
                let rank = (cell.level.requested.is_none(), cell.level.requested);
                if !levels.contains(&(rank, level.clone())) {
                    levels.push((rank, level));
                }
            }
        }
        levels.sort();
        let row = |((server, workload, clients), entries): (_, BTreeMap<_, _>)| {
            let newest = |(level, entries)| Some((level, ServerEntry::newest(entries)?));
            ServerRow { server, workload, clients, entries: entries.into_iter().filter_map(newest).collect() }
        };
        ServerMatrix {
            levels: levels.into_iter().map(|(_, level)| level).collect(),
            rows: rows.into_iter().map(row).collect(),
            left_out,
        }
    }
}

impl ServerEntry {
    /// The newest of several, which names the files of the others; `None` if there are none.
    fn newest(mut entries: Vec<ServerEntry>) -> Option<ServerEntry> {
        entries.sort_by(|one, other| (&other.started_at, &other.file).cmp(&(&one.started_at, &one.file)));
        let mut entries = entries.into_iter();
        let mut newest = entries.next()?;
        newest.older = entries.map(|entry| entry.file).filter(|file| *file != newest.file).collect();
        newest.older.dedup();
        Some(newest)
    }
}

fn is_plain(cell: &Cell) -> bool {
    !cell.calibration && !cell.rounds.is_empty() && cell.strategy.is_none() && cell.varied.is_empty()
}

fn entry(file: &str, document: &Document, cell: &Cell) -> ServerEntry {
    let text = |lines: Vec<Line>| -> Vec<String> { lines.into_iter().map(|line| line.text).collect() };
    let summary = &cell.summary;
    let verdict = summary.verdict.as_ref().and_then(|verdict| verdict.kept);
    let ratio = summary.ratio.as_ref();
    ServerEntry {
        ratio: ratio.map(|ratio| ratio.mean),
        low: ratio.and_then(|ratio| ratio.low),
        high: ratio.and_then(|ratio| ratio.high),
        to: ratio.map(|ratio| ratio.to.clone()),
        conflicts: summary.conflict_ratio,
        verdict: text(Proof::of(cell).lines()),
        tables: Tables::of(cell).map_or_else(Vec::new, |tables| text(tables.lines())),
        broken: verdict == Some(false) || summary.invariants_held == Some(false),
        file: file.to_owned(),
        started_at: document.started_at.clone(),
        machine: machine(document),
        older: Vec::new(),
    }
}

/// The machine that measured, in words.
fn machine(document: &Document) -> String {
    let client = &document.client;
    let cores = (client.cores > 0).then(|| counted(client.cores.into(), "core"));
    let known = (!client.cpu.is_empty()).then(|| client.cpu.clone());
    known.into_iter().chain(cores).collect::<Vec<_>>().join(", ")
}

/// What speaks against counting on a result, a sentence each: for those who collect results of others.
pub fn objections(document: &Document) -> Vec<String> {
    let mut found = Vec::new();
    if !document.complete {
        let why = document.incomplete_reason.as_deref().unwrap_or("no reason is given");
        found.push(format!("it is incomplete: {why}"));
    }
    if document.measurement_version != MEASUREMENT_VERSION {
        let version = document.measurement_version;
        found.push(format!(
            "it was measured in another way: measurement version {version}, not {MEASUREMENT_VERSION}"
        ));
    }
    if document.cells.iter().all(|cell| cell.rounds.is_empty()) {
        found.push("nothing was measured".to_owned());
    }
    for cell in &document.cells {
        let name = format!("{}, {}", cell.workload, cell.level.name());
        let asked = cell.rounds.iter().flat_map(|round| &round.contradictions);
        found.extend(asked.map(|why| format!("{name}: another level ran than the one asked for: {why}")));
    }
    found.extend(contradictions(document));
    found
}

/// In what a result doesn't agree with itself, a sentence each. That it agrees doesn't show that it was
/// measured.
pub fn contradictions(document: &Document) -> Vec<String> {
    let mut found = Vec::new();
    for cell in &document.cells {
        let name = format!("{}, {}", cell.workload, cell.level.name());
        let wrong = cell.rounds.iter().filter_map(|round| round.check().err());
        found.extend(wrong.map(|error| format!("{name}: attempts don't add up: {error}")));
    }
    // Another version may have computed another summary from the same rounds.
    if document.measurement_version != MEASUREMENT_VERSION {
        return found;
    }
    let computed = summarised(document);
    let differ = document.cells.iter().zip(&computed.cells).any(|(said, computed)| {
        let numbers = |cell: &Cell| {
            let ratio = cell.summary.ratio.as_ref().map(|ratio| ratio.mean);
            [cell.summary.tps.mean, Some(cell.summary.conflict_ratio), ratio]
        };
        numbers(said).into_iter().zip(numbers(computed)).any(|(said, computed)| !is_near(said, computed))
    });
    if differ {
        found.push("its summary isn't what follows from its rounds".to_owned());
    }
    found
}

/// True if numbers differ by no more than rounding.
fn is_near(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-6 * one.abs().max(other.abs()),
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isobench_isolation::{EffectiveLevel, Level};
    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;
    use crate::document::{CellLevel, Client, Plan, Round, Server};

    fn round() -> Round {
        let nothing = (Ledger::default(), LatencyHistogram::default());
        Round::from_ledger(1, &nothing.0, &nothing.1, Duration::from_secs(1), Vec::new())
    }

    fn document(version: &str, started_at: &str, levels: &[Level]) -> Document {
        let server =
            Server { product: "PostgreSQL".to_owned(), version: version.to_owned(), ..Server::default() };
        let mut document = Document::new(server, Client::default(), Plan::default());
        document.started_at = Some(started_at.to_owned());
        document.complete = true;
        document.cells = levels
            .iter()
            .map(|level| {
                let mut cell = Cell::new("orders", CellLevel::new(Some(*level), EffectiveLevel::Unknown));
                cell.rounds = vec![round()];
                cell
            })
            .collect();
        summarised(&document).into_owned()
    }

    #[test]
    fn the_newest_result_of_a_server_counts() {
        let old = document("15.1", "2026-01-01T00:00:00Z", &[Level::ReadCommitted, Level::Serializable]);
        let new = document("15.1", "2026-02-01T00:00:00Z", &[Level::ReadCommitted]);
        let other = document("18.0", "2026-01-01T00:00:00Z", &[Level::RepeatableRead]);
        let mut stale = document("18.0", "2026-01-01T00:00:00Z", &[Level::ReadCommitted]);
        stale.measurement_version = 1;
        let results =
            [("old.json", &old), ("new.json", &new), ("other.json", &other), ("stale.json", &stale)];
        let results = results.map(|(file, document)| Submitted { file, document });
        let matrix = ServerMatrix::of(&results);
        assert_eq!(matrix.levels, ["read committed", "repeatable read", "serializable"]);
        assert_eq!(
            matrix.left_out,
            ["stale.json: it was measured in another way: measurement version 1, not 4"]
        );
        let of = |row: &ServerRow| -> Vec<(String, String)> {
            row.entries.iter().map(|(level, entry)| (level.clone(), entry.file.clone())).collect()
        };
        let pair = |level: &str, file: &str| (level.to_owned(), file.to_owned());
        assert_eq!(
            of(&matrix.rows[0]),
            [pair("read committed", "new.json"), pair("serializable", "old.json")]
        );
        assert_eq!(of(&matrix.rows[1]), [pair("repeatable read", "other.json")]);
        let older = |level: &str| matrix.rows[0].entries[level].older.clone();
        assert_eq!(
            (older("read committed"), older("serializable")),
            (vec!["old.json".to_owned()], Vec::new())
        );
    }

    #[test]
    fn a_result_has_to_agree_with_itself() {
        let good = document("15.1", "2026-01-01T00:00:00Z", &[Level::ReadCommitted]);
        assert_eq!(objections(&good), Vec::<String>::new());
        let mut bad = good.clone();
        bad.cells[0].rounds[0].attempts.started += 1;
        assert!(objections(&bad)[0].contains("attempts don't add up"), "{:?}", objections(&bad));
        let mut bad = good.clone();
        bad.cells[0].summary.conflict_ratio = 0.5;
        assert_eq!(objections(&bad), ["its summary isn't what follows from its rounds"]);
        let mut bad = good;
        bad.cells.clear();
        bad.complete = false;
        assert_eq!(objections(&bad), ["it is incomplete: no reason is given", "nothing was measured"]);
    }
}
