//! The typed view between the summary and its renderings: tables whose entries say what they are.
//!
//! Words, emphasis and order of lines are decided here, once. A rendering asks for the lines of an
//! entry and lays them out; it never looks for anything in their words, which may be a user's. Not
//! here: widths, escaping, markup.

pub mod columns;
mod entry;
mod level;
mod line;
pub mod matrix;
pub mod tried;
mod verdict;

pub use entry::{Entry, Estimate, Medium};
pub use level::{Mark, errored, is_incomplete};
pub use line::{Emphasis, Line};
pub use matrix::matrix;
pub use verdict::{Proof, Tables};

/// A table for any rendering that people read.
pub struct Table {
    /// The headings of its columns.
    pub columns: Vec<Heading>,
    /// The rows below them.
    pub rows: Vec<Row>,
}

/// The heading of a column.
pub struct Heading {
    /// The first line.
    pub title: String,
    /// The second line; may be empty.
    pub unit: String,
    /// True for numbers, which are right-aligned.
    pub right: bool,
}

/// A row of a table.
pub enum Row {
    /// A line across all columns, above the rows that it describes.
    Heading(String),
    /// An entry for each column.
    Entries(Vec<Entry>),
}

impl Table {
    /// A table whose rows have no headings.
    pub fn new(columns: Vec<Heading>, rows: impl IntoIterator<Item = Vec<Entry>>) -> Table {
        Table { columns, rows: rows.into_iter().map(Row::Entries).collect() }
    }

    /// The rows without the headings between them.
    pub fn entries(&self) -> impl Iterator<Item = &[Entry]> {
        self.rows.iter().filter_map(|row| match row {
            Row::Entries(entries) => Some(entries.as_slice()),
            Row::Heading(_) => None,
        })
    }
}

impl Heading {
    /// A heading of two lines.
    pub fn new(title: impl Into<String>, unit: impl Into<String>, right: bool) -> Heading {
        Heading { title: title.into(), unit: unit.into(), right }
    }

    /// Headings without units: the title of each, and whether its column has numbers.
    pub fn all(titles: &[(&str, bool)]) -> Vec<Heading> {
        titles.iter().map(|(title, right)| Heading::new(*title, "", *right)).collect()
    }

    /// Title and unit in one line.
    pub fn name(&self) -> String {
        format!("{} {}", self.title, self.unit).trim().to_owned()
    }
}
