//! Which transactions are committed, including those of unknown outcome that the history proves to be.
//!
//! A transaction of unknown outcome was committed if a committed transaction read its write, or if
//! the version order requires it: a committed transaction wrote the next version of the row, and no
//! other one can have written the version before.

use rustc_hash::{FxHashMap, FxHashSet};

use super::dependencies::Node;
use super::parts::Source;
use super::rows::{Row, Rows};
use super::status::{CommitStatus, reported};
use crate::history::{History, Operation, TransactionOutcome};

/// The commit status of all transactions.
#[derive(Debug)]
pub(super) struct CommitStatuses {
    /// The status of each transaction.
    pub(super) status: Vec<CommitStatus>,
    /// The number of transactions of unknown outcome that are proved to be committed.
    pub(super) proved: u64,
    /// Those of them proved only by a read of their writes, which isn't a proof at read
    /// uncommitted.
    pub(super) only_read: FxHashSet<Node>,
}

/// Determines the status of all transactions; `whole` is true if the history has all transactions
/// and all their operations.
pub(super) fn commit_statuses<S: Source>(source: &S, whole: bool) -> Result<CommitStatuses, S::Error> {
    let transactions = &source.frame().transactions()[..source.transactions() as usize];
    let mut status: Vec<CommitStatus> = transactions.iter().map(reported).collect();
    let mut statuses = CommitStatuses { status: Vec::new(), proved: 0, only_read: FxHashSet::default() };
    if !source.unsure_rows().is_empty() {
        // Only operations on rows that they wrote can prove anything of them.
        let (history, nodes) = source.only_rows(source.unsure_rows())?;
        let local: Vec<CommitStatus> = history.transactions().iter().map(reported).collect();
        let unsure: Vec<Node> =
            (0..).zip(&local).filter(|(_, s)| **s == CommitStatus::Unsure).map(|(node, _)| node).collect();
        let rows = Rows::new(&history);
        let mut proof = Proof::new(&history, &rows, local, &unsure);
        proof.whole = whole;
        proof.examine_all();
        for node in unsure.into_iter().filter(|node| proof.status[*node as usize] == CommitStatus::Committed)
        {
            let all = nodes[node as usize];
            status[all as usize] = CommitStatus::Committed;
            statuses.proved += 1;
            if !proof.firm.contains(&node) {
                statuses.only_read.insert(all);
            }
        }
    }
    Ok(CommitStatuses { status, ..statuses })
}

struct Candidate {
    counter: u64,
    value: Option<i64>,
    transaction: Node,
}

/// The versions with counters written to a row by transactions of unknown outcome.
#[derive(Default)]
struct Counted {
    /// By counter.
    candidates: Vec<Candidate>,
    /// By counter, the committed transaction that wrote it; `None` if there are several.
    settled: FxHashMap<u64, Option<Node>>,
}

struct Proof<'a> {
    history: &'a History,
    rows: &'a Rows,
    /// True if no transaction is missing that could have written a version.
    whole: bool,
    status: Vec<CommitStatus>,
    /// By row and value, element or key: the writer, and the version's counter if it has one.
    named: FxHashMap<(u32, i64), (Node, Option<u64>)>,
    counted: FxHashMap<u32, Counted>,
    /// Rows written by transactions of unknown outcome.
    touched: Vec<u32>,
    /// The transactions to be examined.
    proved: Vec<Node>,
    /// Transactions proved by more than reads.
    firm: FxHashSet<Node>,
}

impl<'a> Proof<'a> {
    fn new(history: &'a History, rows: &'a Rows, status: Vec<CommitStatus>, unsure: &[Node]) -> Proof<'a> {
        let (named, counted) = (FxHashMap::default(), FxHashMap::default());
        let (touched, proved, firm) = (Vec::new(), Vec::new(), FxHashSet::default());
        let mut proof = Proof { history, rows, whole: true, status, named, counted, touched, proved, firm };
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

    /// Records the writes of a transaction of unknown outcome.
    fn suspect(&mut self, transaction: Node, operation: &Operation<'_>) {
        let Some(row) = self.rows.number(&Row::of(operation)) else { return };
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
            Operation::Read { .. }
            | Operation::ReadList { .. }
            | Operation::ReadGroup { .. }
            | Operation::Missed { .. } => return,
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
                if self.history.transactions()[place.transaction as usize].outcome
                    == TransactionOutcome::Committed
                {
                    let operation = self.history.operation(place.record as usize);
                    self.settle(row, place.transaction, &operation);
                }
            }
            for place in rows.places(row) {
                if self.history.transactions()[place.transaction as usize].outcome
                    == TransactionOutcome::Committed
                {
                    let operation = self.history.operation(place.record as usize);
                    self.examine(row, &operation, true);
                }
            }
        }
        while let Some(transaction) = self.proved.pop() {
            let firm = self.firm.contains(&transaction);
            for operation in self.history.operations(transaction as usize) {
                if let Some(row) = rows.number(&Row::of(&operation)) {
                    self.settle(row, transaction, &operation);
                }
            }
            for operation in self.history.operations(transaction as usize) {
                if let Some(row) = rows.number(&Row::of(&operation)) {
                    self.examine(row, &operation, firm);
                }
            }
        }
    }

    /// Records that the counter of a committed transaction's write is taken.
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

    /// Determines what a committed transaction's operation proves.
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
            Operation::Append { .. } | Operation::Insert { .. } | Operation::Missed { .. } => {}
        }
    }

    fn prove(&mut self, transaction: Node, firm: bool) {
        let status = &mut self.status[transaction as usize];
        let proved = *status == CommitStatus::Unsure;
        if proved {
            *status = CommitStatus::Committed;
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

    /// Records that a version with this counter was committed.
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

/// The transaction, if there is only one.
fn only(mut transactions: impl Iterator<Item = Node>) -> Option<Node> {
    let first = transactions.next()?;
    transactions.all(|other| other == first).then_some(first)
}
