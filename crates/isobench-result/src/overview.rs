//! Many results, a row for each: what it is of, what it says, where and when it was measured.
//!
//! Not here: where results are found, and their tags (the caller has both); the table.

use serde::Serialize;

use crate::answer::{answer, recommended};
use crate::conclusions::summarised;
use crate::document::{Document, Server};
use crate::numbers::counted;
use crate::words::distinct;

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
            servers: distinct(document.servers().map(Server::name)),
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
}
