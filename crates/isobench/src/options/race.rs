//! Options of `isobench race`.

use std::path::PathBuf;

use clap::Args;
use isobench_isolation::Level;
use isobench_race::Readiness;

use super::{ConnectionOptions, EmbeddedOptions, GateOptions};

/// The heading of options on the database.
const DATABASE: &str = "Database (its rows are changed, and put back before each schedule)";

/// The heading of options on captures.
const RECORDED: &str = "Capture";

/// Options of `isobench race`.
#[expect(clippy::doc_markdown, reason = "the help shows variables as a shell does")]
#[derive(Debug, Args)]
#[command(
    after_help = "COMMAND is a line of shell; --and separates two or three of them. One alone is run twice. \
Commands and the application find isobench by PGHOST, PGPORT, PGDATABASE, PGUSER and DATABASE_URL. A command \
gets its name, A, B or C, by ISOBENCH_COMMAND, and a trace by TRACEPARENT. A command that begins with curl prints the \
status of HTTP, too.

The commands really run, many times. isobench puts back rows and sequences. E-mails, files, caches, queues and other \
databases stay as the commands leave them.

Exit status: 0 no race in the schedules that were tried; 3 a race at the application's own level, or at the first of \
--levels; 2 the commands couldn't be tried against each other; 1 wrong options, or no server. Of a capture: 0 no \
suspects, or with --check none that isn't accepted; 3 changes lost while it was recorded, or suspects at the levels at \
which its transactions ran; 2 none could be judged."
)]
pub struct RaceOptions {
    /// Isolation levels of sessions: rc, rr, ser [default: the application's and stronger ones]
    ///
    /// Also their full names.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = level)]
    pub levels: Vec<Level>,
    /// Time for the schedules of each level, such as 30s
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = isobench_plan::seconds)]
    pub budget: f64,
    /// Try the pairs of commands in this file: none may race
    ///
    /// A list of lists. Of a capture: name only suspects that this file doesn't accept.
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["command", "schedule"])]
    pub check: Option<PathBuf>,
    /// Try only this schedule: A3,B is three statements of A, then B, then the rest of A
    #[arg(long, value_name = "SCHEDULE")]
    pub schedule: Option<String>,
    /// Query that returns true as long as the data are right (repeatable)
    ///
    /// Such as 'total: SELECT sum(balance) = 1000 FROM account'.
    #[arg(long, value_name = "[NAME:] SQL")]
    pub invariant: Vec<String>,
    /// Don't compare this table or column (repeatable); such a table isn't put back
    #[arg(long, value_name = "TABLE[.COLUMN]")]
    pub ignore: Vec<String>,
    /// Write what was found to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The files for services.
    #[command(flatten)]
    pub gates: GateOptions,
    /// SQL script that makes the tables of a capture
    #[arg(long, value_name = "FILE.sql", requires = "capture", conflicts_with = "copy_from", help_heading = RECORDED)]
    pub setup: Option<PathBuf>,
    /// Accept all suspects of a capture: write them to this file, for --check
    #[arg(long, value_name = "FILE.toml", requires = "capture", conflicts_with = "check", help_heading = RECORDED)]
    pub write: Option<PathBuf>,
    /// Print all suspects of a capture, and all its kinds of transactions
    #[arg(long, requires = "capture", help_heading = RECORDED)]
    pub details: bool,
    /// Start the application by this shell line, again for each level
    #[arg(long, value_name = "COMMAND", requires = "ready", help_heading = "Application")]
    pub serve: Option<String>,
    /// It is ready once this port of 127.0.0.1 accepts connections, or this URL answers
    #[arg(long, value_name = "PORT|URL", requires = "serve", help_heading = "Application")]
    pub ready: Option<Readiness>,
    /// Where application and commands connect [default: a free port of 127.0.0.1]
    ///
    /// A port, or an address and port, for an application whose settings are in a file.
    #[arg(long, value_name = "[ADDRESS:]PORT", help_heading = "Application")]
    pub listen: Option<String>,
    /// Wait this long for work after each command's answer [default: as its first run shows]
    #[arg(long, value_name = "TIME", value_parser = isobench_plan::seconds, help_heading = "Application")]
    pub settle: Option<f64>,
    /// Watch the application at rest first: what it does then is never held
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        value_parser = isobench_plan::seconds,
        requires = "serve",
        help_heading = "Application"
    )]
    pub watch: f64,
    /// Copy this database to an embedded PostgreSQL by pg_dump, and use the copy
    ///
    /// A connection string or URI.
    #[arg(long, value_name = "CONNINFO", help_heading = DATABASE, conflicts_with = "on_this_database")]
    pub copy_from: Option<String>,
    /// Use the named database itself, which nobody else may use; its name again
    #[arg(long, value_name = "DBNAME", help_heading = DATABASE)]
    pub on_this_database: Option<String>,
    /// Megabytes above which tables aren't copied or put back
    #[arg(long, value_name = "MB", default_value = "200", help_heading = DATABASE)]
    pub size_limit: u64,
    /// The embedded server.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// The named server.
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Capture (isobench record): show lost changes, and transactions that can race
    #[arg(value_name = "CAPTURE", conflicts_with_all = ["command", "schedule", "on_this_database", "serve"])]
    pub capture: Option<PathBuf>,
    /// The commands
    #[arg(last = true, required_unless_present_any = ["check", "capture"], value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn level(text: &str) -> Result<Level, String> {
    text.parse().map_err(|error: isobench_isolation::UnknownLevel| error.to_string())
}
