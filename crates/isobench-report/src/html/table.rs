//! The table of results: a row for each cell, the interval below each number.
//!
//! The columns and their words are those of the table in the terminal, with the percentiles'
//! intervals and the flags in addition. Not here: what a column counts (`view/columns`).

use maud::{Markup, html};

use crate::answer::recommended;
use crate::document::{Cell, Document};
use crate::factors::varying;
use crate::summarise::groups;
use crate::view::columns::{Column, LEVEL, figures};
use crate::view::{Line, Medium};

/// The columns that a document fills.
fn columns(document: &Document) -> Vec<&'static Column> {
    std::iter::once(&LEVEL).chain(figures(document)).collect()
}

/// The table.
pub fn results(document: &Document) -> Markup {
    let columns = columns(document);
    let best = recommended(document);
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
                    @for cell in group {
                        (row(document, cell, &columns, best.iter().any(|best| std::ptr::eq(*best, cell))))
                    }
                }
            }
        }
    }
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

fn row(document: &Document, cell: &Cell, columns: &[&'static Column], best: bool) -> Markup {
    html! {
        tr class=[best.then_some("best")] {
            @for (index, column) in columns.iter().enumerate() {
                @let lines = (column.show)(document, cell).lines(Medium::Page);
                @if index == 0 {
                    th scope="row" {
                        (stacked(&lines))
                        @if best { span class="line below" { "✓ recommended" } " " }
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
