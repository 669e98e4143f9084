//! What an initialisation tells while it runs, and what it took. The words for it are the caller's.

use std::time::Duration;

use isobench_pgwire::ServerError;

use crate::steps::InitStep;
use crate::table::Table;

/// Something that happened while tables are made.
#[derive(Debug, Clone)]
pub enum Progress {
    /// A step starts.
    Step(InitStep),
    /// The partitions of the accounts are made now: this many.
    Partitions(u32),
    /// Rows were sent; told every 100 rows of a table.
    Rows {
        /// The table.
        table: Table,
        /// Rows sent so far.
        done: u64,
        /// Rows in all.
        total: u64,
        /// Time since the first row.
        elapsed: Duration,
    },
    /// The server sent a notice.
    Notice(Box<ServerError>),
    /// A sentence on what is done differently on this product, for example a step it doesn't need.
    Note(String),
}

/// How long an initialisation and each of its steps took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timings {
    /// The steps in the order they ran.
    pub steps: Vec<(InitStep, Duration)>,
    /// From the start of the first to the end of the last.
    pub total: Duration,
}
