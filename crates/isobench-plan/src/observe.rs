//! How the reads and writes of transactions are observed.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::Setting;

/// How the reads and writes of transactions are observed, for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Observe {
    /// Statements are sent with output columns that show keys and writers of rows; on products other
    /// than PostgreSQL, and in paced runs, by the lines `--@` of the scripts
    #[default]
    Rows,
    /// As rows, and by PostgreSQL's write-ahead log as a second source: for the order of versions, and
    /// what functions, triggers and cascades wrote. The server then writes more. A named server has to
    /// be set up for logical decoding; it gets a temporary replication slot while a cell is measured
    Wal,
    /// As wal, and by snapshots: each transaction at repeatable read or serializable is asked for its own
    /// just before COMMIT. What statements read without showing it is then narrowed down to the writes
    /// that their snapshots didn't have
    Snapshot,
    /// By the lines `--@` of the scripts; every statement is sent as written
    Annotations,
}

impl Observe {
    /// True if statements are sent with columns that show rows.
    pub fn shows_rows(self) -> bool {
        self != Observe::Annotations
    }

    /// True if the server's write-ahead log is read.
    pub fn reads_log(self) -> bool {
        matches!(self, Observe::Wal | Observe::Snapshot)
    }

    /// The setting that an embedded server needs for it, if any.
    pub fn server_setting(self) -> Option<Setting> {
        let logical = || Setting { name: "wal_level".to_owned(), value: "logical".to_owned() };
        self.reads_log().then(logical)
    }
}
