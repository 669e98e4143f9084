//! Each cell as a multiple of the first level's, or the first strategy's, measured in the same
//! rounds; the noise of the machine; how precise that is.
//!
//! Not here: the arithmetic of ratios (`isobench_stats`).

use std::collections::BTreeMap;

use isobench_stats::{Ratio, is_resolved, noise_of, resolving_ratio, rounds_needed, settling_ratio};

use crate::document::{Cell, Document, RatioToFirst, Resolution, Round, RoundsFor};
use crate::rounds::{
    FEWEST_FOR_INTERVALS, counted_rounds, first_setting_of, first_strategy_of, rate, reference_of,
    same_but_settings, same_but_strategy, same_factors, settings_name,
};

/// Precisions for which the needed rounds are given.
const RESOLUTIONS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];

/// For each cell its ratio to the cell at its reference.
///
/// Paired by the number of the round. The ratios to the same cell are a family, whose intervals
/// hold together. If the group of cells has an A/A cell, a difference counts only if it is larger
/// than what that shows or can't exclude.
pub fn ratios(document: &Document, references: &[Option<usize>]) -> Vec<Option<RatioToFirst>> {
    compared(document, references, same_factors, |first| first.level.name())
}

/// For each cell its ratio to the cell of the first strategy at its level, if strategies vary. The
/// noise is taken from any A/A cell beside it, whose level and strategy may be others.
pub fn strategy_ratios(document: &Document) -> Vec<Option<RatioToFirst>> {
    let references: Vec<Option<usize>> =
        document.cells.iter().map(|cell| first_strategy_of(document, cell)).collect();
    compared(document, &references, same_but_strategy, |first| first.strategy().to_owned())
}

/// For each cell its ratio to the one with the first settings, if these vary, or the version or the
/// programs of the server.
pub fn setting_ratios(document: &Document) -> Vec<Option<RatioToFirst>> {
    let references: Vec<Option<usize>> =
        document.cells.iter().map(|cell| first_setting_of(document, cell)).collect();
    compared(document, &references, same_but_settings, settings_name)
}

/// `beside` is true if the noise of an A/A cell is that of another cell; `name` is the name of a
/// reference.
fn compared(
    document: &Document,
    references: &[Option<usize>],
    beside: fn(&Cell, &Cell) -> bool,
    name: fn(&Cell) -> String,
) -> Vec<Option<RatioToFirst>> {
    let compare = |(cell, reference): (&Cell, &Option<usize>)| {
        let first = &document.cells[(*reference)?];
        let pairs = pairs(cell, first);
        let family = family(document, references, (*reference)?);
        let ratio = ratio_of(document, &pairs, family)?;
        Some(WithReference { first, pairs, ratio, family })
    };
    let found: Vec<Option<WithReference>> = document.cells.iter().zip(references).map(compare).collect();
    let noise_beside = |cell: &Cell| {
        let known = document.cells.iter().filter(|other| other.calibration && beside(other, cell));
        let noise = known.filter_map(|again| {
            // An A/A cell repeats the first level.
            let first = &document.cells[reference_of(document, again)?];
            noise_of(&ratio_of(document, &pairs(again, first), 1)?)
        });
        noise.reduce(f64::max)
    };
    let shown = |(cell, found): (&Cell, &Option<WithReference>)| {
        Some(ratio_to(found.as_ref()?, name, noise_beside(cell)))
    };
    document.cells.iter().zip(&found).map(shown).collect()
}

/// The number of ratios to a cell, without A/A cells and the cell itself.
fn family(document: &Document, references: &[Option<usize>], reference: usize) -> usize {
    let to_it = |(index, other): &(usize, &Option<usize>)| {
        **other == Some(reference) && *index != reference && !document.cells[*index].calibration
    };
    references.iter().enumerate().filter(to_it).count()
}

/// The ratio of any two cells' committed work in the rounds that both have, as one of a family of
/// that many.
pub fn between(document: &Document, cell: &Cell, other: &Cell, family: usize) -> Option<RatioToFirst> {
    let pairs = pairs(cell, other);
    let ratio = ratio_of(document, &pairs, family)?;
    // The noise is the machine's, whatever cell it was measured beside.
    let noise = [cell, other].into_iter().filter_map(|cell| cell.summary.ratio.as_ref()?.noise);
    let noise = noise.reduce(f64::max).map(f64::ln_1p);
    Some(ratio_to(&WithReference { first: other, pairs, ratio, family }, |first| first.level.name(), noise))
}

/// The ratio within rounds, as one of a family of that many: of rounds that went on until a
/// resolution was reached or the time was over, of as many as planned, or of more, to settle the
/// answer. Without an interval if there are fewer than [`FEWEST_FOR_INTERVALS`].
pub fn ratio_of(document: &Document, pairs: &[(f64, f64)], family: usize) -> Option<Ratio> {
    let ratio = if document.plan.resolve.is_some() {
        resolving_ratio(pairs, family)?
    } else {
        settling_ratio(pairs, document.plan.rounds() as usize, family)?
    };
    // A cell beside itself, and one in which nothing ever commits, don't scatter.
    let itself = (ratio.mean - 1.0).abs() < f64::EPSILON && ratio.half_width() == Some(0.0);
    if pairs.len() >= FEWEST_FOR_INTERVALS || itself || ratio.mean == 0.0 {
        return Some(ratio);
    }
    Some(Ratio { low: None, high: None, significant: false, ..ratio })
}

/// The number of rounds that two cells have in common.
pub fn common_rounds(cell: &Cell, other: &Cell) -> usize {
    pairs(cell, other).len()
}

/// A cell beside the one that it is compared with.
struct WithReference<'a> {
    first: &'a Cell,
    /// Their throughputs in the rounds that both have.
    pairs: Vec<(f64, f64)>,
    ratio: Ratio,
    /// The number of ratios to the same cell.
    family: usize,
}

fn ratio_to(
    WithReference { first, pairs, ratio, family }: &WithReference,
    name: fn(&Cell) -> String,
    noise: Option<f64>,
) -> RatioToFirst {
    let needed = |resolution: f64| {
        let rounds = u32::try_from(rounds_needed(pairs, resolution, *family)?).ok()?;
        Some(RoundsFor { resolution, rounds })
    };
    // A cell isn't compared with itself.
    let itself = ratio.half_width() == Some(0.0);
    RatioToFirst {
        to: name(first),
        mean: ratio.mean,
        low: ratio.low,
        high: ratio.high,
        significant: noise.map_or(ratio.significant, |noise| ratio.beyond(noise)),
        noise: noise.map(f64::exp_m1),
        rounds_for: if itself { Vec::new() } else { RESOLUTIONS.into_iter().filter_map(needed).collect() },
    }
}

/// Committed transactions per second of two cells in the rounds that both have.
fn pairs(cell: &Cell, reference: &Cell) -> Vec<(f64, f64)> {
    pairs_of(cell, reference, |round| rate(round, round.transactions.committed))
}

/// A figure of two cells in the rounds that both have.
pub fn pairs_of(cell: &Cell, reference: &Cell, figure: impl Fn(&Round) -> Option<f64>) -> Vec<(f64, f64)> {
    let by_number = |cell: &Cell| -> BTreeMap<u32, f64> {
        let rounds = counted_rounds(cell);
        rounds.iter().filter_map(|round| Some((round.round, figure(round)?))).collect()
    };
    let (own, first) = (by_number(cell), by_number(reference));
    own.iter().filter_map(|(number, figure)| Some((*figure, *first.get(number)?))).collect()
}

/// The precision of the ratios of a document, against what was wanted (0.02: ± 2 %).
///
/// Reached is what the least known ratio has: e to the half width of its logarithm's interval,
/// minus 1. When that is for good: [`is_resolved`]. Ratios of cells in which nothing ever commits
/// have no width and are taken as known.
pub fn resolution(document: &Document, wanted: f64) -> Resolution {
    let mut known = Resolution { wanted, reached: Some(0.0), more_rounds: Some(0) };
    let references = [reference_of, first_strategy_of]
        .map(|of| document.cells.iter().map(|cell| of(document, cell)).collect::<Vec<_>>());
    let compared = references.iter().flat_map(|references| {
        let others = references.iter().enumerate().filter_map(|(index, other)| Some((index, (*other)?)));
        others.filter(|(index, other)| index != other).map(move |(index, other)| (references, index, other))
    });
    for (references, index, reference) in compared {
        let pairs = pairs(&document.cells[index], &document.cells[reference]);
        let family = family(document, references, reference);
        let ratio = resolving_ratio(&pairs, family);
        if ratio.is_some_and(|ratio| ratio.mean == 0.0 && ratio.significant) {
            continue;
        }
        let width = ratio.and_then(|ratio| ratio.half_width()).map(f64::exp_m1);
        known.reached = known.reached.zip(width).map(|(reached, width)| reached.max(width));
        known.more_rounds =
            known.more_rounds.zip(more_rounds(&pairs, wanted, family)).map(|(one, other)| one.max(other));
    }
    known
}

/// The number of further rounds that a ratio probably needs.
fn more_rounds(pairs: &[(f64, f64)], wanted: f64, family: usize) -> Option<u32> {
    if is_resolved(pairs, wanted, family) {
        return Some(0);
    }
    let more = rounds_needed(pairs, wanted, family)?.saturating_sub(pairs.len()).max(1);
    u32::try_from(more).ok()
}
