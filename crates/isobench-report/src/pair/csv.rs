//! A pair for spreadsheets and scripts: a line for each cell that both results have.
//!
//! What is also in the lines of a single result has the same title there.

use isobench_result::columns::assignments;
use isobench_result::factor::{Assignment, FactorId, Kind};
use isobench_result::figure::Value;
use isobench_result::{Figures, Pair, PairRatio, PairedCell};

use crate::csv::{line, number};

/// A field of a side, whose title a pair has after "a_" or "b_".
enum SideColumn {
    /// A figure.
    Figure(&'static str),
    /// An end of a figure's interval: its title, the figure, the end.
    End(&'static str, &'static str, fn(Value) -> Option<f64>),
    /// Something else: its title, its value.
    Own(&'static str, fn(&Figures) -> String),
}

/// The titles of [`factor_fields`].
fn factor_titles() -> Vec<&'static str> {
    let (level, others) = matched();
    others.iter().map(|kind| kind.name).chain(["varied"]).chain(level.iter().map(|kind| kind.name)).collect()
}

/// The factors that cells are matched by; the level comes last.
fn factor_fields(cell: &Assignment) -> Vec<String> {
    let (level, others) = matched();
    let values = |kinds: Vec<&Kind>| kinds.into_iter().map(|kind| cell.text(kind.id)).collect::<Vec<_>>();
    [values(others), vec![assignments(cell.varied())], values(level)].concat()
}

fn matched() -> (Vec<&'static Kind>, Vec<&'static Kind>) {
    Kind::members().filter(|kind| kind.matched).partition(|kind| kind.id == FactorId::Level)
}

/// The titles of [`ratio_fields`].
const RATIO_COLUMNS: [&str; 4] = ["ratio", "ratio_low", "ratio_high", "significant"];

/// The figures of a side, and what else is known of it.
static SIDE_COLUMNS: [SideColumn; 15] = [
    SideColumn::Own("rounds", |figures| figures.rounds.to_string()),
    SideColumn::Figure("tps"),
    SideColumn::End("tps_low", "tps", |value| value.low),
    SideColumn::End("tps_high", "tps", |value| value.high),
    SideColumn::Figure("conflict_ratio"),
    SideColumn::Figure("wasted_share"),
    SideColumn::Figure("latency_p50_ms"),
    SideColumn::Figure("latency_p95_ms"),
    SideColumn::Figure("latency_p99_ms"),
    SideColumn::Figure("server_cpu_us"),
    SideColumn::Figure("client_cpu_us"),
    SideColumn::Own("invariants_held", |figures| optional(figures.invariants_held)),
    SideColumn::Own("promise_kept", |figures| optional(figures.verdict_kept)),
    SideColumn::Figure("anomalies"),
    SideColumn::Figure("anomalies_per_million"),
];

impl SideColumn {
    /// Its title.
    fn title(&self) -> &'static str {
        match self {
            SideColumn::Figure(title) | SideColumn::End(title, ..) | SideColumn::Own(title, _) => title,
        }
    }

    /// Its value.
    fn field(&self, figures: &Figures) -> String {
        match self {
            SideColumn::Figure(name) => number(figures.number(name)),
            SideColumn::End(_, name, end) => number(figures.value(name).and_then(end)),
            SideColumn::Own(_, show) => show(figures),
        }
    }
}

/// A ratio as [`RATIO_COLUMNS`] has it.
fn ratio_fields(ratio: Option<PairRatio>) -> [String; 4] {
    [
        number(ratio.map(|ratio| ratio.mean)),
        number(ratio.and_then(|ratio| ratio.low)),
        number(ratio.and_then(|ratio| ratio.high)),
        optional(ratio.map(|ratio| ratio.significant)),
    ]
}

/// Renders a line of comma-separated values for each cell that both have, titles first.
pub fn render(pair: &Pair) -> String {
    let factors = factor_titles().into_iter().map(str::to_owned);
    let sides = ["a", "b"].into_iter();
    let figures =
        sides.flat_map(|side| SIDE_COLUMNS.iter().map(move |column| format!("{side}_{}", column.title())));
    let mut text = line(factors.chain(RATIO_COLUMNS.map(str::to_owned)).chain(figures));
    for cell in &pair.cells {
        text += &line(fields(cell).into_iter());
    }
    text
}

fn fields(cell: &PairedCell) -> Vec<String> {
    let mut fields = factor_fields(&cell.factors);
    fields.extend(ratio_fields(cell.ratio));
    let sides = [&cell.a, &cell.b].into_iter();
    fields.extend(sides.flat_map(|side| SIDE_COLUMNS.iter().map(|column| column.field(side))));
    fields
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
