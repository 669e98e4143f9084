//! A history: what transactions read and wrote, when, and how they ended.
//!
//! The terminology is Adya's (1999, §3): transactions of *versions* of *objects*, where an object
//! is a row, identified by a table and a key. Stored in a few arrays, so that ten million
//! transactions fit into memory. File formats are in `history/…`, and the check in `check/…`.

pub mod binary;
pub mod elle;
mod error;
mod format;
mod mode;
#[cfg(test)]
mod samples;
pub(crate) mod statement_use;
pub mod text;
pub(crate) mod visibility;

pub use error::{FormatError, TextError};
pub use format::{Format, UnknownFormat, beginning};
pub use mode::Mode;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use statement_use::StatementUse;
use visibility::Visibility;

/// The maximum number of tables in a history.
const MOST_TABLES: usize = 1 << 16;

/// A row: the number of its table in [`History::tables`], and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table, from 0.
    pub table: u16,
    /// The row's key.
    pub id: i64,
}

/// The identification of a row's version, as far as it is known.
///
/// Two versions of a row are the same if neither their counters nor their values differ, as far as
/// both are known. (A version written by an aborted transaction has the same counter as the next
/// one; two versions written by one transaction have the same value.) The default, without counter
/// and value, is the initial version (Adya's `x_init`, Elle's nil, or a row that doesn't exist).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Version {
    /// The version's position in the row's version order, from a counter in the row that each write
    /// increments by 1. It orders the committed versions of a row. A version whose counter is one
    /// below the lowest one written is the initial version.
    pub counter: Option<u64>,
    /// A value that identifies the writer, because no two transactions write it to this row.
    pub value: Option<i64>,
}

impl Version {
    /// The version before all writes.
    pub const INITIAL: Version = Version { counter: None, value: None };

    /// A version of which only the counter is known.
    pub const fn counted(counter: u64) -> Version {
        Version { counter: Some(counter), value: None }
    }

    /// A version of which only the value is known.
    pub const fn valued(value: i64) -> Version {
        Version { counter: None, value: Some(value) }
    }
}

/// An operation of a transaction, in the transaction's own order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'h> {
    /// Read a version of a row.
    Read {
        /// The row.
        key: Key,
        /// The version; [`Version::INITIAL`] if there was no row.
        version: Version,
    },
    /// Wrote a new version of a row.
    Write {
        /// The row.
        key: Key,
        /// The version.
        version: Version,
    },
    /// Inserted a row that belongs to a group. Rows of groups aren't written in any other way.
    Insert {
        /// The row.
        key: Key,
        /// Its group, by which predicate reads select rows of the table.
        group: i64,
    },
    /// Appended an element to the list in a row.
    Append {
        /// The row.
        key: Key,
        /// The element, which is appended to this row only once.
        element: i64,
    },
    /// Read the whole list in a row.
    ReadList {
        /// The row.
        key: Key,
        /// The elements in order; empty if there was no row.
        elements: &'h [i64],
    },
    /// Read by a predicate: all rows of a group.
    ReadGroup {
        /// The table.
        table: u16,
        /// The group.
        group: i64,
        /// The keys of the rows found, in any order.
        rows: &'h [i64],
    },
    /// Read by a predicate that this row didn't match: the version that was looked at is not older
    /// than `after` and older than `before`.
    Missed {
        /// The row.
        key: Key,
        /// The counter of the first version that doesn't match; `None` if that is the initial one.
        after: Option<u64>,
        /// The counter of the first of the versions that follow the last one that doesn't match,
        /// all of which match; `None` if there are none.
        before: Option<u64>,
    },
}

/// The outcome of a transaction, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionOutcome {
    /// The server acknowledged the commit.
    Committed,
    /// The server reported a failure, or the transaction was rolled back. Its writes must never be
    /// seen.
    Aborted,
    /// Unknown: the connection was lost during COMMIT, or SQLSTATE 40003.
    Unknown,
}

impl TransactionOutcome {
    /// All outcomes, in the order of their codes in files.
    pub const ALL: [TransactionOutcome; 3] =
        [TransactionOutcome::Committed, TransactionOutcome::Aborted, TransactionOutcome::Unknown];

    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            TransactionOutcome::Committed => "committed",
            TransactionOutcome::Aborted => "aborted",
            TransactionOutcome::Unknown => "unknown",
        }
    }
}

/// A transaction without its operations. (In a benchmark, this is one *attempt*: a retry is another
/// transaction.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// The number in messages; in a recording the attempt's number, which is unique in the run.
    pub id: u64,
    /// The client whose session it belongs to; transactions of the same client are consecutive.
    pub client: u32,
    /// The start, in ns since an instant common to all transactions: not later than sending the
    /// first statement. 0 if instants are unknown (then `end` is 0 too).
    pub begin: u64,
    /// The end, in ns: not earlier than the reply to the last statement. [`u64::MAX`] if the end
    /// wasn't seen.
    pub end: u64,
    /// The outcome.
    pub outcome: TransactionOutcome,
    /// The modes that it ran with; `None` if they aren't known, or aren't of interest because all
    /// transactions ran with the same.
    pub mode: Option<Mode>,
}

impl Transaction {
    /// Moves start and end apart, by nanoseconds on both sides by which they may be wrong. What has
    /// no end, or no times at all, stays without.
    pub fn widen(&mut self, within: u64) {
        if self.begin == 0 && self.end == 0 {
            return;
        }
        self.begin = self.begin.saturating_sub(within);
        self.end = self.end.saturating_add(within);
    }
}

/// A buffer for the operations of one transaction, meant to be reused.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    records: Vec<Record>,
    numbers: Vec<i64>,
}

/// The stored form of an operation; the meaning of `a` and `b` depends on the kind.
#[derive(Debug, Clone, Copy)]
struct Record {
    kind: Kind,
    /// Bit 0: it has a counter; bit 1: it has a value.
    flags: u8,
    table: u16,
    /// The number of elements or rows in a read of a list or group; for a read, a write or a row
    /// that was missed, the number of the statement from 1 on, or 0.
    length: u32,
    /// The key, or the group for a predicate read.
    id: i64,
    /// The counter; for an insert the group; for a read of a list or group, the position of its
    /// numbers; for a row that was missed, `after`.
    a: u64,
    /// The value, or the element; for a row that was missed, `before`.
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
    Missed,
}

impl Draft {
    /// An empty buffer.
    pub fn new() -> Draft {
        Draft::default()
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.records.clear();
        self.numbers.clear();
    }

    /// True if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Appends an operation.
    pub fn push(&mut self, operation: Operation<'_>) {
        self.records.push(Record::of(operation, &mut self.numbers));
    }

    /// Appends a read, a write or a row that was missed, by a statement of
    /// [`Provenance::statements`].
    pub fn push_by(&mut self, operation: Operation<'_>, statement: u16) {
        let mut record = Record::of(operation, &mut self.numbers);
        if record.has_statement() {
            record.length = u32::from(statement) + 1;
        }
        self.records.push(record);
    }

    /// Replaces the contents by the operations of a transaction in a history.
    pub fn fill(&mut self, history: &History, transaction: usize) {
        self.clear();
        for record in &history.records[history.range(transaction)] {
            self.push_again(record.operation(&history.numbers), record.statement());
        }
    }

    /// The operations in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Operation<'_>> {
        self.records.iter().map(|record| record.operation(&self.numbers))
    }

    /// The operations in order, each with the number of its statement, if that is known.
    pub(crate) fn with_statements(&self) -> impl Iterator<Item = (Operation<'_>, Option<u16>)> {
        self.records.iter().map(|record| (record.operation(&self.numbers), record.statement()))
    }

    /// Appends an operation of a statement that may be unknown.
    pub(crate) fn push_again(&mut self, operation: Operation<'_>, statement: Option<u16>) {
        match statement {
            Some(statement) => self.push_by(operation, statement),
            None => self.push(operation),
        }
    }

    /// Appends the operations of another one.
    pub(crate) fn append(&mut self, other: &Draft) {
        for (operation, statement) in other.with_statements() {
            self.push_again(operation, statement);
        }
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
            Operation::Missed { key, after, before } => {
                let value = before.map(u64::cast_signed);
                Record { kind: Kind::Missed, ..one(Kind::Read, key, Version { counter: after, value }) }
            }
        }
    }

    /// True if the record can have the number of a statement.
    fn has_statement(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Write | Kind::Missed)
    }

    /// The number of the statement, if it is known.
    fn statement(&self) -> Option<u16> {
        let number = if self.has_statement() { self.length.checked_sub(1)? } else { return None };
        u16::try_from(number).ok()
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
            Kind::Missed => {
                let before = version.value.map(i64::cast_unsigned);
                Operation::Missed { key, after: version.counter, before }
            }
        }
    }

    /// The numbers in a read of a list or group.
    fn numbers<'h>(&self, numbers: &'h [i64]) -> &'h [i64] {
        let start = usize::try_from(self.a).unwrap_or(usize::MAX);
        &numbers[start..start + self.length as usize]
    }
}

/// The initial contents of a row, if the history states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initial {
    /// The version of a row that is overwritten.
    Version(Version),
    /// The elements of a list.
    List(Vec<i64>),
}

/// Transactions with their operations. The transactions of a client are in that client's order;
/// otherwise the order is arbitrary.
#[derive(Debug, Clone, Default)]
pub struct History {
    tables: Vec<String>,
    /// The numbers of the tables, by name.
    numbers_of_tables: FxHashMap<String, u16>,
    initial: Arc<BTreeMap<Key, Initial>>,
    transactions: Vec<Transaction>,
    /// The end of each transaction's operations.
    ends: Vec<usize>,
    records: Vec<Record>,
    numbers: Vec<i64>,
    dropped: u64,
    provenance: Option<Arc<Provenance>>,
    levels: LevelSet,
}

/// The levels of the transactions of a history, as bits.
#[derive(Debug, Clone, Copy, Default)]
struct LevelSet(u8);

impl LevelSet {
    fn note(&mut self, mode: Option<Mode>) {
        self.0 |= mode.map_or(0, |mode| 1 << mode.level as u8);
    }
}

/// The origin of a history that was observed ([`crate::observed`]), and the limits of what was seen.
///
/// In such a history the counters are proved, not read: two versions with the same counter are those
/// of which nothing proves which came first, and a counter is left out before a row that is inserted
/// again, which is another object with the same key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The SQL statements, each with file and line.
    pub statements: Vec<String>,
    /// The texts of keys that aren't integers, by table; the key in the history is the index.
    pub keys: BTreeMap<u16, Vec<String>>,
    /// The number of searches in committed transactions for which it is known what they missed.
    pub searches: u64,
    /// The number of searches for which it isn't known, because rows of their tables may have been
    /// written unseen, or because there were too many.
    pub searches_left: u64,
    /// The number of reads of versions that no transaction of the history wrote, as far as was seen,
    /// and that aren't the initial ones. They were left out.
    pub reads_left: u64,
    /// The number of reads of rows that bear the number of a committed transaction of the history
    /// which, as all its writes were seen, didn't write them. They withhold the verdict.
    pub reads_odd: u64,
    /// The number of rows whose version order a second source confirmed.
    pub orders_agreed: u64,
    /// The number of rows whose version order two sources tell differently. Nothing is claimed of
    /// them.
    pub orders_differ: u64,
    /// The numbers of statements that searched, in a transaction that may have committed, and for which
    /// the values that were sent leave it open what that missed: those of OFFSET, for example. Files
    /// don't have them.
    pub unsearched: BTreeSet<u16>,
    /// What the scripts do with what each statement reads, by number; empty if that isn't known.
    /// Files don't have it.
    pub usage: Vec<StatementUse>,
    /// True if the history has only what its transactions used ([`History::used`]): then a lost update
    /// is one whose written value depends on the version read.
    pub by_use: bool,
    /// What the transactions' snapshots say, if they were asked for. Files don't have it.
    pub visibility: Option<Arc<Visibility>>,
}

impl Provenance {
    /// The numbers, in the order of files.
    fn numbers(&self) -> [u64; 6] {
        let Provenance { searches, searches_left, reads_left, reads_odd, .. } = *self;
        [searches, searches_left, reads_left, reads_odd, self.orders_agreed, self.orders_differ]
    }

    /// The provenance with these numbers, and nothing else.
    fn of_numbers(numbers: [u64; 6]) -> Provenance {
        let [searches, searches_left, reads_left, reads_odd, orders_agreed, orders_differ] = numbers;
        Provenance {
            searches,
            searches_left,
            reads_left,
            reads_odd,
            orders_agreed,
            orders_differ,
            ..Provenance::default()
        }
    }
}

impl History {
    /// An empty history with these tables.
    ///
    /// # Panics
    /// If there are more than 65,536 tables.
    pub fn new(tables: Vec<String>) -> History {
        assert!(tables.len() <= MOST_TABLES, "a history has at most 65,536 tables");
        let mut history = History::default();
        history.set_tables(tables);
        history
    }

    /// Sets the names of the tables. If two are the same, lookups find the first.
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

    /// The number of a table, which is added if it is new; `None` if there are already 65,536
    /// tables.
    pub fn table(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.numbers_of_tables.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(self.tables.len()).ok()?;
        self.tables.push(name.to_owned());
        self.numbers_of_tables.insert(name.to_owned(), number);
        Some(number)
    }

    /// The initial contents of rows, as far as they are stated. Those of all other rows are
    /// unknown.
    pub fn initial(&self) -> &BTreeMap<Key, Initial> {
        &self.initial
    }

    /// States the initial contents of a row. Returns false, without any change, if they were
    /// already stated.
    pub fn set_initial(&mut self, key: Key, initial: Initial) -> bool {
        let new = !self.initial.contains_key(&key);
        if new {
            Arc::make_mut(&mut self.initial).insert(key, initial);
        }
        new
    }

    /// An empty history with the same tables, initial contents and provenance.
    pub(crate) fn blank(&self) -> History {
        let (initial, provenance) = (Arc::clone(&self.initial), self.provenance.clone());
        History { initial, provenance, levels: self.levels, ..History::new(self.tables.clone()) }
    }

    /// True if transactions ran at several levels.
    pub fn has_several_levels(&self) -> bool {
        self.levels.0.count_ones() > 1
    }

    /// The origin of the history, if it was observed.
    pub fn provenance(&self) -> Option<&Provenance> {
        self.provenance.as_deref()
    }

    /// States that the history was observed.
    pub fn set_provenance(&mut self, provenance: Provenance) {
        self.provenance = Some(Arc::new(provenance));
    }

    /// The SQL statement of an operation, given its position among all operations.
    pub(crate) fn statement(&self, record: usize) -> Option<&str> {
        let number = self.records.get(record)?.statement()?;
        self.provenance.as_ref()?.statements.get(usize::from(number)).map(String::as_str)
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
        self.end_transaction(transaction);
    }

    /// Adds an operation to the transaction that [`History::end_transaction`] ends.
    pub(crate) fn push_operation(&mut self, operation: Operation<'_>, statement: Option<u16>) {
        let mut record = Record::of(operation, &mut self.numbers);
        if record.has_statement() {
            record.length = statement.map_or(0, |statement| u32::from(statement) + 1);
        }
        self.records.push(record);
    }

    /// Adds an operation of another history in the same way, given its position there.
    pub(crate) fn push_copy(&mut self, other: &History, record: usize) {
        let mut copy = other.records[record];
        if matches!(copy.kind, Kind::ReadList | Kind::ReadGroup) {
            let numbers = copy.numbers(&other.numbers);
            copy.a = self.numbers.len() as u64;
            self.numbers.extend_from_slice(numbers);
        }
        self.records.push(copy);
    }

    /// Adds operations of another history in the same way.
    pub(crate) fn push_copies(&mut self, other: &History, records: &[u32]) {
        let before = self.records.len();
        // Nothing else in this loop, so that the processor waits for many of them at once.
        self.records.extend(records.iter().map(|record| other.records[*record as usize]));
        for copy in &mut self.records[before..] {
            if matches!(copy.kind, Kind::ReadList | Kind::ReadGroup) {
                let numbers = copy.numbers(&other.numbers);
                copy.a = self.numbers.len() as u64;
                self.numbers.extend_from_slice(numbers);
            }
        }
    }

    /// Adds a transaction with the operations pushed since the one before.
    pub(crate) fn end_transaction(&mut self, transaction: Transaction) {
        self.push_frame(transaction);
        self.ends.push(self.records.len());
    }

    /// Ends the operations of a transaction that [`History::set_transactions`] sets.
    pub(crate) fn end_operations(&mut self) {
        self.ends.push(self.records.len());
    }

    /// Sets the ends of the operations of all transactions.
    pub(crate) fn set_ends(&mut self, ends: Vec<usize>) {
        self.ends = ends;
    }

    /// Sets the transactions to some of another history.
    pub(crate) fn set_transactions(&mut self, other: &History, nodes: &[u32]) {
        self.transactions.clear();
        self.transactions.extend(nodes.iter().map(|node| other.transactions[*node as usize]));
    }

    /// Adds to the value or element of each operation the number of its transaction, of which it is
    /// the distance.
    pub(crate) fn add_own(&mut self) {
        let mut start = 0;
        for (transaction, end) in self.transactions.iter().zip(&self.ends) {
            for record in &mut self.records[start..*end] {
                if record.flags & 2 != 0 && matches!(record.kind, Kind::Read | Kind::Write | Kind::Append) {
                    record.b = record.b.wrapping_add(transaction.id.cast_signed());
                }
            }
            start = *end;
        }
    }

    /// Adds a transaction to a history of which only the transactions are kept, without their
    /// operations.
    pub(crate) fn push_frame(&mut self, transaction: Transaction) {
        self.levels.note(transaction.mode);
        self.transactions.push(transaction);
    }

    /// Makes room for this many transactions without operations.
    pub(crate) fn reserve_frames(&mut self, transactions: usize) {
        self.transactions.reserve_exact(transactions);
    }

    /// Moves start and end of all transactions apart ([`Transaction::widen`]).
    pub(crate) fn widen(&mut self, within: u64) {
        self.transactions.iter_mut().for_each(|transaction| transaction.widen(within));
    }

    /// Removes all transactions but the first ones, which counts them as missing.
    pub(crate) fn keep_first(&mut self, count: usize) {
        self.dropped += self.transactions.len().saturating_sub(count) as u64;
        self.transactions.truncate(count);
    }

    /// Makes room for this many operations of the transactions of such a history, to be put where
    /// they belong.
    pub(crate) fn make_room(&mut self, operations: usize) {
        let none = Record { kind: Kind::Read, flags: 0, table: 0, length: 0, id: 0, a: 0, b: 0 };
        self.records = vec![none; operations];
        self.ends = vec![0; self.transactions.len()];
    }

    /// Puts an operation of another history where it belongs.
    pub(crate) fn put(&mut self, transaction: usize, record: usize, other: &History, at: usize) {
        self.push_copy(other, at);
        if let Some(copy) = self.records.pop() {
            self.records[record] = copy;
        }
        self.ends[transaction] = self.ends[transaction].max(record + 1);
    }

    /// Ends putting operations where they belong.
    pub(crate) fn settle(&mut self) {
        let mut last = 0;
        for end in &mut self.ends {
            last = last.max(*end);
            *end = last;
        }
    }

    /// The number of the SQL statement of an operation, given its position among all operations.
    pub(crate) fn statement_number(&self, record: usize) -> Option<u16> {
        self.records[record].statement()
    }

    /// Removes the transactions, and keeps the tables.
    pub fn clear(&mut self) {
        self.transactions.clear();
        self.ends.clear();
        self.records.clear();
        self.numbers.clear();
    }

    /// Assigns a new client to each of these transactions (by index, ascending). Returns false if
    /// there are not enough numbers.
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

    /// The number of operations of all transactions.
    pub fn operation_count(&self) -> usize {
        self.records.len()
    }

    /// The operations of a transaction in order, given the transaction's index.
    pub fn operations(&self, transaction: usize) -> impl ExactSizeIterator<Item = Operation<'_>> {
        self.records[self.range(transaction)].iter().map(|record| record.operation(&self.numbers))
    }

    /// The positions of a transaction's operations among all operations.
    pub(crate) fn range(&self, transaction: usize) -> Range<usize> {
        let start = transaction.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[transaction]
    }

    /// An operation by its position among all operations.
    pub(crate) fn operation(&self, record: usize) -> Operation<'_> {
        self.records[record].operation(&self.numbers)
    }

    /// The number of transactions that were executed but are missing from this history, because
    /// memory or a window was full. Unwritten versions may be theirs.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Sets the number of missing transactions.
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
            Operation::Missed { key, after: None, before: Some(u64::MAX) },
            Operation::Missed { key, after: Some(3), before: None },
        ];
        let mut draft = Draft::new();
        for operation in operations {
            draft.push(operation);
        }
        let mut history = History::new(vec!["t".to_owned()]);
        assert_eq!(history.table("u"), Some(1));
        for id in 0..3 {
            let outcome = TransactionOutcome::Committed;
            history.push(Transaction { id, client: 0, begin: id, end: id, outcome, mode: None }, &draft);
        }
        for transaction in 0..3 {
            assert!(history.operations(transaction).eq(operations));
        }
        assert_eq!(history.operation_count(), 24);
    }
}
