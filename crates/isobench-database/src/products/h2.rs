//! `H2` with its PostgreSQL server. Facts recorded from 2.4.240.

use isobench_pgwire::SqlState;

use crate::facts::abilities::{Abilities, Ability, NO_WAITING, NO_WRITERS, OWN_DURABILITY};
use crate::facts::conflict::{ConflictRule, Reason, rule};
use crate::facts::dialect::{CAUTIOUS, Dialect};
use crate::facts::level::{EffectiveLevelQuery, SetLevel};
use crate::facts::namespace::{Mark, NamespaceFacts};
use crate::facts::object::{ObjectMark, Part};
use crate::facts::promises::SNAPSHOT_AT_THE_TOP;
use crate::facts::settings::SettingsSource;
use crate::facts::waiting::WaitView;
use crate::product::{Product, Recognition};

/// `H2`.
///
/// Rejects `BEGIN ISOLATION LEVEL …`, `END`, `SHOW transaction_isolation`, `COPY`, and `TRUNCATE`
/// of a referenced table. DDL commits.
pub static H2: Product = Product {
    name: "H2",
    system_name: "h2database",
    recognition: Recognition {
        contains: "using H2 ",
        lacks: &[],
        version_after: "using H2 ",
        confirmed_by: None,
    },
    set_level: SetLevel::SessionCharacteristics,
    effective_level: EffectiveLevelQuery {
        steps: &[
            "BEGIN",
            "SELECT isolation_level FROM information_schema.sessions WHERE session_id = session_id()",
            "COMMIT",
        ],
        answer: 1,
    },
    promises: SNAPSHOT_AT_THE_TOP,
    session_name: Some("SELECT session_id()"),
    waits: WaitView::Query {
        own_name: "SELECT session_id()",
        waits: &["SELECT blocker_id IS NOT NULL FROM information_schema.sessions WHERE session_id = {id}"],
    },
    conflicts: &CONFLICTS,
    impossible: &[],
    objects: &[
        ObjectMark::Quoted(Part::Message, "Details: \""),
        ObjectMark::Quoted(Part::Message, "lock table \""),
    ],
    relations: None,
    dialect: Dialect { analyze: Some("analyze table"), checkpoint: true, ..CAUTIOUS },
    abilities: Abilities {
        catches_conflicts: Ability::Lacks("it has no PL/pgSQL"),
        procedures_end_transactions: Ability::Lacks("it has no PL/pgSQL"),
        modifying_ctes: Ability::Lacks("UPDATE can't stand in WITH there"),
        advisory_locks: Ability::Lacks("it has no advisory locks"),
        restart_savepoint: Ability::Lacks("after a conflict it ends the transaction with its savepoints"),
        shows_writers: NO_WRITERS,
        synchronous_commit: OWN_DURABILITY,
        waits_for_lsn: NO_WAITING,
    },
    namespace: NamespaceFacts {
        // 1.4 folds names to upper case.
        mark: Mark::Comment {
            found: "SELECT coalesce(remarks, '') FROM information_schema.schemata WHERE lower(schema_name) = 'isobench'",
        },
        enter: "SET SCHEMA isobench",
        current: "SELECT lower(current_schema())",
        reports_cascade: false,
        advisory_lock: false,
        ..NamespaceFacts::SCHEMA
    },
    settings: SettingsSource::Query(
        "SELECT setting_name, setting_value FROM information_schema.settings \
         WHERE setting_name IN ('MODE', 'DEFAULT_LOCK_TIMEOUT', 'LOCK_TIMEOUT', 'WRITE_DELAY', 'RETENTION_TIME')",
    ),
};

/// Deadlocks and updates of rows changed since the snapshot have the same text.
static CONFLICTS: [ConflictRule; 3] = [
    rule(SqlState::SERIALIZATION_FAILURE, "", Reason::Named("deadlock or concurrent update")),
    rule(SqlState::DEADLOCK_DETECTED, "", Reason::Named("deadlock")),
    rule(SqlState(*b"HYT00"), "lock", Reason::Named("lock timeout")),
];
