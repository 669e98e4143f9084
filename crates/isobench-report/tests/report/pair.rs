//! Two results side by side: what is matched, what is called a difference, what counts as a
//! regression.

use std::collections::BTreeSet;

use isobench_report::{Layouts as _, to_csv};
use isobench_result::{Document, Invariant, Pair, PlannedScript, compare_results, contradictions, summarise};

use crate::examples::{self, example};

fn pair(a: &Document, b: &Document) -> Pair {
    compare_results(a, b).expect("the same measurement version").named("a.json", "b.json")
}

/// The same result with the throughput of one cell changed, by `percent` in every round.
fn changed(document: &Document, cell: usize, percent: u64) -> Document {
    let mut document = document.clone();
    for round in &mut document.cells[cell].rounds {
        let committed = round.transactions.committed * percent / 100;
        let lost = round.transactions.committed - committed.min(round.transactions.committed);
        let won = committed.saturating_sub(round.transactions.committed);
        round.transactions.committed = committed;
        round.transactions.total = round.transactions.total + won - lost;
        round.attempts.committed = committed;
        round.attempts.started = round.attempts.started + won - lost;
    }
    summarise(&mut document);
    document
}

fn named(pair: &Pair, limit: f64) -> Vec<String> {
    let found = pair.regressions(limit).into_iter();
    found.map(|regression| format!("{}: {}", regression.cell, regression.reason)).collect()
}

#[test]
fn a_result_is_no_different_from_itself() {
    for (name, document) in examples::all() {
        let pair = pair(&document, &document);
        assert_eq!(
            pair.cells.len(),
            document.cells.iter().filter(|cell| !cell.calibration).count(),
            "{name}"
        );
        assert_eq!((pair.differences.len(), pair.only_in_a.len(), pair.only_in_b.len()), (0, 0, 0), "{name}");
        let significant =
            |pair: &Pair| pair.cells.iter().any(|cell| cell.ratio.is_some_and(|ratio| ratio.significant));
        assert!(!significant(&pair), "{name}");
        assert_eq!(named(&pair, 0.0), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_slower_level_is_a_regression_beyond_the_limit_only() {
    let a = example("three-levels");
    let pair = pair(&a, &changed(&a, 2, 90));
    let ratio = pair.cells[2].ratio.expect("a ratio");
    assert!(ratio.significant && (ratio.mean - 0.9).abs() < 0.005, "{ratio:?}");
    assert!(ratio.low < Some(0.9) && Some(0.9) < ratio.high, "{ratio:?}");
    let found = named(&pair, 0.05);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("serializable, 8 clients: B commits 10."), "{found:?}");
    assert!(found[1].starts_with("serializable ÷ read committed, 8 clients: the ratio is 10."), "{found:?}");
    assert_eq!(named(&pair, 0.15), Vec::<String>::new());
    let faster = compare_results(&changed(&a, 2, 90), &a).expect("the same version");
    assert_eq!(named(&faster, 0.05), Vec::<String>::new());
    assert!(faster.cells[2].ratio.is_some_and(|ratio| ratio.significant && ratio.mean > 1.1));
}

#[test]
fn a_level_that_costs_more_is_a_regression_on_a_faster_machine_too() {
    let a = example("three-levels");
    // Twice as fast, but for serializable.
    let faster = [0, 1].into_iter().fold(a.clone(), |document, cell| changed(&document, cell, 200));
    let pair = pair(&a, &faster);
    let found = named(&pair, 0.05);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("serializable ÷ read committed, 8 clients: the ratio is 50."), "{found:?}");
    let names: Vec<(&str, &str)> =
        pair.levels.iter().map(|ratio| (ratio.level.as_str(), ratio.to.as_str())).collect();
    assert_eq!(names, [("repeatable read", "read committed"), ("serializable", "read committed")]);
    let last = &pair.levels[1];
    let expected = a.cells[2].summary.ratio.as_ref().expect("a ratio").mean;
    assert!(last.a.is_some_and(|ratio| (ratio - expected).abs() < 1e-9), "{last:?}");
    let text = pair.to_text(100);
    assert!(text.contains("serializable ÷ read committed"), "{text}");
}

#[test]
fn the_more_is_compared_the_wider_the_intervals() {
    let a = example("three-levels");
    let mut few = a.clone();
    few.cells.truncate(1);
    let (all, one) = (pair(&a, &a), pair(&few, &few));
    let width = |pair: &Pair| {
        let ratio = pair.cells[0].ratio.expect("a ratio");
        ratio.high.expect("an end") - ratio.low.expect("an end")
    };
    assert_eq!((all.cells.len() + all.levels.len(), one.cells.len() + one.levels.len()), (5, 1));
    assert!(width(&all) > 1.5 * width(&one), "{} {}", width(&all), width(&one));
}

/// Standard normal numbers, the same every time: sums of twelve uniform ones.
struct Normal(u64);

impl Normal {
    fn next(&mut self) -> f64 {
        let uniform = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform(&mut self.0)).sum::<f64>() - 6.0
    }
}

/// A job must not fail because of noise, however many cells it measures.
#[test]
fn equal_results_are_called_a_regression_once_in_forty_jobs() {
    let mut whole = example("many-factors");
    for cell in &mut whole.cells {
        cell.rounds[0].latency_ms.histogram = None;
        cell.rounds = vec![cell.rounds[0].clone(); 5];
    }
    let mut normal = Normal(42);
    let mut measure = || {
        let mut document = whole.clone();
        for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
            round.seconds = 5.0 * (0.1 * normal.next()).exp();
        }
        document
    };
    let jobs = 400;
    let alarms = (0..jobs).filter(|_| !pair(&measure(), &measure()).regressions(0.0).is_empty()).count();
    // A false alarm in one of twenty for both directions together; standard deviation 3.
    assert!(alarms <= jobs / 40 + 10, "{alarms} of {jobs}");
    assert!(alarms > 0, "nothing is ever called a regression");
}

#[test]
fn one_round_is_never_a_regression_and_is_said_to_be_undecidable() {
    let a = example("single-round");
    let pair = pair(&a, &changed(&a, 2, 50));
    assert_eq!(named(&pair, 0.05), Vec::<String>::new());
    assert_eq!(pair.undecidable().len(), 3);
    assert!(pair.to_text(100).contains("0.50 × (?)"), "{}", pair.to_text(100));
}

#[test]
fn noise_that_was_measured_hides_smaller_differences() {
    let mut a = example("three-levels");
    let mut twin = a.cells[0].clone();
    twin.calibration = true;
    for (round, percent) in twin.rounds.iter_mut().zip([70, 100, 140]) {
        round.transactions.committed = round.transactions.committed * percent / 100;
    }
    a.cells.insert(1, twin);
    summarise(&mut a);
    let pair = pair(&a, &changed(&a, 3, 80));
    assert_eq!(pair.cells.len(), 3, "A/A cells aren't compared");
    assert!(!pair.cells[2].ratio.expect("a ratio").significant);
}

#[test]
fn promises_and_missing_cells_are_regressions() {
    let (kept, broken) = (example("checked"), example("broken-promise"));
    assert_eq!(
        named(&pair(&kept, &broken), 0.05),
        ["serializable, 8 clients: B breaks a promise that A doesn't break"]
    );
    assert_eq!(named(&pair(&broken, &broken), 0.05), Vec::<String>::new());
    assert_eq!(named(&pair(&broken, &kept), 0.05), Vec::<String>::new());
    let whole = example("three-levels");
    let mut b = whole.clone();
    b.cells[1].rounds[0].invariants = vec![Invariant::checked("sums agree", false, "")];
    assert_eq!(
        named(&pair(&whole, &b), 0.05),
        ["repeatable read, 8 clients: B breaks a promise that A doesn't break"]
    );
    let mut b = whole.clone();
    b.cells.remove(0);
    for round in &mut b.cells[1].rounds {
        round.complete = false;
    }
    let pair = pair(&whole, &b);
    assert_eq!((&pair.only_in_a, pair.only_in_b.len()), (&vec!["read committed, 8 clients".to_owned()], 0));
    assert_eq!(
        named(&pair, 0.05),
        [
            "serializable, 8 clients: B has no complete round of it",
            "read committed, 8 clients: B doesn't have it"
        ]
    );
}

#[test]
fn cells_are_matched_by_their_factors_whatever_their_order() {
    let a = example("many-factors");
    let mut b = a.clone();
    b.cells.reverse();
    let changed_back = pair(&a, &b);
    assert_eq!(changed_back.cells.len(), a.cells.len());
    assert_eq!(changed_back, pair(&a, &a));
    let mut names: Vec<&str> = changed_back.cells.iter().map(|cell| cell.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), a.cells.len(), "names tell cells apart: {names:?}");
    let mut b = a.clone();
    b.cells[0].rate = Some(100.0);
    b.cells[1].scale = 77;
    let pair = pair(&a, &b);
    assert_eq!((pair.cells.len(), pair.only_in_a.len(), pair.only_in_b.len()), (a.cells.len() - 2, 2, 2));
    assert!(pair.only_in_b[0].contains("100 per s wanted"), "{:?}", pair.only_in_b);
}

#[test]
fn what_differs_is_listed_and_what_is_unfair_is_warned_of() {
    let a = example("three-levels");
    let mut b = a.clone();
    b.server.version = "18.4".to_owned();
    b.server.settings.insert("fsync".to_owned(), "off".to_owned());
    b.server.settings.remove("max_connections");
    b.server.settings.insert("io_method".to_owned(), "worker".to_owned());
    b.client.cores = 64;
    b.plan.time = Some(60.0);
    b.workload.scripts[0].text = "SELECT 1;".to_owned();
    b.workload.scripts.push(PlannedScript { name: "more".to_owned(), weight: 2, ..PlannedScript::default() });
    let pair = pair(&a, &b);
    let listed: Vec<String> = pair
        .differences
        .iter()
        .map(|difference| format!("{}: {} → {}", difference.what, difference.a, difference.b))
        .collect();
    assert_eq!(
        listed,
        [
            "server.settings.fsync: on → off",
            "server.settings.io_method:  → worker",
            "server.settings.max_connections: 200 → ",
            "server.version: 15.18 → 18.4",
            "client.cores: 2 → 64",
            "plan.time: 5.0 → 60.0",
            "plan.workload: tpcb-like@1 → tpcb-like@1 + more@2",
        ]
    );
    for name in ["the scripts' texts", "the measured time", "the machine that measured"] {
        assert!(pair.warnings.iter().any(|warning| warning.contains(name)), "{name}: {:?}", pair.warnings);
    }
    assert_eq!(pair.warnings.len(), 3, "{:?}", pair.warnings);
}

#[test]
fn numbers_that_mean_something_else_are_refused() {
    let a = example("three-levels");
    let mut b = a.clone();
    b.measurement_version += 1;
    let error = compare_results(&a, &b).expect_err("another version").to_string();
    assert!(
        error.contains("can't be compared") && error.contains("measure both with the same isobench"),
        "{error}"
    );
}

#[test]
fn any_two_examples_have_every_rendering() {
    let examples = examples::all();
    // Each with the next one: as many kinds of pairs as examples.
    for ((_, a), (_, b)) in examples.iter().zip(examples.iter().cycle().skip(1)) {
        for pair in [pair(a, b), pair(b, a)] {
            for text in [pair.to_text(100), pair.to_markdown(), pair.to_csv(), pair.to_json(), pair.to_html()]
            {
                // The page's program may speak of NaN.
                let shown = text.split("<script").next().unwrap_or_default();
                assert!(!shown.contains("NaN") && !shown.contains("inf,"), "{shown}");
            }
            pair.regressions(0.05);
        }
    }
}

#[test]
fn csv_has_as_many_fields_as_titles() {
    let a = example("three-levels");
    let text = pair(&a, &a).to_csv();
    let fields: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(fields.len(), 4);
    assert!(fields.iter().all(|count| *count == fields[0]), "{fields:?}");
}

/// What the lines of a result and of a pair both have is called the same, and has the same value.
#[test]
fn a_column_has_one_name_everywhere() {
    let document = example("checked");
    let (rounds, pair) = (to_csv(&document), pair(&document, &document).to_csv());
    let titles = |text: &str| -> Vec<String> {
        text.lines().next().expect("titles").split(',').map(str::to_owned).collect()
    };
    let of_rounds = titles(&rounds);
    let sided = |title: &String| title.strip_prefix("a_").or(title.strip_prefix("b_")).map(str::to_owned);
    let of_pair: BTreeSet<String> =
        titles(&pair).iter().map(|title| sided(title).unwrap_or_else(|| title.clone())).collect();
    // Conclusions from several rounds; everything else is a column of the rounds.
    let concluded: Vec<&str> = of_pair
        .iter()
        .map(String::as_str)
        .filter(|title| !of_rounds.iter().any(|known| known == title))
        .collect();
    assert_eq!(
        concluded,
        [
            "anomalies_per_million",
            "client_cpu_us",
            "conflict_ratio",
            "ratio",
            "ratio_high",
            "ratio_low",
            "rounds",
            "server_cpu_us",
            "significant",
            "tps_high",
            "tps_low",
            "wasted_share"
        ]
    );
    let column = |text: &str, title: &str| -> BTreeSet<String> {
        let place = titles(text).iter().position(|found| found == title).expect("the column");
        text.lines().skip(1).map(|line| line.split(',').nth(place).expect("a field").to_owned()).collect()
    };
    for factor in
        ["workload", "scale", "clients", "protocol", "backoff", "rate", "strategy", "varied", "level"]
    {
        assert_eq!(column(&rounds, factor), column(&pair, factor), "{factor}");
    }
}

/// A result as isobench wrote it agrees with itself.
#[test]
fn examples_agree_with_themselves() {
    for (name, mut document) in examples::all() {
        summarise(&mut document);
        assert_eq!(contradictions(&document), Vec::<String>::new(), "{name}");
    }
}
