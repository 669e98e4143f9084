//! Latencies counted between fixed bounds, small enough to be shown while a run goes on: what a
//! histogram of Prometheus or OpenTelemetry holds.
//!
//! Not here: the distribution that they come from (`histogram`).

use serde::{Deserialize, Serialize};

use crate::histogram::LatencyHistogram;

/// The upper bounds of the intervals, in microseconds: 1, 2 and 5 of each power of ten. Those that
/// OpenTelemetry recommends for operations of databases (1 ms to 10 s) are among them.
pub const LATENCY_BOUNDS_US: [u64; 19] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000,
];

/// Latencies counted between fixed bounds. Merged by addition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyCounts {
    /// For each of [`LATENCY_BOUNDS_US`] the latencies above the bound before it and not above it;
    /// the last count has those above all. A latency counts as rounded by the distribution, by at
    /// most 0.1 % or 1 µs.
    pub counts: [u64; LATENCY_BOUNDS_US.len() + 1],
    /// Sum of all latencies in nanoseconds, exact up to 2^64.
    pub sum_ns: u64,
}

impl LatencyCounts {
    /// Counts the latencies of a distribution. Costs an addition for each of its buckets up to the
    /// longest latency, of which there are some thousands.
    pub fn of(latencies: &LatencyHistogram) -> LatencyCounts {
        let (buckets, moments) = (&latencies.buckets, &latencies.moments);
        let sum_ns = u64::try_from(moments.sum_ns()).unwrap_or(u64::MAX);
        let mut found = LatencyCounts { sum_ns, ..LatencyCounts::default() };
        let (mut from, mut left) = (0, buckets.len());
        for (count, bound) in found.counts.iter_mut().zip(LATENCY_BOUNDS_US) {
            if left == 0 {
                return found;
            }
            *count = if buckets.max() <= bound { left } else { buckets.count_between(from, bound) };
            left -= *count;
            from = buckets.next_non_equivalent(bound);
        }
        found.counts[LATENCY_BOUNDS_US.len()] = left;
        found
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> LatencyCounts {
        let mut histogram = LatencyHistogram::new();
        for value in values {
            histogram.record(*value);
        }
        LatencyCounts::of(&histogram)
    }

    #[test]
    fn an_interval_has_its_upper_bound() {
        let counted = of(&[0, 50_000, 50_600, 100_000, 5_000_000, 5_010_000, 50_000_000_000, 60_000_000_000]);
        let found: Vec<(usize, u64)> =
            counted.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
        assert_eq!(found, [(0, 2), (1, 2), (6, 1), (7, 1), (18, 1), (19, 1)]);
        assert_eq!((counted.count(), counted.sum_ns), (8, 110_010_210_600));
        assert_eq!(of(&[]), LatencyCounts::default());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_latency_is_in_the_interval_that_its_rounded_value_is_in(
            values in prop::collection::vec(0_u64..200_000_000_000, 0..200),
            split in 0_usize..200,
        ) {
            let counted = of(&values);
            prop_assert_eq!(counted.count(), values.len() as u64);
            for (index, bound) in LATENCY_BOUNDS_US.iter().enumerate() {
                let at_most: u64 = counted.counts[..=index].iter().sum();
                let exact = |limit: u64| values.iter().filter(|value| **value <= limit).count() as u64;
                let slack = bound + 1_000;
                prop_assert!((exact(bound * 1_000 - slack)..=exact(bound * 1_000 + slack)).contains(&at_most));
            }
            let (left, right) = values.split_at(split.min(values.len()));
            let mut merged = of(left);
            merged.merge(&of(right));
            prop_assert_eq!(merged, counted);
        }
    }
}
