//! A table: headings, and rows of entries.

use super::{Entry, Heading};

/// A table for any rendering that people read.
pub struct Table {
    /// The headings of its columns.
    pub columns: Vec<Heading>,
    /// The rows below them.
    pub rows: Vec<Row>,
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
