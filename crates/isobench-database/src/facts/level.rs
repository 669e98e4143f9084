//! How a product is told the isolation level of a session, and how it is asked which one it runs.
//!
//! Not here: the telling and asking (`level.rs`).

/// How the level of all later transactions of a session is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetLevel {
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL …`, the standard's way.
    SessionCharacteristics,
    /// `SET default_transaction_isolation = '…'`.
    DefaultTransactionIsolation,
}

/// How the level that really runs is read: commands to send one after the other in a session, and
/// which of them answers with the level in the first column of its first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveLevelQuery {
    /// The commands; they begin and end their own transaction block, for outside a block the answer
    /// could be another one.
    pub steps: &'static [&'static str],
    /// The index in `steps` of the command that answers.
    pub answer: usize,
}

/// PostgreSQL's way, which most products share.
pub(crate) const SHOW: EffectiveLevelQuery =
    EffectiveLevelQuery { steps: &["BEGIN", "SHOW transaction_isolation", "COMMIT"], answer: 1 };
