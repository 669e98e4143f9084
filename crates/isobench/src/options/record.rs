//! Options of `isobench record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use isobench_record::Injection;

use super::ConnectionOptions;

/// Options of `isobench record`.
#[expect(clippy::doc_markdown, reason = "the help shows settings as PostgreSQL's manual does")]
#[derive(Debug, Args)]
#[command(
    after_help = "COMMAND finds the recorder by PGHOST, PGPORT, PGDATABASE, PGUSER and DATABASE_URL. Its exit \
status is that of isobench. Without COMMAND, --listen is needed, and recording ends by Ctrl-C.

A capture holds SQL, parameters and the first 20 rows of each result (of values above 1 kB a hash): treat it as the \
database itself. It never holds what is sent to log in, nor COPY data. A statement that may hold a password loses its \
literals, the texts of its parameters and results, and its error messages. Such statements create or alter roles, \
servers, subscriptions or foreign tables, change other settings than the server's own, execute what was prepared by \
SQL, run DO or a program, or call functions such as dblink, crypt and set_config. Addresses with a password are hashed \
everywhere.

--redact replaces by hashes: text, JSON, bytea and all other values that aren't numbers, truth values, dates, times \
or UUIDs; string literals in SQL; untyped parameters, unless they look like one of these. It drops messages of errors, \
and comments except traceparent. Names of tables and columns, numbers, SQLSTATEs and the start-up parameters (user, \
database, application_name) stay. Equal values have equal hashes within one capture; the key of the hashes isn't kept. \
A statement is hashed as a whole if it isn't certain where its literals end."
)]
pub struct RecordOptions {
    /// The capture, a new file that only you can read
    #[arg(long, short = 'o', value_name = "FILE", default_value = "isobench.capture")]
    pub output: PathBuf,
    /// Where the application connects [default: a free port of 127.0.0.1]
    ///
    /// An address and port, or a folder for a Unix socket.
    #[arg(long, value_name = "ADDRESS:PORT|FOLDER")]
    pub listen: Option<String>,
    /// Keep hashes instead of text, and no messages of errors (see below)
    #[arg(long)]
    pub redact: bool,
    /// Make COMMITs fail with this error and probability, such as 40001:0.01
    ///
    /// isobench rolls back, and answers with the error.
    #[arg(long, value_name = "SQLSTATE:PROBABILITY")]
    pub inject: Option<Injection>,
    /// Show what a capture holds, instead of recording
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "redact", "inject", "command", "from_log"])]
    pub show: Option<PathBuf>,
    /// Make the capture from the server's logs
    ///
    /// csvlog or jsonlog, with log_statement=all or log_min_duration_statement=0.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["listen", "inject", "command"])]
    pub from_log: Vec<PathBuf>,
    /// The server.
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// The application, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
