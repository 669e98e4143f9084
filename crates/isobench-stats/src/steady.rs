//! Whether a run's series was steady: its begin, its trend, its levels.
//!
//! Not here: the mean of a steady series (`batches`), and what a run that wasn't steady is called.

use crate::batches::{batch_means, variance_of};
use crate::estimate::{mean_of, two_sided_p};

/// The fewest bins that tell anything about steadiness.
const FEWEST_BINS: usize = 20;

/// A difference below this share of the mean is no transient, drift or level, however certain it is.
const NEGLIGIBLE: f64 = 0.02;

/// The bins of the initial transient: the begin of a series that differs from the rest, such as cold caches.
///
/// `Some(0)`: there is none. `None`: the series never becomes steady (what differs ends beyond half), has fewer
/// than 20 bins, or one that isn't finite. Units: bins.
///
/// Method: first a test whether the mean changes anywhere, at 5 %: the largest self-normalised CUSUM, which needs no
/// estimate of the correlation and so holds its level in correlated series. If so, the begin is cut where the marginal
/// standard error of the rest is least (MSER), in batches of a fortieth of the series; a begin that differs by
/// less than 2 % of the rest is none. MSER alone would cut somewhere in steady noise, too. Assumes that correlation ends
/// within a small part of the series.
///
/// Sources: Shao and Zhang, "Testing for change points in time series", Journal of the American Statistical
/// Association 105 (2010); White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69 (1997).
pub fn transient(bins: &[f64]) -> Option<usize> {
    let cut = cut(bins)?;
    (2 * cut <= bins.len()).then_some(cut)
}

/// True if a warm-up may end: the initial transient of all its `bins` ends before the `last` of them.
///
/// For a warm-up that goes on slice by slice: `bins` holds all slices, `last` is the length of the latest one. False with
/// fewer than 20 bins. Method and assumptions: [`transient`]. Of steady series about one in twenty is called cold, which
/// costs another slice.
pub fn is_warm(bins: &[f64], last: usize) -> bool {
    cut(bins).is_some_and(|cut| cut + last <= bins.len())
}

/// How the level of a series changes from its begin to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The change of the fitted line from the first to the last bin, divided by the mean: −0.1 is a loss of 10 %.
    pub relative: f64,
    /// True if the change is more than noise (5 %, two-sided) and at least 2 %.
    pub significant: bool,
}

/// Estimates the linear change of a series over its whole length.
///
/// Method: least squares on 20 batch means; the variance of the slope is increased by (1 + r) ÷ (1 − r) for the
/// correlation r of neighbouring residuals (not below 0, corrected for its bias); Student's t with 18 degrees of freedom. `None`
/// with fewer than 40 bins, one that isn't finite, or a mean of 0. Assumes that correlation ends within a small part of
/// the series; a jump or a transient is seen as a change, too.
///
/// Sources: as [`series_interval`](crate::series_interval).
pub fn drift(bins: &[f64]) -> Option<Drift> {
    let mean = mean_of(bins)?;
    if bins.len() < 2 * DRIFT_BATCHES || mean == 0.0 {
        return None;
    }
    let means = batch_means(bins, DRIFT_BATCHES);
    let count = means.len() as f64;
    let center = mean_of(&means)?;
    let at = |index: usize| index as f64 - (count - 1.0) / 2.0;
    let spread = (0..means.len()).map(|index| at(index).powi(2)).sum::<f64>();
    let slope =
        means.iter().enumerate().map(|(index, value)| at(index) * (value - center)).sum::<f64>() / spread;
    let residuals: Vec<f64> =
        means.iter().enumerate().map(|(index, value)| value - center - slope * at(index)).collect();
    let squares = residuals.iter().map(|residual| residual.powi(2)).sum::<f64>();
    let products = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
    let observed = if squares > 0.0 { products / squares } else { 0.0 };
    let correlation = ((observed * count + 2.0) / (count - 8.0)).clamp(0.0, 0.8);
    let variance = squares / (count - 2.0) / spread * (1.0 + correlation) / (1.0 - correlation);
    let relative = slope * count / mean;
    let certain = two_sided_p(slope, variance.sqrt(), count - 2.0)? < 0.05;
    relative.is_finite().then_some(Drift { relative, significant: certain && relative.abs() >= NEGLIGIBLE })
}

/// Batches of the trend test.
const DRIFT_BATCHES: usize = 20;

/// True if a series has two separated levels, such as full speed and half speed while a checkpoint writes.
///
/// Method: the bins are smoothed to at most 60 batches and split into a lower and an upper group where the
/// variance within the groups is least; two levels are claimed if the means of the groups are at least
/// [`SEPARATION`] standard deviations apart (Ashman's D), by 10 % of the mean or more, and each holds 10 % of
/// the bins. A straight drift has D = 3.5 and isn't two levels. `None` with fewer than 40 bins or one that isn't finite.
///
/// Sources: Ashman, Bird and Zepf, "Detecting bimodality in astronomical datasets", Astronomical Journal 108 (1994); the
/// split: Otsu, IEEE Transactions on Systems, Man, and Cybernetics 9 (1979).
pub fn is_bimodal(bins: &[f64]) -> Option<bool> {
    let mean = mean_of(bins)?;
    if bins.len() < 40 {
        return None;
    }
    let mut levels = batch_means(bins, bins.len() / bins.len().div_ceil(60));
    levels.sort_by(f64::total_cmp);
    let fewest = levels.len().div_ceil(10);
    let split = (fewest..=levels.len() - fewest).min_by(|left, right| {
        within(&levels[..*left], &levels[*left..]).total_cmp(&within(&levels[..*right], &levels[*right..]))
    })?;
    let (low, high) = levels.split_at(split);
    let (low_mean, high_mean) = (mean_of(low)?, mean_of(high)?);
    let spread = f64::midpoint(variance_of(low, low_mean), variance_of(high, high_mean)).sqrt();
    let distance = high_mean - low_mean;
    Some(distance > SEPARATION * spread && distance >= LEVEL_DISTANCE * mean.abs())
}

/// How many standard deviations of a level two levels are apart at least.
const SEPARATION: f64 = 4.0;

/// How far two levels are apart at least, as a share of the mean.
const LEVEL_DISTANCE: f64 = 0.1;

/// The sum of squares within two groups.
fn within(low: &[f64], high: &[f64]) -> f64 {
    [low, high]
        .map(|group| {
            let mean = group.iter().sum::<f64>() / group.len() as f64;
            group.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        })
        .iter()
        .sum()
}

/// Where the initial transient ends, wherever that is; 0 without one.
fn cut(bins: &[f64]) -> Option<usize> {
    mean_of(bins)?;
    if bins.len() < FEWEST_BINS {
        return None;
    }
    let length = (bins.len() / 40).max(1);
    let means = batch_means(bins, bins.len() / length);
    if !changes(&means) {
        return Some(0);
    }
    let cut = least_marginal_error(&means);
    let (begin, rest) = means.split_at(cut);
    let rest = mean_of(rest)?;
    let differs = mean_of(begin).is_some_and(|begin| (begin - rest).abs() >= NEGLIGIBLE * rest.abs());
    // The bins that don't fill batches lie at the begin.
    Some(if differs { cut * length + bins.len() % length } else { 0 })
}

/// The 95 % quantile of the self-normalised CUSUM's limit (Shao and Zhang 2010, table 1, one mean).
const CUSUM_CRITICAL: f64 = 40.1;

/// True if the mean changes somewhere, by the self-normalised CUSUM.
fn changes(values: &[f64]) -> bool {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let mut sums = vec![0.0; n + 1];
    for (index, value) in values.iter().enumerate() {
        sums[index + 1] = sums[index] + value - mean;
    }
    // The bridge between two points of the sums: how far they stray from the straight line.
    let strayed = |from: usize, to: usize| {
        let slope = (sums[to] - sums[from]) / (to - from) as f64;
        (from + 1..to).map(|at| (sums[at] - sums[from] - slope * (at - from) as f64).powi(2)).sum::<f64>()
    };
    (1..n).any(|at| {
        let noise = (strayed(0, at) + strayed(at, n)) / (n * n) as f64;
        let shift = sums[at].powi(2) / n as f64;
        shift > CUSUM_CRITICAL * noise && shift > 0.0
    })
}

/// How many values to cut at the begin so that the rest's squared standard error, Σ(x − mean)² ÷ n², is least.
fn least_marginal_error(values: &[f64]) -> usize {
    let error = |cut: usize| {
        let rest = &values[cut..];
        let mean = rest.iter().sum::<f64>() / rest.len() as f64;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (rest.len() * rest.len()) as f64
    };
    // Of the last few values alone the error says nothing.
    let most = values.len().saturating_sub(5);
    (0..=most).min_by(|left, right| error(*left).total_cmp(&error(*right))).unwrap_or(0)
}
