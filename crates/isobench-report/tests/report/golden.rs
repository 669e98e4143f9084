//! The renderings of example documents, compared with files.
//!
//! `ISOBENCH_BLESS=1 cargo test -p isobench-report` writes them anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isobench_report::{
    Extent, Layouts as _, Terminal, overview, render, to_bencher, to_csv, to_github_action_benchmark,
    to_markdown,
};
use isobench_result::{Document, ResultRow, compare_results, json_schema};
use isobench_testkit::golden::expect;
use serde_json::Value;

use crate::examples::{self, example};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn schema_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json")
}

/// A terminal for the report with all details.
fn details(width: usize) -> Terminal {
    Terminal { extent: Extent::Details, ..Terminal::of_width(width) }
}

/// The examples as they are read after they were saved.
fn saved() -> Vec<(&'static str, Document)> {
    let read = |document: Document| Document::from_json(document.to_json().as_bytes()).unwrap();
    examples::all().into_iter().map(|(name, document)| (name, read(document))).collect()
}

/// The document as JSON, without the encoded histograms, whose compression may change with a library.
fn without_histograms(document: &Document) -> String {
    let mut document = document.clone();
    for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
        round.latency_ms.histogram = None;
    }
    document.to_json()
}

#[test]
fn what_was_written_is_read() {
    for (name, document) in examples::all() {
        let text = document.to_json();
        let read = Document::from_json(text.as_bytes()).unwrap();
        assert_eq!(read, document, "{name}");
        assert_eq!(read.to_json(), text, "{name} changes when it is read and written");
    }
}

#[test]
fn documents_are_as_expected() {
    for name in ["checked", "single-run"] {
        expect(golden(&format!("{name}.json")), &without_histograms(&example(name)));
    }
}

/// Every member that an example has, with the first value of each kind.
#[test]
fn members_are_as_expected() {
    let mut members = BTreeMap::new();
    for (_, document) in examples::all() {
        let document = serde_json::from_str(&without_histograms(&document)).unwrap();
        note_members("", &document, &mut members);
    }
    let lines = members.iter().map(|((member, _), value)| format!("{}: {value}\n", &member[1..]));
    expect(golden("members.txt"), &lines.collect::<String>());
}

fn note_members(name: &str, value: &Value, members: &mut BTreeMap<(String, Kind), Value>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (key, value) in object {
                note_members(&format!("{name}.{key}"), value, members);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                note_members(&format!("{name}[]"), value, members);
            }
        }
        _ => {
            members.entry((name.to_owned(), kind(value))).or_insert_with(|| value.clone());
        }
    }
}

/// A kind of value: whether it is null, true or false, whole, a number, a text or empty.
type Kind = u8;

fn kind(value: &Value) -> Kind {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(number) => 2 + Kind::from(number.is_f64()),
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    }
}

#[test]
fn text_is_as_expected() {
    for (name, document) in saved() {
        expect(golden(&format!("{name}.txt")), &render(&document, 80));
    }
}

/// The report of `isobench audit`: on one screen, with what the histories show.
#[test]
fn audits_are_as_expected() {
    for (name, document) in saved() {
        if ["checked", "broken-promise", "withheld", "checked-strategies", "observed"].contains(&name) {
            let audit = Terminal { extent: Extent::Audit, ..Terminal::of_width(80) };
            expect(golden(&format!("{name}.audit.txt")), &audit.render(&document).to_string());
        }
    }
}

#[test]
fn details_are_as_expected() {
    for (name, document) in saved() {
        expect(golden(&format!("{name}.details.txt")), &details(80).render(&document).to_string());
    }
}

#[test]
fn wide_text_shows_the_factors_as_columns() {
    for (name, document) in saved().iter().filter(|(name, _)| ["many-factors", "three-levels"].contains(name))
    {
        expect(golden(&format!("{name}.wide.txt")), &details(170).render(document).to_string());
    }
}

#[test]
fn narrow_text_stacks_the_rows() {
    for name in ["checked", "strategies"] {
        let (_, document) = saved().into_iter().find(|(known, _)| *known == name).unwrap();
        expect(golden(&format!("{name}.narrow.txt")), &details(60).render(&document).to_string());
    }
}

#[test]
fn the_legend_explains_the_columns() {
    let (_, document) = saved().into_iter().find(|(known, _)| *known == "checked").unwrap();
    let text = Terminal { extent: Extent::Legend, ..Terminal::of_width(80) }.render(&document);
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
