//! Cells that can't be measured, and messages.

use isobench_pgwire::SqlState;
use isobench_testkit::simulated::{Answer, Fault};

use crate::stage::{Stage, UPDATE};

#[test]
fn a_cell_that_fails_does_not_end_the_others() {
    // In the trial, or only when the clients run the script.
    for (successes, rounds) in [(0, [2, 0]), (1, [2, 1])] {
        let stage =
            Stage::new("--levels rc --rounds 2 --vary variant=0,1").script("UPDATE t SET v = :variant;\n");
        let ran = stage.failing("v = 1", *b"42P01", successes + 1..).run();
        assert_eq!(ran.rounds(), rounds);
        for part in ["variant 1 can't be measured: ", "own.sql:1", "relation \"t\" does not exist"] {
            assert!(ran.incomplete().contains(part), "{}", ran.incomplete());
        }
        assert_eq!(ran.count("note: read committed, 2 clients, variant 1 can't be measured"), 1);
    }
}

#[test]
fn scripts_that_always_fail_are_refused_before_measuring() {
    for (code, advice) in [(*b"42P01", "tables of your own by compare's --setup"), (*b"42703", "")] {
        let ran = Stage::new("--levels rc,ser").failing(UPDATE, code, 1..).run();
        let failure = ran.failure();
        assert!(failure.starts_with("read committed, 2 clients can't be measured: "), "{failure}");
        assert!(failure.contains("own.sql:2") && failure.contains(advice), "{failure}");
        let tried = (ran.count("preparing"), ran.truth.count(UPDATE));
        assert_eq!(tried, (0, 1), "one trial serves both levels");
    }
    let answers = vec![("FROM empty", Answer::column("v", &[]))];
    let stage = Stage { answers, ..Stage::new("--levels rc") };
    let failure = stage.script("SELECT v FROM empty \\gset\n").run().failure();
    assert!(failure.contains("own.sql:1") && failure.contains("expected one row, got 0"), "{failure}");
    assert!(failure.contains("set the variable first, read it by \\aset"), "{failure}");
}

#[test]
fn statements_that_cannot_be_tried_are_measured() {
    let fault = Fault::Error(SqlState(*b"25001"));
    let ran = Stage::new("--levels rc").rule(UPDATE, move |number, _| (number == 1).then_some(fault)).run();
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![1]));
}

#[test]
fn a_set_up_that_works_only_once_serves_one_cell() {
    let once = |options| Stage::new(options).failing("CREATE TABLE t", *b"42P07", 2..).run();
    let ran = once("--levels rc");
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![1]));
    for options in ["--levels rc,ser", "--levels rc --rounds 2", "--levels rc --resolve 1%"] {
        let failure = once(options).failure();
        for part in ["--setup: ", "setup.sql:1: ", "DROP … IF EXISTS"] {
            assert!(failure.contains(part), "{failure}");
        }
    }
}

#[test]
fn warnings_and_notes_are_reported_once_and_stored() {
    let script = "\\set x debug(42)\nUPDATE t SET v = 1;\nUPDATE t SET v = 2;\n";
    let stage = Stage::new("--levels rc,ser --rounds 2").script(script);
    let ran = stage.failing("pg_settings", *b"42501", 1..).run();
    let [warning] = &ran.document().warnings[..] else { panic!("{:?}", ran.document().warnings) };
    assert!(warning.contains("own.sql\" commits 2 times"), "{warning}");
    assert_eq!(ran.count(&format!("warning: {warning}")), 1);
    assert_eq!(ran.count("note: the settings can't be read: "), 1);
    assert!(ran.count("int 42") > 0, "{:?}", ran.said);
    // The note recurs before each cell.
    let stage = Stage::builtin("--levels rc,ser --workload select-only");
    let ran = stage.failing("checkpoint", *b"42501", 1..).run();
    let [note] = &ran.document().warnings[..] else { panic!("{:?}", ran.document().warnings) };
    assert!(note.starts_with("no right to run CHECKPOINT"), "{note}");
    assert_eq!((ran.count(&format!("note: {note}")), ran.truth.count("checkpoint")), (1, 2));
}

#[test]
fn a_withheld_verdict_is_reported_once_for_each_cell() {
    let script = "BEGIN;\n--@ write t key=1 value=7\nUPDATE t SET v = 7 WHERE id = 1;\nEND;\n";
    let ran = Stage::new("--levels rc,ser --rounds 2").script(script).run();
    for level in ["read committed", "serializable"] {
        assert_eq!(ran.count(&format!("warning: {level}, 2 clients: the verdict is withheld: ")), 1);
    }
    assert!(ran.document().withheld().is_some_and(|reason| reason.contains("own.sql:3 (UPDATE t")));
}
