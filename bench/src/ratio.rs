//! Ratios of paired rounds: the median and the range.
//!
//! A pair is measured back to back, so effects of the machine on both cancel out, unlike in a mean
//! over rounds.

use std::fmt;

/// The median and the range of the ratios of paired values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median; for an even number, the mean of the middle two.
    pub median: f64,
    /// Least.
    pub least: f64,
    /// Greatest.
    pub greatest: f64,
}

impl Ratio {
    /// The ratios of the first to the second value of each pair; `None` without a pair.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Ratio> {
        let mut ratios: Vec<f64> = pairs.into_iter().map(|(first, second)| first / second).collect();
        ratios.sort_by(f64::total_cmp);
        Some(Ratio { median: median_sorted(&ratios)?, least: *ratios.first()?, greatest: *ratios.last()? })
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{:.2} ({:.2}..{:.2})", self.median, self.least, self.greatest))
    }
}

/// The median of values in any order; NaN without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    median_sorted(&values).unwrap_or(f64::NAN)
}

fn median_sorted(values: &[f64]) -> Option<f64> {
    let low = values.get(values.len().checked_sub(1)? / 2)?;
    let high = values.get(values.len() / 2)?;
    Some(f64::midpoint(*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_the_ratios() {
        let ratio = Ratio::of([(1.0, 1.0), (30.0, 10.0), (4.0, 2.0)]).unwrap();
        assert_eq!(ratio, Ratio { median: 2.0, least: 1.0, greatest: 3.0 });
        assert_eq!(ratio.to_string(), "2.00 (1.00..3.00)");
        assert_eq!(Ratio::of([]), None);
    }

    #[test]
    fn an_even_number_has_its_middle_between() {
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert!(median([]).is_nan());
    }
}
