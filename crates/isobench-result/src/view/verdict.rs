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
    /// Histories were recorded in which no transaction met another one, so that nothing could show.
    NothingShared,
    /// The strongest models that aren't contradicted; none if all are.
    Models(Vec<String>),
    /// The same, but statements that could matter weren't seen.
    AsFarAsSeen(Vec<String>),
    /// The same, but values are carried from one transaction to another, which no level protects.
    Unprotected(Vec<String>),
    /// The same, but trying the scripts against each other showed an outcome that no serial order
    /// gives.
    Shown(Vec<String>),
}

impl Proof {
    /// The proof of a cell.
    pub fn of(cell: &Cell) -> Proof {
        match &cell.summary.verdict {
            None if !cell.wrong_outcomes().is_empty() => Proof::Shown(Vec::new()),
            None => Proof::Unproved,
            Some(verdict) if !verdict.withheld.is_empty() && verdict.kept.is_none() => Proof::Withheld,
            Some(verdict) if !cell.wrong_outcomes().is_empty() => Proof::Shown(verdict.models.clone()),
            Some(verdict) if !verdict.carried.is_empty() => Proof::Unprotected(verdict.models.clone()),
            Some(verdict) if verdict.nothing_shared && verdict.kinds.is_empty() => Proof::NothingShared,
            Some(verdict) if verdict.unseen.is_empty() => Proof::Models(verdict.models.clone()),
            Some(verdict) => Proof::AsFarAsSeen(verdict.models.clone()),
        }
    }

    /// The proof in words, a line for each model.
    pub fn lines(&self) -> Vec<Line> {
        match self {
            Proof::Unproved | Proof::NothingShared => vec![Line::plain("unproved")],
            Proof::Withheld => vec![Line::caution("withheld")],
            Proof::Models(models) if models.is_empty() => vec![Line::plain("none")],
            Proof::Models(models) => models.iter().map(Line::plain).collect(),
            Proof::AsFarAsSeen(models) => with(models, Line::plain("as far as seen")),
            Proof::Shown(models) if models.is_empty() => vec![Line::caution("unsafe (shown)")],
            Proof::Shown(models) => with(models, Line::caution("unsafe (shown)")),
            Proof::Unprotected(models) => with(models, Line::caution("unprotected")),
        }
    }
}

/// The lines of models, and one more.
fn with(models: &[String], more: Line) -> Vec<Line> {
    Proof::Models(models.to_vec()).lines().into_iter().chain([more]).collect()
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

#[cfg(test)]
mod tests {
    use isobench_isolation::{EffectiveLevel, Level};

    use super::*;
    use crate::document::{CellLevel, VerdictSummary};

    fn lines(verdict: VerdictSummary) -> Vec<String> {
        let level = CellLevel::new(Some(Level::ReadCommitted), EffectiveLevel::Unknown);
        let mut cell = Cell::new("w", level);
        cell.summary.verdict = Some(VerdictSummary { models: vec!["serializable".to_owned()], ..verdict });
        Proof::of(&cell).lines().into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn what_could_not_show_is_not_called_serializable() {
        assert_eq!(lines(VerdictSummary::default()), ["serializable"]);
        let nothing_shared = VerdictSummary { nothing_shared: true, ..VerdictSummary::default() };
        assert_eq!(lines(nothing_shared), ["unproved"]);
        let unseen = vec!["reserve.sql:4 decides an INSERT".to_owned()];
        let unseen = VerdictSummary { unseen, ..VerdictSummary::default() };
        assert_eq!(lines(unseen), ["serializable", "as far as seen"]);
        let carried = vec!["a.sql:4 writes what a.sql:3 read in another transaction".to_owned()];
        let carried = VerdictSummary { carried, ..VerdictSummary::default() };
        assert_eq!(lines(carried), ["serializable", "unprotected"]);
    }
}
