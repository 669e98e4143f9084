//! The user's own conditions and tables: what is asked and done, when, and what isn't.
//!
//! Not here: conditions that become false while measuring, which need a real server
//! (`isobench/tests/cli/own_tables.rs`).

use isobench_database::facts::namespace::NamespaceFacts;
use isobench_result::StartingState;
use isobench_testkit::simulated::Answer;

use crate::stage::{Stage, UPDATE};

/// A condition without spaces, as the stage's options have none, and its query.
const TOTAL: &str = "--invariant total:SELECT(total_is_right())";
const QUERY: &str = "total_is_right()";

#[test]
fn a_condition_is_asked_before_the_first_round_and_after_every_one() {
    let ran = Stage::new(&format!("--levels rc,ser --rounds 2 {TOTAL}")).answering(QUERY, "t").run();
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![2, 2]));
    for round in ran.document().cells.iter().flat_map(|cell| &cell.rounds) {
        // Instead of "unchecked", which scripts of one's own have without a condition.
        let [total] = round.invariants.as_slice() else { panic!("{:?}", round.invariants) };
        assert_eq!((total.name.as_str(), total.held, total.own), ("total", Some(true), true));
        assert_eq!((total.violations, total.unit.as_deref()), (Some(0), Some("rounds")));
    }
    let promised = ran.document().cells.iter().map(|cell| cell.rounds[0].invariants[0].promised);
    assert_eq!(promised.collect::<Vec<_>>(), [false, true]);
    assert!(ran.document().cells.iter().all(|cell| cell.summary.invariants_held == Some(true)));
    assert_eq!(
        ran.document().plan.invariant.as_deref(),
        Some(&["total:SELECT(total_is_right())".to_owned()][..])
    );
    // Always in a read-only transaction, of which nothing is left.
    assert_eq!((ran.truth.count(QUERY), ran.truth.count("READ ONLY")), (1 + 4, 1 + 4));
    for session in &ran.truth.statements {
        let sent: Vec<&str> = session.iter().map(|executed| executed.sql.as_str()).collect();
        let asked = sent.iter().position(|sql| sql.contains(QUERY));
        assert!(asked.is_none_or(|asked| {
            sent[asked - 1] == "BEGIN TRANSACTION READ ONLY" && sent[asked + 1] == "ROLLBACK"
        }));
    }
}

#[test]
fn a_condition_adds_to_those_of_a_workload() {
    let ran = Stage::builtin(&format!("--levels rc {TOTAL}")).answering(QUERY, "t").run();
    let names: Vec<_> =
        ran.document().cells[0].rounds[0].invariants.iter().map(|one| (one.name.as_str(), one.own)).collect();
    assert!(names.contains(&("history rows = committed", false)) && names.last() == Some(&("total", true)));
}

#[test]
fn what_is_no_condition_is_refused_before_measuring() {
    let one = |value| Answer { columns: vec!["v"], rows: vec![vec![value]] };
    for (answer, part) in [
        (one(Some("f")), "doesn't hold before anything is measured"),
        (one(None), "returned NULL"),
        (one(Some("12")), "neither true nor false"),
        (Answer { columns: vec!["v"], rows: Vec::new() }, "returned no rows"),
    ] {
        let stage =
            Stage { answers: vec![(QUERY, answer)], ..Stage::new(&format!("--levels rc,ser {TOTAL}")) };
        let ran = stage.run();
        let failure = ran.failure();
        assert!(failure.starts_with("--invariant \"total\": ") && failure.contains(part), "{failure}");
        assert!(failure.ends_with("in SELECT(total_is_right())"), "{failure}");
        assert_eq!((ran.truth.count(UPDATE), ran.truth.count(QUERY)), (0, 1));
    }
    let ran = Stage::new(&format!("--levels rc {TOTAL}")).failing(QUERY, *b"42703", 1..).run();
    assert!(ran.failure().starts_with("--invariant \"total\": "), "{}", ran.failure());
}

#[test]
fn a_condition_that_fails_later_is_not_checked() {
    let stage = Stage::new(&format!("--levels rc,ser {TOTAL}")).answering(QUERY, "t");
    let ran = stage.failing(QUERY, *b"57014", 2..).run();
    for cell in &ran.document().cells {
        let [total] = cell.rounds[0].invariants.as_slice() else { panic!("one condition") };
        assert!(total.held.is_none() && total.detail.starts_with("could not be checked: "), "{total:?}");
        assert_eq!(cell.summary.invariants_held, None);
    }
}

/// A comparison in the user's schema `app`.
fn kept(options: &str) -> Stage {
    let mut stage = Stage::new("").answering("current_schema()", "app");
    let folder = stage.folder.path().display().to_string();
    stage.options = format!("--workload {folder}/own.sql --schema app --keep-data {options}");
    std::fs::write(stage.folder.path().join("back.sql"), "UPDATE back SET v = 0;\n").expect("a file");
    stage.options = stage.options.replace("FOLDER", &folder);
    stage
}

#[test]
fn nothing_is_made_in_a_schema_of_the_users() {
    for (options, state, resets) in [
        ("--levels rc,ser --rounds 2", StartingState::Kept, 0),
        ("--levels rc,ser --rounds 2 --reset FOLDER/back.sql", StartingState::Reset, 1 + 4),
    ] {
        let ran = kept(options).run();
        assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![2, 2]));
        assert_eq!(ran.truth.count("UPDATE back"), resets, "before the trial, and before each measurement");
        assert_eq!(ran.count("warning: each measurement starts with the data"), usize::from(resets == 0));
        let rounds = || ran.document().cells.iter().flat_map(|cell| &cell.rounds);
        assert!(rounds().all(|round| round.starting_state == state));
        let plan = &ran.document().plan;
        assert_eq!((plan.schema.as_deref(), plan.keep_data), (Some("app"), Some(true)));
        for statement in ["CREATE", "DROP", "COMMENT", "TRUNCATE", "VACUUM", "checkpoint", "isobench"] {
            assert_eq!(ran.truth.count(statement), 0, "{statement}");
        }
        // Whoever works on the tables has first been asked where that is.
        for session in &ran.truth.statements {
            let place = |part: &str| session.iter().position(|executed| executed.sql.contains(part));
            if let Some(update) = place("UPDATE") {
                let entered = (place("SET search_path = \"app\""), place(NamespaceFacts::SCHEMA.current));
                assert!(entered.0.is_some() && entered.0 < entered.1 && entered.1 < Some(update));
            }
        }
    }
}

#[test]
fn attempts_on_data_that_stay_have_numbers_of_their_own() {
    let script = "BEGIN;\nUPDATE t SET writer = :attempt_id;\nEND;\n";
    let ran = kept("--levels rc,ser --transactions 1 --clients 1").script(script).run();
    let numbers = |session: &Vec<_>| -> Vec<u64> {
        let sql = session.iter().map(|executed: &isobench_testkit::simulated::Executed| &executed.sql);
        sql.filter_map(|sql| sql.split_once("writer = ")?.1.parse().ok()).collect()
    };
    let mut found: Vec<u64> = ran.truth.statements.iter().flat_map(numbers).collect();
    // The trial's, which is rolled back, and those of both measurements.
    assert_eq!(found.len(), 3);
    found.remove(0);
    assert!(found[0] > 1_000_000 && found[1] > found[0], "{found:?}");
}

#[test]
fn a_condition_is_asked_before_each_measurement_on_data_that_stay() {
    let stage = kept(&format!("--levels rc {TOTAL}"));
    // It is asked after the start, before the measurement and after it.
    let ran = stage.answering(QUERY, "t").run();
    assert_eq!(ran.truth.count(QUERY), 3);
}

#[test]
fn a_reset_that_fails_is_told_with_its_place() {
    let ran = kept("--levels rc --reset FOLDER/back.sql").failing("UPDATE back", *b"42P01", 1..).run();
    let failure = ran.failure();
    assert!(failure.contains("--reset: ") && failure.contains("back.sql:1: "), "{failure}");
}
