//! A log of what a server's answers showed: rows with the identity of the transaction that wrote
//! them, and searches that didn't find rows.
//!
//! PostgreSQL stores in every row the number of the (sub)transaction that wrote it (`xmin`), so a
//! statement whose result includes key and `xmin` tells which version of which row was read, and a
//! `RETURNING` clause which one was written. No counter or writer's number in the user's tables is
//! needed. The log keeps just that. [`resolve`] turns it into a
//! [`crate::History`]: it proves the order of each row's versions, and what searches missed.
//!
//! Not here: sending statements so that they show rows (`isobench-observation`), and reading the
//! results (`isobench-runner`).

mod committed;
mod joined;
mod log;
mod order;
mod predicate;
mod resolution;
mod resolve;
mod search;
mod snapshots;
mod usage;
mod value;

use crate::History;
use crate::history::FormatError;

pub use crate::history::statement_use::{Dependence, Flow, StatementUse, Unchanged};
pub use crate::history::visibility::{MayRead, Visibility};
pub use committed::{CommittedChange, CommittedTransaction, CommittedWrite, CommittedWrites};
pub use log::{ObservedDraft, ObservedEncoder, ObservedOperation, Replaced};
pub use predicate::{Case, Comparison, Elsewhere, Linked, NULL, Place, Predicate};
pub use snapshots::TakenSnapshot;
pub use value::{ValueForm, array_elements};

/// What a log's attempts refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedDescription {
    /// The tables.
    pub tables: Vec<ObservedTable>,
    /// The conditions of searches.
    pub predicates: Vec<Predicate>,
    /// The statements, each with file and line, and in the order of their numbers.
    pub statements: Vec<String>,
    /// The texts, in the order of their numbers: those of keys, with a comma between columns, and
    /// those of values.
    pub texts: Vec<String>,
    /// The lowest number of a transaction that hadn't ended when the run began, or of the next one.
    /// A version with a lower number is an initial one. (One of a transaction that began before the
    /// run and committed during it isn't.)
    pub horizon: u32,
    /// The number of attempts that were executed and aren't in the log, or not completely.
    pub dropped: u64,
    /// All committed writes, from a second source, if there is one.
    pub committed: Option<CommittedWrites>,
    /// True if every statement sees what was committed before its transaction began, as all
    /// statements on one server do. Those on a standby may not.
    pub fresh: bool,
    /// What the scripts do with what each statement reads, in the order of the statements' numbers;
    /// empty if that isn't known.
    pub usage: Vec<StatementUse>,
    /// What each script's statements may read without showing it, in the order of the scripts; empty
    /// unless transactions are asked for their snapshots.
    pub may_read: Vec<MayRead>,
}

impl ObservedDescription {
    fn names(&self) -> Vec<String> {
        self.tables.iter().map(|table| table.name.clone()).collect()
    }
}

/// Turns a log into a history: proves the order of each row's versions, and finds what searches
/// missed. `chunks` returns an iterator over the chunks of the log ([`ObservedEncoder::take`]), the
/// same each time; it is called three or four times.
///
/// The transactions of the history are the attempts of the log, in its order.
///
/// # Errors
/// A chunk can't be read.
pub fn resolve<I, B>(
    description: ObservedDescription,
    chunks: impl FnMut() -> Result<I, FormatError>,
) -> Result<History, FormatError>
where
    I: Iterator<Item = Result<B, FormatError>>,
    B: AsRef<[u8]>,
{
    resolve::resolve(description, search::WORTH, chunks)
}

/// A table whose rows are observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedTable {
    /// The name, with its schema unless that is `public`.
    pub name: String,
    /// The form of the rows' keys.
    pub key: KeyForm,
    /// The columns that predicates of the scripts mention, including those of the key. Their values
    /// are kept with every version.
    pub columns: Vec<ObservedColumn>,
    /// False if rows may be written without being shown: by a function, a trigger, a cascade, or a
    /// statement that can't be observed. What searches missed is then unknown.
    pub closed: bool,
}

/// The form of a table's keys in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// The key is one integer column, and is kept as it is.
    Integer,
    /// The key is a text or has several columns; the log numbers the keys, and knows their texts.
    Numbered,
}

/// A column whose values are kept with every version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedColumn {
    /// The column's name.
    pub name: String,
    /// The form of its values.
    pub form: ValueForm,
}

#[cfg(test)]
mod tests;
