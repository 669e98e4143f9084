//! What levels and strategies cost and buy: strategies by levels, and a card to pass on.
//!
//! Not here: what is drawn (`matrix`, `card`), and throughput against anomalies (`answer`).

use maud::{Markup, html};

use super::{Contents, card, matrix};
use isobench_result::document::Document;

/// The section's body, and its figures.
pub fn body(document: &Document) -> Option<(Markup, Contents)> {
    let matrix = matrix::figure(document);
    let card = card::figure(document);
    let contents = [
        matrix.as_ref().map(|_| (matrix::ID, matrix::TITLE.to_owned())),
        card.as_ref().map(|_| (card::ID, card::TITLE.to_owned())),
    ];
    (matrix.is_some() || card.is_some()).then(|| {
        let body = html! {
            @if let Some(matrix) = &matrix { (matrix) }
            @if let Some(card) = &card { (card) }
        };
        (body, contents.into_iter().flatten().collect())
    })
}
