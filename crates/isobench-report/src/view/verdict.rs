//! A cell's verdict in few words: the models that are left, the promise, the tables.
//!
//! Not here: sentences about verdicts (`text/judgement`, `html/verdict`).

use super::Line;
use crate::document::Cell;
use crate::numbers::{count, counted};

/// The evidence of the recorded histories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// No history was recorded.
    Unproved,
    /// Histories were recorded, and a doubt withholds the verdict.
    Withheld,
    /// The strongest models that aren't contradicted; none if all are.
    Models(Vec<String>),
}

impl Proof {
    /// The proof of a cell.
    pub fn of(cell: &Cell) -> Proof {
        match &cell.summary.verdict {
            None => Proof::Unproved,
            Some(verdict) if !verdict.withheld.is_empty() && verdict.kept.is_none() => Proof::Withheld,
            Some(verdict) => Proof::Models(verdict.models.clone()),
        }
    }

    /// The proof in words, a line for each model.
    pub fn lines(&self) -> Vec<Line> {
        match self {
            Proof::Unproved => vec![Line::plain("unproved")],
            Proof::Withheld => vec![Line::caution("withheld")],
            Proof::Models(models) if models.is_empty() => vec![Line::plain("none")],
            Proof::Models(models) => models.iter().map(Line::plain).collect(),
        }
    }
}

/// The state of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    /// Every invariant held.
    Held,
    /// An invariant was broken that the level promises, with this many violations; 0 if they
    /// weren't counted.
    Violated(u64),
    /// Invariants were broken so often that the level doesn't promise.
    Permitted(u64),
    /// There are invariants, but they couldn't be checked.
    Unchecked,
}

impl Tables {
    /// The state of the tables of a cell; `None` if nothing must be true of them.
    pub fn of(cell: &Cell) -> Option<Tables> {
        let violations = cell.summary.violations;
        match cell.summary.invariants_held {
            Some(true) => Some(Tables::Held),
            Some(false) => Some(Tables::Violated(violations)),
            None if violations > 0 => Some(Tables::Permitted(violations)),
            None if cell.rounds.iter().all(|round| round.invariants.is_empty()) => None,
            None => Some(Tables::Unchecked),
        }
    }

    /// The same in words.
    pub fn line(self) -> Line {
        match self {
            Tables::Held => Line::plain("invariants held"),
            Tables::Violated(0) => Line::grave("VIOLATED"),
            Tables::Violated(violations) => Line::grave(format!("VIOLATED {}", count(violations))),
            Tables::Permitted(violations) => Line::plain(counted(violations, "violation")),
            Tables::Unchecked => Line::caution("unchecked"),
        }
    }
}
