//! A ratio of two series that were measured in pairs, with its interval.
//!
//! Not here: which cells are compared with which.

use crate::estimate::mean_interval;

/// How many times the first of a pair is the second, and whether that is more than noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The geometric mean of the pairs' ratios (the quotient of the sums, where some pairs have a zero).
    pub mean: f64,
    /// The lower end of the 95 % interval; `None` when the pairs don't tell.
    pub low: Option<f64>,
    /// The upper end of the 95 % interval; `None` when the pairs don't tell.
    pub high: Option<f64>,
    /// True if the interval excludes 1: the difference is more than noise. False without an interval.
    pub significant: bool,
    /// How many pairs there were.
    pub n: usize,
}

/// Compares measurements made in the same round: (of interest, of reference).
///
/// The machine drifts between rounds and drags both sides along, so only the differences *within* a round count:
/// the result is the 95 % Student t interval of the logarithms of the ratios, transformed back. Its mean is
/// geometric, so that swapping the sides gives the reciprocal.
///
/// | pairs | result |
/// |---|---|
/// | none; a number that is negative or not finite; every reference 0 | `None` |
/// | one | no interval, not significant |
/// | every first number 0, every reference positive | 0 with the interval 0 to 0, significant from two pairs on |
/// | some zeros among them | quotient of the sums, no interval, not significant: logarithms don't exist |
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let n = pairs.len();
    let usable = |value: f64| value.is_finite() && value >= 0.0;
    if n == 0 || pairs.iter().any(|(of, to)| !usable(*of) || !usable(*to)) {
        return None;
    }
    if pairs.iter().all(|(of, to)| *of == 0.0 && *to > 0.0) {
        let end = (n > 1).then_some(0.0);
        return Some(Ratio { mean: 0.0, low: end, high: end, significant: n > 1, n });
    }
    if pairs.iter().any(|(of, to)| *of == 0.0 || *to == 0.0) {
        let sums = pairs.iter().fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
        let mean = Some(sums.0 / sums.1).filter(|mean| mean.is_finite())?;
        return Some(Ratio { mean, low: None, high: None, significant: false, n });
    }
    let logs: Vec<f64> = pairs.iter().map(|(of, to)| of.ln() - to.ln()).collect();
    let estimate = mean_interval(&logs)?;
    let mean = Some(estimate.mean.exp()).filter(|mean| mean.is_finite())?;
    // With wild pairs the upper end may leave the range of floating point: then the pairs don't tell.
    let ends = estimate.low.zip(estimate.high).map(|(low, high)| (low.exp(), high.exp()));
    let ends = ends.filter(|(_, high)| high.is_finite());
    let significant = ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0);
    Some(Ratio { mean, low: ends.map(|ends| ends.0), high: ends.map(|ends| ends.1), significant, n })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn drift_of_the_machine_cancels_out() {
        // Both sides fall by a factor of 4 in five rounds; the ratio stays near a half.
        let pairs = [(200.0, 401.0), (160.0, 318.0), (110.0, 221.0), (70.0, 139.0), (50.0, 101.0)];
        let ratio = paired_ratio(&pairs).unwrap();
        assert!(ratio.significant);
        assert!(ratio.low.unwrap() > 0.49 && ratio.high.unwrap() < 0.51, "{ratio:?}");
    }

    #[test]
    fn a_one_percent_advantage_in_noise_is_none() {
        // The defect of E1 in published-experiments: one percent was called an advantage.
        let ratio = paired_ratio(&[(216.2, 214.6), (210.1, 215.3), (218.0, 213.9)]).unwrap();
        assert!(!ratio.significant, "{ratio:?}");
    }

    #[test]
    fn one_pair_proves_nothing() {
        let ratio = paired_ratio(&[(100.0, 400.0)]).unwrap();
        assert_eq!((ratio.low, ratio.high, ratio.significant, ratio.n), (None, None, false, 1));
        assert!((ratio.mean - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_level_at_which_nothing_ever_commits_is_significantly_worse() {
        let ratio = paired_ratio(&[(0.0, 400.0), (0.0, 410.0)]).unwrap();
        assert_eq!(ratio, Ratio { mean: 0.0, low: Some(0.0), high: Some(0.0), significant: true, n: 2 });
        assert!(!paired_ratio(&[(0.0, 400.0)]).unwrap().significant);
    }

    #[test]
    fn a_zero_among_others_costs_the_interval() {
        let ratio = paired_ratio(&[(0.0, 400.0), (200.0, 400.0)]).unwrap();
        assert_eq!(ratio, Ratio { mean: 0.25, low: None, high: None, significant: false, n: 2 });
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
            assert_eq!(paired_ratio(pairs), None, "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn swapping_the_sides_gives_the_reciprocal(pairs in prop::collection::vec((1.0_f64..1e6, 1.0_f64..1e6), 2..8)) {
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|(of, to)| (*to, *of)).collect();
            let (ratio, reciprocal) = (paired_ratio(&pairs).unwrap(), paired_ratio(&swapped).unwrap());
            prop_assert!((ratio.mean * reciprocal.mean - 1.0).abs() < 1e-9);
            prop_assert_eq!(ratio.significant, reciprocal.significant);
            if let (Some(low), Some(high)) = (ratio.low, reciprocal.high) {
                prop_assert!((low * high - 1.0).abs() < 1e-6);
            }
        }

        #[test]
        fn no_numbers_whatever_give_nan(pairs in prop::collection::vec((any::<f64>(), any::<f64>()), 0..6)) {
            if let Some(ratio) = paired_ratio(&pairs) {
                prop_assert!(ratio.mean.is_finite());
                prop_assert!(ratio.low.is_none_or(f64::is_finite) && ratio.high.is_none_or(f64::is_finite));
            }
        }
    }
}
