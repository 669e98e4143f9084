//! Progress of an initialisation, and its duration. The wording is the caller's.

use std::time::Duration;

use isobench_pgwire::ServerError;

use crate::steps::InitStep;
use crate::table::Table;

/// An event while tables are created.
#[derive(Debug, Clone)]
pub enum InitProgress {
    /// A step starts.
    Step(InitStep),
    /// The partitions of the accounts are created next: this many.
    Partitions(u32),
    /// Rows were sent; reported every 100 rows of a table.
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
    /// A sentence about a difference on this product, for example a step that it doesn't need.
    Note(String),
}

/// The duration of an initialisation and of each step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timings {
    /// The steps in the order they ran.
    pub steps: Vec<(InitStep, Duration)>,
    /// From the start of the first to the end of the last.
    pub total: Duration,
}
