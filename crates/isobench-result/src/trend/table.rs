//! The table of a figure's trend, and what its numbers mean.

use super::{Trend, TrendPoint, TrendSeries};
use crate::numbers::{short, whole_percent};
use crate::view::{Entry, Heading, Table};

/// The table of a series.
pub fn table(series: &TrendSeries) -> Table {
    let columns = Heading::all(&[
        ("at", false),
        ("result", false),
        ("value", true),
        ("95 % interval", false),
        ("change", false),
    ]);
    let rows = series.points.iter().zip(1..).map(|(point, place)| {
        let change = series.changes.iter().find(|change| change.at == place);
        vec![
            point.at.as_str().into(),
            point.result.as_str().into(),
            shown(point).into(),
            interval(point).into(),
            change.map_or_else(String::new, super::TrendChange::said).into(),
        ] as Vec<Entry>
    });
    Table::new(columns, rows)
}

/// The value, "≥" before it if it may be larger.
pub fn shown(point: &TrendPoint) -> String {
    let least = if point.at_least { "≥ " } else { "" };
    format!("{least}{}", short(point.value))
}

fn interval(point: &TrendPoint) -> String {
    let ends = point.low.zip(point.high);
    ends.map_or_else(String::new, |(low, high)| format!("{}–{}", short(low), short(high)))
}

/// The meaning of marks and numbers.
pub fn legend(trend: &Trend) -> Vec<String> {
    vec![
        format!(
            "Changes: E-divisive with means (Matteson and James 2014), by permutations; if no series here has \
             a change, one is found in any of them with a probability of at most {} %. A slow drift is a \
             change, too.",
            whole_percent(trend.significance)
        ),
        "Results of different machines, plans or places of the server are different series. Whatever else \
         changed between two results is part of every change, and no method knows what it was."
            .to_owned(),
    ]
}
