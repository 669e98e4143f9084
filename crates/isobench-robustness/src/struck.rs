//! What could not be shown, and is left out when levels are decided again.

use std::collections::BTreeSet;

use crate::StatementId;

/// Statements by [`crate::Operation::at`] of which it was tried in vain to show that a transaction is split by
/// them. Objections that consist of them are left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Strike {
    /// The read after which a transaction is split.
    pub read: StatementId,
    /// The write within that changes what was read.
    pub overwritten_by: StatementId,
    /// The statement within on which the transaction that is split depends.
    pub by: StatementId,
    /// The statement by which it does.
    pub back: StatementId,
    /// True if the one that is split has one snapshot, as at repeatable read; what can't be shown there
    /// may well be at read committed.
    pub snapshot: bool,
}

/// All that was struck.
pub type Struck = BTreeSet<Strike>;
