//! The numbers of a figure's trend: the table, and lines for spreadsheets; what they mean.

use super::{MetricPoint, MetricSeries, MetricTrend};
use crate::csv::{line, number};
use crate::numbers::{short, whole_percent};
use crate::view::{Entry, Heading, Table};

/// The titles of the lines for spreadsheets.
pub const METRIC_TREND_TITLES: &str =
    "series,conditions,result,started_at,at,metric,value,low,high,at_least,change,p";

/// The table of a series.
pub fn table(series: &MetricSeries) -> Table {
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
            change.map_or_else(String::new, super::MetricChange::said).into(),
        ] as Vec<Entry>
    });
    Table::new(columns, rows)
}

/// The value, "≥" before it if it may be larger.
pub fn shown(point: &MetricPoint) -> String {
    let least = if point.at_least { "≥ " } else { "" };
    format!("{least}{}", short(point.value))
}

fn interval(point: &MetricPoint) -> String {
    let ends = point.low.zip(point.high);
    ends.map_or_else(String::new, |(low, high)| format!("{}–{}", short(low), short(high)))
}

/// The meaning of marks and numbers.
pub fn legend(trend: &MetricTrend) -> Vec<String> {
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

impl MetricTrend {
    /// Renders a line of comma-separated values for each series and result, titles first. In the line
    /// of the first result after a change there is its share of permutations, too.
    pub fn to_csv(&self) -> String {
        let mut text = METRIC_TREND_TITLES.to_owned() + "\n";
        for series in &self.series {
            for (point, place) in series.points.iter().zip(1..) {
                let change = series.changes.iter().find(|change| change.at == place);
                let fields = [
                    series.name.clone(),
                    series.differs_in.join("; "),
                    point.result.clone(),
                    point.started_at.clone().unwrap_or_default(),
                    point.at.clone(),
                    self.metric.clone(),
                    number(Some(point.value)),
                    number(point.low),
                    number(point.high),
                    point.at_least.to_string(),
                    change.is_some().to_string(),
                    number(change.map(|change| change.p)),
                ];
                text += &line(fields.into_iter());
            }
        }
        text
    }
}
