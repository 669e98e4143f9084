//! PostgreSQL, the reference for all other products.

use isobench_isolation::Level;
use isobench_pgwire::SqlState;

use crate::facts::abilities::{Abilities, Ability, SAVEPOINTS_KEEP_THE_SNAPSHOT};
use crate::facts::conflict::{ConflictRule, Reason, rule};
use crate::facts::dialect::{Dialect, Empty, Load, PrimaryKey};
use crate::facts::level::{SHOW, SetLevel};
use crate::facts::namespace::NamespaceFacts;
use crate::facts::object::{PG_OBJECTS, PG_RELATIONS};
use crate::facts::promises::SNAPSHOT_ISOLATION;
use crate::facts::settings::SettingsSource;
use crate::facts::waiting::PG_BLOCKING;
use crate::product::{Product, Recognition};

/// PostgreSQL.
pub static POSTGRESQL: Product = Product {
    name: "PostgreSQL",
    system_name: "postgresql",
    recognition: Recognition {
        contains: "PostgreSQL ",
        // They report PostgreSQL's version text, but have neither its storage nor its transactions.
        lacks: &[
            "ArcadeDB",
            "Redshift",
            "RisingWave",
            "Materialize",
            "QuestDB",
            "Greenplum",
            "server protocol",
        ],
        version_after: "PostgreSQL ",
        confirmed_by: None,
    },
    set_level: SetLevel::SessionCharacteristics,
    effective_level: SHOW,
    promises: SNAPSHOT_ISOLATION,
    session_name: Some("SELECT pg_catalog.pg_backend_pid()"),
    waits: PG_BLOCKING,
    conflicts: &CONFLICTS,
    impossible: &IMPOSSIBLE,
    objects: &PG_OBJECTS,
    relations: Some(PG_RELATIONS),
    dialect: Dialect {
        primary_key: PrimaryKey::AddedLater,
        fillfactor: true,
        unlogged: true,
        storage: true,
        empty: Empty::Truncate,
        load: Load::CopyAtOnce,
        integer_division: "/",
        series_batch: None,
        vacuum: Some("vacuum analyze"),
        analyze: Some("analyze"),
        checkpoint: true,
        no_parallel_workers: Some("SET max_parallel_workers_per_gather = 0"),
        foreign_key_index: false,
        retries: 0,
        // Putting rows back leaves bloat, and removing that takes longer than recreating the tables
        // (`reset`).
        put_back_after: None,
    },
    abilities: Abilities {
        catches_conflicts: Ability::Has,
        procedures_end_transactions: Ability::Since((11, 0), "its procedures came with version 11"),
        modifying_ctes: Ability::Has,
        advisory_locks: Ability::Has,
        restart_savepoint: SAVEPOINTS_KEEP_THE_SNAPSHOT,
        shows_writers: Ability::Since((13, 0), "pg_current_snapshot() came with version 13"),
        synchronous_commit: Ability::Has,
        waits_for_lsn: Ability::Since((19, 0), "WAIT FOR LSN came with version 19"),
    },
    namespace: NamespaceFacts::SCHEMA,
    settings: SettingsSource::PgSettings,
};

/// PostgreSQL manual, "Read Committed Isolation Level" (a statement continues with the row's newest
/// version) and "Serializable Isolation Level" (the only one that monitors reads).
static IMPOSSIBLE: [(Level, &str); 3] = [
    (Level::ReadCommitted, "concurrent update"),
    (Level::ReadCommitted, "concurrent delete"),
    (Level::RepeatableRead, "read/write dependencies"),
];

/// Cancelled by a standby that replays the primary's changes. Caused by no other transaction, and
/// prevented by no level.
const RECOVERY: Reason = Reason::Named("recovery conflict");

/// Recorded from versions 15 and 18; see the manual, "Serialization Failure Handling" and "Hot
/// Standby", "Handling Query Conflicts".
static CONFLICTS: [ConflictRule; 8] = [
    rule(SqlState::SERIALIZATION_FAILURE, "conflict with recovery", RECOVERY),
    rule(SqlState::DEADLOCK_DETECTED, "conflict with recovery", RECOVERY),
    rule(SqlState::ADMIN_SHUTDOWN, "conflict with recovery", RECOVERY),
    rule(
        SqlState::SERIALIZATION_FAILURE,
        "read/write dependencies",
        Reason::WithReasonCode("read/write dependencies"),
    ),
    rule(SqlState::SERIALIZATION_FAILURE, "concurrent update", Reason::Named("concurrent update")),
    rule(SqlState::SERIALIZATION_FAILURE, "concurrent delete", Reason::Named("concurrent delete")),
    rule(SqlState::SERIALIZATION_FAILURE, "", Reason::Named("serialization failure")),
    rule(SqlState::DEADLOCK_DETECTED, "", Reason::Named("deadlock")),
];
