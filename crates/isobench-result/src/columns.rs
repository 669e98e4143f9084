//! The columns of a result's tables: a line for each round, and one for each bin of its time series.
//!
//! A name has the same meaning in each, and is that of the document's field, joined by `_`. Not
//! here: the formats, and the tables of a report, which have a line for each cell (`view`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use isobench_stats::seconds;

use crate::document::{Cell, Document, Round, Series, Verdict};
use crate::factor::{self, FactorId, Kind};
use crate::figure::{FIGURES, Figure, OfRound};

/// A place in a result that a table may have a line for.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The result.
    pub document: &'a Document,
    /// The number of the cell in it, from 0.
    pub number: usize,
    /// The cell.
    pub cell: &'a Cell,
    /// The round of the cell.
    pub round: &'a Round,
    /// The bin of the round's time series, from 0; 0 in tables of whole rounds.
    pub bin: usize,
}

/// The type of a column's values, and where they come from. `None` is a value that doesn't exist.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// Words.
    Text(fn(&Place<'_>) -> Option<String>),
    /// Words of the cell, always there.
    Word(fn(&Cell) -> Cow<'_, str>),
    /// A whole number, not negative.
    Count(Of<u64>),
    /// A number with a fraction; a unit is in the column's name.
    Number(Of<f64>),
    /// True or false.
    Flag(fn(&Place<'_>) -> Option<bool>),
    /// An instant, RFC 3339.
    Instant(fn(&Place<'_>) -> Option<String>),
}

/// Where a number comes from.
#[derive(Debug, Clone, Copy)]
pub enum Of<T> {
    /// The place.
    Place(fn(&Place<'_>) -> Option<T>),
    /// Its cell alone.
    Cell(fn(&Cell) -> Option<T>),
    /// The same, which every cell has.
    EachCell(fn(&Cell) -> T),
    /// Its round alone.
    Round(fn(&Round) -> Option<T>),
    /// The same, which every round has.
    EachRound(fn(&Round) -> T),
}

impl<T> Of<T> {
    /// The value at a place.
    pub fn at(&self, place: &Place<'_>) -> Option<T> {
        match self {
            Of::Place(of) => of(place),
            Of::Cell(of) => of(place.cell),
            Of::EachCell(of) => Some(of(place.cell)),
            Of::Round(of) => of(place.round),
            Of::EachRound(of) => Some(of(place.round)),
        }
    }
}

use Values::{Flag, Instant, Text};

/// A count of a place.
const fn count(of: fn(&Place<'_>) -> Option<u64>) -> Values {
    Values::Count(Of::Place(of))
}

/// A number of a place.
const fn number(of: fn(&Place<'_>) -> Option<f64>) -> Values {
    Values::Number(Of::Place(of))
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its title.
    pub name: &'static str,
    /// Its values.
    pub values: Values,
    /// True if every line has a value.
    pub always: bool,
}

/// A column with a value in every line.
const fn always(name: &'static str, values: Values) -> Column {
    Column { name, values, always: true }
}

/// A column whose values may be missing.
const fn maybe(name: &'static str, values: Values) -> Column {
    Column { name, values, always: false }
}

/// What a line is of, in a database of many results: the result's start, and the cell in it.
static KEYS: [Column; 2] = [
    maybe("started_at", Instant(|place| place.document.started_at.clone())),
    always("cell", count(|place| Some(place.number as u64))),
];

/// What was measured.
static SERVER: [Column; 3] = [
    always("product", Text(|place| Some(place.document.server.product.clone()))),
    always("server_version", Text(|place| Some(place.document.server_of(place.cell).version.clone()))),
    always("measurement_version", count(|place| Some(place.document.measurement_version.into()))),
];

/// What of a cell is no member of the table of factors, and the round's number.
static VARIED: [Column; 2] = [
    always("varied", Text(|place| Some(varied(place.cell)))),
    always("calibration", Flag(|place| Some(place.cell.calibration))),
];
static LEVEL: [Column; 2] = [
    always("level_effective", Text(|place| Some(place.cell.level.effective.to_string()))),
    always("round", count(|place| Some(place.round.round.into()))),
];

/// The factors of a cell, and the round's number. The level comes last.
fn factors() -> impl Iterator<Item = Column> {
    let member = |kind: &Kind| match kind.of {
        factor::Of::Text(of) => Some(always(kind.name, Values::Word(of))),
        factor::Of::Count(of) => Some(always(kind.name, Values::Count(Of::EachCell(of)))),
        factor::Of::Number(of) => Some(maybe(kind.name, Values::Number(Of::Cell(of)))),
        factor::Of::Varied | factor::Of::VariedFrom => None,
    };
    let (level, others): (Vec<&Kind>, Vec<&Kind>) =
        Kind::members().partition(|kind| kind.id == FactorId::Level);
    let others = others.into_iter().filter_map(member).chain(VARIED);
    others.chain(level.into_iter().filter_map(member)).chain(LEVEL)
}

/// A column of what a round was: its own, or a figure.
#[derive(Clone, Copy)]
enum RoundColumn {
    Own(Column),
    Figure(&'static str),
}

/// What a round was. Figures that aren't here come after these.
static ROUND: &[RoundColumn] = &[
    RoundColumn::Own(maybe("order", count(|place| place.round.order.map(u64::from)))),
    RoundColumn::Own(always("complete", Flag(|place| Some(place.round.complete)))),
    RoundColumn::Own(always("seconds", number(|place| Some(place.round.seconds)))),
    RoundColumn::Figure("tps"),
    RoundColumn::Own(always("attempts_started", count(|place| Some(place.round.attempts.started)))),
    RoundColumn::Own(always("attempts_committed", count(|place| Some(place.round.attempts.committed)))),
    RoundColumn::Own(always("attempts_retried", count(|place| Some(place.round.attempts.retried)))),
    RoundColumn::Own(always("attempts_given_up", count(|place| Some(place.round.attempts.given_up)))),
    RoundColumn::Own(always("attempts_swallowed", count(|place| Some(place.round.attempts.swallowed)))),
    RoundColumn::Own(always("attempts_rolled_back", count(|place| Some(place.round.attempts.rolled_back)))),
    RoundColumn::Own(always("attempts_ambiguous", count(|place| Some(place.round.attempts.ambiguous)))),
    RoundColumn::Own(always("attempts_cut_off", count(|place| Some(place.round.attempts.cut_off)))),
    RoundColumn::Own(always("attempts_errored", count(|place| Some(place.round.attempts.errored)))),
    RoundColumn::Own(always("transactions_total", count(|place| Some(place.round.transactions.total)))),
    RoundColumn::Own(always(
        "transactions_committed",
        count(|place| Some(place.round.transactions.committed)),
    )),
    RoundColumn::Figure("transactions_given_up"),
    RoundColumn::Figure("transactions_swallowed"),
    RoundColumn::Own(always(
        "transactions_rolled_back",
        count(|place| Some(place.round.transactions.rolled_back)),
    )),
    RoundColumn::Own(always(
        "transactions_ambiguous",
        count(|place| Some(place.round.transactions.ambiguous)),
    )),
    RoundColumn::Own(always("transactions_cut_off", count(|place| Some(place.round.transactions.cut_off)))),
    RoundColumn::Own(always("transactions_errored", count(|place| Some(place.round.transactions.errored)))),
    RoundColumn::Own(always("transactions_skipped", count(|place| Some(place.round.transactions.skipped)))),
    RoundColumn::Own(always("conflicts", count(|place| Some(place.round.ledger().conflicts)))),
    RoundColumn::Own(always("useful_s", number(|place| Some(seconds(place.round.time_s.useful))))),
    RoundColumn::Own(always("wasted_s", number(|place| Some(seconds(place.round.time_s.wasted))))),
    RoundColumn::Own(always("backoff_s", number(|place| Some(seconds(place.round.time_s.backoff))))),
    RoundColumn::Own(always("waiting_s", number(|place| Some(seconds(place.round.time_s.waiting))))),
    RoundColumn::Figure("latency_mean_ms"),
    RoundColumn::Own(maybe("latency_stddev_ms", number(|place| place.round.latency_ms.stddev))),
    RoundColumn::Figure("latency_p50_ms"),
    RoundColumn::Figure("latency_p90_ms"),
    RoundColumn::Figure("latency_p95_ms"),
    RoundColumn::Figure("latency_p99_ms"),
    RoundColumn::Figure("latency_p999_ms"),
    RoundColumn::Figure("latency_p9999_ms"),
    RoundColumn::Own(maybe("latency_max_ms", number(|place| place.round.latency_ms.max))),
    RoundColumn::Own(maybe("late", count(|place| place.round.late))),
    RoundColumn::Own(maybe("invariants_held", Flag(|place| invariants_held(place.round)))),
    RoundColumn::Figure("violations"),
    RoundColumn::Own(maybe(
        "violations_unit",
        Text(|place| place.round.violated().and_then(|invariant| invariant.unit.clone())),
    )),
    RoundColumn::Own(maybe("promised", Text(|place| verdict(place, |verdict| verdict.promised.clone())))),
    RoundColumn::Own(maybe("promise_kept", Flag(|place| verdict(place, |verdict| verdict.kept)))),
    RoundColumn::Own(maybe(
        "not_contradicted",
        Text(|place| verdict(place, |verdict| Some(verdict.not_contradicted.join("; ")))),
    )),
    RoundColumn::Figure("anomalies"),
    RoundColumn::Own(always("errors", count(|place| Some(place.round.errors.len() as u64)))),
    RoundColumn::Own(maybe("client_cpu_s", number(|place| place.round.client_cpu_s))),
    RoundColumn::Own(maybe("connect_s", number(|place| place.round.connect_s))),
    RoundColumn::Own(maybe(
        "client_busiest",
        number(|place| place.round.client.map(|client| client.busiest)),
    )),
    RoundColumn::Own(maybe(
        "client_share_of_cores",
        number(|place| place.round.client.map(|client| client.share_of_cores)),
    )),
    RoundColumn::Own(maybe(
        "client_lag_p99_ms",
        number(|place| place.round.client.and_then(|client| client.lag_p99_ms)),
    )),
    RoundColumn::Own(maybe(
        "server_cpu_s",
        number(|place| {
            place.round.server.as_ref().and_then(|server| server.processes).map(|processes| processes.cpu_s)
        }),
    )),
    RoundColumn::Figure("predicate_locks"),
    RoundColumn::Own(maybe("warmup_s", number(|place| place.round.warmup.map(|warmup| warmup.seconds)))),
    RoundColumn::Own(maybe(
        "warmup_steady",
        Flag(|place| place.round.warmup.and_then(|warmup| warmup.steady)),
    )),
];

/// The columns of a round: those above, and the other figures that rounds have.
fn of_rounds() -> impl Iterator<Item = Column> {
    let is_placed = |name: &str| {
        ROUND.iter().any(|column| matches!(column, RoundColumn::Figure(placed) if *placed == name))
    };
    let placed = ROUND.iter().map(|column| match column {
        RoundColumn::Own(column) => Some(*column),
        RoundColumn::Figure(name) => of_figure(Figure::known(name)),
    });
    let others = FIGURES.iter().filter(move |figure| !is_placed(figure.name)).map(of_figure);
    placed.chain(others).flatten()
}

/// The column of a figure, if rounds have it.
fn of_figure(figure: &'static Figure) -> Option<Column> {
    let name = figure.name;
    figure.of_round.map(|of| match of {
        OfRound::Number(of) => maybe(name, Values::Number(Of::Round(of))),
        OfRound::Count(of) => maybe(name, Values::Count(Of::Round(of))),
        OfRound::Total(of) => always(name, Values::Count(Of::EachRound(of))),
    })
}

/// The counts in a bin of the time series.
static BIN: [Column; 6] = [
    always("bin", count(|place| Some(place.bin as u64))),
    always("bin_s", number(|place| series(place).map(|series| series.bin_s))),
    always("committed", count(|place| series(place)?.committed.get(place.bin).copied())),
    maybe("attempts", count(|place| series(place)?.attempts.get(place.bin).copied())),
    maybe("conflicts", count(|place| series(place)?.conflicts.get(place.bin).copied())),
    maybe("latency_sum_ms", number(|place| series(place)?.latency_sum_ms.get(place.bin).copied())),
];

/// The columns of the lines of CSV, one for each round.
pub fn csv_columns() -> impl Iterator<Item = Column> {
    SERVER.iter().copied().chain(factors()).chain(of_rounds())
}

/// The first columns of each exported table: the cell and the round that it belongs to.
pub fn place_columns() -> impl Iterator<Item = Column> {
    KEYS.iter().copied().chain(factors())
}

/// The columns of the table of rounds: those of CSV after the keys.
pub fn round_columns() -> impl Iterator<Item = Column> {
    KEYS.iter().copied().chain(csv_columns())
}

/// The columns of the table of the rounds' time series.
pub fn series_columns() -> impl Iterator<Item = Column> {
    place_columns().chain(BIN.iter().copied())
}

/// The rounds of a result in their order, each with its place.
pub fn rounds(document: &Document) -> impl Iterator<Item = Place<'_>> {
    document.cells.iter().enumerate().flat_map(move |(number, cell)| {
        cell.rounds.iter().map(move |round| Place { document, number, cell, round, bin: 0 })
    })
}

/// The bins of all rounds' time series.
pub fn bins(document: &Document) -> impl Iterator<Item = Place<'_>> {
    rounds(document).flat_map(|place| {
        let count = series(&place).map_or(0, |series| series.committed.len());
        (0..count).map(move |bin| Place { bin, ..place })
    })
}

fn series<'a>(place: &Place<'a>) -> Option<&'a Series> {
    place.round.series.as_ref()
}

/// The parameters of a cell that the plan varies.
pub fn varied(cell: &Cell) -> String {
    assignments(&cell.varied)
}

/// Names with their values: "foreign-keys=on;rows=1000".
pub fn assignments(values: &BTreeMap<String, String>) -> String {
    values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
}

/// `None` if no history was recorded.
fn verdict<T>(place: &Place<'_>, show: fn(&Verdict) -> Option<T>) -> Option<T> {
    place.round.verdict.as_ref().and_then(show)
}

/// `None` if there was nothing to check, or not everything could be.
fn invariants_held(round: &Round) -> Option<bool> {
    if round.is_violated() {
        return Some(false);
    }
    let held = round.invariants.iter().all(|invariant| invariant.held == Some(true));
    (held && !round.invariants.is_empty()).then_some(true)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        for columns in [round_columns().collect::<Vec<_>>(), series_columns().collect()] {
            let names: BTreeSet<_> = columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), columns.len());
        }
    }
}
