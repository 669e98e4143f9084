//! Requirements: whether a result keeps the thresholds that were set for it.
//!
//! A figure that wasn't measured keeps no threshold, and neither does an incomplete result: what
//! isn't known must not pass. Not here: how thresholds are written (`isobench_plan`), what the
//! figures mean (`summarise`).

use isobench_isolation::EffectiveLevel;
use isobench_plan::{CellFigure, CellSelector, Comparison, End, Figure, Requirement};

use crate::document::{Cell, Document, Interval, RequiredCell, RequirementResult, VerdictSummary};
use crate::factors::varying;
use crate::numbers::short;
use crate::summarise::counted_ledger;

/// The value of a figure in a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The number, in the figure's unit.
    pub number: f64,
    /// True if the true value may be larger.
    pub at_least: bool,
}

/// A value, or the reason why there is none.
pub type Measured = Result<Value, String>;

/// The reason why most figures are missing.
const UNMEASURED: &str = "wasn't measured";

/// Judges a summarised document by thresholds, in their order.
pub fn judge(document: &Document, requirements: &[Requirement]) -> Vec<RequirementResult> {
    requirements.iter().map(|requirement| judge_one(document, requirement)).collect()
}

/// True if the result has a cell that the threshold concerns.
pub fn concerns(document: &Document, requirement: &Requirement) -> bool {
    concerned(document, &requirement.of).next().is_some()
}

fn judge_one(document: &Document, requirement: &Requirement) -> RequirementResult {
    let cells: Vec<RequiredCell> =
        concerned(document, &requirement.of).map(|cell| judge_cell(document, cell, requirement)).collect();
    let reason = if !document.complete {
        let why = document.incomplete_reason.as_deref().unwrap_or("it ended early");
        Some(format!("the result is incomplete: {}", why.trim_end_matches('.')))
    } else if cells.is_empty() {
        Some("no such cell was measured".to_owned())
    } else {
        None
    };
    let met = reason.is_none() && cells.iter().all(|cell| cell.met);
    RequirementResult { requirement: requirement.clone(), met, reason, cells }
}

/// The cells whose figure is named. A cell that repeats the first level (A/A) is none.
pub(crate) fn concerned<'a>(document: &'a Document, of: &'a CellFigure) -> impl Iterator<Item = &'a Cell> {
    let selected = |cell: &&Cell| of.selector.as_ref().is_none_or(|selector| selects(selector, cell));
    document.cells.iter().filter(|cell| !cell.calibration).filter(selected)
}

fn selects(selector: &CellSelector, cell: &Cell) -> bool {
    cell.level.name() == selector.level.name()
        && selector.strategy.as_ref().is_none_or(|strategy| strategy == cell.strategy())
}

fn judge_cell(document: &Document, cell: &Cell, requirement: &Requirement) -> RequiredCell {
    let named = varying(document);
    let words = named.iter().map(|factor| factor.said(cell));
    let name = std::iter::once(cell.level.name()).chain(words).collect::<Vec<_>>().join(", ");
    match measured(cell, requirement.of.figure, requirement.of.end) {
        Err(reason) => {
            RequiredCell { cell: name, met: false, reason: Some(reason), ..RequiredCell::default() }
        }
        Ok(value) => {
            let (met, reason) = match instead(cell).filter(|_| requirement.of.selector.is_some()) {
                Some(level) => (false, Some(format!("the server ran {level} in its place"))),
                None => decide(value, requirement),
            };
            RequiredCell { cell: name, value: Some(value.number), at_least: value.at_least, met, reason }
        }
    }
}

/// The level that ran in place of the one that was asked for.
fn instead(cell: &Cell) -> Option<&EffectiveLevel> {
    let effective = &cell.level.effective;
    (cell.level.differs() && *effective != EffectiveLevel::Unknown).then_some(effective)
}

/// Whether a value keeps a threshold. One that may be larger keeps only what larger ones keep, too.
fn decide(value: Value, requirement: &Requirement) -> (bool, Option<String>) {
    let holds = requirement.comparison.holds(value.number, requirement.number);
    let larger_hold = match requirement.comparison {
        Comparison::AtLeast | Comparison::Above => true,
        Comparison::Other => value.number > requirement.number,
        Comparison::AtMost | Comparison::Below | Comparison::Equal => false,
    };
    let unsure = value.at_least && !(holds && larger_hold);
    (holds && !unsure, unsure.then(|| "there may be more, because not everything was counted".to_owned()))
}

/// The value of a figure in a cell. A figure that the plan can name must have a row here to compile.
pub fn measured(cell: &Cell, figure: Figure, end: End) -> Measured {
    let summary = &cell.summary;
    let ran = || if counted_ledger(cell).attempts.started > 0 { Ok(()) } else { unmeasured() };
    let exactly = |number: f64| Ok(Value { number, at_least: false });
    match figure {
        Figure::Tps => end_of(&summary.tps, end),
        Figure::Ratio => ratio(cell, end),
        Figure::Anomalies => anomalies(cell, |verdict| Some(verdict.anomalies as f64)),
        Figure::AnomaliesPerMillion => anomalies(cell, |verdict| verdict.anomalies_per_million),
        Figure::Violations => violations(cell),
        Figure::P50 => percentile(cell, 50.0, end),
        Figure::P95 => percentile(cell, 95.0, end),
        Figure::P99 => percentile(cell, 99.0, end),
        Figure::P999 => percentile(cell, 99.9, end),
        Figure::ConflictRatio => ran().and_then(|()| exactly(summary.conflict_ratio)),
        Figure::Retries => ran().and_then(|()| exactly(summary.retries_per_transaction)),
        Figure::Wasted => ran().and_then(|()| exactly(summary.wasted_share)),
        Figure::GivenUp => ran().and_then(|()| exactly(counted_ledger(cell).transactions.given_up as f64)),
        Figure::Swallowed => ran().and_then(|()| exactly(counted_ledger(cell).transactions.swallowed as f64)),
    }
}

fn unmeasured<T>() -> Result<T, String> {
    Err(UNMEASURED.to_owned())
}

/// One value of an estimate with its interval.
fn end_of(estimate: &Interval, end: End) -> Measured {
    let number = match end {
        End::Mean => estimate.mean,
        End::Low => estimate.low,
        End::High => estimate.high,
    };
    match number {
        Some(number) => Ok(Value { number, at_least: false }),
        None if estimate.mean.is_some() => Err("has no interval; measure more rounds, or longer".to_owned()),
        None => unmeasured(),
    }
}

/// The first level is exactly as fast as itself.
fn ratio(cell: &Cell, end: End) -> Measured {
    let Some(ratio) = &cell.summary.ratio else { return unmeasured() };
    if ratio.to == cell.level.name() {
        return Ok(Value { number: 1.0, at_least: false });
    }
    let interval =
        Interval { mean: Some(ratio.mean), low: ratio.low, high: ratio.high, ..Interval::default() };
    end_of(&interval, end)
}

fn percentile(cell: &Cell, percent: f64, end: End) -> Measured {
    let found = cell.summary.percentiles.iter().find(|found| (found.percent - percent).abs() < 1e-9);
    let Some(found) = found else { return unmeasured() };
    let interval = Interval { mean: Some(found.ms), low: found.low, high: found.high, ..Interval::default() };
    end_of(&interval, end)
}

fn anomalies(cell: &Cell, count: fn(&VerdictSummary) -> Option<f64>) -> Measured {
    let Some(verdict) = &cell.summary.verdict else {
        return Err(format!("{UNMEASURED}: no history was recorded, so nothing is known of anomalies"));
    };
    if cell.rounds.iter().any(|round| round.verdict.is_none()) {
        return Err(format!("{UNMEASURED}: a round has no recorded history"));
    }
    // A verdict that a doubt withholds counts anomalies that may be none, or misses some.
    match (verdict.withheld.first(), count(verdict)) {
        (Some(why), _) => Err(format!("{UNMEASURED}: the verdict is withheld: {why}")),
        (None, Some(number)) => Ok(Value { number, at_least: verdict.at_least }),
        (None, None) => unmeasured(),
    }
}

fn violations(cell: &Cell) -> Measured {
    if cell.rounds.is_empty() || cell.rounds.iter().any(|round| round.invariants.is_empty()) {
        return Err(format!("{UNMEASURED}: there is no invariant to check"));
    }
    let invariants = cell.rounds.iter().flat_map(|round| &round.invariants);
    let unchecked = invariants.clone().any(|invariant| invariant.held.is_none());
    if unchecked && cell.summary.violations == 0 {
        return Err(format!("{UNMEASURED}: an invariant couldn't be checked"));
    }
    // Some are broken without a number of violations.
    let broken = invariants.filter(|invariant| invariant.held == Some(false)).count() as f64;
    Ok(Value { number: (cell.summary.violations as f64).max(broken.min(1.0)), at_least: unchecked })
}

impl RequirementResult {
    /// The threshold with its value and "met" or "NOT MET", a line.
    pub fn line(&self) -> String {
        let word = if self.met { "met    " } else { "NOT MET" };
        format!("{word}  {}: {}", self.requirement, self.found())
    }

    /// The values, or those that don't keep the threshold, and the reasons why not.
    pub fn found(&self) -> String {
        let failing = self.cells.iter().filter(|cell| !cell.met).map(RequiredCell::describe);
        let mut found: Vec<String> = if self.met { vec![self.values()] } else { failing.collect() };
        found.extend(self.reason.clone());
        found.join("; ")
    }

    /// The values of all cells: the smallest and the largest.
    fn values(&self) -> String {
        let values = || self.cells.iter().filter_map(|cell| cell.value);
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        if short(low) == short(high) { short(low) } else { format!("{} to {}", short(low), short(high)) }
    }
}

impl RequiredCell {
    fn describe(&self) -> String {
        let at_least = if self.at_least { "at least " } else { "" };
        let value = self.value.map(|value| format!("{at_least}{}", short(value)));
        let parts: Vec<String> = value.into_iter().chain(self.reason.clone()).collect();
        format!("{} {}", self.cell, parts.join(", "))
    }
}

/// The lines of all thresholds below a heading, with a newline at the end; empty without any.
pub fn requirement_lines(results: &[RequirementResult]) -> String {
    if results.is_empty() {
        return String::new();
    }
    let lines = results.iter().map(|result| format!("  {}\n", result.line()));
    std::iter::once("\nRequirements:\n".to_owned()).chain(lines).collect()
}
