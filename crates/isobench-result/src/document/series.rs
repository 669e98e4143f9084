//! The time series of a round: counts in equal bins of time.
//!
//! Not here: what the server did meanwhile (`server_side`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Counts in equal bins of time, from the start of the measured part on. All lists have the same
/// length; each adds up to the round's count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Series {
    /// Width of a bin in seconds. The last bin may be cut short by the end of the round. Where cells
    /// take turns each slice is a bin, which includes the end of its last transaction.
    pub bin_s: f64,
    /// Transactions committed in each bin, by the time of the reply to COMMIT.
    pub committed: Vec<u64>,
    /// Attempts started in each bin.
    pub attempts: Vec<u64>,
    /// Attempts that ended in a conflict in each bin.
    pub conflicts: Vec<u64>,
    /// Sum of the latencies of the transactions committed in each bin, in milliseconds.
    pub latency_sum_ms: Vec<f64>,
}

/// The slices of a round whose cells took turns. In a slice no transaction starts once its time is
/// up, and those under way go on to their end, with their retries, so that no attempt is in two
/// slices. A slice lasts until the last of them has ended. The other cells' sessions are idle
/// meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Turns {
    /// Number of slices, which the round's seconds are the sum of. Each is a bin of the time series.
    pub count: u32,
    /// Seconds after which no transaction starts in a slice.
    pub length_s: f64,
    /// The share of the round's seconds, 0 to 1, for which a client, on average, had finished and
    /// waited for the last one to end the slice. The cost of the slices' ends is at most this.
    pub idle_share: f64,
}

/// How the workers waited for their connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsedEventLoop {
    /// `epoll` or `io_uring`.
    pub name: String,
    /// Why it wasn't `io_uring`, if the choice was left to isobench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl fmt::Display for UsedEventLoop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(formatter, "{}, because {reason}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

/// One of several machines that measured together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineRound {
    /// Its rank, from 0.
    pub rank: u32,
    /// The address under which the others reach it.
    pub address: String,
    /// The name that its system has.
    #[serde(default)]
    pub host: String,
    /// Clients there.
    pub clients: u32,
    /// Attempts of these clients in the round.
    pub attempts: u64,
    /// Transactions that they committed.
    pub committed: u64,
    /// Committed transactions ÷ seconds that these clients took; null if no time passed.
    pub tps: Option<f64>,
    /// Mean latency of the committed transactions, in milliseconds; null without any.
    pub latency_mean_ms: Option<f64>,
    /// The same, 99th percentile.
    pub latency_p99_ms: Option<f64>,
    /// The most by which its times may be wrong against rank 0's, in milliseconds (ε). The history
    /// has its transactions begin earlier and end later by that.
    pub clock_within_ms: f64,
    /// How long after the common instant its clients started at most, in milliseconds; times of
    /// different machines are compared to within ε.
    pub late_ms: f64,
    /// User and system time of the measuring process there, in seconds.
    pub cpu_s: f64,
    /// Its load.
    pub load: ClientLoad,
}

/// The load of the measuring program itself, and whether replies had to wait for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ClientLoad {
    /// Worker threads.
    pub workers: u32,
    /// The share of the time, 0 to 1, in which the busiest worker wasn't waiting for the network or
    /// a timer. Near 1 the client is the bottleneck.
    pub busiest: f64,
    /// The share of the time, 0 to 1, in which the worker that fared worst could have run but had
    /// no processor; null if the system doesn't report it.
    pub starved: Option<f64>,
    /// CPU time of the measuring process ÷ (seconds × processors that it may use), 0 to 1.
    pub share_of_cores: f64,
    /// Mean time of a pass of the worker's loop over what the poller found, in milliseconds,
    /// weighted by the replies and timers it served: about the delay that the client adds to a
    /// reply when it is busy. Null if nothing was served.
    pub lag_mean_ms: Option<f64>,
    /// The same, 99th percentile.
    pub lag_p99_ms: Option<f64>,
    /// The same, the longest pass.
    pub lag_max_ms: Option<f64>,
}
