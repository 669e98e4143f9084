//! The name and the style of a cell: the same in every figure, so that a level is recognised.
//!
//! Not here: what is drawn of a cell.

use isobench_isolation::Level;
use isobench_result::document::{Cell, Document, Round};
use isobench_result::factor::{Factor, varying};
use isobench_result::rounds::{self, counted_rounds};
use isobench_result::view::Mark;
use isobench_result::words::distinct;

/// The number of levels that differ in colour, marker and dashes.
pub const STYLES: usize = 6;

/// The first style of the values of a parameter, of which there are as many.
pub const VALUES: usize = STYLES;

/// A cell as figures show it.
pub struct Subject<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its level, and what brands it: "serializable", "read committed → serializable".
    pub name: String,
    /// The same in few words, where room is scarce.
    pub short: String,
    /// The number of its level's style, from 0.
    pub style: usize,
    /// True for an A/A cell: the same colour, but hollow.
    pub again: bool,
}

/// Cells that differ in nothing but their levels.
pub struct Group<'a> {
    /// The other factors, as far as they vary in the document: "clients 8, backoff none"; empty if
    /// none does.
    pub name: String,
    /// The same, each with its value.
    pub factors: Vec<(Factor, String)>,
    /// Its cells, in the document's order.
    pub members: Vec<Subject<'a>>,
}

impl<'a> Subject<'a> {
    /// The classes that give a mark of this cell its style.
    pub fn class(&self) -> String {
        format!("s{}{}", self.style, if self.again { " again" } else { "" })
    }

    /// The rounds that conclusions rest on.
    pub fn rounds(&self) -> Vec<&'a Round> {
        counted_rounds(self.cell)
    }

    /// Another cell of the same level, in the same style.
    pub fn with(&self, cell: &'a Cell) -> Subject<'a> {
        Subject { cell, name: self.name.clone(), short: self.short.clone(), ..*self }
    }

    /// The columns that name the cell in every figure's data; their titles are [`NAMES`].
    pub fn names(&self) -> Vec<String> {
        let cell = self.cell;
        vec![
            cell.workload.clone(),
            cell.clients.to_string(),
            cell.backoff.clone(),
            crate::csv::number(cell.rate),
            cell.strategy.clone().unwrap_or_default(),
            isobench_result::columns::varied(cell),
            cell.level.name(),
            cell.calibration.to_string(),
        ]
    }
}

impl Group<'_> {
    /// The words after the name of a cell in a sentence: " (clients 8, backoff none)", or nothing.
    pub fn place(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(" ({})", self.name) }
    }
}

/// The titles of the columns that name a cell.
pub const NAMES: [&str; 8] =
    ["workload", "clients", "backoff", "rate", "strategy", "varied", "level", "measured_again"];

/// All cells of a document in their groups, in the document's order.
pub fn groups(document: &Document) -> Vec<Group<'_>> {
    let levels = levels(document);
    let factors = varying(document);
    let values = |cell: &Cell| -> Vec<(Factor, String)> {
        factors.iter().map(|factor| (factor.clone(), factor.value(cell))).collect()
    };
    rounds::groups(document)
        .into_iter()
        .filter_map(|cells| {
            let factors = values(cells.first()?);
            let members = cells.into_iter().map(|cell| subject(document, cell, &levels)).collect();
            Some(Group { name: name_of(&factors), factors, members })
        })
        .collect()
}

/// Factors in words.
pub fn name_of(factors: &[(Factor, String)]) -> String {
    let named = |(factor, value): &(Factor, String)| format!("{} {value}", factor.title());
    factors.iter().map(named).collect::<Vec<_>>().join(", ")
}

/// The names of the levels: the standard's, then those that servers report besides.
fn levels(document: &Document) -> Vec<String> {
    let standard = Level::ALL.iter().map(|level| level.name().to_owned());
    distinct(standard.chain(document.cells.iter().map(|cell| cell.level.name())))
}

/// The style of a level: the standard's have theirs in every report, others share what is left.
fn style_of(level: &str, levels: &[String]) -> usize {
    let place = levels.iter().position(|name| *name == level).unwrap_or(0);
    let standard = Level::ALL.len();
    if place < standard { place } else { standard + (place - standard) % (STYLES - standard) }
}

fn subject<'a>(document: &Document, cell: &'a Cell, levels: &[String]) -> Subject<'a> {
    let level = cell.level.name();
    let style = style_of(&level, levels);
    let mut name = level.clone();
    let mut short = level;
    for mark in Mark::all(document, cell) {
        let parting = match mark {
            // Flags are many, and have their own place.
            Mark::Flag(_) => continue,
            Mark::Effective(_) => " ",
            _ => ", ",
        };
        let text = mark.line().text;
        name = name + parting + &text;
        if mark == Mark::Again {
            short = text;
        }
    }
    Subject { cell, name, short, style, again: cell.calibration }
}
