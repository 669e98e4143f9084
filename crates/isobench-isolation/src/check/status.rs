//! The commit status of transactions.

use crate::history::{Transaction, TransactionOutcome};

/// The commit status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitStatus {
    /// Acknowledged, or proved by the history.
    Committed,
    /// Aborted; its writes must not be seen.
    Aborted,
    /// Unknown; left out.
    Unsure,
}

/// The status as the server reported it.
pub(super) fn reported(transaction: &Transaction) -> CommitStatus {
    match transaction.outcome {
        TransactionOutcome::Committed => CommitStatus::Committed,
        TransactionOutcome::Aborted => CommitStatus::Aborted,
        TransactionOutcome::Unknown => CommitStatus::Unsure,
    }
}
