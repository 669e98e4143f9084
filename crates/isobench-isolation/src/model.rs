//! The consistency models that a history may contradict, from the weakest to the strongest.
//!
//! `anomaly.rs` lists the anomalies that contradict each, and `level.rs` has SQL's names for
//! requested levels.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A consistency model of transactions, defined by the anomalies that it proscribes.
///
/// The models don't form a chain: repeatable read (PL-2.99), which permits phantoms, is
/// incomparable to consistent view and snapshot isolation, which permit write skew (Adya 1999,
/// figure 4-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Model {
    /// Adya's PL-1: no cycle of writes alone (G0).
    ReadUncommitted,
    /// PL-2: in addition, no aborted reads, no intermediate reads, and no cycle of writes and reads
    /// (G1).
    ReadCommitted,
    /// PL-2+: in addition, no cycle with a single anti-dependency (G-single): no read skew, no lost
    /// update.
    ConsistentView,
    /// Snapshot isolation (PL-SI without real time; Cerone and Gotsman 2018): every cycle has two
    /// adjacent anti-dependencies.
    SnapshotIsolation,
    /// Repeatable read as defined by Adya, PL-2.99: no cycle of dependencies on single rows.
    RepeatableRead,
    /// PL-3: no cycle at all; some serial order explains all reads.
    Serializable,
}

impl Model {
    /// All models, the weakest first.
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

    /// True if everything that satisfies this model also satisfies `other`.
    pub fn implies(self, other: Model) -> bool {
        let apart = matches!(other, Model::ConsistentView | Model::SnapshotIsolation);
        self >= other && !(self == Model::RepeatableRead && apart)
    }

    /// The models that aren't implied by another one of them, the weakest first.
    pub fn strongest(models: &[Model]) -> Vec<Model> {
        let implied = |model: Model| models.iter().any(|other| *other != model && other.implies(model));
        Model::ALL.into_iter().filter(|model| models.contains(model) && !implied(*model)).collect()
    }
}

/// The orders that are dependencies in addition to the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Order {
    /// None: only the data.
    Data,
    /// The order of each client's own transactions ("strong session").
    Session,
    /// Real time as well: a transaction that starts after another has ended follows it ("strict",
    /// "strong").
    RealTime,
}

impl Order {
    /// All orders, the fewest dependencies first.
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

/// A model and the orders that it respects: the promise of a level, or a guarantee that a history
/// doesn't contradict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Guarantee {
    /// The model.
    pub model: Model,
    /// The orders.
    pub order: Order,
}

impl Guarantee {
    /// A model that respects no order except that of the data.
    pub const fn of(model: Model) -> Guarantee {
        Guarantee { model, order: Order::Data }
    }

    /// True if everything that satisfies this guarantee also satisfies `other`.
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

/// The text isn't a guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownGuarantee(String);

impl fmt::Display for UnknownGuarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown guarantee \"{}\"; use one of ", self.0)?;
        for model in Model::ALL {
            write!(f, "{}, ", model.name())?;
        }
        f.write_str("alone or after strong session (each client's order counts) or strict (real time counts)")
    }
}

impl std::error::Error for UnknownGuarantee {}

/// Short names of models, and Adya's.
const SHORT: [(&str, Model); 10] = [
    ("pl 1", Model::ReadUncommitted),
    ("pl 2", Model::ReadCommitted),
    ("pl 2+", Model::ConsistentView),
    ("pl si", Model::SnapshotIsolation),
    ("si", Model::SnapshotIsolation),
    ("snapshot", Model::SnapshotIsolation),
    ("pl 2.99", Model::RepeatableRead),
    ("repeatable read", Model::RepeatableRead),
    ("repeatable read (pl 2.99)", Model::RepeatableRead),
    ("pl 3", Model::Serializable),
];

impl FromStr for Guarantee {
    type Err = UnknownGuarantee;

    /// Accepts the output of `Display` and Adya's names, in any case and with `-` or `_` in place
    /// of blanks; "strict" and "strong" are synonyms.
    fn from_str(text: &str) -> Result<Guarantee, UnknownGuarantee> {
        let words = text.to_lowercase().replace(['-', '_'], " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let prefixes = [
            ("strong session ", Order::Session),
            ("session ", Order::Session),
            ("strict ", Order::RealTime),
            ("strong ", Order::RealTime),
        ];
        let (name, order) = prefixes
            .into_iter()
            .find_map(|(prefix, order)| Some((words.strip_prefix(prefix)?, order)))
            .unwrap_or((&words, Order::Data));
        let long = Model::ALL.into_iter().find(|model| model.name() == name);
        let short = || SHORT.into_iter().find(|(short, _)| *short == name).map(|(_, model)| model);
        let model = long.or_else(short).ok_or_else(|| UnknownGuarantee(text.to_owned()))?;
        Ok(Guarantee { model, order })
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
        let without_serializable = &Model::ALL[..5];
        assert_eq!(Model::strongest(without_serializable), [SnapshotIsolation, RepeatableRead]);
        assert_eq!(Model::strongest(&Model::ALL), [Serializable]);
        assert_eq!(Model::strongest(&[]), []);
    }

    #[test]
    fn names_say_the_order() {
        let name = |model, order| Guarantee { model, order }.to_string();
        assert_eq!(name(Model::Serializable, Order::RealTime), "strict serializable");
        assert_eq!(name(Model::SnapshotIsolation, Order::Session), "strong session snapshot isolation");
    }

    #[test]
    fn what_is_shown_is_understood() {
        for model in Model::ALL {
            for order in Order::ALL {
                let guarantee = Guarantee { model, order };
                assert_eq!(guarantee.to_string().parse(), Ok(guarantee));
                assert_eq!(guarantee.to_string().to_uppercase().replace(' ', "_").parse(), Ok(guarantee));
            }
        }
        let guarantee = |model, order| Ok(Guarantee { model, order });
        assert_eq!("strong-serializable".parse(), guarantee(Model::Serializable, Order::RealTime));
        assert_eq!(" Snapshot  Isolation".parse(), guarantee(Model::SnapshotIsolation, Order::Data));
        assert_eq!("repeatable read".parse(), guarantee(Model::RepeatableRead, Order::Data));
        assert_eq!("PL-2+".parse(), guarantee(Model::ConsistentView, Order::Data));
        let message = "eventual".parse::<Guarantee>().unwrap_err().to_string();
        assert!(
            message.starts_with("unknown guarantee \"eventual\"; use one of read uncommitted, "),
            "{message}"
        );
        assert!("strict".parse::<Guarantee>().is_err() && "".parse::<Guarantee>().is_err());
    }
}
