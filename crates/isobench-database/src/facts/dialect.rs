//! The facts about a product that decide how its tables are made, filled and tidied.

use std::time::Duration;

/// What a product does its own way when tables are made.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a product, each read at one place"
)]
pub struct Dialect {
    /// Where the primary keys are declared.
    pub primary_key: PrimaryKey,
    /// Whether `WITH (fillfactor = …)` means something.
    pub fillfactor: bool,
    /// Whether `CREATE UNLOGGED TABLE` is understood.
    pub unlogged: bool,
    /// Whether tablespaces and declarative partitions are understood.
    pub storage: bool,
    /// How old rows are removed before a load.
    pub empty: Empty,
    /// How client-side rows get in.
    pub load: Load,
    /// The operator that divides integers and stays an integer.
    pub integer_division: &'static str,
    /// Rows per statement of a server-side generation; `None`: all in one transaction.
    pub series_batch: Option<u64>,
    /// The command that vacuums and analyses a table, without its name.
    pub vacuum: Option<&'static str>,
    /// The command that refreshes a table's statistics where there is no vacuum, without the
    /// table's name.
    pub analyze: Option<&'static str>,
    /// Whether `CHECKPOINT` exists.
    pub checkpoint: bool,
    /// The statement after which a session's queries have no helping processes, whose starts the
    /// server counts as transactions; `None` where it has none, or counts none.
    pub no_helpers: Option<&'static str>,
    /// Whether the columns of a foreign key need an index first.
    pub foreign_key_index: bool,
    /// How often a statement or batch is tried again after a conflict while tables are made.
    pub retries: u32,
    /// Tables whose load took this long aren't loaded again for each measurement: their rows are
    /// put back. `None`: they are always made anew.
    pub put_back_after: Option<Duration>,
}

/// Where primary keys are declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrimaryKey {
    /// In a step of its own after the load, as pgbench does.
    AddedLater,
    /// In `CREATE TABLE`, because adding one later rewrites the table, or can't be done.
    InCreateTable,
}

/// How old rows are removed before a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// One `TRUNCATE` of all tables.
    Truncate,
    /// One `DELETE` per table, those that refer to others first.
    Delete,
}

/// How client-side rows get in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Truncate and COPY in one transaction, so that `FREEZE` is possible.
    CopyAtOnce,
    /// COPY in transactions of this many rows, each tried again on a conflict.
    CopyBatches(u64),
    /// `INSERT … VALUES` of this many rows each.
    Insert(u64),
}

/// What can be expected of any product that speaks the protocol.
pub(crate) const CAUTIOUS: Dialect = Dialect {
    primary_key: PrimaryKey::InCreateTable,
    fillfactor: false,
    unlogged: false,
    storage: false,
    empty: Empty::Delete,
    load: Load::Insert(1000),
    integer_division: "/",
    series_batch: Some(10_000),
    vacuum: None,
    analyze: None,
    checkpoint: false,
    no_helpers: None,
    foreign_key_index: false,
    retries: 20,
    // Nobody knows what its storage keeps of old rows, so new tables are the better state as long
    // as they are cheap.
    put_back_after: Some(Duration::from_secs(20)),
};
