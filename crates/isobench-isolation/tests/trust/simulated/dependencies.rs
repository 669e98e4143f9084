//! The database's own dependency graph, for the certifier, and to decide whether a defect took
//! effect.
//!
//! It is made from what was stored and read, not from a history.

use std::collections::BTreeSet;

use isobench_isolation::history::Key;

use super::database::{Content, Database};
use super::defect::Defect;

/// A dependency, and whether it is an anti-dependency on a predicate.
type Edge = (usize, usize, bool);

impl Database {
    /// All dependencies between these transactions.
    fn dependencies(&self, counts: &dyn Fn(usize) -> bool) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for versions in self.rows.values() {
            for pair in versions.windows(2) {
                edges.insert((pair[0].writer, pair[1].writer, false));
            }
        }
        for (reader, tx) in self.txs.iter().enumerate().filter(|(index, _)| counts(*index)) {
            for &(key, writer) in &tx.reads {
                edges.extend(writer.map(|writer| (writer, reader, false)));
                edges.extend(self.overwriters(key, writer).first().map(|&next| (reader, next, false)));
            }
            for (table, group, seen) in &tx.group_reads {
                for (key, versions) in self.rows.iter().filter(|(key, _)| key.table == *table) {
                    if versions[0].content == Content::Member(*group) {
                        let writer = versions[0].writer;
                        let edge = if seen.contains(&key.id) {
                            (writer, reader, false)
                        } else {
                            (reader, writer, true)
                        };
                        edges.insert(edge);
                    }
                }
            }
        }
        edges.retain(|edge| edge.0 != edge.1 && counts(edge.0) && counts(edge.1));
        edges
    }

    /// The transactions that wrote a row after this version of it.
    pub fn overwriters(&self, key: Key, writer: Option<usize>) -> Vec<usize> {
        let versions = self.rows.get(&key).map_or(&[][..], Vec::as_slice);
        let start = writer.map_or(0, |writer| {
            versions.iter().rposition(|it| it.writer == writer).map_or(versions.len(), |place| place + 1)
        });
        versions[start..].iter().map(|it| it.writer).collect()
    }

    /// True if a transaction that is about to commit is on a cycle known to the certifier.
    pub fn closes_cycle(&self, tx: usize) -> bool {
        let mut edges = self.dependencies(&|index| self.txs[index].committed);
        edges.retain(|&(from, to, predicate)| match self.defect {
            Some(Defect::PhantomIgnored) => !predicate,
            Some(Defect::MissingEdge) => (from * 7 + to) % 3 != 0,
            _ => true,
        });
        reaches(&edges, tx, tx)
    }

    /// True if there is a cycle among these transactions.
    pub fn has_cycle(&self, counts: &dyn Fn(usize) -> bool) -> bool {
        let edges = self.dependencies(counts);
        edges.iter().any(|edge| reaches(&edges, edge.1, edge.0))
    }

    /// True if there is a cycle of writes, considering each transaction's last version of each row.
    pub fn has_write_cycle(&self, counts: &dyn Fn(usize) -> bool) -> bool {
        let mut edges = BTreeSet::new();
        for versions in self.rows.values() {
            let mut writers: Vec<usize> = Vec::new();
            for writer in versions.iter().map(|it| it.writer).filter(|&it| counts(it)) {
                writers.retain(|&it| it != writer);
                writers.push(writer);
            }
            edges.extend(writers.windows(2).map(|pair| (pair[0], pair[1], false)));
        }
        edges.iter().any(|edge| reaches(&edges, edge.1, edge.0))
    }
}

/// True if one node is reachable from another by at least one step.
fn reaches(edges: &BTreeSet<Edge>, from: usize, to: usize) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(&at) = reached.get(next) {
        for edge in edges.range((at, 0, false)..(at + 1, 0, false)) {
            if edge.1 == to {
                return true;
            }
            if !reached.contains(&edge.1) {
                reached.push(edge.1);
            }
        }
        next += 1;
    }
    false
}
