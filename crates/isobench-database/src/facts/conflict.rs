//! The errors of a product that are conflicts, as rows of a table.
//!
//! Not here: the lookup (`conflict.rs`).

use isobench_pgwire::SqlState;

/// An error that is a conflict. The first row that matches wins.
#[derive(Debug, Clone, Copy)]
pub struct ConflictRule {
    /// The error code.
    pub code: SqlState,
    /// Text that message or detail must contain, ignoring case; empty: any text.
    pub contains: &'static str,
    /// The name of the conflict.
    pub reason: Reason,
}

/// The way to find the reason of a conflict.
#[derive(Debug, Clone, Copy)]
pub enum Reason {
    /// A fixed text.
    Named(&'static str),
    /// This text, a colon and PostgreSQL's `Reason code:` from the detail, without its numbers.
    WithReasonCode(&'static str),
    /// The first word of the message that starts with this, for example `ABORT_REASON_`. If a dash
    /// follows, also a colon and the text after it, up to the first key or number.
    Word(&'static str),
}

/// Shorthand for a row.
pub(crate) const fn rule(code: SqlState, contains: &'static str, reason: Reason) -> ConflictRule {
    ConflictRule { code, contains, reason }
}

/// The rows for an unknown server: the codes of the standard and of PostgreSQL.
pub(crate) static GENERIC: [ConflictRule; 2] = [
    rule(SqlState::SERIALIZATION_FAILURE, "", Reason::Named("serialization failure")),
    rule(SqlState::DEADLOCK_DETECTED, "", Reason::Named("deadlock")),
];
