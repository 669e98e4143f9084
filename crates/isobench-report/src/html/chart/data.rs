//! The numbers of a figure as comma-separated values (RFC 4180), for spreadsheets and scripts.
//!
//! Not here: rounding; the data have every digit that the document has.

use super::subject::{NAMES, Subject};
use crate::csv::line;

/// A table in the making. Every line begins with what names its cell.
pub struct Data {
    text: String,
}

impl Data {
    /// A table with these columns after those that name the cell.
    pub fn of_cells(titles: &[&str]) -> Data {
        Data { text: line(NAMES.iter().chain(titles).map(|title| (*title).to_owned())) }
    }

    /// A table with these columns.
    pub fn new(titles: &[&str]) -> Data {
        Data { text: line(titles.iter().map(|title| (*title).to_owned())) }
    }

    /// Adds a line for a cell.
    pub fn cell(&mut self, subject: &Subject, values: Vec<String>) {
        self.text += &line(subject.names().into_iter().chain(values));
    }

    /// Adds a line.
    pub fn row(&mut self, values: Vec<String>) {
        self.text += &line(values.into_iter());
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.text
    }
}
