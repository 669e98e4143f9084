//! The figures, each with its caption, its description in words, and its data.
//!
//! Not here: what is drawn (`chart`).

use maud::{Markup, PreEscaped, html};

use super::chart::{Figure, figures};
use super::part::code;
use crate::document::Document;

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let figures = figures(document);
    (!figures.is_empty()).then(|| {
        html! {
            @for figure in &figures { (picture(figure)) }
        }
    })
}

/// The figures in the table of contents.
pub fn contents(document: &Document) -> Markup {
    html! {
        ol {
            @for figure in figures(document) {
                li { a href={ "#" (figure.id) } { (figure.title) } }
            }
        }
    }
}

/// A figure with everything that belongs to it.
pub fn picture(figure: &Figure) -> Markup {
    let data = format!("{}-data", figure.id);
    html! {
        figure id=(figure.id) aria-labelledby={ (figure.id) "-title" } {
            h3 id={ (figure.id) "-title" } { (figure.title) }
            (PreEscaped(&figure.legend))
            div class="picture" { (PreEscaped(&figure.svg)) }
            figcaption { (figure.caption) }
            div class="extras" {
                details {
                    summary { "In words" }
                    p { (figure.description) }
                }
                details class="data" {
                    summary { "Data as CSV" }
                    (code(&data, "Comma-separated values", &format!("{}.csv", figure.id), &figure.csv))
                }
            }
        }
    }
}
