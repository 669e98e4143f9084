//! The kinds of SQL statements, and their effects on savepoints.

/// The kind of a statement, determined by its leading keywords, as far as a client needs to know
/// it.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Statement {
    /// `BEGIN`, `START TRANSACTION`: opens a transaction block.
    Begin,
    /// `COMMIT`, `END`, `PREPARE TRANSACTION`: ends a block and keeps its work.
    Commit,
    /// `ROLLBACK`, `ABORT`, but not `ROLLBACK TO` or `ROLLBACK PREPARED`: ends a block and discards
    /// its work.
    Rollback,
    /// `RELEASE [SAVEPOINT]`.
    Release,
    /// `COPY`: may switch the connection to copy mode, which pgbench refuses.
    Copy,
    /// `SET TRANSACTION`: sets the modes of the transaction that it is in.
    Modes,
    /// Anything else.
    Other,
}

/// The effect of a statement on a savepoint. The name is in the form that SQL compares: quoted, or
/// in lower case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Savepoint {
    /// `SAVEPOINT name`.
    Set(String),
    /// `RELEASE [SAVEPOINT] name`.
    Release(String),
}
