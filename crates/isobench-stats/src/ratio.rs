//! A ratio of two series of measurements with its interval, and whether it is more than noise.
//!
//! Not here: which cells are compared with which.

use crate::batches::variance_of;
use crate::estimate::{critical_value_of, mean_of};

/// The ratio of two series, and whether the difference is more than noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The geometric mean of the pairs' ratios; where some numbers are zero, the quotient of the
    /// arithmetic means.
    pub mean: f64,
    /// The lower end of the interval; `None` when it can't be computed. All intervals of a family
    /// of comparisons hold their truths with 95 % confidence.
    pub low: Option<f64>,
    /// The upper end of the interval; `None` when it can't be computed.
    pub high: Option<f64>,
    /// True if the interval excludes 1: the difference is more than noise. False without an
    /// interval.
    pub significant: bool,
}

impl Ratio {
    /// True if the difference is significant and larger than the noise of the machine, a distance
    /// from 1 in logarithms ([`noise_of`]).
    pub fn beyond(&self, noise: f64) -> bool {
        self.significant && self.mean.ln().abs() > noise
    }

    /// Half the width of the interval in logarithms: 0.02 is ± 2 %. `None` without an interval, or
    /// with one that ends at 0.
    pub fn half_width(&self) -> Option<f64> {
        let (low, high) = self.low.zip(self.high)?;
        Some((high.ln() - low.ln()) / 2.0).filter(|half| half.is_finite())
    }

    /// From the mean of logarithms of ratios, and half the width of its interval.
    fn of_logs(mean: f64, half: Option<f64>) -> Option<Self> {
        let value = Some(mean.exp()).filter(|value| value.is_finite())?;
        // With wild pairs the upper end may leave the range of floating point: then there is none.
        let ends = half.map(|half| ((mean - half).exp(), (mean + half).exp()));
        let ends = ends.filter(|(_, high)| high.is_finite());
        let significant = ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0);
        let (low, high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
        Some(Ratio { mean: value, low, high, significant })
    }

    /// A ratio of 0 in `n` pairs: certain, if it was seen more than once.
    fn zero(n: usize) -> Self {
        let end = (n > 1).then_some(0.0);
        Ratio { mean: 0.0, low: end, high: end, significant: n > 1 }
    }

    /// A ratio without an interval.
    fn bare(mean: f64) -> Option<Self> {
        mean.is_finite().then_some(Ratio { mean, low: None, high: None, significant: false })
    }
}

/// Compares measurements made in the same round: (of interest, of reference).
///
/// The machine drifts between rounds and drags both sides along, so only the differences *within* a
/// round count: the result is the Student t interval of the logarithms of the ratios, transformed
/// back. Its mean is geometric, so that swapping the sides gives the reciprocal. Assumes that the
/// logarithms scatter roughly normally, and that rounds don't depend on one another.
///
/// Many comparisons are many chances of a false alarm: of twenty equal things one would be called
/// different at 5 %. So the intervals of a `family` of that many comparisons are widened until all
/// of them together hold their truths with 95 % confidence, whatever they have in common. Source:
/// Dunn, "Multiple comparisons among means", Journal of the American Statistical Association 56
/// (1961) (Bonferroni's inequality).
///
/// | pairs | result |
/// |---|---|
/// | none; a number that is negative or not finite; every reference 0 | `None` |
/// | one | no interval, not significant |
/// | every first number 0, every reference positive | 0 with the interval 0 to 0, significant from two pairs on |
/// | some zeros among them | quotient of the sums, no interval, not significant: logarithms don't exist |
pub fn paired_ratio(pairs: &[(f64, f64)], family: usize) -> Option<Ratio> {
    ratio_of_pairs(pairs, |n| critical_value_of((n - 1) as f64, family))
}

/// Compares measurements of rounds that are looked at one after another, and end as soon as the
/// interval is narrow enough ([`is_resolved`]), or for another reason.
///
/// Stopping where an interval is narrow prefers rounds that scatter little by chance. So it is
/// 1 + 2 ÷ n times as wide as [`paired_ratio`]'s from the first look on, which is after six rounds.
/// Then it holds the ratio with 95 % confidence whatever the resolution and the scatter, and
/// whatever else ends the rounds before, such as a time limit; simulated, with normal logarithms, in
/// 95.0 % or more of all cases, and in as many of a family of up to 50. That rests on the end
/// depending on the scatter of the rounds, never on where their ratio lies: who watches the ratio
/// and stops by hand when it pleases has no such confidence. Everything else is as in
/// [`paired_ratio`].
///
/// Sources of the problem: Chow and Robbins, "On the asymptotic theory of fixed-width sequential
/// confidence intervals for the mean", Annals of Mathematical Statistics 36 (1965); Simons, "On the
/// cost of not knowing the variance", Annals of Mathematical Statistics 39 (1968).
pub fn resolving_ratio(pairs: &[(f64, f64)], family: usize) -> Option<Ratio> {
    ratio_of_pairs(pairs, |n| resolving_critical_value(n, family))
}

/// The quantile that [`resolving_ratio`] takes after `n` rounds.
fn resolving_critical_value(n: usize, family: usize) -> Option<f64> {
    /// Calibrated by simulation: 1.5 leaves 94.9 % in the worst case, and less in families.
    const EXCESS: f64 = 2.0;
    // Before the first look nothing can have been chosen.
    let factor = if n < FEWEST_ROUNDS { 1.0 } else { 1.0 + EXCESS / n as f64 };
    Some(factor * critical_value_of((n - 1) as f64, family)?)
}

/// Compares measurements of rounds that went on after the `planned` ones because those didn't tell
/// which of two costs less, until the interval excludes 1, or lies close around it.
///
/// Who stops where an interval excludes 1 finds differences where there are none: looking after each
/// of 17 further rounds, twice as often as the confidence says or more. So beyond the planned rounds
/// the interval is 1.5 times as wide as [`paired_ratio`]'s. Taken together, the look after the planned
/// rounds and those after each further one then call equal things different, or different ones alike, in
/// less than 5 % of all cases; simulated, with normal logarithms, for a family of two or more.
pub fn settling_ratio(pairs: &[(f64, f64)], planned: usize, family: usize) -> Option<Ratio> {
    /// Calibrated by simulation: 1.35 leaves 5.7 % after 3 planned rounds and 17 further ones.
    const WIDER: f64 = 1.5;
    let factor = if pairs.len() > planned { WIDER } else { 1.0 };
    ratio_of_pairs(pairs, |n| Some(factor * critical_value_of((n - 1) as f64, family)?))
}

/// The rounds before the first look: with fewer, scatter is hardly known.
const FEWEST_ROUNDS: usize = 6;

/// `critical` is the number of standard errors to either side after so many rounds.
fn ratio_of_pairs(pairs: &[(f64, f64)], critical: impl Fn(usize) -> Option<f64>) -> Option<Ratio> {
    let n = pairs.len();
    if n == 0 || pairs.iter().any(|(of, to)| !is_usable(*of) || !is_usable(*to)) {
        return None;
    }
    if pairs.iter().all(|(of, to)| *of == 0.0 && *to > 0.0) {
        return Some(Ratio::zero(n));
    }
    let Some(logs) = logs_of(pairs) else {
        let sums = pairs.iter().fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
        return Ratio::bare(sums.0 / sums.1);
    };
    let mean = mean_of(&logs)?;
    let error = (variance_of(&logs, mean) / n as f64).sqrt();
    Ratio::of_logs(mean, (n > 1).then(|| critical(n)).flatten().map(|critical| critical * error))
}

/// Compares measurements that were not made in the same rounds, such as two result files.
///
/// Method: Welch's t interval of the difference of the mean logarithms, with Satterthwaite's
/// degrees of freedom, transformed back. The two sides may scatter differently and be of different
/// number. Assumes that all measurements are independent and their logarithms scatter roughly
/// normally. What differs between the two occasions (another hour, another load of the machine) is
/// part of the ratio, and no interval knows it.
///
/// The `family` and zeros are treated as in [`paired_ratio`]; fewer than two measurements on a side leave no
/// interval. Source: Welch, "The generalization of Student's problem when several different
/// population variances are involved", Biometrika 34 (1947).
pub fn independent_ratio(of: &[f64], to: &[f64], family: usize) -> Option<Ratio> {
    let n = of.len().min(to.len());
    if n == 0 || of.iter().chain(to).any(|value| !is_usable(*value)) {
        return None;
    }
    if of.iter().all(|value| *value == 0.0) && to.iter().all(|value| *value > 0.0) {
        return Some(Ratio::zero(n));
    }
    if of.iter().chain(to).any(|value| *value == 0.0) {
        return Ratio::bare(mean_of(of)? / mean_of(to)?);
    }
    let [of, to] = [of, to].map(|side| side.iter().map(|value| value.ln()).collect::<Vec<_>>());
    let mean = mean_of(&of)? - mean_of(&to)?;
    let half = (n > 1).then(|| welch(&of, &to)).flatten();
    let half = half.and_then(|(error, degrees)| Some(critical_value_of(degrees, family)? * error));
    Ratio::of_logs(mean, half)
}

/// The standard error of a difference of means, and Satterthwaite's degrees of freedom.
///
/// With two measurements on a side these would be too many: then that side's single one is taken.
fn welch(left: &[f64], right: &[f64]) -> Option<(f64, f64)> {
    let part = |side: &[f64]| Some(variance_of(side, mean_of(side)?) / side.len() as f64);
    let (a, b) = (part(left)?, part(right)?);
    let least = (left.len().min(right.len()) - 1) as f64;
    let degrees = (a + b).powi(2) / (a * a / (left.len() - 1) as f64 + b * b / (right.len() - 1) as f64);
    // Without any spread on either side the quotient is 0 ÷ 0.
    Some(((a + b).sqrt(), if degrees.is_finite() && least > 1.0 { degrees } else { least }))
}

/// The noise of a machine, from the ratio of a cell to itself (an A/A pair): how far from 1, in
/// logarithms, the ratio of equal things may lie.
///
/// It is the larger distance of the interval's ends from 1, so it counts what such a pair showed
/// and what it couldn't exclude. A difference is called one only if it is larger
/// ([`Ratio::beyond`]). `None` without an interval.
pub fn noise_of(aa: &Ratio) -> Option<f64> {
    let (low, high) = aa.low.zip(aa.high)?;
    Some(low.ln().abs().max(high.ln().abs())).filter(|noise| noise.is_finite())
}

/// The number of rounds in all that would probably be [`is_resolved`], six at least: that would make
/// the half width of [`resolving_ratio`]'s interval at most ln(1 + resolution), if the rounds to
/// come scatter as those so far. A resolution of 0.02 is ± 2 %.
///
/// The standard deviation of few rounds is itself uncertain: with five it may be off by a factor of
/// two, and the rounds go with its square. `None` with fewer than two pairs, with zeros among them,
/// or if no number of rounds below 10^9 suffices.
pub fn rounds_needed(pairs: &[(f64, f64)], resolution: f64, family: usize) -> Option<usize> {
    if pairs.len() < 2 || pairs.iter().any(|(of, to)| !is_usable(*of) || !is_usable(*to)) {
        return None;
    }
    let logs = logs_of(pairs)?;
    let spread = variance_of(&logs, mean_of(&logs)?).sqrt();
    let wanted = (1.0 + resolution).ln();
    if !spread.is_finite() || !wanted.is_finite() || wanted <= 0.0 {
        return None;
    }
    let enough = |n: usize| {
        resolving_critical_value(n, family).is_some_and(|t| t * spread / (n as f64).sqrt() <= wanted)
    };
    let (mut low, mut high) = (FEWEST_ROUNDS - 1, FEWEST_ROUNDS);
    while !enough(high) {
        (low, high) = (high, high * 2);
        if high > MOST_ROUNDS {
            return None;
        }
    }
    // `low` isn't enough, `high` is.
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// True if a ratio is known well enough to stop measuring rounds: after six rounds at least, half
/// the width of [`resolving_ratio`]'s interval is at most ln(1 + resolution).
///
/// May be asked after every round. False with fewer pairs, with zeros among them, and for a
/// resolution that isn't positive.
pub fn is_resolved(pairs: &[(f64, f64)], resolution: f64, family: usize) -> bool {
    let wanted = (1.0 + resolution).ln();
    let half = resolving_ratio(pairs, family).and_then(|ratio| ratio.half_width());
    pairs.len() >= FEWEST_ROUNDS && wanted > 0.0 && half.is_some_and(|half| half <= wanted)
}

/// The most rounds that are ever asked for.
const MOST_ROUNDS: usize = 1 << 30;

fn is_usable(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// The logarithms of the pairs' ratios; `None` if a number is zero.
fn logs_of(pairs: &[(f64, f64)]) -> Option<Vec<f64>> {
    pairs.iter().map(|(of, to)| (*of > 0.0 && *to > 0.0).then(|| of.ln() - to.ln())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn drift_of_the_machine_cancels_out() {
        // Both sides fall by a factor of 4 in five rounds; the ratio stays near a half.
        let pairs = [(200.0, 401.0), (160.0, 318.0), (110.0, 221.0), (70.0, 139.0), (50.0, 101.0)];
        let ratio = paired_ratio(&pairs, 1).unwrap();
        assert!(ratio.significant);
        assert!(ratio.low.unwrap() > 0.49 && ratio.high.unwrap() < 0.51, "{ratio:?}");
    }

    #[test]
    fn a_one_percent_advantage_in_noise_is_none() {
        // The defect of E1 in published-experiments: one percent was called an advantage.
        let ratio = paired_ratio(&[(216.2, 214.6), (210.1, 215.3), (218.0, 213.9)], 1).unwrap();
        assert!(!ratio.significant, "{ratio:?}");
    }

    #[test]
    fn one_pair_proves_nothing() {
        let ratio = paired_ratio(&[(100.0, 400.0)], 1).unwrap();
        assert_eq!((ratio.low, ratio.high, ratio.significant), (None, None, false));
        assert!((ratio.mean - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_level_at_which_nothing_ever_commits_is_significantly_worse() {
        let ratio = paired_ratio(&[(0.0, 400.0), (0.0, 410.0)], 1).unwrap();
        assert_eq!(ratio, Ratio::zero(2));
        assert_eq!((ratio.low, ratio.high, ratio.significant), (Some(0.0), Some(0.0), true));
        assert!(!paired_ratio(&[(0.0, 400.0)], 1).unwrap().significant);
    }

    #[test]
    fn a_zero_among_others_costs_the_interval() {
        let ratio = paired_ratio(&[(0.0, 400.0), (200.0, 400.0)], 1).unwrap();
        assert_eq!(Some(ratio), Ratio::bare(0.25));
    }

    #[test]
    fn what_has_no_ratio_has_none() {
        for pairs in [
            &[][..],
            &[(1.0, 0.0)],
            &[(0.0, 0.0)],
            &[(-1.0, 1.0)],
            &[(1.0, -1.0)],
            &[(f64::NAN, 1.0)],
            &[(1.0, f64::INFINITY)],
        ] {
            assert_eq!(paired_ratio(pairs, 1), None, "{pairs:?}");
        }
    }

    const NOISY: [(f64, f64); 3] = [(105.0, 100.0), (95.0, 100.0), (101.0, 100.0)];

    #[test]
    fn a_difference_below_the_noise_is_none() {
        let noise = noise_of(&paired_ratio(&NOISY, 1).unwrap()).unwrap();
        let small = paired_ratio(&[(103.0, 100.0), (103.1, 100.0), (102.9, 100.0)], 1).unwrap();
        assert!(small.significant && !small.beyond(noise) && small.beyond(0.01), "{noise} {small:?}");
        assert!(paired_ratio(&[(50.0, 100.0), (51.0, 100.0)], 1).unwrap().beyond(noise));
        assert!(Ratio::zero(2).beyond(noise) && !Ratio::zero(1).beyond(noise));
        assert!(!paired_ratio(&NOISY, 1).unwrap().beyond(0.0));
    }

    #[test]
    fn noise_is_the_far_end_of_an_interval() {
        let ratio = Ratio { low: Some(0.9), high: Some(1.02), ..paired_ratio(&NOISY, 1).unwrap() };
        assert!((noise_of(&ratio).unwrap() - (1.0_f64 / 0.9).ln()).abs() < 1e-12);
        assert!((ratio.half_width().unwrap() - (1.02_f64 / 0.9).ln() / 2.0).abs() < 1e-12);
        for without in [Ratio::zero(2), Ratio::zero(1), Ratio::bare(0.5).unwrap()] {
            assert_eq!((noise_of(&without), without.half_width()), (None, None));
        }
    }

    #[test]
    fn the_rounds_needed_are_the_fewest() {
        // s = 0.05 exactly: logarithms ± 0.05/√2 about 0.
        let half = 0.05 / 2.0_f64.sqrt();
        let pairs = [(half.exp(), 1.0), ((-half).exp(), 1.0)];
        for (resolution, expected) in [(0.05, 9), (0.02, 31), (0.5, 6), (1.0, 6)] {
            assert_eq!(rounds_needed(&pairs, resolution, 1), Some(expected), "{resolution}");
        }
        assert_eq!(rounds_needed(&[(2.0, 1.0); 3], 0.01, 1), Some(6));
        for resolution in [0.0, -0.5, -2.0, f64::NAN, f64::INFINITY, 1e-12] {
            assert_eq!(rounds_needed(&pairs, resolution, 1), None, "{resolution}");
        }
        assert_eq!(rounds_needed(&pairs[..1], 0.02, 1), None);
        assert_eq!(rounds_needed(&[(0.0, 1.0), (1.0, 1.0)], 0.02, 1), None);
    }

    /// `n` rounds that scatter by some 2 %.
    fn rounds(n: u32) -> Vec<(f64, f64)> {
        (0..n).map(|round| (100.0 + f64::from(round * 37 % 11) / 2.0, 100.0)).collect()
    }

    #[test]
    fn resolved_is_narrow_after_six_rounds_or_more() {
        let half = |n: u32| resolving_ratio(&rounds(n), 1).unwrap().half_width().unwrap();
        for n in [6, 7, 20] {
            let just = half(n).exp() - 1.0;
            assert!(is_resolved(&rounds(n), just * 1.001, 1) && !is_resolved(&rounds(n), just * 0.999, 1));
            assert!(!is_resolved(&rounds(n), just * 1.001, 2), "a family is less known");
        }
        assert!(!is_resolved(&rounds(5), 1e9, 1) && !is_resolved(&rounds(9), 0.0, 1));
        assert!(!is_resolved(&[(0.0, 100.0); 9], 0.1, 1));
    }

    #[test]
    fn the_rounds_needed_are_those_that_resolve() {
        // As if every round to come scattered as the first two.
        let half = 0.03 / 2.0_f64.sqrt();
        let first = [(half.exp(), 1.0), ((-half).exp(), 1.0)];
        for (resolution, family) in [(0.02, 1), (0.02, 5), (0.04, 2), (0.3, 3)] {
            let needed = rounds_needed(&first, resolution, family).unwrap();
            // Rescaled to the same standard deviation as two rounds: that of n values ± half is less.
            let of = |n: usize| {
                let n = n & !1;
                let wide = half * (2.0 * (n - 1) as f64 / n as f64).sqrt();
                let pairs: Vec<_> = (0..n).map(|at| if at % 2 == 0 { wide } else { -wide }).collect();
                pairs.into_iter().map(|log| (log.exp(), 1.0)).collect::<Vec<_>>()
            };
            assert!(is_resolved(&of(needed + 1), resolution, family), "{resolution} {needed}");
            assert!(
                needed <= 7 || !is_resolved(&of(needed - 1), resolution, family),
                "{resolution} {needed}"
            );
        }
    }

    #[test]
    fn looking_after_every_round_costs_width() {
        for n in 2..20_u32 {
            let (once, looking) =
                (paired_ratio(&rounds(n), 3).unwrap(), resolving_ratio(&rounds(n), 3).unwrap());
            let factor = looking.half_width().unwrap() / once.half_width().unwrap();
            let expected = if n < 6 { 1.0 } else { 1.0 + 2.0 / f64::from(n) };
            assert!(
                (factor - expected).abs() < 1e-9 && (once.mean - looking.mean).abs() < 1e-12,
                "{n}: {factor}"
            );
        }
    }

    #[test]
    fn independent_sides_are_compared_by_welch() {
        // Logarithms 1 ± 0.1 and 0.5 ± 0.1: four degrees of freedom, a standard error of 0.1·√(2 ÷
        // 3).
        let of = [0.9_f64, 1.0, 1.1].map(f64::exp);
        let to = [0.4_f64, 0.5, 0.6].map(f64::exp);
        let ratio = independent_ratio(&of, &to, 1).unwrap();
        let half = 2.776_445 * 0.1 * (2.0_f64 / 3.0).sqrt();
        assert!(ratio.significant, "{ratio:?}");
        assert!((ratio.low.unwrap().ln() - (0.5 - half)).abs() < 1e-6, "{ratio:?}");
        assert!((ratio.high.unwrap().ln() - (0.5 + half)).abs() < 1e-6, "{ratio:?}");
        let swapped = independent_ratio(&to, &of, 1).unwrap();
        assert!((swapped.low.unwrap() * ratio.high.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn independent_sides_have_the_same_corner_cases() {
        assert_eq!(independent_ratio(&[], &[1.0], 1), None);
        assert_eq!(independent_ratio(&[1.0], &[0.0], 1), None);
        assert_eq!(independent_ratio(&[f64::NAN], &[1.0], 1), None);
        assert_eq!(independent_ratio(&[0.0, 0.0], &[1.0, 1.0, 2.0], 1), Some(Ratio::zero(2)));
        assert_eq!(independent_ratio(&[0.0, 4.0], &[4.0], 1), Ratio::bare(0.5));
        assert_eq!(independent_ratio(&[4.0], &[2.0, 2.0], 1).unwrap().low, None);
        let constant = independent_ratio(&[4.0, 4.0], &[2.0, 2.0], 1).unwrap();
        assert!(constant.significant && constant.low == constant.high);
    }

    #[test]
    fn a_family_of_comparisons_widens_the_interval() {
        let pairs = [(90.0, 100.0), (93.0, 100.0), (91.0, 100.0), (97.0, 100.0), (95.0, 100.0)];
        let half = |family| paired_ratio(&pairs, family).unwrap().half_width().unwrap();
        // The quotient of the quantiles 0.9875 and 0.975 of t with four degrees of freedom.
        assert!((half(2) / half(1) - 3.495_406 / 2.776_445).abs() < 1e-6);
        assert!(
            paired_ratio(&pairs, 1).unwrap().significant && !paired_ratio(&pairs, 30).unwrap().significant
        );
        assert!(rounds_needed(&pairs, 0.02, 10) > rounds_needed(&pairs, 0.02, 1));
    }

    proptest! {
        #[test]
        fn swapping_the_sides_gives_the_reciprocal(pairs in prop::collection::vec((1.0_f64..1e6, 1.0_f64..1e6), 2..8)) {
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|(of, to)| (*to, *of)).collect();
            let (ratio, reciprocal) = (paired_ratio(&pairs, 1).unwrap(), paired_ratio(&swapped, 1).unwrap());
            prop_assert!((ratio.mean * reciprocal.mean - 1.0).abs() < 1e-9);
            prop_assert_eq!(ratio.significant, reciprocal.significant);
            if let (Some(low), Some(high)) = (ratio.low, reciprocal.high) {
                prop_assert!((low * high - 1.0).abs() < 1e-6);
            }
        }

        #[test]
        fn no_numbers_whatever_give_nan(pairs in prop::collection::vec((any::<f64>(), any::<f64>()), 0..6)) {
            if let Some(ratio) = paired_ratio(&pairs, 1) {
                prop_assert!(ratio.mean.is_finite());
                prop_assert!(ratio.low.is_none_or(f64::is_finite) && ratio.high.is_none_or(f64::is_finite));
            }
        }
    }
}
