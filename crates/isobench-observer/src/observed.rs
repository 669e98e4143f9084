//! The results of an observation, as plain data.
//!
//! Not here: how they are read, and how they are compared with our own counts (`compare`).

use std::collections::BTreeMap;

use crate::compare::{CountComparison, OwnCounts, ServerCounts, compare};
use crate::counters::Counter;

/// The observations of the server around one measured part, which may consist of slices, as the
/// parts of several cells that take turns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Time of each sample, in seconds of measured time: from [`begin`](crate::Observer::begin), without
    /// the time between slices.
    pub at_s: Vec<f64>,
    /// Activity of the clients' sessions, one row for each state or wait event seen, the most
    /// frequent first.
    pub waits: Vec<WaitRow>,
    /// Predicate locks; `None` if the server has none or doesn't show them.
    pub predicate_locks: Option<PredicateLocks>,
    /// Locks waited for, summed over the samples of `lock_samples`, the most frequent first.
    pub lock_waits: Vec<LockWait>,
    /// Number of samples of the locks.
    pub lock_samples: u64,
    /// Increases of the server's counters between [`begin`](crate::Observer::begin) and
    /// [`end`](crate::Observer::end), summed over the slices. PostgreSQL's sessions report at most
    /// once a second, so both readings lag by up to a second.
    pub counters: Vec<Counter>,
    /// The same from [`before_sessions`](crate::Observer::before_sessions) to
    /// [`after_sessions`](crate::Observer::after_sessions), summed over the windows of parts that take
    /// turns: exact, with connecting and warm-up.
    pub whole: Vec<Counter>,
    /// The use of each table from [`before_sessions`](crate::Observer::before_sessions) to
    /// [`after_sessions`](crate::Observer::after_sessions), the most scanned first.
    pub tables: Vec<TableUse>,
    /// CPU and memory of the server's processes; `None` if they don't run on this machine.
    pub processes: Option<ServerProcesses>,
    /// Duration of the samples in the measured part as seen from here, without the network's round
    /// trip, in seconds.
    pub sampling_s: f64,
    /// Sentences about what couldn't be read, with the reason.
    pub notes: Vec<String>,
    /// The facts for the comparison.
    pub(crate) counts: Option<ServerCounts>,
}

/// A sampled activity of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitRow {
    /// The type of the wait event (PostgreSQL: `wait_event_type`), "CPU" for sessions that work
    /// without waiting, "idle" for sessions without a transaction.
    pub kind: String,
    /// The wait event (PostgreSQL: `wait_event`); empty for "CPU" and "idle".
    pub event: String,
    /// Number of sessions in each sample.
    pub sessions: Vec<u32>,
}

/// Predicate locks held (`SIReadLock` in `pg_locks`): their number at each granularity, sampled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PredicateLocks {
    /// Time of each sample, in seconds from the start of the measured part.
    pub at_s: Vec<f64>,
    /// Locks on tuples.
    pub tuple: Vec<u64>,
    /// Locks on pages.
    pub page: Vec<u64>,
    /// Locks on relations.
    pub relation: Vec<u64>,
    /// The locks by the table or index that they are in, the most locks first.
    pub relations: Vec<LockedRelation>,
    /// Number of tables and indexes that had locks, too, and aren't in `relations`.
    pub other_relations: u64,
}

/// A table or an index with predicate locks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LockedRelation {
    /// Its name.
    pub name: String,
    /// The table of an index; `None` for a table.
    pub table: Option<String>,
    /// Rows of the table, as the server estimates them; `None` if it was never analyzed.
    pub rows: Option<u64>,
    /// The size of the table or index in pages, right after the measured part.
    pub pages: Option<u64>,
    /// What the indexes of a table are on, such as "(customer, day)".
    pub indexes: Vec<String>,
    /// Locks on its tuples.
    pub tuple: LocksSeen,
    /// Locks on its pages.
    pub page: LocksSeen,
    /// Locks on the whole of it.
    pub relation: LocksSeen,
}

/// The predicate locks of one granularity in a relation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LocksSeen {
    /// The most that any sample found.
    pub most: u64,
    /// The share of the samples that found any, from 0 to 1.
    pub share: f64,
}

/// The use of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableUse {
    /// Its name.
    pub table: String,
    /// Sequential scans begun.
    pub seq_scans: u64,
    /// Rows read by them.
    pub seq_rows: u64,
    /// Scans of its indexes begun.
    pub index_scans: u64,
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated.
    pub updated: u64,
    /// Rows updated without new index entries (HOT).
    pub hot_updated: u64,
}

/// Sampled waits for a kind of lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockWait {
    /// The kind of object (PostgreSQL: `pg_locks.locktype`).
    pub locktype: String,
    /// The mode requested.
    pub mode: String,
    /// The table, if the lock has one.
    pub table: Option<String>,
    /// Waiting sessions, summed over the samples.
    pub seen: u64,
}

/// CPU and memory of the server's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerProcesses {
    /// User and system time of all of them in the measured part, including those that ended in it,
    /// in seconds.
    pub cpu_s: f64,
    /// Their proportional set size (PSS) right after the measured part, in bytes; of parts that take
    /// turns, with the sessions of all of them. `None` if it may not be read.
    pub memory_bytes: Option<u64>,
}

/// One sample of the clients' sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Seconds of measured time; `None` outside slices.
    pub at_s: Option<f64>,
    /// Sessions by activity.
    pub sessions: SessionCounts,
}

/// Number of sessions by kind and event as in [`WaitRow`].
pub type SessionCounts = BTreeMap<(String, String), u32>;

impl Observed {
    /// The increase of a counter from before the clients connected until after they had left. 0 if
    /// it didn't rise or is unknown.
    pub fn whole(&self, name: &str) -> f64 {
        change(&self.whole, name)
    }

    /// Compares the server's counts with ours, from before the clients connected until after they
    /// had left. Empty if the server's are unknown.
    pub fn compare(&self, ours: &OwnCounts) -> Vec<CountComparison> {
        self.counts.as_ref().map(|facts| compare(&self.whole, facts, ours)).unwrap_or_default()
    }

    /// The increase of a counter in the measured part. 0 if it didn't rise or is unknown.
    pub fn measured(&self, name: &str) -> f64 {
        change(&self.counters, name)
    }
}

fn change(counters: &[Counter], name: &str) -> f64 {
    counters.iter().find(|counter| counter.name == name).map_or(0.0, |counter| counter.change)
}
