//! A session for each transaction: opening it, its lifetime, and its failures.

use isobench_pgwire::SqlState;
use isobench_runner::{
    AbortCause, OnError, Pacing, Protocol, RetryPolicy, Rules, StopCondition, TransactionEnd, Urgency,
};
use isobench_stats::{Attempts, Transactions};
use isobench_testkit::simulated::{Answer, Fault, Faults, Loss, On, When};

use crate::harness::{Case, INSERT, RunResult, TRANSFER, backoff, millis, ms, tries};

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);
const REFUSED: Fault = Fault::Error(SqlState(*b"53300"));

/// A session for each transaction of 4 ms, opened in 2 ms.
fn each() -> Case {
    Case::new(TRANSFER).connect_each(millis(2))
}

fn struck(on: On, when: When, fault: Fault) -> Case {
    each().faults(Faults::none().and(on, when, fault))
}

/// The session of every statement of a client.
fn sessions(ran: &RunResult, client: usize) -> Vec<u64> {
    ran.truth.statements[client].iter().map(|statement| statement.session).collect()
}

#[test]
fn every_transaction_has_a_session_of_its_own() {
    for protocol in Protocol::ALL {
        let ran = each().clients(2).protocol(protocol).transactions(3).run();
        assert_eq!((ran.ledger.attempts.committed, &ran.truth.sessions[..]), (6, &[3, 3][..]));
        for client in 0..2 {
            assert_eq!(sessions(&ran, client), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], "{protocol:?}");
        }
        // Prepared statements are forgotten with the session.
        let parses = if protocol == Protocol::Simple { 0 } else { 12 };
        assert_eq!(ran.truth.parses, [parses; 2], "{protocol:?}");
        assert!(ran.outcome.is_complete());
    }
}

#[test]
fn connecting_takes_time_that_is_no_part_of_the_latency() {
    let ran = each().transactions(3).run();
    assert_eq!((ran.outcome.elapsed, ran.outcome.reconnecting), (millis(18), millis(6)));
    assert_eq!((ran.outcome.latency().max_ms(), ran.ledger.time.useful), (Some(4.0), ms(12)));
    let ran = Case::new(TRANSFER).transactions(3).run();
    assert_eq!((ran.outcome.reconnecting, ran.truth.sessions), (millis(0), vec![1]));
}

#[test]
fn a_script_without_sql_has_sessions_too() {
    let ran = Case::new("\\set x 1\n").connect_each(millis(2)).transactions(3).run();
    assert_eq!((ran.ledger.attempts.committed, ran.truth.sessions), (3, vec![3]));
}

#[test]
fn no_session_is_opened_for_nothing() {
    assert_eq!(each().transactions(0).run().truth.sessions, [0; 0]);
    // The one client can complete about 160 transactions a second.
    let ran = each().pacing(Pacing::Rate(1000.0)).limit(millis(10)).time(millis(500)).run();
    let transactions = ran.ledger.transactions;
    assert!(transactions.skipped > 300, "{transactions:?}");
    assert_eq!(ran.truth.sessions, [transactions.total - transactions.skipped]);
}

#[test]
fn a_schedule_counts_the_connecting_as_lag() {
    let ran = each().pacing(Pacing::Rate(1.0)).transactions(3).run();
    let observed: Vec<_> = ran.ended.iter().map(|ended| (ended.lag, ended.latency)).collect();
    assert_eq!(observed, [(ms(2), ms(6)); 3]);
}

#[test]
fn think_time_passes_without_a_session() {
    let ran = each().pacing(Pacing::ThinkTime(millis(5))).transactions(3).run();
    assert_eq!((ran.outcome.elapsed, ran.ledger.time.waiting), (millis(28), ms(10)));
    assert_eq!(ran.truth.sessions, [3]);
}

#[test]
fn a_refused_session_ends_its_client_and_no_transaction() {
    for number in 0..2 {
        let ran = struck(On::Connect, When::Nth(0, number), REFUSED).clients(2).transactions(3).run();
        let done = 3 + number;
        assert_eq!(
            ran.ledger.attempts,
            Attempts { started: done, committed: done, ..Attempts::default() },
            "{number}"
        );
        assert_eq!((ran.ledger.transactions.total, ran.outcome.aborted), (done, 1));
        let (place, AbortCause::Connect(why)) = ran.abort() else { panic!("{:?}", ran.events) };
        assert_eq!(place.client, 0);
        assert!(why.contains("53300"), "{why}");
        assert_eq!(ran.truth.sessions, [number, 3]);
    }
}

#[test]
fn conflicts_are_retried_in_the_same_session() {
    let ran = struck(On::Commit, When::First(2), CONFLICT).transactions(2).run();
    assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (2, 2));
    assert_eq!(ran.truth.sessions, [2]);
    assert_eq!(sessions(&ran, 0), [[0; 4], [0; 4], [0; 4], [1; 4]].concat());
    let ran = struck(On::Commit, When::First(2), CONFLICT).retry(backoff("fixed:3ms")).transactions(2).run();
    assert_eq!((ran.truth.sessions, ran.ledger.time.backoff), (vec![2], ms(6)));
}

#[test]
fn a_transaction_that_fails_gives_its_session_up() {
    let given_up = struck(On::Commit, When::First(1), CONFLICT).retry(tries(1)).transactions(2).run();
    assert_eq!((given_up.ledger.attempts.given_up, given_up.truth.sessions), (1, vec![2]));
    let unknown =
        struck(On::Commit, When::First(1), Fault::Unknown { committed: true }).transactions(2).run();
    assert_eq!((unknown.ledger.attempts.ambiguous, unknown.truth.sessions), (1, vec![2]));
    let error = struck(On::Update, When::First(1), Fault::Error(SqlState::UNDEFINED_TABLE)).transactions(2);
    let abandoned = error.clone().on_error(OnError::Continue).run();
    assert_eq!((abandoned.ledger.attempts.errored, abandoned.truth.sessions), (1, vec![2]));
    let aborted = error.run();
    assert_eq!((aborted.ledger.attempts.errored, aborted.truth.sessions), (1, vec![1]));
}

#[test]
fn a_session_that_is_lost_ends_its_client() {
    for (on, fault, ambiguous) in [
        (On::Update, Fault::Lost(Loss::Reset), 0),
        (On::Commit, Fault::LostAfter(Loss::Closed), 1),
        (On::Commit, Fault::UnknownThenLost { committed: false }, 1),
        (On::Rollback, Fault::Lost(Loss::Closed), 0),
        (On::Connect, Fault::LostWhenIdle(millis(0), Loss::Closed), 0),
        (On::Connect, Fault::LostWhenIdle(millis(2), Loss::Reset), 0),
    ] {
        let faults =
            Faults::none().and(on, When::Nth(0, 0), fault).and(On::Insert, When::Nth(0, 0), CONFLICT);
        let ran = each().clients(2).faults(faults).transactions(2).run();
        assert_eq!((ran.outcome.aborted, ran.ledger.attempts.ambiguous), (1, ambiguous), "{on:?} {fault:?}");
        assert_eq!(ran.ledger.attempts.errored, 1 - ambiguous);
        assert!(matches!(ran.abort(), (place, AbortCause::Lost(..)) if place.client == 0));
        assert_eq!((ran.truth.sessions, ran.ledger.attempts.committed), (vec![1, 2], 2));
    }
}

#[test]
fn messages_after_the_last_reply_are_ignored() {
    let farewells = [
        Fault::TerminatedAfterReply,
        Fault::LostWhenIdle(millis(0), Loss::Closed),
        Fault::LostWhenIdle(millis(0), Loss::Reset),
        Fault::LostWhenIdle(millis(1), Loss::Closed),
        Fault::LostWhenIdle(millis(3), Loss::Reset),
    ];
    for fault in farewells {
        // With and without a new session that replaces the old one before the end arrives.
        for pacing in [Pacing::Unpaced, Pacing::ThinkTime(millis(5))] {
            for connecting in [millis(0), millis(2)] {
                let faults = Faults::none().and(On::Commit, When::First(5), fault);
                let case = Case::new(TRANSFER).connect_each(connecting).pacing(pacing).faults(faults);
                let ran = case.clients(2).transactions(4).run();
                assert_eq!((ran.ledger.attempts.committed, &ran.events[..]), (8, &[][..]), "{fault:?}");
                assert!(ran.outcome.is_complete(), "{fault:?} {pacing:?}");
            }
        }
    }
}

#[test]
fn a_reply_that_fills_the_buffer_isnt_followed_by_a_receive_from_nowhere() {
    // For some width in between, the last reply takes exactly 64 KiB, the size of the buffer, after
    // which more might follow.
    for width in 65_460..65_490 {
        let wide: &'static str = Box::leak("x".repeat(width).into_boxed_str());
        let mut case = Case::new("SELECT everything;\n").connect_each(millis(0)).transactions(2);
        case.settings.answers = vec![("everything", Answer::column("v", &[wide]))];
        let case = case.pacing(Pacing::ThinkTime(millis(1)));
        let ran = case.run();
        assert_eq!((ran.ledger.attempts.committed, &ran.events[..]), (2, &[][..]), "{width}");
    }
}

#[test]
fn what_arrives_with_the_session_is_understood() {
    let ran = struck(On::Connect, When::First(2), Fault::ParameterStatus).transactions(3).run();
    assert_eq!((ran.ledger.attempts.committed, &ran.events[..]), (3, &[][..]));
}

#[test]
fn half_a_message_of_the_old_session_is_forgotten() {
    // The last error's pieces come 10 µs apart, and the client leaves after the first ones.
    for size in 1..30 {
        let mut case = struck(On::Commit, When::First(4), Fault::TerminatedAfterReply).transactions(3);
        case.settings.pieces = Some(size);
        let ran = case.run();
        assert_eq!((ran.ledger.attempts.committed, ran.outcome.aborted), (3, 0), "{size}");
    }
}

#[test]
fn a_transaction_whose_session_is_being_opened_at_the_end_is_done() {
    // As in pgbench, a transaction that has started to connect before the end has started.
    for end in [1, 3] {
        let ran = each().time(millis(end)).run();
        assert_eq!((ran.ledger.attempts.committed, ran.outcome.elapsed), (1, millis(6)), "{end}");
        assert!(ran.outcome.is_complete());
    }
    let ran = each().time(millis(6)).run();
    assert_eq!(
        (ran.ledger.attempts.committed, ran.truth.sessions),
        (1, vec![1]),
        "none is opened at the end"
    );
}

#[test]
fn a_request_to_end_meets_a_client_that_connects() {
    let gently = each().time(millis(60_000)).interrupt(millis(1), Urgency::Soon).run();
    assert_eq!((gently.ledger.attempts.committed, gently.outcome.elapsed), (1, millis(6)));
    assert!(gently.outcome.interrupted && gently.outcome.aborted == 0);
    let mut slow = each().time(millis(60_000)).interrupt(millis(1), Urgency::Now);
    slow.settings.latency = ms(900)..=ms(900);
    let urgently = slow.run();
    assert_eq!(urgently.ledger.attempts, Attempts { started: 1, cut_off: 1, ..Attempts::default() });
    assert_eq!((urgently.truth.cancels, urgently.outcome.aborted), (1, 0));
    assert!(urgently.outcome.elapsed < millis(200), "{:?}", urgently.outcome.elapsed);
}

#[test]
fn a_cancelled_transaction_leaves_its_session_and_the_next_run_has_new_ones() {
    let faults = Faults::none().and(On::Update, When::Nth(0, 1), Fault::Hang { cancellable: true });
    let mut stage = each().faults(faults).stage();
    let first = stage.run(StopCondition::Time(millis(20)));
    assert_eq!((first.ledger.attempts.cut_off, first.outcome.aborted), (1, 0));
    let second = stage.run(StopCondition::Transactions(2));
    assert_eq!(second.ledger.attempts.committed, 2);
    assert_eq!(sessions(&second, 0)[4 + 3..], [[2; 4], [3; 4]].concat());
    assert_eq!(stage.end(&[&first, &second]).sessions, [4]);
}

#[test]
fn a_backoff_that_is_cut_off_leaves_its_session() {
    let faults = Faults::none().and(On::Commit, When::First(1), CONFLICT);
    let mut stage = each().retry(backoff("fixed:20ms")).faults(faults).stage();
    let first = stage.run(StopCondition::Time(millis(10)));
    assert_eq!(first.ledger.transactions, Transactions { total: 1, cut_off: 1, ..Transactions::default() });
    assert_eq!(first.outcome.elapsed, millis(10));
    let second = stage.run(StopCondition::Transactions(1));
    assert_eq!(sessions(&second, 0), [[0; 4], [1; 4]].concat());
    assert_eq!(stage.end(&[&first, &second]).sessions, [2]);
}

#[test]
fn a_server_that_ignores_the_cancel_is_left() {
    let mut case = struck(On::Update, When::Nth(0, 1), Fault::Hang { cancellable: false });
    case.spec.grace = millis(5);
    let ran = case.clients(2).time(millis(20)).run();
    assert_eq!((ran.ledger.attempts.cut_off, ran.outcome.aborted), (1, 1));
    assert!(ran.outcome.elapsed < millis(2_200), "{:?}", ran.outcome.elapsed);
}

#[test]
fn sessions_have_pipelines_and_pgbenchs_rules() {
    let script = "\\startpipeline\nBEGIN;\nINSERT INTO h VALUES (1);\nEND;\n\\endpipeline\n";
    for rules in [Rules::Isobench, Rules::Pgbench] {
        let faults = Faults::none().and(On::Insert, When::First(1), CONFLICT);
        let case = Case::new(script).protocol(Protocol::Prepared).rules(rules).faults(faults);
        let ran = case.connect_each(millis(1)).transactions(3).run();
        assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (1, 3));
        assert_eq!((ran.truth.sessions, ran.truth.parses), (vec![3], vec![9]), "{rules:?}");
    }
}

#[test]
fn a_statement_that_failed_to_be_prepared_is_so_in_its_session_only() {
    let faults = Faults::none().and(On::Parse, When::Nth(0, 0), Fault::Error(SqlState::UNDEFINED_TABLE));
    let case = Case::new(INSERT).protocol(Protocol::Prepared).rules(Rules::Pgbench).faults(faults);
    let ran = case.on_error(OnError::Continue).connect_each(millis(1)).transactions(3).run();
    assert_eq!((ran.ledger.attempts.errored, ran.ledger.attempts.committed), (1, 2));
}

#[test]
fn clients_without_a_session_are_no_less_alive() {
    let faults = Faults::none().and(On::Statement, When::Chance(0.2), CONFLICT);
    let case = each().clients(8).faults(faults).retry(RetryPolicy::UNLIMITED).transactions(20);
    let ran = case.run();
    assert_eq!((ran.count(TransactionEnd::Committed), &ran.truth.sessions[..]), (160, &[20; 8][..]));
    assert_eq!(ran.truth.committed_rows, 160);
}
