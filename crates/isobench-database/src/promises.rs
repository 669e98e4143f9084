//! What a product's manual promises at each level.
//!
//! Not here: what the server really does, which the probe and the checker find out.

use isobench_isolation::{EffectiveLevel, Guarantee, Level, Model};

use crate::product::Product;

/// What a manual promises, for each of [`Level::ALL`] in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises(pub [Model; 4]);

/// Products that never show uncommitted data, and whose repeatable read is a snapshot.
///
/// PostgreSQL: "Transaction Isolation", table "Transaction Isolation Levels" and §"Repeatable Read Isolation Level". `CockroachDB`:
/// "Transactions", section "Isolation levels". `YugabyteDB`: "Transaction isolation levels", where snapshot isolation stands
/// behind repeatable read.
pub(crate) const SNAPSHOT_ISOLATION: Promises =
    Promises([Model::ReadCommitted, Model::ReadCommitted, Model::SnapshotIsolation, Model::Serializable]);

/// The standard's own words, as Adya understands them: repeatable read allows phantoms, and nothing else.
///
/// Sources: SQL:2016 part 2, §4.41.4; Adya 1999, table 4-1. `H2`: "Advanced", section "Transaction Isolation".
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

impl Product {
    /// What this product's manual promises to whoever asks for this level.
    pub const fn promises(&self, level: Level) -> Guarantee {
        self.promises.at(level)
    }

    /// What this product's manual promises at the level that really runs: what a history or an interleaving is judged by.
    ///
    /// `None` if the server doesn't say which level it runs, or names one outside the standard, also where sessions differ
    /// ("mixed (…)"). Then nothing is promised, and nothing can be broken.
    pub const fn promises_effective(&self, effective: &EffectiveLevel) -> Option<Guarantee> {
        match effective {
            EffectiveLevel::Standard(level) => Some(self.promises(*level)),
            EffectiveLevel::Other(_) | EffectiveLevel::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::{COCKROACHDB, H2, PRODUCTS, UNKNOWN};

    #[test]
    fn stronger_levels_promise_no_less() {
        for product in PRODUCTS.into_iter().chain([&UNKNOWN]) {
            for pair in Level::ALL.windows(2) {
                let [weak, strong] = [pair[0], pair[1]].map(|level| product.promises(level));
                assert!(strong.implies(weak), "{}: {strong}, {weak}", product.name);
            }
        }
        assert_eq!(H2.promises(Level::RepeatableRead).to_string(), "repeatable read (PL-2.99)");
    }

    /// `CockroachDB` runs weaker levels as serializable, and then has to keep what serializable promises.
    #[test]
    fn the_level_that_runs_is_what_is_promised() {
        let promised = |answer: &str| {
            COCKROACHDB
                .promises_effective(&EffectiveLevel::from_setting(answer))
                .map(|promised| promised.model)
        };
        assert_eq!(promised("serializable"), Some(Model::Serializable));
        assert_eq!(promised("read committed"), Some(Model::ReadCommitted));
        assert_eq!(promised("mixed (serializable, read committed)"), None);
        assert_eq!(promised(""), None);
    }
}
