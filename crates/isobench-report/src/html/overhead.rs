//! The cost of each level for each value of the parameters that the plan varies.
//!
//! Not here: how it is computed (`isobench_result::overhead`), the figure of the same (`chart/against`).

use maud::{Markup, html};

use super::part::table;
use isobench_result::document::Document;
use isobench_result::overhead::{self, LEGEND};

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let costs = overhead::table(document)?;
    Some(html! {
        (table("What a level costs against the first one, by the parameters that vary", &costs))
        @for sentence in LEGEND { p { (sentence) } }
    })
}
