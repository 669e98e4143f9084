//! What a page has no room for.
//!
//! A browser shows a page of two megabytes at once, one of ten after a while. So of a large result
//! the page leaves out what is of use to programs rather than to readers, and says so in its place.

use isobench_result::document::Document;
use isobench_result::numbers::counted;

/// The most rounds, of all cells together, that the page has one by one.
const ROUNDS: usize = 1000;

/// The most cells of which the page has all data of its figures.
const CELLS: usize = 24;

/// The most columns, and the most rows, of a table that turns into cards where there is little room.
const CARDS: (usize, usize) = (24, 50);

/// True if the page has no room for every round.
pub fn has_many_rounds(document: &Document) -> bool {
    rounds(document) > ROUNDS
}

/// True if the page has no room for all data of every cell.
pub fn has_many_cells(document: &Document) -> bool {
    document.cells.len() > CELLS
}

/// True if a table turns into cards where there is little room. Larger ones scroll: nobody reads as
/// many cards, and the labels in them would be a third of the page.
pub fn has_cards(columns: usize, rows: usize) -> bool {
    columns <= CARDS.0 && rows <= CARDS.1
}

/// The sentence in the place of every round.
pub fn instead_of_rounds(document: &Document) -> String {
    format!(
        "A page has no room for {}: isobench report RESULT --csv FILE writes a line for each, and the result itself has all.",
        counted(rounds(document) as u64, "round")
    )
}

fn rounds(document: &Document) -> usize {
    document.cells.iter().map(|cell| cell.rounds.len()).sum()
}
