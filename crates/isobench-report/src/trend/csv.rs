//! A figure's trend for spreadsheets and scripts: a line for each series and result.

use isobench_result::Trend;

use crate::csv::{line, number};

/// The titles of the lines for spreadsheets.
pub const TREND_TITLES: &str =
    "series,conditions,result,started_at,at,metric,value,low,high,at_least,change,p";

/// Renders a line of comma-separated values for each series and result, titles first. In the line
/// of the first result after a change there is its share of permutations, too.
pub fn render(trend: &Trend) -> String {
    let mut text = TREND_TITLES.to_owned() + "\n";
    for series in &trend.series {
        for (point, place) in series.points.iter().zip(1..) {
            let change = series.changes.iter().find(|change| change.at == place);
            let fields = [
                series.name.clone(),
                series.differs_in.join("; "),
                point.result.clone(),
                point.started_at.clone().unwrap_or_default(),
                point.at.clone(),
                trend.metric.clone(),
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
