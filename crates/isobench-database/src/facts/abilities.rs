//! What a product can do for applications that cope with conflicts by more than repeating their
//! transactions.
//!
//! Which strategy needs which of them is said where strategies are (`isobench-workloads`).

/// What a product can do, each with the reason if it can't.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    /// PL/pgSQL functions can catch the errors that are conflicts.
    pub catches_conflicts: Ability,
    /// PL/pgSQL procedures can end their transaction and go on in a new one.
    pub procedures_end_transactions: Ability,
    /// INSERT, UPDATE and DELETE can stand in WITH.
    pub modifying_ctes: Ability,
    /// Sessions can lock numbers.
    pub advisory_locks: Ability,
    /// After a conflict, ROLLBACK TO SAVEPOINT makes a new attempt possible within the same block.
    pub restart_savepoint: Ability,
}

/// Whether a product can do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// It can.
    Has,
    /// It can since that version, major and minor; and what is said of earlier ones, as a clause.
    Since((u32, u32), &'static str),
    /// It can't, or isobench doesn't know; the reason as a clause.
    Lacks(&'static str),
}

/// Savepoints as the standard has them. PostgreSQL: "Serialization Failure Handling": "the whole
/// transaction must be retried".
pub(crate) const SAVEPOINTS_KEEP_THE_SNAPSHOT: Ability = Ability::Lacks(
    "ROLLBACK TO SAVEPOINT keeps the snapshot that led to the conflict, so a repetition would meet the same conflict for ever; the \
     whole transaction has to be repeated",
);

/// Nothing that isn't in the standard.
pub(crate) const NOTHING_KNOWN: Abilities = Abilities {
    catches_conflicts: Ability::Lacks("isobench doesn't know whether it has PL/pgSQL"),
    procedures_end_transactions: Ability::Lacks("isobench doesn't know whether it has PL/pgSQL procedures"),
    modifying_ctes: Ability::Lacks("isobench doesn't know whether UPDATE can stand in WITH there"),
    advisory_locks: Ability::Lacks("isobench doesn't know whether it has advisory locks"),
    restart_savepoint: Ability::Lacks("isobench doesn't know whether it repeats from a savepoint"),
};
