//! One figure of a result, over many results: series with their change points.
//!
//! Results of other machines, plans or servers are other series: what [`pair`](crate::pair) warns of
//! would be taken for a change here. Not here: the axis (`axis`), which results make one series
//! (`matching`), the statistics (`isobench_stats`), the layouts (`isobench-report`).

mod axis;
mod matching;
pub mod table;

use isobench_plan::End;
use isobench_stats::{CONFIDENCE, change_points, fewest};
use serde::Serialize;

use crate::conclusions::summarised;
use crate::document::{Cell, Document, plain};
use crate::figure::Wanted;
use crate::numbers::{counted, short};
use crate::require::concerned;
use crate::summarise::median;
use matching::Line;

pub use axis::{Axis, AxisError};

/// The value of `format` in the JSON of a figure's trend.
pub const TREND_FORMAT: &str = "isobench/trend";

/// The version of that JSON's shape.
pub const TREND_FORMAT_VERSION: u32 = 2;

/// The form of the names that isobench gives to results, with 0 for any digit.
const TIME: &str = "0000-00-00T00-00-00Z";

/// A result with what isn't in its document.
#[derive(Debug, Clone, Copy)]
pub struct TrendResult<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its tags.
    pub tags: &'a [String],
    /// The document.
    pub document: &'a Document,
}

/// A figure over many results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// Always "isobench/trend".
    pub format: &'static str,
    /// The version of the JSON's shape.
    pub format_version: u32,
    /// The figure, as `--require` names it.
    pub metric: String,
    /// Its meaning and its unit.
    pub meaning: &'static str,
    /// What the results are ordered by, as `--by` names it.
    pub by: String,
    /// The probability that a change is found in any of these series if none has one.
    pub significance: f64,
    /// The series.
    pub series: Vec<TrendSeries>,
    /// The results, or cells of them, that aren't in a series, and why, a sentence each.
    pub left_out: Vec<String>,
}

/// The results that may be compared, in their order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendSeries {
    /// The level, the number of clients, and the other factors that vary, in words.
    pub name: String,
    /// What differs from the series above that has the same name; empty if none has.
    pub differs_in: Vec<&'static str>,
    /// The results.
    pub points: Vec<TrendPoint>,
    /// The changes, in the order of the results.
    pub changes: Vec<TrendChange>,
    /// The fewest results in which a change can be found.
    pub fewest: usize,
}

/// The figure in one result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendPoint {
    /// The name of the result.
    pub result: String,
    /// The start of measuring, RFC 3339.
    pub started_at: Option<String>,
    /// Its place on the axis: a time, a tag's value, a version, a setting's value.
    pub at: String,
    /// The value.
    pub value: f64,
    /// Lower end of its 95 % interval; null if it has none.
    pub low: Option<f64>,
    /// Upper end of that interval; null if it has none.
    pub high: Option<f64>,
    /// True if the value may be larger, because counting was ended.
    pub at_least: bool,
}

/// A place between two results at which the figure goes over to another level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendChange {
    /// The number of the first result after it, from 1.
    pub at: usize,
    /// The mean of the results before it, up to the change before.
    pub from: f64,
    /// The mean of the results after it, up to the next change.
    pub to: f64,
    /// The share of permutations that are cut as clearly.
    pub p: f64,
}

/// Shows a figure over results, ordered by the axis. Summaries are computed from the rounds, whatever
/// the documents say. A/A cells and incomplete results are left out.
pub fn trend(results: &[TrendResult], of: &Wanted, axis: &Axis) -> Trend {
    let mut left_out = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for result in results {
        if let Err(why) = add(&mut lines, result, of, axis, &mut left_out) {
            left_out.push(format!("{}: {why}.", result.name));
        }
    }
    lines.sort_by_key(|line| line.first);
    let significance = 1.0 - CONFIDENCE;
    // All series together are one family (Bonferroni), as the ratios of a pair are.
    let of_each = significance / lines.len().max(1) as f64;
    let names = matching::names(&lines);
    let series = lines.into_iter().zip(names).map(|(line, (name, differs_in))| {
        let points = axis.ordered(line.points);
        let changes = changes(&points, of_each);
        TrendSeries { name, differs_in, points, changes, fewest: fewest(of_each) }
    });
    Trend {
        format: TREND_FORMAT,
        format_version: TREND_FORMAT_VERSION,
        metric: of.to_string(),
        meaning: of.figure.meaning,
        by: axis.to_string(),
        significance,
        series: series.collect(),
        left_out,
    }
}

/// Adds a result's cells to the lines.
fn add(
    lines: &mut Vec<Line>,
    result: &TrendResult,
    of: &Wanted,
    axis: &Axis,
    left_out: &mut Vec<String>,
) -> Result<(), String> {
    let document = summarised(result.document);
    if !document.complete {
        let why = document.incomplete_reason.as_deref().unwrap_or("it ended early");
        return Err(format!("the result is incomplete: {}", why.trim_end_matches('.')));
    }
    let mut cells = concerned(&document, of.selector.as_ref()).peekable();
    if cells.peek().is_none() {
        return Err("it has no such cell".to_owned());
    }
    for cell in cells {
        let at = axis.place(result, &document, cell)?;
        match point(result, &document, cell, of, at) {
            Ok(point) => matching::put(lines, &document, cell, of, axis, point),
            Err(why) => left_out.push(format!(
                "{}, {}, {}: {why}.",
                result.name,
                cell.level.name(),
                counted(cell.clients.into(), "client")
            )),
        }
    }
    Ok(())
}

/// The figure in a cell.
fn point(
    result: &TrendResult,
    document: &Document,
    cell: &Cell,
    of: &Wanted,
    at: String,
) -> Result<TrendPoint, String> {
    let value = of.figure.end(document, cell, of.end)?;
    // An end of an interval has no interval of its own.
    let ends = if of.end == End::Mean { (value.low, value.high) } else { (None, None) };
    if !value.number.is_finite() {
        return Err("the value isn't finite".to_owned());
    }
    Ok(TrendPoint {
        result: result.name.to_owned(),
        started_at: document.started_at.clone(),
        at,
        value: value.number,
        low: ends.0,
        high: ends.1,
        at_least: value.at_least,
    })
}

fn changes(points: &[TrendPoint], significance: f64) -> Vec<TrendChange> {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let found = change_points(&values, significance);
    let starts: Vec<usize> = std::iter::once(0).chain(found.iter().map(|change| change.at)).collect();
    let end = |part: usize| starts.get(part + 1).copied().unwrap_or(values.len());
    let mean = |part: usize| {
        let part = &values[starts[part]..end(part)];
        part.iter().sum::<f64>() / part.len() as f64
    };
    let change = |(index, change): (usize, &isobench_stats::ChangePoint)| TrendChange {
        at: change.at + 1,
        from: mean(index),
        to: mean(index + 1),
        p: change.p,
    };
    found.iter().enumerate().map(change).collect()
}

impl Trend {
    /// The trend as indented JSON with a newline at the end.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", plain(self))
    }

    /// The figure with its meaning, and what the results are ordered by.
    pub fn heading(&self) -> String {
        format!("{}: {}, by {}", self.metric, self.meaning, self.by)
    }
}

impl TrendPoint {
    /// Its place on the axis. A time as it is in the result's name, if that is one that isobench gave,
    /// so that it can be copied from there.
    pub fn place(&self) -> &str {
        let is_time = self.result.len() >= TIME.len()
            && self.result.bytes().zip(TIME.bytes()).all(|(byte, model)| match model {
                b'0' => byte.is_ascii_digit(),
                _ => byte == model,
            });
        if is_time && self.started_at.as_ref() == Some(&self.at) { &self.result } else { &self.at }
    }

    /// The place with the result's name.
    pub fn label(&self) -> String {
        let place = self.place();
        if place == self.result { place.to_owned() } else { format!("{place}  {}", self.result) }
    }
}

impl TrendSeries {
    /// The values that a picture has room for: those of all results, and of their intervals what isn't
    /// farther from them than they are from each other, or than an interval is wide (the median). A
    /// single wide interval would leave the others no room.
    pub fn range(&self) -> (f64, f64) {
        let values = || self.points.iter().map(|point| point.value).filter(|value| value.is_finite());
        let (least, most) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let ends = |point: &TrendPoint| point.low.zip(point.high);
        let ends = || self.points.iter().filter_map(ends).filter(|(low, high)| (high - low).is_finite());
        let usual = median(ends().map(|(low, high)| high - low).collect());
        let far = usual.unwrap_or_default().max(most - least);
        let low = ends().map(|(low, _)| low).fold(least, f64::min);
        let high = ends().map(|(_, high)| high).fold(most, f64::max);
        (low.max(least - far), high.min(most + far))
    }

    /// The name, with what differs from the one above of the same name.
    pub fn title(&self) -> String {
        match self.differs_in.as_slice() {
            [] => self.name.clone(),
            differs_in => format!("{} (another series: it differs in {})", self.name, differs_in.join(", ")),
        }
    }

    /// The changes in words, or why there is none, a sentence each.
    pub fn said(&self) -> Vec<String> {
        if self.points.len() < self.fewest {
            let number = counted(self.points.len() as u64, "result");
            return vec![format!("No change can be found in {number}; it takes {}.", self.fewest)];
        }
        if self.changes.is_empty() {
            return vec!["No change was found.".to_owned()];
        }
        self.changes.iter().map(|change| self.sentence(change)).collect()
    }

    fn sentence(&self, change: &TrendChange) -> String {
        let place = |number: usize| self.points.get(number - 1).map_or("", TrendPoint::place);
        format!("Between {} and {}: {}.", place(change.at - 1), place(change.at), change.said())
    }
}

impl TrendChange {
    /// "5,020 → 4,010 (−20.1 %), p = 0.008".
    pub fn said(&self) -> String {
        let share = self.to / self.from - 1.0;
        let by = if share.is_finite() {
            let sign = if share < 0.0 { "−" } else { "+" };
            format!(" ({sign}{:.1} %)", share.abs() * 100.0)
        } else {
            String::new()
        };
        format!("{} → {}{by}, p = {:.3}", short(self.from), short(self.to), self.p)
    }
}
