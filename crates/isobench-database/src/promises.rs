//! The promises of a product's manual for the requested level and for the effective level.
//!
//! Not here: the server's real behaviour, which the probe and the checker find out.

use isobench_isolation::{EffectiveLevel, Guarantee, Level};

use crate::product::Product;

impl Product {
    /// The manual's promise to a transaction that requests this level.
    pub const fn promises(&self, level: Level) -> Guarantee {
        self.promises.at(level)
    }

    /// The manual's promise at the effective level, by which histories and interleavings are
    /// judged.
    ///
    /// `None` if the server doesn't report its level, or reports one outside the standard,
    /// including differences between sessions ("mixed (…)"). Then nothing is promised, and nothing
    /// can be violated.
    pub const fn promises_effective(&self, effective: &EffectiveLevel) -> Option<Guarantee> {
        match effective {
            EffectiveLevel::Standard(level) => Some(self.promises(*level)),
            EffectiveLevel::Other(_) | EffectiveLevel::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use isobench_isolation::Model;

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
        // Its manual says that serializable permits write skew.
        assert_eq!(H2.promises(Level::Serializable).model, Model::SnapshotIsolation);
        // Snapshot isolation satisfies the name, too.
        assert_eq!(UNKNOWN.promises(Level::RepeatableRead).model, Model::ReadCommitted);
    }

    /// `CockroachDB` runs weaker levels as serializable, and then has to keep serializable's
    /// promises.
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
