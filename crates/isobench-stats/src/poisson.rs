//! A count of rare events with its interval.
//!
//! Not here: what is counted, and whether the events are independent.

use statrs::distribution::{ContinuousCDF, Gamma, Normal};

use crate::CONFIDENCE;

/// From here on the normal approximation by cube roots is as good as the exact quantile, to six
/// digits, and needs no search.
const LARGE: u64 = 10_000;

/// The 95 % interval of a count that has Poisson's distribution: the lower and the upper end of the
/// expected count.
///
/// It is Garwood's exact interval, from the quantiles of the gamma distribution: for no event at
/// all it is 0 to 3.69. It assumes that events come independently; where they come in clusters, it
/// is too narrow. Source: Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28
/// (1936).
pub fn poisson_interval(count: u64) -> (f64, f64) {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let low = if count == 0 { 0.0 } else { quantile(count, tail) };
    (low, quantile(count.saturating_add(1), 1.0 - tail))
}

/// The quantile of the gamma distribution of this shape and scale 1.
fn quantile(shape: u64, probability: f64) -> f64 {
    let shape_as_number = shape as f64;
    let exact = Gamma::new(shape_as_number, 1.0).ok().filter(|_| shape < LARGE);
    exact.map_or_else(
        || {
            // Wilson and Hilferty (1931).
            let normal = Normal::standard().inverse_cdf(probability);
            let ninth = 1.0 / (9.0 * shape_as_number);
            shape_as_number * (1.0 - ninth + normal * ninth.sqrt()).powi(3)
        },
        |distribution| distribution.inverse_cdf(probability),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn intervals_are_those_of_the_printed_tables() {
        for (count, low, high) in [
            (0, 0.0, 3.688_88),
            (1, 0.025_318, 5.571_64),
            (2, 0.242_21, 7.224_69),
            (5, 1.623_49, 11.668_33),
            (10, 4.795_39, 18.390_36),
            (100, 81.363_99, 121.626_79),
        ] {
            let found = poisson_interval(count);
            assert!((found.0 - low).abs() < 1e-4 && (found.1 - high).abs() < 1e-4, "{count}: {found:?}");
        }
    }

    /// The probability of at most so many events where so many are expected.
    fn at_most(count: u64, expected: f64) -> f64 {
        let mut term = (-expected).exp();
        let mut sum = term;
        for number in 1..=count {
            term *= expected / number as f64;
            sum += term;
        }
        sum
    }

    #[test]
    fn each_end_leaves_a_fortieth_beyond() {
        for count in [1, 3, 17, 120, 400] {
            let (low, high) = poisson_interval(count);
            assert!((1.0 - at_most(count - 1, low) - 0.025).abs() < 1e-6, "{count}: {low}");
            assert!((at_most(count, high) - 0.025).abs() < 1e-6, "{count}: {high}");
        }
    }

    #[test]
    fn large_counts_go_on_where_small_ones_end() {
        let (below, above) = (poisson_interval(LARGE - 2), poisson_interval(LARGE));
        assert!((above.0 - below.0 - 2.0).abs() < 0.1, "{below:?} {above:?}");
        assert!((above.1 - below.1 - 2.0).abs() < 0.1, "{below:?} {above:?}");
    }

    proptest! {
        #[test]
        fn the_count_lies_within_and_more_events_move_both_ends(count in prop_oneof![0_u64..20_000, any::<u64>()]) {
            let (low, high) = poisson_interval(count);
            prop_assert!(low.is_finite() && high.is_finite() && low >= 0.0);
            prop_assert!(low <= count as f64 && count as f64 <= high, "{count}: {low} to {high}");
            if count < 20_000 {
                let next = poisson_interval(count + 1);
                prop_assert!(next.0 > low && next.1 > high, "{count}: {low} to {high}, then {next:?}");
            }
        }
    }
}
