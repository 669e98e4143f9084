//! Serializability and snapshot isolation by their operational meaning: is there an order of whole
//! transactions, or of snapshots and commits, in which every read returns what a database would
//! have returned? Uses no graph and no dependencies.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Order;
use isobench_isolation::history::{Key, Operation, Version};

use crate::naive::Case;
use crate::naive::explain::same;

/// The contents of a database.
#[derive(Debug, Clone, Default)]
struct State {
    /// The current version of each row written.
    rows: BTreeMap<Key, Version>,
    lists: BTreeMap<Key, Vec<i64>>,
    groups: BTreeMap<(u16, i64), BTreeSet<i64>>,
    /// The rows inserted.
    inserted: BTreeSet<Key>,
}

impl State {
    /// The initial contents: rows without an insert that every read found.
    fn initial(case: &Case<'_>, counts: &[bool]) -> State {
        let mut state = State::default();
        for operation in case.operations.iter().flatten() {
            if let Operation::ReadGroup { table, group, rows } = *operation {
                let there = rows.iter().filter(|&&id| case.is_initial_member(counts, (table, group), id));
                state.groups.entry((table, group)).or_default().extend(there);
            }
        }
        state
    }
}

/// True if some serial order compatible with the given one explains the history.
pub fn serializable(case: &Case<'_>, order: Order) -> bool {
    case.choices().iter().any(|counts| {
        let search = Search { case, counts, order, lowest: lowest(case) };
        search.place(&mut vec![false; case.len()], &State::initial(case, counts))
    })
}

/// True if some order of snapshots and commits explains it, where the first committer wins.
pub fn snapshot_isolated(case: &Case<'_>, order: Order) -> bool {
    case.choices().iter().any(|counts| {
        let search = Search { case, counts, order, lowest: lowest(case) };
        search.step(&mut vec![Phase::Waiting; case.len()], &State::initial(case, counts))
    })
}

/// For each row the lowest counter written; that of the initial version is one less.
fn lowest(case: &Case<'_>) -> BTreeMap<Key, u64> {
    let mut lowest = BTreeMap::new();
    for operation in case.operations.iter().flatten() {
        if let Operation::Write { key, version: Version { counter: Some(counter), .. } } = *operation {
            let so_far = lowest.entry(key).or_insert(counter);
            *so_far = counter.min(*so_far);
        }
    }
    lowest
}

struct Search<'c> {
    case: &'c Case<'c>,
    counts: &'c [bool],
    order: Order,
    lowest: BTreeMap<Key, u64>,
}

/// The state of a transaction in the search for snapshot isolation.
#[derive(Debug, Clone)]
enum Phase {
    Waiting,
    /// It has its snapshot, and the rows that others have written since.
    Running(BTreeSet<Key>),
    Done,
}

impl Search<'_> {
    /// Appends another transaction to those placed so far.
    fn place(&self, placed: &mut Vec<bool>, state: &State) -> bool {
        let open: Vec<_> = (0..placed.len()).filter(|&it| self.counts[it] && !placed[it]).collect();
        if open.is_empty() {
            return true;
        }
        for &next in &open {
            if open.iter().any(|&other| self.case.precedes(other, next, self.order).is_some()) {
                continue;
            }
            let mut after = state.clone();
            if self.run(next, &mut after).is_some() {
                placed[next] = true;
                if self.place(placed, &after) {
                    return true;
                }
                placed[next] = false;
            }
        }
        false
    }

    /// Takes another snapshot, or commits another transaction.
    fn step(&self, phases: &mut Vec<Phase>, state: &State) -> bool {
        let left: Vec<_> =
            (0..phases.len()).filter(|&it| self.counts[it] && !matches!(phases[it], Phase::Done)).collect();
        if left.is_empty() {
            return true;
        }
        for &next in &left {
            let before = phases.clone();
            let mut after = state.clone();
            let possible = match &before[next] {
                Phase::Waiting => {
                    phases[next] = Phase::Running(BTreeSet::new());
                    let first = !left.iter().any(|&it| self.case.precedes(it, next, self.order).is_some());
                    first && self.run(next, &mut after.clone()).is_some()
                }
                Phase::Running(written) => match self.commit(next, &mut after) {
                    Some(writes) if writes.is_disjoint(written) => {
                        phases[next] = Phase::Done;
                        for phase in phases.iter_mut() {
                            if let Phase::Running(written) = phase {
                                written.extend(&writes);
                            }
                        }
                        true
                    }
                    _ => false,
                },
                Phase::Done => false,
            };
            if possible && self.step(phases, &after) {
                return true;
            }
            *phases = before;
        }
        false
    }

    /// Applies the writes to the current state, in which no other transaction has changed these
    /// rows since the snapshot.
    fn commit(&self, transaction: usize, state: &mut State) -> Option<BTreeSet<Key>> {
        for operation in &self.case.operations[transaction] {
            if !matches!(
                operation,
                Operation::Read { .. } | Operation::ReadList { .. } | Operation::ReadGroup { .. }
            ) {
                self.apply(operation, state).then_some(())?;
            }
        }
        Some(self.written(transaction))
    }

    fn written(&self, transaction: usize) -> BTreeSet<Key> {
        let row = |operation: &Operation<'_>| match *operation {
            Operation::Write { key, .. } | Operation::Append { key, .. } | Operation::Insert { key, .. } => {
                Some(key)
            }
            _ => None,
        };
        self.case.operations[transaction].iter().filter_map(row).collect()
    }

    /// Executes a whole transaction; `None` if a read would have returned something else.
    fn run(&self, transaction: usize, state: &mut State) -> Option<()> {
        let operations = &self.case.operations[transaction];
        operations.iter().all(|operation| self.apply(operation, state)).then_some(())
    }

    fn apply(&self, operation: &Operation<'_>, state: &mut State) -> bool {
        match *operation {
            Operation::Read { key, version } => match state.rows.get(&key) {
                Some(current) => version != Version::INITIAL && same(version, *current),
                None => self.is_initial(key, version),
            },
            Operation::Write { key, version } => {
                let expected = match state.rows.get(&key) {
                    Some(current) => current.counter.map(|counter| counter + 1),
                    None => self.lowest.get(&key).copied(),
                };
                let fits = version.counter.is_none() || expected.is_none() || version.counter == expected;
                state.rows.insert(key, version);
                fits
            }
            Operation::Insert { key, group } => {
                state.groups.entry((key.table, group)).or_default().insert(key.id);
                state.inserted.insert(key)
            }
            Operation::Append { key, element } => {
                state.lists.entry(key).or_default().push(element);
                true
            }
            Operation::ReadList { key, elements } => {
                state.lists.get(&key).map_or(elements.is_empty(), |list| list == elements)
            }
            Operation::ReadGroup { table, group, rows } => {
                let rows: BTreeSet<_> = rows.iter().copied().collect();
                state.groups.get(&(table, group)).map_or(rows.is_empty(), |held| *held == rows)
            }
            Operation::Missed { key, after, before } => {
                let current = state.rows.get(&key).and_then(|version| version.counter);
                after.is_none_or(|after| current >= Some(after))
                    && before.is_none_or(|before| current < Some(before))
            }
        }
    }

    fn is_initial(&self, key: Key, version: Version) -> bool {
        let Version { counter, value } = version;
        if self.case.is_of_another_counter(key, version) {
            return false;
        }
        match (counter, self.lowest.get(&key)) {
            (None, _) => value.is_none(),
            (Some(counter), Some(lowest)) => counter.checked_add(1) == Some(*lowest),
            (Some(_), None) => self.case.writers_of(key, version).is_empty(),
        }
    }
}
