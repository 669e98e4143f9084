//! The consistency models that a history may contradict, from the weakest to the strongest.
//!
//! Not here: what each proscribes (`anomaly.rs`), and SQL's names for what a user asks for (`level.rs`).

use std::fmt;

/// A consistency model of transactions, defined by the anomalies that it proscribes.
///
/// Not a chain: repeatable read (PL-2.99), which allows phantoms, lies apart from consistent view and snapshot isolation, which
/// allow write skew (Adya 1999, figure 4-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Model {
    /// Adya's PL-1: no cycle of writes alone (G0).
    ReadUncommitted,
    /// PL-2: also nothing read from transactions that aborted, or before their last word, nor in a circle (G1).
    ReadCommitted,
    /// PL-2+: also no cycle with a single anti-dependency (G-single): no read skew, no lost update.
    ConsistentView,
    /// Snapshot isolation (PL-SI without real time; Cerone and Gotsman 2018): no cycle but those with two
    /// anti-dependencies in a row.
    SnapshotIsolation,
    /// Repeatable read as Adya has it, PL-2.99: no cycle at all of what concerns single rows.
    RepeatableRead,
    /// PL-3: no cycle at all; some serial order explains all that was seen.
    Serializable,
}

impl Model {
    /// All, the weakest first.
    pub const ALL: [Model; 6] = [
        Model::ReadUncommitted,
        Model::ReadCommitted,
        Model::ConsistentView,
        Model::SnapshotIsolation,
        Model::RepeatableRead,
        Model::Serializable,
    ];

    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Model::ReadUncommitted => "read uncommitted",
            Model::ReadCommitted => "read committed",
            Model::ConsistentView => "consistent view",
            Model::SnapshotIsolation => "snapshot isolation",
            Model::RepeatableRead => "repeatable read (PL-2.99)",
            Model::Serializable => "serializable",
        }
    }

    /// True if whatever satisfies this model satisfies `other`, too.
    pub fn implies(self, other: Model) -> bool {
        let apart = matches!(other, Model::ConsistentView | Model::SnapshotIsolation);
        self >= other && !(self == Model::RepeatableRead && apart)
    }
}

/// Which orders count as dependencies, beside those of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// None: the data alone.
    Data,
    /// Also the order of each client's own transactions ("strong session").
    Session,
    /// Also real time: what began after another had ended comes after it ("strict", "strong").
    RealTime,
}

impl Order {
    /// All, the fewest dependencies first.
    pub const ALL: [Order; 3] = [Order::Data, Order::Session, Order::RealTime];

    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Data => "data",
            Order::Session => "session",
            Order::RealTime => "real time",
        }
    }
}

/// A model together with the orders that it respects: what a level promises, or what a history doesn't contradict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guarantee {
    /// The model.
    pub model: Model,
    /// The orders.
    pub order: Order,
}

impl Guarantee {
    /// A model that respects no order but that of the data.
    pub const fn of(model: Model) -> Guarantee {
        Guarantee { model, order: Order::Data }
    }

    /// True if whatever satisfies this guarantee satisfies `other`, too.
    pub fn implies(self, other: Guarantee) -> bool {
        self.model.implies(other.model) && self.order >= other.order
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match (self.order, self.model) {
            (Order::Data, _) => "",
            (Order::Session, _) => "strong session ",
            (Order::RealTime, Model::Serializable) => "strict ",
            (Order::RealTime, _) => "strong ",
        };
        f.pad(&format!("{prefix}{}", self.model.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_isolation_and_repeatable_read_lie_apart() {
        use Model::{ConsistentView, RepeatableRead, Serializable, SnapshotIsolation};
        assert!(!RepeatableRead.implies(SnapshotIsolation) && !SnapshotIsolation.implies(RepeatableRead));
        for model in Model::ALL {
            assert!(model.implies(model) && Serializable.implies(model));
        }
        assert!(!RepeatableRead.implies(ConsistentView) && SnapshotIsolation.implies(ConsistentView));
    }

    #[test]
    fn names_say_the_order() {
        let name = |model, order| Guarantee { model, order }.to_string();
        assert_eq!(name(Model::Serializable, Order::RealTime), "strict serializable");
        assert_eq!(name(Model::SnapshotIsolation, Order::Session), "strong session snapshot isolation");
    }
}
