//! From rounds to conclusions: the summary of every cell, and the answer.
//!
//! Only reads the rounds and the plan's levels, so a saved result can be summarised again.

use std::borrow::Cow;

use crate::answer::{given, is_open};
use crate::document::{Cell, Document, Resolution, Summary};
use crate::summarise::{is_of, summaries};

/// Computes the summary of every cell from its rounds, and the answer.
///
/// A cell is summarised from its complete rounds; one that has none, from what it has, with 0 as
/// its number of rounds. The ratio compares committed transactions per second with the cell of the
/// plan's first level (or, in a plan without levels, the first cell) whose other factors are equal,
/// paired by the number of the round. So do the ratios to the first strategy and to the first
/// settings, at the same level.
///
/// No level stays proved for scripts of which something wrong was shown at a level that theory proves: it
/// knows no conditions of users, and no values that sequences give out.
pub fn summarise(document: &mut Document) {
    let found = summaries(document);
    conclude(document, found);
}

fn conclude(document: &mut Document, mut found: (Vec<Summary>, Option<Resolution>)) {
    if withdraw_proofs(document, &found.0) {
        found = summaries(document);
    }
    let (summaries, resolution) = found;
    for (cell, summary) in document.cells.iter_mut().zip(summaries) {
        cell.summary = summary;
    }
    document.resolution = resolution;
    document.answer = Some(given(document));
}

/// Withdraws what is proved of workloads that are contradicted. Returns whether any is.
fn withdraw_proofs(document: &mut Document, summaries: &[Summary]) -> bool {
    let Document { observations, cells, .. } = document;
    let mut withdrawn = false;
    for observation in observations.iter_mut().filter(|observation| !observation.proved.is_empty()) {
        let contradicted = |(cell, summary): (&Cell, &Summary)| {
            let level = cell.level.asked().and_then(|asked| asked.level());
            let anomalies = summary.verdict.as_ref().map_or(0, |verdict| verdict.anomalies);
            is_of(observation, cell)
                && level.is_some_and(|level| observation.proved.contains(&level))
                && (anomalies > 0 || summary.violations > 0 || summary.damage > 0)
        };
        if cells.iter().zip(summaries).any(contradicted) {
            observation.proved.clear();
            withdrawn = true;
        }
    }
    withdrawn
}

/// The document with its conclusions, whatever it says; itself, if it says the same.
pub fn summarised(document: &Document) -> Cow<'_, Document> {
    let (summaries, resolution) = summaries(document);
    let said = document.cells.iter().map(|cell| &cell.summary);
    if resolution == document.resolution && said.eq(&summaries) {
        return Cow::Borrowed(document);
    }
    let mut document = document.clone();
    conclude(&mut document, (summaries, resolution));
    Cow::Owned(document)
}

/// True if more rounds could change what is recommended: levels without damage are neither told apart
/// by their cost nor shown to be alike. Of a document as it is measured so far.
pub fn unsettled(document: &Document) -> bool {
    is_open(&summarised(document))
}
