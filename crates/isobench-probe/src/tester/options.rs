//! The time limits of a run, the clock by which they are measured, and whether there is a standby.

use std::time::{Duration, Instant};

use crate::anomalies::Tests;
use crate::tables::Tables;

/// Time limits, and what there is.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The time limit for a step. Then it is cancelled, and after the same time again its session
    /// is closed. The isolation tester's limit is 360 s.
    pub step_timeout: Duration,
    /// The time without a reply after which a step is taken to be waiting, if there is no view of
    /// waiting sessions.
    pub waits_after: Duration,
    /// The clock by which steps are timed: [`Instant::now`], except in tests.
    pub now: fn() -> Instant,
    /// Sessions whose names begin with `standby` are opened on a standby.
    pub standby: bool,
    /// The interleavings, if those of a table are run.
    pub tests: Tests,
    /// The kind of tables that these make.
    pub tables: Tables,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            step_timeout: Duration::from_secs(30),
            waits_after: Duration::from_millis(300),
            now: Instant::now,
            standby: false,
            tests: Tests::default(),
            tables: Tables::default(),
        }
    }
}

impl Options {
    /// The time since a moment, by the clock of these options.
    pub(super) fn elapsed(&self, since: Instant) -> Duration {
        (self.now)().duration_since(since)
    }
}
