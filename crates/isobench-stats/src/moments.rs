//! Exact count, mean, standard deviation, minimum and maximum of recorded durations.
//!
//! A histogram rounds to its buckets; these don't. Not here: percentiles.

use serde::{Deserialize, Serialize};

const NS_PER_MS: f64 = 1e6;

/// The exact sums behind mean and standard deviation. Unit: nanoseconds.
///
/// Merged without loss: merging equals recording everything into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Moments { count: 0, sum: 0, squares: 0, min: u64::MAX, max: 0 }
    }
}

impl Moments {
    /// Adds one duration in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Adds `count` durations of `ns` nanoseconds each.
    #[inline]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        let (wide, many) = (u128::from(ns), u128::from(count));
        self.count = self.count.saturating_add(count);
        self.sum = self.sum.saturating_add(wide * many);
        // 2^64 squared, once, still fits; a benchmark's worth of seconds leaves 40 bits for the
        // count.
        self.squares = self.squares.saturating_add((wide * wide).saturating_mul(many));
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The number of durations recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all durations in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// The shortest duration in nanoseconds, `None` when nothing was recorded.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The longest duration in nanoseconds, `None` when nothing was recorded.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The arithmetic mean in milliseconds, `None` when nothing was recorded.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / NS_PER_MS)
    }

    /// The standard deviation of the population (divided by n, as pgbench does) in milliseconds,
    /// `None` when nothing was recorded.
    pub fn stddev_ms(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        // n·Σ(x−mean)² from integers: subtracting two nearly equal floating point numbers would
        // leave noise where the deviation is small against the mean.
        let count = u128::from(self.count);
        let (quotient, remainder) = (self.sum / count, self.sum % count);
        // Σ(x−q)² = Σx² − 2qΣx + nq², with Σx = qn + r. Cauchy-Schwarz keeps it positive unless a
        // sum saturated.
        let around_quotient = self
            .squares
            .saturating_sub(quotient.saturating_mul(self.sum))
            .saturating_sub(quotient.saturating_mul(remainder));
        let fraction = remainder as f64 / count as f64;
        let variance = around_quotient as f64 / count as f64 - fraction * fraction;
        Some(variance.max(0.0).sqrt() / NS_PER_MS)
    }

    /// Rebuilds the sums from figures that were printed: `count` durations with this mean, standard
    /// deviation, minimum and maximum, all in milliseconds.
    ///
    /// Returns `None` for figures that no recording has (negative, not finite, a mean outside the
    /// bounds).
    pub fn from_figures(count: u64, mean_ms: f64, stddev_ms: f64, min_ms: f64, max_ms: f64) -> Option<Self> {
        if count == 0 {
            return Some(Moments::default());
        }
        let figures = [mean_ms, stddev_ms, min_ms, max_ms];
        if figures.iter().any(|figure| !figure.is_finite() || *figure < 0.0) || min_ms > max_ms {
            return None;
        }
        if mean_ms > max_ms * (1.0 + 1e-9) || stddev_ms > max_ms {
            return None;
        }
        let (many, mean, stddev) = (count as f64, mean_ms * NS_PER_MS, stddev_ms * NS_PER_MS);
        Some(Moments {
            count,
            sum: to_u128(mean * many),
            squares: to_u128((mean * mean + stddev * stddev) * many),
            min: to_u64(min_ms * NS_PER_MS),
            max: to_u64(max_ms * NS_PER_MS),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; the value is not negative"
)]
fn to_u128(value: f64) -> u128 {
    value.round() as u128
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; the value is not negative"
)]
fn to_u64(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        for value in values {
            moments.record(*value);
        }
        moments
    }

    #[test]
    fn nothing_has_no_mean() {
        let empty = Moments::default();
        assert_eq!(
            (empty.mean_ms(), empty.stddev_ms(), empty.min_ns(), empty.max_ns()),
            (None, None, None, None)
        );
    }

    #[test]
    fn a_small_deviation_on_a_large_mean_is_exact() {
        // An hour, plus or minus one nanosecond: naive floating point loses it entirely.
        let hour = 3_600_000_000_000;
        let moments = of(&[hour - 1, hour + 1]);
        assert_eq!(moments.mean_ms(), Some(3_600_000.0));
        assert_eq!(moments.stddev_ms(), Some(1e-6));
    }

    #[test]
    fn the_deviation_is_the_populations() {
        let moments =
            of(&[2_000_000, 4_000_000, 4_000_000, 4_000_000, 5_000_000, 5_000_000, 7_000_000, 9_000_000]);
        assert_eq!((moments.mean_ms(), moments.stddev_ms()), (Some(5.0), Some(2.0)));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let moments = of(&[u64::MAX, u64::MAX, 0]);
        assert!(moments.stddev_ms().is_some_and(f64::is_finite));
    }

    #[test]
    fn impossible_figures_are_refused() {
        assert_eq!(Moments::from_figures(3, f64::NAN, 0.0, 0.0, 1.0), None);
        assert_eq!(Moments::from_figures(3, 1.0, -1.0, 0.0, 1.0), None);
        assert_eq!(Moments::from_figures(3, 2.0, 0.0, 0.0, 1.0), None);
        assert_eq!(Moments::from_figures(0, 0.0, 0.0, 0.0, 0.0), Some(Moments::default()));
    }

    proptest! {
        #[test]
        fn figures_give_the_moments_back(values in prop::collection::vec(1_u64..1 << 40, 1..50)) {
            let moments = of(&values);
            let (mean, stddev) = (moments.mean_ms().unwrap(), moments.stddev_ms().unwrap());
            let (min, max) = (moments.min as f64 / 1e6, moments.max as f64 / 1e6);
            let again = Moments::from_figures(moments.count, mean, stddev, min, max).unwrap();
            prop_assert!((again.mean_ms().unwrap() - mean).abs() <= mean * 1e-9 + 1e-6);
            // The square root magnifies the rounding of the sums.
            prop_assert!((again.stddev_ms().unwrap() - stddev).abs() <= stddev * 1e-3 + mean * 1e-6 + 1e-5);
            prop_assert_eq!((again.min, again.max), (moments.min, moments.max));
        }
    }
}
