//! A series of results: how the rate of each cell went from one result to the next.
//!
//! Results stand in the order in which they are named. Cells are matched as in a pair, and each is
//! compared with the first result that has it; all these ratios are one family. Not here: the
//! layouts (`isobench-report`).

pub mod table;

use serde::Serialize;

use crate::conclusions::summarise;
use crate::document::{Cell, Document};
use crate::factor::{Assignment, Names};
use crate::pair::{self, Figures, PairError, PairRatio, Samples, Side};

/// The value of `format` in a trend's JSON.
pub const TREND_FORMAT: &str = "isobench/trend";

/// The version of that JSON's shape.
pub const TREND_FORMAT_VERSION: u32 = 1;

/// Results in their order, matched cell by cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// Always "isobench/trend".
    pub format: &'static str,
    /// The version of the JSON's shape.
    pub format_version: u32,
    /// The results.
    pub results: Vec<Side>,
    /// Warnings to read before believing the ratios, a sentence each.
    pub warnings: Vec<String>,
    /// The cells of all results, those of the first one first.
    pub cells: Vec<TrendCell>,
}

/// A cell in the results that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendCell {
    /// The level, the number of clients, and the other factors that vary, in words.
    pub name: String,
    /// The same without the level.
    #[serde(skip)]
    pub others: String,
    /// The factors that the cells were matched by.
    pub factors: Assignment,
    /// The cell in each result that has it, in the order of the results.
    pub points: Vec<TrendPoint>,
}

/// A cell in one result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendPoint {
    /// The place of the result, from 1.
    pub result: usize,
    /// Its figures.
    pub figures: Figures,
    /// Committed transactions per second as a multiple of those in the first result that has the
    /// cell; null in that result, and where there is nothing to compare.
    pub ratio: Option<PairRatio>,
}

/// Results that can't be shown in one series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the results can't be shown in one series: {first} has measurement version {expected} and {other} has {found}, so \
     the same names mean different numbers; measure all with the same isobench"
)]
pub struct TrendError {
    /// The first result.
    pub first: String,
    /// The result that doesn't fit.
    pub other: String,
    /// The measurement version of the first.
    pub expected: u32,
    /// That of the other one.
    pub found: u32,
}

/// Shows results as a series; each comes with its name. Summaries are computed from the rounds,
/// whatever the documents say. A/A cells are left out.
///
/// # Errors
/// [`TrendError`], if the numbers of two don't mean the same.
pub fn compare_series(results: &[(String, &Document)]) -> Result<Trend, TrendError> {
    let Some(((first, reference), rest)) = results.split_first() else {
        return Ok(Trend::of(Vec::new(), Vec::new(), Vec::new()));
    };
    for (other, document) in rest {
        let error = |PairError { a, b }| TrendError {
            first: first.clone(),
            other: other.clone(),
            expected: a,
            found: b,
        };
        PairError::check(reference, document).map_err(error)?;
    }
    let documents: Vec<Document> = results.iter().map(|(_, document)| summarised(document)).collect();
    let sides = results.iter().zip(&documents).map(|((name, _), document)| Side::named(document, name));
    let warnings = rest.iter().zip(2..).flat_map(|((_, document), place)| {
        let unequal = pair::unequal(reference, document).into_iter();
        unequal
            .map(move |name| format!("Results 1 and {place} differ in {name}, which is part of every ratio."))
    });
    let incomplete =
        documents.iter().zip(1..).filter(|(document, _)| !document.complete).map(|(document, place)| {
            let reason = document.incomplete_reason.as_deref().unwrap_or("it ended early");
            format!("Result {place} is incomplete: {}.", reason.trim_end_matches('.'))
        });
    Ok(Trend::of(sides.collect(), warnings.chain(incomplete).collect(), cells(&documents)))
}

fn summarised(document: &Document) -> Document {
    let mut document = document.clone();
    summarise(&mut document);
    document
}

/// A cell with the results that have it.
struct Line<'a> {
    factors: Assignment,
    points: Vec<(usize, &'a Cell)>,
}

fn cells(documents: &[Document]) -> Vec<TrendCell> {
    let lines = lines(documents);
    let names = Names::of(lines.iter().map(|line| &line.factors));
    let samples: Vec<Samples> = lines.iter().flat_map(Line::samples).collect();
    let mut ratios = pair::together(&samples).into_iter();
    let cell = |line: &Line| TrendCell {
        name: names.of_cell(&line.factors),
        others: names.others(&line.factors),
        factors: line.factors.clone(),
        points: line
            .points
            .iter()
            .enumerate()
            .map(|(index, (result, cell))| TrendPoint {
                result: *result,
                figures: Figures::of(&documents[result - 1], cell),
                // The first one isn't compared with itself.
                ratio: if index == 0 { None } else { ratios.next().flatten() },
            })
            .collect(),
    };
    lines.iter().map(cell).collect()
}

/// The cells of all documents. Of equal cells in one document only the first counts.
fn lines(documents: &[Document]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line> = Vec::new();
    for (document, result) in documents.iter().zip(1..) {
        for cell in document.cells.iter().filter(|cell| !cell.calibration) {
            let factors = Assignment::of(cell);
            match lines.iter_mut().find(|line| line.factors == factors) {
                Some(line) if line.points.last().is_some_and(|(last, _)| *last == result) => {}
                Some(line) => line.points.push((result, cell)),
                None => lines.push(Line { factors, points: vec![(result, cell)] }),
            }
        }
    }
    lines
}

impl Line<'_> {
    /// The rates of every result beside those of the first one that has the cell.
    fn samples(&self) -> Vec<Samples> {
        let Some(((_, first), rest)) = self.points.split_first() else { return Vec::new() };
        rest.iter().map(|(_, cell)| Samples::rates(first, cell)).collect()
    }
}

impl Trend {
    fn of(results: Vec<Side>, warnings: Vec<String>, cells: Vec<TrendCell>) -> Trend {
        Trend { format: TREND_FORMAT, format_version: TREND_FORMAT_VERSION, results, warnings, cells }
    }

    /// The results, each with its number and what is known of it.
    pub fn described(&self) -> Vec<String> {
        self.results.iter().zip(1..).map(|(side, place)| side.describe(&place.to_string())).collect()
    }

    /// The series as indented JSON with a newline at the end.
    ///
    /// # Panics
    /// Never: every key is a string and nothing refuses to be written.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a series is plain data");
        text.push('\n');
        text
    }
}
