//! Options of `isobench run`: pgbench's, and isobench's own.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use isobench_plan::{EventLoop, Observe, Requirement};
use isobench_result::figure::requirement;
use isobench_runner::LogSettings;

use isobench_plan::RetriedState;

use super::{ConnectionOptions, EmbeddedOptions, MachineOptions, MonitorOptions, TableOptions};

/// Options that a run seldom needs.
const SELDOM: [&str; 25] = [
    "aggregate_interval",
    "bin",
    "csv",
    "debug",
    "define",
    "event_loop",
    "exit_on_abort",
    "fillfactor",
    "foreign_keys",
    "history",
    "invariant",
    "log_prefix",
    "no_vacuum",
    "observe",
    "progress_timestamp",
    "random_seed",
    "retry_sqlstate",
    "sampling_rate",
    "settings",
    "show_script",
    "stop_on_broken",
    "think_time",
    "unlogged_tables",
    "vacuum_all",
    "verbose_errors",
];

/// Options of `isobench run`.
#[derive(Debug, Args)]
#[command(
    after_help = "These are the usual options; --help-all lists every one.",
    after_long_help = "",
    mut_args(|arg| if SELDOM.contains(&arg.get_id().as_str()) { arg.hide_short_help(true) } else { arg })
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of pgbench")]
pub struct RunOptions {
    /// Isolation level of all sessions: ru, rc, rr, ser [default: the server's]
    #[arg(long, visible_alias = "levels", value_name = "LEVEL")]
    pub isolation: Option<String>,
    /// Delay before a retry: none, fixed:5ms, exponential, …; a wrong one lists them all
    #[arg(long, value_name = "POLICY", default_value = "none")]
    pub backoff: String,
    /// Write the result as JSON to this file (- for stdout)
    ///
    /// With - the summary is written to standard error.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a line of titles and a line of numbers as CSV to this file (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Exit with 4 unless this holds, such as 'anomalies == 0' (repeatable)
    ///
    /// METRIC[.low|.high] OP NUMBER, such as 'tps >= 1000'.
    #[arg(long, value_name = "EXPRESSION", value_parser = requirement)]
    pub require: Vec<Requirement>,
    /// Milliseconds a client pauses between two transactions
    #[arg(long, value_name = "MS", value_parser = isobench_plan::milliseconds)]
    pub think_time: Option<f64>,
    /// SQLSTATEs of further errors to retry, such as 23505 (unique violation)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub retry_sqlstate: Vec<RetriedState>,
    /// Continue with the next transaction after an error other than a conflict
    #[arg(long)]
    pub continue_on_error: bool,
    /// Checked workload, built-in script or script file
    ///
    /// The tables of a checked workload (see isobench workloads) are made on an embedded server,
    /// elsewhere by isobench init --workload.
    #[arg(
        long,
        short = 'w',
        value_name = "NAME",
        conflicts_with_all = ["builtin", "file", "skip_some_updates", "select_only"]
    )]
    pub workload: Option<String>,
    /// Query that returns true as long as the data are right (repeatable)
    ///
    /// Such as 'total: SELECT sum(balance) = 1000, sum(balance) FROM account'. Asked before and after
    /// the run. NAME: and a second column, the value to show, may be left out.
    #[arg(long, value_name = "[NAME:] SQL")]
    pub invariant: Vec<String>,
    /// How isobench waits for its connections
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub event_loop: EventLoop,
    /// How reads and writes are tracked for the verdict
    #[arg(long, value_name = "HOW", default_value = "annotations")]
    pub observe: Observe,
    /// Write the recorded history to this file
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Record and check no history, and send every statement as written
    #[arg(long, conflicts_with = "history")]
    pub no_verdict: bool,

    /// Don't sample the server's own statistics (waits, locks, counters) of a run with --isolation
    #[arg(long)]
    pub no_server_side: bool,

    /// End at the first broken promise: an anomaly that the level forbids
    #[arg(long, conflicts_with = "no_verdict")]
    pub stop_on_broken: bool,

    /// Built-in script: tpcb-like, simple-update, select-only (or a prefix of these), or list
    #[arg(short, long, value_name = "NAME[@WEIGHT]", help_heading = "pgbench's options")]
    pub builtin: Vec<String>,
    /// Script file, - for standard input
    #[arg(short, long, value_name = "FILENAME[@WEIGHT]", help_heading = "pgbench's options")]
    pub file: Vec<String>,
    /// Same as -b simple-update
    #[arg(short = 'N', long, help_heading = "pgbench's options")]
    pub skip_some_updates: bool,
    /// Same as -b select-only
    #[arg(short = 'S', long, help_heading = "pgbench's options")]
    pub select_only: bool,
    /// Number of clients
    #[arg(
        short,
        long,
        visible_alias = "clients",
        value_name = "NUM",
        default_value_t = 1,
        help_heading = "pgbench's options"
    )]
    pub client: usize,
    /// Number of worker threads
    #[arg(short, long, value_name = "NUM", default_value_t = 1, help_heading = "pgbench's options")]
    pub jobs: usize,
    /// Transactions of each client [default: 10]
    #[arg(short, long, value_name = "NUM", conflicts_with = "time", help_heading = "pgbench's options")]
    pub transactions: Option<u64>,
    /// Duration in seconds; also 500ms or 2min
    #[arg(
        short = 'T',
        long,
        value_name = "NUM",
        value_parser = isobench_plan::seconds,
        help_heading = "pgbench's options"
    )]
    pub time: Option<f64>,
    /// Define a variable for the scripts
    #[arg(short = 'D', long, value_name = "VARNAME=VALUE", help_heading = "pgbench's options")]
    pub define: Vec<String>,
    /// Protocol: simple, extended, prepared
    #[arg(
        short = 'M',
        long,
        value_name = "PROTOCOL",
        default_value = "simple",
        help_heading = "pgbench's options"
    )]
    pub protocol: String,
    /// Scale of the tables, as reported and as :scale
    #[arg(
        short,
        long,
        value_name = "NUM",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "pgbench's options"
    )]
    pub scale: Option<u32>,
    /// Run no VACUUM before the test
    #[arg(short, long, help_heading = "pgbench's options")]
    pub no_vacuum: bool,
    /// Vacuum all four tables before the test
    #[arg(short, long, help_heading = "pgbench's options")]
    pub vacuum_all: bool,
    /// Transactions started per second
    #[arg(short = 'R', long, value_name = "NUM", help_heading = "pgbench's options")]
    pub rate: Option<f64>,
    /// Count transactions longer than this many ms as late
    #[arg(
        short = 'L',
        long,
        value_name = "NUM",
        value_parser = isobench_plan::milliseconds,
        help_heading = "pgbench's options"
    )]
    pub latency_limit: Option<f64>,
    /// Make a new connection for each transaction
    #[arg(short = 'C', long, help_heading = "pgbench's options")]
    pub connect: bool,
    /// Write each transaction to a log file, one for each worker
    #[arg(short, long, help_heading = "pgbench's options")]
    pub log: bool,
    /// Beginning of the log files' names
    #[arg(
        long,
        value_name = "PREFIX",
        requires = "log",
        default_value = LogSettings::PREFIX,
        help_heading = "pgbench's options"
    )]
    pub log_prefix: String,
    /// The share of transactions that is logged, above 0 to 1
    #[arg(
        long,
        value_name = "NUM",
        requires = "log",
        conflicts_with = "aggregate_interval",
        help_heading = "pgbench's options"
    )]
    pub sampling_rate: Option<f64>,
    /// Log sums over this many seconds instead of transactions
    #[arg(
        long,
        value_name = "NUM",
        requires = "log",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "pgbench's options"
    )]
    pub aggregate_interval: Option<u32>,
    /// Show progress at this interval in seconds
    #[arg(
        short = 'P',
        long,
        value_name = "NUM",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "pgbench's options"
    )]
    pub progress: Option<u32>,
    /// Show progress with the time of day
    #[arg(long, requires = "progress", help_heading = "pgbench's options")]
    pub progress_timestamp: bool,
    /// Report latencies, failures and retries for each command
    #[arg(short, long, help_heading = "pgbench's options")]
    pub report_per_command: bool,
    /// Report failures by kind
    #[arg(long, help_heading = "pgbench's options")]
    pub failures_detailed: bool,
    /// The most attempts of one transaction; 0 is unlimited, with -T or -L
    #[arg(long, value_name = "NUM", default_value_t = 1, help_heading = "pgbench's options")]
    pub max_tries: u32,
    /// End the run as soon as a client is aborted
    #[arg(long, conflicts_with = "continue_on_error", help_heading = "pgbench's options")]
    pub exit_on_abort: bool,
    /// Show every error that an attempt meets, and what follows
    #[arg(long, help_heading = "pgbench's options")]
    pub verbose_errors: bool,
    /// Show every step of every client
    #[arg(long, help_heading = "pgbench's options")]
    pub debug: bool,
    /// Show a built-in script and do nothing else
    #[arg(long, value_name = "NAME", help_heading = "pgbench's options")]
    pub show_script: Option<String>,
    /// Seed of the random numbers: time, rand or an integer
    #[arg(
        long,
        visible_alias = "seed",
        value_name = "SEED",
        default_value = "time",
        help_heading = "pgbench's options"
    )]
    pub random_seed: String,
    /// Live metrics.
    #[command(flatten)]
    pub monitor: MonitorOptions,
    /// The machines.
    #[command(flatten)]
    pub machines: MachineOptions,
    /// The tables of an embedded server.
    #[command(flatten)]
    pub tables: TableOptions,
    /// The embedded server.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// The named server.
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print all options
    #[arg(long, action = ArgAction::HelpLong, help_heading = "Help")]
    help_all: Option<bool>,
    /// Database name, connection string or URI
    #[arg(value_name = "DBNAME")]
    pub database: Option<String>,
}
