//! `YugabyteDB`. Facts from its documentation.

use std::time::Duration;

use isobench_pgwire::SqlState;

use crate::facts::abilities::{
    Abilities, Ability, NO_WAITING, NO_WRITERS, OWN_DURABILITY, SAVEPOINTS_KEEP_THE_SNAPSHOT,
};
use crate::facts::conflict::{ConflictRule, Reason, rule};
use crate::facts::dialect::{Dialect, Empty, Load, PrimaryKey};
use crate::facts::level::{EffectiveLevelQuery, SetLevel};
use crate::facts::namespace::NamespaceFacts;
use crate::facts::object::{ObjectMark, PG_OBJECTS};
use crate::facts::promises::SNAPSHOT_ISOLATION;
use crate::facts::settings::SettingsSource;
use crate::facts::waiting::WaitView;
use crate::product::{Product, Recognition};

/// `YugabyteDB`.
///
/// Read committed is snapshot isolation unless `yb_enable_read_committed_isolation` is on, and
/// `SHOW` doesn't report that. Versions without the function used here are
/// [`isobench_isolation::EffectiveLevel::Unknown`]. SET TRANSACTION after BEGIN fails; the
/// session's default works.
pub static YUGABYTEDB: Product = Product {
    name: "YugabyteDB",
    system_name: "yugabytedb",
    recognition: Recognition { contains: "-YB-", lacks: &[], version_after: "-YB-", confirmed_by: None },
    set_level: SetLevel::DefaultTransactionIsolation,
    effective_level: EffectiveLevelQuery {
        steps: &["BEGIN", "SELECT yb_get_effective_transaction_isolation_level()", "COMMIT"],
        answer: 1,
    },
    promises: SNAPSHOT_ISOLATION,
    session_name: Some("SELECT pg_catalog.pg_backend_pid()"),
    waits: WaitView::Time,
    conflicts: &CONFLICTS,
    impossible: &[],
    objects: &[ObjectMark::DocKey, PG_OBJECTS[0], PG_OBJECTS[1]],
    relations: None,
    dialect: Dialect {
        primary_key: PrimaryKey::InCreateTable,
        fillfactor: false,
        unlogged: false,
        storage: false,
        empty: Empty::Truncate,
        load: Load::CopyBatches(10_000),
        integer_division: "/",
        series_batch: Some(10_000),
        vacuum: None,
        analyze: Some("analyze"),
        checkpoint: false,
        no_parallel_workers: None,
        foreign_key_index: false,
        retries: 20,
        // Loading takes minutes. Old versions of rows are in the same log-structured storage,
        // however rows are renewed.
        put_back_after: Some(Duration::ZERO),
    },
    abilities: Abilities {
        catches_conflicts: Ability::Has,
        procedures_end_transactions: Ability::Has,
        modifying_ctes: Ability::Has,
        advisory_locks: Ability::Since((2, 25), "its advisory locks came with version 2.25.1 (issue 3642)"),
        restart_savepoint: SAVEPOINTS_KEEP_THE_SNAPSHOT,
        shows_writers: NO_WRITERS,
        synchronous_commit: OWN_DURABILITY,
        waits_for_lsn: NO_WAITING,
    },
    // DDL commits by itself.
    namespace: NamespaceFacts { reports_cascade: false, ..NamespaceFacts::SCHEMA },
    settings: SettingsSource::PgSettings,
};

/// Before version 1.2.1 the same texts have the code XX000.
static CONFLICTS: [ConflictRule; 14] = [
    rule(SqlState::SERIALIZATION_FAILURE, RESTART, Reason::Named(RESTART)),
    rule(SqlState::SERIALIZATION_FAILURE, PRIORITY, Reason::Named(PRIORITY)),
    rule(SqlState::SERIALIZATION_FAILURE, "expired or aborted", Reason::Named(ABORTED)),
    rule(
        SqlState::SERIALIZATION_FAILURE,
        "read/write dependencies",
        Reason::WithReasonCode("read/write dependencies"),
    ),
    rule(SqlState::SERIALIZATION_FAILURE, "value write after transaction start", Reason::Named(COMMITTED)),
    rule(SqlState::SERIALIZATION_FAILURE, UPDATE, Reason::Named(UPDATE)),
    rule(SqlState::SERIALIZATION_FAILURE, DELETE, Reason::Named(DELETE)),
    rule(SqlState::SERIALIZATION_FAILURE, "", Reason::Named("serialization failure")),
    rule(SqlState::DEADLOCK_DETECTED, "", Reason::Named("deadlock")),
    rule(SqlState::INTERNAL_ERROR, RESTART, Reason::Named(RESTART)),
    rule(SqlState::INTERNAL_ERROR, PRIORITY, Reason::Named(PRIORITY)),
    rule(SqlState::INTERNAL_ERROR, "expired or aborted", Reason::Named(ABORTED)),
    rule(
        SqlState::INTERNAL_ERROR,
        "could not serialize access due to concurrent update",
        Reason::Named(UPDATE),
    ),
    rule(SqlState::INTERNAL_ERROR, "deadlock detected", Reason::Named("deadlock")),
];

const RESTART: &str = "restart read required";
const PRIORITY: &str = "conflicts with higher priority transaction";
const ABORTED: &str = "expired or aborted by a conflict";
const COMMITTED: &str = "conflict with committed data";
const UPDATE: &str = "concurrent update";
const DELETE: &str = "concurrent delete";
