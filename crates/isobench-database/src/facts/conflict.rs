//! Which errors of a server are conflicts, as rows of a product's table.
//!
//! Not here: what the rows are looked up for (`conflict.rs`).

use isobench_pgwire::SqlState;

/// One row: an error that is a conflict. The first row that matches wins.
#[derive(Debug, Clone, Copy)]
pub struct ConflictRule {
    /// The error code that must be there.
    pub code: SqlState,
    /// A part of message or detail that must be there, in any case of letters; empty: any text.
    pub contains: &'static str,
    /// How the conflict is named.
    pub reason: Reason,
}

/// How the reason of a conflict is found.
#[derive(Debug, Clone, Copy)]
pub enum Reason {
    /// Always this text.
    Named(&'static str),
    /// This text, a colon and PostgreSQL's `Reason code:` from the detail, without its numbers.
    WithReasonCode(&'static str),
    /// The first word of the message that begins like this, for example `ABORT_REASON_`; if a dash
    /// follows, a colon and what comes then, up to the first key or number.
    Word(&'static str),
}

/// Shorthand for a row of a product's table.
pub(crate) const fn rule(code: SqlState, contains: &'static str, reason: Reason) -> ConflictRule {
    ConflictRule { code, contains, reason }
}

/// The rows for a server about which nothing else is known: the standard's and PostgreSQL's codes.
pub(crate) static GENERIC: [ConflictRule; 2] = [
    rule(SqlState::SERIALIZATION_FAILURE, "", Reason::Named("serialization failure")),
    rule(SqlState::DEADLOCK_DETECTED, "", Reason::Named("deadlock")),
];
