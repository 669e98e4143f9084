//! What a script says its SQL commands read, write, swallow and retry: types only;
//! `parse/observations.rs` reads the lines.
//!
//! An isolation checker has to know which versions of which rows a transaction read and wrote. A
//! line `--@ KIND TABLE FIELD=SOURCE …` before an SQL command says where the command's result has
//! them. Two kinds, without a table, tell of attempts instead, which only the server knows of:
//! `swallowed` and `inside`. To pgbench all are comments. Not here: what becomes of it when the
//! result comes (the runner).

use crate::symbols::Slot;

/// One line `--@ …` before an SQL command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Observation {
    /// The line of the script, from 1.
    pub line: u32,
    /// Its text, without blanks around it.
    pub text: String,
    /// What it says.
    pub what: Observed,
}

/// What a command's result tells. Keys, groups, counters and values are 64-bit integers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Observed {
    /// `read`: every row is a version of a row that was read. If none but the version comes from
    /// the result and the result is empty: the row isn't there.
    Read {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// The version that was read.
        version: VersionSource,
    },
    /// `write`: every row of the result is a version that was written; if nothing comes from the
    /// result: one, unless no row was written.
    Write {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// The version that was made.
        version: VersionSource,
    },
    /// `insert`: as `write`, a new row of a group.
    Insert {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// Its group.
        group: Source,
    },
    /// `append`: as `write`, an element at the end of the list in a row.
    Append {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// The element.
        element: Source,
    },
    /// `read-list`: every row has a whole list.
    ReadList {
        /// The table.
        table: String,
        /// The row's key.
        key: Source,
        /// The column with the list, from 1.
        elements: u16,
    },
    /// `read-group`: all rows together are what was read by a predicate.
    ReadGroup {
        /// The table.
        table: String,
        /// The group that was asked for; never a column.
        group: Source,
        /// The column with the rows' keys, from 1.
        key: u16,
    },
    /// `holds`: something that must be true of every row.
    Holds {
        /// What it is called.
        name: String,
        /// The column with the boolean, from 1.
        value: u16,
    },
    /// `swallowed`: whether the statement caught an error and didn't raise it again, so that its
    /// work is undone.
    Swallowed {
        /// The column with the error's SQLSTATE, from 1; NULL: there was none.
        sqlstate: u16,
    },
    /// `inside`: how many further attempts the server made within the statement.
    Inside {
        /// The column with their number, from 1.
        retries: u16,
        /// The column with the microseconds that the failed ones took, from 1.
        wasted: Option<u16>,
    },
}

/// Which version of a row it is; one of them is there at least.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct VersionSource {
    /// `version`: the row's counter, which each write increases by 1.
    pub counter: Option<Source>,
    /// `value`: what identifies the writer.
    pub value: Option<Source>,
}

/// Where a number comes from.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// `$1`: a column of the result's row, from 1.
    Column(u16),
    /// `:name`: the value that the variable has when the command is sent.
    Variable(Slot),
    /// An integer.
    Number(i64),
}

impl Observed {
    /// The table that it tells of, if it does.
    pub fn table(&self) -> Option<&str> {
        match self {
            Self::Read { table, .. }
            | Self::Write { table, .. }
            | Self::Insert { table, .. }
            | Self::Append { table, .. }
            | Self::ReadList { table, .. }
            | Self::ReadGroup { table, .. } => Some(table),
            Self::Holds { .. } | Self::Swallowed { .. } | Self::Inside { .. } => None,
        }
    }

    /// True if it tells of rows or of what must be true of them, which only a run that is recorded
    /// keeps; the others tell of attempts, which every run counts.
    pub fn is_recorded(&self) -> bool {
        !matches!(self, Self::Swallowed { .. } | Self::Inside { .. })
    }
}
