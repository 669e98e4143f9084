//! Errors of reading the write-ahead log.

use std::time::Duration;

use isobench_pgwire::SqlState;

use super::pgoutput::PgoutputError;
use super::tables::LeftOut;
use crate::error::Error;

/// A failure to read the write-ahead log.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The server isn't one that isobench can read from.
    #[error(
        "committed writes can be read from the write-ahead log of PostgreSQL 14 and later only; this \
         server is {product} {version}"
    )]
    Product {
        /// The product's name.
        product: &'static str,
        /// Its version; empty if unknown.
        version: String,
    },
    /// The server's log has too little.
    #[error(
        "the write-ahead log doesn't show which rows were written: wal_level is {found}, and has to be \
         logical (embedded server: --server-setting wal_level=logical; otherwise in postgresql.conf, \
         and the server has to be restarted)"
    )]
    Level {
        /// The value of `wal_level`.
        found: String,
    },
    /// The server allows no replication slots.
    #[error(
        "the write-ahead log can't be read: max_replication_slots is {found}, and one slot is needed \
         (in postgresql.conf, and the server has to be restarted)"
    )]
    NoSlots {
        /// The value of `max_replication_slots`.
        found: String,
    },
    /// None of the tables can be read.
    #[error("no table's writes can be read from the write-ahead log{}", reasons(.0))]
    NoTables(Vec<LeftOut>),
    /// A role may not do this.
    #[error(
        "this role may not read the write-ahead log: {0}. It needs the attribute REPLICATION (or has \
         to be a superuser), the right CREATE on the database, and has to own the tables"
    )]
    NotAllowed(Error),
    /// Transactions that were open before the slot didn't end.
    #[error(
        "reading the write-ahead log couldn't begin within {patience:?}: it begins when all transactions \
         that have written have ended; end those that are open (pg_stat_activity, pg_prepared_xacts)"
    )]
    Open {
        /// The time waited.
        patience: Duration,
    },
    /// The session with the slot is lost.
    #[error(
        "the session that held the replication slot was lost, and with it what hasn't been read of the \
         write-ahead log: {0}. The server ends it if the log grows beyond max_slot_wal_keep_size"
    )]
    Lost(Error),
    /// An earlier call failed.
    #[error("an earlier attempt to read the write-ahead log failed, so what it read is lost")]
    Spent,
    /// A message isn't of the documented format.
    #[error("the write-ahead log can't be decoded: {0}")]
    Malformed(#[from] PgoutputError),
    /// Messages don't form transactions.
    #[error("the write-ahead log can't be decoded: {0}")]
    Disorder(&'static str),
    /// The primary key changed while the log was read.
    #[error("the primary key of table \"{table}\" was changed while its writes were read")]
    KeyChanged {
        /// The table's name.
        table: String,
    },
    /// A transaction or a row is too large.
    #[error(
        "{} wrote more than the {limit} bytes that may be kept of one transaction",
        xid.map_or("a transaction".to_owned(), |xid| format!("transaction {xid}"))
    )]
    TooLarge {
        /// The transaction's number, if it is known.
        xid: Option<u32>,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A statement failed, or its answer wasn't the expected one.
    #[error(transparent)]
    Server(#[from] Error),
}

fn reasons(tables: &[LeftOut]) -> String {
    let reasons: Vec<String> = tables.iter().map(ToString::to_string).collect();
    if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
}

impl WalError {
    /// The error of a statement that may fail because the role has too few rights.
    pub(crate) fn of_rights(error: Error) -> WalError {
        if error.code() == Some(SqlState::INSUFFICIENT_PRIVILEGE) {
            WalError::NotAllowed(error)
        } else {
            WalError::Server(error)
        }
    }
}
