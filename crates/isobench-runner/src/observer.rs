//! What a watcher on the worker's thread hears of each transaction that ends: enough for pgbench's
//! logs.

use crate::time::Nanos;

/// Hears of the end of every transaction of one worker's clients, on the worker's thread; it must
/// not block for long.
pub trait TransactionObserver: Send {
    /// A transaction has ended.
    fn ended(&mut self, transaction: &EndedTransaction);
}

/// A transaction that has ended, other than by the end of its client or of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedTransaction {
    /// The client, from 0.
    pub client: usize,
    /// Which of the client's transactions it is, from 1, skipped ones included.
    pub number: u64,
    /// The script, from 0.
    pub script: usize,
    /// How it ended.
    pub end: TransactionEnd,
    /// Attempts; 0 if it was skipped.
    pub tries: u32,
    /// From its scheduled start (unpaced: the begin of the first attempt) to its end, all attempts
    /// and backoff included, ns.
    pub latency: u64,
    /// How far behind its scheduled start the first attempt began, ns; 0 in an unpaced run.
    pub lag: u64,
    /// When it ended.
    pub at: Nanos,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    /// It committed.
    Committed,
    /// It committed, and its work was lost in an error that the script's own SQL caught. To pgbench
    /// it is processed.
    Swallowed,
    /// It was given up after a deadlock.
    Deadlock,
    /// It was given up after another conflict.
    Serialization,
    /// It was abandoned after another error, or its outcome is unknown.
    OtherError,
    /// It was too late to begin.
    Skipped,
}
