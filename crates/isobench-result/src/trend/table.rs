//! The table of a series, for all renderings that people read: a row for each cell and result.

use super::{TrendCell, TrendPoint};
use crate::pair::table::{figure_entry, figure_heading};
use crate::pair::{ratio_entry, verdict};
use crate::view::{Entry, Heading, Table};

/// The meaning of the numbers.
pub const LEGEND: [&str; 2] = [
    "÷ first: committed transactions per second as a multiple of those in the first result that has \
     the cell, with its interval, which holds with 95 % for all ratios here together (Welch's t of the \
     logarithms of independent rounds, Bonferroni), and what that is less (−) or more (+), where the \
     interval excludes 1; ≈: the same within 5 %; ?: no measurable difference.",
    "The rounds of different results weren't interleaved: whatever else changed between the \
     measurements is part of every ratio, and no interval knows it.",
];

/// The table.
pub fn table(cells: &[TrendCell]) -> Table {
    let judged = cells.iter().flat_map(|cell| &cell.points).any(|point| point.figures.anomalies.is_some());
    let mut columns = vec![
        Heading::new("cell", "", false),
        Heading::new("result", "", true),
        figure_heading("tps"),
        Heading::new("÷ first", "", true),
        figure_heading("conflict_ratio"),
        figure_heading("latency_p99_ms"),
    ];
    if judged {
        columns.push(figure_heading("anomalies_per_million"));
        columns.push(Heading::new("verdict", "", false));
    }
    let row = |cell: &TrendCell, point: &TrendPoint, is_first: bool| {
        let figures = &point.figures;
        let name = vec![cell.factors.level().into(), cell.others.as_str().into()];
        let mut row = vec![
            Entry::Stack(name),
            Entry::Count(Some(point.result as u64)),
            Entry::Estimate(figures.tps.into()),
            if is_first { Entry::First } else { ratio_entry(point.ratio) },
            figure_entry("conflict_ratio", figures),
            figure_entry("latency_p99_ms", figures),
        ];
        if judged {
            row.push(figure_entry("anomalies_per_million", figures));
            row.push(verdict(figures));
        }
        row
    };
    let rows = cells.iter().flat_map(|cell| {
        cell.points.iter().enumerate().map(move |(index, point)| row(cell, point, index == 0))
    });
    Table::new(columns, rows)
}
