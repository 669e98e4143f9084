//! The columns of a result's tables: a line for each round (CSV, Parquet), and one for each bin of
//! its time series (Parquet).
//!
//! A name has the same meaning in each, and is that of the document's field, joined by `_`. Not
//! here: the formats, and the tables of a report, which have a line for each cell (`view`).

use std::collections::BTreeMap;

use isobench_stats::seconds;

use crate::document::{Cell, Document, Round, Series, ServerSide, Verdict};

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
    /// A whole number, not negative.
    Count(fn(&Place<'_>) -> Option<u64>),
    /// A number with a fraction; a unit is in the column's name.
    Number(fn(&Place<'_>) -> Option<f64>),
    /// True or false.
    Flag(fn(&Place<'_>) -> Option<bool>),
    /// An instant, RFC 3339.
    Instant(fn(&Place<'_>) -> Option<String>),
}

use Values::{Count, Flag, Instant, Number, Text};

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
    always("cell", Count(|place| Some(place.number as u64))),
];

/// What was measured.
static SERVER: [Column; 3] = [
    always("product", Text(|place| Some(place.document.server.product.clone()))),
    always("server_version", Text(|place| Some(place.document.server_of(place.cell).version.clone()))),
    always("measurement_version", Count(|place| Some(place.document.measurement_version.into()))),
];

/// The factors of a cell, and the round's number.
static FACTORS: [Column; 13] = [
    always("workload", Text(|place| Some(place.cell.workload.clone()))),
    always("scale", Count(|place| Some(place.cell.scale.into()))),
    always("clients", Count(|place| Some(place.cell.clients.into()))),
    always("jobs", Count(|place| Some(place.cell.jobs.into()))),
    always("protocol", Text(|place| Some(place.cell.protocol.clone()))),
    always("backoff", Text(|place| Some(place.cell.backoff.clone()))),
    maybe("rate", Number(|place| place.cell.rate)),
    always("strategy", Text(|place| Some(place.cell.strategy().to_owned()))),
    always("varied", Text(|place| Some(varied(place.cell)))),
    always("calibration", Flag(|place| Some(place.cell.calibration))),
    always("level", Text(|place| Some(place.cell.level.name()))),
    always("level_effective", Text(|place| Some(place.cell.level.effective.to_string()))),
    always("round", Count(|place| Some(place.round.round.into()))),
];

/// The figures of a round.
static FIGURES: [Column; 54] = [
    maybe("order", Count(|place| place.round.order.map(u64::from))),
    always("complete", Flag(|place| Some(place.round.complete))),
    always("seconds", Number(|place| Some(place.round.seconds))),
    maybe("tps", Number(|place| place.round.tps)),
    always("attempts_started", Count(|place| Some(place.round.attempts.started))),
    always("attempts_committed", Count(|place| Some(place.round.attempts.committed))),
    always("attempts_retried", Count(|place| Some(place.round.attempts.retried))),
    always("attempts_given_up", Count(|place| Some(place.round.attempts.given_up))),
    always("attempts_swallowed", Count(|place| Some(place.round.attempts.swallowed))),
    always("attempts_rolled_back", Count(|place| Some(place.round.attempts.rolled_back))),
    always("attempts_ambiguous", Count(|place| Some(place.round.attempts.ambiguous))),
    always("attempts_cut_off", Count(|place| Some(place.round.attempts.cut_off))),
    always("attempts_errored", Count(|place| Some(place.round.attempts.errored))),
    always("transactions_total", Count(|place| Some(place.round.transactions.total))),
    always("transactions_committed", Count(|place| Some(place.round.transactions.committed))),
    always("transactions_given_up", Count(|place| Some(place.round.transactions.given_up))),
    always("transactions_swallowed", Count(|place| Some(place.round.transactions.swallowed))),
    always("transactions_rolled_back", Count(|place| Some(place.round.transactions.rolled_back))),
    always("transactions_ambiguous", Count(|place| Some(place.round.transactions.ambiguous))),
    always("transactions_cut_off", Count(|place| Some(place.round.transactions.cut_off))),
    always("transactions_errored", Count(|place| Some(place.round.transactions.errored))),
    always("transactions_skipped", Count(|place| Some(place.round.transactions.skipped))),
    always("conflicts", Count(|place| Some(place.round.ledger().conflicts))),
    always("useful_s", Number(|place| Some(seconds(place.round.time_s.useful)))),
    always("wasted_s", Number(|place| Some(seconds(place.round.time_s.wasted)))),
    always("backoff_s", Number(|place| Some(seconds(place.round.time_s.backoff)))),
    always("waiting_s", Number(|place| Some(seconds(place.round.time_s.waiting)))),
    maybe("latency_mean_ms", Number(|place| place.round.latency_ms.mean)),
    maybe("latency_stddev_ms", Number(|place| place.round.latency_ms.stddev)),
    maybe("latency_p50_ms", Number(|place| place.round.latency_ms.p50)),
    maybe("latency_p90_ms", Number(|place| place.round.latency_ms.p90)),
    maybe("latency_p95_ms", Number(|place| place.round.latency_ms.p95)),
    maybe("latency_p99_ms", Number(|place| place.round.latency_ms.p99)),
    maybe("latency_p999_ms", Number(|place| place.round.latency_ms.p999)),
    maybe("latency_p9999_ms", Number(|place| place.round.latency_ms.p9999)),
    maybe("latency_max_ms", Number(|place| place.round.latency_ms.max)),
    maybe("late", Count(|place| place.round.late)),
    maybe("invariants_held", Flag(|place| invariants_held(place.round))),
    always("violations", Count(|place| Some(place.round.violations()))),
    maybe(
        "violations_unit",
        Text(|place| place.round.violated().and_then(|invariant| invariant.unit.clone())),
    ),
    maybe("promised", Text(|place| verdict(place, |verdict| verdict.promised.clone()))),
    maybe("promise_kept", Flag(|place| verdict(place, |verdict| verdict.kept))),
    maybe(
        "not_contradicted",
        Text(|place| verdict(place, |verdict| Some(verdict.not_contradicted.join("; ")))),
    ),
    maybe("anomalies", Count(|place| verdict(place, |verdict| Some(verdict.anomalous())))),
    always("errors", Count(|place| Some(place.round.errors.len() as u64))),
    maybe("client_cpu_s", Number(|place| place.round.client_cpu_s)),
    maybe("connect_s", Number(|place| place.round.connect_s)),
    maybe("client_busiest", Number(|place| place.round.client.map(|client| client.busiest))),
    maybe("client_share_of_cores", Number(|place| place.round.client.map(|client| client.share_of_cores))),
    maybe("client_lag_p99_ms", Number(|place| place.round.client.and_then(|client| client.lag_p99_ms))),
    maybe(
        "server_cpu_s",
        Number(|place| {
            place.round.server.as_ref().and_then(|server| server.processes).map(|processes| processes.cpu_s)
        }),
    ),
    maybe(
        "predicate_locks",
        Count(|place| place.round.server.as_ref().and_then(ServerSide::most_predicate_locks)),
    ),
    maybe("warmup_s", Number(|place| place.round.warmup.map(|warmup| warmup.seconds))),
    maybe("warmup_steady", Flag(|place| place.round.warmup.and_then(|warmup| warmup.steady))),
];

/// The counts in a bin of the time series.
static BIN: [Column; 6] = [
    always("bin", Count(|place| Some(place.bin as u64))),
    always("bin_s", Number(|place| series(place).map(|series| series.bin_s))),
    always("committed", Count(|place| series(place)?.committed.get(place.bin).copied())),
    maybe("attempts", Count(|place| series(place)?.attempts.get(place.bin).copied())),
    maybe("conflicts", Count(|place| series(place)?.conflicts.get(place.bin).copied())),
    maybe("latency_sum_ms", Number(|place| series(place)?.latency_sum_ms.get(place.bin).copied())),
];

/// The columns of the lines of CSV, one for each round.
pub fn csv_columns() -> impl Iterator<Item = &'static Column> {
    SERVER.iter().chain(&FACTORS).chain(&FIGURES)
}

/// What a line of any table in Parquet begins with: the cell and the round that it belongs to.
pub fn place_columns() -> impl Iterator<Item = &'static Column> {
    KEYS.iter().chain(&FACTORS)
}

/// The columns of the table of rounds: those of CSV after the keys.
pub fn round_columns() -> impl Iterator<Item = &'static Column> {
    KEYS.iter().chain(csv_columns())
}

/// The columns of the table of the rounds' time series.
pub fn series_columns() -> impl Iterator<Item = &'static Column> {
    place_columns().chain(&BIN)
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
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The saved results of the golden tests.
    fn examples() -> Vec<Document> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isobench-report/tests/golden");
        let files = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        let results = files.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
        let read = |path| Document::from_json(fs::read(path).expect("a file"));
        results.filter_map(|path| read(path).ok()).collect()
    }

    fn is_missing(column: &Column, place: &Place<'_>) -> bool {
        match column.values {
            Text(value) | Instant(value) => value(place).is_none(),
            Count(value) => value(place).is_none(),
            Number(value) => value(place).is_none(),
            Flag(value) => value(place).is_none(),
        }
    }

    #[test]
    fn what_is_always_there_is_there_and_the_rest_is_missing_somewhere() {
        let examples = examples();
        let mut sometimes = BTreeSet::new();
        let mut lines = 0;
        for document in &examples {
            let rounds = rounds(document).map(|place| (round_columns().collect::<Vec<_>>(), place));
            let bins = bins(document).map(|place| (series_columns().collect::<Vec<_>>(), place));
            for (columns, place) in rounds.chain(bins) {
                lines += 1;
                for column in columns.into_iter().filter(|column| is_missing(column, &place)) {
                    assert!(!column.always, "{} is missing", column.name);
                    sometimes.insert(column.name);
                }
            }
        }
        assert!(lines > 50, "{lines} lines in {} examples", examples.len());
        for name in ["rate", "late", "promise_kept"] {
            assert!(sometimes.contains(name), "{name} is in every line of {sometimes:?}");
        }
    }

    #[test]
    fn names_are_unique() {
        for columns in [round_columns().collect::<Vec<_>>(), series_columns().collect()] {
            let names: BTreeSet<_> = columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), columns.len());
        }
    }
}
