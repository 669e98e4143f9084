//! The table of results: a row for each cell, the interval below each number.
//!
//! The columns and their words are those of the table in the terminal, with the percentiles'
//! intervals and the flags in addition. Not here: what a column counts (`view/columns`).

use isobench_result::answer::{finding, recommended};
use isobench_result::document::{Cell, Document};
use isobench_result::factor::varying;
use isobench_result::rounds::groups;
use isobench_result::view::columns::{Column, LEVEL, figures};
use isobench_result::view::{Line, Medium};
use isobench_result::words::distinct;
use maud::{Markup, html};

use super::part::{fit, scrolling};
use super::room::has_cards;

/// The columns that follow from others: they have a table of their own.
const SPARE: [&str; 4] = ["attempts_per_s", "retries_per_transaction", "latency_p50_ms", "latency_p95_ms"];

/// The columns that a document fills.
fn columns(document: &Document) -> Vec<Column> {
    std::iter::once(LEVEL).chain(figures(document)).collect()
}

/// More rows than this are shown only when a reader asks for them.
const ROWS: usize = 12;

/// The table, and below it the columns that follow from others.
pub fn results(document: &Document) -> Markup {
    let (spare, main): (Vec<_>, Vec<_>) =
        columns(document).into_iter().partition(|column| SPARE.contains(&column.name));
    let with_level: Vec<Column> = std::iter::once(LEVEL).chain(spare.iter().copied()).collect();
    let caption = "Every level with what it committed, and what that cost. Below a number its 95 % interval.";
    html! {
        div class="rows" {
            (filters(document))
            @if document.cells.len() > ROWS {
                p class="more-rows" {
                    input type="checkbox" id="all-rows";
                    label for="all-rows" { "Show all " (document.cells.len()) " rows" }
                }
            }
            (scrolling(caption, &shown(document, &main, caption)))
            @if !spare.is_empty() {
                details class="folded more-columns" {
                    summary { "More columns: " (names(&spare)) }
                    (scrolling("More columns", &shown(document, &with_level, "More about every level")))
                }
            }
        }
    }
}

fn names(columns: &[Column]) -> String {
    columns.iter().map(label).collect::<Vec<_>>().join(", ")
}

/// A table of these columns.
fn shown(document: &Document, columns: &[Column], caption: &str) -> Markup {
    let cards = has_cards(columns.len(), document.cells.len());
    let best = recommended(document);
    let groups = groups(document);
    let mut before = 0;
    let first_rows: Vec<usize> = groups
        .iter()
        .map(|group| {
            before += group.len();
            before - group.len()
        })
        .collect();
    html! {
        table class={ "results " (fit(if cards { columns.len() } else { 0 })) } {
            caption { (caption) }
            thead {
                tr {
                    @for column in columns {
                        th scope="col" class=[column.right.then_some("number")] {
                            (column.title) " " span class="unit" { (column.unit) }
                        }
                    }
                }
            }
            @for (group, first) in groups.iter().zip(first_rows) {
                tbody class=[(first >= ROWS).then_some("beyond")] {
                    (heading(document, group, columns.len()))
                    @for (index, cell) in group.iter().enumerate() {
                        @let is_best = best.iter().any(|best| std::ptr::eq(*best, *cell));
                        (row(document, cell, columns, is_best, first + index >= ROWS, cards))
                    }
                }
            }
        }
    }
}

/// A choice for each factor that varies. They do nothing without the page's script, which shows
/// them.
fn filters(document: &Document) -> Markup {
    let cells = &document.cells;
    let level = ("level".to_owned(), distinct(cells.iter().map(|cell| cell.level.name())));
    let others = varying(document)
        .into_iter()
        .map(|factor| (factor.title().to_owned(), distinct(cells.iter().map(|cell| factor.value(cell)))));
    let factors: Vec<(String, Vec<String>)> =
        std::iter::once(level).chain(others).filter(|(_, values)| values.len() > 1).collect();
    html! {
        @if factors.len() > 1 {
            div class="filters" hidden {
                @for (index, (title, values)) in factors.iter().enumerate() {
                    label {
                        (title) " "
                        select data-filter=(index) {
                            option value="" { "all" }
                            @for value in values { option value=(value) { (value) } }
                        }
                    }
                }
                span class="muted" role="status" {}
            }
        }
    }
}

/// The values of a cell by which rows are chosen, in the order of the [`filters`].
fn chosen_by(document: &Document, cell: &Cell) -> String {
    let cells = &document.cells;
    let several = |values: Vec<String>| values.len() > 1;
    let mut values = Vec::new();
    if several(distinct(cells.iter().map(|cell| cell.level.name()))) {
        values.push(cell.level.name());
    }
    for factor in varying(document) {
        if several(distinct(cells.iter().map(|cell| factor.value(cell)))) {
            values.push(factor.value(cell));
        }
    }
    serde_json::to_string(&values).unwrap_or_default()
}

/// The heading of a group: what its rows have in common, where the document has several groups.
fn heading(document: &Document, group: &[&Cell], width: usize) -> Markup {
    let factors: Vec<String> =
        varying(document).iter().filter_map(|factor| group.first().map(|cell| factor.named(cell))).collect();
    html! {
        @if !factors.is_empty() {
            tr { th class="group" scope="rowgroup" colspan=(width) { (factors.join(", ")) } }
        }
    }
}

fn row(
    document: &Document,
    cell: &Cell,
    columns: &[Column],
    best: bool,
    beyond: bool,
    cards: bool,
) -> Markup {
    let found = finding(document, cell);
    let classes = [("best", best), ("wrong", found.right == Some(false)), ("beyond", beyond)];
    let classes: Vec<&str> = classes.iter().filter(|(_, is)| *is).map(|(class, _)| *class).collect();
    let class = (!classes.is_empty()).then(|| classes.join(" "));
    html! {
        tr class=[class] data-values=(chosen_by(document, cell)) {
            @for (index, column) in columns.iter().enumerate() {
                @let lines = column.entry(document, cell).lines(Medium::Page);
                @if index == 0 {
                    th scope="row" {
                        (stacked(&lines))
                        @match found.right {
                            Some(false) => { span class="line below" { "✗ " (found.phrase.text) } " " }
                            Some(true) => { span class="line below" { "✓ " (found.phrase.text) @if best { ", recommended" } } " " }
                            None => { @if best { span class="line below" { "recommended" } " " } }
                        }
                        @for flag in &cell.summary.flags {
                            a class="flag" href="#flags" { (flag.kind.name()) }
                        }
                    }
                } @else {
                    td class=[column.right.then_some("number")] data-label=[cards.then(|| label(column))] { (stacked(&lines)) }
                }
            }
        }
    }
}

/// Title and unit of a column in one line.
fn label(column: &Column) -> String {
    format!("{} {}", column.title, column.unit).trim().to_owned()
}

fn stacked(lines: &[Line]) -> Markup {
    html! {
        @for (index, line) in lines.iter().enumerate() {
            @let class = match (index, line.is_grave()) {
                (_, true) => "line brand",
                (0, _) => "line",
                _ => "line below",
            };
            span class=(class) { (line.text) } " "
        }
    }
}

/// The legend of the columns.
pub fn legend(document: &Document) -> Markup {
    html! {
        details class="legend" {
            summary { "What the columns count" }
            dl {
                @for column in columns(document).into_iter().filter(|column| !column.legend.0.is_empty()) {
                    dt { (column.legend.0) }
                    dd { (column.legend.1) "." }
                }
                @for factor in varying(document) {
                    dt { (factor.title()) }
                    dd { (factor.meaning()) "." }
                }
            }
        }
    }
}
