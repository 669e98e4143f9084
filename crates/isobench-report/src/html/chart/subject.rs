//! What a cell is called and how it is drawn: the same in every figure, so that a level is known again.
//!
//! Not here: what is drawn of a cell.

use crate::document::{Cell, Document, Round};
use crate::html::part::varying;
use crate::summarise::{counted_rounds, same_factors};

/// So many levels differ in colour, marker and dashes.
const STYLES: usize = 6;

/// A cell as figures show it.
pub struct Subject<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its level, and what brands it: "serializable", "read committed → serializable", "read committed, measured again".
    pub name: String,
    /// The number of its level's style, from 0.
    pub style: usize,
    /// True for the first level once more (an A/A cell): the same colour, but hollow.
    pub again: bool,
}

/// Cells that differ in nothing but their levels.
pub struct Group<'a> {
    /// The other factors, as far as they vary in the document; empty if none does.
    pub name: String,
    /// Its cells, in the document's order.
    pub members: Vec<Subject<'a>>,
}

impl Subject<'_> {
    /// The classes that give a mark of this cell its style.
    pub fn class(&self) -> String {
        format!("s{}{}", self.style, if self.again { " again" } else { "" })
    }

    /// The rounds that conclusions rest on.
    pub fn rounds(&self) -> Vec<&Round> {
        counted_rounds(self.cell)
    }

    /// The columns that name the cell in every figure's data; their titles are [`NAMES`].
    pub fn names(&self) -> Vec<String> {
        let cell = self.cell;
        vec![
            cell.workload.clone(),
            cell.clients.to_string(),
            cell.backoff.clone(),
            crate::csv::number(cell.rate),
            cell.level.name(),
            cell.calibration.to_string(),
        ]
    }
}

/// The titles of the columns that name a cell.
pub const NAMES: [&str; 6] = ["workload", "clients", "backoff", "rate", "level", "measured_again"];

/// All cells of a document in their groups, in the document's order.
pub fn groups(document: &Document) -> Vec<Group<'_>> {
    let levels = levels(document);
    let factors = varying(document);
    let mut groups: Vec<Group> = Vec::new();
    for cell in &document.cells {
        let subject = subject(cell, &levels);
        let same = |group: &&mut Group| {
            group.members.first().is_some_and(|member| same_factors(member.cell, cell))
        };
        if let Some(group) = groups.iter_mut().find(same) {
            group.members.push(subject);
            continue;
        }
        let words = factors.iter().map(|factor| {
            format!("{} {}", factor.title, (factor.show)(document, cell).join(" "))
        });
        groups.push(Group { name: words.collect::<Vec<_>>().join(", "), members: vec![subject] });
    }
    groups
}

/// The names of the levels, those of the plan first.
fn levels(document: &Document) -> Vec<String> {
    let planned = document.plan.levels.iter().map(|level| level.name().to_owned());
    let mut names: Vec<String> = Vec::new();
    for name in planned.chain(document.cells.iter().map(|cell| cell.level.name())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn subject<'a>(cell: &'a Cell, levels: &[String]) -> Subject<'a> {
    let level = cell.level.name();
    let style = levels.iter().position(|name| *name == level).unwrap_or(0) % STYLES;
    let mut name = level;
    if cell.level.differs() {
        name = format!("{name} → {}", cell.level.effective);
    }
    if cell.calibration {
        name += ", measured again";
    }
    Subject { cell, name, style, again: cell.calibration }
}
