//! How precise the ratios are, and what the next finer precision would take.
//!
//! Not here: the arithmetic of intervals (`isobench_stats`).

use crate::document::{Cell, Document, RatioToFirst, Round, Summary};
use crate::numbers::{counted, finite, percent, short, whole_percent};
use crate::rounds::counted_rounds;

/// The precision of the least precise ratio, and the next finer one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finer {
    /// How far the interval reaches up and down, as a share.
    pub reached: f64,
    /// The next finer precision that is asked for, as a share.
    pub next: f64,
    /// The rounds that would take in all, if the rounds to come scatter as those so far.
    pub rounds: u32,
    /// The seconds that would take, without making the tables; `None` if nothing was measured.
    pub seconds: Option<f64>,
}

/// A precision beyond this isn't worth a number.
const MOST_TOLD: f64 = 3.0;

/// The precision of a document, and the next finer one; `None` if no ratio has an interval, or all
/// are as fine as is ever asked for.
pub fn finer(document: &Document) -> Option<Finer> {
    let of = |cell: &'_ Cell| {
        let Summary { ratio, strategy_ratio, setting_ratio, .. } = &cell.summary;
        [ratio.clone(), strategy_ratio.clone(), setting_ratio.clone()]
    };
    let ratios: Vec<RatioToFirst> = document.cells.iter().flat_map(of).flatten().collect();
    let width = |ratio: &RatioToFirst| {
        let (low, high) = ratio.low.zip(ratio.high)?;
        (low > 0.0 && high > low).then(|| (high / low).sqrt() - 1.0)
    };
    let known = ratios.iter().filter_map(|ratio| Some((width(ratio)?, ratio)));
    let (reached, ratio) = known.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let finer = ratio.rounds_for.iter().filter(|needed| needed.resolution < reached);
    let next = finer.max_by(|one, other| one.resolution.total_cmp(&other.resolution))?;
    let seconds = round_time(document).and_then(|round| finite(round * f64::from(next.rounds)));
    Some(Finer { reached, next: next.resolution, rounds: next.rounds, seconds })
}

impl Finer {
    /// The precision, and what a finer one would take, in a sentence.
    pub fn sentence(&self) -> String {
        let reached = match self.reached {
            reached if reached < 0.5 => percent(reached),
            reached if reached < MOST_TOLD => format!("{} ×", short(reached + 1.0)),
            _ => return format!("Precision: too few rounds to compare rows; {}.", self.option()),
        };
        format!("Precision: differences of {reached} or more can be measured; {}.", self.option())
    }

    /// The option that asks for it, and how long that takes: "--resolve 10% takes about 8 min".
    pub fn option(&self) -> String {
        let time = self.seconds.map_or_else(|| counted(self.rounds.into(), "round"), duration);
        format!("--resolve {}% takes about {time}", whole_percent(self.next))
    }
}

/// The seconds that a round of all cells takes, without making the tables.
fn round_time(document: &Document) -> Option<f64> {
    let of_cell = |cell: &Cell| {
        let rounds = counted_rounds(cell);
        let warmup = |round: &Round| round.warmup.map_or(0.0, |warmup| warmup.seconds);
        let time = |round: &&Round| round.seconds + warmup(round) + round.connect_s.unwrap_or(0.0);
        (!rounds.is_empty()).then(|| rounds.iter().map(time).sum::<f64>() / rounds.len() as f64)
    };
    let all: f64 = document.cells.iter().map(of_cell).sum::<Option<f64>>()?;
    finite(all).filter(|all| *all > 0.0)
}

/// A time for people: 40 s, 8 min, 3 h.
fn duration(seconds: f64) -> String {
    match seconds {
        _ if seconds < 90.0 => format!("{:.0} s", seconds.max(1.0)),
        _ if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_precision_option_and_time() {
        let mut finer = Finer { reached: 0.17, next: 0.1, rounds: 12, seconds: Some(480.0) };
        assert_eq!(
            finer.sentence(),
            "Precision: differences of 17.0 % or more can be measured; --resolve 10% takes about 8 min."
        );
        (finer.reached, finer.seconds) = (0.9, None);
        assert_eq!(
            finer.sentence(),
            "Precision: differences of 1.90 × or more can be measured; --resolve 10% takes about 12 rounds."
        );
        finer.reached = 263_930.0;
        assert_eq!(
            finer.sentence(),
            "Precision: too few rounds to compare rows; --resolve 10% takes about 12 rounds."
        );
        for (seconds, said) in [(40.0, "40 s"), (89.0, "89 s"), (90.0, "2 min"), (11_000.0, "3 h")] {
            assert_eq!(duration(seconds), said);
        }
    }
}
