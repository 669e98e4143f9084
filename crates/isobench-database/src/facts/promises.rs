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

/// The names of the standard's levels, by themselves.
///
/// At repeatable read a row doesn't change between two reads (SQL:2016 part 2, §4.41.4). Adya's PL-2.99
/// and snapshot isolation both satisfy that, and products of both kinds use the name. They have only
/// read committed in common.
pub(crate) const NAMES_ALONE: LevelPromises = LevelPromises {
    models: [Model::ReadUncommitted, Model::ReadCommitted, Model::ReadCommitted, Model::Serializable],
    mixing: Mixing::AmongEquals,
};

/// `H2`: "Advanced", section "Transaction Isolation". Repeatable read is the standard's. Serializable
/// "currently doesn't ensure equivalence of concurrent and serializable execution of transactions that
/// perform write operations", and excludes what the level snapshot excludes.
pub(crate) const SNAPSHOT_AT_THE_TOP: LevelPromises = LevelPromises {
    models: [Model::ReadUncommitted, Model::ReadCommitted, Model::ReadCommitted, Model::SnapshotIsolation],
    ..NAMES_ALONE
};
