//! What one candidate costs against another: told apart, shown to cost the same, or open.
//!
//! "Can't be told apart" isn't "the same": a wide interval shows nothing. Not here: the arithmetic
//! (`summarise`), the choice (`choice`), the words.

use super::evidence::{Candidate, Evidence};
use crate::document::{RatioToFirst, are_alike};
use crate::rounds::FEWEST_FOR_INTERVALS;
use crate::summarise::{between, common_rounds};

/// A difference is too small to matter if its estimate is 5 % at most and the whole interval 10 % at
/// most, in whole percent, as they are shown.
const LITTLE: f64 = 0.055;
const LITTLE_FOR_SURE: f64 = 0.105;

/// With too few rounds for intervals, what commits at least this share of the best isn't told from it.
const CLOSE: f64 = 0.9;

/// The price of one candidate against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    /// It commits the same, within 5 %, which the rounds show; or the difference is too small to
    /// matter.
    Same,
    /// It commits less, by more than noise.
    Dearer,
    /// It commits more, by more than noise.
    Cheaper,
    /// The rounds don't tell.
    Open,
}

impl Price {
    /// The price that a ratio of committed work shows; of too few rounds by its estimate alone.
    pub fn of(ratio: &RatioToFirst, rounds: usize) -> Price {
        match ratio.low.zip(ratio.high) {
            _ if rounds < FEWEST_FOR_INTERVALS => match ratio.mean {
                mean if mean < CLOSE => Price::Dearer,
                mean if mean > CLOSE.recip() => Price::Cheaper,
                _ => Price::Open,
            },
            Some(ends) if are_alike(ends) || is_little(ratio.mean, ends) => Price::Same,
            Some(_) if ratio.significant && ratio.mean < 1.0 => Price::Dearer,
            Some(_) if ratio.significant => Price::Cheaper,
            _ => Price::Open,
        }
    }

    fn reversed(self) -> Price {
        match self {
            Price::Dearer => Price::Cheaper,
            Price::Cheaper => Price::Dearer,
            same => same,
        }
    }
}

/// True if a difference is too small to matter. Without this, a difference of 3 % would be called the
/// same in one run, a price in the next one and open in a third, as its interval just includes 0 % or
/// 5 % or not.
fn is_little(mean: f64, (low, high): (f64, f64)) -> bool {
    (mean - 1.0).abs() < LITTLE && low > 1.0 - LITTLE_FOR_SURE && high < 1.0 + LITTLE_FOR_SURE
}

/// True if candidates have too few rounds in common for intervals.
pub fn are_short(candidates: &[&Candidate<'_>]) -> bool {
    let few = |pair: &[&Candidate<'_>]| common_rounds(pair[0].cell, pair[1].cell) < FEWEST_FOR_INTERVALS;
    candidates.windows(2).any(few)
}

impl<'a> Evidence<'a> {
    /// The ratio of two candidates' committed work, in the rounds that both have: the table's where
    /// the table has it.
    pub fn ratio(&self, of: &Candidate<'_>, to: &Candidate<'_>) -> Option<RatioToFirst> {
        let (cell, other) = (of.cell, to.cell);
        let by_level = cell.strategy() == other.strategy();
        let shown = if by_level { &cell.summary.ratio } else { &cell.summary.strategy_ratio };
        let same = |ratio: &&RatioToFirst| {
            if by_level {
                ratio.to == other.level.name()
            } else {
                ratio.to == other.strategy() && cell.level == other.level
            }
        };
        let family = self.candidates.len().saturating_sub(1).max(1);
        shown.as_ref().filter(same).cloned().or_else(|| between(self.document, cell, other, family))
    }

    /// The price of one candidate against another.
    pub fn price(&self, of: &Candidate<'_>, to: &Candidate<'_>) -> Price {
        let rounds = common_rounds(of.cell, to.cell);
        let price = self.ratio(of, to).map(|ratio| Price::of(&ratio, rounds));
        let reversed = || Some(Price::of(&self.ratio(to, of)?, rounds).reversed());
        price.or_else(reversed).unwrap_or(Price::Open)
    }

    /// The candidate with the most committed work, by the ratios within rounds.
    pub fn fastest<'b>(&self, of: &[&'b Candidate<'a>]) -> Option<&'b Candidate<'a>> {
        let first = of.first()?;
        let times = |candidate: &Candidate<'_>| {
            let ratio = self.ratio(candidate, first).map(|ratio| ratio.mean);
            ratio.unwrap_or_else(|| candidate.rate() / first.rate())
        };
        of.iter().copied().max_by(|one, other| times(one).total_cmp(&times(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(mean: f64, ends: Option<(f64, f64)>) -> RatioToFirst {
        let significant = ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0);
        let (low, high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
        RatioToFirst { mean, low, high, significant, ..RatioToFirst::default() }
    }

    #[test]
    fn a_wide_interval_shows_nothing() {
        for (mean, ends, rounds, price) in [
            (1.0, Some((0.97, 1.03)), 8, Price::Same),
            // A difference that is too small to matter, whether the interval excludes 1 or not.
            (0.97, Some((0.96, 0.98)), 8, Price::Same),
            (0.97, Some((0.94, 0.99)), 8, Price::Same),
            (0.97, Some((0.93, 1.01)), 8, Price::Same),
            (1.0, Some((0.91, 1.09)), 8, Price::Same),
            (0.946, Some((0.92, 0.97)), 8, Price::Same),
            (0.944, Some((0.92, 0.97)), 8, Price::Dearer),
            (0.944, Some((0.90, 1.01)), 8, Price::Open),
            (0.97, Some((0.89, 0.99)), 8, Price::Dearer),
            (1.0, Some((0.89, 1.12)), 8, Price::Open),
            (0.46, Some((0.1, 2.1)), 3, Price::Open),
            (0.8, Some((0.7, 0.9)), 3, Price::Dearer),
            (1.3, Some((1.2, 1.4)), 3, Price::Cheaper),
            // One round, or two, by their estimate.
            (0.6, None, 1, Price::Dearer),
            (1.3, None, 2, Price::Cheaper),
            (0.93, None, 1, Price::Open),
            // Some rounds without any commit have no interval, however many they are.
            (0.5, None, 8, Price::Open),
        ] {
            assert_eq!(Price::of(&ratio(mean, ends), rounds), price, "{mean} {ends:?} {rounds}");
            assert_eq!(price.reversed().reversed(), price);
        }
    }
}
