//! All schedules that PostgreSQL may execute of given transactions at given levels, if none of them is
//! rolled back.
//!
//! The model of the three levels: a row's lock is held to the end, and who needs a conflicting one waits
//! (another schedule). Read committed sees what was committed before each statement, and rows under
//! their locks as they are. Repeatable read and serializable see what was committed before their first
//! statement, and fail if a row that they lock was changed since. Serializable transactions fail if two
//! consecutive anti-dependencies, by rows, among concurrent ones end in the one that commits first.

use isobench_isolation::Level;
use isobench_robustness::Strength;

/// An operation on one row, or on a group of rows that are only inserted and searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// The row, or the group.
    pub row: u8,
    /// It is of a group.
    pub group: bool,
    /// The columns that it reads, as bits.
    pub reads: u8,
    /// The columns that it writes, as bits.
    pub writes: u8,
    /// The lock that it takes.
    pub lock: Option<Strength>,
    /// It is of the same statement as the one before.
    pub joined: bool,
    /// It sees the newest data at every level, and serializable transactions don't watch it.
    pub newest: bool,
}

pub type Tx = Vec<Op>;

/// What happens at an instant: the snapshot of the transaction, operations, or the end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Snapshot,
    Operations(std::ops::Range<usize>),
    Commit,
}

/// The events of a transaction: the plain reads of a statement are at one instant.
fn events(tx: &Tx, level: Level) -> Vec<Event> {
    let mut events = Vec::new();
    if level > Level::ReadCommitted {
        events.push(Event::Snapshot);
    }
    let mut start = 0;
    while start < tx.len() {
        let plain = |op: &Op| op.lock.is_none() && !op.newest;
        let mut end = start + 1;
        while end < tx.len() && tx[end].joined && plain(&tx[start]) && plain(&tx[end]) {
            end += 1;
        }
        events.push(Event::Operations(start..end));
        start = end;
    }
    events.push(Event::Commit);
    events
}

struct Execution<'t> {
    txs: &'t [Tx],
    levels: &'t [Level],
    events: Vec<Vec<Event>>,
    /// The number of events of each that have happened.
    done: Vec<usize>,
    /// When each operation happened.
    at: Vec<Vec<usize>>,
    snapshot: Vec<usize>,
    commit: Vec<Option<usize>>,
    clock: usize,
}

/// True if every schedule that may be executed is serializable.
pub fn is_robust(txs: &[Tx], levels: &[Level]) -> bool {
    let events = txs.iter().zip(levels).map(|(tx, level)| events(tx, *level)).collect();
    let mut execution = Execution {
        txs,
        levels,
        events,
        done: vec![0; txs.len()],
        at: txs.iter().map(|tx| vec![0; tx.len()]).collect(),
        snapshot: vec![0; txs.len()],
        commit: vec![None; txs.len()],
        clock: 0,
    };
    execution.all_serializable()
}

impl Execution<'_> {
    fn all_serializable(&mut self) -> bool {
        if self.commit.iter().all(Option::is_some) {
            return !self.is_permitted() || self.is_serializable();
        }
        for tx in 0..self.txs.len() {
            let Some(event) = self.events[tx].get(self.done[tx]).cloned() else { continue };
            if let Event::Operations(range) = &event
                && !range.clone().all(|op| self.may_run(tx, self.txs[tx][op]))
            {
                continue;
            }
            self.clock += 1;
            self.done[tx] += 1;
            match &event {
                Event::Snapshot => self.snapshot[tx] = self.clock,
                Event::Operations(range) => range.clone().for_each(|op| self.at[tx][op] = self.clock),
                Event::Commit => self.commit[tx] = Some(self.clock),
            }
            let serializable = self.all_serializable();
            if event == Event::Commit {
                self.commit[tx] = None;
            }
            self.done[tx] -= 1;
            self.clock -= 1;
            if !serializable {
                return false;
            }
        }
        true
    }

    /// The number of operations that a transaction has executed.
    fn executed(&self, tx: usize) -> usize {
        let events = &self.events[tx][..self.done[tx]];
        let ends = events.iter().filter_map(|event| match event {
            Event::Operations(range) => Some(range.end),
            _ => None,
        });
        ends.max().unwrap_or(0)
    }

    /// True if an operation neither waits nor fails.
    fn may_run(&self, tx: usize, op: Op) -> bool {
        let Some(lock) = op.lock else { return true };
        (0..self.txs.len()).filter(|other| *other != tx).all(|other| {
            let executed = &self.txs[other][..self.executed(other)];
            let mut conflicting = executed.iter().filter(|own| {
                (own.row, own.group) == (op.row, op.group) && own.lock.is_some_and(|own| own.conflicts(lock))
            });
            match self.commit[other] {
                None => conflicting.next().is_none(),
                Some(commit) => {
                    let snapshot = self.levels[tx] > Level::ReadCommitted && !op.newest;
                    let newer = snapshot && commit > self.snapshot[tx];
                    !newer || !conflicting.any(|own| own.writes != 0)
                }
            }
        })
    }

    /// When a transaction sees what an operation reads.
    fn seen_at(&self, tx: usize, op: usize) -> usize {
        let snapshot = self.levels[tx] > Level::ReadCommitted && !self.txs[tx][op].newest;
        if snapshot { self.snapshot[tx] } else { self.at[tx][op] }
    }

    fn committed(&self, tx: usize) -> usize {
        self.commit[tx].unwrap_or(usize::MAX)
    }

    /// For each pair of transactions, whether a condition holds of operations on the same row.
    fn pairs(&self, holds: impl Fn((usize, usize, Op), (usize, Op)) -> bool) -> Vec<Vec<bool>> {
        let count = self.txs.len();
        let pair = |one: usize, other: usize| {
            one != other
                && self.txs[one].iter().enumerate().any(|(place, op)| {
                    self.txs[other].iter().any(|with| {
                        (op.row, op.group) == (with.row, with.group)
                            && holds((one, place, *op), (other, *with))
                    })
                })
        };
        (0..count).map(|one| (0..count).map(|other| pair(one, other)).collect()).collect()
    }

    /// True if the rules for serializable transactions let all commit.
    fn is_permitted(&self) -> bool {
        let anti = self.pairs(|(one, place, op), (other, with)| {
            !op.newest
                && (op.reads != 0 || op.lock.is_some() && op.writes == 0)
                && with.writes != 0
                && self.committed(other) > self.seen_at(one, place)
        });
        let serializable: Vec<usize> =
            (0..self.txs.len()).filter(|tx| self.levels[*tx] == Level::Serializable).collect();
        let concurrent = |one: usize, other: usize| {
            self.snapshot[one] < self.committed(other) && self.snapshot[other] < self.committed(one)
        };
        let follows = |one: usize, other: usize| one != other && anti[one][other] && concurrent(one, other);
        !serializable.iter().any(|pivot| {
            serializable.iter().filter(|one| follows(**one, *pivot)).any(|one| {
                serializable.iter().filter(|other| follows(*pivot, **other)).any(|other| {
                    let first = self.committed(*other);
                    let reads_only = self.txs[*one].iter().all(|op| op.writes == 0);
                    first <= self.committed(*one)
                        && first < self.committed(*pivot)
                        && (!reads_only || first < self.snapshot[*one])
                })
            })
        })
    }

    fn is_serializable(&self) -> bool {
        let before = self.pairs(|(one, place, op), (other, with)| {
            let overwrites = op.writes & with.writes != 0 && !op.group;
            overwrites && self.committed(one) < self.committed(other)
                || op.reads & with.writes != 0 && self.committed(other) > self.seen_at(one, place)
        });
        let seen = self.pairs(|(one, place, op), (other, with)| {
            op.reads & with.writes != 0 && self.committed(other) < self.seen_at(one, place)
        });
        let count = self.txs.len();
        let mut reaches: Vec<Vec<bool>> = (0..count)
            .map(|one| (0..count).map(|other| before[one][other] || seen[other][one]).collect())
            .collect();
        for middle in 0..count {
            for from in 0..count {
                for to in 0..count {
                    reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
                }
            }
        }
        !(0..count).any(|tx| reaches[tx][tx])
    }
}
