//! The command line's request, resolved and checked.

use std::time::Duration;

use isobench_database::InitOptions;
use isobench_pgwire::Given;
use isobench_runner::Protocol;

use crate::scripts::Scripts;
use crate::version::Version;

/// The action that a command line requests.
#[derive(Debug, Clone)]
pub enum Request {
    /// Print this on standard output and end with status 0 (`--help`, `--version`).
    Print(String),
    /// Print this on standard error and end with status 0 (`-b list`, `--show-script`).
    Tell(String),
    /// Create the tables (`-i`).
    Initialize(Common, InitOptions),
    /// Run a benchmark.
    Benchmark(Common, Box<Benchmark>),
}

/// Options of both modes.
#[derive(Debug, Clone)]
pub struct Common {
    /// The version that is imitated.
    pub version: Version,
    /// Debugging messages are shown.
    pub debug: bool,
    /// The connection options as given, and the database, whose name pgbench finds in its own way.
    pub connection: Given,
}

/// The options of a run, each in the unit in which it is used.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Benchmark {
    /// The scripts, at least one, read and parsed (`-b`, `-f`, `-N`, `-S`).
    pub scripts: Scripts,
    /// Clients (`-c`).
    pub clients: usize,
    /// Threads, at most as many as clients (`-j`).
    pub threads: usize,
    /// Transactions of each client (`-t`), 10 by default; `None` with `-T`.
    pub transactions: Option<u64>,
    /// Duration of the run (`-T`).
    pub duration: Option<Duration>,
    /// A new connection for each transaction (`-C`).
    pub connect: bool,
    /// Variables (`-D`).
    pub defines: Vec<(String, String)>,
    /// Transactions are logged (`-l`).
    pub log: bool,
    /// Start of the logs' names (`--log-prefix`).
    pub log_prefix: String,
    /// Share of the transactions that is logged, above 0 to 1 (`--sampling-rate`).
    pub sampling_rate: Option<f64>,
    /// Length of the intervals that the logs aggregate (`--aggregate-interval`).
    pub aggregate_interval: Option<Duration>,
    /// The latency limit in whole microseconds, above 0 (`-L`).
    pub latency_limit: Option<Duration>,
    /// Protocol for statements (`-M`).
    pub protocol: Protocol,
    /// Don't vacuum (`-n`).
    pub no_vacuum: bool,
    /// Vacuum all tables (`-v`).
    pub vacuum_all: bool,
    /// Seconds between progress lines (`-P`).
    pub progress: Option<Duration>,
    /// Progress lines have the time of day (`--progress-timestamp`).
    pub progress_timestamp: bool,
    /// Report each command (`-r`).
    pub per_command: bool,
    /// Target rate, transactions per second over all clients (`-R`).
    pub rate: Option<f64>,
    /// The scale given (`-s`).
    pub scale: Option<u32>,
    /// Report failures by kind (`--failures-detailed`).
    pub failures_detailed: bool,
    /// Most tries; 0 is unlimited (`--max-tries`).
    pub max_tries: u32,
    /// Report every error and retry (`--verbose-errors`).
    pub verbose_errors: bool,
    /// End the run when a client is aborted (`--exit-on-abort`).
    pub exit_on_abort: bool,
    /// Continue after errors other than conflicts (`--continue-on-error`).
    pub continue_on_error: bool,
    /// The seed of all random numbers (`--random-seed`).
    pub seed: u64,
}
