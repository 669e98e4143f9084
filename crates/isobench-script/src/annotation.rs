//! Types for the lines `--@`, with which a script describes what its SQL commands read, write,
//! swallow and retry. `parse/annotations.rs` parses them.
//!
//! An isolation checker has to know which versions of which rows a transaction read and wrote. A
//! line `--@ KIND TABLE FIELD=SOURCE …` before an SQL command says where to find them in the
//! command's result. Two kinds, `swallowed` and `inside`, have no table; they describe attempts
//! made inside the server. To pgbench these lines are comments. The runner applies them to results.

use crate::symbols::Slot;

/// A line `--@ …` before an SQL command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Annotation {
    /// The line of the script, from 1.
    pub line: u32,
    /// The text, without surrounding blanks.
    pub text: String,
    /// The meaning of the line.
    pub what: Annotated,
}

/// The meaning of a command's result. Keys, groups, counters and values are 64-bit integers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Annotated {
    /// `read`: each row is a version of a row that was read. If only the version comes from the
    /// result, an empty result means that the row doesn't exist.
    Read {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// The version that was read.
        version: VersionSource,
    },
    /// `write`: each row of the result is a version that was written. If nothing comes from the
    /// result, there was one write, unless no row was affected.
    Write {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// The version that was made.
        version: VersionSource,
    },
    /// `insert`: like `write`, for a new row of a group.
    Insert {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// Its group.
        group: Source,
    },
    /// `append`: like `write`, for an element appended to the list in a row.
    Append {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// The element.
        element: Source,
    },
    /// `read-list`: each row has a whole list.
    ReadList {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// The column with the list, from 1.
        elements: u16,
    },
    /// `read-group`: all rows together are the result of reading a predicate.
    ReadGroup {
        /// The table.
        table: String,
        /// The group that was read; never a column.
        group: Source,
        /// The column with the rows' keys, from 1.
        key: u16,
    },
    /// `holds`: a condition that must be true of each row.
    Holds {
        /// The condition's name.
        name: String,
        /// The column with the boolean, from 1.
        value: u16,
    },
    /// `computed`: what the command writes may be computed from all that its transaction read before,
    /// outside of the script.
    Computed,
    /// `swallowed`: the statement may have caught an error without raising it again, so that its
    /// work was undone.
    Swallowed {
        /// The column with the SQLSTATE of the error, from 1; NULL if there was none.
        sqlstate: u16,
    },
    /// `inside`: the number of retries that the server made within the statement.
    Inside {
        /// The column with their number, from 1.
        retries: u16,
        /// The column with the microseconds that the failed attempts took, from 1.
        wasted: Option<u16>,
    },
}

/// The identification of a row's version; at least one field is present.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct VersionSource {
    /// `version`: the row's counter, which each write increases by 1.
    pub counter: Option<Source>,
    /// `value`: what identifies the writer.
    pub value: Option<Source>,
}

/// The source of a number.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// `$1`: a column of the result's row, from 1.
    Column(u16),
    /// `:name`: the value that the variable has when the command is sent.
    Variable(Slot),
    /// An integer.
    Number(i64),
}

impl Annotated {
    /// The table that the line describes, if any.
    pub fn table(&self) -> Option<&str> {
        match self {
            Self::Read { table, .. }
            | Self::Write { table, .. }
            | Self::Insert { table, .. }
            | Self::Append { table, .. }
            | Self::ReadList { table, .. }
            | Self::ReadGroup { table, .. } => Some(table),
            Self::Holds { .. } | Self::Computed | Self::Swallowed { .. } | Self::Inside { .. } => None,
        }
    }

    /// True if the line describes rows or conditions on rows, which only a recorded run keeps. The
    /// other kinds describe attempts, which every run counts, or what the script leaves out.
    pub fn is_recorded(&self) -> bool {
        !matches!(self, Self::Computed | Self::Swallowed { .. } | Self::Inside { .. })
    }
}
