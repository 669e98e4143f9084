//! `CockroachDB`. Facts recorded from v20.1.5, quoted from v23.2, or from its documentation.

use std::time::Duration;

use isobench_pgwire::SqlState;

use crate::facts::abilities::{Abilities, Ability, NO_WAITING, NO_WRITERS, OWN_DURABILITY};
use crate::facts::conflict::{ConflictRule, Reason, rule};
use crate::facts::dialect::{Dialect, Empty, Load, PrimaryKey};
use crate::facts::level::{SHOW, SetLevel};
use crate::facts::namespace::NamespaceFacts;
use crate::facts::object::ObjectMark;
use crate::facts::promises::SNAPSHOT_ISOLATION_IN_MIXTURES;
use crate::facts::settings::SettingsSource;
use crate::facts::waiting::WaitView;
use crate::product::{Product, Recognition};

/// `CockroachDB`.
///
/// Without the cluster settings below, weaker levels silently become serializable; `SHOW
/// transaction_isolation` reports the level that runs. A failed COMMIT is answered with the tag
/// `ROLLBACK`, and COMMIT itself may fail with 40001.
pub static COCKROACHDB: Product = Product {
    name: "CockroachDB",
    system_name: "cockroachdb",
    recognition: Recognition {
        contains: "CockroachDB",
        lacks: &[],
        version_after: "CockroachDB",
        confirmed_by: None,
    },
    set_level: SetLevel::DefaultTransactionIsolation,
    effective_level: SHOW,
    promises: SNAPSHOT_ISOLATION_IN_MIXTURES,
    session_name: Some("SHOW session_id"),
    waits: WaitView::Time,
    conflicts: &CONFLICTS,
    impossible: &[],
    objects: &[ObjectMark::Key],
    relations: Some(
        "SELECT table_id, name FROM crdb_internal.tables WHERE database_name = current_database()",
    ),
    dialect: Dialect {
        primary_key: PrimaryKey::InCreateTable,
        // Ignored with a NOTICE.
        fillfactor: false,
        unlogged: false,
        storage: false,
        empty: Empty::Truncate,
        load: Load::CopyBatches(10_000),
        // `/` returns a decimal, and then: unsupported binary operator: <decimal> + <int>.
        integer_division: "//",
        series_batch: Some(10_000),
        vacuum: None,
        // ANALYZE is a syntax error in v20.1.
        analyze: Some("create statistics isobench from"),
        checkpoint: false,
        no_parallel_workers: None,
        foreign_key_index: true,
        // One load needed six tries.
        retries: 20,
        // Loading takes minutes. Old versions of rows are in the same log-structured storage,
        // however rows are renewed.
        put_back_after: Some(Duration::ZERO),
    },
    abilities: Abilities {
        catches_conflicts: Ability::Lacks("its PL/pgSQL can't catch a conflict (issue 111446)"),
        procedures_end_transactions: Ability::Since((24, 1), "its procedures end transactions since v24.1"),
        modifying_ctes: Ability::Has,
        // pg_try_advisory_lock returns true without locking, so that migration tools don't fail;
        // v20.1 has no pg_advisory_lock.
        advisory_locks: Ability::Lacks("its advisory lock functions lock nothing, or don't exist"),
        restart_savepoint: Ability::Has,
        shows_writers: NO_WRITERS,
        synchronous_commit: OWN_DURABILITY,
        waits_for_lsn: NO_WAITING,
    },
    // Schemas exist since v20.2, comments on them, which mark one as ours, since v21.2.
    namespace: NamespaceFacts { schema_since: (21, 2), ..NamespaceFacts::DATABASE },
    settings: SettingsSource::Commands(&[
        (
            "sql.txn.read_committed_isolation.enabled",
            "SHOW CLUSTER SETTING sql.txn.read_committed_isolation.enabled",
        ),
        (
            "sql.txn.repeatable_read_isolation.enabled",
            "SHOW CLUSTER SETTING sql.txn.repeatable_read_isolation.enabled",
        ),
    ]),
};

/// Deadlocks are reported as 40001, never as 40P01. 40003 (result is ambiguous) isn't a conflict.
static CONFLICTS: [ConflictRule; 8] = [
    rule(SqlState::SERIALIZATION_FAILURE, "ABORT_REASON_", Reason::Word("ABORT_REASON_")),
    rule(SqlState::SERIALIZATION_FAILURE, "(RETRY_", Reason::Word("RETRY_")),
    rule(SqlState::SERIALIZATION_FAILURE, "WriteTooOldError", Reason::Named("WriteTooOldError")),
    rule(
        SqlState::SERIALIZATION_FAILURE,
        "ReadWithinUncertaintyIntervalError",
        Reason::Named("ReadWithinUncertaintyIntervalError"),
    ),
    rule(
        SqlState::SERIALIZATION_FAILURE,
        "TransactionAbortedError",
        Reason::Named("TransactionAbortedError"),
    ),
    rule(SqlState::SERIALIZATION_FAILURE, "TransactionPushError", Reason::Named("TransactionPushError")),
    rule(SqlState::SERIALIZATION_FAILURE, "", Reason::Named("serialization failure")),
    rule(SqlState::DEADLOCK_DETECTED, "", Reason::Named("deadlock")),
];
