//! Aurora DSQL. Facts from Amazon's documentation ("Aurora DSQL User Guide"), and from the answers of
//! real clusters that <https://github.com/Dreamescaper/dsql-emulator> has recorded
//! (`test/conformance/golden`, September 2026). isobench itself was never tried on one.

use isobench_pgwire::SqlState;

use crate::facts::abilities::{Abilities, Ability, NO_WAITING, NO_WRITERS, OWN_DURABILITY};
use crate::facts::conflict::{ConflictRule, Reason, rule};
use crate::facts::dialect::{CAUTIOUS, Dialect};
use crate::facts::level::{SHOW, SetLevel};
use crate::facts::namespace::NamespaceFacts;
use crate::facts::promises::SNAPSHOT_ISOLATION;
use crate::facts::settings::SettingsSource;
use crate::facts::waiting::WaitView;
use crate::product::{Product, Recognition};

/// Aurora DSQL.
///
/// It has one level, snapshot isolation, which `SHOW transaction_isolation` calls repeatable read
/// ("Concurrency control in Aurora DSQL"). `SET TRANSACTION`, `SET SESSION CHARACTERISTICS` and
/// `SET default_transaction_isolation` are refused with 0A000, even for that level (recorded). Nobody
/// waits for a lock: conflicts come at COMMIT.
pub static AURORA_DSQL: Product = Product {
    name: "Aurora DSQL",
    system_name: "aws.aurora_dsql",
    recognition: Recognition {
        // The whole answer is "PostgreSQL 16" (recorded). PostgreSQL's has the platform after it.
        contains: "PostgreSQL ",
        lacks: &[" on ", "(", " server protocol"],
        version_after: "PostgreSQL ",
        // "System tables and commands in Aurora DSQL", "Get current Aurora DSQL major version".
        confirmed_by: Some("SELECT sys.dsql_major_version()"),
    },
    set_level: SetLevel::Fixed,
    effective_level: SHOW,
    promises: SNAPSHOT_ISOLATION,
    session_name: Some("SELECT pg_catalog.pg_backend_pid()"),
    waits: WaitView::Time,
    conflicts: &CONFLICTS,
    impossible: &[],
    // The messages name neither table nor row.
    objects: &[],
    relations: None,
    // "Cluster quotas and database limits": 3,000 rows in a transaction that writes. "Unsupported
    // PostgreSQL features": TRUNCATE, VACUUM, tablespaces, partitions.
    dialect: Dialect {
        series_batch: Some(1000),
        analyze: Some("analyze"),
        // Putting rows back would change more rows at once than a transaction may.
        put_back_after: None,
        ..CAUTIOUS
    },
    abilities: Abilities {
        catches_conflicts: Ability::Lacks("it has no PL/pgSQL"),
        procedures_end_transactions: Ability::Lacks("it has no PL/pgSQL"),
        modifying_ctes: Ability::Lacks("isobench doesn't know whether UPDATE can stand in WITH there"),
        advisory_locks: Ability::Lacks("isobench doesn't know whether it has advisory locks"),
        restart_savepoint: Ability::Lacks("it has no savepoints"),
        shows_writers: NO_WRITERS,
        synchronous_commit: OWN_DURABILITY,
        waits_for_lsn: NO_WAITING,
    },
    // One statement that changes the schema in a transaction ("DDL and distributed transactions"), so
    // that DROP can't be tried.
    namespace: NamespaceFacts { reports_cascade: false, advisory_lock: false, ..NamespaceFacts::SCHEMA },
    settings: SettingsSource::None,
};

/// "Concurrency control in Aurora DSQL", section "Concurrency control responses".
static CONFLICTS: [ConflictRule; 3] = [
    rule(SqlState::SERIALIZATION_FAILURE, "(OC000)", Reason::Named("data conflict (OC000)")),
    rule(SqlState::SERIALIZATION_FAILURE, "(OC001)", Reason::Named("schema conflict (OC001)")),
    rule(SqlState::SERIALIZATION_FAILURE, "", Reason::Named("serialization failure")),
];
