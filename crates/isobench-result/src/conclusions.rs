//! From rounds to conclusions: the summary of every cell, and the answer.
//!
//! Only reads the rounds and the plan's levels, so a saved result can be summarised again.

use std::borrow::Cow;

use crate::answer::{given, is_open};
use crate::document::Document;
use crate::summarise::summaries;

/// Computes the summary of every cell from its rounds, and the answer.
///
/// A cell is summarised from its complete rounds; one that has none, from what it has, with 0 as
/// its number of rounds. The ratio compares committed transactions per second with the cell of the
/// plan's first level (or, in a plan without levels, the first cell) whose other factors are equal,
/// paired by the number of the round. So do the ratios to the first strategy and to the first
/// settings, at the same level.
pub fn summarise(document: &mut Document) {
    let (summaries, resolution) = summaries(document);
    for (cell, summary) in document.cells.iter_mut().zip(summaries) {
        cell.summary = summary;
    }
    document.resolution = resolution;
    document.answer = Some(given(document));
}

/// The document with its conclusions, whatever it says; itself, if it says the same.
pub fn summarised(document: &Document) -> Cow<'_, Document> {
    let (summaries, resolution) = summaries(document);
    let said = document.cells.iter().map(|cell| &cell.summary);
    if resolution == document.resolution && said.eq(&summaries) {
        return Cow::Borrowed(document);
    }
    let mut document = document.clone();
    for (cell, summary) in document.cells.iter_mut().zip(summaries) {
        cell.summary = summary;
    }
    document.resolution = resolution;
    document.answer = Some(given(&document));
    Cow::Owned(document)
}

/// True if more rounds could change what is recommended: levels without damage are neither told apart
/// by their cost nor shown to be alike. Of a document as it is measured so far.
pub fn unsettled(document: &Document) -> bool {
    is_open(&summarised(document))
}
