//! Observation of each transaction that ends, on the worker's thread, in the detail that pgbench's
//! logs need.

use crate::time::Nanos;

/// An observer of all transactions of one worker's clients. It is called on the worker's thread and
/// must not block for long.
pub trait TransactionObserver: Send {
    /// Called when a transaction has ended.
    fn ended(&mut self, transaction: &EndedTransaction);
}

/// A transaction that has ended, other than with its client or with the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedTransaction {
    /// The client, from 0.
    pub client: usize,
    /// The number among the client's transactions, from 1, skipped ones included.
    pub number: u64,
    /// The script, from 0.
    pub script: usize,
    /// Its end.
    pub end: TransactionEnd,
    /// Number of attempts; 0 if it was skipped.
    pub tries: u32,
    /// Time from its scheduled start (unpaced: the start of the first attempt) to its end,
    /// including all attempts and backoff, ns.
    pub latency: u64,
    /// Delay of the first attempt behind the scheduled start, ns; 0 in an unpaced run.
    pub lag: u64,
    /// When it ended.
    pub at: Nanos,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    /// It committed.
    Committed,
    /// It committed, but its work was lost in an error that the script's own SQL caught. pgbench
    /// counts it as processed.
    Swallowed,
    /// Its own script rolled it back. pgbench counts it as processed.
    RolledBack,
    /// It was given up after a deadlock.
    Deadlock,
    /// It was given up after another conflict.
    Serialization,
    /// It was abandoned after another error, or its outcome is unknown.
    OtherError,
    /// It was skipped because it was too late.
    Skipped,
}
