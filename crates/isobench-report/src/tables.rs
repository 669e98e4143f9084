//! The tables of a result as CSV, for `DuckDB`, Polars, pandas and spreadsheets: rounds, the bins of their
//! time series, and recorded transactions.
//!
//! Knows no option and no file name: the caller opens what is read and written. Not here: the columns
//! (`isobench_result`), and one line for each round without the result's keys (`csv.rs`).

mod transactions;

use std::io::{self, Write};

use isobench_isolation::history::FormatError;
use isobench_result::columns::{Column, Place, bins, round_columns, rounds, series_columns};
use isobench_result::document::Document;

use crate::csv::{field, line};

pub use transactions::TransactionsTable;

/// A table that can't be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file can't be written.
    #[error("{0}")]
    Unwritable(#[from] io::Error),
    /// A recording can't be read.
    #[error("{0}")]
    Unreadable(#[from] FormatError),
    /// A recording isn't that of the round, or not all of it.
    #[error("it has {found} transactions, but the round's verdict examined {examined}: it is of another run")]
    Foreign {
        /// Transactions in the recording.
        found: u64,
        /// Transactions in the history that was checked.
        examined: u64,
    },
}

/// Writes a line of titles and a line for each round. Returns the number of rounds.
///
/// # Errors
/// The output can't be written.
pub fn write_rounds(document: &Document, output: impl Write) -> Result<u64, ExportError> {
    write(round_columns, rounds(document), output)
}

/// Writes a line of titles and a line for each bin of the rounds' time series. Returns the number of bins.
///
/// # Errors
/// The output can't be written.
pub fn write_series(document: &Document, output: impl Write) -> Result<u64, ExportError> {
    write(series_columns, bins(document), output)
}

fn write<'d, Columns: Iterator<Item = Column>>(
    columns: impl Fn() -> Columns,
    places: impl Iterator<Item = Place<'d>>,
    mut output: impl Write,
) -> Result<u64, ExportError> {
    output.write_all(line(columns().map(|column| column.name.to_owned())).as_bytes())?;
    let mut count = 0;
    for place in places {
        output.write_all(line(columns().map(|column| field(column, &place))).as_bytes())?;
        count += 1;
    }
    Ok(count)
}
