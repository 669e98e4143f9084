//! What levels and strategies cost and buy: throughput against anomalies, strategies by levels, and
//! a card to pass on.
//!
//! Not here: what is drawn (`chart/safety`, `matrix`, `card`).

use maud::{Markup, html};

use super::chart::safety;
use super::{Contents, card, matrix, pictures};
use isobench_result::document::Document;

/// The section's body, and its figures.
pub fn body(document: &Document) -> Option<(Markup, Contents)> {
    let safety = safety(document);
    let matrix = matrix::figure(document);
    let card = card::figure(document);
    let contents = [
        safety.as_ref().map(|figure| (figure.id, figure.title.clone())),
        matrix.as_ref().map(|_| (matrix::ID, matrix::TITLE.to_owned())),
        card.as_ref().map(|_| (card::ID, card::TITLE.to_owned())),
    ];
    (safety.is_some() || matrix.is_some() || card.is_some()).then(|| {
        let body = html! {
            @match &safety {
                Some(figure) => (pictures::picture(figure, false)),
                None => p {
                    "No history was checked, so there is no picture of cost against safety; a checked workload has one \
                     (isobench workloads)."
                }
            }
            @if let Some(matrix) = &matrix { (matrix) }
            @if let Some(card) = &card { (card) }
        };
        (body, contents.into_iter().flatten().collect())
    })
}
