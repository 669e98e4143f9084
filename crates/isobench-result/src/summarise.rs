//! From rounds to conclusions: the summary of every cell.
//!
//! Only reads the rounds and the plan's levels, so a saved result can be summarised again. Not
//! here: the arithmetic of intervals (`isobench_stats`) and the wording (`text`).

mod compared;
mod finer;
mod flags;
mod observed;
mod sight;
mod within;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

use isobench_stats::{LatencyHistogram, Ledger, RoundLatencies, mean_interval};

use crate::answer::given;
use crate::document::{
    Cell, Document, Interval, IntervalSource, Latency, PercentileInterval, PlannedScript, Resolution, Round,
    Summary, VerdictSummary,
};
use crate::factor::{Compared, Kind, alike, strategies_vary};
use crate::numbers::finite;

pub use compared::{FEWEST_FOR_INTERVALS, between, common_rounds, pairs_of, ratio_of, resolution};
pub use finer::finer;
pub use flags::median;
pub use sight::lost_between;

/// Fewer cells than this aren't worth a thread.
const FEWEST_CELLS: usize = 8;

/// Computes the summary of every cell from its rounds, and the answer.
///
/// A cell is summarised from its complete rounds; one that has none, from what it has, with 0 as
/// its number of rounds. The ratio compares committed transactions per second with the cell of the
/// plan's first level (or, in a plan without levels, the first cell) whose other factors are equal,
/// paired by the number of the round. So do the ratios to the first strategy and to the first
/// settings, at the same level.
pub fn summarise(document: &mut Document) {
    let (summaries, resolution) = conclusions(document);
    for (cell, summary) in document.cells.iter_mut().zip(summaries) {
        cell.summary = summary;
    }
    document.resolution = resolution;
    document.answer = Some(given(document));
}

/// The document with its conclusions, whatever it says; itself, if it says the same.
pub fn summarised(document: &Document) -> Cow<'_, Document> {
    let (summaries, resolution) = conclusions(document);
    let said = document.cells.iter().map(|cell| &cell.summary);
    if resolution == document.resolution && said.eq(&summaries) {
        return Cow::Borrowed(document);
    }
    let mut document = document.clone();
    for (cell, summary) in document.cells.iter_mut().zip(summaries) {
        cell.summary = summary;
    }
    document.resolution = resolution;
    document.answer = Some(given(&document));
    Cow::Owned(document)
}

/// The summary of every cell, and the precision of the ratios, if one was asked for.
fn conclusions(document: &Document) -> (Vec<Summary>, Option<Resolution>) {
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

/// The rounds that conclusions rest on.
pub fn counted_rounds(cell: &Cell) -> Vec<&Round> {
    let complete: Vec<&Round> = cell.rounds.iter().filter(|round| round.complete).collect();
    if complete.is_empty() { cell.rounds.iter().collect() } else { complete }
}

/// The sum of the accounts of those rounds.
pub fn counted_ledger(cell: &Cell) -> Ledger {
    counted_rounds(cell).iter().map(|round| round.ledger()).collect::<Vec<_>>().iter().sum()
}

/// The place of the cell that another one is compared with.
fn reference_of(document: &Document, cell: &Cell) -> Option<usize> {
    let first = document.plan.levels().first().copied();
    document.cells.iter().position(|other| {
        (first.is_none() || other.level.requested == first) && !other.calibration && same_factors(other, cell)
    })
}

/// Transactions that a cell was to make in all its rounds; `None` where time was measured instead.
pub fn planned(document: &Document, cell: &Cell) -> Option<u64> {
    let each = document.plan.transactions.filter(|_| document.plan.seconds().is_none())?;
    let rounds = u64::from(document.plan.rounds()).max(cell.rounds.len() as u64);
    Some(each.saturating_mul(cell.clients.into()).saturating_mul(rounds))
}

/// The share of the acknowledged transactions whose work is in the database, over all rounds;
/// `None` if the server acknowledged none.
pub fn kept_share(cell: &Cell) -> Option<f64> {
    let transactions = counted_ledger(cell).transactions;
    let acknowledged = transactions.committed.saturating_add(transactions.swallowed);
    (acknowledged > 0).then(|| transactions.committed as f64 / acknowledged as f64)
}

/// The place of the cell with whose strategy another one's is compared; `None` if the strategies
/// don't vary.
fn first_strategy_of(document: &Document, cell: &Cell) -> Option<usize> {
    let planned = document.workload.strategies.first().map(|strategy| strategy.name.as_str());
    let first =
        planned.or(document.cells.first().map(Cell::strategy)).filter(|_| strategies_vary(document))?;
    document.cells.iter().position(|other| {
        other.strategy() == first
            && other.level.is_as_asked(&cell.level)
            && !other.calibration
            && same_but_strategy(other, cell)
    })
}

/// The settings of a cell that the plan varies, the version or programs of its server, its standbys, and
/// what happens to it.
fn server_side(cell: &Cell) -> BTreeMap<&String, &String> {
    let of_server = |name: &str| Kind::of_varied(name).compared == Compared::ToFirstSetting;
    cell.varied.iter().filter(|(name, _)| of_server(name)).collect()
}

/// The name of a cell's settings: "off" if one is varied, "off, replica" if there are two.
pub fn settings_name(cell: &Cell) -> String {
    server_side(cell).into_values().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The place of the cell with whose settings another one's are compared, those of the plan's first
/// cell; `None` if settings don't vary.
fn first_setting_of(document: &Document, cell: &Cell) -> Option<usize> {
    let first = server_side(document.cells.first()?);
    document.cells.iter().find(|other| server_side(other) != first)?;
    document.cells.iter().position(|other| {
        server_side(other) == first
            && other.level.is_as_asked(&cell.level)
            && !other.calibration
            && same_but_settings(other, cell)
    })
}

/// True if two cells differ in nothing but level, and settings, version or programs of the server.
fn same_but_settings(one: &Cell, other: &Cell) -> bool {
    alike(one, other, &[Compared::ToFirstLevel, Compared::ToFirstSetting])
}

/// True if two cells differ in nothing but their levels.
pub fn same_factors(one: &Cell, other: &Cell) -> bool {
    alike(one, other, &[Compared::ToFirstLevel])
}

/// True if two cells differ in nothing but level and strategy.
fn same_but_strategy(one: &Cell, other: &Cell) -> bool {
    alike(one, other, &[Compared::ToFirstLevel, Compared::ToFirstStrategy])
}

/// The cells, those together that differ in nothing but their levels, otherwise in the document's
/// order.
pub fn groups(document: &Document) -> Vec<Vec<&Cell>> {
    grouped(&document.cells, same_factors)
}

/// The cells, those together among which an application may choose: they differ in nothing but
/// level and strategy.
pub fn choices(document: &Document) -> Vec<Vec<&Cell>> {
    grouped(&document.cells, same_but_strategy)
}

/// The cells in groups of those that are the same, each in the order in which its first comes.
pub fn grouped<'a>(
    cells: impl IntoIterator<Item = &'a Cell>,
    same: fn(&Cell, &Cell) -> bool,
) -> Vec<Vec<&'a Cell>> {
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in cells {
        match groups.iter_mut().find(|group| same(group[0], cell)) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
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

/// The script of a cell's workload whose committed transactions per minute are reported.
pub fn reported_script<'d>(document: &'d Document, cell: &Cell) -> Option<&'d PlannedScript> {
    let workload = &document.workload;
    let of_strategies = workload.strategies.iter().flat_map(|strategy| &strategy.scripts);
    let mut all = workload.scripts.iter().chain(of_strategies);
    let its = |script: &&PlannedScript| script.workload.is_empty() || script.workload == cell.workload;
    all.find(|script| script.per_minute.is_some() && its(script))
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

/// The mean of a rate over the rounds, with its interval if they are enough for one.
pub fn over_rounds(samples: &[f64]) -> Option<Interval> {
    let estimate = mean_interval(samples)?;
    let enough = samples.len() >= FEWEST_FOR_INTERVALS;
    Some(Interval {
        mean: Some(estimate.mean),
        // Few rounds that scatter widely give an interval that reaches below zero, where no rate lies.
        low: estimate.low.filter(|_| enough).map(|low| low.max(0.0)),
        high: estimate.high.filter(|_| enough),
        source: IntervalSource::Rounds,
    })
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

/// A count per second of a round.
pub fn rate(round: &Round, count: u64) -> Option<f64> {
    finite(count as f64 / round.seconds).filter(|rate| *rate >= 0.0)
}

/// The latencies of the rounds in which anything committed. If one of them is missing there are
/// none, for the rest isn't the same population.
pub fn histograms<'a>(rounds: &[&'a Round]) -> Vec<&'a LatencyHistogram> {
    let committing = rounds.iter().filter(|round| round.transactions.committed > 0);
    let found: Option<Vec<&LatencyHistogram>> =
        committing.map(|round| Some(round.latency_ms.histogram.as_ref()?.histogram())).collect();
    found.unwrap_or_default()
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
