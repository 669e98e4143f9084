//! A distribution of latencies that merges without loss, so that percentiles are never averaged.
//!
//! Not here: the text form (`encoding`) and the exact sums (`moments`).

use hdrhistogram::Histogram;

use crate::moments::Moments;

const NS_PER_US: u64 = 1000;
const US_PER_MS: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;

/// Significant decimal digits that a bucket keeps.
pub(crate) const DIGITS: u8 = 3;

/// Up to here, in microseconds, recording never allocates.
const WARM_RANGE_US: u64 = 60_000_000;

/// The latencies of transactions.
///
/// Population: whatever is recorded; by the accounting rules the committed transactions after the
/// warm-up. The clock of a latency starts at the transaction's scheduled start (at the start of its
/// first attempt when unpaced) and stops at the reply to its COMMIT, so it includes all attempts
/// and backoffs. Recorded in nanoseconds; buckets of one microsecond, or three significant digits
/// where that is coarser; beside them the exact mean, standard deviation, minimum and maximum.
/// Merging two equals recording everything into one. pgbench: "latency average", "latency stddev"
/// (it has no percentiles).
///
/// Recording costs some ten nanoseconds and allocates only for latencies of more than a minute.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    pub(crate) buckets: Histogram<u64>,
    pub(crate) moments: Moments,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty distribution.
    pub fn new() -> Self {
        Self::up_to(WARM_RANGE_US)
    }

    /// An empty distribution with buckets up to `us` microseconds; recording more allocates more.
    pub(crate) fn up_to(us: u64) -> Self {
        let mut buckets =
            Histogram::new_with_bounds(1, us.max(2), DIGITS).expect("bounds from 2 on are valid");
        buckets.auto(true);
        LatencyHistogram { buckets, moments: Moments::default() }
    }

    /// Records one latency in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Records one latency in nanoseconds `count` times.
    #[inline]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.moments.record_many(ns, count);
        let us = (ns / NS_PER_US) + u64::from(ns % NS_PER_US >= NS_PER_US / 2);
        // Fails only where 2^54 µs have no index, which is nowhere: the moments would still know.
        let _ = self.buckets.record_n(us, count);
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        if self.buckets.add(&other.buckets).is_ok() {
            self.moments.merge(&other.moments);
        }
    }

    /// Forgets everything but keeps the memory, for the end of a warm-up.
    pub fn clear(&mut self) {
        self.buckets.reset();
        self.moments = Moments::default();
    }

    /// The number of latencies recorded.
    pub fn len(&self) -> u64 {
        self.moments.count()
    }

    /// True if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The exact sums behind mean and standard deviation.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The latency in milliseconds that `percent` (0 to 100) of the transactions didn't exceed.
    ///
    /// `None` when the sample is too small to know: at least one transaction has to lie beyond,
    /// that is n ≥ 100 ÷ (100 − percent): 2 for the median, 10 for p90, 20 for p95, 100 for p99,
    /// 1000 for p99.9. For 100 a single one will do. Never below the minimum nor above the maximum;
    /// otherwise off by at most 0.1 % or 1 µs.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let (min, max) = (self.moments.min_ns()?, self.moments.max_ns()?);
        if !(0.0..=100.0).contains(&percent) {
            return None;
        }
        // The tolerance is for percentages such as 99.9 that binary fractions miss by a hair.
        let beyond = self.len() as f64 * (100.0 - percent) / 100.0;
        if percent < 100.0 && beyond < 1.0 - 1e-9 {
            return None;
        }
        // Without it 55 % of 100 would be rank 56, since 55 / 100 · 100 is 55.00000000000001.
        let quantile = percent / 100.0 * (1.0 - 1e-12);
        let value = self.buckets.value_at_quantile(quantile) as f64 / US_PER_MS;
        Some(value.clamp(min as f64 / NS_PER_MS, max as f64 / NS_PER_MS))
    }

    /// The exact arithmetic mean in milliseconds, `None` when empty.
    pub fn mean_ms(&self) -> Option<f64> {
        self.moments.mean_ms()
    }

    /// The exact standard deviation of the population in milliseconds, as pgbench computes it;
    /// `None` when empty.
    pub fn stddev_ms(&self) -> Option<f64> {
        self.moments.stddev_ms()
    }

    /// The exact shortest latency in milliseconds, `None` when empty.
    pub fn min_ms(&self) -> Option<f64> {
        self.moments.min_ns().map(|ns| ns as f64 / NS_PER_MS)
    }

    /// The exact longest latency in milliseconds, `None` when empty.
    pub fn max_ms(&self) -> Option<f64> {
        self.moments.max_ns().map(|ns| ns as f64 / NS_PER_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    const PERCENTS: [f64; 7] = [0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0];

    #[test]
    fn an_empty_one_knows_nothing() {
        let empty = LatencyHistogram::new();
        assert!(PERCENTS.iter().all(|percent| empty.percentile(*percent).is_none()));
        assert_eq!(
            (empty.mean_ms(), empty.stddev_ms(), empty.min_ms(), empty.max_ms()),
            (None, None, None, None)
        );
        assert_eq!((empty.len(), empty.is_empty()), (0, true));
    }

    #[test]
    fn a_percentile_needs_one_transaction_beyond_it() {
        for (percent, enough) in [(50.0, 2), (90.0, 10), (95.0, 20), (99.0, 100), (99.9, 1000), (100.0, 1)] {
            let sample = |n: u64| of(&(1..=n).map(|ms| ms * 1_000_000).collect::<Vec<_>>());
            assert!(sample(enough).percentile(percent).is_some(), "{percent} of {enough}");
            assert!(sample(enough - 1).percentile(percent).is_none(), "{percent} of {}", enough - 1);
        }
    }

    #[test]
    fn percentages_outside_the_range_have_no_value() {
        let histogram = of(&[1_000_000]);
        for percent in [-1.0, 100.5, f64::NAN, f64::INFINITY] {
            assert_eq!(histogram.percentile(percent), None);
        }
    }

    #[test]
    fn the_largest_latency_is_recorded() {
        let histogram = of(&[u64::MAX, 0]);
        assert_eq!(histogram.len(), 2);
        assert_eq!(histogram.percentile(100.0), histogram.max_ms());
    }

    #[test]
    fn clearing_forgets() {
        let mut histogram = of(&[5, 6]);
        histogram.clear();
        histogram.record(2_000_000);
        assert_eq!((histogram.len(), histogram.percentile(100.0)), (1, Some(2.0)));
    }

    #[test]
    fn merging_differs_from_averaging_percentiles() {
        // Two workers, one of them slow: the average of their p90 would be 50.5 ms.
        let (fast, slow) = (of(&[1_000_000; 190]), of(&[100_000_000; 10]));
        let mut both = fast;
        both.merge(&slow);
        assert_eq!(both.percentile(90.0), Some(1.0));
    }

    fn latencies(most: usize) -> impl Strategy<Value = Vec<u64>> {
        let latency = prop_oneof![0_u64..3000, 0_u64..10_000_000, 0_u64..100_000_000_000];
        prop::collection::vec(latency, 0..most)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn merging_equals_recording_all(left in latencies(80), right in latencies(80)) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let all = of(&[left, right].concat());
            prop_assert_eq!(&merged.moments, &all.moments);
            prop_assert!(merged.buckets == all.buckets);
            for percent in PERCENTS {
                prop_assert_eq!(merged.percentile(percent), all.percentile(percent));
            }
        }

        #[test]
        fn percentiles_are_within_the_promised_error(mut values in latencies(300), percent in 1_usize..=100) {
            let histogram = of(&values);
            values.sort_unstable();
            if let Some(found) = histogram.percentile(percent as f64) {
                let rank = (percent * values.len()).div_ceil(100);
                let exact = values[rank - 1] as f64 / 1e6;
                prop_assert!((found - exact).abs() <= exact * 1e-3 + 1e-3, "{found} for {exact}");
            }
        }

        #[test]
        fn percentiles_rise_and_stay_within_the_extremes(values in latencies(1200)) {
            let histogram = of(&values);
            let found: Vec<f64> = PERCENTS.iter().filter_map(|percent| histogram.percentile(*percent)).collect();
            prop_assert!(found.is_sorted());
            for value in found {
                prop_assert!(Some(value) >= histogram.min_ms() && Some(value) <= histogram.max_ms());
            }
        }
    }
}
