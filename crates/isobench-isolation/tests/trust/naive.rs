//! The definitions of Adya (1999) and of Cerone and Gotsman (2018), implemented naively: all
//! version orders, all simple cycles.
//!
//! Slow, short, and independent of the checker's implementation. Only for histories of a handful of
//! transactions (`judge`), or for single facts about larger ones (`explain`).
//!
//! | file | holds |
//! |---|---|
//! | `naive` | the parsed history: committed transactions, precedence, possible version orders |
//! | `naive/explain` | the version that each read refers to, and the resulting dependencies |
//! | `naive/cycles` | all simple cycles, and the models that each of them contradicts |
//! | `naive/closure` | the same by reachability, for larger histories |
//! | `naive/judge` | the guarantees that the history permits |

pub mod closure;
pub mod cycles;
pub mod explain;
pub mod judge;

use std::collections::BTreeMap;

use isobench_isolation::History;
use isobench_isolation::Order;
use isobench_isolation::check::Dependency;
use isobench_isolation::history::{Key, Operation, TransactionOutcome};

/// A history, with its operations in lists.
pub struct Case<'h> {
    pub history: &'h History,
    pub operations: Vec<Vec<Operation<'h>>>,
    /// The transaction that appended each element to each list.
    appenders: BTreeMap<(Key, i64), usize>,
}

/// For each row, the transactions that wrote its versions, in version order.
pub type VersionOrders = BTreeMap<Key, Vec<usize>>;

/// The writers of a row, as far as counters or the lists read show their order.
#[derive(Debug, Clone)]
pub struct KnownOrder {
    /// Those whose order is known.
    pub first: Vec<usize>,
    /// Those that follow in an unknown order.
    pub rest: Vec<usize>,
}

impl<'h> Case<'h> {
    pub fn new(history: &'h History) -> Case<'h> {
        let operations: Vec<Vec<_>> =
            (0..history.transactions().len()).map(|index| history.operations(index).collect()).collect();
        let mut appenders = BTreeMap::new();
        for (writer, operations) in operations.iter().enumerate() {
            for operation in operations {
                if let Operation::Append { key, element } = *operation {
                    appenders.entry((key, element)).or_insert(writer);
                }
            }
        }
        Case { history, operations, appenders }
    }

    pub fn len(&self) -> usize {
        self.operations.len()
    }

    pub fn outcome(&self, transaction: usize) -> TransactionOutcome {
        self.history.transactions()[transaction].outcome
    }

    /// All choices of committed transactions: the acknowledged ones with each subset of those of
    /// unknown outcome.
    pub fn choices(&self) -> Vec<Vec<bool>> {
        let unknown: Vec<_> =
            (0..self.len()).filter(|&index| self.outcome(index) == TransactionOutcome::Unknown).collect();
        let subset = |bits: u32| {
            let mut counts: Vec<_> =
                (0..self.len()).map(|index| self.outcome(index) == TransactionOutcome::Committed).collect();
            for (place, &index) in unknown.iter().enumerate() {
                counts[index] = bits >> place & 1 == 1;
            }
            counts
        };
        (0..1 << unknown.len()).map(subset).collect()
    }

    /// The acknowledged transactions, and those of unknown outcome that these prove to be
    /// committed.
    pub fn proved(&self) -> Vec<bool> {
        let mut counts: Vec<_> =
            (0..self.len()).map(|index| self.outcome(index) == TransactionOutcome::Committed).collect();
        loop {
            let next = (0..self.len()).find(|&index| {
                !counts[index]
                    && self.outcome(index) == TransactionOutcome::Unknown
                    && self.proves(&counts, index)
            });
            match next {
                Some(index) => counts[index] = true,
                None => return counts,
            }
        }
    }

    /// True if a committed transaction read a write of `writer`, or wrote the version after it.
    fn proves(&self, counts: &[bool], writer: usize) -> bool {
        let read = (0..self.len()).filter(|&index| counts[index]).any(|reader| {
            self.operations[reader].iter().any(|operation| match *operation {
                Operation::Read { key, version } => {
                    self.writers_of(key, version).contains(&writer)
                        && !self.writers_of(key, version).iter().any(|&other| counts[other])
                }
                Operation::ReadList { key, elements } => {
                    elements.iter().any(|&element| self.appender(key, element) == Some(writer))
                }
                Operation::ReadGroup { table, group, rows } => rows.iter().any(|&id| {
                    self.operations[writer].contains(&Operation::Insert { key: Key { table, id }, group })
                }),
                _ => false,
            })
        });
        let built_upon = self.operations[writer].iter().any(|operation| match *operation {
            Operation::Write { key, version } => version.counter.is_some_and(|counter| {
                let next = self.counters(key, |index| counts[index]);
                // Of two of unknown outcome, either may be the writer.
                let others = self.counters(key, |index| {
                    index != writer && self.outcome(index) != TransactionOutcome::Aborted
                });
                next.iter().any(|&next| next.checked_sub(1) == Some(counter)) && !others.contains(&counter)
            }),
            _ => false,
        });
        read || built_upon
    }

    /// The counters that these transactions wrote to a row.
    pub fn counters(&self, key: Key, of: impl Fn(usize) -> bool) -> Vec<u64> {
        let of = |index: &usize| of(*index);
        let written = |index: usize| self.operations[index].iter();
        (0..self.len())
            .filter(of)
            .flat_map(written)
            .filter_map(|operation| match *operation {
                Operation::Write { key: row, version } if row == key => version.counter,
                _ => None,
            })
            .collect()
    }

    /// The transaction that appended this element to this list.
    pub fn appender(&self, key: Key, element: i64) -> Option<usize> {
        self.appenders.get(&(key, element)).copied()
    }

    /// The reason that one transaction must precede another, whatever they read and wrote. A
    /// transaction of unknown outcome precedes nothing, because it may be decided at any later
    /// time.
    pub fn precedes(&self, first: usize, second: usize, order: Order) -> Option<Dependency> {
        let (a, b) = (self.history.transactions()[first], self.history.transactions()[second]);
        if a.outcome == TransactionOutcome::Unknown || first == second {
            return None;
        }
        if order >= Order::Session && a.client == b.client && first < second {
            return Some(Dependency::Session);
        }
        (order == Order::RealTime && a.end < b.begin).then_some(Dependency::RealTime)
    }

    /// For each row written, all possible orders of its versions.
    pub fn possible_orders(&self, counts: &[bool]) -> BTreeMap<Key, Vec<Vec<usize>>> {
        let orders = |(key, known): (Key, KnownOrder)| {
            let rests = permutations(&known.rest).into_iter();
            (key, rests.map(|rest| known.first.iter().copied().chain(rest).collect()).collect())
        };
        self.known_orders(counts).into_iter().map(orders).collect()
    }

    /// For each row written, the known order of its versions.
    pub fn known_orders(&self, counts: &[bool]) -> BTreeMap<Key, KnownOrder> {
        let mut rows: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for writer in (0..self.len()).filter(|&index| counts[index]) {
            for operation in &self.operations[writer] {
                if let Operation::Write { key, .. }
                | Operation::Append { key, .. }
                | Operation::Insert { key, .. } = *operation
                {
                    let writers = rows.entry(key).or_default();
                    if !writers.contains(&writer) {
                        writers.push(writer);
                    }
                }
            }
        }
        rows.into_iter().map(|(key, writers)| (key, self.order_of_row(counts, key, &writers))).collect()
    }

    fn order_of_row(&self, counts: &[bool], key: Key, writers: &[usize]) -> KnownOrder {
        let last_counter = |writer: usize| self.counters(key, |index| index == writer).last().copied();
        if writers.iter().all(|&writer| last_counter(writer).is_some()) {
            let mut first = writers.to_vec();
            first.sort_by_key(|&writer| last_counter(writer));
            return KnownOrder { first, rest: Vec::new() };
        }
        let longest = self.longest_list(counts, key);
        let place = |writer: &usize| {
            longest.iter().rposition(|&element| self.appender(key, element) == Some(*writer))
        };
        let (mut first, rest): (Vec<_>, _) = writers.iter().partition(|&writer| place(writer).is_some());
        first.sort_by_key(place);
        KnownOrder { first, rest }
    }

    /// The longest list that a committed transaction read from this row, without the elements of
    /// other transactions.
    pub fn longest_list(&self, counts: &[bool], key: Key) -> Vec<i64> {
        let mut longest = Vec::new();
        for reader in (0..self.len()).filter(|&index| counts[index]) {
            for operation in &self.operations[reader] {
                if let Operation::ReadList { key: row, elements } = *operation
                    && row == key
                {
                    let elements = self.without_aborted(counts, key, elements);
                    if elements.len() > longest.len() {
                        longest = elements;
                    }
                }
            }
        }
        longest
    }
}

/// All permutations.
pub fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (place, &first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(place);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}
