//! The promises of a product's manual for each level, alone and next to others.
//!
//! Not here: the server's real behaviour, which the probe and the checker find out.

use isobench_isolation::{LevelPromises, Mixing, Model};

/// Products that never show uncommitted data, and whose repeatable read is a snapshot.
///
/// PostgreSQL: "Transaction Isolation", table "Transaction Isolation Levels" and §"Repeatable Read
/// Isolation Level"; of mixtures §"Enforcing Consistency with Serializable Transactions", which
/// promises something only if the transactions concerned are serializable. `YugabyteDB`:
/// "Transaction isolation levels", which implements repeatable read by snapshot isolation; its manual
/// doesn't mention mixtures, so nothing more is expected of it than of PostgreSQL.
pub(crate) const SNAPSHOT_ISOLATION: LevelPromises = LevelPromises {
    models: [Model::ReadCommitted, Model::ReadCommitted, Model::SnapshotIsolation, Model::Serializable],
    mixing: Mixing::AmongSerializable,
};

/// The same, where in mixtures each level keeps its promise.
///
/// `CockroachDB`: "Transactions", sections "Isolation levels" and "Mixed isolation levels": whatever
/// the levels of others are, transactions behave according to their own; statements of serializable
/// transactions see all that another one wrote if it commits before, and nothing of it otherwise.
pub(crate) const SNAPSHOT_ISOLATION_IN_MIXTURES: LevelPromises =
    LevelPromises { mixing: Mixing::EachSerializable, ..SNAPSHOT_ISOLATION };

/// The standard's levels, as Adya defines them: repeatable read allows phantoms, and nothing else.
///
/// Sources: SQL:2016 part 2, §4.41.4; Adya 1999, table 4-1. `H2`: "Advanced", section "Transaction
/// Isolation".
pub(crate) const STANDARD: LevelPromises = LevelPromises {
    models: [Model::ReadUncommitted, Model::ReadCommitted, Model::RepeatableRead, Model::Serializable],
    mixing: Mixing::AmongEquals,
};
