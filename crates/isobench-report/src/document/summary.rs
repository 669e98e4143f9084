//! What follows from the rounds of a cell: the fields. How they are computed is in `summarise`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Latency, VerdictSummary};

/// A mean over the rounds with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interval {
    /// The arithmetic mean of the rounds; null when there is no round.
    pub mean: Option<f64>,
    /// Lower end of the 95 % interval (Student's t over the rounds); null with fewer than two rounds.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null with fewer than two rounds.
    pub high: Option<f64>,
}

/// Committed transactions per second as a multiple of the first level's, measured in the same rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioToFirst {
    /// The level that this cell is compared with: the plan's first, all other factors being equal.
    pub to: String,
    /// The geometric mean of the rounds' ratios; 1 for the first level itself.
    pub mean: f64,
    /// Lower end of the 95 % interval (Student's t of the rounds' log ratios); null when the rounds don't tell.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null when the rounds don't tell.
    pub high: Option<f64>,
    /// True if the interval excludes 1: the difference is more than noise.
    pub significant: bool,
}

/// What follows from the rounds of a cell.
///
/// Computed from the complete rounds; if there is none, from the incomplete ones, and then `rounds` is 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// Committed transactions per second: mean over the rounds, with its interval.
    pub tps: Interval,
    /// Committed transactions per second as a multiple of the first level's; null where there is nothing to
    /// compare with.
    pub ratio: Option<RatioToFirst>,
    /// Attempts ended by a conflict ÷ attempts started, over all rounds, 0 to 1.
    pub conflict_ratio: f64,
    /// Attempts started per second: mean over the rounds; null when there is no round.
    pub attempts_per_s: Option<f64>,
    /// Further attempts ÷ transactions that ran, over all rounds.
    pub retries_per_transaction: f64,
    /// Time of attempts that didn't commit ÷ time of all attempts, over all rounds and clients, 0 to 1.
    pub wasted_share: f64,
    /// Latency of committed transactions, from the merged histograms of the rounds. Its `histogram` is null, since it
    /// is the sum of those of the rounds.
    pub latency_ms: Latency,
    /// True if every invariant held in every round, false if one was broken that the level promises; null if the workload
    /// has none, they couldn't be checked, or only such were broken as the level doesn't promise.
    pub invariants_held: Option<bool>,
    /// Violations of the invariant that a round breaks most often, added up over all rounds, whether promised or not.
    pub violations: u64,
    /// What the histories of the rounds show; null if none was recorded.
    pub verdict: Option<VerdictSummary>,
    /// True if the server runs another level than the one asked for, or can't tell.
    pub level_differs: bool,
    /// Number of complete rounds.
    pub rounds: u32,
}
