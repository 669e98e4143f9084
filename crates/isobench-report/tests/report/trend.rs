//! One figure over many results: its order, its series, its changes, and what is left out.

use std::path::Path;

use isobench_report::{Layouts as _, TREND_TITLES};
use isobench_result::{Axis, Document, FIGURES, Trend, TrendResult, trend as of};
use isobench_testkit::golden::expect;

use crate::examples::{self, example};

/// Ten results that scatter by some percent; the last five commit a fifth less, on another version.
fn ten() -> Vec<(String, Vec<String>, Document)> {
    let speeds = [1.0, 1.02, 0.99, 1.01, 0.985, 0.81, 0.795, 0.805, 0.79, 0.82];
    let made = speeds.iter().zip(1..).map(|(speed, day)| {
        let mut document = example("three-levels");
        for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
            round.seconds /= speed;
        }
        document.started_at = Some(format!("2026-01-{day:02}T10:00:00Z"));
        document.server.version = if day > 5 { "18.1".to_owned() } else { "9.6".to_owned() };
        (format!("2026-01-{day:02}T10-00-00Z"), vec![format!("commit=c{}", 20 - day)], document)
    });
    made.collect()
}

fn trend(results: &[(String, Vec<String>, Document)], metric: &str, axis: &str) -> Trend {
    let results: Vec<TrendResult> =
        results.iter().map(|(name, tags, document)| TrendResult { name, tags, document }).collect();
    of(&results, &metric.parse().expect("a metric"), &axis.parse::<Axis>().expect("an axis"))
}

#[test]
fn the_trend_of_ten_results_is_shown_as_expected() {
    let trend = trend(&ten(), "tps", "time");
    let golden = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    expect(golden("trend.txt"), &trend.to_text(100));
    expect(golden("trend.narrow.txt"), &trend.to_text(50));
    expect(golden("trend.md"), &trend.to_markdown());
    expect(golden("trend.csv"), &trend.to_csv());
    expect(golden("trend.json"), &trend.to_json());
    assert!(trend.to_csv().starts_with(TREND_TITLES));
    let page = trend.to_html();
    assert_eq!(page.matches("<figure ").count(), 3);
    assert!(
        page.contains("class=\"limit\"") && page.contains("E-divisive"),
        "the change is drawn and explained"
    );
}

#[test]
fn a_wide_interval_leaves_the_others_room() {
    let mut trend = trend(&ten(), "tps", "time");
    let whole = trend.to_text(100);
    assert!(!whole.contains('▸'), "{whole}");
    let first = &mut trend.series[0].points[0];
    (first.low, first.high) = (Some(0.0), Some(first.value * 100.0));
    let text = trend.to_text(100);
    let line = text.lines().find(|line| line.starts_with("2026-01-01T10-00-00Z")).expect("its line");
    assert!(line.contains('◂') && line.ends_with('▸'), "{line}");
    assert!(text.contains("◂ ▸: an interval that extends beyond the scale."), "{text}");
    // The others' intervals still have a width.
    assert!(text.contains("├─●─┤"), "{text}");
    assert!(trend.to_html().contains("<figure "), "it is drawn");
}

#[test]
fn a_step_is_a_change_of_every_level_and_of_the_ratio_none() {
    let rates = trend(&ten(), "tps", "time");
    assert_eq!(rates.series.len(), 3);
    for series in &rates.series {
        let changes: Vec<usize> = series.changes.iter().map(|change| change.at).collect();
        assert_eq!((series.points.len(), changes), (10, vec![6]), "{}", series.name);
        let share = series.changes[0].to / series.changes[0].from;
        assert!((share - 0.804 / 1.001).abs() < 0.01, "{share}");
        assert!(
            series
                .points
                .iter()
                .all(|point| point.low <= Some(point.value) && point.high >= Some(point.value))
        );
    }
    let ratio = trend(&ten(), "serializable.ratio", "time");
    assert_eq!((ratio.series.len(), ratio.series[0].changes.len()), (1, 0));
    // An end of an interval is a value like others, without an interval.
    let low = trend(&ten(), "ser.tps.low", "time");
    assert_eq!((low.series[0].changes.len(), low.series[0].points[0].low), (1, None));
}

#[test]
fn results_stand_in_the_order_of_the_axis() {
    let mut results = ten();
    results.reverse();
    let first = |axis: &str| {
        let trend = trend(&results, "ser.tps", axis);
        let points = &trend.series[0].points;
        (points[0].at.clone(), points[9].at.clone(), points[0].result.clone())
    };
    let day = "2026-01-01T10-00-00Z".to_owned();
    assert_eq!(first("time"), ("2026-01-01T10:00:00Z".into(), "2026-01-10T10:00:00Z".into(), day.clone()));
    assert_eq!(first("tag:commit"), ("c19".into(), "c10".into(), day.clone()), "not by the tag's letters");
    assert_eq!(first("server-version"), ("9.6".into(), "18.1".into(), day));
    for (index, result) in results.iter_mut().enumerate() {
        let value = ["1GB", "128MB", "64kB"][index % 3];
        result.2.server.settings.insert("shared_buffers".to_owned(), value.to_owned());
    }
    let trend = trend(&results, "ser.tps", "setting:shared_buffers");
    let at: Vec<&str> = trend.series[0].points.iter().map(|point| point.at.as_str()).collect();
    assert_eq!(at, ["64kB", "64kB", "64kB", "128MB", "128MB", "128MB", "1GB", "1GB", "1GB", "1GB"]);
}

#[test]
fn what_may_not_be_compared_is_another_series() {
    let mut results = ten();
    results[3].2.client.cores = 64;
    results[4].2.client.cores = 64;
    results[5].2.plan.seed = Some(7);
    results[6].2.measurement_version += 1;
    results[7].2.server.product = "CockroachDB".to_owned();
    results[8].2.server.embedded = false;
    results[8].2.server.description = "db.example.org".to_owned();
    let trend = trend(&results, "ser.tps", "time");
    let found: Vec<(usize, &[&str])> =
        trend.series.iter().map(|series| (series.points.len(), series.differs_in.as_slice())).collect();
    assert_eq!(
        found,
        [
            (4, &[][..]),
            (2, &["the machine that measured"]),
            (1, &["the seed", "the machine that measured"]),
            (1, &["the seed", "the meaning of the numbers"]),
            (1, &["the meaning of the numbers", "the server's product"]),
            (1, &["the server's product", "the server's place"]),
        ]
    );
    assert!(trend.to_text(100).contains("No change can be found in 4 results; it takes 10."));
}

#[test]
fn what_has_no_value_is_left_out_and_named() {
    let mut results = ten();
    results[0].2.complete = false;
    results[1].1.clear();
    results[2].2.cells.remove(2);
    let by_tag = trend(&results, "ser.tps", "tag:commit");
    assert_eq!(by_tag.series[0].points.len(), 7);
    let said = by_tag.left_out.join("\n");
    for text in [
        "2026-01-01T10-00-00Z: the result is incomplete: it ended early.",
        "2026-01-02T10-00-00Z: it has no tag commit=VALUE.",
        "2026-01-03T10-00-00Z: it has no such cell.",
    ] {
        assert!(said.contains(text), "{said}");
    }
    let unmeasured = trend(&results, "ser.anomalies", "time");
    assert!(unmeasured.series.is_empty());
    assert!(unmeasured.left_out[1].contains("serializable, 8 clients: wasn't measured: no history"));
    assert!(unmeasured.to_text(80).contains("No result has a value"));
    assert!(unmeasured.to_html().contains("No result has a value"));
}

#[test]
fn a_factor_along_the_axis_doesnt_part_a_series() {
    let mut results = ten();
    for (_, _, document) in &mut results {
        let version = document.server.version.clone();
        for cell in &mut document.cells {
            cell.varied.insert("server-version".to_owned(), version.clone());
        }
    }
    assert_eq!(trend(&results, "ser.tps", "time").series.len(), 2);
    assert_eq!(trend(&results, "ser.tps", "server-version").series.len(), 1);
}

#[test]
fn every_figure_can_be_shown() {
    let names = ["three-levels", "strategies", "observed", "faults", "counted", "nothing"];
    for (name, document) in examples::all().into_iter().filter(|(name, _)| names.contains(name)) {
        for figure in FIGURES {
            let results = [1, 2].map(|place| (format!("{place}.json"), Vec::new(), document.clone()));
            let trend = trend(&results, figure.name, "server-version");
            assert!(
                trend.series.iter().all(|series| series.points.len().is_multiple_of(2)),
                "{name}, {}",
                figure.name
            );
            for text in [trend.to_text(1), trend.to_markdown(), trend.to_csv()] {
                assert!(!text.contains("NaN"), "{name}, {}", figure.name);
            }
            assert!(trend.to_html().contains(figure.meaning), "{name}, {}", figure.name);
        }
    }
}
