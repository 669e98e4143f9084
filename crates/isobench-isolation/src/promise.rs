//! The promise of each level, alone and next to transactions of other levels.
//!
//! The crate that knows a product has its promises; `check/mixed.rs` judges by them.

use serde::{Deserialize, Serialize};

use crate::history::Mode;
use crate::level::Level;
use crate::model::{Guarantee, Model};

/// The promises of a server's manual for each level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelPromises {
    /// The promise to transactions that all run at one level, for each of [`Level::ALL`] in that
    /// order; stronger levels promise no less.
    pub models: [Model; 4],
    /// The promise to serializable transactions next to others.
    pub mixing: Mixing,
}

/// What a server promises if transactions of different levels run at the same time.
///
/// Adya's mixing rules (1999, §5.5; Adya, Liskov and O'Neil 2000, §5.5) are the promise of none of
/// these: they demand that no anti-dependency of a serializable transaction is on a cycle, whatever
/// the others are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mixing {
    /// Each statement sees all that was committed before it. Each transaction at snapshot isolation or
    /// above sees one snapshot, and the first updater wins.
    /// Serializable transactions are serializable among each other: two anti-dependencies in a row,
    /// all three of whose transactions are serializable, are prevented where they endanger that.
    AmongSerializable,
    /// In addition, a serializable transaction reads and writes as at one instant, whatever the
    /// others are.
    EachSerializable,
    /// Only what the weakest level that runs promises, and that there is no cycle of nothing but
    /// serializable transactions.
    AmongEquals,
}

impl LevelPromises {
    /// The promise to transactions that all run at this level.
    pub const fn at(self, level: Level) -> Guarantee {
        Guarantee::of(self.models[level as usize])
    }

    /// The model that a transaction with these modes is promised as far as that doesn't depend on
    /// others; the weakest one if they aren't known.
    pub(crate) fn model(self, mode: Option<Mode>) -> Model {
        self.models[mode.map_or(0, |mode| mode.level as usize)]
    }
}
