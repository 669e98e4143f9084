//! What conclusions rest on: the rounds of a cell that count, and the cells that are compared with each other.

use std::collections::BTreeMap;

use isobench_stats::{LatencyHistogram, Ledger, mean_interval};

use crate::document::{Cell, Document, Interval, IntervalSource, PlannedScript, Round};
use crate::factor::{Compared, Kind, alike, strategies_vary};
use crate::numbers::finite;

/// With fewer rounds than this nothing is said about how sure a number is: the interval of two has a
/// quantile of 12.7, and spans factors of thousands.
pub const FEWEST_FOR_INTERVALS: usize = 3;

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
pub fn reference_of(document: &Document, cell: &Cell) -> Option<usize> {
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
pub fn first_strategy_of(document: &Document, cell: &Cell) -> Option<usize> {
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
pub fn first_setting_of(document: &Document, cell: &Cell) -> Option<usize> {
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
pub fn same_but_settings(one: &Cell, other: &Cell) -> bool {
    alike(one, other, &[Compared::ToFirstLevel, Compared::ToFirstSetting])
}

/// True if two cells differ in nothing but their levels.
pub fn same_factors(one: &Cell, other: &Cell) -> bool {
    alike(one, other, &[Compared::ToFirstLevel])
}

/// True if two cells differ in nothing but level and strategy.
pub fn same_but_strategy(one: &Cell, other: &Cell) -> bool {
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

/// The script of a cell's workload whose committed transactions per minute are reported.
pub fn reported_script<'d>(document: &'d Document, cell: &Cell) -> Option<&'d PlannedScript> {
    let workload = &document.workload;
    let of_strategies = workload.strategies.iter().flat_map(|strategy| &strategy.scripts);
    let mut all = workload.scripts.iter().chain(of_strategies);
    let its = |script: &&PlannedScript| script.workload.is_empty() || script.workload == cell.workload;
    all.find(|script| script.per_minute.is_some() && its(script))
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
