//! The context for examining rows, and descriptions of transactions, rows and versions in messages.
//!
//! `render.rs` renders whole reports.

use std::cell::OnceCell;
use std::fmt::Write as _;

use rustc_hash::FxHashSet;

use super::dependencies::{Label, Link, Node, OperationRef};
use super::report::{Dependency, WitnessStep};
use super::status::CommitStatus;
use crate::history::{History, Key, Operation, TransactionOutcome, Version};
use crate::observed::{Dependence, Flow, StatementUse};

/// The most steps of a witness that are explained. Longer proofs are hardly readable, and for each
/// step whole rows are examined.
pub(super) const MOST_EXPLAINED: usize = 64;

/// A history with the commit status of its transactions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'h> {
    pub(super) history: &'h History,
    pub(super) status: &'h [CommitStatus],
    /// True if the history has all executed transactions, so that a read of an unwritten version is
    /// significant.
    pub(super) complete: bool,
    /// See [`super::Options::vouched`].
    pub(super) vouched: bool,
    /// True to take unwritten values that were read first for initial ones, in a history that isn't
    /// vouched for.
    pub(super) assume: bool,
    pub(super) inserts: &'h OnceCell<Inserted>,
}

/// The rows inserted into any group, by table and key.
pub(super) type Inserted = FxHashSet<(u16, i64)>;

impl<'h> Context<'h> {
    /// True if the history has all executed transactions, and is vouched for, so that unwritten versions
    /// don't exist.
    pub(super) fn whole(&self) -> bool {
        self.complete && self.vouched
    }

    /// True if the history was observed: then equal counters of different transactions mean that
    /// the order of their versions is unknown.
    pub(super) fn observed(&self) -> bool {
        self.history.provenance().is_some()
    }

    /// True if what a transaction wrote depends on what it read, as far as is known: as a lost update
    /// requires (Berenson et al. 1995, P4: the update is based on the earlier read).
    pub(super) fn depends(&self, write: OperationRef, read: OperationRef) -> bool {
        let Some(((_, known), write)) = self.use_of(read).zip(self.statement(write)) else { return true };
        let value = |flow: &Flow| flow.statement == write && flow.how == Dependence::Value;
        known.into.iter().chain(&known.carried).any(value)
    }

    /// The columns that a read uses; `None` if it may use any, or that isn't known.
    pub(super) fn used(&self, read: OperationRef) -> Option<&'h [u16]> {
        self.use_of(read)?.1.uses.as_deref()
    }

    /// The columns that a write changes; `None` if it may change any, or that isn't known.
    pub(super) fn changed(&self, write: OperationRef) -> Option<&'h [u16]> {
        self.use_of(write)?.1.changes.as_deref()
    }

    /// The statement of an operation with what its script does with the result, in a history that is judged by
    /// use.
    fn use_of(&self, read: OperationRef) -> Option<(u16, &'h StatementUse)> {
        let provenance = self.history.provenance().filter(|provenance| provenance.by_use)?;
        let statement = self.statement(read)?;
        Some((statement, provenance.usage.get(usize::from(statement))?))
    }

    /// The number of the statement of an operation, if it is observed.
    pub(super) fn statement(&self, place: OperationRef) -> Option<u16> {
        self.history.statement_number(place.record as usize)
    }

    pub(super) fn operation(&self, place: OperationRef) -> Operation<'h> {
        self.history.operation(place.record as usize)
    }

    /// The rows inserted by any transaction; computed only for histories that are wrong or have
    /// initial rows.
    pub(super) fn inserted(&self) -> &'h Inserted {
        self.inserts.get_or_init(|| {
            let all = (0..self.status.len()).flat_map(|transaction| self.history.operations(transaction));
            let inserts = all.filter_map(|operation| match operation {
                Operation::Insert { key, .. } => Some((key.table, key.id)),
                _ => None,
            });
            inserts.collect()
        })
    }

    pub(super) fn status(&self, transaction: Node) -> CommitStatus {
        self.status[transaction as usize]
    }

    pub(super) fn counts(&self, transaction: Node) -> bool {
        self.status(transaction) == CommitStatus::Committed
    }

    /// True if the server reported that the transaction was committed.
    pub(super) fn acknowledged(&self, transaction: Node) -> bool {
        self.history.transactions()[transaction as usize].outcome == TransactionOutcome::Committed
    }

    /// The step of a cycle, proved by two operations.
    pub(super) fn step(&self, from: OperationRef, to: OperationRef, label: Label) -> WitnessStep {
        let why = self.why(from, to, label);
        WitnessStep {
            from: from.transaction as usize,
            to: to.transaction as usize,
            dependency: label.dependency(),
            why,
            statements: self.statements([from, to]),
        }
    }

    /// The SQL statements of operations, as far as they are known.
    pub(super) fn statements(&self, places: [OperationRef; 2]) -> Vec<String> {
        let statement = |place: OperationRef| self.history.statement(place.record as usize);
        places.into_iter().filter_map(statement).map(str::to_owned).collect()
    }

    fn why(&self, from: OperationRef, to: OperationRef, label: Label) -> String {
        let (a, b) =
            (name(self.history, from.transaction as usize), name(self.history, to.transaction as usize));
        let (first, second) = (self.operation(from), self.operation(to));
        let done = deed(self.history, &first);
        match label.dependency() {
            Some(Dependency::WriteRead) => match second {
                Operation::ReadGroup { .. } | Operation::ReadList { .. } => {
                    format!("{a} {done}, and {b} {}", deed(self.history, &second))
                }
                Operation::Missed { .. } => {
                    format!("{a} {done}, and {b} {} any more", deed(self.history, &second))
                }
                _ => format!("{a} {done}, and {b} read it"),
            },
            Some(Dependency::WriteWrite) => match second {
                Operation::Write { key, version } if row_key(&first) == Some(key) => {
                    format!("{a} {done}, and {b} wrote {} after it", version_name(self.history, version))
                }
                Operation::Append { element, .. } => {
                    format!("{a} {done}, and {b} appended {element} after it")
                }
                _ => format!("{a} {done}, and {b} {} after it", deed(self.history, &second)),
            },
            Some(Dependency::PredicateReadWrite) => {
                format!("{a} {done}, and {b} {}, which it did not see", deed(self.history, &second))
            }
            _ => match second {
                Operation::Write { version, .. } => {
                    format!("{a} {done}, and {b} wrote {}", version_name(self.history, version))
                }
                Operation::Append { element, .. } => format!("{a} {done}, and {b} appended {element} later"),
                _ => format!("{a} {done}, and {b} {}", deed(self.history, &second)),
            },
        }
    }

    /// A transaction's name in messages.
    pub(super) fn name(&self, transaction: Node) -> String {
        name(self.history, transaction as usize)
    }

    /// A description of an operation.
    pub(super) fn deed(&self, place: OperationRef) -> String {
        deed(self.history, &self.operation(place))
    }
}

/// A fact that isn't an edge of a cycle.
pub(super) fn fact(from: Node, to: Node, why: String) -> WitnessStep {
    WitnessStep { from: from as usize, to: to as usize, dependency: None, why, statements: Vec::new() }
}

/// The step of a cycle without its proof.
pub(super) fn brief(history: &History, link: Link) -> WitnessStep {
    let (from, to) = (link.from as usize, link.to as usize);
    let why = format!("{} comes before {}", name(history, from), name(history, to));
    WitnessStep { from, to, dependency: link.label.dependency(), why, statements: Vec::new() }
}

/// A transaction's name in messages: "T12 (client 3)"; with its modes where levels differ.
pub(super) fn name(history: &History, transaction: usize) -> String {
    let transaction = &history.transactions()[transaction];
    if let Some(mode) = transaction.mode.filter(|_| history.has_several_levels()) {
        return format!("T{} (client {}, {mode})", transaction.id, transaction.client);
    }
    format!("T{} (client {})", transaction.id, transaction.client)
}

/// The row of an operation; `None` for a predicate read.
pub(super) fn row_key(operation: &Operation<'_>) -> Option<Key> {
    match *operation {
        Operation::Read { key, .. }
        | Operation::Write { key, .. }
        | Operation::Insert { key, .. }
        | Operation::Append { key, .. }
        | Operation::ReadList { key, .. }
        | Operation::Missed { key, .. } => Some(key),
        Operation::ReadGroup { .. } => None,
    }
}

/// A table's name.
pub(super) fn table_name(history: &History, table: u16) -> String {
    history.tables().get(usize::from(table)).cloned().unwrap_or_else(|| format!("table {table}"))
}

fn row_name(history: &History, key: Key) -> String {
    let table = table_name(history, key.table);
    let texts = history.provenance().and_then(|provenance| provenance.keys.get(&key.table));
    let text = texts.and_then(|texts| texts.get(usize::try_from(key.id).ok()?));
    text.map_or_else(|| format!("{table} {}", key.id), |text| format!("{table} ({text})"))
}

/// A version's name: its counter and the value that identifies its writer. In an observed history
/// that is the number of the server's transaction.
pub(super) fn version_name(history: &History, version: Version) -> String {
    match (version.counter, version.value) {
        (None, None) => "the initial version".to_owned(),
        (Some(counter), None) => format!("version {counter}"),
        (None, Some(value)) if history.provenance().is_some() => format!("transaction {value}'s version"),
        (None, Some(value)) => format!("value {value}"),
        (Some(counter), Some(value)) if history.provenance().is_some() => {
            format!("version {counter} (by transaction {value})")
        }
        (Some(counter), Some(value)) => format!("version {counter} (value {value})"),
    }
}

fn deed(history: &History, operation: &Operation<'_>) -> String {
    match *operation {
        Operation::Read { key, version } => {
            format!("read {} of {}", version_name(history, version), row_name(history, key))
        }
        Operation::Write { key, version } if version == Version::INITIAL => {
            format!("wrote {}", row_name(history, key))
        }
        Operation::Write { key, version } => {
            format!("wrote {} of {}", version_name(history, version), row_name(history, key))
        }
        Operation::Insert { key, group } => format!("inserted {} into group {group}", row_name(history, key)),
        Operation::Append { key, element } => format!("appended {element} to {}", row_name(history, key)),
        Operation::ReadList { key, elements } => {
            format!("read {} as {}", row_name(history, key), list(elements))
        }
        Operation::ReadGroup { table, group, rows } => {
            format!("read group {group} of {} as {}", table_name(history, table), list(rows))
        }
        Operation::Missed { key, .. } => format!("searched and did not find {}", row_name(history, key)),
    }
}

/// A list in brackets; long ones are reduced to the first and the last elements.
pub(super) fn list(numbers: &[i64]) -> String {
    const ENDS: usize = 6;
    let mut text = String::from("[");
    for (index, number) in numbers.iter().enumerate() {
        if numbers.len() > 2 * ENDS + 1 && (ENDS..numbers.len() - ENDS).contains(&index) {
            if index == ENDS {
                text.push_str(" …");
            }
            continue;
        }
        let blank = if index == 0 { "" } else { " " };
        let _ = write!(text, "{blank}{number}");
    }
    text.push(']');
    text
}
