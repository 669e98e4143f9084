//! A result for services that keep benchmarks over time: Bencher and github-action-benchmark.
//!
//! Figures have names that stay (`Figure::tracked`). What wasn't measured is missing. Not here: whether a
//! result should be sent at all. Sources: Bencher's reference, "Bencher Metric Format (BMF)"; the
//! manual of github-action-benchmark, "customBiggerIsBetter" and "customSmallerIsBetter".

use std::collections::BTreeMap;

use isobench_result::conclusions::summarised;
use isobench_result::document::{Cell, Document};
use isobench_result::factor::{Assignment, FactorId, Names};
use isobench_result::figure::{Better, FIGURES, Figure};
use isobench_result::numbers::short;
use isobench_result::words::distinct;
use serde::Serialize;
use serde_json::Value;

/// A value of Bencher's format.
#[derive(Serialize)]
struct Measure {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// An entry of github-action-benchmark's format.
#[derive(Serialize)]
struct Tracked {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// The figures of a cell that were measured.
fn figures<'a>(
    document: &'a Document,
    cell: &'a Cell,
) -> impl Iterator<Item = (&'static Figure, Measure)> + 'a {
    FIGURES.iter().filter_map(|figure| {
        let found = figure.measured(document, cell).ok().filter(|found| found.number.is_finite())?;
        let measure = Measure { value: found.number, lower_value: found.low, upper_value: found.high };
        Some((figure, measure))
    })
}

/// The cells with names that stay the same as long as the plan does: workload, level, clients, and
/// the other factors that vary.
fn cells(document: &Document) -> Vec<(String, &Cell)> {
    let cells: Vec<(Assignment, &Cell)> = document
        .cells
        .iter()
        .filter(|cell| !cell.calibration)
        .map(|cell| (Assignment::of(cell), cell))
        .collect();
    let names = Names::of(cells.iter().map(|(factors, _)| factors));
    let one_workload = distinct(cells.iter().map(|(factors, _)| factors.text(FactorId::Workload))).len() == 1;
    let name = |factors: &Assignment| {
        let name = names.of_cell(factors);
        // Of several, the names have the workload already.
        if one_workload { format!("{}, {name}", factors.text(FactorId::Workload)) } else { name }
    };
    cells.iter().map(|(factors, cell)| (name(factors), *cell)).collect()
}

/// Renders a result as Bencher Metric Format (JSON): a benchmark for each cell, a measure for each
/// figure, with the ends of its 95 % interval where it has one.
pub fn to_bencher(document: &Document) -> String {
    let document = summarised(document);
    let benchmarks: BTreeMap<String, BTreeMap<String, Measure>> = cells(&document)
        .into_iter()
        .map(|(name, cell)| {
            (name, figures(&document, cell).map(|(figure, measure)| (figure.tracked(), measure)).collect())
        })
        .collect();
    written(serde_json::to_value(benchmarks))
}

/// Renders a result for github-action-benchmark (JSON): the figures of which more is better, or those
/// of which less is; the action takes one kind at a time.
pub fn to_github_action_benchmark(document: &Document, more_is_better: bool) -> String {
    let document = summarised(document);
    let when = document.started_at.as_deref().unwrap_or("an unknown time");
    let extra = format!("{}, measured {when}", document.server.name());
    let better = if more_is_better { Better::More } else { Better::Less };
    let mut tracked = Vec::new();
    for (name, cell) in cells(&document) {
        let wanted = figures(&document, cell).filter(|(figure, _)| figure.better == better);
        tracked.extend(wanted.map(|(figure, measure)| {
            Tracked {
                name: format!("{name}: {}", figure.tracked()),
                unit: figure.unit,
                value: measure.value,
                range: measure
                    .lower_value
                    .zip(measure.upper_value)
                    .map(|(low, high)| format!("{} to {}", short(low), short(high))),
                extra: extra.clone(),
            }
        }));
    }
    written(serde_json::to_value(tracked))
}

/// Indented JSON with a newline at the end.
fn written(value: serde_json::Result<Value>) -> String {
    // Plain data can always be written.
    format!("{:#}\n", value.unwrap_or_default())
}
