//! A mean that never travels without its interval.
//!
//! Not here: comparing two series of measurements, see `ratio`.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The confidence of every interval in this crate.
pub const CONFIDENCE: f64 = 0.95;

/// The mean of repeated measurements and the interval that holds the true mean with 95 %
/// confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The arithmetic mean, in the unit of the samples.
    pub mean: f64,
    /// The lower end of the interval; `None` with a single sample, which says nothing about its
    /// spread.
    pub low: Option<f64>,
    /// The upper end of the interval; `None` with a single sample.
    pub high: Option<f64>,
}

/// Estimates the mean of independent measurements with Student's t distribution, 95 % two-sided.
///
/// The interval is mean ± t(0.975, n − 1) · s / √n, where s is the standard deviation of the sample
/// (divided by n − 1). It assumes that the measurements scatter roughly normally, and nothing about
/// how many there are: with few rounds it is as wide as it has to be. Returns `None` when there is
/// no sample or one isn't finite. Source: Student, "The probable error of a mean", Biometrika 6
/// (1908).
pub fn mean_interval(samples: &[f64]) -> Option<Estimate> {
    let mean = mean_of(samples)?;
    let half = half_width(samples, mean);
    let ends =
        half.map(|half| (mean - half, mean + half)).filter(|(low, high)| low.is_finite() && high.is_finite());
    Some(Estimate { mean, low: ends.map(|ends| ends.0), high: ends.map(|ends| ends.1) })
}

/// The arithmetic mean; `None` when there is no sample or one isn't finite.
pub(crate) fn mean_of(samples: &[f64]) -> Option<f64> {
    let n = samples.len() as f64;
    // Divided before they are added, so that huge ones don't overflow.
    let mean = samples.iter().map(|sample| sample / n).sum::<f64>();
    (!samples.is_empty() && samples.iter().all(|sample| sample.is_finite())).then_some(mean)
}

fn half_width(samples: &[f64], mean: f64) -> Option<f64> {
    let n = samples.len() as f64;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    let t = critical_value(n - 1.0)?;
    Some(t * (squares / (n - 1.0) / n).sqrt())
}

/// The quantile of Student's t that leaves 2.5 % above it.
pub(crate) fn critical_value(degrees_of_freedom: f64) -> Option<f64> {
    critical_value_of(degrees_of_freedom, 1)
}

/// The quantile of Student's t that leaves 2.5 % above it, divided by the number of intervals that
/// are to hold all their truths with 95 % confidence (Bonferroni).
pub(crate) fn critical_value_of(degrees_of_freedom: f64, intervals: usize) -> Option<f64> {
    let probability = 1.0 - (1.0 - CONFIDENCE) / 2.0 / intervals.max(1) as f64;
    if degrees_of_freedom > 1e4 {
        // The exact one is searched for, and for long. This is its expansion, right to seven digits
        // here.
        let normal = Normal::standard().inverse_cdf(probability);
        return Some(normal + (normal.powi(3) + normal) / (4.0 * degrees_of_freedom));
    }
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    Some(distribution.inverse_cdf(probability))
}

/// The probability of an estimate at least this far from 0 if the truth is 0, by Student's t;
/// `None` without degrees of freedom. Without any spread it is 0, or 1 if the estimate is 0, too.
pub(crate) fn two_sided_p(estimate: f64, standard_error: f64, degrees_of_freedom: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    if !estimate.is_finite() || !standard_error.is_finite() {
        return None;
    }
    if standard_error == 0.0 {
        return Some(if estimate == 0.0 { 1.0 } else { 0.0 });
    }
    Some((2.0 * distribution.sf((estimate / standard_error).abs())).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_printed_tables() {
        for (degrees, expected) in [
            (1.0, 12.706_205),
            (2.0, 4.302_653),
            (4.0, 2.776_445),
            (9.0, 2.262_157),
            (29.0, 2.045_230),
            (1000.0, 1.962_339),
            (9_999.0, 1.960_201),
            (10_001.0, 1.960_201),
            (1e9, 1.959_964),
        ] {
            let value = critical_value(degrees).unwrap();
            assert!((value - expected).abs() < 1e-6, "{degrees} degrees: {value}");
        }
        assert_eq!(critical_value(0.0), None);
        // Of two intervals together: the table's column 0.9875.
        assert!((critical_value_of(4.0, 2).unwrap() - 3.495_406).abs() < 1e-6);
        assert_eq!(critical_value_of(4.0, 0), critical_value(4.0));
    }

    #[test]
    fn a_known_sample_has_the_known_interval() {
        // s = 1, n = 3: half width 4.302653 / √3.
        let estimate = mean_interval(&[9.0, 10.0, 11.0]).unwrap();
        assert!((estimate.mean - 10.0).abs() < 1e-12);
        assert!((estimate.low.unwrap() - 7.515_862).abs() < 1e-6);
        assert!((estimate.high.unwrap() - 12.484_138).abs() < 1e-6);
    }

    #[test]
    fn one_sample_has_no_interval() {
        assert_eq!(mean_interval(&[5.0]), Some(Estimate { mean: 5.0, low: None, high: None }));
    }

    #[test]
    fn nothing_and_the_infinite_have_no_mean() {
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[1.0, f64::NAN]), None);
        assert_eq!(mean_interval(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn huge_samples_stay_finite_or_lose_their_interval() {
        let estimate = mean_interval(&[f64::MAX, -f64::MAX, f64::MAX]).unwrap();
        assert!(estimate.mean.is_finite());
        assert_eq!((estimate.low, estimate.high), (None, None));
    }
}
