//! A log of what a server's answers showed: rows with the identity of the transaction that wrote
//! them, and searches that didn't find rows.
//!
//! PostgreSQL stores in every row the number of the (sub)transaction that wrote it (`xmin`), so a
//! statement whose result includes key and `xmin` tells which version of which row was read, and a
//! `RETURNING` clause which one was written. No counter or writer's number in the user's tables is
//! needed. The log keeps just that. [`ObservedLog::resolve`] turns it into a
//! [`crate::History`]: it proves the order of each row's versions, and what searches missed.
//!
//! Not here: sending statements so that they show rows (`isobench-observation`), and reading the
//! results (`isobench-runner`).

mod predicate;

pub use predicate::{Comparison, NULL, Predicate};

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

/// The form of a column's values in a log. NULL is [`NULL`] in any form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// An integer of up to 64 bits.
    Integer,
    /// A boolean: 0 or 1.
    Boolean,
    /// A text; the log numbers the texts. Only equality and prefixes are known, and only for
    /// deterministic collations, in which equal texts are equal byte by byte.
    Text,
}
