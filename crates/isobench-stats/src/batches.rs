//! The mean of one run's series, whose neighbouring values depend on each other, with its interval.
//!
//! Not here: independent measurements (`estimate`), and whether the series is steady at all
//! (`steady`).

use crate::estimate::{Estimate, critical_value, mean_of};

/// The number of batches that a series is cut into.
///
/// Twenty give a stable variance, and batches long enough. Simulated: with ten, intervals are a
/// fifth wider, and hold the mean hardly more often.
const BATCHES: usize = 20;

/// The fewest bins with an interval: two in each batch.
const FEWEST_BINS: usize = 2 * BATCHES;

/// The mean of a series of one run, its interval, and how many independent values the series is
/// worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesEstimate {
    /// Mean per bin and 95 % interval, in the unit of the bins. Without ends if the series is too
    /// short, see [`series_interval`].
    pub estimate: Estimate,
    /// The effective sample size: as many independent bins would have given a mean as good as this
    /// one. From 1 to the number of bins.
    pub ess: f64,
}

/// Estimates the mean of a steady series of equally long bins, such as commits per 100 ms of one
/// run.
///
/// Estimated: the mean that the same cell would have in a very long run. Method: 20 non-overlapping
/// batch means; the variance of their mean is increased by (1 + r) ÷ (1 − r), where r is the
/// correlation of neighbouring batches (not below 0, corrected for its bias); Student's t with 19
/// degrees of freedom. Bins at the start that don't fill batches are left out of the variance, not
/// of the mean. The effective sample size is the variance of the bins divided by the variance of
/// the mean; of independent bins it is a fifth too small.
///
/// Assumes a steady series (see [`transient`](crate::transient), [`drift`](crate::drift)) that is
/// at least ten times as long as its correlation lasts: with (1 + φ) ÷ (1 − φ) bins, AR(1) with φ =
/// 0.6 takes 40 bins, with φ = 0.9 200. Simulated, the interval then holds the mean in 93 to 97 of
/// 100 runs; in series half as long in 90 to 92. It is for one run: rounds of the same cell differ
/// by more than that, see [`mean_interval`](crate::mean_interval).
///
/// | bins | result |
/// |---|---|
/// | none; one that isn't finite | `None` |
/// | fewer than 40 | mean without an interval; effective sample size 1 |
/// | all equal | the interval is the mean itself |
///
/// Sources: Conway, "Some tactical problems in digital simulation", Management Science 10 (1963);
/// the correction: Tafazzoli, Steiger and Wilson, "N-Skart", IEEE Transactions on Automatic Control
/// 56 (2011); the bias: Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41
/// (1954).
pub fn series_interval(bins: &[f64]) -> Option<SeriesEstimate> {
    let mean = mean_of(bins)?;
    let n = bins.len();
    let variance = variance_of(bins, mean);
    if n < FEWEST_BINS || !variance.is_finite() {
        let estimate = Estimate { mean, low: None, high: None };
        return Some(SeriesEstimate { estimate, ess: 1.0 });
    }
    if bins.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq()) {
        let estimate = Estimate { mean, low: Some(mean), high: Some(mean) };
        return Some(SeriesEstimate { estimate, ess: n as f64 });
    }
    let of_mean = variance_of_mean(&batch_means(bins, BATCHES));
    let half = critical_value((BATCHES - 1) as f64)? * of_mean.sqrt();
    let estimate = Estimate { mean, low: Some(mean - half), high: Some(mean + half) };
    let ess = (variance / of_mean).clamp(1.0, n as f64);
    Some(SeriesEstimate { estimate, ess })
}

/// Means of `count` equally long batches; what doesn't fill them is left out at the start, where a
/// rest of the warm-up would be. Empty if there are fewer bins than batches.
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
    let residuals: Vec<f64> = means.iter().map(|value| value - mean).collect();
    variance_of(means, mean) / count * inflation(&residuals, 1.0, 4.0, MOST_CORRELATED)
}

/// The most correlation of neighbouring batches that is believed: beyond, the factor is noise.
const MOST_CORRELATED: f64 = 0.8;

/// By how much correlation of neighbours increases the variance of a mean: (1 + r) ÷ (1 − r), exact
/// for long AR(1) series.
///
/// Fitting makes residuals look less correlated than they are: n values show about r − (`constant`
/// + `factor`·r) ÷ n. This is solved for r, which is kept between 0 and `most`.
pub(crate) fn inflation(residuals: &[f64], constant: f64, factor: f64, most: f64) -> f64 {
    let count = residuals.len() as f64;
    let squares = residuals.iter().map(|residual| residual * residual).sum::<f64>();
    let products = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
    if squares == 0.0 {
        return 1.0;
    }
    let correlation = ((products / squares * count + constant) / (count - factor)).clamp(0.0, most);
    (1.0 + correlation) / (1.0 - correlation)
}

/// The variance of a sample (divided by n − 1); 0 for a single value.
pub(crate) fn variance_of(values: &[f64], mean: f64) -> f64 {
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    squares / (values.len().max(2) - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_too_short_has_a_mean_only() {
        let estimate = series_interval(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(estimate.estimate, Estimate { mean: 2.0, low: None, high: None });
        assert!((estimate.ess - 1.0).abs() < 1e-12);
        let bins: Vec<f64> = (0..40).map(|index| f64::from(index % 7)).collect();
        assert!(series_interval(&bins[1..]).unwrap().estimate.low.is_none());
        assert!(series_interval(&bins).unwrap().estimate.low.is_some());
    }

    #[test]
    fn nothing_and_the_infinite_have_no_mean() {
        assert_eq!(series_interval(&[]), None);
        assert_eq!(series_interval(&[f64::NAN; 50]), None);
    }

    #[test]
    fn equal_bins_have_a_mean_without_doubt() {
        let series = series_interval(&[5.0; 60]).unwrap();
        assert_eq!(
            (series.estimate.low, series.estimate.high),
            (Some(series.estimate.mean), Some(series.estimate.mean))
        );
        assert!((series.estimate.mean - 5.0).abs() < 1e-12 && (series.ess - 60.0).abs() < 1e-12);
    }

    #[test]
    fn long_waves_are_worth_few_bins() {
        // The same values; in the second series neighbours are alike.
        let quick: Vec<f64> = (0..200).map(|index| f64::from((index * 37) % 101)).collect();
        let mut slow = quick.clone();
        slow.sort_by(f64::total_cmp);
        let (quick, slow) = (series_interval(&quick).unwrap(), series_interval(&slow).unwrap());
        assert!(quick.ess > 50.0 && slow.ess < 5.0, "{} {}", quick.ess, slow.ess);
        let width = |series: &SeriesEstimate| series.estimate.high.unwrap() - series.estimate.low.unwrap();
        assert!(width(&slow) > 4.0 * width(&quick));
    }

    #[test]
    fn batches_leave_out_the_begin() {
        assert_eq!(batch_means(&[9.0, 1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        assert!(batch_means(&[1.0], 2).is_empty() && batch_means(&[], 0).is_empty());
    }

    #[test]
    fn the_inflation_is_ar1s() {
        // Long and alternating by pairs: neighbours are uncorrelated. Long waves: the most that is
        // believed.
        let pairs: Vec<f64> = (0..4000).map(|index| if index / 2 % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!((inflation(&pairs, 1.0, 4.0, 0.8) - 1.0).abs() < 0.01);
        let waves: Vec<f64> = (0..4000).map(|index| if index / 500 % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!((inflation(&waves, 1.0, 4.0, 0.8) - 9.0).abs() < 1e-9);
        assert!((inflation(&[0.0; 20], 1.0, 4.0, 0.8) - 1.0).abs() < 1e-12);
    }
}
