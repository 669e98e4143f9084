//! The anomalies as a table: name, meaning, and the weakest models that each contradicts.
//!
//! Not here: how they are found (`check/…`).

use crate::model::Model;

/// Something that a history shows and a model proscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// A read that no write explains: a version or an element that no transaction wrote.
    GarbageRead,
    /// A transaction doesn't see what it wrote itself, or sees a list that its own appends don't
    /// fit in.
    Internal,
    /// Two lists of the same row of which neither is the beginning of the other, or counters that
    /// contradict values.
    IncompatibleOrder,
    /// An element that stands twice in a list, or a version that two transactions wrote alike.
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
    /// Lost update: read a version, and wrote a later one than the next.
    LostUpdate,
    /// A cycle with exactly one anti-dependency, of a row: read skew.
    GSingle,
    /// The same, of a predicate: phantom.
    GSinglePredicate,
    /// A cycle with several anti-dependencies, no two of them in a row, all of single rows: long
    /// fork.
    GNonadjacent,
    /// The same, one of them of a predicate.
    GNonadjacentPredicate,
    /// A cycle with two anti-dependencies in a row, all of single rows: write skew.
    G2Item,
    /// A cycle with two anti-dependencies in a row, one of them of a predicate: write skew by
    /// phantoms.
    G2,
}

/// What is known of an anomaly.
#[derive(Debug, Clone, Copy)]
pub struct AnomalyFacts {
    /// The name in the literature.
    pub name: &'static str,
    /// What people call it.
    pub known_as: &'static str,
    /// What it is, in a sentence.
    pub meaning: &'static str,
    /// The weakest models that it contradicts; every model that implies one of them is
    /// contradicted, too.
    pub contradicts: &'static [Model],
}

impl Anomaly {
    /// All, in the order of reports: the gravest first.
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
        use Model::{
            ConsistentView, ReadCommitted, ReadUncommitted, RepeatableRead, Serializable, SnapshotIsolation,
        };
        let (name, known_as, contradicts, meaning): (_, _, &'static [Model], _) = match self {
            Anomaly::GarbageRead => (
                "garbage read",
                "read of what nobody wrote",
                &[ReadUncommitted],
                "a transaction read a version or an element that no transaction wrote",
            ),
            Anomaly::Internal => (
                "internal inconsistency",
                "own write not seen",
                &[ReadUncommitted],
                "a transaction did not see what it had written itself (Adya 1999, §3.1: the history is none)",
            ),
            Anomaly::IncompatibleOrder => (
                "incompatible version orders",
                "incompatible version orders",
                &[ReadUncommitted],
                "what was read of a row fits no single order of its versions",
            ),
            Anomaly::DuplicateWrite => {
                ("duplicate write", "written twice", &[ReadUncommitted], "one write took effect twice")
            }
            Anomaly::DirtyUpdate => (
                "dirty update",
                "update of aborted work",
                &[ReadCommitted],
                "a committed version was made from one that an aborted transaction had written",
            ),
            Anomaly::G0 => (
                "G0",
                "write cycle, dirty write",
                &[ReadUncommitted],
                "transactions overwrote each other in a circle (Adya 1999, §4.2.1)",
            ),
            Anomaly::G1a => (
                "G1a",
                "aborted read",
                &[ReadCommitted],
                "a committed transaction read what an aborted one had written (Adya 1999, §4.2.2)",
            ),
            Anomaly::G1b => (
                "G1b",
                "intermediate read",
                &[ReadCommitted],
                "a committed transaction read a version that its writer overwrote itself (Adya 1999, §4.2.2)",
            ),
            Anomaly::G1c => (
                "G1c",
                "circular information flow",
                &[ReadCommitted],
                "a cycle of writes and reads (Adya 1999, §4.2.2)",
            ),
            Anomaly::LostUpdate => (
                "P4",
                "lost update",
                &[ConsistentView, RepeatableRead],
                "a transaction read a version of a row and wrote the row later, and another write came between \
                 (Berenson et al. 1995, P4)",
            ),
            Anomaly::GSingle => (
                "G-single",
                "read skew",
                &[ConsistentView, RepeatableRead],
                "a cycle with exactly one anti-dependency: a transaction saw another's work in part (Adya 1999, §4.2.3)",
            ),
            Anomaly::GSinglePredicate => (
                "G-single (predicate)",
                "phantom",
                &[ConsistentView],
                "a cycle with exactly one anti-dependency, of a predicate: rows appeared within a transaction",
            ),
            Anomaly::GNonadjacent => (
                "G-nonadjacent",
                "long fork",
                &[SnapshotIsolation, RepeatableRead],
                "a cycle with several anti-dependencies of which no two follow each other (Cerone and Gotsman 2018)",
            ),
            Anomaly::GNonadjacentPredicate => (
                "G-nonadjacent (predicate)",
                "long fork of a predicate",
                &[SnapshotIsolation],
                "the same with an anti-dependency of a predicate among them",
            ),
            Anomaly::G2Item => (
                "G2-item",
                "write skew",
                &[RepeatableRead],
                "a cycle with two anti-dependencies in a row, all of single rows (Adya 1999, §4.2.4)",
            ),
            Anomaly::G2 => (
                "G2",
                "write skew on a predicate",
                &[Serializable],
                "a cycle with two anti-dependencies in a row, at least one of them of a predicate (Adya 1999, §4.2.5)",
            ),
        };
        AnomalyFacts { name, known_as, meaning, contradicts }
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
            assert!(anomaly.contradicts(Model::Serializable), "{anomaly:?}");
        }
        assert!(!Anomaly::G2Item.contradicts(Model::SnapshotIsolation));
        assert!(!Anomaly::G2.contradicts(Model::RepeatableRead));
        assert!(Anomaly::LostUpdate.contradicts(Model::RepeatableRead));
    }
}
