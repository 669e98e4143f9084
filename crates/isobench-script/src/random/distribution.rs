//! The non-uniform distributions of the manual's "Built-In Functions", and the intervals of
//! `--rate`.

use super::prng::Prng;
use crate::error::EvalError;

/// The smallest parameter of `random_gaussian`.
const MIN_GAUSSIAN: f64 = 2.0;
/// The range of the parameter of `random_zipfian`.
const ZIPFIAN: std::ops::RangeInclusive<f64> = 1.001..=1000.0;

/// Checks the bounds given to a random function.
///
/// # Errors
/// If the range is empty or has 2^63 or more values.
#[inline]
pub(crate) fn check_range(min: i64, max: i64) -> Result<(), EvalError> {
    if min > max {
        return Err(EvalError::EmptyRange);
    }
    match max.checked_sub(min) {
        Some(width) if width < i64::MAX => Ok(()),
        _ => Err(EvalError::RangeTooLarge),
    }
}

/// The number of values from `min` to `max`, a range that the caller has checked.
fn count(min: i64, max: i64) -> f64 {
    max.wrapping_sub(min).wrapping_add(1) as f64
}

/// The value at `fraction`, from 0 to below 1, of the way from `min` to `max`.
#[expect(clippy::cast_possible_truncation, reason = "cutting off the fraction is the definition")]
fn scaled(min: i64, max: i64, fraction: f64) -> i64 {
    min.wrapping_add((count(min, max) * fraction) as i64)
}

impl Prng {
    /// A uniform double, above 0 and at most 1, for logarithms.
    fn positive(&mut self) -> f64 {
        1.0 - self.double()
    }

    /// An exponentially distributed integer from `min` to `max`.
    ///
    /// Source: pgbench manual, `random_exponential`; the inverse of the truncated distribution
    /// function.
    ///
    /// # Errors
    /// If the range is empty or too large, or `parameter` isn't above 0.
    pub fn exponential(&mut self, min: i64, max: i64, parameter: f64) -> Result<i64, EvalError> {
        check_range(min, max)?;
        if parameter <= 0.0 {
            return Err(EvalError::ExponentialParameter { value: parameter });
        }
        let cut = (-parameter).exp();
        let uniform = self.positive();
        Ok(scaled(min, max, -(cut + (1.0 - cut) * uniform).ln() / parameter))
    }

    /// A normally distributed integer from `min` to `max`, centred, `parameter` standard deviations
    /// to either bound.
    ///
    /// Source: pgbench manual, `random_gaussian`; Box-Muller, drawn again outside of the bounds.
    ///
    /// # Errors
    /// If the range is empty or too large, or `parameter` is below 2.
    pub fn gaussian(&mut self, min: i64, max: i64, parameter: f64) -> Result<i64, EvalError> {
        check_range(min, max)?;
        if parameter < MIN_GAUSSIAN {
            return Err(EvalError::GaussianParameter { value: parameter });
        }
        loop {
            let radius = (-2.0 * self.positive().ln()).sqrt();
            let angle = 2.0 * std::f64::consts::PI * self.positive();
            let deviation = radius * angle.sin();
            if deviation >= -parameter && deviation < parameter {
                return Ok(scaled(min, max, (deviation + parameter) / (parameter * 2.0)));
            }
            if parameter.is_nan() {
                return Err(EvalError::GaussianParameter { value: parameter });
            }
        }
    }

    /// A Zipfian integer from `min` to `max`, of which `min` is the most frequent; `parameter` is
    /// the skew.
    ///
    /// Source: pgbench manual, `random_zipfian`; Devroye, *Non-Uniform Random Variate Generation*,
    /// p. 550-551.
    ///
    /// # Errors
    /// If the range is empty or too large, or `parameter` is outside 1.001 to 1000.
    pub fn zipfian(&mut self, min: i64, max: i64, parameter: f64) -> Result<i64, EvalError> {
        check_range(min, max)?;
        if !ZIPFIAN.contains(&parameter) {
            return Err(EvalError::ZipfianParameter { value: parameter });
        }
        if min == max {
            return Ok(min);
        }
        let most = count(min, max);
        let slope = parameter - 1.0;
        let bound = 2.0_f64.powf(slope);
        loop {
            let (u, v) = (self.double(), self.double());
            let rank = u.powf(-1.0 / slope).floor();
            let tail = (1.0 + 1.0 / rank).powf(slope);
            if v * rank * (tail - 1.0) / (bound - 1.0) <= tail / bound && rank <= most {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a rank is at most the number of values"
                )]
                return Ok((min - 1).wrapping_add(rank as i64));
            }
        }
    }

    /// The interval to the next event of a Poisson process with events `mean` apart on average,
    /// rounded to a whole number.
    ///
    /// pgbench: the interval between scheduled transactions of `--rate`, in microseconds.
    pub fn poisson(&mut self, mean: f64) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "rounding by adding a half is the definition")]
        let wait = (-self.positive().ln() * mean + 0.5) as i64;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_distribution_stays_in_its_range(
            seed: u64,
            min in -1_000_000_i64..1_000_000,
            width in 0_i64..1_000_000,
            parameter in 2.0_f64..50.0,
        ) {
            let mut rng = Prng::seed(seed);
            let range = min..=min + width;
            for _ in 0..10 {
                prop_assert!(range.contains(&rng.exponential(min, min + width, parameter).unwrap()));
                prop_assert!(range.contains(&rng.gaussian(min, min + width, parameter).unwrap()));
                prop_assert!(range.contains(&rng.zipfian(min, min + width, parameter).unwrap()));
                prop_assert!(rng.poisson(parameter) >= 0);
            }
        }

        #[test]
        fn no_bounds_and_no_parameter_panic_or_hang(seed: u64, min: i64, max: i64, bits: u64) {
            let mut rng = Prng::seed(seed);
            let parameter = f64::from_bits(bits);
            let _ = rng.exponential(min, max, parameter);
            let _ = rng.gaussian(min, max, parameter);
            let _ = rng.zipfian(min, max, parameter);
        }
    }

    #[test]
    fn poisson_has_the_mean_it_was_given() {
        let mut rng = Prng::seed(7);
        let draws = 100_000;
        let sum: i64 = (0..draws).map(|_| rng.poisson(1000.0)).sum();
        let mean = sum as f64 / f64::from(draws);
        assert!((mean - 1000.0).abs() < 20.0, "{mean}");
    }

    #[test]
    fn ranges_are_checked_as_pgbench_does() {
        assert_eq!(check_range(5, 1), Err(EvalError::EmptyRange));
        assert_eq!(check_range(0, i64::MAX), Err(EvalError::RangeTooLarge));
        assert_eq!(check_range(i64::MIN, i64::MAX), Err(EvalError::RangeTooLarge));
        assert_eq!(check_range(1, i64::MAX), Ok(()));
    }
}
