//! What a product's manual promises at each level.
//!
//! Not here: what the server really does, which the probe and the checker find out.

use isobench_isolation::{Guarantee, Level, Model};

/// What a manual promises, for each of [`Level::ALL`] in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises(pub [Model; 4]);

/// Products that never show uncommitted data, and whose repeatable read is a snapshot.
///
/// PostgreSQL: "Transaction Isolation", table "Transaction Isolation Levels" and §"Repeatable Read
/// Isolation Level". `CockroachDB`: "Transactions", section "Isolation levels". `YugabyteDB`:
/// "Transaction isolation levels", where snapshot isolation stands behind repeatable read.
pub(crate) const SNAPSHOT_ISOLATION: Promises =
    Promises([Model::ReadCommitted, Model::ReadCommitted, Model::SnapshotIsolation, Model::Serializable]);

/// The standard's own words, as Adya understands them: repeatable read allows phantoms, and nothing
/// else.
///
/// Sources: SQL:2016 part 2, §4.41.4; Adya 1999, table 4-1. `H2`: "Advanced", section "Transaction
/// Isolation".
pub(crate) const STANDARD: Promises =
    Promises([Model::ReadUncommitted, Model::ReadCommitted, Model::RepeatableRead, Model::Serializable]);

impl Promises {
    /// What is promised to whoever asks for this level.
    pub const fn at(self, level: Level) -> Guarantee {
        Guarantee::of(match level {
            Level::ReadUncommitted => self.0[0],
            Level::ReadCommitted => self.0[1],
            Level::RepeatableRead => self.0[2],
            Level::Serializable => self.0[3],
        })
    }
}
