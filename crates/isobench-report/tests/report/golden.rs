//! The renderings of example documents, compared with files.
//!
//! `ISOBENCH_BLESS=1 cargo test -p isobench-report` writes them anew.

use std::fs;
use std::path::{Path, PathBuf};

use isobench_report::{
    Layouts as _, Terminal, overview, render, to_bencher, to_csv, to_github_action_benchmark, to_markdown,
};
use isobench_result::{Document, ResultRow, compare_results, compare_series, json_schema};
use isobench_testkit::golden::{blessing, expect};

use crate::examples::{self, example};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn schema_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json")
}

/// The examples as read from their files.
fn saved() -> Vec<(&'static str, Document)> {
    examples::all()
        .into_iter()
        .map(|(name, document)| {
            let path = golden(&format!("{name}.json"));
            let text = if blessing() { document.to_json() } else { fs::read_to_string(path).unwrap() };
            (name, Document::from_json(&text).unwrap())
        })
        .collect()
}

/// Without the encoded histograms, whose compression may change with a library.
fn without_histograms(document: &Document) -> Document {
    let mut document = document.clone();
    for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
        round.latency_ms.histogram = None;
    }
    document
}

#[test]
fn saved_documents_are_what_a_runner_fills() {
    for (name, document) in examples::all() {
        let path = golden(&format!("{name}.json"));
        if blessing() {
            expect(&path, &document.to_json());
        }
        let text = fs::read_to_string(&path).unwrap();
        let read = Document::from_json(&text).unwrap();
        assert_eq!(read.to_json(), text, "{name} changes when it is read and written");
        assert_eq!(without_histograms(&read), without_histograms(&document), "{name} isn't current");
    }
}

#[test]
fn text_is_as_expected() {
    for (name, document) in saved() {
        expect(golden(&format!("{name}.txt")), &render(&document, 80));
    }
}

#[test]
fn wide_text_shows_the_factors_as_columns() {
    for (name, document) in saved().iter().filter(|(name, _)| ["many-factors", "three-levels"].contains(name))
    {
        expect(golden(&format!("{name}.wide.txt")), &render(document, 170));
    }
}

#[test]
fn narrow_text_stacks_the_rows() {
    for name in ["checked", "strategies"] {
        let (_, document) = saved().into_iter().find(|(known, _)| *known == name).unwrap();
        expect(golden(&format!("{name}.narrow.txt")), &render(&document, 60));
    }
}

#[test]
fn the_legend_explains_the_columns() {
    let (_, document) = saved().into_iter().find(|(known, _)| *known == "checked").unwrap();
    let text = Terminal { width: 80, legend: true }.render(&document);
    expect(golden("checked.legend.txt"), &text.to_string());
}

#[test]
fn csv_is_as_expected() {
    for (name, document) in saved() {
        expect(golden(&format!("{name}.csv")), &to_csv(&document));
    }
}

#[test]
fn markdown_is_as_expected() {
    for (name, document) in saved() {
        expect(golden(&format!("{name}.md")), &to_markdown(&document));
    }
}

#[test]
fn two_results_are_shown_as_expected() {
    let (a, mut b) = (example("three-levels"), example("interrupted"));
    b.server.version = "18.4".to_owned();
    b.server.settings.insert("io_method".to_owned(), "worker".to_owned());
    b.cells.remove(2);
    let pair = compare_results(&a, &b).unwrap().named("old.json", "new.json");
    expect(golden("pair.txt"), &pair.to_text(100));
    expect(golden("pair.md"), &pair.to_markdown());
    expect(golden("pair.csv"), &pair.to_csv());
    expect(golden("pair.json"), &pair.to_json());
}

#[test]
fn a_series_is_shown_as_expected() {
    let [mut first, second, mut third] = ["checked", "broken-promise", "checked"].map(example);
    first.started_at = Some("2026-01-01T10:00:00Z".to_owned());
    third.cells.remove(0);
    let named = [("1.json", &first), ("2.json", &second), ("3.json", &third)]
        .map(|(name, document)| (name.to_owned(), document));
    let trend = compare_series(&named).unwrap();
    expect(golden("trend.txt"), &trend.to_text(100));
    expect(golden("trend.md"), &trend.to_markdown());
    expect(golden("trend.csv"), &trend.to_csv());
    expect(golden("trend.json"), &trend.to_json());
}

#[test]
fn services_get_what_they_expect() {
    let document = example("checked");
    expect(golden("checked.bencher.json"), &to_bencher(&document));
    expect(golden("checked.bigger.json"), &to_github_action_benchmark(&document, true));
    expect(golden("checked.smaller.json"), &to_github_action_benchmark(&document, false));
}

#[test]
fn results_are_listed_as_expected() {
    let tags = ["nightly".to_owned(), "commit=abc".to_owned()];
    let mut rows: Vec<ResultRow> = saved()
        .iter()
        .filter(|(name, _)| ["checked", "broken-promise", "strategies", "interrupted"].contains(name))
        .map(|(name, document)| ResultRow::of(name, &[], Some(75), document))
        .collect();
    rows[0].tags = tags.to_vec();
    expect(golden("overview.txt"), &overview(&rows, 160, |seconds| format!("{seconds}s")));
    expect(golden("overview.narrow.txt"), &overview(&rows[..1], 60, |seconds| format!("{seconds}s")));
}

#[test]
fn the_schema_in_the_manual_is_current() {
    expect(schema_file(), &json_schema());
}
