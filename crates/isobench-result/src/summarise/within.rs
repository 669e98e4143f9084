//! The time series of a round: rates in bins of time, how independent they are.
//!
//! Not here: the methods (`isobench_stats`).

use isobench_stats::series_interval;

use crate::document::{Document, Round};

/// For each round that has a series, committed transactions per second in each whole bin of the
/// measured time.
///
/// Transactions that end after the time is up are left out, since nothing new starts then. So are rounds
/// in which something happened to the server: their rates aren't samples of one.
pub fn bins(document: &Document, rounds: &[&Round]) -> Vec<Vec<f64>> {
    let of_round = |round: &&Round| {
        let series = round.series.as_ref().filter(|_| round.faults.is_none())?;
        let end = document.plan.seconds().map_or(round.seconds, |time| time.min(round.seconds));
        let whole = (end / series.bin_s + 1e-6).floor();
        if !(series.bin_s > 0.0 && whole.is_finite() && whole >= 1.0) {
            return None;
        }
        let rate = |(index, count): (usize, &u64)| {
            (((index + 1) as f64) <= whole).then_some(*count as f64 / series.bin_s)
        };
        Some(series.committed.iter().enumerate().map_while(rate).collect::<Vec<f64>>())
    };
    rounds.iter().filter_map(of_round).collect()
}

/// The effective number of independent bins of all rounds together.
pub fn effective_samples(bins: &[Vec<f64>]) -> Option<f64> {
    let known = bins.iter().filter_map(|bins| series_interval(bins)).map(|estimate| estimate.ess);
    known.reduce(|sum, ess| sum + ess).filter(|sum| sum.is_finite())
}

/// The distances of the ends of a single round's interval from its mean, down and up.
pub fn half_widths(bins: &[f64]) -> Option<(f64, f64)> {
    let estimate = series_interval(bins)?.estimate;
    Some((estimate.mean - estimate.low?, estimate.high? - estimate.mean))
}
