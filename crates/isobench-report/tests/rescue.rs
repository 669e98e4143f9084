//! Results that are cut, damaged or of a newer format: whatever is left of them is shown, and
//! nothing else.

mod examples;

use isobench_report::{
    Cell, Document, DocumentError, FORMAT_VERSION, Round, compare_results, render, rescue, to_csv, to_html,
    to_markdown,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn example(name: &str) -> Document {
    examples::all().into_iter().find(|(found, _)| *found == name).expect("the example exists").1
}

/// An example that is summarised quickly, for tests that look at many variants.
fn slim(name: &str) -> Document {
    let mut document = example(name);
    for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
        round.latency_ms.histogram = None;
    }
    document
}

fn value(name: &str) -> Value {
    serde_json::to_value(example(name)).expect("plain data")
}

/// What is rescued of a value, and what is said about it.
fn rescued(value: &Value) -> (Document, Vec<String>) {
    rescue(&value.to_string()).expect("the begin of a result")
}

/// The number of rounds that are left, after looking that each is one of the original's, in its
/// place.
fn rounds_left(original: &Document, found: &Document) -> usize {
    let is_same = |cell: &Cell, other: &Cell| {
        let (cell, other): (Vec<&Round>, Vec<&Round>) =
            (cell.rounds.iter().collect(), other.rounds.iter().collect());
        other.starts_with(&cell)
    };
    assert!(found.cells.len() <= original.cells.len());
    assert!(found.cells.iter().zip(&original.cells).all(|(cell, other)| is_same(cell, other)));
    found.cells.iter().map(|cell| cell.rounds.len()).sum()
}

/// Looks at what is left of a text that was cut; returns the number of rounds, if there is a
/// document at all.
fn cut(original: &Document, text: &str) -> Option<usize> {
    match rescue(text) {
        Ok((found, missing)) => {
            assert!(!missing.is_empty() && !found.complete, "{} bytes", text.len());
            assert!(missing[0].starts_with("The file is truncated: it ends in line "), "{missing:?}");
            assert!(missing.iter().all(|sentence| found.warnings.contains(sentence)));
            Some(rounds_left(original, &found))
        }
        Err(DocumentError::Malformed(error)) => {
            assert!(!text.contains("\"measurement_version\""), "{} bytes: {error}", text.len());
            None
        }
        Err(error) => panic!("{} bytes: {error}", text.len()),
    }
}

#[test]
fn every_beginning_of_a_small_result_is_understood() {
    let original = slim("single-run");
    let text = serde_json::to_string(&original).expect("plain data");
    for end in (0..text.len() - 1).filter(|end| text.is_char_boundary(*end)) {
        cut(&original, &text[..end]);
    }
    assert_eq!(rescue(&text).expect("whole").1, Vec::<String>::new());
}

#[test]
fn beginnings_of_every_example_keep_the_rounds_that_are_whole() {
    for (name, original) in examples::all() {
        let text = original.to_json();
        // An odd number, so that cuts fall everywhere; the last one is in the last cell's summary.
        let step = (text.len() / 10) | 1;
        let ends = (0..text.len() - 9).step_by(step).chain([text.len() - 9]);
        let mut before = 0;
        for end in ends.filter(|end| text.is_char_boundary(*end)) {
            let left = cut(&original, &text[..end]).unwrap_or(0);
            assert!(left >= before, "{name}: {end} bytes keep less than fewer bytes do");
            before = left;
        }
        let all: usize = original.cells.iter().map(|cell| cell.rounds.len()).sum();
        assert_eq!(before, all, "{name}: all that is left of nearly everything");
    }
}

#[test]
fn every_rendering_says_what_is_missing() {
    let original = example("three-levels");
    let text = original.to_json();
    let end = text.rfind("\"order\"").expect("the last round");
    let (found, missing) = rescue(&text[..end]).expect("the begin of a result");
    assert_eq!(rounds_left(&original, &found), 8);
    let line = text[..end].lines().count();
    assert_eq!(missing, [format!("The file is truncated: it ends in line {line}. What came after is lost.")]);
    assert_eq!(found.incomplete_reason.as_deref(), Some("the file is truncated"));
    assert_eq!(found.cells[2].summary.rounds, 2, "the summary is of what is left");
    let shown = render(&found, 200);
    for text in ["INCOMPLETE: the file is truncated", "INCOMPLETE 2/3", "Warning: The file is truncated"] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(to_markdown(&found).contains("⚠ The file is truncated"));
    assert_eq!(to_csv(&found).lines().count(), 9);
    assert_eq!(Document::from_json(&found.to_json()).expect("it can be saved"), found);
}

#[test]
fn levels_of_which_nothing_is_left_are_named() {
    let text = example("three-levels").to_json();
    let end = text.find("\"requested\": \"repeatable read\"").expect("the second cell");
    let (found, missing) = rescue(&text[..end]).expect("the begin of a result");
    assert_eq!(found.cells.len(), 1);
    assert_eq!(
        missing.last().map(String::as_str),
        Some("Nothing is left of what was measured at repeatable read, serializable.")
    );
}

#[test]
fn what_was_incomplete_before_stays_so_for_both_reasons() {
    let mut value = value("interrupted");
    value["cells"][0]["rounds"][1] = json!(null);
    let (found, _) = rescued(&value);
    assert_eq!(
        found.incomplete_reason.as_deref(),
        Some("interrupted by Ctrl-C in round 2 of 3; the file is damaged")
    );
    assert_eq!(found.warnings.len(), 2);
}

#[test]
fn a_newer_format_shows_what_is_known() {
    let original = example("three-levels");
    let mut value = value("three-levels");
    value["format_version"] = json!(FORMAT_VERSION + 5);
    value["novelty"] = json!({"x": 1});
    let (found, missing) = rescued(&value);
    assert_eq!(rounds_left(&original, &found), 9);
    assert_eq!(found.format_version, FORMAT_VERSION, "saved again, it is what this version writes");
    assert_eq!(missing.len(), 1);
    assert!(
        missing[0].starts_with(&format!("The file has format version {}", FORMAT_VERSION + 5)),
        "{missing:?}"
    );
    assert_eq!(found.incomplete_reason.as_deref(), Some("a newer isobench wrote it"));
    // What a newer version may have changed.
    value["plan"]["levels"] = json!(["read committed", "quantum"]);
    value["client"] = json!("a laptop");
    value["cells"][1]["level"] = json!("quantum");
    value["cells"][0]["rounds"][0]["warmup"] = json!("long");
    value["cells"][0]["rounds"][1]["attempts"] = json!(5);
    let (found, missing) = rescued(&value);
    assert_eq!(missing.len(), 6, "{missing:#?}");
    for text in [
        "`client` can't be read",
        "`plan.levels` can't be read",
        "Cell 2, of which there is 3 rounds",
        "read committed, 8 clients: `warmup` of measurement 1",
        "read committed, 8 clients: measurement 2 can't be read and is left out",
    ] {
        assert!(missing.iter().any(|sentence| sentence.contains(text)), "{text}: {missing:#?}");
    }
    assert_eq!(found.plan.rounds, Some(3), "the rest of the plan is known");
    assert_eq!(found.server, original.server);
    assert_eq!(found.cells.iter().map(|cell| cell.rounds.len()).collect::<Vec<_>>(), [2, 3]);
    assert!(found.cells[1].rounds == original.cells[2].rounds);
    render(&found, 100);
}

#[test]
fn damage_in_the_middle_costs_what_comes_after() {
    let original = example("three-levels");
    let text = original.to_json();
    let place = text.rfind("\"attempts\"").expect("the last round");
    let damaged = format!("{}\u{0}{}", &text[..place], &text[place + 1..]);
    let (found, missing) = rescue(&damaged).expect("the begin of a result");
    assert_eq!(rounds_left(&original, &found), 8);
    assert!(
        missing[0].starts_with("The file is damaged (") && missing[0].contains(" at line "),
        "{missing:?}"
    );
    let (found, missing) = rescue(&(text.clone() + "{}")).expect("a result");
    assert_eq!(rounds_left(&original, &found), 9);
    assert!(missing[0].contains("trailing characters"), "{missing:?}");
}

#[test]
fn older_versions_are_read_as_ever() {
    let mut value = value("three-levels");
    value["format_version"] = json!(1);
    value["plan"].as_object_mut().expect("an object").remove("rate");
    value["plan"]["rate"] = json!(20.0);
    assert_eq!(rescued(&value).1, Vec::<String>::new());
    value["cells"][2]["rounds"][0] = json!([]);
    let (found, missing) = rescued(&value);
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!((found.plan.rate, found.cells[2].rate), (Some(vec![20.0]), Some(20.0)));
}

#[test]
fn other_files_are_refused_with_a_reason() {
    for (text, reason) in [
        ("", "EOF while parsing"),
        ("hello", "expected value"),
        ("{", "EOF while parsing"),
        ("{\"format\": \"isobench/check\", \"histo", "EOF while parsing"),
        ("[]", "\"format\" is missing"),
        ("{\"format\": \"isobench/check\"}", "use a file that --json wrote"),
    ] {
        let error = rescue(text).expect_err(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn members_of_any_type_are_no_panic() {
    let mut whole = slim("checked");
    whole.cells.truncate(1);
    let whole = serde_json::to_value(whole).expect("plain data");
    let pointers = [
        "",
        "/server",
        "/server/settings",
        "/plan",
        "/cells",
        "/cells/0",
        "/cells/0/rounds",
        "/cells/0/rounds/0",
    ];
    for pointer in pointers {
        for wrong in [json!(null), json!(1), json!("x"), json!([]), json!([1]), json!({}), json!({"a": {}})] {
            let mut value = whole.clone();
            *value.pointer_mut(pointer).expect("it is there") = wrong.clone();
            if let Ok((found, missing)) = rescue(&value.to_string()) {
                render(&found, 100);
                assert!(found.complete == missing.is_empty(), "{pointer} {wrong}: {missing:?}");
            }
        }
    }
}

/// Numbers that no measurement gives, lists that end too early, texts where numbers were.
fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, &'static str)>> {
    let pieces =
        ["", "0", "9", "-", "99999999999999999999", "1e308", "\"", "null", "[]", "{", "]", ",", "\u{0}"];
    prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(pieces.to_vec())), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 40 } else { 5000 }))]

    #[test]
    fn whatever_is_damaged_nothing_panics(name in prop::sample::select(vec!["checked", "observed"]), damage in damage()) {
        let mut original = slim(name);
        original.cells.truncate(2);
        let text = serde_json::to_string(&original).expect("plain data");
        let mut letters: Vec<String> = text.chars().map(String::from).collect();
        for (place, piece) in damage {
            *place.get_mut(&mut letters) = piece.to_owned();
        }
        let damaged = letters.concat();
        if let Ok((found, missing)) = rescue(&damaged) {
            prop_assert!(missing.is_empty() || !found.complete);
            for text in [render(&found, 80), to_markdown(&found), to_csv(&found), to_html(&found)] {
                prop_assert!(!text.is_empty());
            }
            let pair = compare_results(&original, &found);
            prop_assert!(pair.is_err() || pair.is_ok_and(|pair| !pair.to_text(80).is_empty() && pair.regressions(0.1).len() < 99));
        }
    }
}
