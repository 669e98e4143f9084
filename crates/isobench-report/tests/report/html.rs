//! The page: its structure against files, and what must be true of it whatever the document says.
//!
//! `ISOBENCH_BLESS=1 cargo test -p isobench-report` writes the outlines anew. What only a browser
//! can tell is in `browser.rs`.

mod mutilate;
mod outline;
mod sound;

use std::path::Path;

use isobench_report::{Layouts as _, render, to_csv, to_html, to_markdown};
use isobench_result::{Axis, Cell, Document, Round, TrendResult, compare_results, judge, summarise, trend};
use isobench_testkit::golden::{self, News};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::examples::{self, example};

/// Of each example the parts that show something which those before it don't.
#[test]
fn outlines_are_as_expected() {
    let mut news = News::default();
    for (name, document) in examples::all() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.outline.txt"));
        let outline = outline::of(&to_html(&document));
        golden::expect(path, &news.of(outline.split_inclusive("\n\n")));
    }
}

#[test]
fn every_example_is_a_sound_page() {
    for (name, document) in examples::all() {
        let faults = sound::faults(&to_html(&document));
        assert!(faults.is_empty(), "{name}: {faults:#?}");
    }
}

#[test]
fn thresholds_are_on_the_page() {
    let mut document = example("checked");
    let required = ["tps > 1".parse().expect("one"), "anomalies == 0".parse().expect("one")];
    document.requirements = judge(&document, &required);
    let page = to_html(&document);
    assert!(sound::faults(&page).is_empty(), "{:#?}", sound::faults(&page));
    for text in ["anomalies == 0</th>", ">NOT MET</td>", ">met</td>", "href=\"#requirements\""] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!to_html(&example("checked")).contains("id=\"requirements\""));
}

/// Each example with others.
#[test]
fn several_results_make_sound_pages() {
    let examples = examples::all();
    for three in examples.chunks_exact(3) {
        let names: Vec<&str> = three.iter().map(|(name, _)| *name).collect();
        let pair = compare_results(&three[0].1, &three[1].1).expect("the same version").named("<a>", "b");
        let named: Vec<TrendResult> =
            three.iter().map(|(name, document)| TrendResult { name, tags: &[], document }).collect();
        let trend = trend(&named, &"tps".parse().expect("a figure"), &Axis::Time);
        for page in [pair.to_html(), trend.to_html()] {
            let faults = sound::faults(&page);
            assert!(faults.is_empty(), "{names:?}: {faults:#?}");
        }
    }
}

#[test]
fn faults_of_a_page_are_found() {
    let good = to_html(&example("observed"));
    for (from, to, fault) in [
        ("</h1>", "</h2>", "HTML"),
        ("id=\"verdict\"", "id=\"answer\"", "the id answer is there twice"),
        ("href=\"#verdict\"", "href=\"#nowhere\"", "leads nowhere"),
        ("href=\"#verdict\"", "href=\"https://example.org\"", "leads nowhere"),
        ("<main", "<img><main", "there is a img"),
        ("default-src 'none'; ", "", "the policy allows too much"),
        ("<main", "<script></script><main", "1 policies and 2 scripts"),
        ("<main", "<main onclick=\"\"", "main has onclick"),
        ("<caption>", "<caption hidden></caption><caption>", "a table has no name"),
        (" scope=\"col\"", "", "a th has no name"),
        ("<h2", "<h2></h2><h4>deep</h4><h2", "\"deep\" leaves out a level"),
        ("Client</h3>", "Client is NaN</h3>", "a hole: Client is NaN"),
        ("aria-label=\"", "aria-label=\"null ", "a hole: aria-label"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        let faults = sound::faults(&bad);
        assert!(faults.iter().any(|found| found.contains(fault)), "{from} -> {to}: {faults:#?}");
    }
}

#[test]
fn what_a_document_says_is_text_and_never_markup() {
    let hostile = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;</style></pre></svg>";
    let mut document = example("observed");
    document.warnings.push(hostile.to_owned());
    document.incomplete_reason = Some(hostile.to_owned());
    document.complete = false;
    document.command.push(hostile.to_owned());
    hostile.clone_into(&mut document.server.product);
    hostile.clone_into(&mut document.client.version);
    document.server.settings.insert(hostile.to_owned(), hostile.to_owned());
    for script in &mut document.workload.scripts {
        hostile.clone_into(&mut script.name);
        hostile.clone_into(&mut script.text);
    }
    for (index, cell) in document.cells.iter_mut().enumerate() {
        cell.workload = format!("{hostile}{index}");
        for round in &mut cell.rounds {
            round.errors.push(hostile.to_owned());
            for conflict in &mut round.conflicts {
                hostile.clone_into(&mut conflict.reason);
                hostile.clone_into(&mut conflict.command);
                conflict.object = Some(hostile.to_owned());
            }
            for wait in round.server.iter_mut().flat_map(|server| &mut server.waits) {
                hostile.clone_into(&mut wait.event);
            }
            for anomaly in round.verdict.iter_mut().flat_map(|verdict| &mut verdict.anomalies) {
                anomaly.witness = vec![hostile.to_owned()];
                hostile.clone_into(&mut anomaly.known_as);
            }
        }
    }
    let page = to_html(&document);
    let faults = sound::faults(&page);
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(page.matches("<script").count(), 1, "only the page's own script");
    assert!(!page.contains("<img"));
}

#[test]
fn a_large_comparison_stays_below_two_megabytes() {
    let mut document = example("observed");
    let model = document.cells.clone();
    document.cells.clear();
    for index in 0..30_u32 {
        let mut cell = model[[0, 2, 3][index as usize % 3]].clone();
        cell.clients = 1 << (index / 3);
        let rounds = cell.rounds.clone();
        cell.rounds = (0..20)
            .map(|number| {
                let mut round = rounds[number as usize % rounds.len()].clone();
                round.round = number + 1;
                round
            })
            .collect();
        document.cells.push(cell);
    }
    let page = to_html(&document);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn a_grave_result_says_so_first() {
    for (name, word) in [
        ("interrupted", "INCOMPLETE"),
        ("broken-promise", "PROMISE BROKEN"),
        ("withheld", "VERDICT WITHHELD"),
        ("violated", "WRONG DATA"),
        ("level-mismatch", "OTHER LEVEL"),
    ] {
        let outline = outline::of(&to_html(&example(name)));
        let place = |text: &str| outline.find(text);
        assert!(place(word).is_some_and(|at| Some(at) < place("table:")), "{name}: {outline}");
    }
}

/// The number of emphasised parts of a page: what is bad, and the flags.
fn emphasised(page: &str) -> [usize; 3] {
    ["brand\"", "grave\"", "class=\"flag\""].map(|class| page.matches(class).count())
}

#[test]
fn a_users_words_are_never_emphasised() {
    for (name, document) in examples::all() {
        let before = to_html(&document);
        for word in ["BROKEN", "! drifts", "DIFFERS: LOST", "verdict"] {
            let mut document = document.clone();
            for script in &mut document.workload.scripts {
                word.clone_into(&mut script.name);
            }
            for server in std::iter::once(&mut document.server).chain(&mut document.other_servers) {
                server.settings.values_mut().for_each(|value| word.clone_into(value));
                server.settings.insert(word.to_owned(), word.to_owned());
            }
            for cell in &mut document.cells {
                cell.workload = format!("{} {word}", cell.workload);
                for round in &mut cell.rounds {
                    round.errors.push(word.to_owned());
                    for conflict in &mut round.conflicts {
                        conflict.reason += word;
                        conflict.command += word;
                        conflict.object = Some(word.to_owned());
                    }
                    for invariant in &mut round.invariants {
                        invariant.name = format!("{} {word}", invariant.name);
                        invariant.detail = format!("{} {word}", invariant.detail);
                    }
                }
            }
            let page = to_html(&document);
            assert_eq!(emphasised(&page), emphasised(&before), "{name}: {word}");
        }
    }
}

#[test]
fn flags_stand_at_the_row_and_their_sentences_below() {
    let mut document = example("observed");
    for round in &mut document.cells[2].rounds {
        round.client.as_mut().expect("it is observed").busiest = 0.99;
    }
    let page = to_html(&document);
    let faults = sound::faults(&page);
    assert!(faults.is_empty(), "{faults:#?}");
    let outline = outline::of(&page);
    let row = outline.lines().find(|line| line.starts_with("    repeatable read ")).expect("its row");
    assert!(row.contains("client-bound") && !row.contains('!'), "{row}");
    let (_, below) = outline.split_once("### Flags").expect("the flags have a heading");
    assert!(below.contains("\nrepeatable read:\n    client-bound: "), "{below}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is missing or out of range, there is a page without a hole in it, and every other
    /// rendering.
    #[test]
    fn a_mutilated_document_has_every_rendering(
        which in any::<Index>(),
        wounds in prop::collection::vec((any::<Index>(), 0_usize..mutilate::KINDS), 1..8),
    ) {
        let examples = examples::all();
        let (name, whole) = which.get(&examples);
        let document = mutilate::wounded(whole, &wounds);
        let faults = sound::faults(&to_html(&document));
        prop_assert!(faults.is_empty(), "{}: {:#?}", name, faults);
        for text in [render(&document, 80), to_markdown(&document), to_csv(&document)] {
            prop_assert!(!text.is_empty());
        }
        if let Ok(pair) = compare_results(whole, &document) {
            prop_assert!(!pair.to_text(80).is_empty() && !pair.to_markdown().is_empty() && !pair.to_csv().is_empty());
            prop_assert!(pair.regressions(0.1).len() <= 2 * whole.cells.len());
        }
    }
}

/// Numbers that only a damaged document has, each of which once left a hole, or ended the program.
#[test]
fn numbers_beyond_any_measurement_leave_a_whole_page() {
    for (name, pointer, number) in [
        ("observed", "/cells/0/rounds/1/server/at_s/0", Value::from(f64::MAX)),
        ("machines", "/cells/0/rounds/0/machines/1/rank", Value::from(u32::MAX)),
        ("standby", "/cells/0/rounds/0/background/times", Value::from(u64::MAX)),
    ] {
        let mut document = serde_json::to_value(example(name)).expect("plain data");
        *document.pointer_mut(pointer).expect(pointer) = number;
        let document: Document = serde_json::from_value(document).expect(pointer);
        let faults = sound::faults(&to_html(&document));
        assert!(faults.is_empty(), "{name}{pointer}: {faults:#?}");
    }
}

/// Rounds and cells without end have no place in a page that people open.
#[test]
fn a_page_of_many_rounds_says_what_it_leaves_out() {
    let mut document = example("observed");
    let few = to_html(&document);
    assert!(few.contains("Every round of every level") && few.contains("class=\"dot\""));
    let models = std::mem::take(&mut document.cells);
    for clients in 1..=10 {
        document.cells.extend(models.iter().cloned().map(|cell| Cell { clients, ..cell }));
    }
    for cell in &mut document.cells {
        let rounds = cell.rounds.iter().cycle().zip(1..=50);
        cell.rounds = rounds.map(|(round, number)| Round { round: number, ..round.clone() }).collect();
    }
    assert!(document.cells.len() > 24, "more than a page has the data of");
    summarise(&mut document);
    let many = to_html(&document);
    let faults = sound::faults(&many);
    assert!(faults.is_empty(), "{faults:#?}");
    for said in [
        " rounds: isobench report RESULT --csv FILE writes a line for each",
        "The data have the lowest and the highest round of every cell.",
        "the data have the percentiles of all.",
    ] {
        assert!(many.contains(said), "{said}");
    }
    assert!(!many.contains("Every round of every level") && !many.contains("class=\"dot\""));
    let dots = many.split("<path class=\"rounds\" d=\"").skip(1).map(|path| path.split('"').next());
    let dots: Vec<usize> = dots.map(|path| path.unwrap_or_default().matches("h0").count()).collect();
    assert_eq!(dots, vec![50; document.cells.len()], "every round is seen");
}
