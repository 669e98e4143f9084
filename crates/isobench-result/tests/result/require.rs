//! Thresholds: which values they are compared with, and what never passes.

use isobench_result::figure::OfCell;
use isobench_result::{
    Cell, Document, FIGURES, Figure, Interval, PercentileInterval, RequirementResult, Wanted, judge,
    requirement_lines, summarise,
};

use crate::examples::{self, example};

fn judged(document: &Document, text: &str) -> RequirementResult {
    let requirement = text.parse().unwrap_or_else(|error| panic!("{error}"));
    judge(document, &[requirement]).remove(0)
}

fn value(document: &Document, text: &str) -> Option<f64> {
    judged(document, text).cells[0].value
}

fn cell<'a>(document: &'a Document, level: &str) -> &'a Cell {
    document.cells.iter().find(|cell| cell.level.name() == level).expect("the level")
}

/// A value as the document has it, found another way.
type Expected = fn(&Cell) -> Option<f64>;

static ROWS: &[(&str, &str, Expected)] = &[
    ("three-levels", "tps", |cell| cell.summary.tps.mean),
    ("three-levels", "tps.low", |cell| cell.summary.tps.low),
    ("three-levels", "tps.high", |cell| cell.summary.tps.high),
    ("three-levels", "ratio", |cell| cell.summary.ratio.as_ref().map(|ratio| ratio.mean)),
    ("three-levels", "ratio.low", |cell| cell.summary.ratio.as_ref().and_then(|ratio| ratio.low)),
    ("three-levels", "ratio.high", |cell| cell.summary.ratio.as_ref().and_then(|ratio| ratio.high)),
    ("broken-promise", "anomalies", |cell| Some(cell.summary.verdict.as_ref()?.anomalies as f64)),
    ("broken-promise", "anomalies-per-million", |cell| cell.summary.verdict.as_ref()?.anomalies_per_million),
    ("violated", "violations", |cell| Some(cell.summary.violations as f64)),
    ("three-levels", "p50", |cell| Some(cell.summary.percentiles[0].ms)),
    ("three-levels", "p50.low", |cell| cell.summary.percentiles[0].low),
    ("three-levels", "p95", |cell| Some(cell.summary.percentiles[2].ms)),
    ("three-levels", "p95.high", |cell| cell.summary.percentiles[2].high),
    ("three-levels", "p99", |cell| Some(cell.summary.percentiles[3].ms)),
    ("three-levels", "p99.low", |cell| cell.summary.percentiles[3].low),
    ("three-levels", "p99.9", |cell| Some(cell.summary.percentiles[4].ms)),
    ("three-levels", "conflict-ratio", |cell| Some(cell.summary.conflict_ratio)),
    ("three-levels", "retries", |cell| Some(cell.summary.retries_per_transaction)),
    ("three-levels", "wasted", |cell| Some(cell.summary.wasted_share)),
    ("many-factors", "given-up", |cell| {
        Some(cell.rounds.iter().map(|round| round.transactions.given_up).sum::<u64>() as f64)
    }),
    ("strategies", "swallowed", |cell| Some(cell.swallowed() as f64)),
    ("strategies", "strategy_ratio.low", |cell| cell.summary.strategy_ratio.as_ref()?.low),
    ("faults", "setting_ratio", |cell| Some(cell.summary.setting_ratio.as_ref()?.mean)),
    ("strategies", "acknowledged_tps.low", |cell| cell.summary.acknowledged_tps?.low),
    ("counted", "done_share", |cell| {
        let committed = cell.rounds.iter().map(|round| round.transactions.committed).sum::<u64>();
        Some(committed as f64 / (1000.0 * f64::from(cell.clients) * cell.rounds.len() as f64))
    }),
    ("three-levels", "attempts_per_s", |cell| cell.summary.attempts_per_s),
    ("observed", "predicate_locks", |cell| Some(cell.summary.predicate_locks? as f64)),
    ("three-levels", "latency_mean_ms", |cell| cell.summary.latency_ms.mean),
    ("three-levels", "p90", |cell| Some(cell.summary.percentiles[1].ms)),
    ("three-levels", "p99.99", |cell| Some(cell.summary.percentiles.last()?.ms)),
    ("three-levels", "per_minute.high", |cell| cell.summary.per_minute?.high),
    ("strategies", "kept_share", |cell| {
        let committed = cell.rounds.iter().map(|round| round.transactions.committed).sum::<u64>() as f64;
        Some(committed / (committed + cell.swallowed() as f64))
    }),
    ("faults", "lost_commits", |cell| Some(cell.settled(|round| round.settlement.lost)? as f64)),
    ("faults", "silence_s", |cell| {
        let longest: Vec<f64> = cell
            .fault_rounds()
            .filter_map(|round| round.faults.iter().filter_map(|event| event.silent_s).reduce(f64::max))
            .collect();
        Some(longest.iter().sum::<f64>() / longest.len() as f64)
    }),
    ("observed", "server_cpu_us", |cell| cell.summary.server_cpu_us),
    ("three-levels", "client_cpu_us", |cell| cell.summary.client_cpu_us),
];

/// The example, with a script that is reported per minute, and a percentile of more transactions.
fn reported(name: &str) -> Document {
    let mut document = example(name);
    for cell in &mut document.cells {
        let rare = PercentileInterval { percent: 99.99, ms: 70.0, low: Some(60.0), high: None };
        cell.summary.percentiles.push(rare);
        cell.summary.per_minute =
            Some(Interval { mean: Some(12.0), low: Some(11.0), high: Some(13.0), ..Interval::default() });
    }
    document
}

/// A figure that is the mean of its rounds needs no row: it is tested by them.
fn is_mean_of_rounds(figure: &Figure) -> bool {
    matches!(figure.of_cell, OfCell::Rounds)
}

#[test]
fn a_figure_of_rounds_is_their_mean() {
    for (name, document) in examples::all() {
        let cells = document.cells.iter().filter(|cell| cell.rounds.iter().all(|round| round.complete));
        for (cell, figure) in cells
            .flat_map(|cell| FIGURES.iter().map(move |figure| (cell, figure)))
            .filter(|(_, figure)| is_mean_of_rounds(figure))
        {
            let of_round = figure.of_round.expect("a figure of rounds");
            let values: Vec<f64> = cell.rounds.iter().filter_map(|round| of_round.number(round)).collect();
            let found = figure.measured(&document, cell);
            if values.is_empty() {
                assert!(found.is_err(), "{name}: {}", figure.name);
                continue;
            }
            let (found, mean) = (found.expect("a value"), values.iter().sum::<f64>() / values.len() as f64);
            assert!((found.number - mean).abs() <= 1e-9 * mean.abs(), "{name}: {}", figure.name);
            let around = found.low.zip(found.high).is_none_or(|(low, high)| low <= mean && mean <= high);
            assert!(around && found.low.is_some() == (values.len() > 2), "{name}: {}", figure.name);
        }
    }
}

#[test]
fn each_figure_is_the_one_of_the_summary() {
    for (name, figure, expected) in ROWS {
        let document = reported(name);
        let last = document.cells.iter().rfind(|cell| !cell.calibration).expect("a cell");
        let expected = expected(last).unwrap_or_else(|| panic!("{name} has {figure}"));
        let requirement = format!("{figure} >= {expected}");
        let found = judged(&document, &requirement);
        let found = found.cells.last().expect("a cell");
        assert_eq!((found.value, found.met), (Some(expected), true), "{requirement}");
        let above = judged(&document, &format!("{figure} > {expected}"));
        assert!(!above.met && !above.cells.last().expect("a cell").met, "{requirement}");
    }
    let tested: Vec<&str> =
        ROWS.iter().filter_map(|(_, text, _)| Some(text.parse::<Wanted>().ok()?.figure.name)).collect();
    for figure in FIGURES {
        assert!(is_mean_of_rounds(figure) || tested.contains(&figure.name), "{} has no test", figure.name);
    }
}

#[test]
fn what_was_not_measured_never_passes() {
    let mut document = example("three-levels");
    for cell in &mut document.cells {
        cell.rounds.clear();
    }
    summarise(&mut document);
    for row in FIGURES {
        // One of the two would hold for any value.
        for sign in [">=", "<"] {
            let result = judged(&document, &format!("ser.{} {sign} 0", row.name));
            assert!(!result.met, "{}", row.name);
            assert!(result.line().contains("wasn't measured"), "{}", result.line());
            assert_eq!(result.cells[0].value, None);
        }
    }
    let unproved = judged(&example("three-levels"), "anomalies == 0");
    assert!(!unproved.met && unproved.line().contains("no history was recorded"), "{}", unproved.line());
    let withheld = judged(&example("withheld"), "anomalies == 0");
    assert!(!withheld.met && withheld.line().contains("the verdict is withheld"), "{}", withheld.line());
    let one_round = judged(&example("single-round"), "rr.ratio.low >= 0.1");
    assert!(!one_round.met && one_round.line().contains("has no interval"), "{}", one_round.line());
}

#[test]
fn an_incomplete_result_keeps_nothing() {
    let mut document = example("three-levels");
    assert!(judged(&document, "tps > 0").met);
    document.complete = false;
    document.incomplete_reason = Some("interrupted".to_owned());
    let result = judged(&document, "tps > 0");
    for (name, document) in examples::all() {
        let met = judged(&document, "p50 >= 0").met || judged(&document, "p50 < 0").met;
        assert!(document.complete || !met, "{name}");
    }
    assert!(!result.met && result.cells.iter().all(|cell| cell.met));
    assert!(result.line().ends_with("the result is incomplete: interrupted"), "{}", result.line());
}

#[test]
fn a_level_selects_its_cells_and_none_selects_all() {
    let document = example("three-levels");
    let all = judged(&document, "tps >= 0");
    assert_eq!(all.cells.len(), 3);
    let one = judged(&document, "ser.tps >= 0");
    assert_eq!(one.cells.len(), 1);
    assert_eq!(value(&document, "ser.tps >= 0"), cell(&document, "serializable").summary.tps.mean);
    assert_eq!(value(&document, "rc.ratio == 1"), Some(1.0), "the first level is as fast as itself");
    let none = judged(&document, "ru.tps >= 0");
    assert!(!none.met && none.line().contains("no such cell"), "{}", none.line());
    let strategies = example("strategies");
    let some = strategies.cells.iter().find(|cell| cell.strategy() != "retry").expect("a strategy");
    let text = format!("{}+{}.tps >= 0", some.level.name(), some.strategy());
    assert!(
        judged(&strategies, &text).cells.iter().all(|cell| cell.cell.contains(some.strategy())),
        "{text}"
    );
    let swapped = example("level-mismatch");
    let named = swapped.cells.iter().find(|cell| cell.level.differs()).expect("a cell").level.name();
    let result = judged(&swapped, &format!("{named}.tps >= 0"));
    assert!(!result.met && result.line().contains("in its place"), "{}", result.line());
}

#[test]
fn a_count_that_was_ended_passes_only_what_larger_ones_pass() {
    let mut document = example("broken-promise");
    let broken =
        document.cells.iter_mut().find(|cell| cell.summary.verdict.as_ref().is_some_and(|v| v.anomalies > 0));
    let verdict = broken.expect("a cell with anomalies").summary.verdict.as_mut().expect("a verdict");
    (verdict.anomalies, verdict.at_least) = (5, true);
    let met = |text: &str| {
        let result = judged(&document, text);
        result.cells.iter().find(|cell| cell.at_least).expect("the cell").met
    };
    for (text, expected) in [
        ("anomalies >= 5", true),
        ("anomalies > 4", true),
        ("anomalies != 4", true),
        ("anomalies != 5", false),
        ("anomalies != 6", false),
        ("anomalies <= 9", false),
        ("anomalies < 9", false),
        ("anomalies == 5", false),
        ("anomalies > 5", false),
    ] {
        assert_eq!(met(text), expected, "{text}");
    }
}

#[test]
fn each_is_printed_with_its_value() {
    let mut document = example("checked");
    let texts = ["tps > 1", "serializable.p50 < 0", "anomalies == 0"];
    let requirements: Vec<_> = texts.iter().map(|text| text.parse().expect("a requirement")).collect();
    let results = judge(&document, &requirements);
    let text = requirement_lines(&results);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (5, "", "Requirements:"));
    assert!(lines[2].starts_with("  met      tps > 1: ") && lines[2].contains(" to "), "{text}");
    assert!(lines[3].starts_with("  NOT MET  serializable.latency_p50_ms < 0: serializable"), "{text}");
    document.requirements = results.clone();
    let again = Document::from_json(document.to_json()).expect("a result");
    assert_eq!(again.requirements, results);
    assert!(document.to_json().contains("\"requirement\": \"serializable.latency_p50_ms < 0\""));
    assert_eq!(requirement_lines(&[]), "");
}
