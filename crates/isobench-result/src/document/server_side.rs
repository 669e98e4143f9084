//! The server during a round, by its own statistics: waits, locks, counters, processes.
//!
//! Not here: how it is read (`isobench_observer`), and what the clients counted (`round`).

use serde::{Deserialize, Serialize};

/// The server's side of a round. Whatever the server doesn't show, or doesn't let the role see, is
/// empty and has a note.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerSide {
    /// The time of each sample, in seconds from the start of the measured part.
    pub at_s: Vec<f64>,
    /// The sessions of the clients, one row for each state or wait event that was seen, most
    /// frequent first.
    pub waits: Vec<WaitRow>,
    /// Predicate locks (`SIReadLock` in `pg_locks`), sampled less often. Null if the server has
    /// none or doesn't show them.
    pub predicate_locks: Option<PredicateLocks>,
    /// Locks that were waited for, by type and mode, added up over the samples, most frequent
    /// first.
    pub lock_waits: Vec<LockWait>,
    /// The use of each table of the workload, from before the clients connected to after they left,
    /// warm-up included: the most scanned first.
    pub tables: Vec<TableUse>,
    /// Counters of the server, by how much they rose from just before to just after the measured
    /// part.
    pub counters: Vec<Counter>,
    /// The server's counts beside our own.
    pub comparison: Vec<CountComparison>,
    /// CPU and memory of the server's processes; null if they don't run on this machine.
    pub processes: Option<ServerProcesses>,
    /// Time that the samples took on the server, as seen from the client, in seconds.
    pub sampling_s: f64,
    /// The statistics that couldn't be read, and why, a sentence each.
    pub notes: Vec<String>,
}

/// The sessions in one state or wait event, sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WaitRow {
    /// The type of the wait event (PostgreSQL: `wait_event_type`, for example Lock, `LWLock`, IO,
    /// Client); "CPU" for sessions that work and don't wait; "idle" for sessions without a
    /// statement.
    pub kind: String,
    /// The wait event (PostgreSQL: `wait_event`, for example tuple,
    /// `SerializableFinishedListLock`); empty for "CPU".
    pub event: String,
    /// Number of sessions in each sample, one for each time in `at_s`.
    pub sessions: Vec<u32>,
}

/// Predicate locks held, sampled: how many at each granularity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PredicateLocks {
    /// The time of each sample, in seconds from the start of the measured part.
    pub at_s: Vec<f64>,
    /// Locks on tuples.
    pub tuple: Vec<u64>,
    /// Locks on pages: promoted from tuples (`max_pred_locks_per_page`), or taken by an index scan.
    pub page: Vec<u64>,
    /// Locks on relations: promoted from pages (`max_pred_locks_per_relation`), or taken by a
    /// sequential scan.
    pub relation: Vec<u64>,
    /// The same locks by the table or index that they are in, the most locks first.
    pub relations: Vec<LockedRelation>,
    /// Number of tables and indexes that had locks, too, and aren't in `relations`.
    pub other_relations: u64,
}

/// A table or an index with predicate locks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LockedRelation {
    /// Its name.
    pub name: String,
    /// The table of an index; null for a table.
    pub table: Option<String>,
    /// Rows of the table, as the server estimates them; null if it was never analyzed.
    pub rows: Option<u64>,
    /// The size of the table or index in pages, right after the measured part; null if it is
    /// unknown.
    pub pages: Option<u64>,
    /// What the indexes of a table are on, such as "(customer, day)"; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// Locks on its tuples.
    pub tuple: LocksSeen,
    /// Locks on its pages.
    pub page: LocksSeen,
    /// Locks on the whole of it.
    pub relation: LocksSeen,
}

/// The predicate locks of one granularity in a table or an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LocksSeen {
    /// The most that any sample found.
    pub most: u64,
    /// The share of the samples that found any, from 0 to 1.
    pub share: f64,
}

/// The use of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
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

/// Locks that sessions waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LockWait {
    /// The kind of object (PostgreSQL: `pg_locks.locktype`, for example transactionid, tuple).
    pub locktype: String,
    /// The mode asked for.
    pub mode: String,
    /// The table, where the lock names one.
    pub table: Option<String>,
    /// Waiting sessions, added up over the samples.
    pub seen: u64,
}

/// A counter of the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Counter {
    /// The view and the column, for example "`pg_stat_wal.wal_bytes`".
    pub name: String,
    /// Its meaning, with its unit.
    pub meaning: String,
    /// By how much it rose.
    pub change: f64,
}

/// A count of the server beside our own, from before the clients connected to after they left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CountComparison {
    /// The things counted, for example "commits".
    pub what: String,
    /// Our count, warm-up and our own sessions included.
    pub ours: u64,
    /// The server's count.
    pub servers: u64,
    /// True if the two agree, or differ by what is explained.
    pub agrees: bool,
    /// The reason why they may differ; empty if they are equal.
    pub explanation: String,
}

/// CPU and memory of the server's processes during the measured part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerProcesses {
    /// User and system time of all of them, in seconds.
    pub cpu_s: f64,
    /// Memory that is theirs alone or their share of what they share (PSS), at the end, in bytes;
    /// null if it can't be read.
    pub memory_bytes: Option<u64>,
}

/// A granularity of predicate locks: its name and its counts.
pub type Granularity = (&'static str, fn(&PredicateLocks) -> &[u64]);

impl PredicateLocks {
    /// The granularities, the finest first.
    pub const GRANULARITIES: [Granularity; 3] = [
        ("tuple", |locks| &locks.tuple),
        ("page", |locks| &locks.page),
        ("relation", |locks| &locks.relation),
    ];
}

impl ServerSide {
    /// The most predicate locks that any sample found, of all granularities together; `None` if
    /// none was looked for.
    pub fn most_predicate_locks(&self) -> Option<u64> {
        let locks = self.predicate_locks.as_ref()?;
        let all = |index| {
            let counts = PredicateLocks::GRANULARITIES.map(|(_, counts)| counts(locks).get(index).copied());
            counts.into_iter().flatten().fold(0, u64::saturating_add)
        };
        (0..locks.at_s.len()).map(all).max()
    }
}
