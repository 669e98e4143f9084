//! Options of `isobench compare`, which are at the same time the keys of a plan file.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use isobench_report::Experiment;
use serde::Deserialize;

use super::{ConnectionOptions, EmbeddedOptions, TableOptions};
use crate::plan::Size;

/// Options of `isobench compare`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct CompareOptions {
    /// What to compare.
    #[command(flatten)]
    pub plan: PlanOptions,
    /// What neither options nor plan file say; where this is silent, too, `plan.rs` decides.
    #[arg(skip)]
    pub defaults: PlanOptions,
    /// Repeat a published experiment (see isobench plans), or read the plan from this file; options override it
    #[arg(long = "plan", value_name = "NAME|FILE.toml")]
    pub plan_file: Option<PathBuf>,
    /// The plan's small size: of a published experiment about a minute [default]
    #[arg(long, requires = "plan_file")]
    pub quick: bool,
    /// The plan's full size: of a published experiment the published size and time
    #[arg(long, requires = "plan_file", conflicts_with = "quick")]
    pub full: bool,
    /// Show the running cell while it is measured: throughput, conflicts, latency, what sessions wait for (on a terminal)
    #[arg(long)]
    pub live: bool,
    /// Don't sample the server's own statistics (waits, locks, counters)
    #[arg(long)]
    pub no_observe: bool,
    /// Write the result (result.json) and the report (report.html) into this folder, also if the comparison is interrupted [default: isobench-results/TIME]
    #[arg(long, value_name = "FOLDER", help_heading = "Files", conflicts_with_all = ["json", "html", "no_save"])]
    pub results: Option<PathBuf>,
    /// Write the result to this file as JSON, and nothing else unless it is named, too
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub json: Option<PathBuf>,
    /// Write the report to this file as HTML, and nothing else unless it is named, too
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub html: Option<PathBuf>,
    /// Write neither result nor report
    #[arg(long, help_heading = "Files", conflicts_with_all = ["json", "html"])]
    pub no_save: bool,
    /// Write one line for each cell and round to this file as CSV
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub csv: Option<PathBuf>,
    /// Write the recorded histories of a checked workload into this folder, a file for each cell and round
    #[arg(long, value_name = "FOLDER", help_heading = "Verdict")]
    pub history: Option<PathBuf>,
    /// Check the history in windows of so many transactions, so that memory stays bounded
    #[arg(long, value_name = "NUM", help_heading = "Verdict")]
    pub window: Option<NonZeroUsize>,
    /// Record and check no history, whatever the scripts say
    #[arg(long, help_heading = "Verdict", conflicts_with_all = ["history", "window"])]
    pub no_verdict: bool,
    /// On a server that isn't embedded: leave schema isobench behind
    #[arg(long)]
    pub keep: bool,
    /// The tables.
    #[command(flatten)]
    pub tables: TableOptions,
    /// The embedded server.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// The named server.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl CompareOptions {
    /// Which size of the plan is wanted.
    pub fn size(&self) -> Size {
        if self.full { Size::Full } else { Size::Quick }
    }
}

/// A plan as it is written: on the command line or, with the same names, in a TOML file.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlanOptions {
    /// Isolation levels, in the order of the table: ru, rc, rr, ser or their full names [default: rc,rr,ser]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub levels: Option<Vec<String>>,
    /// Built-in script (tpcb-like, simple-update, select-only) or script file, with @WEIGHT and repeated a mix; or one checked workload, such as registers or write-skew+for-update (see isobench workloads) [default: tpcb-like]
    #[arg(long, short = 'w', value_name = "NAME|FILE[@WEIGHT]")]
    pub workload: Option<Vec<String>>,
    /// Ways in which the application copes with conflicts, as a factor: retry, procedure, swallow, single-statement, savepoint, for-update, advisory-lock, reorder, or any variant of a checked workload [default: the workload as it is, which retries]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub strategies: Option<Vec<String>>,
    /// A parameter and its values, as a factor: of the workload (rows=10,1000), of pgbench's tables (scale, foreign-keys=off,on, unlogged-tables, fillfactor, script-scale), a variable of your own scripts, or server-version=14,18; one value sets it (repeatable)
    #[arg(long, value_name = "NAME=VALUE,VALUE")]
    pub vary: Option<Vec<String>>,
    /// SQL script that makes the tables of a workload of your own, run before every cell instead of making pgbench's tables
    #[arg(long, value_name = "FILE.sql")]
    pub setup: Option<PathBuf>,
    /// Numbers of clients [default: 8]
    #[arg(long, short = 'c', value_name = "LIST", value_delimiter = ',')]
    pub clients: Option<Vec<usize>>,
    /// Worker threads of isobench itself [default: 1]
    #[arg(long, short = 'j', value_name = "NUM")]
    pub jobs: Option<usize>,
    /// Scale of the TPC-B-like tables; 1 means one branch, on which every client collides [default: 1]
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
    /// Measure the first level twice in every round, to learn what equal cells differ by on this machine; smaller differences are noise
    #[arg(long, num_args = 0, default_missing_value = "true", value_name = "BOOL")]
    pub calibrate: Option<bool>,
    /// Go on with rounds until every ratio is known to this precision, such as 2%, or the time limit is reached
    #[arg(long, value_name = "PERCENT")]
    pub resolve: Option<String>,
    /// Begin no further round that would end after so many seconds [default: unlimited; with --resolve 600]
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// The most attempts of one transaction; 0 is unlimited [default: 0]
    #[arg(long, value_name = "NUM")]
    pub max_tries: Option<u32>,
    /// Delay before a retry: none, fixed:DELAY or exponential:base=…,factor=…,max=…,jitter=full|none [default: none]
    #[arg(long, value_name = "LIST")]
    pub backoff: Option<Vec<String>>,
    /// How statements are sent: simple, extended or prepared [default: simple]
    #[arg(long, short = 'M', value_name = "PROTOCOL")]
    pub protocol: Option<String>,
    /// Transactions per second that are begun, over all clients; latency then counts from the scheduled start [default: unlimited]
    #[arg(long, short = 'R', value_name = "LIST", value_delimiter = ',')]
    pub rate: Option<Vec<f64>>,
    /// After the rounds, search for the highest rate of each level at which 99 % of the transactions commit within --latency-limit
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
    /// Only in a plan's file: settings of the embedded server, such as `autovacuum=off`; --server-setting adds to them
    #[arg(skip)]
    pub server_settings: Option<Vec<String>>,
    /// Only in a plan's file: what its full size changes
    #[arg(skip)]
    pub full: Option<Box<PlanOptions>>,
    /// Only in a plan's file: the published experiment that it repeats
    #[arg(skip)]
    pub experiment: Option<Experiment>,
}
