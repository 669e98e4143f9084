//! A history: what transactions read and wrote, when, and how they ended.
//!
//! The words are Adya's (1999, §3): transactions of *versions* of *objects*; here an object is a
//! row, named by a table and a key. Held in a few arrays, so that ten million transactions fit into
//! memory. Not here: formats in files (`history/…`), and what follows from a history (`check/…`).

pub mod binary;
pub mod elle;
mod error;
mod format;
#[cfg(test)]
mod samples;
pub mod text;
mod windows;

pub use error::{FormatError, TextError};
pub use format::{Format, UnknownFormat, beginning};
pub use windows::windows;

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

/// The most tables that a history can have.
const MOST_TABLES: usize = 1 << 16;

/// A row: the table's number in [`History::tables`] and the key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table, from 0.
    pub table: u16,
    /// The row's key.
    pub id: i64,
}

/// Which version of a row: what is known of it.
///
/// Two versions of a row are the same if neither their counters nor their values differ, as far as
/// both are known. (What an aborted transaction wrote has the counter of the next one's; what a
/// transaction wrote twice has its value twice.) The default, without counter and value, is the
/// initial version (Adya's `x_init`; a row that is not there, Elle's nil).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Version {
    /// Its place in the row's version order, as a counter in the row tells it: each write adds 1.
    /// Committed versions of a row are ordered by it. A version whose counter is one below the
    /// lowest that was written is the initial one.
    pub counter: Option<u64>,
    /// What identifies the version's writer: a value that no two transactions write into this row.
    pub value: Option<i64>,
}

impl Version {
    /// The version before all writes.
    pub const INITIAL: Version = Version { counter: None, value: None };

    /// A version of which the counter is known only.
    pub const fn counted(counter: u64) -> Version {
        Version { counter: Some(counter), value: None }
    }

    /// A version of which the value is known only.
    pub const fn valued(value: i64) -> Version {
        Version { counter: None, value: Some(value) }
    }
}

/// What a transaction did to the database, one at a time and in its own order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'h> {
    /// Read a version of a row.
    Read {
        /// The row.
        key: Key,
        /// What it read; [`Version::INITIAL`] if there was no row.
        version: Version,
    },
    /// Made a new version of a row.
    Write {
        /// The row.
        key: Key,
        /// What it made.
        version: Version,
    },
    /// Made the first version of a row that belongs to a group. Rows of groups are written by
    /// nothing else.
    Insert {
        /// The row.
        key: Key,
        /// Its group: what predicate reads of the table ask for.
        group: i64,
    },
    /// Appended an element to the list in a row.
    Append {
        /// The row.
        key: Key,
        /// The element, which is appended to this row once only.
        element: i64,
    },
    /// Read the whole list in a row.
    ReadList {
        /// The row.
        key: Key,
        /// Its elements in order; none if there was no row.
        elements: &'h [i64],
    },
    /// Read by a predicate: all rows of a group.
    ReadGroup {
        /// The table.
        table: u16,
        /// The group.
        group: i64,
        /// The keys of the rows that were there, in any order.
        rows: &'h [i64],
    },
}

/// How a transaction ended, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The server acknowledged the commit.
    Committed,
    /// The server said that it failed, or it was rolled back. What it wrote must never be seen.
    Aborted,
    /// Nobody knows: the connection was lost during COMMIT, or SQLSTATE 40003.
    Unknown,
}

impl Outcome {
    /// All, in the order of their codes in files.
    pub const ALL: [Outcome; 3] = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown];

    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Committed => "committed",
            Outcome::Aborted => "aborted",
            Outcome::Unknown => "unknown",
        }
    }
}

/// A transaction without its operations. (Of a benchmark this is one *attempt*: a retry is another
/// transaction.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// What it is called in messages; of a recording the attempt's number, unique in the run.
    pub id: u64,
    /// The client whose session it belongs to; the transactions of a client follow each other.
    pub client: u32,
    /// When it began, ns since any instant that all transactions share: not later than its first
    /// statement was sent. 0 if no instants are known (then `end` is 0 too).
    pub begin: u64,
    /// When it had ended, ns: not earlier than the reply to its last statement. [`u64::MAX`] if its
    /// end wasn't seen.
    pub end: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// The operations of one transaction, in the making; meant to be used again and again.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    records: Vec<Record>,
    numbers: Vec<i64>,
}

/// An operation as it is held; the meaning of `a` and `b` depends on the kind.
#[derive(Debug, Clone, Copy)]
struct Record {
    kind: Kind,
    /// Bit 0: there is a counter, bit 1: there is a value.
    flags: u8,
    table: u16,
    /// How many numbers a read of a list or group has.
    length: u32,
    /// The key; of a group's read the group.
    id: i64,
    /// The counter; of an insert the group; of a read of a list or group, where its numbers begin.
    a: u64,
    /// The value, or the element.
    b: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Insert,
    Append,
    ReadList,
    ReadGroup,
}

impl Draft {
    /// An empty one.
    pub fn new() -> Draft {
        Draft::default()
    }

    /// Forgets all operations.
    pub fn clear(&mut self) {
        self.records.clear();
        self.numbers.clear();
    }

    /// True if there is no operation.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds an operation at the end.
    pub fn push(&mut self, operation: Operation<'_>) {
        self.records.push(Record::of(operation, &mut self.numbers));
    }

    /// Holds these operations and no others.
    pub fn fill<'o>(&mut self, operations: impl Iterator<Item = Operation<'o>>) {
        self.clear();
        for operation in operations {
            self.push(operation);
        }
    }

    /// The operations in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Operation<'_>> {
        self.records.iter().map(|record| record.operation(&self.numbers))
    }
}

impl Record {
    fn of(operation: Operation<'_>, numbers: &mut Vec<i64>) -> Record {
        let mut many = |kind, table, id, list: &[i64]| {
            let at = numbers.len() as u64;
            numbers.extend_from_slice(list);
            let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
            Record { kind, flags: 0, table, length, id, a: at, b: 0 }
        };
        let one = |kind, key: Key, version: Version| Record {
            kind,
            flags: u8::from(version.counter.is_some()) | u8::from(version.value.is_some()) << 1,
            table: key.table,
            length: 0,
            id: key.id,
            a: version.counter.unwrap_or(0),
            b: version.value.unwrap_or(0),
        };
        match operation {
            Operation::Read { key, version } => one(Kind::Read, key, version),
            Operation::Write { key, version } => one(Kind::Write, key, version),
            Operation::Insert { key, group } => {
                one(Kind::Insert, key, Version::counted(group.cast_unsigned()))
            }
            Operation::Append { key, element } => one(Kind::Append, key, Version::valued(element)),
            Operation::ReadList { key, elements } => many(Kind::ReadList, key.table, key.id, elements),
            Operation::ReadGroup { table, group, rows } => many(Kind::ReadGroup, table, group, rows),
        }
    }

    fn operation<'h>(&self, numbers: &'h [i64]) -> Operation<'h> {
        let key = Key { table: self.table, id: self.id };
        let version = Version {
            counter: (self.flags & 1 != 0).then_some(self.a),
            value: (self.flags & 2 != 0).then_some(self.b),
        };
        let many = || self.numbers(numbers);
        match self.kind {
            Kind::Read => Operation::Read { key, version },
            Kind::Write => Operation::Write { key, version },
            Kind::Insert => Operation::Insert { key, group: self.a.cast_signed() },
            Kind::Append => Operation::Append { key, element: self.b },
            Kind::ReadList => Operation::ReadList { key, elements: many() },
            Kind::ReadGroup => Operation::ReadGroup { table: self.table, group: self.id, rows: many() },
        }
    }

    /// The numbers of a read of a list or group.
    fn numbers<'h>(&self, numbers: &'h [i64]) -> &'h [i64] {
        let start = usize::try_from(self.a).unwrap_or(usize::MAX);
        &numbers[start..start + self.length as usize]
    }
}

/// What a row held before all transactions, as far as the history states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initial {
    /// The version of a row that is overwritten.
    Version(Version),
    /// The elements of a list.
    List(Vec<i64>),
}

/// Transactions with their operations, in any order; those of one client stand in that client's
/// order.
#[derive(Debug, Clone, Default)]
pub struct History {
    tables: Vec<String>,
    /// The numbers of the tables, by name.
    numbers_of_tables: FxHashMap<String, u16>,
    initial: BTreeMap<Key, Initial>,
    transactions: Vec<Transaction>,
    /// Where each transaction's operations end.
    ends: Vec<usize>,
    records: Vec<Record>,
    numbers: Vec<i64>,
    dropped: u64,
}

impl History {
    /// A history without transactions of these tables.
    ///
    /// # Panics
    /// There are more than 65,536 tables.
    pub fn new(tables: Vec<String>) -> History {
        assert!(tables.len() <= MOST_TABLES, "a history has at most 65,536 tables");
        let mut history = History::default();
        history.set_tables(tables);
        history
    }

    /// Gives the tables their names. Of two with one name the first is found by it.
    fn set_tables(&mut self, tables: Vec<String>) {
        self.numbers_of_tables.clear();
        for (number, name) in (0..=u16::MAX).zip(&tables) {
            self.numbers_of_tables.entry(name.clone()).or_insert(number);
        }
        self.tables = tables;
    }

    /// The names of the tables.
    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// The number of a table, which is added if it is new; `None` if there are 65,536 already.
    pub fn table(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.numbers_of_tables.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(self.tables.len()).ok()?;
        self.tables.push(name.to_owned());
        self.numbers_of_tables.insert(name.to_owned(), number);
        Some(number)
    }

    /// What the rows held before all transactions, as far as that is stated. Of all other rows
    /// nothing is known.
    pub fn initial(&self) -> &BTreeMap<Key, Initial> {
        &self.initial
    }

    /// States what a row held before all transactions. Returns false, and changes nothing, if it
    /// was stated before.
    pub fn set_initial(&mut self, key: Key, initial: Initial) -> bool {
        let new = !self.initial.contains_key(&key);
        if new {
            self.initial.insert(key, initial);
        }
        new
    }

    /// A history without transactions, of the same tables and the same state before all
    /// transactions.
    pub(crate) fn blank(&self) -> History {
        History { initial: self.initial.clone(), ..History::new(self.tables.clone()) }
    }

    /// Adds a transaction with its operations.
    pub fn push(&mut self, transaction: Transaction, operations: &Draft) {
        let shift = self.numbers.len() as u64;
        self.numbers.extend_from_slice(&operations.numbers);
        self.records.extend(operations.records.iter().map(|record| {
            let mut record = *record;
            if matches!(record.kind, Kind::ReadList | Kind::ReadGroup) {
                record.a += shift;
            }
            record
        }));
        self.transactions.push(transaction);
        self.ends.push(self.records.len());
    }

    /// Forgets the transactions, and keeps the tables.
    fn clear(&mut self) {
        self.transactions.clear();
        self.ends.clear();
        self.records.clear();
        self.numbers.clear();
    }

    /// Gives each of these transactions (by index, ascending) a client of its own, beyond those of
    /// all others. False if there are not enough numbers.
    fn give_clients(&mut self, without: &[usize]) -> bool {
        let mut missing = without.iter().peekable();
        let others = self.transactions.iter().enumerate();
        let others = others.filter(|(index, _)| missing.next_if_eq(&index).is_none());
        let first = others.map(|(_, transaction)| u64::from(transaction.client) + 1).max().unwrap_or(0);
        for (client, index) in (first..).zip(without) {
            let Ok(client) = u32::try_from(client) else { return false };
            self.transactions[*index].client = client;
        }
        true
    }

    /// The transactions.
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// How many operations all transactions have.
    pub fn operation_count(&self) -> usize {
        self.records.len()
    }

    /// The operations of a transaction in order, by the transaction's index.
    pub fn operations(&self, transaction: usize) -> impl ExactSizeIterator<Item = Operation<'_>> {
        self.records[self.range(transaction)].iter().map(|record| record.operation(&self.numbers))
    }

    /// Where a transaction's operations stand among all.
    pub(crate) fn range(&self, transaction: usize) -> Range<usize> {
        let start = transaction.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[transaction]
    }

    /// An operation by its place among all.
    pub(crate) fn operation(&self, record: usize) -> Operation<'_> {
        self.records[record].operation(&self.numbers)
    }

    /// How many transactions were carried out and are not in this history, because memory or a
    /// window was full. Versions that nobody wrote may be theirs then.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Says that transactions are missing.
    pub fn set_dropped(&mut self, transactions: u64) {
        self.dropped = transactions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let key = Key { table: 0, id: -7 };
        let operations = [
            Operation::Read { key, version: Version::INITIAL },
            Operation::Write { key, version: Version { counter: Some(0), value: Some(-1) } },
            Operation::Insert { key, group: -3 },
            Operation::Append { key, element: 9 },
            Operation::ReadList { key, elements: &[1, 2, 3] },
            Operation::ReadGroup { table: 1, group: 5, rows: &[4] },
        ];
        let mut draft = Draft::new();
        for operation in operations {
            draft.push(operation);
        }
        let mut history = History::new(vec!["t".to_owned()]);
        assert_eq!(history.table("u"), Some(1));
        for id in 0..3 {
            let outcome = Outcome::Committed;
            history.push(Transaction { id, client: 0, begin: id, end: id, outcome }, &draft);
        }
        for transaction in 0..3 {
            assert!(history.operations(transaction).eq(operations));
        }
        assert_eq!(history.operation_count(), 18);
    }
}
