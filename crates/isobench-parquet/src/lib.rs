//! The tables of a result as Parquet files, for `DuckDB`, Polars, pandas and whatever else reads them:
//! rounds, the bins of their time series, and recorded transactions.
//!
//! Knows no option and no file name: the caller opens what is read and written. Columns of rounds and
//! series are those of `isobench_result`, which CSV has, too.
//!
//! | file | concept |
//! |---|---|
//! | `file` | a Parquet file that is written row by row, a row group at a time |
//! | `places` | the tables of rounds and of their time series |
//! | `transactions` | the table of recorded transactions |

mod file;
mod places;
mod transactions;

use isobench_isolation::history::FormatError;

pub use file::{FORMAT, Kind};
pub use places::{write_rounds, write_series};
pub use transactions::TransactionsFile;

/// A table that can't be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file can't be written.
    #[error("{0}")]
    Unwritable(#[from] parquet::errors::ParquetError),
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

/// The name, type and presence of a column: true if every row has a value.
pub type ColumnType = (&'static str, Kind, bool);

/// The tables by the names that their files should have, without `.parquet`, with their columns.
pub fn tables() -> [(&'static str, Vec<ColumnType>); 3] {
    [
        ("rounds", places::round_fields()),
        ("series", places::series_fields()),
        ("transactions", transactions::fields()),
    ]
}
