//! The ways of products to set a session's isolation level, and to report the level that runs.
//!
//! Not here: setting and reading it (`level.rs`).

/// The way to set the level of all later transactions of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetLevel {
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL …`, the standard's way.
    SessionCharacteristics,
    /// `SET default_transaction_isolation = '…'`.
    DefaultTransactionIsolation,
    /// None: the server has one level, and refuses to set it.
    Fixed,
}

/// The commands that read the effective level, to be sent one after the other in a session. One of
/// them returns the level in the first column of its first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveLevelQuery {
    /// The commands. They start and end a transaction block, because the answer outside a block
    /// could be another one.
    pub steps: &'static [&'static str],
    /// The index in `steps` of the command that returns the level.
    pub answer: usize,
}

/// PostgreSQL's way, which most products share.
pub(crate) const SHOW: EffectiveLevelQuery =
    EffectiveLevelQuery { steps: &["BEGIN", "SHOW transaction_isolation", "COMMIT"], answer: 1 };
