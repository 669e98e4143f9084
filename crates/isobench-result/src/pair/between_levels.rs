//! What a level costs in A and in B: the ratio of its rate to the first level's, which is formed
//! within rounds and therefore says more than rates of two occasions.

use serde::Serialize;

use super::{Matched, PairRatio, Samples, noise};
use crate::document::{Cell, Document};
use crate::factor::{Assignment, FactorId, Names};
use crate::rounds::rate;
use crate::summarise::pairs_of;

/// A level's rate as a multiple of the first level's, in both results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelRatio {
    /// The two levels, the number of clients, and the other factors that vary, in words.
    pub name: String,
    /// The level.
    pub level: String,
    /// The first level, whose rate is 1.
    pub to: String,
    /// The factors of the level's cell.
    pub factors: Assignment,
    /// The geometric mean of the rounds' ratios in A; null if it can't be computed.
    pub a: Option<f64>,
    /// The same in B.
    pub b: Option<f64>,
    /// B's ratio as a multiple of A's; null where there is nothing to compare.
    pub ratio: Option<PairRatio>,
}

/// A level beside the first one, in both results.
pub struct Compared<'a> {
    factors: &'a Assignment,
    first: &'a Assignment,
    /// The ratios of the rounds.
    pub samples: Samples,
}

/// Every level of both results beside the first one of A's plan, where all other factors are equal.
pub fn compared<'a>(a: &Document, pairs: &'a [Matched<'a>]) -> Vec<Compared<'a>> {
    let planned = a.plan.levels().first().map(|level| level.name());
    let is_first = |factors: &Assignment| planned.is_none_or(|name| factors.level() == name);
    let beside = |pair: &'a Matched<'a>| {
        let same = |other: &&Matched| {
            is_first(&other.factors) && other.factors.is_same_but(&pair.factors, FactorId::Level)
        };
        let first = pairs.iter().find(same).filter(|first| first.factors.level() != pair.factors.level())?;
        let samples = Samples {
            of: ratios(pair.b, first.b)?,
            to: ratios(pair.a, first.a)?,
            noise: [pair.a, pair.b].map(noise).into_iter().fold(0.0, f64::max),
        };
        Some(Compared { factors: &pair.factors, first: &first.factors, samples })
    };
    pairs.iter().filter_map(beside).collect()
}

/// The ratios of two cells in the rounds that both have; `None` if there is none, or one has no
/// value.
fn ratios(cell: &Cell, first: &Cell) -> Option<Vec<f64>> {
    let pairs = pairs_of(cell, first, |round| rate(round, round.transactions.committed));
    let ratio = |(of, to): &(f64, f64)| (*to > 0.0).then(|| of / to);
    pairs.iter().map(ratio).collect::<Option<Vec<f64>>>().filter(|ratios| !ratios.is_empty())
}

impl Compared<'_> {
    /// The same with its name and what was found.
    pub fn judged(&self, names: &Names, ratio: Option<PairRatio>) -> LevelRatio {
        let (level, to) = (self.factors.level(), self.first.level());
        LevelRatio {
            name: format!("{level} ÷ {to}, {}", names.others(self.factors)),
            level: level.to_owned(),
            to: to.to_owned(),
            factors: self.factors.clone(),
            a: mean(&self.samples.to),
            b: mean(&self.samples.of),
            ratio,
        }
    }
}

/// The geometric mean.
fn mean(ratios: &[f64]) -> Option<f64> {
    let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    let mean = (logs / ratios.len() as f64).exp();
    Some(mean).filter(|mean| mean.is_finite())
}
