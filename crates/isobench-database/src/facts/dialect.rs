//! The facts about a product that decide how its tables are created, filled and maintained.

use std::time::Duration;

/// The peculiarities of a product when tables are created.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a product, each read at one place"
)]
pub struct Dialect {
    /// Where primary keys are declared.
    pub primary_key: PrimaryKey,
    /// True if `WITH (fillfactor = …)` has an effect.
    pub fillfactor: bool,
    /// True if `CREATE UNLOGGED TABLE` is supported.
    pub unlogged: bool,
    /// True if tablespaces and declarative partitions are supported.
    pub storage: bool,
    /// The method to remove old rows before a load.
    pub empty: Empty,
    /// The method to load client-side rows.
    pub load: Load,
    /// The operator for division of integers with an integer result.
    pub integer_division: &'static str,
    /// Rows per statement of server-side generation; `None`: all in one transaction.
    pub series_batch: Option<u64>,
    /// The command that vacuums and analyses a table, without its name.
    pub vacuum: Option<&'static str>,
    /// The command that updates a table's statistics if there is no vacuum, without the table's
    /// name.
    pub analyze: Option<&'static str>,
    /// True if `CHECKPOINT` exists.
    pub checkpoint: bool,
    /// The statement that turns off parallel workers for a session's queries, because the server
    /// counts each start of one as a transaction. `None` if the product has no parallel workers, or
    /// doesn't count them.
    pub no_parallel_workers: Option<&'static str>,
    /// True if the columns of a foreign key need an index first.
    pub foreign_key_index: bool,
    /// The most retries of a statement or batch after conflicts while tables are created.
    pub retries: u32,
    /// Tables whose load took at least this long aren't loaded again for each measurement; their
    /// rows are put back instead. `None`: they are always created anew.
    pub put_back_after: Option<Duration>,
}

/// Where primary keys are declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrimaryKey {
    /// In a separate step after the load, as in pgbench.
    AddedLater,
    /// In `CREATE TABLE`, because adding one later rewrites the table or is impossible.
    InCreateTable,
}

/// The method to remove old rows before a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// One `TRUNCATE` of all tables.
    Truncate,
    /// One `DELETE` per table, referencing tables first.
    Delete,
}

/// The method to load client-side rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// TRUNCATE and COPY in one transaction, which allows `FREEZE`.
    CopyAtOnce,
    /// COPY in transactions of this many rows, each repeated after a conflict.
    CopyBatches(u64),
    /// `INSERT … VALUES` with this many rows each.
    Insert(u64),
}

/// The dialect expected of any product that speaks the protocol.
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
    no_parallel_workers: None,
    foreign_key_index: false,
    retries: 20,
    // It is unknown whether its storage keeps old rows, so new tables are the better state as long
    // as they are cheap.
    put_back_after: Some(Duration::from_secs(20)),
};
