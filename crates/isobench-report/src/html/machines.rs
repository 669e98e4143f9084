//! The machines that measured together.
//!
//! Not here: their figures (`isobench_result::machines`).

use maud::{Markup, html};

use super::part::table;
use isobench_result::document::Document;
use isobench_result::machines::{self, LEGEND};

/// The section's body; `None` if there was one machine.
pub fn body(document: &Document) -> Option<Markup> {
    let machines = machines::table(document, usize::MAX)?;
    Some(html! {
        (table("What each machine did", &machines))
        @for sentence in LEGEND { p { (sentence) } }
    })
}
