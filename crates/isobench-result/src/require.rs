//! Requirements: whether a result keeps the thresholds that were set for it.
//!
//! A figure that wasn't measured keeps no threshold, and neither does an incomplete result: what
//! isn't known must not pass. Not here: how thresholds are written (`isobench_plan`), the figures
//! (`figure`).

use isobench_isolation::EffectiveLevel;
use isobench_plan::{Comparison, Requirement, Selector};

use crate::document::{Cell, Document, RequiredCell, RequirementResult};
use crate::factor::{selects, varying};
use crate::figure::{Value, Wanted};
use crate::numbers::short;

/// Judges a summarised document by thresholds, in their order.
pub fn judge(document: &Document, requirements: &[Requirement]) -> Vec<RequirementResult> {
    requirements.iter().map(|requirement| judge_one(document, requirement)).collect()
}

/// True if the result has a cell that the threshold concerns.
pub fn concerns(document: &Document, requirement: &Requirement) -> bool {
    concerned(document, requirement.of.selector.as_ref()).next().is_some()
}

fn judge_one(document: &Document, requirement: &Requirement) -> RequirementResult {
    let wanted = match Wanted::of(&requirement.of) {
        Ok(wanted) => wanted,
        // A document of another version may have figures that this one doesn't know.
        Err(why) => {
            let (requirement, cells) = (requirement.clone(), Vec::new());
            return RequirementResult { requirement, met: false, reason: Some(why), cells };
        }
    };
    let requirement = Requirement { of: wanted.written(), ..requirement.clone() };
    let cells: Vec<RequiredCell> = concerned(document, wanted.selector.as_ref())
        .map(|cell| judge_cell(document, cell, &wanted, &requirement))
        .collect();
    let reason = if !document.complete {
        let why = document.incomplete_reason.as_deref().unwrap_or("it ended early");
        Some(format!("the result is incomplete: {}", why.trim_end_matches('.')))
    } else if cells.is_empty() {
        Some("no such cell was measured".to_owned())
    } else {
        None
    };
    let met = reason.is_none() && cells.iter().all(|cell| cell.met);
    RequirementResult { requirement, met, reason, cells }
}

/// The cells that are selected. One that repeats the first level (A/A) is none.
pub(crate) fn concerned<'a>(
    document: &'a Document,
    selector: Option<&'a Selector>,
) -> impl Iterator<Item = &'a Cell> {
    let selected = move |cell: &&Cell| selector.is_none_or(|selector| selects(cell, selector));
    document.cells.iter().filter(|cell| !cell.calibration).filter(selected)
}

/// The level of a cell and what varies, in words.
pub fn name_of(document: &Document, cell: &Cell) -> String {
    let named = varying(document);
    let words = named.iter().map(|factor| factor.said(cell));
    std::iter::once(cell.level.name()).chain(words).collect::<Vec<_>>().join(", ")
}

fn judge_cell(document: &Document, cell: &Cell, wanted: &Wanted, requirement: &Requirement) -> RequiredCell {
    let name = name_of(document, cell);
    match wanted.figure.end(document, cell, wanted.end) {
        Err(reason) => {
            RequiredCell { cell: name, met: false, reason: Some(reason), ..RequiredCell::default() }
        }
        Ok(value) => {
            let (met, reason) = match instead(cell).filter(|_| wanted.selector.is_some()) {
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
    /// Its name with its value, and why that can't be judged by, if there is a reason.
    pub fn describe(&self) -> String {
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
