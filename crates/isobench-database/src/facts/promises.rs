//! The promises of a product's manual for each level.
//!
//! Not here: the server's real behaviour, which the probe and the checker find out.

use isobench_isolation::{Guarantee, Level, Model};

/// The promises of a manual, for each of [`Level::ALL`] in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises(pub [Model; 4]);

/// Products that never show uncommitted data, and whose repeatable read is a snapshot.
///
/// PostgreSQL: "Transaction Isolation", table "Transaction Isolation Levels" and §"Repeatable Read
/// Isolation Level". `CockroachDB`: "Transactions", section "Isolation levels". `YugabyteDB`:
/// "Transaction isolation levels", which implements repeatable read by snapshot isolation.
pub(crate) const SNAPSHOT_ISOLATION: Promises =
    Promises([Model::ReadCommitted, Model::ReadCommitted, Model::SnapshotIsolation, Model::Serializable]);

/// The standard's levels, as Adya defines them: repeatable read allows phantoms, and nothing else.
///
/// Sources: SQL:2016 part 2, §4.41.4; Adya 1999, table 4-1. `H2`: "Advanced", section "Transaction
/// Isolation".
pub(crate) const STANDARD: Promises =
    Promises([Model::ReadUncommitted, Model::ReadCommitted, Model::RepeatableRead, Model::Serializable]);

impl Promises {
    /// The promise to a transaction that requests this level.
    pub const fn at(self, level: Level) -> Guarantee {
        Guarantee::of(match level {
            Level::ReadUncommitted => self.0[0],
            Level::ReadCommitted => self.0[1],
            Level::RepeatableRead => self.0[2],
            Level::Serializable => self.0[3],
        })
    }
}
