//! Pipelines: replies to several commands, errors in between, synchronisation points.

use isobench_pgwire::SqlState;
use isobench_runner::{AbortCause, OnError, Protocol, Unfinished};
use isobench_stats::Attempts;
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

use crate::harness::{Case, at, millis};

const BLOCK: &str = "\\set v random(1, 1000000)
\\startpipeline
BEGIN;
UPDATE t SET v = :v;
INSERT INTO h VALUES (:v);
END;
\\endpipeline
";

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);

fn pipelined(script: &str) -> Case {
    Case::new(script).protocol(Protocol::Prepared).transactions(3)
}

#[test]
fn a_pipeline_is_one_request() {
    for protocol in [Protocol::Extended, Protocol::Prepared] {
        let ran = pipelined(BLOCK).protocol(protocol).run();
        assert_eq!((ran.ledger.attempts.committed, ran.outcome.elapsed), (3, millis(12)));
    }
}

#[test]
fn statements_of_a_pipeline_are_prepared_once() {
    let repeated = "\\startpipeline\nSELECT 1;\nSELECT 1;\n\\endpipeline\nSELECT 1;\n";
    assert_eq!(pipelined(repeated).run().truth.parses, [3]);
    assert_eq!(pipelined(BLOCK).run().truth.parses, [4]);
}

#[test]
fn a_conflict_in_a_pipeline_is_retried() {
    for (on, command) in [(On::Begin, 2), (On::Update, 3), (On::Insert, 4), (On::Commit, 5)] {
        for protocol in [Protocol::Extended, Protocol::Prepared] {
            let faults = Faults::none().and(on, When::First(2), CONFLICT);
            let ran = pipelined(BLOCK).protocol(protocol).faults(faults).run();
            assert_eq!(
                ran.ledger.attempts,
                Attempts { started: 5, committed: 3, retried: 2, ..Attempts::default() },
                "{on:?} {protocol:?}"
            );
            assert_eq!((ran.outcome.conflicts[0].command, ran.outcome.conflicts[0].count), (command, 2));
            let mut values = ran.truth.matching(0, "BEGIN");
            values.dedup();
            assert_eq!(values, ["BEGIN"]);
        }
    }
}

#[test]
fn what_couldnt_be_prepared_is_prepared_before_the_next_attempt() {
    let script = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\syncpipeline\nSELECT 3;\n\\endpipeline\n";
    for (number, command) in [(0, 1), (1, 2), (2, 4)] {
        let faults = Faults::none().and(On::Parse, When::Nth(0, number), CONFLICT);
        let ran = pipelined(script).faults(faults).run();
        assert_eq!((ran.ledger.attempts.committed, ran.ledger.attempts.retried), (3, 1), "Parse {number}");
        assert_eq!((ran.outcome.aborted, ran.truth.parses), (0, vec![4]));
        // The command to be prepared is to blame, although \startpipeline is being executed.
        assert_eq!(ran.outcome.conflicts[0].command, command);
    }
    let faults = Faults::none().and(On::Select, When::First(1), CONFLICT);
    assert_eq!(pipelined(script).faults(faults).run().ledger.attempts.committed, 3);
}

#[test]
fn another_error_in_a_pipeline_names_its_command() {
    let faults = Faults::none().and(On::Insert, When::First(1), Fault::Error(SqlState::UNDEFINED_TABLE));
    let ran = pipelined(BLOCK).faults(faults.clone()).run();
    let (place, failed) = ran.server_error();
    assert_eq!((place, failed.error.code, failed.query), (at(0, 0, 4), SqlState::UNDEFINED_TABLE, 0));
    assert_eq!(failed.text, None, "only the statement's name was sent");
    let mut case = pipelined(BLOCK).faults(faults);
    case.spec.on_error = OnError::Continue;
    let ran = case.run();
    assert_eq!((ran.ledger.attempts.errored, ran.ledger.attempts.committed), (1, 2));
}

#[test]
fn synchronisation_points_divide_a_pipeline() {
    let script = "\\startpipeline\nBEGIN;\n\\syncpipeline\nUPDATE t SET v = 1;\n\\syncpipeline\n\
        INSERT INTO h VALUES (1);\nEND;\n\\endpipeline\n";
    assert_eq!(pipelined(script).run().ledger.attempts.committed, 3);
    // The error in the middle aborts the block. Later errors are its consequences, not causes.
    let faults = Faults::none().and(On::Update, When::First(1), CONFLICT);
    let ran = pipelined(script).faults(faults).run();
    assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (1, 3));
    assert_eq!(ran.outcome.conflicts[0].command, 3);
}

#[test]
fn two_pipelines_in_one_script() {
    let script = "\\startpipeline\nBEGIN;\nINSERT INTO h VALUES (1);\n\\endpipeline\n\
        \\startpipeline\nUPDATE t SET v = 1;\nEND;\n\\endpipeline\n";
    for on in [On::Insert, On::Update, On::Commit] {
        let ran = pipelined(script).faults(Faults::none().and(on, When::First(1), CONFLICT)).run();
        assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (1, 3), "{on:?}");
    }
}

#[test]
fn a_sleep_in_a_pipeline_doesnt_wait_for_replies() {
    let script = "\\startpipeline\nBEGIN;\nINSERT INTO h VALUES (1);\n\\sleep 10 ms\nEND;\n\\endpipeline\n";
    let ran = pipelined(script).transactions(1).run();
    assert_eq!((ran.ledger.attempts.committed, ran.outcome.elapsed), (1, millis(11)));
    let with_replies = script.replace("\\sleep", "\\syncpipeline\n\\sleep");
    assert_eq!(pipelined(&with_replies).transactions(1).run().outcome.elapsed, millis(11));
}

#[test]
fn a_connection_lost_with_a_commit_in_the_pipeline_is_ambiguous() {
    for (on, fault) in [
        (On::Commit, Fault::LostAfter(Loss::Closed)),
        (On::Commit, Fault::Lost(Loss::Reset)),
        (On::Update, Fault::TERMINATED),
    ] {
        let ran = pipelined(BLOCK).faults(Faults::none().and(on, When::First(1), fault)).run();
        assert_eq!(ran.ledger.attempts.ambiguous, 1, "{fault:?}");
    }
}

#[test]
fn a_commit_that_was_sent_before_a_sleep_is_ambiguous_too() {
    let script = "\\startpipeline\nBEGIN;\nINSERT INTO h VALUES (1);\nEND;\n\\sleep 10 ms\n\\endpipeline\n";
    let faults = Faults::none().and(On::Commit, When::First(1), Fault::LostAfter(Loss::Closed));
    let ran = pipelined(script).faults(faults).run();
    assert_eq!((ran.ledger.attempts.ambiguous, ran.truth.committed_rows), (1, 1));
}

#[test]
fn pipelines_need_the_extended_protocol_and_an_order() {
    let ran = Case::new(BLOCK).run();
    let why = "cannot use pipeline mode with the simple query protocol".to_owned();
    assert_eq!(ran.abort(), (at(0, 0, 1), AbortCause::NotAllowed(why)));
    for (script, problem) in [
        ("\\startpipeline\n\\startpipeline\n", "already in pipeline mode"),
        ("SELECT 1;\n\\endpipeline\n", "not in pipeline mode"),
        ("SELECT 1;\n\\syncpipeline\n", "not in pipeline mode"),
    ] {
        let ran = pipelined(script).run();
        assert_eq!(ran.abort(), (at(0, 0, 1), AbortCause::NotAllowed(problem.to_owned())));
        assert_eq!(ran.ledger.attempts.errored, 1);
    }
}

#[test]
fn copy_in_a_pipeline_ends_the_client() {
    for copy in ["COPY t FROM STDIN", "COPY t TO STDOUT"] {
        for protocol in [Protocol::Extended, Protocol::Prepared] {
            for rest in ["", "SELECT 1;\n", "SELECT 1;\n\\syncpipeline\nSELECT 2;\n"] {
                let script = format!("\\startpipeline\n{copy};\n{rest}\\endpipeline\n");
                let ran = pipelined(&script).protocol(protocol).on_error(OnError::Continue).run();
                assert_eq!(ran.abort().1, AbortCause::Copy, "{protocol:?} {copy} {rest}");
                assert_eq!((ran.ledger.transactions.total, ran.ledger.transactions.committed), (1, 0));
            }
        }
    }
}

/// Commands 6 and 7 are in a pipeline, but not after its \startpipeline in the script.
const UNFORESEEN: &str = "\\if :client_id = 0
\\startpipeline
\\else
SELECT 5;
\\endpipeline
\\endif
UPDATE t SET v = 1;
INSERT INTO h VALUES (1);
\\endpipeline
";

#[test]
fn a_branched_pipeline_is_sent_without_names() {
    let ran = pipelined(UNFORESEEN).run();
    assert_eq!(ran.ledger.attempts.committed, 3);
    assert_eq!(ran.truth.texts(0), ["UPDATE t SET v = 1", "INSERT INTO h VALUES (1)"].repeat(3));
    // SELECT 5 once per session, the other two each time.
    assert_eq!(ran.truth.parses, [7]);
}

#[test]
fn a_conflict_of_a_branched_pipeline_is_retried() {
    for on in [On::Update, On::Insert] {
        let faults = Faults::none().and(on, When::First(2), CONFLICT);
        let ran = pipelined(UNFORESEEN).faults(faults).run();
        assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (2, 3), "{on:?}");
        assert_eq!(ran.outcome.aborted, 0);
    }
    for (number, command) in [(0, 3), (1, 6), (2, 7)] {
        let faults = Faults::none().and(On::Parse, When::Nth(0, number), CONFLICT);
        let ran = pipelined(UNFORESEEN).faults(faults).run();
        assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (1, 3), "Parse {number}");
        assert_eq!(ran.outcome.conflicts[0].command, command);
    }
}

#[test]
fn an_error_of_a_branched_pipeline_has_its_text() {
    let faults = Faults::none().and(On::Parse, When::Nth(0, 2), Fault::Error(SqlState::UNDEFINED_TABLE));
    let (place, failed) = pipelined(UNFORESEEN).faults(faults).run().server_error();
    assert_eq!((place, failed.text.as_deref()), (at(0, 0, 7), Some("INSERT INTO h VALUES (1);")));
}

#[test]
fn a_pipeline_must_be_ended() {
    for script in ["\\startpipeline\nSELECT 1;\n", "\\startpipeline\nSELECT 1;\n\\syncpipeline\n"] {
        let ran = pipelined(script).run();
        assert_eq!(ran.abort().1, AbortCause::Unfinished(Unfinished::Pipeline));
        assert_eq!(ran.ledger.attempts.errored, 1);
    }
}

#[test]
fn an_empty_pipeline_is_a_synchronisation() {
    assert_eq!(pipelined("\\startpipeline\n\\endpipeline\n").run().ledger.attempts.committed, 3);
}
