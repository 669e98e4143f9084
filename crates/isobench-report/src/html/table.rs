//! The table of results: a row for each cell, the interval below each number.
//!
//! The columns and their words are those of the table in the terminal, with the percentiles' intervals and the flags in
//! addition, in another order: the answer's columns first. Not here: what a column counts (`text/columns`).

use maud::{Markup, html};

use super::part::{is_brand, varying};
use crate::answer::{cheapest, is_unbroken};
use crate::document::{Cell, Document};
use crate::numbers::{optional, short};
use crate::summarise::groups;
use crate::text::columns::{ANOMALIES_TITLE, Column, FIGURES, LEVEL, RATIO_TITLE};

/// The title of the column with the answer's first number.
const FIRST_FIGURES: &str = "committed";

/// The title of the column that stands behind the answer's numbers, so that it is seen without scrolling.
const VERDICT_TITLE: &str = "verdict";

/// The columns that a document fills.
fn columns(document: &Document) -> Vec<&'static Column> {
    let compares = groups(document).iter().any(|group| group.len() > 1);
    let judged = document.cells.iter().any(|cell| cell.summary.verdict.is_some());
    let figures = FIGURES.iter().filter(|column| match column.title {
        RATIO_TITLE => compares,
        ANOMALIES_TITLE => judged,
        _ => true,
    });
    let mut columns: Vec<&'static Column> = std::iter::once(&LEVEL).chain(figures).collect();
    let place = |title: &str| columns.iter().position(|column| column.title == title);
    if let (Some(first), Some(verdict)) = (place(FIRST_FIGURES), place(VERDICT_TITLE)) {
        let to = place(RATIO_TITLE).unwrap_or(first) + 1;
        columns[to..=verdict].rotate_right(1);
    }
    columns
}

/// The lines of a cell of the table: the value, and below it its interval.
fn lines(document: &Document, cell: &Cell, column: &Column) -> Vec<String> {
    let percent = column.title.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
    match percent {
        Some(percent) => percentile(cell, percent, column, document),
        // Flags are shown as links to their sentences.
        None => (column.show)(document, cell).into_iter().filter(|line| !line.starts_with("! ")).collect(),
    }
}

fn percentile(cell: &Cell, percent: f64, column: &Column, document: &Document) -> Vec<String> {
    let known = cell.summary.percentiles.iter().find(|known| (known.percent - percent).abs() < 1e-9);
    let Some(known) = known else { return (column.show)(document, cell) };
    let mut lines = vec![optional(Some(known.ms))];
    lines.extend(known.low.zip(known.high).map(|(low, high)| format!("{}–{}", short(low), short(high))));
    lines
}

/// The table.
pub fn results(document: &Document) -> Markup {
    let columns = columns(document);
    html! {
        table class="results" {
            caption { "Every level with what it committed, and what that cost. Below a number its 95 % interval." }
            thead {
                tr {
                    @for column in &columns {
                        th scope="col" class=[column.right.then_some("number")] {
                            (column.title) " " span class="unit" { (column.unit) }
                        }
                    }
                }
            }
            @for group in groups(document) {
                tbody {
                    (heading(document, &group, columns.len()))
                    @let best = best(&group);
                    @for cell in group {
                        (row(document, cell, &columns, best.is_some_and(|best| std::ptr::eq(best, cell))))
                    }
                }
            }
        }
    }
}

/// What the rows of a group have in common, where the document has several groups.
fn heading(document: &Document, group: &[&Cell], width: usize) -> Markup {
    let value = |column: &&Column| {
        group.first().map(|cell| format!("{} {}", column.title, (column.show)(document, cell).join(" ")))
    };
    let factors: Vec<String> = varying(document).iter().filter_map(value).collect();
    html! {
        @if !factors.is_empty() {
            tr { th class="group" scope="rowgroup" colspan=(width) { (factors.join(", ")) } }
        }
    }
}

/// The level that the answer names, if there is a choice.
fn best<'a>(group: &[&'a Cell]) -> Option<&'a Cell> {
    let levels: Vec<&Cell> = group.iter().copied().filter(|cell| !cell.calibration).collect();
    if levels.len() > 1 { cheapest(&levels) } else { None }
}

/// How the answer's row is marked: a tick only where a history was checked.
fn mark(cell: &Cell) -> &'static str {
    if is_unbroken(cell) { "✓ cheapest, promise unbroken" } else { "cheapest, promise unproved" }
}

fn row(document: &Document, cell: &Cell, columns: &[&'static Column], best: bool) -> Markup {
    html! {
        tr class=[best.then_some("best")] {
            @for (index, column) in columns.iter().enumerate() {
                @let lines = lines(document, cell, column);
                @if index == 0 {
                    th scope="row" {
                        (stacked(&lines))
                        @if best { span class="line below" { (mark(cell)) } " " }
                        @for flag in &cell.summary.flags {
                            a class="flag" href="#flags" { (flag.kind.name()) }
                        }
                    }
                } @else {
                    td class=[column.right.then_some("number")] { (stacked(&lines)) }
                }
            }
        }
    }
}

fn stacked(lines: &[String]) -> Markup {
    html! {
        @for (index, line) in lines.iter().enumerate() {
            @let class = match (index, is_brand(line)) {
                (_, true) => "line brand",
                (0, _) => "line",
                _ => "line below",
            };
            span class=(class) { (line) } " "
        }
    }
}

/// What the columns count.
pub fn legend(document: &Document) -> Markup {
    html! {
        details class="legend" {
            summary { "What the columns count" }
            dl {
                @let columns = columns(document).into_iter().chain(varying(document));
                @for column in columns.filter(|column| !column.legend.0.is_empty()) {
                    dt { (column.legend.0) }
                    dd { (column.legend.1) "." }
                }
            }
        }
    }
}
