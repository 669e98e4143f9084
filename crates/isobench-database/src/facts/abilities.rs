//! The features of a product for applications that handle conflicts by more than repeating
//! transactions.
//!
//! Not here: the features that each strategy needs (`isobench-workloads`).

/// The features of a product, each with the reason if it is missing.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    /// PL/pgSQL functions can catch the errors that are conflicts.
    pub catches_conflicts: Ability,
    /// PL/pgSQL procedures can end their transaction and continue in a new one.
    pub procedures_end_transactions: Ability,
    /// WITH may contain INSERT, UPDATE and DELETE.
    pub modifying_ctes: Ability,
    /// Sessions can lock numbers.
    pub advisory_locks: Ability,
    /// After a conflict, ROLLBACK TO SAVEPOINT allows another attempt in the same block.
    pub restart_savepoint: Ability,
    /// Every row has the number of the transaction that wrote it in a column `xmin`, of which the next
    /// one is known.
    pub shows_writers: Ability,
    /// `synchronous_commit` and `synchronous_standby_names` decide which commits survive what, as
    /// PostgreSQL's manual says ([`crate::SynchronousCommit`]).
    pub synchronous_commit: Ability,
    /// `WAIT FOR LSN` on a standby waits until it has replayed the log up to there.
    pub waits_for_lsn: Ability,
}

/// The availability of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Available.
    Has,
    /// Available since this version, major and minor; with a clause about earlier ones.
    Since((u32, u32), &'static str),
    /// Missing, or unknown to isobench; with the reason as a clause.
    Lacks(&'static str),
}

/// Savepoints as in the standard. PostgreSQL: "Serialization Failure Handling": "the whole
/// transaction must be retried".
pub(crate) const SAVEPOINTS_KEEP_THE_SNAPSHOT: Ability = Ability::Lacks(
    "ROLLBACK TO SAVEPOINT keeps the snapshot that led to the conflict, so a repetition would meet \
     the same conflict for ever; the \
     whole transaction has to be repeated",
);

/// Rows without the number of their writer.
pub(crate) const NO_WRITERS: Ability = Ability::Lacks("its rows don't show which transaction wrote them");

/// Another way to keep commits than PostgreSQL's.
pub(crate) const OWN_DURABILITY: Ability =
    Ability::Lacks("isobench doesn't know which commits it promises to keep when something happens to it");

/// No way to wait for a position of the log.
pub(crate) const NO_WAITING: Ability = Ability::Lacks("isobench knows WAIT FOR LSN of PostgreSQL alone");

/// The features of the standard, and no others.
pub(crate) const NOTHING_KNOWN: Abilities = Abilities {
    catches_conflicts: Ability::Lacks("isobench doesn't know whether it has PL/pgSQL"),
    procedures_end_transactions: Ability::Lacks("isobench doesn't know whether it has PL/pgSQL procedures"),
    modifying_ctes: Ability::Lacks("isobench doesn't know whether UPDATE can stand in WITH there"),
    advisory_locks: Ability::Lacks("isobench doesn't know whether it has advisory locks"),
    restart_savepoint: Ability::Lacks("isobench doesn't know whether it repeats from a savepoint"),
    shows_writers: NO_WRITERS,
    synchronous_commit: OWN_DURABILITY,
    waits_for_lsn: NO_WAITING,
};
