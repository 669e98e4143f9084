//! What each level costs for each value of the parameters that the plan varies.
//!
//! Not here: how it is computed (`crate::overhead`), the figure of the same (`chart/against`).

use maud::{Markup, html};

use super::part::of_table;
use crate::document::Document;
use crate::overhead::{LEGEND, table};

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let table = table(document)?;
    Some(html! {
        (of_table("What a level costs beside the first one, by the parameters that vary", &table))
        @for sentence in LEGEND { p { (sentence) } }
    })
}
