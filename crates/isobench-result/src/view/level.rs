//! The marks below the name of a level: what runs in its place, what makes the row untrustworthy,
//! flags.
//!
//! Not here: the sentences of flags (`summarise`).

use super::Line;
use crate::document::{Cell, Document, FlagKind};
use crate::numbers::{count, percent};
use crate::rounds::kept_share;

/// Something that a reader must know of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// The level was measured again, to see how much equal cells differ (an A/A cell).
    Again,
    /// The server says that it runs this level instead.
    Effective(String),
    /// Rounds are missing.
    Incomplete {
        /// Complete rounds.
        rounds: u32,
        /// Rounds that were planned.
        planned: u32,
    },
    /// A history contradicts what the level promises.
    PromiseBroken,
    /// This share of the acknowledged transactions isn't in the database.
    LostWork(f64),
    /// This many transactions ended with an error that isn't retried.
    Errored(u64),
    /// The numbers are less certain than they look.
    Flag(FlagKind),
}

impl Mark {
    /// The marks of a cell, in the order in which they are shown.
    pub fn all(document: &Document, cell: &Cell) -> Vec<Mark> {
        let mut marks = Vec::new();
        if cell.calibration {
            marks.push(Mark::Again);
        }
        if cell.level.differs() {
            marks.push(Mark::Effective(cell.level.effective.to_string()));
        }
        if is_incomplete(document, cell) {
            let planned = document.plan.rounds().max(u32::try_from(cell.rounds.len()).unwrap_or(u32::MAX));
            marks.push(Mark::Incomplete { rounds: cell.summary.rounds, planned });
        }
        if cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false)) {
            marks.push(Mark::PromiseBroken);
        }
        marks.extend(kept_share(cell).filter(|kept| *kept < 1.0).map(|kept| Mark::LostWork(1.0 - kept)));
        let errored = errored(cell);
        if errored > 0 {
            marks.push(Mark::Errored(errored));
        }
        marks.extend(cell.summary.flags.iter().map(|flag| Mark::Flag(flag.kind)));
        marks
    }

    /// True for flags.
    pub const fn is_flag(&self) -> bool {
        matches!(self, Mark::Flag(_))
    }

    /// The mark in words.
    pub fn line(&self) -> Line {
        match self {
            Mark::Again => Line::plain("again (A/A)"),
            Mark::Effective(level) => Line::caution(format!("→ {level}")),
            Mark::Incomplete { rounds, planned } => Line::grave(format!("INCOMPLETE {rounds}/{planned}")),
            Mark::PromiseBroken => Line::grave("PROMISE BROKEN"),
            Mark::LostWork(share) => Line::grave(format!("LOST WORK {}", percent(*share))),
            Mark::Errored(transactions) => Line::grave(format!("ERRORED {}", count(*transactions))),
            Mark::Flag(kind) => Line::caution(format!("! {}", kind.name())),
        }
    }
}

/// True if the cell lacks rounds that were planned.
pub fn is_incomplete(document: &Document, cell: &Cell) -> bool {
    cell.summary.rounds < document.plan.rounds() || cell.rounds.iter().any(|round| !round.complete)
}

/// Transactions of all rounds that ended with an error, but for rounds in which something happened to the
/// server.
pub fn errored(cell: &Cell) -> u64 {
    let undisturbed = cell.rounds.iter().filter(|round| round.faults.is_none());
    undisturbed.fold(0, |sum, round| sum.saturating_add(round.transactions.errored))
}
