//! A result while it is measured: lines that are only ever appended, so that saving costs the same
//! after the thousandth round as after the first.
//!
//! The first line is a document without rounds. Each of the others has a round and the place of its
//! cell, or the document without rounds again, where something else in it has changed. Not here: the
//! file (the caller's).

use serde::{Deserialize, Serialize};

use crate::conclusions::summarise;
use crate::document::{Cell, Document, DocumentError, Round, plain};

/// Said of a result that ends as a journal.
const KILLED: &str = "isobench was ended before the comparison was; this is what it had measured by then";

/// What has been written of a result so far.
#[derive(Debug, Default)]
pub struct Journal {
    /// The document without rounds, as last written.
    head: String,
    /// For each cell, the number of its rounds that have been written.
    rounds: Vec<usize>,
}

/// A line with a round.
#[derive(Serialize)]
struct Measured<'a> {
    /// The place of its cell, from 0.
    cell: usize,
    round: &'a Round,
}

/// A line after the first, as it is read.
#[derive(Deserialize)]
struct Line {
    /// The document without rounds, anew.
    document: Option<Box<Document>>,
    cell: Option<usize>,
    round: Option<Round>,
}

impl Journal {
    /// Returns the lines that have to be appended to those returned before, so that together they
    /// hold the document; the first time, all of them. Rounds that were returned before aren't
    /// looked at again.
    pub fn text(&mut self, document: &Document) -> String {
        let head = json(&bare(document));
        let mut text = String::new();
        if self.head.is_empty() {
            text = head.clone() + "\n";
        } else if self.head != head {
            text = format!("{{\"document\":{head}}}\n");
        }
        self.head = head;
        self.rounds.resize(document.cells.len(), 0);
        for (cell, (entry, written)) in document.cells.iter().zip(&mut self.rounds).enumerate() {
            for round in entry.rounds.iter().skip(*written) {
                text += &json(&Measured { cell, round });
                text.push('\n');
            }
            *written = entry.rounds.len();
        }
        text
    }
}

fn json<T: Serialize>(value: &T) -> String {
    plain(value).to_string()
}

/// The document without rounds and what follows from them.
fn bare(document: &Document) -> Document {
    let cell = |cell: &Cell| Cell {
        scale: cell.scale,
        clients: cell.clients,
        jobs: cell.jobs,
        protocol: cell.protocol.clone(),
        backoff: cell.backoff.clone(),
        rate: cell.rate,
        calibration: cell.calibration,
        strategy: cell.strategy.clone(),
        varied: cell.varied.clone(),
        settings: cell.settings.clone(),
        server: cell.server,
        tried: cell.tried.clone(),
        ..Cell::new(cell.workload.clone(), cell.level.clone())
    };
    Document {
        format: document.format.clone(),
        format_version: document.format_version,
        measurement_version: document.measurement_version,
        complete: document.complete,
        incomplete_reason: document.incomplete_reason.clone(),
        started_at: document.started_at.clone(),
        finished_at: document.finished_at.clone(),
        command: document.command.clone(),
        answer: document.answer.clone(),
        resolution: document.resolution,
        sweeps: document.sweeps.clone(),
        requirements: document.requirements.clone(),
        warnings: document.warnings.clone(),
        server: document.server.clone(),
        other_servers: document.other_servers.clone(),
        client: document.client.clone(),
        plan: document.plan.clone(),
        workload: document.workload.clone(),
        observations: document.observations.clone(),
        cells: document.cells.iter().map(cell).collect(),
    }
}

impl Document {
    /// Reads a document, or the [`Journal`] of one that wasn't finished. Unknown fields are ignored,
    /// since newer versions may add some.
    ///
    /// # Errors
    /// [`DocumentError`], if the text isn't a result of this format version. Where it is damaged,
    /// the error names line and column.
    pub fn from_json(text: impl AsRef<[u8]>) -> Result<Self, DocumentError> {
        let text = text.as_ref();
        if is_journal(text) { read(text) } else { Document::of_json(text) }
    }
}

/// True if a text is a journal, and not a document: its first line is one, and others follow.
fn is_journal(text: &[u8]) -> bool {
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else { return false };
    let (first, rest) = text.split_at(end);
    first.trim_ascii().len() > 1 && first.trim_ascii_end().ends_with(b"}") && !rest.trim_ascii().is_empty()
}

/// Reads a journal, and draws the conclusions. A last line without its end was cut off while it was
/// written; it is left out.
///
/// # Errors
/// A line isn't readable; the message names it.
fn read(text: &[u8]) -> Result<Document, DocumentError> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let mut document = Document::of_json(lines.next().unwrap_or_default())?;
    for (number, line) in (2..).zip(lines).filter(|(_, line)| line.ends_with(b"\n")) {
        let damaged = |why: String| DocumentError::Line { line: number, why };
        let line: Line = serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
        if let Some(head) = line.document {
            take_over(&mut document, *head);
        }
        if let Some((cell, round)) = line.cell.zip(line.round) {
            let entry = document.cells.get_mut(cell);
            entry.ok_or_else(|| damaged(format!("there is no cell {cell}")))?.rounds.push(round);
        }
    }
    if !document.complete {
        document.incomplete_reason.get_or_insert_with(|| KILLED.to_owned());
    }
    summarise(&mut document);
    Ok(document)
}

/// Replaces everything but the rounds.
fn take_over(document: &mut Document, head: Document) {
    let before = std::mem::replace(document, head);
    for (cell, before) in document.cells.iter_mut().zip(before.cells) {
        cell.rounds = before.rounds;
    }
}
