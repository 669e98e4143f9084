//! Results that are searched for: the precision of a comparison, the highest rate of a level.
//!
//! Not here: how it is searched.

use std::collections::BTreeMap;

use isobench_isolation::Level;
use serde::{Deserialize, Serialize};

/// The precision of the ratios, wanted and reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Resolution {
    /// The precision wanted: a ratio's 95 % interval reaches no further than this share up and
    /// down, for example 0.02.
    pub wanted: f64,
    /// The precision of the least precise ratio; null if a ratio has no interval.
    pub reached: Option<f64>,
    /// The number of further rounds of the same kind that would probably reach it, with six in all
    /// at least; 0 if it was reached, null if it can't be estimated.
    pub more_rounds: Option<u32>,
}

/// The highest rate at which a level kept the latency limit for 99 % of the transactions that were
/// due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepResult {
    /// The level asked for.
    pub level: Option<Level>,
    /// Number of simulated users.
    pub clients: u32,
    /// The retry policy.
    pub backoff: String,
    /// The workload; empty if the plan has only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// The strategy against conflicts; null if the plan doesn't vary it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The other parameters that the plan varies, each with its value here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub varied: BTreeMap<String, String>,
    /// The latency limit in milliseconds.
    pub limit_ms: f64,
    /// Committed transactions per second in a closed loop, where the search started.
    pub capacity: f64,
    /// The highest rate, in transactions due per second, at which at least 99 % of them committed
    /// within the limit; null if none did.
    pub highest_kept: Option<f64>,
    /// The lowest rate at which less than 99 % did; null if even the highest one tried was kept.
    pub lowest_missed: Option<f64>,
    /// Every rate that was tried, in the order of trying.
    pub tried: Vec<SweepStep>,
}

impl SweepResult {
    /// The level, the strategy, and what else varies, in words.
    pub fn name(&self) -> String {
        let level =
            self.level.map_or_else(|| "the server's default level".to_owned(), |level| level.to_string());
        let varied = self.varied.iter().map(|(name, value)| format!("{name} {value}"));
        let workload = (!self.workload.is_empty()).then(|| self.workload.clone());
        workload
            .into_iter()
            .chain([level])
            .chain(self.strategy.clone())
            .chain(varied)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// One rate that a sweep tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SweepStep {
    /// Transactions due per second.
    pub rate: f64,
    /// The share of the transactions due that committed within the limit, 0 to 1.
    pub within_limit: f64,
    /// 99th percentile of the latency of those that committed, in milliseconds, from the scheduled
    /// start; null if too few did.
    pub p99_ms: Option<f64>,
    /// True if at least 99 % committed within the limit, and nothing was broken.
    pub kept: bool,
    /// True if an invariant or a promise of the level was found broken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
}
