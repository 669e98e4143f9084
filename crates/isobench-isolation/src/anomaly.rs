//! The anomalies as a table: name, meaning, and the weakest models that each contradicts.
//!
//! `check/…` detects them.

use serde::{Deserialize, Serialize};

use crate::model::Model;
use crate::model::Model::{
    ConsistentView, ReadCommitted, ReadUncommitted, RepeatableRead, Serializable, SnapshotIsolation,
};

/// A phenomenon in a history that some model proscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Anomaly {
    /// A read of a version or an element that no transaction wrote.
    GarbageRead,
    /// A transaction doesn't see its own write, or reads a list that doesn't match its own appends.
    Internal,
    /// Two lists read from the same row, neither of which is a prefix of the other, or counters
    /// that contradict values.
    IncompatibleOrder,
    /// An element that occurs twice in a list, or a version written identically by two
    /// transactions.
    DuplicateWrite,
    /// A committed version was made from one that an aborted transaction wrote.
    DirtyUpdate,
    /// Write cycle.
    G0,
    /// Aborted read.
    G1a,
    /// Intermediate read.
    G1b,
    /// Circular information flow: a cycle of writes and reads.
    G1c,
    /// Lost update: a transaction wrote a row that it had read, but not the next version.
    LostUpdate,
    /// A cycle with exactly one anti-dependency, on a row: read skew.
    GSingle,
    /// The same, on a predicate: phantom.
    GSinglePredicate,
    /// A cycle with several anti-dependencies, all on single rows and no two of them adjacent: long
    /// fork.
    GNonadjacent,
    /// The same, with an anti-dependency on a predicate.
    GNonadjacentPredicate,
    /// A cycle with two adjacent anti-dependencies, all on single rows: write skew.
    G2Item,
    /// A cycle with two adjacent anti-dependencies, one of them on a predicate: write skew by
    /// phantoms.
    G2,
}

/// The facts about an anomaly.
#[derive(Debug, Clone, Copy)]
pub struct AnomalyFacts {
    /// The name in the literature.
    pub name: &'static str,
    /// The common name.
    pub known_as: &'static str,
    /// The definition, in a sentence.
    pub meaning: &'static str,
    /// The weakest models that it contradicts. Every model that implies one of them is contradicted
    /// too.
    pub contradicts: &'static [Model],
}

/// The facts about each anomaly, in the order of the variants.
const FACTS: [(Anomaly, AnomalyFacts); 16] = [
    (
        Anomaly::GarbageRead,
        AnomalyFacts {
            name: "garbage read",
            known_as: "read of an unwritten version",
            meaning: "a transaction read a version or an element that no transaction wrote",
            contradicts: &[ReadUncommitted],
        },
    ),
    (
        Anomaly::Internal,
        AnomalyFacts {
            name: "internal inconsistency",
            known_as: "own write not seen",
            meaning: "a transaction did not see what it had written itself (Adya 1999, §3.1: not a valid history)",
            contradicts: &[ReadUncommitted],
        },
    ),
    (
        Anomaly::IncompatibleOrder,
        AnomalyFacts {
            name: "incompatible version orders",
            known_as: "incompatible version orders",
            meaning: "the reads of a row fit no single order of its versions",
            contradicts: &[ReadUncommitted],
        },
    ),
    (
        Anomaly::DuplicateWrite,
        AnomalyFacts {
            name: "duplicate write",
            known_as: "written twice",
            meaning: "one write took effect twice",
            contradicts: &[ReadUncommitted],
        },
    ),
    (
        Anomaly::DirtyUpdate,
        AnomalyFacts {
            name: "dirty update",
            known_as: "update of aborted work",
            meaning: "a committed version was made from one that an aborted transaction had written",
            contradicts: &[ReadCommitted],
        },
    ),
    (
        Anomaly::G0,
        AnomalyFacts {
            name: "G0",
            known_as: "write cycle, dirty write",
            meaning: "transactions overwrote each other in a circle (Adya 1999, §4.2.1)",
            contradicts: &[ReadUncommitted],
        },
    ),
    (
        Anomaly::G1a,
        AnomalyFacts {
            name: "G1a",
            known_as: "aborted read",
            meaning: "a committed transaction read what an aborted one had written (Adya 1999, §4.2.2)",
            contradicts: &[ReadCommitted],
        },
    ),
    (
        Anomaly::G1b,
        AnomalyFacts {
            name: "G1b",
            known_as: "intermediate read",
            meaning: "a committed transaction read a version that its writer overwrote itself (Adya 1999, §4.2.2)",
            contradicts: &[ReadCommitted],
        },
    ),
    (
        Anomaly::G1c,
        AnomalyFacts {
            name: "G1c",
            known_as: "circular information flow",
            meaning: "a cycle of writes and reads (Adya 1999, §4.2.2)",
            contradicts: &[ReadCommitted],
        },
    ),
    (
        Anomaly::LostUpdate,
        AnomalyFacts {
            name: "P4",
            known_as: "lost update",
            meaning: "a transaction read a version of a row and wrote the row later, and another \
                      write came between (Berenson et al. 1995, P4)",
            contradicts: &[ConsistentView, RepeatableRead],
        },
    ),
    (
        Anomaly::GSingle,
        AnomalyFacts {
            name: "G-single",
            known_as: "read skew",
            meaning: "a cycle with exactly one anti-dependency: a transaction saw another's work in \
                      part (Adya 1999, §4.2.3)",
            contradicts: &[ConsistentView, RepeatableRead],
        },
    ),
    (
        Anomaly::GSinglePredicate,
        AnomalyFacts {
            name: "G-single (predicate)",
            known_as: "phantom",
            meaning: "a cycle with exactly one anti-dependency, of a predicate: rows appeared within a transaction",
            contradicts: &[ConsistentView],
        },
    ),
    (
        Anomaly::GNonadjacent,
        AnomalyFacts {
            name: "G-nonadjacent",
            known_as: "long fork",
            meaning: "a cycle with several anti-dependencies of which no two follow each other \
                      (Cerone and Gotsman 2018)",
            contradicts: &[SnapshotIsolation, RepeatableRead],
        },
    ),
    (
        Anomaly::GNonadjacentPredicate,
        AnomalyFacts {
            name: "G-nonadjacent (predicate)",
            known_as: "long fork of a predicate",
            meaning: "the same with an anti-dependency of a predicate among them",
            contradicts: &[SnapshotIsolation],
        },
    ),
    (
        Anomaly::G2Item,
        AnomalyFacts {
            name: "G2-item",
            known_as: "write skew",
            meaning: "a cycle with two anti-dependencies in a row, all of single rows (Adya 1999, §4.2.4)",
            contradicts: &[RepeatableRead],
        },
    ),
    (
        Anomaly::G2,
        AnomalyFacts {
            name: "G2",
            known_as: "write skew on a predicate",
            meaning: "a cycle with two anti-dependencies in a row, at least one of them of a \
                      predicate (Adya 1999, §4.2.5)",
            contradicts: &[Serializable],
        },
    ),
];

const _: () = {
    let mut row = 0;
    while row < FACTS.len() {
        assert!(FACTS[row].0 as usize == row, "the rows are in the order of the variants");
        row += 1;
    }
};

impl Anomaly {
    /// All anomalies in the order of reports, the most severe first.
    pub const ALL: [Anomaly; 16] = [
        Anomaly::GarbageRead,
        Anomaly::Internal,
        Anomaly::IncompatibleOrder,
        Anomaly::DuplicateWrite,
        Anomaly::DirtyUpdate,
        Anomaly::G0,
        Anomaly::G1a,
        Anomaly::G1b,
        Anomaly::G1c,
        Anomaly::LostUpdate,
        Anomaly::GSingle,
        Anomaly::GSinglePredicate,
        Anomaly::GNonadjacent,
        Anomaly::GNonadjacentPredicate,
        Anomaly::G2Item,
        Anomaly::G2,
    ];

    /// The row of the table.
    pub const fn facts(self) -> AnomalyFacts {
        FACTS[self as usize].1
    }

    /// True if a history that shows this anomaly contradicts `model`.
    pub fn contradicts(self, model: Model) -> bool {
        self.facts().contradicts.iter().any(|weakest| model.implies(*weakest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_contradicts_serializability() {
        for anomaly in Anomaly::ALL {
            assert!(anomaly.contradicts(Serializable), "{anomaly:?}");
        }
        assert!(!Anomaly::G2Item.contradicts(SnapshotIsolation));
        assert!(!Anomaly::G2.contradicts(RepeatableRead));
        assert!(Anomaly::LostUpdate.contradicts(RepeatableRead));
    }
}
