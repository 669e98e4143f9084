//! The published experiment that was repeated: its table beside ours, what came out again, what the
//! original missed.
//!
//! Not here: the comparison (`isobench_result::shape`) and its words (`text/experiment`).

use maud::{Markup, html};

use super::part::table;
use crate::text::experiment::{ShapeText, describe};
use isobench_result::document::Document;

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let text = describe(document)?;
    Some(html! {
        p class="headline more" { (text.title) }
        @for line in &text.source { p { (line) } }
        @if let Some(published) = &text.table { (table("The published figures, and ours below them", published)) }
        @if let Some(verdict) = &text.verdict {
            h3 { "What came out again" }
            p { (verdict) }
            dl class="methods" {
                @for ShapeText { verdict, says, figures } in &text.shapes {
                    dt { strong class=[verdict.is_grave().then_some("brand")] { (verdict.text) } ": " (says) }
                    dd { (figures) }
                }
            }
        }
        @if !text.missed.is_empty() {
            h3 { "What the original missed" }
            ul { @for sentence in &text.missed { li { (sentence) } } }
        }
    })
}
