//! A series for spreadsheets and scripts: a line for each cell and result.

use isobench_result::{Side, Trend, TrendCell, TrendPoint};

use crate::csv::{line, number};
use crate::pair::csv::{RATIO_COLUMNS, SIDE_COLUMNS, SideColumn, factor_fields, factor_titles, ratio_fields};

/// Renders a line of comma-separated values for each cell and result, titles first.
pub fn render(trend: &Trend) -> String {
    let own = ["result", "name", "started_at", "server"];
    let figures = SIDE_COLUMNS.iter().map(SideColumn::title);
    let titles = own.into_iter().chain(factor_titles()).chain(RATIO_COLUMNS).chain(figures);
    let mut text = line(titles.map(str::to_owned));
    for cell in &trend.cells {
        for point in &cell.points {
            if let Some(side) = trend.results.get(point.result - 1) {
                text += &line(fields(side, cell, point).into_iter());
            }
        }
    }
    text
}

fn fields(side: &Side, cell: &TrendCell, point: &TrendPoint) -> Vec<String> {
    let started = side.started_at.clone().unwrap_or_default();
    let mut fields = vec![number(Some(point.result as f64)), side.name.clone(), started, side.server.clone()];
    fields.extend(factor_fields(&cell.factors));
    fields.extend(ratio_fields(point.ratio));
    fields.extend(SIDE_COLUMNS.iter().map(|column| column.field(&point.figures)));
    fields
}
