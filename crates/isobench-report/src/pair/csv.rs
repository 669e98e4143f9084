//! A pair for spreadsheets and scripts: a line for each cell that both results have.
//!
//! What is also in the lines of a single result has the same title there.

use isobench_result::columns::assignments;
use isobench_result::{Factors, Figures, Pair, PairRatio, PairedCell};

use crate::csv::{line, number};

/// A figure of each side: its title (of a pair after "a_" or "b_"), and its value.
type FigureColumn = (&'static str, fn(&Figures) -> String);

/// A factor that cells are matched by: its title and its value.
type FactorColumn = (&'static str, fn(&Factors) -> String);

/// The factors.
pub static FACTOR_COLUMNS: [FactorColumn; 9] = [
    ("workload", |factors| factors.workload.clone()),
    ("scale", |factors| factors.scale.to_string()),
    ("clients", |factors| factors.clients.to_string()),
    ("protocol", |factors| factors.protocol.clone()),
    ("backoff", |factors| factors.backoff.clone()),
    ("rate", |factors| number(factors.rate)),
    ("strategy", |factors| factors.strategy.clone()),
    ("varied", |factors| assignments(&factors.varied)),
    ("level", |factors| factors.level.clone()),
];

/// The titles of [`ratio_fields`].
pub const RATIO_COLUMNS: [&str; 4] = ["ratio", "ratio_low", "ratio_high", "significant"];

/// The figures.
pub static FIGURE_COLUMNS: [FigureColumn; 15] = [
    ("rounds", |figures| figures.rounds.to_string()),
    ("tps", |figures| number(figures.tps.mean)),
    ("tps_low", |figures| number(figures.tps.low)),
    ("tps_high", |figures| number(figures.tps.high)),
    ("conflict_ratio", |figures| number(figures.conflict_ratio)),
    ("wasted_share", |figures| number(figures.wasted_share)),
    ("latency_p50_ms", |figures| number(figures.p50_ms)),
    ("latency_p95_ms", |figures| number(figures.p95_ms)),
    ("latency_p99_ms", |figures| number(figures.p99_ms)),
    ("server_cpu_us", |figures| number(figures.server_cpu_us)),
    ("client_cpu_us", |figures| number(figures.client_cpu_us)),
    ("invariants_held", |figures| optional(figures.invariants_held)),
    ("promise_kept", |figures| optional(figures.verdict_kept)),
    ("anomalies", |figures| optional(figures.anomalies)),
    ("anomalies_per_million", |figures| number(figures.anomalies_per_million)),
];

/// A ratio as [`RATIO_COLUMNS`] has it.
pub fn ratio_fields(ratio: Option<PairRatio>) -> [String; 4] {
    [
        number(ratio.map(|ratio| ratio.mean)),
        number(ratio.and_then(|ratio| ratio.low)),
        number(ratio.and_then(|ratio| ratio.high)),
        optional(ratio.map(|ratio| ratio.significant)),
    ]
}

/// Renders a line of comma-separated values for each cell that both have, titles first.
pub fn render(pair: &Pair) -> String {
    let factors = FACTOR_COLUMNS.iter().map(|(title, _)| (*title).to_owned());
    let sides = ["a", "b"].into_iter();
    let figures =
        sides.flat_map(|side| FIGURE_COLUMNS.iter().map(move |(title, _)| format!("{side}_{title}")));
    let mut text = line(factors.chain(RATIO_COLUMNS.map(str::to_owned)).chain(figures));
    for cell in &pair.cells {
        text += &line(fields(cell).into_iter());
    }
    text
}

fn fields(cell: &PairedCell) -> Vec<String> {
    let mut fields: Vec<String> = FACTOR_COLUMNS.iter().map(|(_, show)| show(&cell.factors)).collect();
    fields.extend(ratio_fields(cell.ratio));
    let sides = [&cell.a, &cell.b].into_iter();
    fields.extend(sides.flat_map(|side| FIGURE_COLUMNS.iter().map(|(_, show)| show(side))));
    fields
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
