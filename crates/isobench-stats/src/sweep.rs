//! The search for the highest rate that keeps a condition, step by step.
//!
//! Not here: what the condition is, and who measures.

/// The lowest rate that is tried: the capacity divided by this.
const DEEPEST: f64 = 64.0;

/// The most rates that are tried.
const MOST_STEPS: usize = 10;

/// A search for the highest rate that keeps a condition, such as p99 below a limit. A state machine
/// without clock or I/O: [`next_rate`](Self::next_rate) says what to measure,
/// [`answer`](Self::answer) takes what came of it.
///
/// The first rate is the capacity. Then the rate is divided by 2, 8 and 64 until one keeps the
/// condition; then the interval between the highest rate that kept it and the lowest that didn't is
/// halved in logarithmic scale until it is as narrow as asked for. Rates have three significant
/// digits. Assumes that what a rate keeps, lower rates keep, too; of answers that contradict that,
/// the broken one counts. With a precision of 5 % it takes 6 steps where the answer lies above half
/// of the capacity, and 10 at most.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    capacity: f64,
    precision: f64,
    answers: Vec<(f64, bool)>,
}

impl Sweep {
    /// Begins a search below `capacity`, the transactions per second that the same cell reached
    /// without pacing, until the interval is narrower than `precision` (0.05: 5 %; not below 1 %).
    ///
    /// Without a capacity (zero, not finite) there is nothing to search.
    pub fn new(capacity: f64, precision: f64) -> Self {
        let capacity = if capacity.is_finite() && capacity > 0.0 { rounded(capacity) } else { 0.0 };
        let precision = if precision.is_finite() { precision.max(0.01) } else { 0.01 };
        Sweep { capacity, precision, answers: Vec::new() }
    }

    /// The rate to measure next, in transactions per second; `None` when the search is over.
    pub fn next_rate(&self) -> Option<f64> {
        if self.capacity == 0.0 || self.answers.len() >= MOST_STEPS {
            return None;
        }
        let Some(broken) = self.lowest_broken() else {
            return self.answers.is_empty().then_some(self.capacity);
        };
        let Some(kept) = self.highest_kept() else {
            let descent = [2.0, 8.0, DEEPEST].map(|divisor| rounded(self.capacity / divisor));
            return descent.into_iter().find(|rate| *rate < broken);
        };
        let middle = rounded((kept * broken).sqrt());
        let narrow = broken <= kept * (1.0 + self.precision);
        (!narrow && kept < middle && middle < broken).then_some(middle)
    }

    /// Takes the answer for a rate: whether it kept the condition.
    pub fn answer(&mut self, rate: f64, kept: bool) {
        if rate.is_finite() && rate > 0.0 {
            self.answers.push((rate, kept));
        }
    }

    /// The highest rate so far that kept the condition, below all that didn't.
    pub fn highest_kept(&self) -> Option<f64> {
        let limit = self.lowest_broken().unwrap_or(f64::INFINITY);
        let kept = self.answers.iter().filter(|(rate, kept)| *kept && *rate < limit);
        kept.map(|(rate, _)| *rate).max_by(f64::total_cmp)
    }

    /// The lowest rate so far that didn't keep the condition.
    pub fn lowest_broken(&self) -> Option<f64> {
        let broken = self.answers.iter().filter(|(_, kept)| !kept);
        broken.map(|(rate, _)| *rate).min_by(f64::total_cmp)
    }
}

/// Three significant digits: a rate that people can read and repeat.
fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 2.0);
    // By division where the unit is a fraction, so that 0.123 is that number and not its neighbour.
    if unit < 1.0 {
        (rate / unit).round() / unit.recip().round()
    } else {
        (rate / unit).round() * unit.round()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches where exactly the rates up to `limit` keep the condition.
    fn search(capacity: f64, precision: f64, limit: f64) -> (Sweep, Vec<f64>) {
        let mut sweep = Sweep::new(capacity, precision);
        let mut tried = Vec::new();
        while let Some(rate) = sweep.next_rate() {
            tried.push(rate);
            sweep.answer(rate, rate <= limit);
        }
        (sweep, tried)
    }

    /// The highest rate that kept the condition, and the lowest that didn't.
    fn found(sweep: &Sweep) -> (Option<f64>, Option<f64>) {
        (sweep.highest_kept(), sweep.lowest_broken())
    }

    #[test]
    fn the_steps_of_a_search() {
        let (sweep, tried) = search(1000.0, 0.1, 700.0);
        assert_eq!(tried, [1000.0, 500.0, 707.0, 595.0, 649.0]);
        assert_eq!(found(&sweep), (Some(649.0), Some(707.0)));
    }

    #[test]
    fn a_capacity_that_keeps_is_the_answer() {
        let (sweep, tried) = search(1234.0, 0.05, f64::INFINITY);
        assert_eq!((tried, found(&sweep)), (vec![1230.0], (Some(1230.0), None)));
    }

    #[test]
    fn a_condition_that_nothing_keeps_has_no_rate() {
        let (sweep, tried) = search(6400.0, 0.05, 0.0);
        assert_eq!(tried, [6400.0, 3200.0, 800.0, 100.0]);
        assert_eq!(found(&sweep), (None, Some(100.0)));
    }

    #[test]
    fn before_the_first_answer_nothing_is_known() {
        assert_eq!(found(&Sweep::new(100.0, 0.05)), (None, None));
        for capacity in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Sweep::new(capacity, 0.05).next_rate(), None);
        }
    }

    #[test]
    fn of_contradicting_answers_the_broken_one_counts() {
        let mut sweep = Sweep::new(100.0, 0.05);
        for (rate, kept) in [(100.0, false), (50.0, true), (80.0, true), (40.0, false), (20.0, true)] {
            sweep.answer(rate, kept);
        }
        assert_eq!(found(&sweep), (Some(20.0), Some(40.0)));
    }

    #[test]
    fn rates_have_three_digits() {
        for (rate, expected) in
            [(123_456.0, 123_000.0), (98.765, 98.8), (0.012_345, 0.0123), (999.9, 1000.0), (7.0, 7.0)]
        {
            assert!((rounded(rate) - expected).abs() < expected * 1e-12, "{rate}: {}", rounded(rate));
        }
    }

    proptest! {
        #[test]
        fn every_search_ends_at_the_limit(capacity in 0.1_f64..1e6, share in 0.016_f64..1.0, precision in 0.05_f64..0.3) {
            let limit = capacity * share;
            let (sweep, tried) = search(capacity, precision, limit);
            prop_assert!(tried.len() <= MOST_STEPS);
            match found(&sweep) {
                (Some(kept), Some(broken)) => {
                    prop_assert!(kept <= limit && limit < broken);
                    prop_assert!(broken <= kept * (1.0 + precision) * 1.01, "{kept} {broken} {tried:?}");
                }
                (Some(kept), None) => prop_assert!(kept <= limit),
                other => prop_assert!(share < 0.0163, "{other:?}"),
            }
        }
    }
}
