//! From rounds to conclusions: the summary of every cell.
//!
//! Only reads the rounds and the plan's levels, so a saved result can be summarised again. Not here: the
//! arithmetic of intervals (`isobench_stats`) and the wording (`text`).

use std::collections::BTreeMap;

use isobench_stats::{LatencyHistogram, Ledger, mean_interval, paired_ratio};

use crate::document::{
    Cell, Document, Interval, IntervalSource, Latency, RatioToFirst, Round, Summary, VerdictSummary,
};
use crate::numbers::finite;

/// Computes the summary of every cell from its rounds.
///
/// Complete rounds count; a cell that has none is summarised from what it has, with 0 as its number of rounds. The
/// ratio compares committed transactions per second with the cell of the plan's first level (or, in a plan without
/// levels, the first cell) whose other factors are equal, paired by the number of the round.
pub fn summarise(document: &mut Document) {
    let references: Vec<Option<usize>> =
        document.cells.iter().map(|cell| reference_of(document, cell)).collect();
    let summaries: Vec<Summary> = document
        .cells
        .iter()
        .zip(references)
        .map(|(cell, reference)| summary_of(cell, reference.map(|index| &document.cells[index])))
        .collect();
    for (cell, summary) in document.cells.iter_mut().zip(summaries) {
        cell.summary = summary;
    }
}

/// The rounds that conclusions rest on.
pub fn counted_rounds(cell: &Cell) -> Vec<&Round> {
    let complete: Vec<&Round> = cell.rounds.iter().filter(|round| round.complete).collect();
    if complete.is_empty() { cell.rounds.iter().collect() } else { complete }
}

/// The sum of the accounts of those rounds.
pub fn counted_ledger(cell: &Cell) -> Ledger {
    counted_rounds(cell).iter().map(|round| round.ledger()).collect::<Vec<_>>().iter().sum()
}

fn reference_of(document: &Document, cell: &Cell) -> Option<usize> {
    let first = document.plan.levels.first().copied();
    document
        .cells
        .iter()
        .position(|other| (first.is_none() || other.level.requested == first) && same_factors(other, cell))
}

/// True if two cells differ in nothing but their levels.
pub fn same_factors(one: &Cell, other: &Cell) -> bool {
    one.workload == other.workload
        && one.scale == other.scale
        && one.clients == other.clients
        && one.jobs == other.jobs
        && one.protocol == other.protocol
        && one.backoff == other.backoff
        && one.rate == other.rate
}

/// The cells, those together that differ in nothing but their levels, otherwise in the document's order.
pub fn groups(document: &Document) -> Vec<Vec<&Cell>> {
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in &document.cells {
        match groups.iter_mut().find(|group| same_factors(group[0], cell)) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
}

fn summary_of(cell: &Cell, reference: Option<&Cell>) -> Summary {
    let rounds = counted_rounds(cell);
    let ledger = counted_ledger(cell);
    let tps: Vec<f64> = rounds.iter().filter_map(|round| rate(round, round.transactions.committed)).collect();
    let attempts: Vec<f64> = rounds.iter().filter_map(|round| rate(round, round.attempts.started)).collect();
    Summary {
        tps: interval(&tps),
        ratio: reference.and_then(|reference| ratio(cell, reference)),
        conflict_ratio: ledger.conflict_ratio(),
        attempts_per_s: mean_interval(&attempts).map(|estimate| estimate.mean),
        retries_per_transaction: ledger.retries_per_transaction(),
        wasted_share: ledger.wasted_share(),
        latency_ms: latency(&rounds),
        invariants_held: invariants_held(cell),
        violations: violations(cell),
        verdict: VerdictSummary::of(
            &cell.rounds.iter().filter_map(|round| round.verdict.as_ref()).collect::<Vec<_>>(),
        ),
        level_differs: cell.level.differs(),
        time_s: ledger.time.into(),
        rounds: u32::try_from(cell.rounds.iter().filter(|round| round.complete).count()).unwrap_or(u32::MAX),
        ..Summary::default()
    }
}

fn rate(round: &Round, count: u64) -> Option<f64> {
    finite(count as f64 / round.seconds).filter(|rate| *rate >= 0.0)
}

fn interval(samples: &[f64]) -> Interval {
    mean_interval(samples).map_or_else(Interval::default, |estimate| Interval {
        mean: Some(estimate.mean),
        // Few rounds that scatter widely give an interval that reaches below zero, where no rate lies.
        low: estimate.low.map(|low| low.max(0.0)),
        high: estimate.high,
        source: IntervalSource::Rounds,
    })
}

fn ratio(cell: &Cell, reference: &Cell) -> Option<RatioToFirst> {
    let by_number = |cell: &Cell| -> BTreeMap<u32, f64> {
        let rounds = counted_rounds(cell);
        rounds
            .iter()
            .filter_map(|round| Some((round.round, rate(round, round.transactions.committed)?)))
            .collect()
    };
    let (own, first) = (by_number(cell), by_number(reference));
    let pairs: Vec<(f64, f64)> =
        own.iter().filter_map(|(number, tps)| Some((*tps, *first.get(number)?))).collect();
    let ratio = paired_ratio(&pairs)?;
    Some(RatioToFirst {
        to: reference.level.name(),
        mean: ratio.mean,
        low: ratio.low,
        high: ratio.high,
        significant: ratio.significant,
        ..RatioToFirst::default()
    })
}

/// Percentiles come from merged histograms, never from averages of percentiles. With a damaged or missing one among
/// them there are none, for the rest isn't the same population.
fn latency(rounds: &[&Round]) -> Latency {
    let mut merged = LatencyHistogram::new();
    for round in rounds.iter().filter(|round| round.transactions.committed > 0) {
        match round.latency_ms.distribution() {
            Some(distribution) => merged.merge(&distribution),
            None => return Latency::default(),
        }
    }
    Latency::figures(&merged)
}

fn invariants_held(cell: &Cell) -> Option<bool> {
    if cell.rounds.iter().any(Round::is_violated) {
        return Some(false);
    }
    // A single one that couldn't be checked leaves the question open.
    let held = |round: &Round| {
        !round.invariants.is_empty() && round.invariants.iter().all(|invariant| invariant.held == Some(true))
    };
    (!cell.rounds.is_empty() && cell.rounds.iter().all(held)).then_some(true)
}

fn violations(cell: &Cell) -> u64 {
    cell.rounds.iter().map(Round::violations).fold(0, u64::saturating_add)
}
