//! A cell's verdict in few words: the models that are left, the promise, the tables.
//!
//! Not here: sentences about verdicts (`text/judgement`, `html/verdict`).

use super::Line;
use crate::document::Cell;
use crate::numbers::{count, counted, of_unit};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tables {
    /// Every invariant held.
    Held,
    /// An invariant was broken that the level promises, with this many violations; 0 if they
    /// weren't counted, and their unit if it is known.
    Violated(u64, Option<String>),
    /// Invariants were broken so often that the level doesn't promise.
    Permitted(u64, Option<String>),
    /// There are invariants, but they couldn't be checked.
    Unchecked,
}

impl Tables {
    /// The state of the tables of a cell; `None` if nothing must be true of them.
    pub fn of(cell: &Cell) -> Option<Tables> {
        let violations = cell.summary.violations;
        let unit = || cell.summary.violations_unit.clone();
        match cell.summary.invariants_held {
            Some(true) => Some(Tables::Held),
            Some(false) => Some(Tables::Violated(violations, unit())),
            None if violations > 0 => Some(Tables::Permitted(violations, unit())),
            None if cell.rounds.iter().all(|round| round.invariants.is_empty()) => None,
            None => Some(Tables::Unchecked),
        }
    }

    /// The same in words; a number with its unit has a line of its own.
    pub fn lines(&self) -> Vec<Line> {
        match self {
            Tables::Held => vec![Line::plain("invariants held")],
            Tables::Violated(0, _) => vec![Line::grave("VIOLATED")],
            Tables::Violated(number, None) => vec![Line::grave(format!("VIOLATED {}", count(*number)))],
            Tables::Violated(number, Some(unit)) => {
                vec![Line::grave("VIOLATED:"), Line::grave(of_unit(*number, unit))]
            }
            Tables::Permitted(number, None) => vec![Line::plain(counted(*number, "violation"))],
            Tables::Permitted(number, Some(unit)) => {
                vec![Line::plain("violated:"), Line::plain(of_unit(*number, unit))]
            }
            Tables::Unchecked => vec![Line::caution("unchecked")],
        }
    }
}
