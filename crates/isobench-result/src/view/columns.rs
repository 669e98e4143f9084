//! The columns of the table of results.
//!
//! Not here: the figures (`crate::figure`), the factors (`crate::factors`), widths and alignment (`text/layout`).

use super::{Entry, Estimate, Heading, Mark, Proof, Tables};
use crate::document::{Cell, Document, RatioToFirst};
use crate::figure::{FIGURES, Figure, InTable, OfCell, Shown};
use crate::rounds::planned;

/// The figure whose value may be larger, as the table shows.
const ANOMALIES: &str = "anomalies_per_million";

/// The figure that the table shows as a count of a count.
const DONE: &str = "done_share";

/// One column of the table.
#[derive(Clone, Copy)]
pub struct Column {
    /// Its identity: the name of the figure, where it is one.
    pub name: &'static str,
    /// The first line of the heading.
    pub title: &'static str,
    /// The second line of the heading.
    pub unit: &'static str,
    /// True for numbers, which are right-aligned.
    pub right: bool,
    /// True if the document has something for the column.
    pub when: fn(&Document) -> bool,
    /// The name in the legend, and what the column counts; empty where the column before says it.
    pub legend: (&'static str, &'static str),
    /// Its entries.
    pub show: Show,
}

/// Where the entries of a column come from.
#[derive(Clone, Copy)]
pub enum Show {
    /// From the cell.
    Own(fn(&Document, &Cell) -> Entry),
    /// From a figure of it.
    Figure(&'static Figure),
}

impl Column {
    /// Its heading.
    pub fn heading(&self) -> Heading {
        Heading::new(self.title, self.unit, self.right)
    }

    /// The entry of a cell.
    pub fn entry(&self, document: &Document, cell: &Cell) -> Entry {
        match self.show {
            Show::Own(of) => of(document, cell),
            Show::Figure(figure) => entry(figure, document, cell),
        }
    }

    fn of(figure: &'static Figure) -> Option<Column> {
        let InTable { when, legend } = figure.column?;
        let ((title, unit), name) = (figure.heading, figure.name);
        Some(Column { name, title, unit, right: true, when, legend, show: Show::Figure(figure) })
    }
}

/// The isolation level, with whatever brands the row.
pub static LEVEL: Column = Column {
    name: "level",
    title: "level",
    unit: "",
    right: false,
    when: |_| true,
    legend: (
        "level",
        "isolation level asked for; → what the server says it runs instead; CAPITALS: result not valid; !: read the \
         note below",
    ),
    show: Show::Own(level),
};

/// The verdict, which stands after the anomalies that it rests on.
pub static VERDICT: Column = Column {
    name: "verdict",
    title: "verdict",
    unit: "",
    right: false,
    when: |_| true,
    legend: (
        "verdict",
        "the strongest level that the recorded histories don't contradict; below it whether they have an anomaly \
         that the row's level forbids, and whether the invariants of the tables held; as far as seen: statements \
         that could matter weren't tracked; unprotected: values are carried from one transaction to another, \
         which no level protects; unproved: no history was recorded, or no two transactions met in it",
    ),
    show: Show::Own(verdict),
};

/// The columns of the measurements that a document has something for, the most important ones first:
/// where there isn't room for all, the last ones are left out.
pub fn figures(document: &Document) -> impl Iterator<Item = Column> {
    let columns = FIGURES.iter().filter_map(Column::of).flat_map(|column| {
        let verdict = (column.name == ANOMALIES).then_some(VERDICT);
        std::iter::once(column).chain(verdict)
    });
    columns.filter(move |column| (column.when)(document))
}

fn level(document: &Document, cell: &Cell) -> Entry {
    Entry::Level(cell.level.name(), Mark::all(document, cell))
}

/// The entry of a figure: its value, with what is known of it.
fn entry(figure: &Figure, document: &Document, cell: &Cell) -> Entry {
    match figure.of_cell {
        _ if figure.name == ANOMALIES => anomalies(cell),
        _ if figure.name == DONE => done(document, cell),
        OfCell::Ratio(of, name) => compared(cell, of(&cell.summary), &name(cell)),
        _ => figure_entry(figure, document, cell),
    }
}

fn figure_entry(figure: &Figure, document: &Document, cell: &Cell) -> Entry {
    let found = figure.measured(document, cell).ok();
    let value = found.map(|found| found.number);
    let ends = found.and_then(|found| found.low.zip(found.high));
    match (figure.of_cell, figure.shown) {
        (OfCell::Percentile(..), _) => {
            let estimate = ends.map(|_| Estimate { value, ends });
            Entry::Percentile { value, estimate }
        }
        (OfCell::Rounds | OfCell::Estimate(_), _) => Entry::Estimate(Estimate { value, ends }),
        (_, Shown::Share) => Entry::Share(value),
        (_, Shown::Number) => Entry::Number(value),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a count")]
        (_, Shown::Count) => Entry::Count(value.map(|count| count as u64)),
    }
}

/// The ratio of a cell of this name to the first one.
fn compared(cell: &Cell, ratio: Option<&RatioToFirst>, name: &str) -> Entry {
    match ratio {
        None => Entry::Number(None),
        Some(ratio) if ratio.to == name && !cell.calibration => Entry::First,
        Some(ratio) => Entry::ratio(ratio.mean, ratio.low.zip(ratio.high), ratio.significant),
    }
}

fn done(document: &Document, cell: &Cell) -> Entry {
    let done = cell.rounds.iter().fold(0_u64, |sum, round| sum.saturating_add(round.transactions.committed));
    Entry::Progress { done, planned: planned(document, cell) }
}

fn anomalies(cell: &Cell) -> Entry {
    let verdict = cell.summary.verdict.as_ref();
    Entry::Least {
        value: verdict.and_then(|verdict| verdict.anomalies_per_million),
        at_least: verdict.is_some_and(|verdict| verdict.at_least),
    }
}

fn verdict(_: &Document, cell: &Cell) -> Entry {
    let proof = Proof::of(cell);
    let kept = cell.summary.verdict.as_ref().and_then(|verdict| verdict.kept);
    // A promise that nothing could break wasn't tried.
    let kept = kept.filter(|kept| !(*kept && proof == Proof::NothingShared));
    Entry::Verdict(proof, kept, Tables::of(cell))
}
