//! The end of a run: by number, by time, on request, and with a server that doesn't answer.

use std::time::Duration;

use isobench_limits::LIMITS;
use isobench_pgwire::SqlState;
use isobench_runner::{AbortCause, OnError, StopCondition, Urgency};
use isobench_stats::{Attempts, Transactions};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

use crate::harness::{Case, RunResult, TRANSFER, millis, ms};

/// The server is asked to cancel at most this long after it could be.
const NOTICED: Duration = millis(51);

const HANG: Fault = Fault::Hang { cancellable: true };
const DEAF: Fault = Fault::Hang { cancellable: false };

/// One of two clients hangs; the run lasts 10 ms, with 100 ms of grace.
fn hung(on: On, fault: Fault) -> RunResult {
    let faults = Faults::none().and(on, When::Nth(0, 1), fault);
    let mut case = Case::new(TRANSFER).clients(2).faults(faults).time(millis(10));
    case.spec.grace = millis(100);
    case.run()
}

#[test]
fn every_client_does_the_number_of_transactions_asked_for() {
    let ran = Case::new(TRANSFER).clients(3).transactions(5).run();
    assert_eq!((ran.ledger.transactions.committed, ran.truth.committed_rows), (15, 15));
    assert_eq!(ran.outcome.elapsed, millis(20));
}

#[test]
fn none_asked_for_is_none_done() {
    let ran = Case::new(TRANSFER).clients(3).transactions(0).run();
    assert_eq!((ran.ledger.transactions.total, ran.outcome.elapsed), (0, Duration::ZERO));
}

#[test]
fn what_is_under_way_at_the_deadline_is_finished() {
    let ran = Case::new(TRANSFER).time(millis(10)).run();
    assert_eq!((ran.ledger.transactions.committed, ran.outcome.elapsed), (3, millis(12)));
    assert!(ran.outcome.is_complete());
}

#[test]
fn no_transaction_starts_at_or_after_the_deadline() {
    let ran = Case::new(TRANSFER).time(millis(8)).run();
    assert_eq!((ran.ledger.transactions.committed, ran.outcome.elapsed), (2, millis(8)));
    let mut case = Case::new(TRANSFER).clients(50).time(millis(100));
    case.settings.latency = 300_000..=3_000_000;
    let ran = case.run();
    let begins = ran.truth.statements.iter().flatten().filter(|statement| statement.sql == "BEGIN");
    let last = begins.map(|statement| statement.began.0).max();
    assert!(last < Some(ms(100)), "{last:?}");
}

#[test]
fn a_sleep_at_the_deadline_is_finished() {
    let ran = Case::new("BEGIN;\nINSERT INTO h VALUES (1);\n\\sleep 30 ms\nEND;\n").time(millis(10)).run();
    assert_eq!((ran.ledger.transactions.committed, ran.outcome.elapsed), (1, millis(33)));
}

#[test]
fn a_statement_that_hangs_is_cancelled_after_the_grace() {
    let ran = hung(On::Update, HANG);
    assert_eq!(ran.ledger.attempts, Attempts { started: 5, committed: 4, cut_off: 1, ..Attempts::default() });
    assert_eq!(
        ran.ledger.transactions,
        Transactions { total: 5, committed: 4, cut_off: 1, ..Transactions::default() }
    );
    // ROLLBACK takes 1 ms.
    assert!((millis(111)..millis(111) + NOTICED).contains(&ran.outcome.elapsed), "{:?}", ran.outcome.elapsed);
    assert_eq!((ran.truth.cancels, ran.outcome.aborted), (1, 0));
    assert!(ran.outcome.is_complete());
}

#[test]
fn a_cancelled_commit_is_cut_off() {
    let ran = hung(On::Commit, HANG);
    assert_eq!((ran.ledger.attempts.cut_off, ran.truth.committed_rows), (1, 4));
}

#[test]
fn a_server_that_ignores_the_cancel_is_left() {
    let ran = hung(On::Update, DEAF);
    assert_eq!(ran.ledger.attempts.cut_off, 1);
    assert!(
        (millis(2_110)..millis(2_110) + 2 * NOTICED).contains(&ran.outcome.elapsed),
        "{:?}",
        ran.outcome.elapsed
    );
    assert_eq!(ran.outcome.aborted, 1);
    assert!(!ran.outcome.is_complete());
}

#[test]
fn a_commit_without_time_for_its_reply_is_ambiguous() {
    let ran = hung(On::Commit, DEAF);
    assert_eq!(
        ran.ledger.attempts,
        Attempts { started: 5, committed: 4, ambiguous: 1, ..Attempts::default() }
    );
}

#[test]
fn a_sleep_that_is_too_long_is_cut_off() {
    let mut case = Case::new("BEGIN;\nINSERT INTO h VALUES (1);\n\\sleep 1 s\nEND;\n").time(millis(10));
    case.spec.grace = Duration::ZERO;
    let ran = case.clone().run();
    // The cancel request reaches nothing; the sleep ends within the patience, and the rest is
    // finished.
    assert_eq!((ran.ledger.attempts.committed, ran.outcome.elapsed), (1, millis(1_003)));
    case.scripts[0].0 = case.scripts[0].0.replace("1 s", "100 s");
    let ran = case.run();
    assert_eq!((ran.ledger.attempts.cut_off, ran.truth.committed_rows), (1, 0));
    assert!(ran.outcome.elapsed < millis(2_200), "{:?}", ran.outcome.elapsed);
}

/// One of two clients receives notices faster than it can read them.
fn flooded(cancellable: bool) -> Case {
    let faults = Faults::none().and(On::Update, When::Nth(0, 1), Fault::Flood { cancellable });
    let mut case = Case::new(TRANSFER).clients(2).faults(faults).time(millis(10));
    case.spec.grace = millis(100);
    case.settings.time_limit = millis(5_000);
    case
}

#[test]
fn a_server_that_never_stops_talking_doesnt_stop_the_clock() {
    // A turn of the loop takes some milliseconds here.
    let turn = millis(20);
    let ran = flooded(true).run();
    assert_eq!(ran.ledger.attempts.cut_off, 1);
    assert!(ran.ledger.attempts.committed > 2, "the other client goes on: {:?}", ran.ledger.attempts);
    assert!(ran.outcome.elapsed < millis(111) + NOTICED + turn, "{:?}", ran.outcome.elapsed);
    assert_eq!((ran.truth.cancels, ran.outcome.aborted), (1, 0));
    let ran = flooded(false).run();
    assert_eq!((ran.ledger.attempts.cut_off, ran.outcome.aborted), (1, 1));
    assert!(ran.outcome.elapsed < millis(2_110) + 2 * NOTICED + 2 * turn, "{:?}", ran.outcome.elapsed);
    let mut case = flooded(false).time(millis(60_000)).interrupt(millis(50), Urgency::Soon);
    case.spec.grace = millis(30);
    let ran = case.run();
    assert!(ran.outcome.interrupted && ran.outcome.elapsed < millis(2_300), "{:?}", ran.outcome.elapsed);
}

#[test]
fn a_session_that_doesnt_open_is_given_up_at_the_end() {
    let faults = Faults::none().and(On::Connect, When::Nth(0, 2), Fault::Hang { cancellable: false });
    let mut case = Case::new(TRANSFER).connect_each(millis(1)).clients(2).faults(faults).time(millis(50));
    case.spec.grace = millis(100);
    let ran = case.run();
    assert!(matches!(ran.abort(), (place, AbortCause::Connect(_)) if place.client == 0), "{:?}", ran.events);
    assert!(ran.outcome.elapsed < millis(150) + NOTICED, "{:?}", ran.outcome.elapsed);
    assert!(!ran.outcome.is_complete());
}

#[test]
fn a_gentle_request_lets_transactions_finish() {
    let ran =
        Case::new(TRANSFER).clients(2).time(millis(60_000)).interrupt(millis(1_001), Urgency::Soon).run();
    assert!(ran.outcome.interrupted && !ran.outcome.is_complete());
    assert_eq!(ran.ledger.attempts.started, ran.ledger.attempts.committed);
    assert!((millis(1_001)..millis(1_010)).contains(&ran.outcome.elapsed), "{:?}", ran.outcome.elapsed);
}

/// The grace that a run has at its end is longer than what a user waits for after Ctrl-C.
#[test]
fn a_gentle_request_lets_transactions_finish_for_a_shorter_time() {
    let hung = |interrupt: u64, time: u64| {
        let mut case = Case::new(TRANSFER)
            .time(millis(time))
            .faults(Faults::none().and(On::Update, When::First(1), HANG))
            .interrupt(millis(interrupt), Urgency::Soon);
        case.spec.grace = Duration::from_secs(30);
        let ran = case.run();
        assert_eq!((ran.ledger.attempts.cut_off, ran.outcome.interrupted), (1, true));
        ran.outcome.elapsed
    };
    let soon = |from: u64| millis(from) + LIMITS.hurried..millis(from) + LIMITS.hurried + 2 * NOTICED;
    let elapsed = hung(500, 60_000);
    assert!(soon(500).contains(&elapsed), "{elapsed:?}");
    // Also if transactions have the time after the end already.
    let elapsed = hung(5_000, 1_000);
    assert!(soon(5_000).contains(&elapsed), "{elapsed:?}");
}

#[test]
fn an_urgent_request_cancels() {
    let mut case = Case::new(TRANSFER).time(millis(60_000)).interrupt(millis(500), Urgency::Now);
    case.settings.latency = ms(1_000)..=ms(1_000);
    let ran = case.run();
    assert_eq!(ran.ledger.attempts, Attempts { started: 1, cut_off: 1, ..Attempts::default() });
    assert!(ran.outcome.interrupted);
    assert!(ran.outcome.elapsed < millis(700), "{:?}", ran.outcome.elapsed);
}

#[test]
fn a_second_request_is_more_urgent() {
    let mut case = Case::new(TRANSFER)
        .time(millis(60_000))
        .faults(Faults::none().and(On::Update, When::First(1), HANG))
        .interrupt(millis(500), Urgency::Soon)
        .interrupt(millis(900), Urgency::Now);
    case.spec.grace = Duration::from_secs(30);
    let ran = case.run();
    assert!((millis(900)..millis(1_002)).contains(&ran.outcome.elapsed), "{:?}", ran.outcome.elapsed);
    assert_eq!(ran.ledger.attempts.cut_off, 1);
}

#[test]
fn a_request_after_the_last_transaction_interrupts_nothing() {
    let ran = Case::new(TRANSFER).time(millis(10)).interrupt(millis(13), Urgency::Now).run();
    assert!(ran.outcome.is_complete());
}

#[test]
fn a_script_without_sql_lets_others_have_a_turn_and_ends() {
    let mut case = Case::new("\\set x random(1, 10)\n").clients(2).time(millis(2));
    let ran = case.clone().run();
    assert_eq!(ran.outcome.elapsed, millis(2));
    assert!(ran.ledger.transactions.committed > 100, "{:?}", ran.ledger.transactions);
    case.scripts.push((TRANSFER.to_owned(), 1));
    let ran = case.run();
    assert!(ran.outcome.scripts.iter().all(|script| script.ledger.transactions.committed > 0));
}

#[test]
fn an_empty_sleep_lets_others_have_a_turn_and_ends() {
    let ran = Case::new("\\sleep 0 us\n").clients(2).time(millis(2)).run();
    assert_eq!(ran.outcome.elapsed, millis(2));
    assert!(ran.ledger.transactions.committed > 100, "{:?}", ran.ledger.transactions);
}

/// The second of four clients meets the fault in its third transaction, in a run of a minute.
fn ends_the_run(on: On, fault: Fault) -> Case {
    let faults = Faults::none().and(on, When::Nth(1, 2), fault);
    Case::new(TRANSFER).clients(4).faults(faults).time(millis(60_000)).on_error(OnError::EndRun)
}

#[test]
fn asked_to_the_run_ends_with_the_first_client() {
    for fault in [Fault::Error(SqlState::UNDEFINED_TABLE), Fault::Lost(Loss::Closed)] {
        let mut case = ends_the_run(On::Update, fault);
        case.settings.latency = 1_000_000..=9_000_000;
        let ran = case.clone().run();
        assert_eq!((ran.aborts().len(), ran.outcome.aborted, ran.abort().0.client), (1, 1, 1), "{fault:?}");
        assert!(ran.outcome.interrupted);
        assert!(ran.outcome.elapsed < millis(300), "{:?}", ran.outcome.elapsed);
        case.spec.on_error = OnError::Abort;
        let ran = case.run();
        assert!(!ran.outcome.interrupted && ran.outcome.elapsed >= millis(60_000));
    }
}

#[test]
fn asked_to_the_run_ends_though_others_hang() {
    let faults = |on, at| Faults::none().and(on, When::Nth(at, 2), HANG);
    let mut case = ends_the_run(On::Update, Fault::Error(SqlState::UNDEFINED_TABLE));
    case.settings.faults =
        faults(On::Insert, 0).and(On::Update, When::Nth(1, 2), Fault::Error(SqlState::UNDEFINED_TABLE));
    case.spec.grace = Duration::from_secs(30);
    let ran = case.run();
    // The grace isn't waited for.
    assert!(ran.outcome.elapsed < millis(200), "{:?}", ran.outcome.elapsed);
    assert!(ran.ledger.attempts.cut_off >= 1, "{:?}", ran.ledger.attempts);
}

#[test]
fn asked_to_the_run_ends_with_a_refused_session() {
    let case = ends_the_run(On::Connect, Fault::Error(SqlState(*b"53300"))).connect_each(millis(1));
    let ran = case.run();
    assert!(matches!(ran.abort(), (place, AbortCause::Connect(_)) if place.client == 1), "{:?}", ran.events);
    assert!(ran.outcome.interrupted && ran.outcome.elapsed < millis(200), "{:?}", ran.outcome.elapsed);
}

#[test]
fn conflicts_and_the_end_of_the_time_are_no_reason_to_end_the_run() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let faults =
        Faults::none().and(On::Commit, When::First(3), conflict).and(On::Insert, When::Nth(1, 6), DEAF);
    let mut case = Case::new(TRANSFER).clients(3).faults(faults).on_error(OnError::EndRun);
    case.spec.grace = millis(100);
    let mut stage = case.stage();
    let first = stage.run(StopCondition::Time(millis(50)));
    // The client that hangs is closed at the end, and the next run continues without it.
    assert_eq!(
        (first.outcome.aborted, first.ledger.attempts.cut_off, first.outcome.interrupted),
        (1, 1, false)
    );
    let second = stage.run(StopCondition::Transactions(5));
    assert_eq!((second.ledger.attempts.committed, second.outcome.interrupted), (10, false));
    stage.end(&[&first, &second]);
}
