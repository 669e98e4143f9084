//! The latency of committed transactions: its figures, and the whole distribution.
//!
//! Not here: percentiles over several rounds (`summarise`).

use std::borrow::Cow;
use std::sync::Arc;

use isobench_stats::{HistogramError, LatencyHistogram};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Latency of committed transactions in milliseconds, from the scheduled start (from the start of
/// the first attempt when unpaced) to the reply to COMMIT, all attempts and backoffs included.
///
/// A percentile is null unless at least one transaction is expected beyond it: p99 needs 100
/// transactions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Latency {
    /// Exact arithmetic mean. pgbench: "latency average".
    pub mean: Option<f64>,
    /// Exact standard deviation of the population. pgbench: "latency stddev".
    pub stddev: Option<f64>,
    /// Half of the transactions took no longer.
    pub p50: Option<f64>,
    /// 90 % took no longer.
    pub p90: Option<f64>,
    /// 95 % took no longer.
    pub p95: Option<f64>,
    /// 99 % took no longer.
    pub p99: Option<f64>,
    /// 99.9 % took no longer.
    pub p999: Option<f64>,
    /// 99.99 % took no longer.
    pub p9999: Option<f64>,
    /// The exact longest one.
    pub max: Option<f64>,
    /// The whole distribution in microseconds: `HdrHistogram`, compressed V2 encoding, base64.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub histogram: Option<Distribution>,
}

/// A latency histogram with its text: decoded once, when it is read, and encoded once, when it was
/// measured. Clones share both.
#[derive(Debug, Clone)]
pub struct Distribution {
    text: Arc<str>,
    histogram: Arc<LatencyHistogram>,
}

impl Distribution {
    /// The distribution that a text encodes.
    ///
    /// # Errors
    /// [`HistogramError`], if the text isn't a histogram.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let histogram = LatencyHistogram::from_base64(text)?;
        Ok(Distribution { text: text.into(), histogram: histogram.into() })
    }

    /// The decoded histogram; the same one from every clone.
    pub fn histogram(&self) -> &LatencyHistogram {
        &self.histogram
    }
}

impl PartialEq for Distribution {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Distribution::decode(&text).map_err(D::Error::custom)
    }
}

impl Latency {
    /// The figures of a distribution, without the distribution itself.
    pub fn figures(histogram: &LatencyHistogram) -> Self {
        Latency {
            mean: histogram.mean_ms(),
            stddev: histogram.stddev_ms(),
            p50: histogram.percentile(50.0),
            p90: histogram.percentile(90.0),
            p95: histogram.percentile(95.0),
            p99: histogram.percentile(99.0),
            p999: histogram.percentile(99.9),
            p9999: histogram.percentile(99.99),
            max: histogram.max_ms(),
            histogram: None,
        }
    }

    /// The figures of a round with the whole distribution.
    ///
    /// It goes through its text, so that a round is the same before and after it was saved.
    pub fn measured(histogram: &LatencyHistogram) -> Self {
        let decoded = Distribution::decode(&histogram.to_base64()).ok();
        Latency { histogram: decoded, ..Latency::figures(histogram) }.with_exact_figures()
    }

    /// Reads the latency of a round.
    pub(super) fn of_round<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Latency::deserialize(deserializer).map(Latency::with_exact_figures)
    }

    /// Restores what the text of a histogram doesn't have: exact mean, deviation and maximum.
    fn with_exact_figures(mut self) -> Self {
        if let Some(Distribution { histogram, .. }) = &mut self.histogram {
            // Nobody else has it yet, so it isn't cloned.
            let own = std::mem::take(Arc::make_mut(histogram));
            *histogram = own.with_figures(self.mean, self.stddev, self.max).into();
        }
        self
    }
}
