//! Which transactions count: the committed ones, and those of unknown outcome that the history
//! proves to be committed.
//!
//! A transaction of unknown outcome is committed if a committed one read what it wrote, or if the
//! version order needs what it wrote: a committed transaction made the next version of the row, and
//! nobody else can have made the one before.

use rustc_hash::{FxHashMap, FxHashSet};

use super::dependencies::Node;
use super::rows::Rows;
use crate::history::{History, Operation, Outcome};

/// Whether a transaction counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Acknowledged, or proved.
    Committed,
    /// What it wrote must not be seen.
    Aborted,
    /// Nobody knows; left out.
    Unsure,
}

/// What is known of the transactions.
#[derive(Debug)]
pub(super) struct Standings {
    /// Of each.
    pub(super) standing: Vec<Standing>,
    /// How many of unknown outcome are proved to be committed.
    pub(super) proved: u64,
    /// Those of them of which the only proof is that somebody read what they wrote: none at read
    /// uncommitted.
    pub(super) only_read: FxHashSet<Node>,
}

/// Tells the standing of the first so many transactions; `whole` if none is missing, and nothing of
/// what they did.
pub(super) fn standings(history: &History, rows: &Rows, transactions: u32, whole: bool) -> Standings {
    let standing: Vec<Standing> = history.transactions()[..transactions as usize]
        .iter()
        .map(|transaction| match transaction.outcome {
            Outcome::Committed => Standing::Committed,
            Outcome::Aborted => Standing::Aborted,
            Outcome::Unknown => Standing::Unsure,
        })
        .collect();
    let unsure: Vec<Node> = (0..transactions).filter(|t| standing[*t as usize] == Standing::Unsure).collect();
    if unsure.is_empty() {
        return Standings { standing, proved: 0, only_read: FxHashSet::default() };
    }
    let mut proof = Proof::new(history, rows, standing, &unsure);
    proof.whole = whole;
    proof.examine_all();
    let Proof { standing, firm, .. } = proof;
    let proved: Vec<Node> =
        unsure.into_iter().filter(|node| standing[*node as usize] == Standing::Committed).collect();
    let only_read = proved.iter().copied().filter(|node| !firm.contains(node)).collect();
    Standings { standing, proved: proved.len() as u64, only_read }
}

struct Candidate {
    counter: u64,
    value: Option<i64>,
    transaction: Node,
}

/// The versions of a row with counters that transactions of unknown outcome wrote.
#[derive(Default)]
struct Counted {
    /// By counter.
    candidates: Vec<Candidate>,
    /// By counter: the committed transaction that wrote it, `None` if there are several.
    settled: FxHashMap<u64, Option<Node>>,
}

struct Proof<'a> {
    history: &'a History,
    rows: &'a Rows,
    /// True if no transaction is missing, which could have made a version.
    whole: bool,
    standing: Vec<Standing>,
    /// By row and value, element or key: who wrote it, and the version's counter, if it has one.
    named: FxHashMap<(u32, i64), (Node, Option<u64>)>,
    counted: FxHashMap<u32, Counted>,
    /// Rows that transactions of unknown outcome wrote.
    touched: Vec<u32>,
    /// To be examined.
    proved: Vec<Node>,
    /// Proved by more than reads.
    firm: FxHashSet<Node>,
}

impl<'a> Proof<'a> {
    fn new(history: &'a History, rows: &'a Rows, standing: Vec<Standing>, unsure: &[Node]) -> Proof<'a> {
        let (named, counted) = (FxHashMap::default(), FxHashMap::default());
        let (touched, proved, firm) = (Vec::new(), Vec::new(), FxHashSet::default());
        let mut proof = Proof { history, rows, whole: true, standing, named, counted, touched, proved, firm };
        for &transaction in unsure {
            for operation in history.operations(transaction as usize) {
                proof.suspect(transaction, &operation);
            }
        }
        proof.touched.sort_unstable();
        proof.touched.dedup();
        for counted in proof.counted.values_mut() {
            counted.candidates.sort_unstable_by_key(|candidate| candidate.counter);
        }
        proof
    }

    /// Takes down what a transaction of unknown outcome wrote.
    fn suspect(&mut self, transaction: Node, operation: &Operation<'_>) {
        let Some(row) = self.rows.number(operation) else { return };
        let mut known = None;
        let name = match *operation {
            Operation::Write { version, .. } => {
                known = version.counter;
                if let Some(counter) = version.counter {
                    let candidate = Candidate { counter, value: version.value, transaction };
                    self.counted.entry(row).or_default().candidates.push(candidate);
                }
                version.value
            }
            Operation::Append { element, .. } => Some(element),
            Operation::Insert { key, .. } => Some(key.id),
            Operation::Read { .. } | Operation::ReadList { .. } | Operation::ReadGroup { .. } => return,
        };
        self.touched.push(row);
        if let Some(name) = name {
            self.named.insert((row, name), (transaction, known));
        }
    }

    fn examine_all(&mut self) {
        let rows = self.rows;
        for row in std::mem::take(&mut self.touched) {
            for place in rows.places(row) {
                if self.history.transactions()[place.transaction as usize].outcome == Outcome::Committed {
                    let operation = self.history.operation(place.record as usize);
                    self.settle(row, place.transaction, &operation);
                }
            }
            for place in rows.places(row) {
                if self.history.transactions()[place.transaction as usize].outcome == Outcome::Committed {
                    let operation = self.history.operation(place.record as usize);
                    self.examine(row, &operation, true);
                }
            }
        }
        while let Some(transaction) = self.proved.pop() {
            let firm = self.firm.contains(&transaction);
            for operation in self.history.operations(transaction as usize) {
                if let Some(row) = rows.number(&operation) {
                    self.settle(row, transaction, &operation);
                }
            }
            for operation in self.history.operations(transaction as usize) {
                if let Some(row) = rows.number(&operation) {
                    self.examine(row, &operation, firm);
                }
            }
        }
    }

    /// A committed transaction's write has its counter for itself.
    fn settle(&mut self, row: u32, transaction: Node, operation: &Operation<'_>) {
        if let Operation::Write { version, .. } = operation
            && let (Some(counter), Some(counted)) = (version.counter, self.counted.get_mut(&row))
        {
            let writer = counted.settled.entry(counter).or_insert(Some(transaction));
            if *writer != Some(transaction) {
                *writer = None;
            }
        }
    }

    /// Looks for what a committed transaction's operation proves.
    fn examine(&mut self, row: u32, operation: &Operation<'_>, firm: bool) {
        match *operation {
            Operation::Read { version, .. } => {
                if let Some(value) = version.value {
                    self.seen(row, value, version.counter);
                }
                if let Some(counter) = version.counter.filter(|_| self.whole) {
                    self.at(row, counter, version.value, false);
                }
            }
            Operation::Write { version, .. } => {
                if let Some(below) = version.counter.and_then(|counter| counter.checked_sub(1))
                    && self.whole
                {
                    self.at(row, below, None, firm);
                }
            }
            Operation::ReadList { elements: names, .. } | Operation::ReadGroup { rows: names, .. } => {
                if !self.named.is_empty() {
                    for name in names {
                        self.seen(row, *name, None);
                    }
                }
            }
            Operation::Append { .. } | Operation::Insert { .. } => {}
        }
    }

    fn prove(&mut self, transaction: Node, firm: bool) {
        let standing = &mut self.standing[transaction as usize];
        let proved = *standing == Standing::Unsure;
        if proved {
            *standing = Standing::Committed;
        }
        if firm && self.firm.insert(transaction) || proved {
            self.proved.push(transaction);
        }
    }

    fn seen(&mut self, row: u32, name: i64, counter: Option<u64>) {
        if let Some(&(transaction, known)) = self.named.get(&(row, name))
            && (known.is_none() || counter.is_none() || known == counter)
        {
            self.prove(transaction, false);
        }
    }

    /// A version with this counter was committed.
    fn at(&mut self, row: u32, counter: u64, value: Option<i64>, firm: bool) {
        let Some(counted) = self.counted.get(&row) else { return };
        let first = counted.candidates.partition_point(|candidate| candidate.counter < counter);
        let group = counted.candidates[first..].iter().take_while(|candidate| candidate.counter == counter);
        let fits = group.filter(|c| c.value.is_none() || value.is_none() || c.value == value);
        if let Some(transaction) = only(fits.map(|candidate| candidate.transaction))
            && counted.settled.get(&counter).is_none_or(|writer| *writer == Some(transaction))
        {
            self.prove(transaction, firm);
        }
    }
}

/// The transaction, if it is one alone.
fn only(mut transactions: impl Iterator<Item = Node>) -> Option<Node> {
    let first = transactions.next()?;
    transactions.all(|other| other == first).then_some(first)
}
