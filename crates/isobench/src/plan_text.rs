//! A plan as it is written: as options of the command line, and with the same names as keys of a
//! file.
//!
//! Not here: what it means (`plan.rs`).

mod file;

use std::path::PathBuf;

use clap::Args;
use isobench_report::Experiment;
use serde::Deserialize;

pub use self::file::{PUBLISHED, Size, published, read};

/// A plan as it is written: on the command line or, with the same names, in a TOML file.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlanOptions {
    /// Isolation levels, in the order of the table: ru, rc, rr, ser or their full names [default:
    /// rc,rr,ser]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub levels: Option<Vec<String>>,
    /// Built-in script (tpcb-like, simple-update, select-only) or script file, with @WEIGHT and
    /// repeated a mix; or one checked workload, such as registers or write-skew+for-update (see
    /// isobench workloads) [default: tpcb-like]
    #[arg(long, short = 'w', value_name = "NAME|FILE[@WEIGHT]")]
    pub workload: Option<Vec<String>>,
    /// Ways in which the application copes with conflicts, as a factor: retry, procedure, swallow,
    /// single-statement, savepoint, for-update, advisory-lock, reorder, or any variant of a checked
    /// workload [default: the workload as it is, which retries]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub strategies: Option<Vec<String>>,
    /// A parameter and its values, as a factor: of the workload (rows=10,1000), of pgbench's tables
    /// (scale, foreign-keys=off,on, unlogged-tables, fillfactor, script-scale), a variable of your
    /// own scripts, or server-version=14,18; one value sets it (repeatable)
    #[arg(long, value_name = "NAME=VALUE,VALUE")]
    pub vary: Option<Vec<String>>,
    /// SQL script that makes the tables of a workload of your own, run before every cell instead of
    /// making pgbench's tables
    #[arg(long, value_name = "FILE.sql")]
    pub setup: Option<PathBuf>,
    /// Numbers of clients [default: 8]
    #[arg(long, short = 'c', value_name = "LIST", value_delimiter = ',')]
    pub clients: Option<Vec<usize>>,
    /// Worker threads of isobench itself [default: 1]
    #[arg(long, short = 'j', value_name = "NUM")]
    pub jobs: Option<usize>,
    /// Scale of the TPC-B-like tables; 1 means one branch, on which every client collides [default:
    /// 1]
    #[arg(long, short = 's', value_name = "NUM")]
    pub scale: Option<u32>,
    /// Seconds measured in each cell [default: 2.5]
    #[arg(long, short = 'T', value_name = "SECONDS")]
    pub time: Option<f64>,
    /// Transactions of each client in each cell, instead of a time
    #[arg(long, short = 't', value_name = "NUM")]
    pub transactions: Option<u64>,
    /// Seconds run before measuring, in each cell; repeated until the rate is steady [default: 0.5]
    #[arg(long, value_name = "SECONDS")]
    pub warmup: Option<f64>,
    /// The longest warm-up in seconds [default: three steps]
    #[arg(long, value_name = "SECONDS")]
    pub max_warmup: Option<f64>,
    /// How often every cell is measured, interleaved with the others [default: 5]
    #[arg(long, value_name = "NUM")]
    pub rounds: Option<u32>,
    /// Measure the first level twice in every round, to learn what equal cells differ by on this
    /// machine; smaller differences are noise
    #[arg(long, num_args = 0, default_missing_value = "true", value_name = "BOOL")]
    pub calibrate: Option<bool>,
    /// Go on with rounds until every ratio is known to this precision, such as 2%, or the time
    /// limit is reached
    #[arg(long, value_name = "PERCENT")]
    pub resolve: Option<String>,
    /// Begin no further round that would end after so many seconds [default: unlimited; with
    /// --resolve 600]
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// The most attempts of one transaction; 0 is unlimited [default: 0]
    #[arg(long, value_name = "NUM")]
    pub max_tries: Option<u32>,
    /// Delay before a retry: none, fixed:DELAY or
    /// exponential:base=…,factor=…,max=…,jitter=full|none [default: none]
    #[arg(long, value_name = "LIST")]
    pub backoff: Option<Vec<String>>,
    /// How statements are sent: simple, extended or prepared [default: simple]
    #[arg(long, short = 'M', value_name = "PROTOCOL")]
    pub protocol: Option<String>,
    /// Transactions per second that are begun, over all clients; latency then counts from the
    /// scheduled start [default: unlimited]
    #[arg(long, short = 'R', value_name = "LIST", value_delimiter = ',')]
    pub rate: Option<Vec<f64>>,
    /// After the rounds, search for the highest rate of each level at which 99 % of the
    /// transactions commit within --latency-limit
    #[arg(long, num_args = 0, default_missing_value = "true", value_name = "BOOL")]
    pub sweep: Option<bool>,
    /// Milliseconds after which a transaction is late, and not retried
    #[arg(long, short = 'L', value_name = "MS")]
    pub latency_limit: Option<f64>,
    /// Milliseconds a client pauses between two transactions
    #[arg(long, value_name = "MS")]
    pub think_time: Option<f64>,
    /// Seed of all random numbers, also of the order of the cells [default: 1]
    #[arg(long, value_name = "NUM")]
    pub seed: Option<u64>,
    /// Refuse a level that the server runs as another one
    #[arg(long, num_args = 0, default_missing_value = "true", value_name = "BOOL")]
    pub strict_levels: Option<bool>,
    /// Only in a plan's file: settings of the embedded server, such as `autovacuum=off`;
    /// --server-setting adds to them
    #[arg(skip)]
    pub server_settings: Option<Vec<String>>,
    /// Only in a plan's file: what its full size changes
    #[arg(skip)]
    pub full: Option<Box<PlanOptions>>,
    /// Only in a plan's file: the published experiment that it repeats
    #[arg(skip)]
    pub experiment: Option<Experiment>,
}

impl PlanOptions {
    /// What is given here, else what `other` has.
    pub fn or(self, other: PlanOptions) -> PlanOptions {
        PlanOptions {
            levels: self.levels.or(other.levels),
            workload: self.workload.or(other.workload),
            setup: self.setup.or(other.setup),
            clients: self.clients.or(other.clients),
            jobs: self.jobs.or(other.jobs),
            scale: self.scale.or(other.scale),
            warmup: self.warmup.or(other.warmup),
            max_warmup: self.max_warmup.or(other.max_warmup),
            calibrate: self.calibrate.or(other.calibrate),
            resolve: self.resolve.or(other.resolve),
            time_limit: self.time_limit.or(other.time_limit),
            sweep: self.sweep.or(other.sweep),
            rounds: self.rounds.or(other.rounds),
            max_tries: self.max_tries.or(other.max_tries),
            backoff: self.backoff.or(other.backoff),
            protocol: self.protocol.or(other.protocol),
            rate: self.rate.or(other.rate),
            latency_limit: self.latency_limit.or(other.latency_limit),
            think_time: self.think_time.or(other.think_time),
            seed: self.seed.or(other.seed),
            strict_levels: self.strict_levels.or(other.strict_levels),
            strategies: self.strategies.or(other.strategies),
            vary: self.vary.or(other.vary),
            // One of them is asked for, so the other one isn't taken from elsewhere.
            time: if self.transactions.is_some() { self.time } else { self.time.or(other.time) },
            transactions: if self.time.is_some() {
                self.transactions
            } else {
                self.transactions.or(other.transactions)
            },
            full: self.full.or(other.full),
            experiment: self.experiment.or(other.experiment),
            server_settings: self.server_settings.or(other.server_settings),
        }
    }
}

/// A setting of the server.
///
/// # Errors
/// In words, it has another form.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("use NAME=VALUE".to_owned()),
    }
}
