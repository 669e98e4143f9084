//! The rows that a statement shows in columns appended to its result.
//!
//! An SQL command that is *observed* is sent with more output columns than its author wrote: the
//! keys of the rows that it read or wrote, and the identity of their writers. The author's columns
//! come first and unchanged. `isobench-observation` decides what is appended; the runner reads it.
//!
//! Tables and predicates are numbers here; the lists that they refer to go to the recording.

use crate::symbols::Slot;

/// One statement of an SQL command whose rows are observed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedStatement {
    /// The statement's place in the command, from 0.
    pub statement: u32,
    /// The number of columns appended to the author's.
    pub appended: u16,
    /// The rows that the result shows.
    pub rows: Vec<ObservedRows>,
    /// What the statement searched for.
    pub searches: Vec<ObservedSearch>,
    /// What its result is limited to. If rows are skipped, or none is wanted, nothing is known of what
    /// it searched for.
    pub limit: Option<RowLimit>,
    /// The tables in which the statement may write rows that it doesn't show.
    pub unseen: Vec<u16>,
}

/// Rows of one table in the result of a statement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedRows {
    /// The table.
    pub table: u16,
    /// What the statement did with the rows.
    pub role: RowRole,
    /// `None`: each row of the result shows one row, in the appended columns. Otherwise the
    /// appended column, from 0, that has an array of records, of which each shows a row.
    pub packed: Option<u16>,
    /// The columns of the key. If one of them is NULL, no row is shown, as for the missing side of
    /// an outer join.
    pub key: Vec<RowField>,
    /// The number of the (sub)transaction that wrote the version that is shown: `xmin`. For a
    /// deleted row, that of the version deleted.
    pub version: RowField,
    /// The writer of the version that was replaced, where the server shows it (PostgreSQL 18:
    /// `old.xmin`); NULL if there was none.
    pub replaced: Option<RowField>,
    /// The values of the columns that the table keeps, in its order.
    pub columns: Vec<RowField>,
}

/// The place of a value: an appended column, from 0; for packed rows, a field of the record, from
/// 0.
pub type RowField = u16;

/// What a statement did with the rows that it shows.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum RowRole {
    /// It read them.
    Read,
    /// It inserted them.
    Inserted,
    /// It updated them; the new version is shown.
    Updated,
    /// It deleted them; the version deleted is shown.
    Deleted,
    /// It inserted or updated them (`INSERT … ON CONFLICT DO UPDATE`); the field has `xmax`, which
    /// is 0 for an inserted row.
    Upserted(RowField),
    /// It inserted, updated or deleted them (`MERGE`); the field has the action, `INSERT`, `UPDATE`
    /// or `DELETE`.
    Merged(RowField),
}

/// The rows that a statement searched for. The rows found are those that it shows of the table; all
/// others didn't match when it looked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedSearch {
    /// The table.
    pub table: u16,
    /// The entry of [`ObservedStatement::rows`] that shows what was found; `None` if the search is
    /// known only where it found nothing.
    pub rows: Option<usize>,
    /// When it is known that no other row matched.
    pub when: SearchWhen,
    /// The condition, apart from the key.
    pub predicate: u16,
    /// The key, if the condition requires equality with a whole key; its columns in the key's order.
    pub key: Option<Vec<SearchValue>>,
    /// The operands of the condition.
    pub operands: Vec<SearchOperand>,
    /// Rows that are found by their key, in place of `rows`: they aren't shown themselves.
    pub referred: Option<Referred>,
}

/// The rows of a table whose keys other rows have in a column.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Referred {
    /// The entry of [`ObservedStatement::rows`] that shows the other rows.
    pub entry: usize,
    /// Their column, as numbered among those that its table keeps.
    pub column: u16,
    /// True if each of the rows is searched for by its key; false if all together are what was found.
    pub each: bool,
}

/// LIMIT, OFFSET and FETCH.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RowLimit {
    /// The most rows; `None` or NULL if there is no limit.
    pub rows: Option<SearchValue>,
    /// The number of rows that are skipped.
    pub offset: Option<SearchValue>,
    /// The entry of [`ObservedStatement::rows`] whose rows are limited; `None` if those of the result are.
    pub of: Option<usize>,
}

/// When the result of a statement tells that a search found all rows that match.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum SearchWhen {
    /// Always.
    Always,
    /// If the result has no row.
    Empty,
    /// If the result has a row.
    Nonempty,
    /// If the result has fewer rows than [`ObservedStatement::limit`].
    Unlimited,
    /// If the result has as many rows.
    Limited,
    /// If this entry of [`ObservedStatement::rows`] shows a row: the other side of a join, or a row
    /// that is inserted only if nothing was found.
    Found(usize),
    /// If this column of the author's result, from 0, is false (or, with `true`, true), as a boolean
    /// or a number: the answer of EXISTS or NOT EXISTS.
    Column(u16, bool),
}

/// An operand of a search's condition, and the form in which it is compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SearchOperand {
    /// The value.
    pub value: SearchValue,
    /// The table of the column that it is compared with: the search's, or one that it is joined to.
    pub table: u16,
    /// The column, as numbered in its table's kept columns, which tells its form.
    pub column: u16,
}

/// A value in a search's condition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SearchValue {
    /// The value that the variable has when the command is sent.
    Variable(Slot),
    /// The same, of a `uuid` in a key.
    Uuid(Slot),
    /// The text of a constant, without quotes.
    Constant(String),
    /// Texts and variables, one after the other: `'item' || :id`.
    Joined {
        /// The parts.
        parts: Vec<TextPart>,
        /// True if they are one literal, `'item:id'`, in which only the simple protocol substitutes
        /// variables.
        literal: bool,
    },
    /// A time, moved by microseconds.
    Moved(Box<SearchValue>, i64),
    /// A decimal number in a type with so many digits after the point, `:amount::numeric(12, 2)`: one that
    /// has more isn't known, because the server rounds it.
    Scaled(Box<SearchValue>, u16),
    /// `NULL`
    Null,
    /// A parameter of the script's author, `$1`, whose value isn't known.
    Parameter(u16),
    /// The value of the column, which is kept, in the last row that the search found.
    Last,
    /// All values of a kept column in the rows that an entry of [`ObservedStatement::rows`] shows; the
    /// last operand.
    Shown {
        /// The entry.
        entry: usize,
        /// The column, as numbered among those that its table keeps.
        column: u16,
    },
    /// The elements of an array; the last operand.
    Elements(Box<SearchValue>),
}

/// A part of a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TextPart {
    /// A constant, without quotes.
    Text(String),
    /// The value that the variable has when the command is sent.
    Variable(Slot),
    /// A parameter of the script's author, whose value isn't known.
    Parameter(u16),
}
