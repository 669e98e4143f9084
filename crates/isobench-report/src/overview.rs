//! Many results, a row for each: what it is of, what it says, where and when it was measured.
//!
//! Not here: where results are found, and their tags (the caller has both).

use serde::Serialize;

use crate::answer::{answer, recommended};
use crate::document::Document;
use crate::html::server_name;
use crate::numbers::counted;
use crate::summarise::summarised;
use crate::text::layout;
use crate::view::{Entry, Heading, Table};
use crate::words::{distinct, enumerated};

/// A result in a list of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultRow {
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The start of measuring, RFC 3339.
    pub started_at: Option<String>,
    /// The time that measuring took, in seconds; null if that isn't known.
    pub seconds: Option<u64>,
    /// True if everything planned was measured.
    pub complete: bool,
    /// Products and versions of the servers.
    pub servers: Vec<String>,
    /// The workloads.
    pub workloads: Vec<String>,
    /// The levels.
    pub levels: Vec<String>,
    /// The levels (and strategies) that the answer recommends; none where it recommends none.
    pub recommended: Vec<String>,
    /// The answer: the sentences at the top of a report.
    pub answer: String,
    /// Whether a promise is kept: false if a history or an invariant breaks one, null if none was
    /// checked.
    pub promise_kept: Option<bool>,
    /// The machine that measured: its processor, and how many of them.
    pub machine: Vec<String>,
}

impl ResultRow {
    /// The row of a result. The summary is computed from the rounds, whatever the document says.
    pub fn of(name: &str, tags: &[String], seconds: Option<u64>, document: &Document) -> ResultRow {
        let document = summarised(document);
        let cells = || document.cells.iter().filter(|cell| !cell.calibration);
        let checked = |cell: &crate::document::Cell| {
            let verdict = cell.summary.verdict.as_ref().and_then(|verdict| verdict.kept);
            [verdict, cell.summary.invariants_held].into_iter().flatten().reduce(|one, other| one && other)
        };
        let client = &document.client;
        let machine = [client.cpu.clone(), counted(client.cores.into(), "core")];
        ResultRow {
            name: name.to_owned(),
            tags: tags.to_vec(),
            started_at: document.started_at.clone(),
            seconds,
            complete: document.complete,
            servers: distinct(document.servers().map(server_name)),
            workloads: distinct(cells().map(|cell| cell.workload.clone())),
            levels: distinct(cells().map(|cell| cell.level.name())),
            recommended: distinct(recommended(&document).iter().map(|cell| match &cell.strategy {
                Some(strategy) => format!("{}+{strategy}", cell.level.name()),
                None => cell.level.name(),
            })),
            answer: answer(&document).text(),
            promise_kept: cells().filter_map(checked).reduce(|one, other| one && other),
            machine: machine.into_iter().filter(|part| !part.is_empty()).collect(),
        }
    }

    fn entries(&self, duration: &str) -> Vec<Entry> {
        let stacked =
            |items: &[String]| Entry::Stack(items.iter().map(|item| item.as_str().into()).collect());
        let answer = match self.recommended.as_slice() {
            _ if !self.complete => "INCOMPLETE".to_owned(),
            [] => "none".to_owned(),
            some => enumerated(some),
        };
        let broken = (self.promise_kept == Some(false)).then(|| Entry::grave("BROKEN"));
        vec![
            self.name.as_str().into(),
            stacked(&self.tags),
            Entry::Stack(std::iter::once(Entry::from(answer)).chain(broken).collect()),
            stacked(&self.servers),
            stacked(&[self.workloads.as_slice(), self.levels.as_slice()].concat()),
            duration.into(),
            stacked(&self.machine),
        ]
    }
}

/// Renders results for a terminal of `width` columns; `duration` says how long one took.
pub fn overview(rows: &[ResultRow], width: usize, duration: impl Fn(u64) -> String) -> String {
    let columns = Heading::all(&[
        ("result", false),
        ("tags", false),
        ("recommended", false),
        ("server", false),
        ("workload and levels", false),
        ("took", true),
        ("machine", false),
    ]);
    let entries = rows.iter().map(|row| row.entries(&row.seconds.map_or_else(String::new, &duration)));
    let lines = layout::lines(&Table::new(columns, entries), width);
    // No heading has a second line.
    let shown = lines.iter().enumerate().filter(|(index, line)| *index != 1 || !line.trim().is_empty());
    let lines: Vec<&str> = shown.map(|(_, line)| line.trim_end()).collect();
    lines.join("\n") + "\n"
}
