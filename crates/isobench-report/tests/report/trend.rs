//! A series of results: what is matched, what is compared, what is refused; and that lines for
//! spreadsheets have the same titles everywhere.

use std::collections::BTreeSet;

use isobench_report::{Layouts as _, to_csv};
use isobench_result::{Document, Trend, compare_results, compare_series, summarise};

use crate::examples::{self, example};

fn series(documents: &[Document]) -> Trend {
    let named: Vec<(String, &Document)> =
        documents.iter().zip(1..).map(|(document, place)| (format!("{place}.json"), document)).collect();
    compare_series(&named).expect("the same measurement version")
}

/// The same result, measured in fewer seconds or more, on another day.
fn at_speed(document: &Document, factor: f64, day: u32) -> Document {
    let mut document = document.clone();
    for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
        round.seconds /= factor;
    }
    document.started_at = Some(format!("2026-01-{day:02}T10:00:00Z"));
    summarise(&mut document);
    document
}

fn three() -> [Document; 3] {
    let first = example("three-levels");
    [at_speed(&first, 1.0, 1), at_speed(&first, 1.0, 2), at_speed(&first, 0.5, 3)]
}

#[test]
fn each_result_is_compared_with_the_first() {
    let trend = series(&three());
    assert_eq!((trend.results.len(), trend.cells.len()), (3, 3));
    for cell in &trend.cells {
        let places: Vec<usize> = cell.points.iter().map(|point| point.result).collect();
        assert_eq!(places, [1, 2, 3], "{}", cell.name);
        let ratios: Vec<_> = cell.points.iter().map(|point| point.ratio).collect();
        assert_eq!(ratios[0], None, "the first isn't compared with itself");
        let (same, slower) = (ratios[1].expect("a ratio"), ratios[2].expect("a ratio"));
        assert!(!same.significant && (same.mean - 1.0).abs() < 1e-9, "{same:?}");
        assert!(slower.significant && (slower.mean - 0.5).abs() < 1e-9, "{slower:?}");
    }
}

#[test]
fn a_result_without_a_cell_leaves_a_gap() {
    let [first, mut second, third] = three();
    let lost = second.cells.remove(0);
    let mut other = lost.clone();
    other.clients = 64;
    second.cells.push(other);
    let trend = series(&[first, second, third]);
    let places = |name: &str| -> Vec<usize> {
        let cell = trend.cells.iter().find(|cell| cell.name == name).unwrap_or_else(|| panic!("{name}"));
        cell.points.iter().map(|point| point.result).collect()
    };
    assert_eq!(places("read committed, 8 clients"), [1, 3]);
    assert_eq!(places("serializable, 8 clients"), [1, 2, 3]);
    assert_eq!(places("read committed, 64 clients"), [2]);
}

#[test]
fn numbers_that_mean_something_else_are_refused_by_name() {
    let [first, mut second, third] = three();
    second.measurement_version += 1;
    let named =
        [("a.json".to_owned(), &first), ("b.json".to_owned(), &second), ("c.json".to_owned(), &third)];
    let error = compare_series(&named).expect_err("another version").to_string();
    assert!(error.contains("a.json has measurement version") && error.contains("b.json has"), "{error}");
    assert!(compare_series(&[]).expect("nothing is wrong with none").cells.is_empty());
}

#[test]
fn what_is_unfair_is_warned_of() {
    let [first, mut second, mut third] = three();
    second.client.cores = 64;
    third.complete = false;
    third.incomplete_reason = Some("interrupted.".to_owned());
    let trend = series(&[first, second, third]);
    assert_eq!(
        trend.warnings,
        [
            "Results 1 and 2 differ in the machine that measured, which is part of every ratio.",
            "Result 3 is incomplete: interrupted."
        ]
    );
}

#[test]
fn any_three_examples_have_every_rendering() {
    let examples: Vec<Document> = examples::all().into_iter().map(|(_, document)| document).collect();
    for three in examples.windows(3) {
        let trend = series(three);
        let texts =
            [trend.to_text(80), trend.to_markdown(), trend.to_csv(), trend.to_json(), trend.to_html()];
        for text in texts {
            // The page's program may speak of NaN.
            let shown = text.split("<script").next().unwrap_or_default();
            assert!(!shown.contains("NaN") && !shown.contains("inf,"), "{shown}");
        }
        let lines: Vec<usize> = trend.to_csv().lines().map(|line| line.matches(',').count()).collect();
        let points: usize = trend.cells.iter().map(|cell| cell.points.len()).sum();
        assert_eq!(lines.len(), points + 1);
    }
}

/// What two kinds of lines both have is called the same, and has the same value.
#[test]
fn a_column_has_one_name_everywhere() {
    let document = example("checked");
    let (pair, trend) = (compare_results(&document, &document).expect("a pair"), series(&three()));
    let titles = |text: &str| -> Vec<String> {
        text.lines().next().expect("titles").split(',').map(str::to_owned).collect()
    };
    let (rounds, pair, trend) = (to_csv(&document), pair.to_csv(), trend.to_csv());
    let of_rounds: BTreeSet<String> = titles(&rounds).into_iter().collect();
    let of_trend: BTreeSet<String> = titles(&trend).into_iter().collect();
    let sided = |title: &String| title.strip_prefix("a_").or(title.strip_prefix("b_")).map(str::to_owned);
    let of_pair: BTreeSet<String> =
        titles(&pair).iter().map(|title| sided(title).unwrap_or_else(|| title.clone())).collect();
    let own: BTreeSet<String> =
        ["result", "name", "started_at", "server"].iter().map(|title| (*title).to_owned()).collect();
    assert_eq!(of_trend.difference(&of_pair).cloned().collect::<BTreeSet<_>>(), own);
    // Conclusions from several rounds; everything else is a column of the rounds.
    let concluded: Vec<&str> = of_pair.difference(&of_rounds).map(String::as_str).collect();
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
