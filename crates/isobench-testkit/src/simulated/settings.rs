//! The parameters of a simulation.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::faults::Faults;

/// The parameters of a simulation. By default, every statement is answered after exactly one
/// millisecond, without faults.
#[derive(Debug, Clone)]
pub struct SimulationSettings {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The duration of a statement, in nanoseconds, drawn for each one. Other messages take no
    /// time.
    pub latency: RangeInclusive<u64>,
    /// The time for opening a session, for which only the opener waits.
    pub connecting: Duration,
    /// The time for receiving data that has arrived, for which only the receiver waits.
    pub receiving: Duration,
    /// True if RELEASE commits the block's work so far, as in CockroachDB's retry protocol.
    pub release_commits: bool,
    /// The faults.
    pub faults: Faults,
    /// The results of SELECT, and of INSERT and UPDATE with RETURNING: the first entry whose text
    /// occurs in the statement. Otherwise the result is one row with the column `v` and the value
    /// 1.
    pub answers: Vec<(&'static str, Answer)>,
    /// The maximum size of the pieces of a reply, in bytes; each piece's size is drawn, from 1 up,
    /// and pieces arrive 10 µs apart. `None` for whole replies.
    pub pieces: Option<usize>,
    /// The maximum number of bytes that a connection accepts at once, drawn for each send, from 0
    /// up; it accepts more 10 µs later. `None` for no limit.
    pub short_writes: Option<usize>,
    /// The time at which the simulation fails, because the code under test hangs.
    pub time_limit: Duration,
}

impl Default for SimulationSettings {
    fn default() -> Self {
        SimulationSettings {
            seed: 0,
            latency: 1_000_000..=1_000_000,
            connecting: Duration::ZERO,
            receiving: Duration::ZERO,
            release_commits: false,
            faults: Faults::none(),
            answers: Vec::new(),
            pieces: None,
            short_writes: None,
            time_limit: Duration::from_hours(1),
        }
    }
}

/// A value of an [`Answer`] that is replaced by the level that the session has set, in lower case.
pub const LEVEL: &str = "(level)";

/// A value of an [`Answer`] that is replaced by the schema in which the session works.
pub const SCHEMA: &str = "(schema)";

/// A value of an [`Answer`] that is replaced by the session's process id.
pub const PROCESS: &str = "(process)";

/// A value of an [`Answer`] that is replaced by [`Truth::committed_rows`](super::Truth).
pub const COMMITTED_ROWS: &str = "(committed rows)";

/// The result of a SELECT.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The columns' names.
    pub columns: Vec<&'static str>,
    /// The rows; `None` is NULL.
    pub rows: Vec<Vec<Option<&'static str>>>,
}

impl Answer {
    /// A result of one column.
    pub fn column(name: &'static str, values: &[&'static str]) -> Answer {
        Answer { columns: vec![name], rows: values.iter().map(|value| vec![Some(*value)]).collect() }
    }

    /// A result of one row.
    pub fn row(fields: &[(&'static str, Option<&'static str>)]) -> Answer {
        let (columns, row) = fields.iter().copied().unzip();
        Answer { columns, rows: vec![row] }
    }
}
