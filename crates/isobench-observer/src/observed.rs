//! What an observer has seen: plain data.
//!
//! Not here: how it is read, and how it is compared with our own counts (`compare`).

use std::collections::BTreeMap;

use crate::compare::{CountComparison, OwnCounts, ServerCounts, compare};
use crate::counters::Counter;

/// What was seen of the server around one measured part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// When each sample was taken, in seconds from [`begin`](crate::Observer::begin).
    pub at_s: Vec<f64>,
    /// What the clients' sessions were doing, one row for each state or wait event that was seen,
    /// most frequent first.
    pub waits: Vec<WaitRow>,
    /// Predicate locks; `None` if the server has none or doesn't show them.
    pub predicate_locks: Option<PredicateLocks>,
    /// Locks that were waited for, added up over the samples of `lock_samples`, most frequent
    /// first.
    pub lock_waits: Vec<LockWait>,
    /// How many times the locks were sampled.
    pub lock_samples: u64,
    /// The server's counters, by how much they rose between [`begin`](crate::Observer::begin) and
    /// [`end`](crate::Observer::end). PostgreSQL's sessions report at most once a second, so both
    /// ends lag up to a second behind.
    pub counters: Vec<Counter>,
    /// The same from [`before_sessions`](crate::Observer::before_sessions) to
    /// [`after_sessions`](crate::Observer::after_sessions): exact, with connecting and warm-up.
    pub whole: Vec<Counter>,
    /// CPU and memory of the server's processes; `None` if they don't run on this machine.
    pub processes: Option<ServerProcesses>,
    /// How long the samples took in the measured part as seen from here, without the way there and
    /// back, in seconds.
    pub sampling_s: f64,
    /// What couldn't be read and why, a sentence each.
    pub notes: Vec<String>,
    /// What the comparison needs.
    pub(crate) counts: Option<ServerCounts>,
}

/// What sessions were doing, sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitRow {
    /// The type of the wait event (PostgreSQL: `wait_event_type`), "CPU" for sessions that work and
    /// don't wait, "idle" for sessions without a transaction.
    pub kind: String,
    /// The wait event (PostgreSQL: `wait_event`); empty for "CPU" and "idle".
    pub event: String,
    /// Number of sessions in each sample.
    pub sessions: Vec<u32>,
}

/// Predicate locks held (`SIReadLock` in `pg_locks`), sampled: how many at each granularity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PredicateLocks {
    /// When each sample was taken, in seconds from the begin of the measured part.
    pub at_s: Vec<f64>,
    /// Locks on tuples.
    pub tuple: Vec<u64>,
    /// Locks on pages.
    pub page: Vec<u64>,
    /// Locks on relations.
    pub relation: Vec<u64>,
}

/// Locks that sessions waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockWait {
    /// The kind of object (PostgreSQL: `pg_locks.locktype`).
    pub locktype: String,
    /// The mode asked for.
    pub mode: String,
    /// The table, where the lock names one.
    pub table: Option<String>,
    /// Waiting sessions, added up over the samples.
    pub seen: u64,
}

/// CPU and memory of the server's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerProcesses {
    /// User and system time of all of them in the measured part, those that ended in it included,
    /// in seconds.
    pub cpu_s: f64,
    /// Their proportional set size (PSS) right after the measured part, in bytes; `None` if it may
    /// not be read.
    pub memory_bytes: Option<u64>,
}

/// One look at the clients' sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Seconds from the begin of the measured part; `None` before it.
    pub at_s: Option<f64>,
    /// Sessions by what they do.
    pub sessions: Sessions,
}

/// Number of sessions by kind and event, as [`WaitRow`] names them.
pub type Sessions = BTreeMap<(String, String), u32>;

impl Observed {
    /// By how much a counter rose from before the clients connected to after they had left. 0 if it
    /// didn't rise or is unknown.
    pub fn whole(&self, name: &str) -> f64 {
        change(&self.whole, name)
    }

    /// Compares the server's counts with ours, from before the clients connected to after they had
    /// left. Empty if the server's aren't known.
    pub fn compare(&self, ours: &OwnCounts) -> Vec<CountComparison> {
        self.counts.as_ref().map(|facts| compare(&self.whole, facts, ours)).unwrap_or_default()
    }

    /// By how much a counter rose in the measured part. 0 if it didn't rise or is unknown.
    pub fn measured(&self, name: &str) -> f64 {
        change(&self.counters, name)
    }
}

fn change(counters: &[Counter], name: &str) -> f64 {
    counters.iter().find(|counter| counter.name == name).map_or(0.0, |counter| counter.change)
}
