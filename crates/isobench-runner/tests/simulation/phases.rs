//! Several runs with the same sessions: warm-up, then measurement.

use isobench_pgwire::SqlState;
use isobench_runner::{OnError, Protocol, StopCondition};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

use crate::harness::{Case, TRANSFER, millis, ms};

#[test]
fn two_phases_have_accounts_of_their_own() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let faults = Faults::none().and(On::Commit, When::Nth(0, 0), conflict);
    let mut stage = Case::new(TRANSFER).clients(2).protocol(Protocol::Prepared).faults(faults).stage();
    let warmup = stage.run(StopCondition::Time(millis(10)));
    let measured = stage.run(StopCondition::Time(millis(100)));
    assert_eq!((warmup.ledger.transactions.committed, warmup.ledger.attempts.retried), (5, 1));
    assert_eq!((measured.ledger.transactions.committed, measured.ledger.attempts.retried), (50, 0));
    assert_eq!((warmup.outcome.elapsed, measured.outcome.elapsed), (millis(12), millis(100)));
    assert_eq!(measured.ledger.time.useful, ms(200));
    let truth = stage.end(&[&warmup, &measured]);
    assert_eq!((truth.committed_rows, truth.parses), (55, vec![4, 4]));
}

#[test]
fn numbers_of_transactions_count_for_each_phase() {
    let mut stage = Case::new(TRANSFER).clients(3).stage();
    let runs = [2, 0, 5].map(|count| stage.run(StopCondition::Transactions(count)));
    assert_eq!([0, 1, 2].map(|run: usize| runs[run].ledger.transactions.committed), [6, 0, 15]);
    stage.end(&[&runs[0], &runs[1], &runs[2]]);
}

#[test]
fn a_client_that_has_aborted_stays_out() {
    let faults = Faults::none().and(On::Update, When::Nth(1, 0), Fault::Lost(Loss::Closed));
    let mut stage = Case::new(TRANSFER).clients(3).faults(faults).stage();
    let first = stage.run(StopCondition::Transactions(2));
    let second = stage.run(StopCondition::Transactions(2));
    assert_eq!((first.ledger.transactions.committed, first.outcome.aborted), (4, 1));
    assert_eq!((second.ledger.transactions.total, second.outcome.aborted), (4, 1));
    assert_eq!(second.aborts(), []);
    stage.end(&[&first, &second]);
}

#[test]
fn a_connection_lost_between_the_phases_shows_in_the_second() {
    let lost = Fault::LostWhenIdle(millis(3), Loss::Closed);
    let faults = Faults::none().and(On::Commit, When::Nth(0, 0), lost);
    let mut stage = Case::new(TRANSFER).clients(2).faults(faults).stage();
    let first = stage.run(StopCondition::Transactions(1));
    let second = stage.run(StopCondition::Transactions(2));
    assert_eq!((first.ledger.transactions.committed, first.outcome.aborted), (2, 0));
    assert_eq!((second.ledger.transactions.committed, second.outcome.aborted), (2, 1));
    assert_eq!(second.ledger.transactions.errored, 1);
    stage.end(&[&first, &second]);
}

#[test]
fn all_clients_may_be_gone() {
    let faults = Faults::none().and(On::Update, When::First(1), Fault::Error(SqlState::UNDEFINED_TABLE));
    let mut case = Case::new(TRANSFER).clients(2).faults(faults);
    case.spec.on_error = OnError::Abort;
    let mut stage = case.stage();
    let first = stage.run(StopCondition::Time(millis(1_000)));
    let second = stage.run(StopCondition::Time(millis(1_000)));
    assert_eq!((first.outcome.aborted, second.outcome.aborted), (2, 2));
    assert_eq!((second.ledger.transactions.total, second.outcome.elapsed), (0, millis(0)));
    stage.end(&[&first, &second]);
}
