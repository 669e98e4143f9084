//! The mean of one run's series, whose neighbouring values depend on each other, with its interval.
//!
//! Not here: independent measurements (`estimate`), and whether the series is steady at all (`steady`).

use crate::estimate::{Estimate, critical_value, mean_of};

/// How many batches a series is cut into.
///
/// Twenty are enough for a stable variance, and few enough for long batches. Simulated: 10 cost a fifth of the
/// precision, 40 lose coverage in strongly correlated series.
const BATCHES: usize = 20;

/// The fewest bins with an interval: two in each batch.
const FEWEST_BINS: usize = 2 * BATCHES;

/// The fewest effective samples with an interval: below, the run is hardly longer than its own memory.
const FEWEST_EFFECTIVE: f64 = 5.0;

/// The mean of a series of one run, its interval, and how many independent values the series is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesEstimate {
    /// Mean per bin and 95 % interval, in the unit of the bins; `n` is the number of bins. Without ends if the
    /// series is too short, see [`series_interval`].
    pub estimate: Estimate,
    /// The effective sample size: as many independent bins would have given a mean as good as this one. From 1 to
    /// the number of bins.
    pub ess: f64,
    /// How many batches the interval rests on.
    pub batches: usize,
}

/// Estimates the mean of a steady series of equally long bins, such as commits per 100 ms of one run.
///
/// Estimated: the mean that the same cell would have in a very long run. Method: 20 non-overlapping batch means, the
/// variance of their mean increased by (1 + r) ÷ (1 − r), where r is the correlation of neighbouring batches (not below
/// 0, corrected for its bias of −(1 + 4r) ÷ 20), and Student's t with 19 degrees of freedom. Bins at the begin
/// that don't fill batches are left out of the variance, not of the mean. Assumes a steady series (see
/// `transient` and `drift`) that is several times longer than its correlation lasts.
///
/// The effective sample size is the variance of the bins divided by the variance of the mean.
///
/// | bins | result |
/// |---|---|
/// | none; one that isn't finite | `None` |
/// | fewer than 40; an effective sample size below 5 | mean without an interval |
/// | all equal | the interval is the mean itself |
///
/// Sources: Conway, "Some tactical problems in digital simulation", Management Science 10 (1963); the correction:
/// Tafazzoli, Steiger and Wilson, "N-Skart", IEEE Transactions on Automatic Control 56 (2011); its bias: Kendall, "Note on
/// bias in the estimation of autocorrelation", Biometrika 41 (1954).
pub fn series_interval(bins: &[f64]) -> Option<SeriesEstimate> {
    let mean = mean_of(bins)?;
    let n = bins.len();
    let without =
        |ess, batches| SeriesEstimate { estimate: Estimate { mean, low: None, high: None, n }, ess, batches };
    let variance = variance_of(bins, mean);
    if n < FEWEST_BINS || !variance.is_finite() {
        return Some(without(1.0, 0));
    }
    if variance == 0.0 {
        let estimate = Estimate { mean, low: Some(mean), high: Some(mean), n };
        return Some(SeriesEstimate { estimate, ess: n as f64, batches: BATCHES });
    }
    let of_mean = variance_of_mean(&batch_means(bins, BATCHES));
    let ess = (variance / of_mean).clamp(1.0, n as f64);
    let half = critical_value((BATCHES - 1) as f64)? * of_mean.sqrt();
    if ess < FEWEST_EFFECTIVE || !half.is_finite() {
        return Some(without(ess, BATCHES));
    }
    let estimate = Estimate { mean, low: Some(mean - half), high: Some(mean + half), n };
    Some(SeriesEstimate { estimate, ess, batches: BATCHES })
}

/// Means of `count` equally long batches; what doesn't fill them is left out at the begin, where a rest of the warm-up
/// would be. Empty if there are fewer bins than batches.
pub(crate) fn batch_means(bins: &[f64], count: usize) -> Vec<f64> {
    let length = bins.len() / count.max(1);
    if length == 0 {
        return Vec::new();
    }
    let used = &bins[bins.len() - length * count..];
    used.chunks_exact(length).map(|batch| batch.iter().sum::<f64>() / length as f64).collect()
}

/// The variance of the mean of correlated batch means.
fn variance_of_mean(means: &[f64]) -> f64 {
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let squares = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let products = means.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
    if squares == 0.0 {
        return 0.0;
    }
    let observed = products / squares;
    // E[observed] ≈ r − (1 + 4r) / count, solved for r.
    let correlation = ((observed * count + 1.0) / (count - 4.0)).clamp(0.0, MOST_CORRELATED);
    squares / (count - 1.0) / count * (1.0 + correlation) / (1.0 - correlation)
}

/// The most correlation of neighbouring batches that is believed: beyond, the factor (1 + r) ÷ (1 − r) is noise.
const MOST_CORRELATED: f64 = 0.8;

/// The variance of a sample (divided by n − 1); 0 for a single value.
pub(crate) fn variance_of(values: &[f64], mean: f64) -> f64 {
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    squares / (values.len().max(2) - 1) as f64
}
