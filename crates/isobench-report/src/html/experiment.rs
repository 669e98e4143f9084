//! The published experiment that was repeated: its table beside ours, what came out again, what the
//! original missed.
//!
//! Not here: the comparison (`crate::shape`) and its words (`text/experiment`).

use maud::{Markup, html};

use super::part::table;
use crate::document::Document;
use crate::text::experiment::{ToldShape, told};

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let told = told(document)?;
    Some(html! {
        p class="headline more" { (told.title) }
        @for line in &told.source { p { (line) } }
        @if let Some(published) = &told.table { (table("The published figures, and ours below them", published)) }
        @if let Some(verdict) = &told.verdict {
            h3 { "What came out again" }
            p { (verdict) }
            dl class="methods" {
                @for ToldShape { verdict, says, figures } in &told.shapes {
                    dt { strong class=[verdict.is_grave().then_some("brand")] { (verdict.text) } ": " (says) }
                    dd { (figures) }
                }
            }
        }
        @if !told.missed.is_empty() {
            h3 { "What the original missed" }
            ul { @for sentence in &told.missed { li { (sentence) } } }
        }
    })
}
