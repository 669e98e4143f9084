//! The figures, each with its caption, its description in words, and its data.
//!
//! Not here: what is drawn (`chart`).

use maud::{Markup, PreEscaped, html};

use super::Contents;
use super::chart::{Figure, course as course_figures, rates as rate_figures};
use super::part::{self, code};
use isobench_result::document::Document;

/// In a comparison of more cells than this, figures after the first few are folded: each has a part
/// for every cell.
const MANY_CELLS: usize = 8;

/// The figures of a section that are never folded.
const OPEN: usize = 2;

/// The rates and the ledger of time.
pub fn rates(document: &Document) -> Option<(Markup, Contents)> {
    body(document, rate_figures(document))
}

/// The distributions of latency, and the waits on the server.
pub fn course(document: &Document) -> Option<(Markup, Contents)> {
    body(document, course_figures(document))
}

fn body(document: &Document, figures: Vec<Figure>) -> Option<(Markup, Contents)> {
    let many = document.cells.len() > MANY_CELLS;
    (!figures.is_empty()).then(|| {
        let body = html! {
            @for (index, figure) in figures.iter().enumerate() { (picture(figure, many && index >= OPEN)) }
        };
        (body, figures.into_iter().map(|figure| (figure.id, figure.title)).collect())
    })
}

/// A figure with all that belongs to it.
pub fn picture(figure: &Figure, folded: bool) -> Markup {
    html! {
        figure id=(figure.id) aria-labelledby={ (figure.id) "-title" } {
            h3 id={ (figure.id) "-title" } { (figure.title) }
            (part::folded(folded, "Show the picture", &shown(figure)))
        }
    }
}

fn shown(figure: &Figure) -> Markup {
    let data = format!("{}-data", figure.id);
    html! {
        (PreEscaped(&figure.legend))
        div class="picture" { (PreEscaped(&figure.svg)) }
        figcaption { (figure.caption) }
        div class="extras" {
            details {
                summary { "In words" }
                p id={ (figure.id) "-words" } { (figure.description) }
            }
            details class="data" {
                summary { "Data as CSV" }
                (code(&data, "Comma-separated values", &format!("{}.csv", figure.id), &figure.csv))
            }
        }
    }
}
