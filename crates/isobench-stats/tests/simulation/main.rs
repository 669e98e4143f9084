//! The methods held against a known truth: how often intervals hold it, how often tests give false
//! alarms.
//!
//! Everything is drawn from fixed streams, so the figures are the same on every machine. They are
//! printed; `docs/concept/statistics.md` has some of it:
//! `cargo test -p isobench-stats --test simulation -- --nocapture --test-threads 1`. Not here:
//! exact values of single results, which are unit tests.
//!
//! | file | what is simulated |
//! |---|---|
//! | `generator` | random numbers: normal, Poisson, autocorrelated |
//! | `series` | intervals of the mean of one run |
//! | `rounds` | ratios of paired rounds, noise, independent results |
//! | `stopping` | rounds that end at a resolution, or before |
//! | `slices` | rounds of short slices in turns: how many rounds, and what is independent |
//! | `steadiness` | transients, drifts, two levels: false alarms, and what is found |
//! | `percentiles` | percentiles over rounds |

mod generator;
mod percentiles;
mod rounds;
mod series;
mod slices;
mod steadiness;
mod stopping;

use std::ops::RangeInclusive;

/// The coverage wanted of a 95 % interval, in percent.
const COVERAGE: RangeInclusive<f64> = 93.0..=97.0;

/// The most false alarms of a 5 % test, in percent, where `repetitions` leave a standard deviation
/// of their own: two of them.
fn most_false_alarms(repetitions: usize) -> f64 {
    5.0 + 200.0 * (0.05_f64 * 0.95 / repetitions as f64).sqrt()
}

/// A frequency in percent.
fn percent(count: usize, repetitions: usize) -> f64 {
    100.0 * count as f64 / repetitions as f64
}

/// True if the interval holds the truth; false without an interval.
fn holds(low: Option<f64>, high: Option<f64>, truth: f64) -> bool {
    low.zip(high).is_some_and(|(low, high)| low <= truth && truth <= high)
}
