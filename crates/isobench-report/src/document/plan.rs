//! What was asked for, in words that outlive the options of the command line.
//!
//! Not here: options, defaults, the order of the cells.

use std::collections::BTreeMap;

use isobench_isolation::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::level_name;

/// One script of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedScript {
    /// The name of the built-in script, or the name of its file.
    pub name: String,
    /// How often it is chosen, relative to the other scripts.
    pub weight: u32,
    /// The script's text, so that the run can be repeated.
    #[serde(default)]
    pub text: String,
}

/// A way in which the application copes with conflicts, as a factor of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlannedStrategy {
    /// Its name.
    pub name: String,
    /// What the application does, in a sentence.
    pub summary: String,
    /// The scripts, with their weights and texts.
    pub scripts: Vec<PlannedScript>,
    /// Messages to the server that wait for an answer in one attempt without a conflict, preparing
    /// statements excluded: the fewest of any script and path through it.
    pub round_trips_least: u32,
    /// The most of any script and path through it.
    pub round_trips_most: u32,
}

/// A parameter that the plan varies, or sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VariedParameter {
    /// The name: a parameter of the workload or of pgbench's tables, or "server-version".
    pub name: String,
    /// The values, in the order of the cells.
    pub values: Vec<String>,
}

/// Everything that decides what was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "independent options, each a key of the result format")]
pub struct Plan {
    /// The isolation levels asked for; the first is the one that the others are compared with.
    #[serde(with = "level_name::list")]
    #[schemars(schema_with = "level_name::list_schema")]
    pub levels: Vec<Level>,
    /// The scripts, with their weights and texts; those of the first strategy, if the plan has
    /// several.
    pub workload: Vec<PlannedScript>,
    /// The strategies, if the plan varies or chooses them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<PlannedStrategy>,
    /// The parameters that the plan varies or sets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<VariedParameter>,
    /// Numbers of simulated users.
    pub clients: Vec<u32>,
    /// Number of worker threads.
    pub jobs: u32,
    /// Scale of the tables: branches of the TPC-B-like tables. pgbench: -s.
    pub scale: u32,
    /// Measured time of each cell and round in seconds; null if transactions were counted instead.
    pub time_s: Option<f64>,
    /// Transactions of each client; null if the run was limited by time. pgbench: -t.
    pub transactions: Option<u64>,
    /// Time before each measurement in which transactions run but aren't counted, in seconds.
    pub warmup_s: f64,
    /// How often every cell was to be measured.
    pub rounds: u32,
    /// The most attempts a transaction gets, null: unlimited within the time. pgbench: --max-tries.
    pub max_tries: Option<u32>,
    /// The retry policies: how long a client waits before it tries again.
    pub backoff: Vec<String>,
    /// The query protocol: simple, extended or prepared. pgbench: -M.
    pub protocol: String,
    /// The seed of all random numbers. pgbench: --random-seed.
    pub seed: Option<u64>,
    /// True if a level that the server doesn't run was to be refused.
    pub strict_levels: bool,
    /// Transactions per second that were to be begun, over all clients; empty: as many as possible.
    /// pgbench: -R.
    pub rates: Vec<f64>,
    /// Latency in milliseconds beyond which a transaction is late; null: none. pgbench: -L.
    pub latency_limit_ms: Option<f64>,
    /// Pause of a client between two transactions in milliseconds; null: none.
    pub think_time_ms: Option<f64>,
    /// True if each transaction had a connection of its own, whose opening counts for nothing but
    /// the time. pgbench: -C.
    pub connect_each: bool,
    /// The longest warm-up in seconds: it goes on, in steps of `warmup_s`, until the rate is
    /// steady.
    pub max_warmup_s: f64,
    /// True if the first level was measured twice in every round, to learn what equal cells differ
    /// by.
    pub calibrate: bool,
    /// Rounds were to go on until the intervals of all ratios reach no further than this share;
    /// null: a fixed number of rounds.
    pub resolve: Option<f64>,
    /// The time in seconds after which no further round begins; null: none.
    pub time_limit_s: Option<f64>,
    /// True if the highest rate that keeps the latency limit was searched for.
    pub sweep: bool,
    /// True if the server's own statistics were sampled.
    pub observe: bool,
    /// Settings that the server was started with.
    pub server_settings: BTreeMap<String, String>,
}
