//! Defects that can be planted in the simulated database, whether they took effect, and what the
//! checker must report.

use std::collections::BTreeSet;

use isobench_isolation::check::Report;
use isobench_isolation::history::{Key, Operation, Transaction, TransactionOutcome};
use isobench_isolation::{Anomaly, Guarantee, Model, Order};

use super::clients::{Run, Workload};
use super::database::{Content, Effect, Level};

use Anomaly as A;
use Workload::{Counters, CountersOnly, Groups, Lists, Mixed, Values};

/// A random defect of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// A read at read committed sees an uncommitted version.
    DirtyRead,
    /// A write doesn't wait for the row's lock.
    DirtyWrite,
    /// A write under snapshot isolation overwrites a version missing from its snapshot.
    LostUpdate,
    /// A snapshot is older than the transaction.
    StaleSnapshot,
    /// A snapshot lacks a transaction (and its consequences), but has later ones.
    LongFork,
    /// The certifier forgets some dependencies.
    MissingEdge,
    /// A commit becomes visible in two parts.
    TornCommit,
    /// A transaction that committed is reported as failed.
    FailedThatCommitted,
    /// A transaction that failed is reported as committed.
    CommittedThatFailed,
    /// Predicates are neither locked nor certified.
    PhantomIgnored,
    /// A transaction doesn't see its own write.
    OwnWriteOverlooked,
    /// An element is appended twice.
    AppendedTwice,
    /// A read returns an unwritten version.
    Garbage,
}

/// A defect, where it is planted, and what must be found.
pub struct Planted {
    pub defect: Defect,
    pub level: Level,
    pub workloads: &'static [Workload],
    /// One of these must be found.
    pub expected: &'static [Anomaly],
    /// The guarantee that the report must contradict.
    pub contradicted: Guarantee,
    /// The guarantee that the database still provides.
    pub kept: Option<Guarantee>,
    /// The number of seeds of each workload that show it often enough.
    pub seeds: u64,
}

const fn guarantee(model: Model, order: Order) -> Guarantee {
    Guarantee { model, order }
}

/// All defects.
pub const CASES: [Planted; 14] = [
    Planted {
        defect: Defect::DirtyRead,
        level: Level::ReadCommitted,
        workloads: &[Counters, Values, Lists, Groups, Mixed],
        expected: &[A::G1a],
        contradicted: Guarantee::of(Model::ReadCommitted),
        kept: Some(guarantee(Model::ReadUncommitted, Order::RealTime)),
        seeds: 30,
    },
    Planted {
        defect: Defect::DirtyWrite,
        level: Level::ReadUncommitted,
        workloads: &[Counters, CountersOnly],
        expected: &[A::G0],
        contradicted: Guarantee::of(Model::ReadUncommitted),
        kept: None,
        seeds: 100,
    },
    Planted {
        defect: Defect::LostUpdate,
        level: Level::Snapshot,
        workloads: &[Counters, Lists, Mixed],
        expected: &[A::LostUpdate],
        contradicted: Guarantee::of(Model::ConsistentView),
        kept: Some(Guarantee::of(Model::ReadCommitted)),
        seeds: 30,
    },
    Planted {
        defect: Defect::StaleSnapshot,
        level: Level::Snapshot,
        workloads: &[Counters, CountersOnly, Lists, Groups, Mixed],
        expected: &[
            A::GSingle,
            A::GSinglePredicate,
            A::LostUpdate,
            A::GNonadjacent,
            A::GNonadjacentPredicate,
        ],
        contradicted: guarantee(Model::SnapshotIsolation, Order::RealTime),
        kept: Some(Guarantee::of(Model::SnapshotIsolation)),
        seeds: 30,
    },
    Planted {
        defect: Defect::LongFork,
        level: Level::Snapshot,
        workloads: &[Counters, CountersOnly, Groups, Mixed],
        expected: &[A::GNonadjacent, A::GNonadjacentPredicate],
        contradicted: Guarantee::of(Model::SnapshotIsolation),
        kept: Some(Guarantee::of(Model::ConsistentView)),
        seeds: 80,
    },
    Planted {
        defect: Defect::MissingEdge,
        level: Level::Certified,
        workloads: &[Counters, CountersOnly, Groups, Mixed],
        expected: &[A::G2Item, A::G2],
        contradicted: Guarantee::of(Model::Serializable),
        kept: Some(guarantee(Model::SnapshotIsolation, Order::RealTime)),
        seeds: 30,
    },
    Planted {
        defect: Defect::TornCommit,
        level: Level::Snapshot,
        workloads: &[Counters, CountersOnly, Groups, Mixed],
        expected: &[A::GSingle, A::GSinglePredicate, A::LostUpdate],
        contradicted: Guarantee::of(Model::ConsistentView),
        kept: Some(guarantee(Model::ReadCommitted, Order::RealTime)),
        seeds: 60,
    },
    Planted {
        defect: Defect::FailedThatCommitted,
        level: Level::Locked,
        workloads: &[Counters, Values, Lists, Groups, Mixed],
        expected: &[A::G1a, A::DirtyUpdate],
        contradicted: Guarantee::of(Model::ReadCommitted),
        kept: Some(guarantee(Model::ReadUncommitted, Order::RealTime)),
        seeds: 30,
    },
    Planted {
        defect: Defect::CommittedThatFailed,
        level: Level::Locked,
        workloads: &[Counters, CountersOnly, Lists, Groups, Mixed],
        expected: &[
            A::IncompatibleOrder,
            A::G0,
            A::G1c,
            A::GSingle,
            A::GSinglePredicate,
            A::LostUpdate,
            A::GNonadjacent,
            A::GNonadjacentPredicate,
            A::G2Item,
            A::G2,
        ],
        contradicted: guarantee(Model::Serializable, Order::RealTime),
        kept: None,
        seeds: 30,
    },
    Planted {
        defect: Defect::PhantomIgnored,
        level: Level::Certified,
        workloads: &[Groups, Mixed],
        expected: &[A::G2],
        contradicted: Guarantee::of(Model::Serializable),
        kept: Some(guarantee(Model::SnapshotIsolation, Order::RealTime)),
        seeds: 30,
    },
    Planted {
        defect: Defect::PhantomIgnored,
        level: Level::Locked,
        workloads: &[Groups, Mixed],
        expected: &[A::GSinglePredicate, A::GNonadjacentPredicate, A::G2],
        contradicted: Guarantee::of(Model::Serializable),
        kept: Some(guarantee(Model::RepeatableRead, Order::RealTime)),
        seeds: 30,
    },
    Planted {
        defect: Defect::OwnWriteOverlooked,
        level: Level::Locked,
        workloads: &[Counters, CountersOnly, Values, Lists, Groups],
        expected: &[A::Internal],
        contradicted: Guarantee::of(Model::ReadUncommitted),
        kept: None,
        seeds: 30,
    },
    Planted {
        defect: Defect::AppendedTwice,
        level: Level::Locked,
        workloads: &[Lists, Mixed],
        expected: &[A::DuplicateWrite],
        contradicted: Guarantee::of(Model::ReadUncommitted),
        kept: None,
        seeds: 30,
    },
    Planted {
        defect: Defect::Garbage,
        level: Level::Locked,
        workloads: &[Counters, Values],
        expected: &[A::GarbageRead],
        contradicted: Guarantee::of(Model::ReadUncommitted),
        kept: None,
        seeds: 30,
    },
];

impl Defect {
    /// The percentage of opportunities at which it occurs.
    pub fn frequency(self) -> u8 {
        match self {
            Defect::DirtyRead | Defect::DirtyWrite | Defect::LostUpdate => 60,
            Defect::StaleSnapshot | Defect::LongFork | Defect::TornCommit => 40,
            _ => 12,
        }
    }
}

impl Planted {
    /// True if the report names the defect.
    pub fn caught(&self, report: &Report) -> bool {
        report.findings.iter().any(|finding| self.expected.contains(&finding.anomaly))
            && report.findings.iter().any(|finding| finding.contradicts(self.contradicted))
    }
}

impl Run {
    fn transaction(&self, tx: usize) -> Option<&Transaction> {
        self.places[tx].map(|place| &self.history.transactions()[place])
    }

    /// True if the server reported to the client that the transaction committed.
    fn committed(&self, tx: usize) -> bool {
        self.transaction(tx).is_some_and(|it| it.outcome == TransactionOutcome::Committed)
    }

    fn all_committed(&self) -> Vec<usize> {
        (0..self.places.len()).filter(|&tx| self.committed(tx)).collect()
    }

    /// True if one transaction had ended before the other started.
    fn precedes(&self, one: usize, other: usize) -> bool {
        match (self.transaction(one), self.transaction(other)) {
            (Some(one), Some(other)) => one.end < other.begin,
            _ => false,
        }
    }

    /// The transactions whose versions a transaction read.
    fn saw(&self, reader: usize) -> BTreeSet<usize> {
        let tx = &self.database.txs[reader];
        let rows = tx.reads.iter().filter_map(|read| read.1);
        let members = tx.group_reads.iter().flat_map(|(table, _, rows)| {
            rows.iter().filter_map(|&id| {
                let key = Key { table: *table, id };
                self.database.rows.get(&key).map(|versions| versions[0].writer)
            })
        });
        rows.chain(members).filter(|&writer| writer != reader).collect()
    }

    /// The transactions before which a transaction read a row.
    fn missed(&self, reader: usize) -> BTreeSet<usize> {
        let tx = &self.database.txs[reader];
        let mut missed: BTreeSet<usize> =
            tx.reads.iter().flat_map(|&(key, writer)| self.database.overwriters(key, writer)).collect();
        for (table, group, seen) in &tx.group_reads {
            for (key, versions) in &self.database.rows {
                let member = versions[0].content == Content::Member(*group);
                if key.table == *table && member && !seen.contains(&key.id) {
                    missed.insert(versions[0].writer);
                }
            }
        }
        missed.remove(&reader);
        missed
    }

    /// True if the effect of the defect is visible in the history.
    pub fn shows(&self, defect: Defect) -> bool {
        let counts = |tx: usize| self.committed(tx);
        let committed = self.all_committed();
        let any = |shows: &dyn Fn(&Effect) -> bool| self.database.effects.iter().any(shows);
        match defect {
            Defect::DirtyRead => any(&|effect| match *effect {
                Effect::DirtyRead { reader, writer } => counts(reader) && !counts(writer),
                _ => false,
            }),
            Defect::DirtyWrite => self.database.has_write_cycle(&counts),
            Defect::LostUpdate => any(&|effect| match *effect {
                Effect::LostUpdate { writer, lost, visible } => visible && counts(writer) && counts(lost),
                _ => false,
            }),
            Defect::StaleSnapshot => committed.iter().any(|&reader| {
                self.missed(reader).into_iter().any(|writer| counts(writer) && self.precedes(writer, reader))
            }),
            Defect::LongFork => committed.iter().any(|&one| self.is_forked(one, &committed)),
            Defect::MissingEdge | Defect::PhantomIgnored => self.database.has_cycle(&counts),
            Defect::TornCommit => committed.iter().any(|&reader| {
                self.saw(reader).intersection(&self.missed(reader)).any(|&writer| counts(writer))
            }),
            Defect::FailedThatCommitted => {
                committed.iter().any(|&reader| self.saw(reader).into_iter().any(|writer| !counts(writer)))
            }
            Defect::CommittedThatFailed => self.vanished(),
            Defect::OwnWriteOverlooked | Defect::Garbage => any(&|effect| match *effect {
                Effect::Nonsense { reader } => counts(reader),
                _ => false,
            }),
            Defect::AppendedTwice => any(&|effect| match *effect {
                Effect::Twice { key, element } => committed.iter().any(|&reader| {
                    let operations: Vec<_> = self.places[reader]
                        .map(|place| self.history.operations(place).collect())
                        .unwrap_or_default();
                    !operations.contains(&Operation::Append { key, element })
                        && operations.iter().any(|operation| match *operation {
                            Operation::ReadList { key: row, elements } => {
                                row == key && elements.contains(&element)
                            }
                            _ => false,
                        })
                }),
                _ => false,
            }),
        }
    }

    /// True if another reader saw what this one missed, and missed what it saw.
    fn is_forked(&self, one: usize, committed: &[usize]) -> bool {
        let relevant = |txs: BTreeSet<usize>| -> BTreeSet<usize> {
            txs.into_iter().filter(|&tx| self.committed(tx)).collect()
        };
        let (saw, missed) = (relevant(self.saw(one)), relevant(self.missed(one)));
        committed.iter().any(|&other| {
            let (other_saw, other_missed) = (self.saw(other), self.missed(other));
            other != one && !saw.is_disjoint(&other_missed) && !missed.is_disjoint(&other_saw)
        })
    }

    /// True if a transaction reported as committed was missing from a read that started after its
    /// end.
    fn vanished(&self) -> bool {
        let gone = |tx: &usize| !self.database.txs[*tx].committed;
        let all = self.all_committed();
        all.iter().filter(|tx| gone(tx)).any(|&tx| {
            let its = &self.database.txs[tx];
            all.iter().filter(|&&reader| self.precedes(tx, reader)).any(|&reader| {
                let reader = &self.database.txs[reader];
                let rows = reader.reads.iter().any(|read| its.written.contains(&read.0));
                let groups = reader.group_reads.iter().any(|read| {
                    its.draft.iter().any(|operation| match operation {
                        Operation::Insert { key, group } => (key.table, group) == (read.0, read.1),
                        _ => false,
                    })
                });
                rows || groups
            })
        })
    }
}
