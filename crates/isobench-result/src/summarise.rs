//! The summary of every cell, from its rounds and the plan's levels.
//!
//! Not here: which rounds count and which cells are compared (`rounds`), the answer that follows from
//! all summaries (`conclusions`), the arithmetic of intervals (`isobench_stats`), the wording (`text`).

mod compared;
mod finer;
mod flags;
mod observed;
mod sight;
mod within;

use std::panic::resume_unwind;
use std::thread;

use isobench_stats::{RoundLatencies, mean_interval};

use crate::document::{
    Cell, Document, Interval, IntervalSource, Latency, PercentileInterval, Resolution, Round, Summary,
    VerdictSummary,
};
use crate::rounds::{
    counted_ledger, counted_rounds, histograms, over_rounds, rate, reference_of, reported_script,
};

pub use compared::{between, common_rounds, pairs_of, ratio_of, resolution};
pub use finer::finer;
pub use flags::median;
pub(crate) use sight::is_of;
pub use sight::lost_between;

/// Fewer cells than this aren't worth a thread.
const FEWEST_CELLS: usize = 8;

/// The summary of every cell, and the precision of the ratios, if one was asked for.
pub(crate) fn summaries(document: &Document) -> (Vec<Summary>, Option<Resolution>) {
    let references: Vec<Option<usize>> =
        document.cells.iter().map(|cell| reference_of(document, cell)).collect();
    let ratios = compared::ratios(document, &references);
    let by_strategy = compared::strategy_ratios(document);
    let by_setting = compared::setting_ratios(document);
    let ratios = ratios.into_iter().zip(by_strategy).zip(by_setting);
    let summaries = within_cells(document).into_iter().zip(ratios);
    let summaries = summaries.map(|(summary, ((ratio, strategy_ratio), setting_ratio))| Summary {
        ratio,
        strategy_ratio,
        setting_ratio,
        ..summary
    });
    (summaries.collect(), document.resolution.map(|known| resolution(document, known.wanted)))
}

/// What follows from the rounds of each cell alone, on as many processors as there are.
fn within_cells(document: &Document) -> Vec<Summary> {
    let of = |cells: &[Cell]| cells.iter().map(|cell| summary_of(document, cell)).collect::<Vec<_>>();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = document.cells.len().div_ceil(threads).max(FEWEST_CELLS);
    thread::scope(|scope| {
        let (first, others) = document.cells.split_at(document.cells.len().min(share));
        let others: Vec<_> = others.chunks(share).map(|cells| scope.spawn(move || of(cells))).collect();
        let mut summaries = of(first);
        for part in others {
            summaries.extend(part.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        summaries
    })
}

fn summary_of(document: &Document, cell: &Cell) -> Summary {
    let rounds = counted_rounds(cell);
    let ledger = counted_ledger(cell);
    let attempts: Vec<f64> = rounds.iter().filter_map(|round| rate(round, round.attempts.started)).collect();
    let bins = within::bins(document, &rounds);
    let latencies = RoundLatencies::new(histograms(&rounds));
    let (violations, violations_unit) = violations(cell);
    Summary {
        tps: throughput(&rounds, &bins),
        ratio: None,
        strategy_ratio: None,
        setting_ratio: None,
        acknowledged_tps: acknowledged(&rounds),
        per_minute: reported_script(document, cell).and_then(|script| per_minute(&rounds, &script.name)),
        conflict_ratio: ledger.conflict_ratio(),
        attempts_per_s: mean_interval(&attempts).map(|estimate| estimate.mean),
        retries_per_transaction: ledger.retries_per_transaction(),
        wasted_share: ledger.wasted_share(),
        time_s: ledger.time,
        effective_samples: within::effective_samples(&bins),
        latency_ms: Latency::figures(latencies.merged()),
        percentiles: percentiles(&latencies),
        waits: observed::waits(&rounds),
        predicate_locks: observed::predicate_locks(&rounds),
        client_cpu_us: observed::client_cpu_us(&rounds),
        server_cpu_us: observed::server_cpu_us(&rounds),
        flags: flags::flags(document, cell, &rounds, &bins),
        invariants_held: invariants_held(cell),
        violations,
        violations_unit,
        verdict: VerdictSummary::of(
            &cell.rounds.iter().filter_map(|round| round.verdict.as_ref()).collect::<Vec<_>>(),
        )
        .map(|verdict| sight::with_limits(document, cell, verdict)),
        damage: lost_between(&cell.rounds).saturating_add(cell.wrong_outcomes().len() as u64),
        level_differs: cell.level.differs(),
        rounds: u32::try_from(cell.rounds.iter().filter(|round| round.complete).count()).unwrap_or(u32::MAX),
    }
}

/// Acknowledged transactions per second over the rounds; `None` if nothing was swallowed.
fn acknowledged(rounds: &[&Round]) -> Option<Interval> {
    rounds.iter().find(|round| round.transactions.swallowed > 0)?;
    let all = |round: &&&Round| round.transactions.committed.saturating_add(round.transactions.swallowed);
    let samples: Vec<f64> = rounds.iter().filter_map(|round| rate(round, all(&round))).collect();
    over_rounds(&samples)
}

/// The committed transactions of a script per minute over the rounds; `None` if no round counts it.
fn per_minute(rounds: &[&Round], name: &str) -> Option<Interval> {
    let committed = |round: &Round| {
        let script = round.scripts.iter().find(|script| script.name == name)?;
        Some(rate(round, script.transactions.committed)? * 60.0)
    };
    let samples: Vec<f64> = rounds.iter().filter_map(|round| committed(round)).collect();
    over_rounds(&samples)
}

/// Committed transactions per second: over the rounds, or, of a single one, from its own time
/// series.
fn throughput(rounds: &[&Round], bins: &[Vec<f64>]) -> Interval {
    let samples: Vec<f64> =
        rounds.iter().filter_map(|round| rate(round, round.transactions.committed)).collect();
    if let ([bins], [mean]) = (bins, samples.as_slice())
        && let Some((below, above)) = within::half_widths(bins)
    {
        let (low, high) = (Some((mean - below).max(0.0)), Some(mean + above));
        return Interval { mean: Some(*mean), low, high, source: IntervalSource::Batches };
    }
    over_rounds(&samples).unwrap_or_default()
}

/// The percentages that get an interval.
const PERCENTAGES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

fn percentiles(latencies: &RoundLatencies) -> Vec<PercentileInterval> {
    let one = |percent: f64| {
        let found = latencies.percentile(percent)?;
        Some(PercentileInterval { percent, ms: found.value, low: found.low, high: found.high })
    };
    PERCENTAGES.into_iter().filter_map(one).collect()
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

/// The violations of the first invariant that any round broke, and their unit: violations of several
/// are of different things.
fn violations(cell: &Cell) -> (u64, Option<String>) {
    let Some(first) = cell.rounds.iter().find_map(Round::violated) else { return (0, None) };
    let same = cell.rounds.iter().flat_map(|round| &round.invariants).filter(|one| one.name == first.name);
    (same.filter_map(|one| one.violations).fold(0, u64::saturating_add), first.unit.clone())
}
