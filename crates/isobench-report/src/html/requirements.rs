//! The thresholds that the result had to keep, and what came of them.

use maud::Markup;

use super::part::table;
use isobench_result::document::{Document, RequirementResult};
use isobench_result::view::{Entry, Heading, Table};

/// The section's body; `None` if there was none.
pub fn body(document: &Document) -> Option<Markup> {
    let columns = Heading::all(&[("requirement", false), ("", false), ("values", false)]);
    let row = |result: &RequirementResult| {
        let met = if result.met { Entry::from("met") } else { Entry::grave("NOT MET") };
        vec![result.requirement.to_string().into(), met, result.found().into()]
    };
    let rows = Table::new(columns, document.requirements.iter().map(row));
    (!document.requirements.is_empty()).then(|| table("What had to come out, and what did.", &rows))
}
