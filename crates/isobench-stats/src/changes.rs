//! Change points: where a series of results goes over to another level.
//!
//! The method is E-divisive with means: Matteson and James, "A Nonparametric Approach for Multiple
//! Change Point Analysis of Multivariate Data", Journal of the American Statistical Association 109
//! (2014), with the exponent 1, as benchmarks are watched with it: Daly et al., "The Use of Change
//! Point Detection to Identify Software Performance Regressions in a Continuous Integration System",
//! ICPE (2020). A series is cut where the two sides are farthest apart; whether that is more than
//! chance is judged by permutations; then each side is cut in the same way.
//!
//! Not here: which results make one series, what the values are.

use fastrand::Rng;

/// The fewest results on either side of a change: one alone has no spread.
const SHORTEST: usize = 2;

/// Permutations of a test, the series as it is included. More are made where the significance asks
/// for it, so that a step above chance has this many expected ones beyond it.
const PERMUTATIONS: f64 = 1000.0;
const EXPECTED_BEYOND: f64 = 20.0;

/// The seed of the permutations: the same series has the same changes.
const SEED: u64 = 2014;

/// A place at which a series changes its level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The index of the first value after the change.
    pub at: usize,
    /// The share of permutations, the series as it is among them, that are cut at least as clearly.
    pub p: f64,
}

/// Finds the changes of a series, in its order. In a series without any, whose values could as well
/// have come in any other order, one is found with at most the probability `significance`. With
/// several changes that is the probability that one more is found than there are.
///
/// Values that follow each other more closely than others (a slow drift) are changes, too. Nothing is
/// found in fewer than [`fewest`] values, or if one isn't finite.
pub fn change_points(values: &[f64], significance: f64) -> Vec<ChangePoint> {
    if values.len() < fewest(significance) || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut found: Vec<ChangePoint> = Vec::new();
    let mut random = Rng::with_seed(SEED);
    loop {
        let ends: Vec<usize> = found.iter().map(|change| change.at).chain([values.len()]).collect();
        let Some((at, divergence)) = clearest(values, &ends) else { return found };
        let Some(p) = tested(values, &ends, divergence, significance, &mut random) else { return found };
        found.push(ChangePoint { at, p });
        found.sort_by_key(|change| change.at);
    }
}

/// The fewest values of a series in which a change can be found at this significance: with fewer, too
/// many of their orders are cut as clearly as the clearest step in the middle, namely two of all ways
/// to choose one half.
pub fn fewest(significance: f64) -> usize {
    let mut choices = 6.0;
    let mut number = 2 * SHORTEST;
    // Beyond this many values the share is less than any significance that makes sense.
    while 2.0 / choices > significance && number < 64 {
        number += 1;
        let half = (number / 2) as f64;
        // C(2h, h) = C(2h-1, h-1) · 2, and C(2h+1, h) = C(2h, h) · (2h+1)/(h+1).
        choices *= if number.is_multiple_of(2) { 2.0 } else { number as f64 / (half + 1.0) };
    }
    number
}

/// The clearest cut of all parts, which end at `ends`: where it is, and how far its sides are apart.
fn clearest(values: &[f64], ends: &[usize]) -> Option<(usize, f64)> {
    let mut start = 0;
    let mut best: Option<(usize, f64)> = None;
    for end in ends {
        let cut = cut(&values[start..*end]).map(|(at, divergence)| (start + at, divergence));
        if let Some((_, divergence)) = cut
            && best.is_none_or(|(_, most)| divergence > most)
        {
            best = cut;
        }
        start = *end;
    }
    best
}

/// The place at which the two sides of a part are farthest apart, and their divergence there: the
/// mean distance of values of different sides less the mean distances within both, weighted with the
/// sides' sizes (equations 5 and 7 of Matteson and James).
fn cut(part: &[f64]) -> Option<(usize, f64)> {
    let count = part.len();
    let all: f64 = part.iter().enumerate().map(|(index, value)| distances(&part[..index], *value)).sum();
    let (mut left, mut right, mut across) = (0.0, all, 0.0);
    let mut best: Option<(usize, f64)> = None;
    for (index, value) in part.iter().enumerate() {
        let (before, after) = (distances(&part[..index], *value), distances(&part[index + 1..], *value));
        left += before;
        right -= after;
        across += after - before;
        let (sizes, at) = ((index + 1, count - index - 1), index + 1);
        if sizes.0 < SHORTEST || sizes.1 < SHORTEST {
            continue;
        }
        let (m, n) = (sizes.0 as f64, sizes.1 as f64);
        let apart = 2.0 * across / (m * n) - 2.0 * left / (m * (m - 1.0)) - 2.0 * right / (n * (n - 1.0));
        let divergence = apart * m * n / (m + n);
        if best.is_none_or(|(_, most)| divergence > most) {
            best = Some((at, divergence));
        }
    }
    best
}

fn distances(values: &[f64], from: f64) -> f64 {
    values.iter().map(|value| (value - from).abs()).sum()
}

/// The share of orders within the parts whose clearest cut is at least as clear; `None` if that is
/// more than the significance.
fn tested(
    values: &[f64],
    ends: &[usize],
    divergence: f64,
    significance: f64,
    random: &mut Rng,
) -> Option<f64> {
    let orders = PERMUTATIONS.max((EXPECTED_BEYOND / significance).ceil());
    // Sums in another order differ in their last digits.
    let as_clear = divergence - divergence.abs() * 1e-9;
    let mut shuffled = values.to_vec();
    let (mut made, mut beyond) = (1.0, 1.0);
    while made < orders {
        let mut start = 0;
        for end in ends {
            random.shuffle(&mut shuffled[start..*end]);
            start = *end;
        }
        made += 1.0;
        if clearest(&shuffled, ends).is_some_and(|(_, other)| other >= as_clear) {
            beyond += 1.0;
            if beyond > significance * orders {
                return None;
            }
        }
    }
    Some(beyond / orders)
}

#[cfg(test)]
mod tests {
    // Not the trait of proptest.
    use fastrand::Rng;
    use proptest::prelude::*;

    use super::*;

    const FIVE_PERCENT: f64 = 0.05;

    fn places(values: &[f64]) -> Vec<usize> {
        change_points(values, FIVE_PERCENT).iter().map(|change| change.at).collect()
    }

    /// Values about 100 that scatter by some percent.
    fn noise(count: usize, random: &mut Rng) -> Vec<f64> {
        (0..count).map(|_| 100.0 + (0..12).map(|_| random.f64() - 0.5).sum::<f64>()).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let step = [100.0, 101.0, 99.5, 100.4, 100.9, 80.2, 79.5, 80.9, 80.0, 79.8];
        let found = change_points(&step, FIVE_PERCENT);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, 5);
        // Two of the 252 ways to choose the five on the left, and chance.
        assert!((found[0].p - 2.0 / 252.0).abs() < 0.006, "{found:?}");
        assert_eq!(places(&step), places(&step), "the same every time");
    }

    #[test]
    fn several_steps_are_found_and_an_outlier_is_none() {
        let mut random = Rng::with_seed(1);
        let mut values = noise(60, &mut random);
        values[20..40].iter_mut().for_each(|value| *value += 15.0);
        values[40..].iter_mut().for_each(|value| *value -= 15.0);
        assert_eq!(places(&values), [20, 40]);
        let mut values = noise(20, &mut random);
        values[11] = 300.0;
        assert_eq!(places(&values), [] as [usize; 0]);
    }

    #[test]
    fn the_divergence_is_that_of_the_definition() {
        let values = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6];
        let direct = |at: usize| {
            let (left, right) = values.split_at(at);
            let mean = |one: &[f64], other: &[f64]| {
                let all = one.iter().flat_map(|a| other.iter().map(move |b| (a - b).abs())).sum::<f64>();
                all / if one == other { one.len() * (one.len() - 1) } else { one.len() * other.len() } as f64
            };
            let weight = (left.len() * right.len()) as f64 / values.len() as f64;
            weight * (2.0 * mean(left, right) - mean(left, left) - mean(right, right))
        };
        let (at, most) = cut(&values).expect("six values can be cut");
        let all: Vec<f64> = (2..=4).map(direct).collect();
        assert!((direct(at) - most).abs() < 1e-9 && all.iter().all(|one| *one <= most + 1e-9), "{all:?}");
    }

    #[test]
    fn too_few_values_have_no_change() {
        for (significance, number) in [(0.05, 8), (0.05 / 3.0, 9), (0.01, 10), (0.5, 4), (0.0, 64)] {
            assert_eq!(fewest(significance), number, "{significance}");
        }
        let step = [1.0, 1.1, 1.2, 1.3, 9.0, 9.1, 9.2, 9.3];
        assert_eq!(places(&step[..7]), [] as [usize; 0]);
        assert_eq!(places(&step), [4]);
        assert_eq!(places(&[1.0, f64::NAN].repeat(9)), [] as [usize; 0]);
        assert_eq!(places(&[7.0; 30]), [] as [usize; 0], "equal values have none");
    }

    #[test]
    fn series_without_a_change_seldom_have_one() {
        let mut random = Rng::with_seed(7);
        let series = 400;
        let alarms = (0..series).filter(|_| !places(&noise(16, &mut random)).is_empty()).count();
        // 20 are expected, with a standard deviation of 4.4.
        assert!((5..=36).contains(&alarms), "{alarms} of {series}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_clear_step_is_found_at_its_place(
            seed in any::<u64>(), before in 5_usize..20, after in 5_usize..20, down in any::<bool>()
        ) {
            let mut values = noise(before + after, &mut Rng::with_seed(seed));
            let step = if down { -40.0 } else { 40.0 };
            values[before..].iter_mut().for_each(|value| *value += step);
            let found = places(&values);
            prop_assert!(found.contains(&before), "{before}: {found:?}");
        }

        #[test]
        fn units_change_nothing_and_no_values_panic(
            values in prop::collection::vec(prop_oneof![-1e6..1e6_f64, any::<f64>()], 0..24)
        ) {
            let found = places(&values);
            prop_assert!(found.is_sorted() && found.iter().all(|at| (1..values.len()).contains(at)));
            // Exact in binary.
            let scaled: Vec<f64> = values.iter().map(|value| value * 0.25).collect();
            let plain = values.iter().all(|value| value.abs() < 1e6);
            prop_assert!(!plain || places(&scaled) == found);
        }
    }
}
