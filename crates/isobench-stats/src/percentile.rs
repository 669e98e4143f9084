//! Intervals of percentiles: of one run by order statistics, and over several rounds.
//!
//! Not here: the percentile itself and when there is one (`histogram`).

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::batches::variance_of;
use crate::estimate::{CONFIDENCE, critical_value, mean_of};
use crate::histogram::LatencyHistogram;

/// A percentile of latency over several rounds, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    /// The percentile of the rounds' merged histogram, in milliseconds.
    pub value: f64,
    /// The lower end of the 95 % interval in milliseconds; `None` where the rounds don't tell.
    pub low: Option<f64>,
    /// The upper end of the 95 % interval in milliseconds; `None` where the rounds don't tell.
    pub high: Option<f64>,
    /// How many rounds the interval rests on.
    pub rounds: usize,
}

/// Estimates a percentile (0 to 100) over several rounds of the same cell.
pub fn percentile_with_interval(rounds: &[LatencyHistogram], percent: f64) -> Option<Percentile> {
    let mut merged = LatencyHistogram::new();
    for round in rounds {
        merged.merge(round);
    }
    let value = merged.percentile(percent)?;
    let logs: Option<Vec<f64>> = rounds
        .iter()
        .map(|round| round.percentile(percent).filter(|value| *value > 0.0).map(f64::ln))
        .collect();
    let half = logs.filter(|logs| logs.len() > 1).and_then(|logs| {
        let error = (variance_of(&logs, mean_of(&logs)?) / logs.len() as f64).sqrt();
        Some(critical_value((logs.len() - 1) as f64)? * error)
    });
    let ends =
        half.map(|half| (value * (-half).exp(), value * half.exp())).filter(|(_, high)| high.is_finite());
    Some(Percentile {
        value,
        low: ends.map(|ends| ends.0),
        high: ends.map(|ends| ends.1),
        rounds: rounds.len(),
    })
}

impl LatencyHistogram {
    /// The 95 % interval of a percentile (0 to 100) of one run, in milliseconds.
    ///
    /// Method: order statistics, whose ranks come from the binomial distribution; nothing is assumed about the
    /// distribution of latencies. Latencies of one run are correlated, so the sample counts as
    /// `ess_factor` (above 0, at most 1: effective by actual number) times its size. `None` where there is no percentile, or the
    /// ranks fall outside the sample. Source: Hahn and Meeker, "Statistical intervals" (1991), 5.2.
    pub fn percentile_interval(&self, percent: f64, ess_factor: f64) -> Option<(f64, f64)> {
        self.percentile(percent)?;
        if !(ess_factor > 0.0 && ess_factor <= 1.0) {
            return None;
        }
        let (effective, share) = (self.len() as f64 * ess_factor, percent / 100.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, rounded down")]
        let trials = effective.floor() as u64;
        let beyond = f64::midpoint(1.0, -CONFIDENCE);
        let below = Binomial::new(share, trials).ok()?;
        // Symmetric in probability: P(B < low) and P(B ≥ high) are at most 2.5 % each.
        let low = below.inverse_cdf(beyond);
        let high = below.inverse_cdf(1.0 - beyond) + 1;
        if low == 0 || high > trials {
            return None;
        }
        let at = |rank: u64| self.percentile(100.0 * rank as f64 / trials as f64);
        at(low).zip(at(high))
    }

    /// The distribution for drawing, by rising latency: for each bucket that isn't empty its upper end in milliseconds and how
    /// many latencies didn't exceed it.
    pub fn steps(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut total = 0;
        let buckets = self.buckets.iter_recorded();
        buckets.map(move |bucket| {
            total += bucket.count_since_last_iteration();
            (bucket.value_iterated_to() as f64 / 1e3, total)
        })
    }

    /// The share of the latencies (0 to 1) above `ms` milliseconds, as exact as the buckets; `None` when empty or for a
    /// limit that isn't a number.
    pub fn share_above(&self, ms: f64) -> Option<f64> {
        if self.is_empty() || ms.is_nan() {
            return None;
        }
        let kept = self.steps().take_while(|(upper, _)| *upper <= ms).last().map_or(0, |(_, count)| count);
        Some((self.buckets.len().saturating_sub(kept)) as f64 / self.buckets.len().max(1) as f64)
    }
}
