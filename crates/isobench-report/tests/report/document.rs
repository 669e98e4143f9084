//! Properties of the result document and its renderings, whatever they say.

use std::ptr;
use std::time::Duration;

use isobench_isolation::{EffectiveLevel, Level};
use isobench_report::{Extent, Terminal, render, to_csv};
use isobench_result::{
    Cell, CellLevel, Client, Document, Emphasis, Invariant, Journal, Plan, Server, answer, json_schema,
    summarise,
};
use isobench_stats::LatencyHistogram;
use isobench_testkit::schema::violations;
use proptest::prelude::*;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::examples::{self, Story, example};

/// A terminal for the report with all details.
fn details(width: usize) -> Terminal {
    Terminal { extent: Extent::Details, ..Terminal::of_width(width) }
}

#[test]
fn every_example_obeys_the_schema() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    for (name, document) in examples::all() {
        let value: Value = serde_json::from_str(&document.to_json()).unwrap();
        let errors = violations(&schema, &value);
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let good: Value = serde_json::from_str(&example("three-levels").to_json()).unwrap();
    for (pointer, wrong) in [
        ("/format", Value::from("other")),
        ("/cells/0/rounds/0/attempts/started", Value::from("many")),
        ("/cells/0/level/requested", Value::from("chaos")),
        ("/cells/0/summary/tps", Value::Null),
        ("/plan/levels/0", Value::from(7)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert!(!violations(&schema, &bad).is_empty(), "{pointer}");
    }
}

/// The properties in a schema that have no description, by path.
fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            if property.get("description").is_none() {
                found.push(format!("{path}.{name}"));
            }
        }
    }
    for (name, definition) in schema.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        undescribed(definition, name, found);
    }
}

#[test]
fn the_schema_describes_every_field() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let mut found = Vec::new();
    undescribed(&schema, "", &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn every_example_adds_up() {
    for (name, document) in examples::all() {
        for round in document.cells.iter().flat_map(|cell| &cell.rounds) {
            assert_eq!(round.check(), Ok(()), "{name}");
        }
    }
}

#[test]
fn a_round_that_does_not_add_up_says_which() {
    let mut round = Story { committed: 3, ..Story::default() }.round(7, 1);
    round.attempts.started = 4;
    assert_eq!(
        round.check().unwrap_err().to_string(),
        "round 7: the ledger doesn't add up: attempts started (4) must equal the sum of the attempts' buckets (3); \
         please report this"
    );
}

/// A result as a comparison saves it: without conclusions, by one round after the other.
fn journal(document: &Document) -> String {
    let mut journal = Journal::default();
    let mut so_far = Document { complete: false, ..document.clone() };
    let rounds = so_far.cells.iter_mut().map(|cell| std::mem::take(&mut cell.rounds)).collect::<Vec<_>>();
    so_far.cells.iter_mut().for_each(|cell| cell.summary = isobench_result::Summary::default());
    let mut text = journal.text(&so_far);
    for (cell, rounds) in rounds.into_iter().enumerate() {
        for round in rounds {
            so_far.cells[cell].rounds.push(round);
            text += &journal.text(&so_far);
        }
    }
    so_far.complete = document.complete;
    so_far.warnings.clone_from(&document.warnings);
    text + &journal.text(&so_far)
}

#[test]
fn a_journal_holds_the_document() {
    for (name, document) in examples::all() {
        let text = journal(&document);
        let rounds: usize = document.cells.iter().map(|cell| cell.rounds.len()).sum();
        assert!(text.lines().count() > rounds, "{name}: a line for each round");
        let read = Document::from_json(&text).unwrap();
        let reason = if document.complete || rounds == 0 {
            document.incomplete_reason.clone()
        } else {
            document.incomplete_reason.clone().or(read.incomplete_reason.clone())
        };
        assert_eq!(read, Document { incomplete_reason: reason, ..document }, "{name}");
    }
}

#[test]
fn a_journal_that_was_cut_off_has_what_was_whole() {
    let document = example("three-levels");
    let text = journal(&document);
    let rounds = |text: &str| {
        let read = Document::from_json(text).unwrap();
        assert!(read.incomplete_reason.is_some_and(|reason| reason.contains("was ended before")), "{text}");
        read.cells.iter().map(|cell| cell.rounds.len()).sum::<usize>()
    };
    let ends: Vec<usize> = text.match_indices('\n').map(|(place, _)| place + 1).collect();
    for (line, end) in ends.iter().enumerate().skip(1).take(9) {
        assert_eq!(rounds(&text[..*end]), line, "whole lines");
        assert_eq!(rounds(&text[..end + 20]), line, "and the start of another");
    }
    // The first line alone is a document without rounds.
    assert!(Document::from_json(&text[..ends[0]]).unwrap().cells.iter().all(|cell| cell.rounds.is_empty()));
}

#[test]
fn a_damaged_line_of_a_journal_is_named() {
    let text = journal(&example("three-levels"));
    for (from, to, what) in [
        ("{\"cell\":1,\"round\"", "{\"cell\":7,\"round\"", "there is no cell 7"),
        ("{\"cell\":1,\"round\"", "{\"cell\":1,round\"", "column"),
    ] {
        let error = Document::from_json(text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with("line 5 of this unfinished") && error.contains(what), "{error}");
    }
    let newer = text.replacen("\"format_version\":1", "\"format_version\":99", 1);
    assert!(Document::from_json(newer).unwrap_err().to_string().contains("format version 99"));
}

#[test]
fn summarising_again_changes_nothing() {
    for (name, document) in examples::all() {
        let mut read = Document::from_json(document.to_json()).unwrap();
        for cell in &mut read.cells {
            cell.summary = isobench_result::Summary::default();
        }
        summarise(&mut read);
        assert_eq!(read, document, "{name}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (name, document) in examples::all() {
        let forms = [Extent::Screen, Extent::Audit, Extent::Details, Extent::Legend];
        for (width, extent) in
            [60, 80, 100, 132, 200].into_iter().flat_map(|width| forms.map(|form| (width, form)))
        {
            let terminal = Terminal { width, extent, unicode: true };
            for line in terminal.render(&document).to_string().lines() {
                assert!(line.width() <= width, "{name} at {width}: {line}");
            }
        }
    }
}

/// What a reader chooses a level by has a column on the smallest usual terminal.
#[test]
fn eighty_columns_show_what_matters() {
    for (name, document) in examples::all().into_iter().filter(|(_, document)| !document.cells.is_empty()) {
        let text = details(80).render(&document).to_string();
        let heading = text.lines().find(|line| line.contains(" level  ") || line.starts_with("level "));
        let heading: Vec<&str> = heading.unwrap_or_default().split_whitespace().collect();
        let compared = document.cells.iter().any(|cell| cell.summary.ratio.is_some()) && name != "single-run";
        let judged = document.cells.iter().any(|cell| cell.summary.verdict.is_some());
        let wanted = [
            ("level", true),
            ("committed", true),
            ("against", compared),
            ("anomalies", judged),
            ("verdict", true),
        ];
        for (column, _) in wanted.iter().filter(|(_, wanted)| *wanted) {
            assert!(heading.contains(column), "{name} lacks {column}:\n{text}");
        }
    }
}

/// The first screen of a small terminal has the headline, whatever stands above or below it.
#[test]
fn the_report_starts_with_the_answer() {
    for (name, document) in examples::all() {
        let text = details(80).render(&document).to_string();
        let screen: Vec<&str> = text.lines().take(20).flat_map(|line| line.split_whitespace()).collect();
        let headline = answer(&document).text();
        assert!(
            screen.join(" ").contains(&headline.split_whitespace().collect::<Vec<_>>().join(" ")),
            "{name}:\n{text}"
        );
    }
}

#[test]
fn emphasis_follows_from_the_meaning() {
    let emphasised = |name: &str, wanted: Emphasis| -> Vec<String> {
        let text = details(80).render(&example(name));
        let spans = text.lines().iter().flatten().filter(|span| span.emphasis == wanted);
        spans.map(|span| span.text.trim().to_owned()).collect()
    };
    for (name, words) in [
        ("broken-promise", "PROMISE BROKEN"),
        ("interrupted", "INCOMPLETE 0/3"),
        ("interrupted", "INCOMPLETE: interrupted by Ctrl-C in round 2 of 3"),
        ("violated", "VIOLATED"),
        ("strategies", "LOST WORK 93.9 %"),
        ("all-failed", "ERRORED 16"),
    ] {
        let grave = emphasised(name, Emphasis::Grave);
        assert!(grave.iter().any(|found| found == words), "{name}: {grave:?}");
    }
    assert!(emphasised("three-levels", Emphasis::Grave).is_empty());
    assert!(emphasised("withheld", Emphasis::Caution).contains(&"withheld".to_owned()));
    assert!(emphasised("three-levels", Emphasis::Faint).contains(&"0.47–0.51".to_owned()));
    let headline = emphasised("three-levels", Emphasis::Headline).join(" ");
    assert_eq!(headline, answer(&example("three-levels")).text());
}

#[test]
fn what_cannot_be_trusted_is_branded_in_the_row_and_in_the_sentence() {
    for (name, brands) in [
        ("interrupted", &["INCOMPLETE 0/3", "INCOMPLETE: interrupted", "INCOMPLETE: 0 of 3"][..]),
        ("violated", &["VIOLATED", "The database was WRONG after 1 of 3 rounds", "17 accounts below zero"]),
        (
            "level-mismatch",
            &["→ serializable", "→ unknown", "ASKED FOR; the server says it runs serializable"],
        ),
        ("all-failed", &["ERRORED 16", "ERRORED: 16 transactions", "given up"]),
        (
            "withheld",
            &[
                "withheld",
                "The verdict on serializable is withheld: the history does not account for what was read",
                "read version 7 of registers 5",
                "the history is not complete",
            ],
        ),
        (
            "broken-promise",
            &[
                "PROMISE BROKEN",
                "FORBIDDEN ANOMALY",
                "serializable is promised, but there was write skew (G2-item)",
                "T15",
            ],
        ),
        (
            "checked",
            &[
                "12 shifts",
                "no forbidden anomaly",
                "729 of 6,300 transactions had an anomaly: 630 lost updates and 99 read skews",
            ],
        ),
        (
            "strategies",
            &[
                "LOST WORK 93.9 %",
                "Repeatable read with swallow LOST WORK, so it can't be recommended: of 2,150 transactions per second \
                 that the server acknowledged, 6.1 % committed work; the others swallowed their error.",
                "retry 7, for-update 8 to 9, swallow 1",
            ],
        ),
        (
            "experiment",
            &[
                "2 of 6 shapes came out again; 1 differs for a known reason, 1 differs for no \
                 reason that is known, 1 is left open by the scatter of the rounds, 1 wasn't \
                 measured.",
                "not settled Locking first costs a little.",
                "same shape Most of what was acknowledged did nothing. Published 8.0 %, ours 6.1 \
                 %; 20.0 % or less is the same shape.",
                "Why: This is made up.",
                "not measured A procedure keeps the most. No figure was published; nothing was \
                 measured of serializable, procedure.",
                "What the original missed: - What was lost wasn't counted.",
            ],
        ),
        ("counted", &["13,500 / 16,000"]),
        ("scan", &["PostgreSQL 14.20, 18.4 started by isobench", "+63.9 %"]),
        ("single-round", &["No intervals: they need three complete rounds or more"]),
        ("three-levels", &["can't lose updates even at read committed"]),
    ] {
        let text =
            details(120).render(&example(name)).to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        for brand in brands {
            assert!(text.contains(brand), "{name} lacks \"{brand}\":\n{text}");
        }
    }
}

#[test]
fn a_trustworthy_comparison_has_no_brand() {
    for name in ["three-levels", "checked"] {
        let text = details(120).render(&example(name)).to_string();
        for brand in ["INCOMPLETE", "ERRORED", "VIOLATED", "WRONG", "ASKED FOR", "BROKEN"] {
            assert!(!text.contains(brand), "{name}: {brand}:\n{text}");
        }
    }
}

#[test]
fn levels_are_compared_within_their_round() {
    let mut document = example("three-levels");
    // The reference lost round 3: only rounds 1 and 2 can be paired.
    document.cells[0].rounds.truncate(2);
    document.cells[2].rounds[2] = Story { committed: 1_000_000, ..Story::default() }.round(3, 5);
    summarise(&mut document);
    let ratio = document.cells[2].summary.ratio.clone().unwrap();
    assert!((ratio.mean - 0.41).abs() < 0.01, "{ratio:?}");
    assert_eq!(document.cells[0].summary.ratio.as_ref().map(|ratio| ratio.mean), Some(1.0));
}

#[test]
fn cells_with_other_factors_are_not_compared() {
    let mut document = example("three-levels");
    document.cells[0].clients = 16;
    summarise(&mut document);
    assert_eq!(document.cells[2].summary.ratio, None);
    assert!(document.cells[0].summary.ratio.is_some());
}

#[test]
fn percentiles_come_from_merged_histograms() {
    let mut document = example("three-levels");
    let cell = &mut document.cells[0];
    // Two rounds, one of them slow and small: the mean of the two p90 would be about 500 ms.
    cell.rounds = vec![
        Story { committed: 1900, latency_us: 1_000, ..Story::default() }.round(1, 5),
        Story { committed: 10, latency_us: 1_000_000, ..Story::default() }.round(2, 5),
    ];
    summarise(&mut document);
    let latency = &document.cells[0].summary.latency_ms;
    assert!(latency.p90.is_some_and(|p90| p90 < 1.6), "{latency:?}");
    assert!(latency.max.is_some_and(|max| max > 1000.0), "{latency:?}");
}

#[test]
fn a_missing_histogram_costs_the_percentiles_only() {
    let mut document = example("three-levels");
    document.cells[0].rounds[1].latency_ms.histogram = None;
    summarise(&mut document);
    let summary = &document.cells[0].summary;
    assert_eq!(summary.latency_ms.p50, None);
    assert!(summary.tps.mean.is_some());
}

/// Results are summarised and saved after every cell, so a histogram is decoded when it is read,
/// and all that use it afterwards get that one.
#[test]
fn a_histogram_is_decoded_once() {
    let histograms = |document: &Document| -> Vec<*const LatencyHistogram> {
        let rounds = document.cells.iter().flat_map(|cell| &cell.rounds);
        rounds.map(|round| ptr::from_ref(round.latency_ms.histogram.as_ref().unwrap().histogram())).collect()
    };
    let mut document = Document::from_json(example("three-levels").to_json()).unwrap();
    let before = histograms(&document);
    assert_eq!(before.len(), 9);
    summarise(&mut document);
    assert_eq!(histograms(&document), before);
    assert_eq!(histograms(&document.clone()), before);
    // So a text that isn't a histogram can't get as far as a summary.
    let text = document.to_json();
    let start = text.find("\"histogram\": \"").expect("a histogram") + "\"histogram\": \"".len();
    let damaged = format!("{}?{}", &text[..start], &text[start + 1..]);
    let error = Document::from_json(damaged).unwrap_err().to_string();
    assert!(error.contains("the histogram isn't base64") && error.contains(" at line "), "{error}");
}

#[test]
fn an_invariant_that_was_not_checked_did_not_hold() {
    let mut document = example("three-levels");
    document.cells[0].rounds[0].invariants[1] =
        Invariant::unchecked("history rows = committed", "server gone");
    document.cells[1].rounds[2].invariants.clear();
    summarise(&mut document);
    let held: Vec<Option<bool>> = document.cells.iter().map(|cell| cell.summary.invariants_held).collect();
    assert_eq!(held, [None, None, Some(true)]);
    assert!(!document.has_violations());
    assert!(example("violated").has_violations());
    assert!(example("level-mismatch").has_level_mismatch() && !document.has_level_mismatch());
}

#[test]
fn unknown_fields_are_ignored() {
    let mut value: Value = serde_json::from_str(&example("three-levels").to_json()).unwrap();
    value["novelty"] = Value::from(1);
    value["cells"][0]["rounds"][0]["novelty"] = Value::from(1);
    assert_eq!(Document::from_json(value.to_string()).unwrap(), example("three-levels"));
}

#[test]
fn optional_fields_may_be_missing() {
    let mut value: Value = serde_json::from_str(&example("three-levels").to_json()).unwrap();
    for field in ["warnings", "started_at"] {
        value.as_object_mut().unwrap().remove(field);
    }
    for field in ["order", "warmup", "client_cpu_s", "connect_s", "invariants", "complete"] {
        value["cells"][0]["rounds"][0].as_object_mut().unwrap().remove(field);
    }
    value["plan"] = serde_json::json!({});
    assert!(Document::from_json(value.to_string()).is_ok());
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let damaged = "; use the file as isobench wrote it, or measure again";
    for (text, reason) in [
        ("", "this is not a readable isobench result: EOF while parsing a value at line 1 column 0"),
        ("hello", "expected value at line 1 column 1"),
        ("3", "expected an object at line 1 column 1"),
        ("{", damaged),
        ("{\"format\": \"isobench/result\",\n\"format_version\": 1,\n\"compl", "at line 3 column 6"),
        ("{\"format\": \"isobench/result\", \"format_version\": 1}", "missing field"),
        ("{}", "\"format\" is missing, expected \"isobench/result\"; use a file that --json wrote"),
        ("{\"format\": 3}", "this is not an isobench result: \"format\" is 3"),
    ] {
        let error = Document::from_json(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn damage_is_located() {
    let text = example("three-levels").to_json();
    let line = |text: &str| text.lines().position(|line| line.contains("\"wasted\"")).expect("a time") + 1;
    let wrong = text.replacen("\"wasted\": 0.0", "\"wasted\": \"long\"", 1);
    let error = Document::from_json(&wrong).unwrap_err().to_string();
    assert!(error.contains(&format!("invalid type: string \"long\", expected f64 at line {}", line(&wrong))));
    let mut bytes = text.clone().into_bytes();
    let place = text.find("Example CPU").expect("a name");
    bytes[place] = 0xff;
    let error = Document::from_json(bytes).unwrap_err().to_string();
    assert!(error.contains("invalid unicode code point at line "), "{error}");
}

#[test]
fn other_versions_are_refused_with_a_reason() {
    let version = |version: &str| {
        let found = format!("\"format_version\": {version}");
        let text = example("nothing").to_json().replacen("\"format_version\": 1", &found, 1);
        Document::from_json(&text).unwrap_err().to_string()
    };
    assert_eq!(
        version("2"),
        "this result has format version 2, but this isobench reads version 1; \
         use the isobench that wrote it or a newer one"
    );
    for wrong in ["0", "-1", "1.5", "\"1\"", "{}"] {
        let start =
            format!("this is not a readable isobench result: \"format_version\" is {wrong}, expected 1;");
        assert!(version(wrong).starts_with(&start), "{}", version(wrong));
    }
    assert!(version("null").contains("\"format_version\" is missing, expected 1"), "{}", version("null"));
}

#[test]
fn infinite_numbers_become_null() {
    let mut document = example("three-levels");
    document.cells[0].rounds[0].client_cpu_s = Some(f64::NAN);
    document.cells[0].rounds[0].tps = Some(f64::INFINITY);
    let value: Value = serde_json::from_str(&document.to_json()).unwrap();
    let round = &value["cells"][0]["rounds"][0];
    assert!(round["client_cpu_s"].is_null() && round["tps"].is_null());
    assert!(Document::from_json(document.to_json()).is_ok());
}

fn stories() -> impl Strategy<Value = Story> {
    let count = || prop_oneof![Just(0_u64), 0_u64..2000];
    (count(), count(), count(), count(), count(), count(), count(), 0_u64..10_000_000, count(), count())
        .prop_map(|counts| Story {
            committed: counts.0,
            retried: counts.1,
            given_up: counts.2,
            ambiguous: counts.3,
            cut_off: counts.4,
            swallowed: counts.8,
            rolled_back: counts.9,
            errored: counts.5,
            skipped: counts.6,
            latency_us: counts.7,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_happened_can_be_saved_read_and_shown(
        stories in prop::collection::vec((0_usize..4, 1_u32..4, stories(), 0_u64..3, any::<bool>()), 0..8),
        width in 0_usize..200,
    ) {
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.cells = Level::ALL.map(|level| {
            Cell::new("w", CellLevel::new(Some(level), EffectiveLevel::Standard(level)))
        }).to_vec();
        for (cell, number, story, seconds, complete) in stories {
            let mut round = story.round(number, seconds);
            round.complete = complete;
            prop_assert_eq!(round.check(), Ok(()));
            document.cells[cell].rounds.push(round);
        }
        summarise(&mut document);
        let json = document.to_json();
        prop_assert_eq!(&Document::from_json(&json).unwrap(), &document);
        // The JSON itself could only hold such a word inside an encoded histogram.
        for text in [render(&document, width), details(width).render(&document).to_string(), to_csv(&document)] {
            prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }

    #[test]
    fn the_figures_of_a_round_are_those_of_the_recorders(story in stories(), millis in 1_u64..10_000) {
        let ledger = story.ledger();
        prop_assert_eq!(story.round(1, 1).ledger(), ledger);
        let round = isobench_result::Round::from_ledger(
            1, &ledger, &LatencyHistogram::new(), Duration::from_millis(millis), Vec::new());
        let expected = story.committed as f64 / (millis as f64 / 1000.0);
        prop_assert!((round.tps.unwrap() - expected).abs() <= expected * 1e-12);
    }
}
