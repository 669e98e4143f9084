//! The steadiness of a run's series: its start, its trend, its levels.
//!
//! Not here: the mean of a steady series (`batches`), and what a run that wasn't steady is called.

use crate::batches::{batch_means, inflation, variance_of};
use crate::estimate::{CONFIDENCE, mean_of, two_sided_p};

/// The fewest bins in which a change can be found.
const FEWEST_BINS: usize = 20;

/// A change below this share of the mean is neither a transient nor a drift, however certain it is.
const NEGLIGIBLE: f64 = 0.05;

/// The bins of the initial transient: the start of a series where it differs from the rest, such as
/// cold caches.
///
/// `Some(0)`: there is none. `None`: the series never becomes steady (its last change lies beyond
/// its half), or it has fewer than 20 bins, or one that isn't finite.
///
/// Method: the series is split in two where that explains most of its variance. If the means of the
/// parts differ by more than noise, the first part is transient, and the rest is looked at in the
/// same way; a slow rise is cut in several steps. More than noise is a distance of 3.4 standard
/// errors, since the split is the worst of all, and 5 % of the mean; the standard error grows with
/// the correlation of neighbours around the two means, as in AR(1). Series of 80 bins and more are
/// looked at in at least 40 batches. Assumes that a disturbance lasts for a small part of the
/// series. A steady drift from start to end and a passing dip look like correlation to it:
/// [`drift`] and [`is_bimodal`] find them.
///
/// Simulated on steady series: at most one in twenty is cut without need, where neighbours
/// correlate by 0.3 or less, or by 0.6 in 100 bins and more; up to one in ten with 0.6 in 20 to 60
/// bins; with 0.9 it takes some 300 bins. Half of the speed in the first third is found in 95 of
/// 100 series of 60 bins with ten commits each; MSER (White 1997) after a self-normalised CUSUM
/// (Shao and Zhang 2010), which was tried, finds it in 30.
///
/// Sources: Hawkins, "Testing a sequence of observations for a shift in location", Journal of the
/// American Statistical Association 72 (1977); the repetition: Vostrikova, Soviet Mathematics
/// Doklady 24 (1981).
pub fn transient(bins: &[f64]) -> Option<usize> {
    let end = last_change(bins)?;
    (2 * end <= bins.len()).then_some(end)
}

/// True if a warm-up may end: nothing has changed within the `last` bins of all its `bins`.
///
/// For a warm-up that goes on slice by slice: `bins` holds all slices, `last` is the length of the
/// latest one. False with fewer than 20 bins. Method, assumptions and false alarms (which cost
/// another slice): [`transient`].
pub fn is_warm(bins: &[f64], last: usize) -> bool {
    last_change(bins).is_some_and(|end| last <= bins.len() - end)
}

/// The place of the last change of the mean, in bins; 0 if it didn't change.
fn last_change(bins: &[f64]) -> Option<usize> {
    mean_of(bins)?;
    if bins.len() < FEWEST_BINS {
        return None;
    }
    let length = (bins.len() / 40).max(1);
    let batches = batch_means(bins, bins.len() / length);
    let mut end = 0;
    while let Some(split) = change(&batches[end..]) {
        end += split;
    }
    // The bins that don't fill a batch are at the start.
    Some(if end == 0 { 0 } else { end * length + bins.len() % length })
}

/// The place of the largest change of the mean, if that is more than noise.
fn change(values: &[f64]) -> Option<usize> {
    /// Standard errors that the worst split of a steady series exceeds in less than one case of
    /// twenty.
    const CRITICAL: f64 = 3.4;
    if values.len() < FEWEST_BINS {
        return None;
    }
    let count = values.len() as f64;
    let mean = mean_of(values)?;
    let mut sum = 0.0;
    let explained = values.iter().take(values.len() - 2).enumerate().map(|(index, value)| {
        sum += value - mean;
        let before = (index + 1) as f64;
        (index + 1, sum * sum * count / (before * (count - before)))
    });
    // A part of a single value would make every peak a change.
    let (split, explained) = explained.skip(1).max_by(|left, right| left.1.total_cmp(&right.1))?;
    let (before, after) = values.split_at(split);
    let means = (mean_of(before)?, mean_of(after)?);
    let residuals: Vec<f64> =
        before.iter().map(|value| value - means.0).chain(after.iter().map(|value| value - means.1)).collect();
    let variance = residuals.iter().map(|residual| residual * residual).sum::<f64>() / (count - 2.0);
    let noise = variance * inflation(&residuals, 3.0, 8.0, 0.95);
    let certain = explained > CRITICAL * CRITICAL * noise && explained > 0.0;
    (certain && (means.0 - means.1).abs() >= NEGLIGIBLE * mean.abs()).then_some(split)
}

/// The change of a series' level from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The change of the fitted line over the whole series, divided by the mean: −0.1 is a loss of
    /// 10 %.
    pub relative: f64,
    /// True if the change is more than noise (two-sided, 5 % within a series, 1 % over rounds) and at
    /// least 5 %.
    pub significant: bool,
}

/// Estimates the linear change of a series over its whole length.
///
/// Method: least squares on 20 batch means; the variance of the slope is increased for the
/// correlation of neighbouring residuals as in [`series_interval`](crate::series_interval);
/// Student's t with 18 degrees of freedom. `None` with fewer than 40 bins, one that isn't finite,
/// or a mean of 0. Assumes that a disturbance lasts for a small part of the series; with a
/// correlation of 0.9 between neighbours that takes 200 bins. A jump and a transient are seen as a
/// change, too.
pub fn drift(bins: &[f64]) -> Option<Drift> {
    const BATCHES: usize = 20;
    let mean = mean_of(bins)?;
    if bins.len() < 2 * BATCHES || mean == 0.0 {
        return None;
    }
    let batches = batch_means(bins, BATCHES);
    let center = mean_of(&batches)?;
    let at = |index: usize| index as f64 - (BATCHES - 1) as f64 / 2.0;
    let spread = (0..BATCHES).map(|index| at(index).powi(2)).sum::<f64>();
    let slope = batches.iter().enumerate().map(|(index, value)| at(index) * value).sum::<f64>() / spread;
    let fitted = |index: usize| center + slope * at(index);
    let residuals: Vec<f64> =
        batches.iter().enumerate().map(|(index, value)| value - fitted(index)).collect();
    let degrees = (BATCHES - 2) as f64;
    let squares = residuals.iter().map(|residual| residual * residual).sum::<f64>();
    let variance = squares / degrees / spread * inflation(&residuals, 2.0, 8.0, 0.8);
    let relative = Some(slope * BATCHES as f64 / mean).filter(|relative| relative.is_finite())?;
    let certain = two_sided_p(slope, variance.sqrt(), degrees)? < 1.0 - CONFIDENCE;
    Some(Drift { relative, significant: certain && relative.abs() >= NEGLIGIBLE })
}

/// Estimates how much the level changes from the start to the end of rounds, each of which is too
/// short to show it by itself, such as a round of ten slices.
///
/// Method: a line is fitted to each round by least squares; its change over the round, divided by
/// the round's mean, is one value, and Student's t of these values tells whether there is any, with
/// one false alarm in a hundred. So rounds have to be independent of each other, but not the bins
/// of a round. `None` with fewer than three rounds that have five bins and a mean other than 0, or
/// with a bin that isn't finite.
pub fn drift_of_rounds(rounds: &[Vec<f64>]) -> Option<Drift> {
    over_rounds(rounds, |bins, mean| {
        let middle = (bins.len() - 1) as f64 / 2.0;
        let at = |index: usize| index as f64 - middle;
        let spread: f64 = (0..bins.len()).map(|index| at(index).powi(2)).sum();
        let slope =
            bins.iter().enumerate().map(|(index, bin)| at(index) * (bin - mean)).sum::<f64>() / spread;
        slope * bins.len() as f64 / mean
    })
}

/// Estimates by what share rounds start above the level of their rest (below: negative), from the
/// first bin of each: for rounds that are too short for [`transient`].
///
/// Method and assumptions: [`drift_of_rounds`]. A drift moves the start, too.
pub fn start_of_rounds(rounds: &[Vec<f64>]) -> Option<Drift> {
    over_rounds(rounds, |bins, mean| {
        // The rest's mean from the mean of all, so that both tests have the same rounds.
        let count = bins.len() as f64;
        let rest = (mean * count - bins[0]) / (count - 1.0);
        (bins[0] - rest) / mean
    })
}

/// The mean over rounds of a relative change in each, with a t test over rounds.
fn over_rounds(rounds: &[Vec<f64>], change: impl Fn(&[f64], f64) -> f64) -> Option<Drift> {
    const FEWEST_IN_ROUND: usize = 5;
    const FEWEST_ROUNDS: usize = 3;
    /// Every cell is asked, and there is no second opinion by another round.
    const FALSE_ALARMS: f64 = 0.01;
    let long = rounds.iter().filter(|bins| bins.len() >= FEWEST_IN_ROUND);
    let means = long.map(|bins| mean_of(bins).map(|mean| (bins, mean))).collect::<Option<Vec<_>>>()?;
    let changes: Vec<f64> =
        means.iter().filter(|(_, mean)| *mean != 0.0).map(|(bins, mean)| change(bins, *mean)).collect();
    if changes.len() < FEWEST_ROUNDS {
        return None;
    }
    let (relative, count) = (mean_of(&changes)?, changes.len() as f64);
    let error = (variance_of(&changes, relative) / count).sqrt();
    let certain = two_sided_p(relative, error, count - 1.0)? < FALSE_ALARMS;
    Some(Drift { relative, significant: certain && relative.abs() >= NEGLIGIBLE })
}

/// True if a series has two separated levels, such as full speed, and half speed while a checkpoint
/// writes.
///
/// Method: the values are split into a lower and an upper group where the variance within the
/// groups is least. Two levels are claimed if the means of the groups are at least 3.8 standard
/// deviations apart (Ashman's D; a normal distribution split in its middle has 2.65, a straight
/// drift 3.46) and 10 % of the mean. Since single bins are noisy and long batches mix the levels,
/// batches of 1, 2, 3, 5, 8, … bins are tried, as long as there are 30 of them, each group with a
/// tenth. Counts are steps, and of few per bin (now none, now one) any split separates perfectly:
/// so the deviation counts as one step of the bins at least, the smallest difference between two of
/// them. `None` with fewer than 40 bins or one that isn't finite. Assumes that levels last for
/// several bins; how often they alternate doesn't matter, so a long transient has two levels, too.
///
/// Simulated on steady series: at most one in twenty is called bimodal, but one in eight of AR(1)
/// with 0.9 in less than 200 bins. Half speed for some 30 bins at a time is found in 93 to 99 of
/// 100 series of 200 bins, if a bin's noise is a sixth of its mean or less, and correlates by 0.6
/// or less.
///
/// Sources: Ashman, Bird and Zepf, "Detecting bimodality in astronomical datasets", Astronomical
/// Journal 108 (1994); the split: Otsu, IEEE Transactions on Systems, Man, and Cybernetics 9
/// (1979).
pub fn is_bimodal(bins: &[f64]) -> Option<bool> {
    const FEWEST_BATCHES: usize = 30;
    const SEPARATION: f64 = 3.8;
    const DISTANCE: f64 = 0.1;
    let mean = mean_of(bins)?;
    if bins.len() < 40 {
        return None;
    }
    let lengths = std::iter::successors(Some(1_usize), |length| Some((length * 3).div_ceil(2)));
    let mut lengths = lengths.take_while(|length| bins.len() / length >= FEWEST_BATCHES);
    let step = step(bins);
    Some(lengths.any(|length| {
        let split = two_groups(batch_means(bins, bins.len() / length));
        split.is_some_and(|(distance, deviation)| {
            let deviation = deviation.max(step / length as f64);
            distance > SEPARATION * deviation && distance >= DISTANCE * mean.abs() && distance > 0.0
        })
    }))
}

/// The smallest difference between two values that differ; 0 if none do.
fn step(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.filter(|gap| *gap > 0.0).reduce(f64::min).unwrap_or(0.0)
}

/// Splits values into two groups of similar ones, each with a tenth of them at least; the distance
/// of the groups' means, and the standard deviation within a group (root of the mean of both
/// variances).
fn two_groups(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let center = mean_of(&values)?;
    let (mut sums, mut squares) = (vec![0.0; count + 1], vec![0.0; count + 1]);
    for (index, value) in values.iter().enumerate() {
        sums[index + 1] = sums[index] + (value - center);
        squares[index + 1] = squares[index] + (value - center).powi(2);
    }
    let within = |from: usize, to: usize| {
        let sum: f64 = sums[to] - sums[from];
        (squares[to] - squares[from] - sum * sum / (to - from) as f64).max(0.0)
    };
    let cost = |split: usize| within(0, split) + within(split, count);
    let fewest = count.div_ceil(10).max(2);
    let split =
        (fewest..=count.checked_sub(fewest)?).min_by(|left, right| cost(*left).total_cmp(&cost(*right)))?;
    let (below, above) = (split as f64, (count - split) as f64);
    let distance = (sums[count] - sums[split]) / above - sums[split] / below;
    let variances = (within(0, split) / (below - 1.0), within(split, count) / (above - 1.0));
    Some((distance, f64::midpoint(variances.0, variances.1).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Around 1, by a fixed pattern that looks like noise of 3 %.
    fn noise(n: usize) -> Vec<f64> {
        (0..n).map(|index| 1.0 + ((index * 7919) % 101) as f64 / 1000.0 - 0.05).collect()
    }

    /// Noise, times what `level` says of the share of the series that is over.
    fn shaped(n: usize, level: impl Fn(f64) -> f64) -> Vec<f64> {
        noise(n).iter().enumerate().map(|(index, value)| value * level(index as f64 / n as f64)).collect()
    }

    #[test]
    fn a_steady_series_has_no_transient() {
        for n in [20, 33, 60, 100, 1200] {
            assert_eq!(transient(&noise(n)), Some(0), "{n}");
            assert!(is_warm(&noise(n), n));
        }
        assert_eq!(transient(&[7.0; 50]), Some(0));
        assert_eq!(transient(&[0.0; 50]), Some(0));
    }

    #[test]
    fn a_slow_begin_is_cut() {
        for n in [30, 60, 300, 1200] {
            let slow = shaped(n, |over| if over < 1.0 / 3.0 { 0.5 } else { 1.0 });
            let cut = transient(&slow).unwrap();
            assert!((n / 3..=n / 3 + n / 20 + 1).contains(&cut), "{n}: {cut}");
            assert!(!is_warm(&slow, n) && is_warm(&slow, n / 2));
        }
    }

    #[test]
    fn a_slow_rise_is_cut_in_several_steps() {
        let rise = shaped(400, |over| 1.0 - 0.8 * (-over * 15.0).exp());
        let cut = transient(&rise).unwrap();
        assert!((60..=140).contains(&cut), "{cut}");
    }

    #[test]
    fn what_changes_late_never_becomes_steady() {
        let late = shaped(200, |over| if over < 0.7 { 1.0 } else { 0.5 });
        assert_eq!(transient(&late), None);
        assert!(is_warm(&late, 50) && !is_warm(&late, 70));
    }

    #[test]
    fn a_short_series_and_the_infinite_tell_nothing() {
        assert_eq!((transient(&noise(19)), is_warm(&noise(19), 1)), (None, false));
        assert_eq!((drift(&noise(39)), is_bimodal(&noise(39))), (None, None));
        let infinite = [f64::INFINITY; 60];
        assert_eq!((transient(&infinite), drift(&infinite), is_bimodal(&infinite)), (None, None, None));
    }

    #[test]
    fn a_negligible_change_is_none() {
        let small = shaped(400, |over| if over < 0.3 { 0.96 } else { 1.0 });
        assert_eq!(transient(&small), Some(0));
        let drift = drift(&shaped(400, |over| 1.0 - 0.04 * over)).unwrap();
        assert!(!drift.significant && (drift.relative + 0.04).abs() < 0.01, "{drift:?}");
    }

    #[test]
    fn a_drift_is_measured_by_its_ends() {
        let fitted = |factor: f64| drift(&shaped(300, |over| 1.0 + factor * (over - 0.5))).unwrap();
        for factor in [-0.2, 0.1, 0.5] {
            let found = fitted(factor);
            assert!(found.significant && (found.relative - factor).abs() < 0.02, "{factor}: {found:?}");
        }
        assert!(!fitted(0.0).significant);
        assert_eq!(drift(&[0.0; 60]), None);
        assert_eq!(drift(&[3.0; 60]), Some(Drift { relative: 0.0, significant: false }));
    }

    #[test]
    fn short_rounds_show_together_what_none_shows_alone() {
        let rounds = |level: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
            let noisy = |round: usize| {
                (0..10).map(|at| level(at) * (1.0 + ((round * 10 + at) * 37 % 101) as f64 / 1000.0)).collect()
            };
            (0..8).map(noisy).collect()
        };
        let falling = drift_of_rounds(&rounds(&|at| 1.0 - 0.02 * at as f64)).unwrap();
        assert!(falling.significant && (falling.relative + 0.22).abs() < 0.03, "{falling:?}");
        let steady = rounds(&|_| 1.0);
        assert!(!drift_of_rounds(&steady).unwrap().significant);
        assert!(!start_of_rounds(&steady).unwrap().significant);
        let cold = start_of_rounds(&rounds(&|at| if at == 0 { 0.7 } else { 1.0 })).unwrap();
        assert!(cold.significant && (cold.relative + 0.31).abs() < 0.03, "{cold:?}");
    }

    #[test]
    fn too_few_or_too_short_rounds_tell_nothing() {
        for rounds in [vec![], vec![noise(10); 2], vec![noise(4); 9], vec![vec![0.0; 10]; 9]] {
            assert_eq!((drift_of_rounds(&rounds), start_of_rounds(&rounds)), (None, None));
        }
        assert_eq!(drift_of_rounds(&[vec![f64::NAN; 10], noise(10), noise(10), noise(10)]), None);
        let same = Drift { relative: 0.0, significant: false };
        assert_eq!(drift_of_rounds(&vec![vec![3.0; 10]; 3]), Some(same));
    }

    #[test]
    fn two_levels_are_found_however_they_alternate() {
        for dwell in [5, 20, 90] {
            let bins: Vec<f64> = noise(300)
                .iter()
                .enumerate()
                .map(|(index, value)| if index / dwell % 2 == 0 { *value } else { value * 0.5 })
                .collect();
            assert_eq!(is_bimodal(&bins), Some(true), "{dwell}");
        }
    }

    #[test]
    fn now_none_and_now_one_are_not_two_levels() {
        // 25 a second in bins of 20 ms: one every other bin, sometimes two in a row; in Hz.
        let sparse: Vec<f64> = (0..150_u32).map(|index| f64::from(index * 7919 % 101 / 51) * 50.0).collect();
        assert_eq!(is_bimodal(&sparse), Some(false));
        // The same number of bins at 300 a second and at 100 are distinguished.
        let counts: Vec<f64> = (0..150_u32)
            .map(|index| f64::from(if index / 50 == 1 { 2 } else { 6 } + index * 7919 % 101 / 51) * 50.0)
            .collect();
        assert_eq!(is_bimodal(&counts), Some(true));
    }

    #[test]
    fn one_level_a_drift_and_a_spike_are_not_two() {
        assert_eq!(is_bimodal(&noise(300)), Some(false));
        assert_eq!(is_bimodal(&[2.0; 300]), Some(false));
        assert_eq!(is_bimodal(&shaped(300, |over| 1.0 + over)), Some(false));
        assert_eq!(is_bimodal(&shaped(300, |over| if over < 0.05 { 0.2 } else { 1.0 })), Some(false));
        // Far apart in standard deviations, but close to each other.
        let close: Vec<f64> = (0..300).map(|index| if index / 30 % 2 == 0 { 100.0 } else { 105.0 }).collect();
        assert_eq!(is_bimodal(&close), Some(false));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_series_is_read(bins in prop::collection::vec(any::<f64>(), 0..120), last in any::<usize>()) {
            let _ = (drift(&bins), is_bimodal(&bins), is_warm(&bins, last));
            if let Some(cut) = transient(&bins) {
                prop_assert!(2 * cut <= bins.len());
            }
        }
    }
}
