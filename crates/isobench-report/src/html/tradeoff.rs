//! What levels and strategies cost and buy: throughput against anomalies, strategies by levels, and
//! a card to pass on.
//!
//! Not here: what is drawn (`chart/safety`, `matrix`, `card`).

use maud::{Markup, html};

use super::chart::safety;
use super::{card, matrix, pictures};
use crate::document::Document;

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let safety = safety(document);
    let matrix = matrix::figure(document);
    let card = card::figure(document);
    (safety.is_some() || matrix.is_some() || card.is_some()).then(|| {
        html! {
            @match &safety {
                Some(figure) => (pictures::picture(figure, false)),
                None => p {
                    "No history was checked, so there is no picture of cost against safety; a checked workload has one \
                     (isobench workloads)."
                }
            }
            @if let Some(matrix) = &matrix { (matrix) }
            @if let Some(card) = &card { (card) }
        }
    })
}

/// The figures in the table of contents.
pub fn contents(document: &Document) -> Vec<(&'static str, String)> {
    let safety = safety(document).map(|figure| (figure.id, figure.title));
    let matrix = matrix::figure(document).map(|_| (matrix::ID, matrix::TITLE.to_owned()));
    let card = card::figure(document).map(|_| (card::ID, card::TITLE.to_owned()));
    [safety, matrix, card].into_iter().flatten().collect()
}
