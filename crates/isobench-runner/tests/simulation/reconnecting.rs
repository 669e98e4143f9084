//! Clients that replace a lost session: what becomes of the work under way, and of a server that
//! refuses them for a while.

use isobench_pgwire::SqlState;
use isobench_runner::{Pacing, Rules, Urgency};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};
use proptest::prelude::*;

use crate::chaos::{SCRIPTS, script};
use crate::harness::{Case, INSERT, TRANSFER, backoff, millis, ms};

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);
const REFUSED: Fault = Fault::Error(SqlState(*b"57P03"));

/// Transactions of 4 ms; another session takes 2 ms.
fn case(faults: Faults) -> Case {
    Case::new(TRANSFER).reconnects("fixed:3ms", millis(2)).faults(faults)
}

#[test]
fn a_lost_session_is_replaced_and_its_transaction_accounted_for() {
    for (on, fault, ambiguous) in [
        (On::Update, Fault::Lost(Loss::Reset), 0),
        (On::Update, Fault::Lost(Loss::Closed), 0),
        (On::Update, Fault::TerminatedBy(SqlState(*b"57P01")), 0),
        (On::Commit, Fault::Lost(Loss::Closed), 1),
        (On::Commit, Fault::LostAfter(Loss::Closed), 1),
        (On::Commit, Fault::LostAfter(Loss::Reset), 1),
        (On::Commit, Fault::UnknownThenLost { committed: false }, 1),
    ] {
        let ran = case(Faults::none().and(on, When::Nth(0, 0), fault)).clients(2).transactions(3).run();
        let attempts = ran.ledger.attempts;
        assert_eq!((attempts.started, attempts.committed), (6, 5), "{on:?} {fault:?}");
        assert_eq!((attempts.ambiguous, attempts.errored), (ambiguous, 1 - ambiguous), "{on:?} {fault:?}");
        assert_eq!(ran.outcome.scripts[0].abandoned, 1 - ambiguous);
        assert_eq!((ran.outcome.lost_sessions, ran.outcome.away, ran.outcome.aborted), (1, 0, 0));
        assert!(ran.outcome.is_complete() && ran.aborts().is_empty(), "{on:?} {fault:?}");
        assert_eq!(ran.truth.sessions, [2, 1]);
        let done = ran.truth.committed_rows;
        assert!((attempts.committed..=attempts.committed + attempts.ambiguous).contains(&done));
    }
}

#[test]
fn a_session_lost_between_transactions_costs_none() {
    for loss in [Loss::Closed, Loss::Reset] {
        let faults = Faults::none().and(On::Commit, When::Nth(0, 0), Fault::LostWhenIdle(millis(2), loss));
        let pause = Pacing::ThinkTime(millis(10));
        let ran = case(faults).pacing(pause).transactions(3).run();
        assert_eq!((ran.ledger.attempts.committed, ran.ledger.transactions.total), (3, 3), "{loss:?}");
        assert_eq!((ran.outcome.lost_sessions, ran.truth.sessions), (1, vec![2]));
    }
}

#[test]
fn a_transaction_that_waits_for_its_next_attempt_goes_on_in_another_session() {
    let faults = Faults::none().and(On::Update, When::Nth(0, 0), CONFLICT).and(
        On::Rollback,
        When::Nth(0, 0),
        Fault::LostWhenIdle(millis(1), Loss::Closed),
    );
    let ran = case(faults.clone()).retry(backoff("fixed:20ms")).transactions(1).run();
    assert_eq!((ran.ledger.attempts.retried, ran.ledger.attempts.committed), (1, 1));
    assert_eq!((ran.ledger.transactions.total, ran.outcome.lost_sessions), (1, 1));
    assert_eq!(ran.truth.sessions, [2]);
    assert!(
        ran.ledger.time.backoff > 0 && ran.ledger.time.backoff < ms(20),
        "the new session ends the pause"
    );
    // The end of the run may come first.
    let gone = faults.and(On::Connect, When::First(1000), REFUSED);
    let ran = case(gone).retry(backoff("fixed:20ms")).time(millis(100)).run();
    assert_eq!((ran.ledger.transactions.total, ran.ledger.transactions.cut_off), (1, 1));
    assert_eq!(ran.outcome.away, 1);
}

#[test]
fn a_server_that_refuses_is_asked_again() {
    let lost = Faults::none().and(On::Update, When::Nth(0, 0), Fault::Lost(Loss::Reset));
    let once = case(lost.clone()).transactions(2).run();
    let refused = lost.and(On::Connect, When::First(3), REFUSED);
    let ran = case(refused).transactions(2).run();
    assert_eq!((ran.ledger.attempts.committed, ran.truth.sessions), (1, vec![2]));
    assert!(ran.outcome.elapsed >= once.outcome.elapsed + millis(3 * 3), "three pauses");
    assert_eq!((ran.outcome.away, ran.outcome.lost_sessions), (0, 1));
}

#[test]
fn a_server_that_never_comes_back_leaves_its_clients_away() {
    let faults = Faults::none().and(On::Update, When::Nth(0, 2), Fault::Lost(Loss::Reset)).and(
        On::Connect,
        When::First(1_000_000),
        REFUSED,
    );
    let ran = case(faults.clone()).clients(2).time(millis(200)).run();
    assert_eq!((ran.outcome.away, ran.outcome.aborted, ran.outcome.lost_sessions), (1, 0, 1));
    assert!(ran.outcome.is_complete(), "the other one goes on");
    assert!(ran.outcome.elapsed >= millis(200));
    let ran = case(faults).clients(2).time(millis(200)).interrupt(millis(50), Urgency::Soon).run();
    assert!(ran.outcome.interrupted && ran.outcome.elapsed < millis(100));
}

#[test]
fn pgbench_ends_its_clients() {
    let faults = Faults::none().and(On::Update, When::Nth(0, 0), Fault::Lost(Loss::Reset));
    for rules in [Rules::default(), Rules::Pgbench] {
        let ran = Case::new(INSERT).rules(rules).faults(faults.clone()).transactions(2).run();
        assert_eq!((ran.outcome.aborted, ran.outcome.lost_sessions), (0, 0));
        let ran = Case::new(TRANSFER).rules(rules).faults(faults.clone()).transactions(2).run();
        assert_eq!((ran.outcome.aborted, ran.outcome.lost_sessions), (1, 0));
    }
}

fn losses() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::Lost(Loss::Closed)),
        Just(Fault::Lost(Loss::Reset)),
        Just(Fault::LostAfter(Loss::Closed)),
        Just(Fault::LostAfter(Loss::Reset)),
        Just(Fault::TerminatedBy(SqlState(*b"57P02"))),
        (0_u64..5).prop_map(|pause| Fault::LostWhenIdle(millis(pause), Loss::Closed)),
    ]
}

proptest! {
    /// Whatever is lost: every transaction is accounted for, and what was acknowledged is there.
    #[test]
    fn nothing_is_forgotten(
        seed in any::<u64>(),
        (loss, probability) in (losses(), 0.0..0.2_f64),
        refused in 0.0..0.9_f64,
        (script, protocol) in script(SCRIPTS),
        clients in 1_usize..5,
    ) {
        let faults = Faults::none()
            .and(On::Statement, When::Chance(probability), loss)
            .and(On::Commit, When::Chance(probability), CONFLICT)
            .and(On::Connect, When::Chance(refused), REFUSED);
        let mut case = Case::new(script)
            .clients(clients)
            .reconnects("exponential:base=1ms,factor=2,max=10ms,jitter=full", millis(1))
            .retry(backoff("none"))
            .faults(faults)
            .transactions(20);
        case.settings.seed = seed;
        case.spec.protocol = protocol;
        let ran = case.run();
        prop_assert!(ran.outcome.is_complete(), "{:?}", ran.aborts());
        prop_assert_eq!(ran.ledger.transactions.total, 20 * clients as u64);
        let (committed, ambiguous) = (ran.ledger.attempts.committed, ran.ledger.attempts.ambiguous);
        let rows = ran.truth.committed_rows;
        prop_assert!((committed..=committed + ambiguous).contains(&rows), "{rows}: {committed} + {ambiguous}");
    }
}
