//! The conclusions from the rounds of a cell: the fields. They are computed in `summarise`.

use isobench_stats::TimeLedger;
use serde::{Deserialize, Serialize};

use super::{Flag, Latency, VerdictSummary};

/// The basis of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IntervalSource {
    /// Student's t over the rounds, which are taken as independent.
    #[default]
    Rounds,
    /// Batch means within the only round, whose seconds are correlated.
    Batches,
}

/// A mean over the rounds with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Interval {
    /// The arithmetic mean of the rounds; null when there is no round.
    pub mean: Option<f64>,
    /// Lower end of the 95 % interval; null if it can't be computed.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null if it can't be computed.
    pub high: Option<f64>,
    /// The numbers it was computed from.
    pub source: IntervalSource,
}

/// A percentile of the latency with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PercentileInterval {
    /// The percentage, for example 99.9.
    pub percent: f64,
    /// The latency in milliseconds that this percentage of the committed transactions didn't
    /// exceed.
    pub ms: f64,
    /// Lower end of the 95 % interval; null if the sample is too small.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null if the sample is too small.
    pub high: Option<f64>,
}

/// A state or a wait event of the sessions, over all rounds, and its share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WaitShare {
    /// The type of the wait event, "CPU" or "idle".
    pub kind: String,
    /// The wait event; empty for "CPU".
    pub event: String,
    /// Its share of all sessions in all samples, 0 to 1.
    pub share: f64,
}

/// The number of rounds that a precision would need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RoundsFor {
    /// The precision: how far the ratio's interval reaches up and down, as a share.
    pub resolution: f64,
    /// Rounds in all, six at least, those that were measured included, judged from how much these
    /// differ; with --resolve.
    pub rounds: u32,
}

/// Committed transactions per second as a multiple of the first level's, or the first strategy's,
/// measured in the same rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RatioToFirst {
    /// The level, the strategy, or the settings that this cell is compared with: the plan's first, all
    /// other factors being equal.
    pub to: String,
    /// The geometric mean of the rounds' ratios; 1 for the first one itself.
    pub mean: f64,
    /// Lower end of the interval (Student's t of the rounds' log ratios, widened if the plan has a
    /// resolution, since stopping prefers narrow ones); null if it can't be computed. The intervals
    /// of all ratios to the same cell hold together with 95 % confidence.
    pub low: Option<f64>,
    /// Upper end of the interval; null if it can't be computed.
    pub high: Option<f64>,
    /// True if the interval excludes 1, and the difference is larger than what equal cells differ
    /// by, where that was measured.
    pub significant: bool,
    /// By what share equal cells may differ on this machine: the farther end of the A/A cell's
    /// interval; null if that wasn't measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// The number of rounds that finer ratios would need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds_for: Vec<RoundsFor>,
}

/// Two rows are alike if the whole interval of their ratio lies within this factor of 1.
const ALIKE: f64 = 1.05;

/// True if an interval shows that two are alike.
pub fn are_alike((low, high): (f64, f64)) -> bool {
    low >= ALIKE.recip() && high <= ALIKE
}

/// The conclusions from the rounds of a cell.
///
/// Computed from the complete rounds; if there is none, from the incomplete ones, and then `rounds`
/// is 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Summary {
    /// Committed transactions per second: mean over the rounds, with its interval.
    pub tps: Interval,
    /// Committed transactions per second as a multiple of the first level's; null where there is
    /// nothing to compare with.
    pub ratio: Option<RatioToFirst>,
    /// Committed transactions per second as a multiple of the first strategy's at the same level;
    /// null if strategies weren't compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_ratio: Option<RatioToFirst>,
    /// Committed transactions per second as a multiple of those with the first settings, server version
    /// or programs, at the same level with the same strategy; null if these weren't compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting_ratio: Option<RatioToFirst>,
    /// Transactions per second that the server acknowledged, those included whose work was lost in
    /// an error that their own SQL caught: mean over the rounds, with its interval. Null if there
    /// was none of these; then it is `tps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_tps: Option<Interval>,
    /// Committed transactions per minute of the script that the workload names (`per_minute` of
    /// `workload.scripts`): mean over the rounds, with its interval; null if it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<Interval>,
    /// Attempts ended by a conflict ÷ attempts started, over all rounds, 0 to 1.
    pub conflict_ratio: f64,
    /// Attempts started per second: mean over the rounds; null when there is no round.
    pub attempts_per_s: Option<f64>,
    /// Further attempts ÷ transactions that ran, over all rounds.
    pub retries_per_transaction: f64,
    /// Time of attempts that didn't commit ÷ time of all attempts, over all rounds and clients, 0
    /// to 1.
    pub wasted_share: f64,
    /// The clients' time by use, added up over all rounds.
    pub time_s: TimeLedger,
    /// The effective number of independent measurements within the rounds: bins of the series,
    /// reduced by their correlation; null without a series that is long enough.
    pub effective_samples: Option<f64>,
    /// Latency of committed transactions, from the merged histograms of the rounds. Its `histogram`
    /// is null, since it is the sum of those of the rounds.
    pub latency_ms: Latency,
    /// The percentiles of that latency with their intervals.
    pub percentiles: Vec<PercentileInterval>,
    /// The states of the sessions on the server, the largest share first; empty if they weren't
    /// sampled.
    pub waits: Vec<WaitShare>,
    /// The most predicate locks that any sample found; null if none was looked for.
    pub predicate_locks: Option<u64>,
    /// CPU time of the measuring process per committed transaction, in microseconds; null if none
    /// committed.
    pub client_cpu_us: Option<f64>,
    /// CPU time of the server's processes per committed transaction, in microseconds; null if it
    /// isn't known.
    pub server_cpu_us: Option<f64>,
    /// Facts to know before trusting the numbers.
    pub flags: Vec<Flag>,
    /// True if every invariant held in every round, false if one was broken that the level
    /// promises; null if the workload has none, they couldn't be checked, or only such were broken
    /// as the level doesn't promise.
    pub invariants_held: Option<bool>,
    /// Violations of the first invariant that any round broke, added up over all rounds, whether
    /// promised or not.
    pub violations: u64,
    /// Their unit, in the plural; null if there are none, or in results of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations_unit: Option<String>,
    /// Wrong outcomes that the verdict doesn't count: committed transactions of all rounds that did
    /// damage which no level prevents, because they wrote a value that another transaction had read,
    /// and the interleavings in `tried` whose outcome no serial order gives.
    pub damage: u64,
    /// The evidence of the rounds' histories; null if none was recorded.
    pub verdict: Option<VerdictSummary>,
    /// True if the server runs another level than the one asked for, or doesn't know.
    pub level_differs: bool,
    /// Number of complete rounds.
    pub rounds: u32,
}
