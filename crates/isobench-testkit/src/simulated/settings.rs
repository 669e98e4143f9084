//! What a test asks of the simulated server.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::faults::Faults;

/// The settings of a simulation. The default answers every statement after exactly one millisecond,
/// without faults.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// How long a statement takes, in nanoseconds; drawn for each. Other messages take no time.
    pub latency: RangeInclusive<u64>,
    /// How long it takes to open a session, which nothing but the opener waits for.
    pub connecting: Duration,
    /// How long it takes to receive, if anything has arrived, which nothing but the receiver waits
    /// for.
    pub receiving: Duration,
    /// RELEASE commits what the block has done so far, as in CockroachDB's retry protocol.
    pub release_commits: bool,
    /// What goes wrong.
    pub faults: Faults,
    /// The results of SELECT, and of INSERT and UPDATE with RETURNING: the first entry whose text
    /// occurs in the statement answers it. Without a match the result is one row with the column
    /// `v` and the value 1.
    pub answers: Vec<(&'static str, Answer)>,
    /// The longest piece in which a reply arrives, in bytes, drawn for each piece from 1 up; pieces
    /// come 10 µs apart. `None`: replies arrive whole.
    pub pieces: Option<usize>,
    /// The most bytes a connection takes at once, drawn for each send from 0 up; it takes more 10
    /// µs later. `None`: all.
    pub short_writes: Option<usize>,
    /// The simulation fails when it gets here: whatever runs on it hangs.
    pub time_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
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
