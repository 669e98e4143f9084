//! Errors of reading the write-ahead log.

use std::time::Duration;

use isobench_pgwire::SqlState;

use super::WalPlugin;
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
         logical (embedded server: --server-setting wal_level=logical; otherwise ALTER SYSTEM SET wal_level = \
         'logical', and the server has to be restarted)"
    )]
    Level {
        /// The value of `wal_level`.
        found: String,
    },
    /// The server has no replication slot left.
    #[error(
        "the write-ahead log can't be read, because that takes a free replication slot: {0} \
         (pg_replication_slots shows which are in use; max_replication_slots is set in postgresql.conf, and \
         the server has to be restarted)"
    )]
    NoSlots(String),
    /// The server hasn't the program that decodes the log.
    #[error(
        "the write-ahead log can't be decoded: {error}. The plugin {plugin} is one of PostgreSQL's contrib \
         modules (package postgresql-contrib, or the like); install it on the server"
    )]
    NoPlugin {
        /// The plugin's name.
        plugin: &'static str,
        /// The server's error.
        error: Error,
    },
    /// The server is a standby.
    #[error("the write-ahead log isn't read on a standby; name its primary")]
    Standby,
    /// Sessions may outlive those that use them.
    #[error(
        "the session isn't the server's own: a pooler stands between. A replication slot would stay there as \
         long as the pooler keeps its session; name the server itself"
    )]
    Pooler,
    /// What was committed isn't in the log on disk.
    #[error("the server didn't write its log within {patience:?}")]
    Unwritten {
        /// The time waited.
        patience: Duration,
    },
    /// None of the tables can be read.
    #[error("no table's writes can be read from the write-ahead log{}", reasons(.0))]
    NoTables(Vec<LeftOut>),
    /// A role may not do this.
    #[error("this role may not read the write-ahead log: {error}. It needs {}", needs(*plugin))]
    NotAllowed {
        /// What decodes the log.
        plugin: WalPlugin,
        /// The server's error.
        error: Error,
    },
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
    /// A line isn't of the expected format.
    #[error("the write-ahead log can't be decoded: {0}")]
    MalformedLine(TestDecodingError),
    /// Messages don't form transactions.
    #[error("the write-ahead log can't be decoded: {0}")]
    Disorder(&'static str),
    /// The primary key changed while the log was read.
    #[error("the primary key of table \"{table}\" was changed while its writes were read")]
    KeyChanged {
        /// The table's name.
        table: String,
    },
    /// A table became another one.
    #[error(
        "table \"{table}\", one of its partitions or its primary key was made, altered or dropped while its writes \
         were read"
    )]
    Altered {
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

/// The rights that reading takes.
fn needs(plugin: WalPlugin) -> &'static str {
    match plugin {
        WalPlugin::Pgoutput => {
            "the attribute REPLICATION (or has to be a superuser), the right CREATE on the database, and has to own \
             the tables"
        }
        WalPlugin::TestDecoding => {
            "the attribute REPLICATION (ALTER ROLE … REPLICATION), or has to be a superuser"
        }
    }
}

impl WalError {
    /// The error of a statement that may fail because the role has too few rights.
    pub(crate) fn of_rights(plugin: WalPlugin, error: Error) -> WalError {
        if error.code() == Some(SqlState::INSUFFICIENT_PRIVILEGE) {
            WalError::NotAllowed { plugin, error }
        } else {
            WalError::Server(error)
        }
    }
}

/// A line that isn't as `test_decoding` prints it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a line of test_decoding is malformed at byte {at}: {problem}")]
pub struct TestDecodingError {
    pub(super) at: usize,
    pub(super) problem: &'static str,
}

impl From<TestDecodingError> for WalError {
    fn from(error: TestDecodingError) -> WalError {
        WalError::MalformedLine(error)
    }
}
