//! Reports to observers: every transaction once, with its number, tries and times.
//!
//! After every run of every test `harness.rs` compares them with the ledger.

use isobench_pgwire::SqlState;
use isobench_runner::{EndedTransaction, Nanos, OnError, Pacing, StopCondition, TransactionEnd};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

use crate::harness::{Case, INSERT, RunResult, TRANSFER, backoff, millis, ms, tries};

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);
const DEADLOCK: Fault = Fault::Error(SqlState::DEADLOCK_DETECTED);

/// The only client's transactions: their ends, tries, latencies and ends in ms. Checks that their
/// numbers count from 1.
fn observed(ran: &RunResult) -> Vec<(TransactionEnd, u32, u64, u64)> {
    for (index, ended) in ran.ended.iter().enumerate() {
        assert_eq!((ended.client, ended.number, ended.lag), (0, index as u64 + 1, 0));
    }
    let short =
        |ended: &EndedTransaction| (ended.end, ended.tries, ended.latency / ms(1), ended.at.0 / ms(1));
    ran.ended.iter().map(short).collect()
}

#[test]
fn a_committed_transaction_is_reported_with_all_its_numbers() {
    let ran = Case::new(TRANSFER).run();
    let transaction = EndedTransaction {
        client: 0,
        number: 1,
        script: 0,
        end: TransactionEnd::Committed,
        tries: 1,
        latency: ms(4),
        lag: 0,
        at: Nanos(ms(4)),
    };
    assert_eq!(ran.ended, [transaction]);
}

#[test]
fn conflicts_are_classified_by_the_last_one() {
    // Commits: conflict and deadlock, deadlock and conflict, conflict and none.
    let faults = [CONFLICT, DEADLOCK, DEADLOCK, CONFLICT, CONFLICT].into_iter().enumerate();
    let faults = faults.fold(Faults::none(), |faults, (number, fault)| {
        faults.and(On::Commit, When::Nth(0, number as u64), fault)
    });
    let ran = Case::new(TRANSFER).faults(faults).retry(tries(2)).transactions(4).run();
    let expected = [
        (TransactionEnd::Deadlock, 2, 8, 8),
        (TransactionEnd::Serialization, 2, 8, 16),
        (TransactionEnd::Committed, 2, 8, 24),
        (TransactionEnd::Committed, 1, 4, 28),
    ];
    assert_eq!(observed(&ran), expected);
}

#[test]
fn the_latency_has_all_attempts_and_their_backoff() {
    let faults = Faults::none().and(On::Commit, When::First(2), CONFLICT);
    let ran = Case::new(TRANSFER).faults(faults).retry(backoff("fixed:7ms")).run();
    assert_eq!(observed(&ran), [(TransactionEnd::Committed, 3, 26, 26)]);
    let faults = Faults::none().and(On::Commit, When::First(9), CONFLICT);
    let ran = Case::new(TRANSFER).faults(faults).retry(backoff("fixed:7ms")).limit(millis(20)).run();
    assert_eq!(observed(&ran), [(TransactionEnd::Serialization, 3, 26, 26)]);
}

#[test]
fn abandoned_and_unknown_transactions_are_reported_as_other_errors() {
    let faults = Faults::none()
        .and(On::Update, When::Nth(0, 0), Fault::Error(SqlState::UNDEFINED_TABLE))
        .and(On::Commit, When::Nth(0, 0), Fault::Unknown { committed: false });
    let ran = Case::new(TRANSFER).on_error(OnError::Continue).faults(faults).transactions(3).run();
    let expected = [
        (TransactionEnd::OtherError, 1, 3, 3),
        (TransactionEnd::OtherError, 1, 4, 7),
        (TransactionEnd::Committed, 1, 4, 11),
    ];
    assert_eq!(observed(&ran), expected);
    assert_eq!(ran.outcome.scripts[0].abandoned, 1);
}

#[test]
fn a_transaction_that_ends_with_its_client_or_the_run_isnt_reported() {
    let case = |fault| {
        let faults = Faults::none().and(On::Update, When::Nth(0, 1), fault);
        Case::new(TRANSFER).faults(faults).transactions(3)
    };
    for fault in [Fault::Error(SqlState::UNDEFINED_TABLE), Fault::Lost(Loss::Closed)] {
        let ran = case(fault).run();
        assert_eq!((observed(&ran).len(), ran.outcome.aborted), (1, 1), "{fault:?}");
    }
    let mut hung = case(Fault::Hang { cancellable: true });
    hung.stop = StopCondition::Time(millis(20));
    let ran = hung.run();
    assert_eq!((observed(&ran).len(), ran.ledger.transactions.cut_off), (1, 1));
    let conflict = case(CONFLICT).time(millis(6)).run();
    assert_eq!((observed(&conflict).len(), conflict.ledger.transactions.cut_off), (1, 1));
    let paused = case(CONFLICT).retry(backoff("fixed:1s")).time(millis(10)).run();
    assert_eq!((observed(&paused).len(), paused.ledger.transactions.cut_off), (1, 1));
}

#[test]
fn a_schedule_shows_as_lag_and_in_the_latency() {
    // One client can complete 250 transactions a second; 500 are due.
    let ran = Case::new(TRANSFER).pacing(Pacing::Rate(500.0)).transactions(200).run();
    assert!(ran.ended.iter().all(|ended| ended.latency == ended.lag + ms(4)));
    let lags: Vec<u64> = ran.ended.iter().map(|ended| ended.lag).collect();
    assert_eq!(lags.iter().max().copied(), ran.outcome.scripts[0].lag.max_ns());
    let mean = lags.iter().sum::<u64>() as f64 / 200.0 / 1e6;
    assert!((mean - ran.outcome.scripts[0].lag.mean_ms().unwrap_or(0.0)).abs() < 1e-6);
}

#[test]
fn skipped_transactions_have_numbers_and_no_tries() {
    let ran = Case::new(TRANSFER).pacing(Pacing::Rate(1000.0)).limit(millis(10)).transactions(500).run();
    let numbers: Vec<u64> = ran.ended.iter().map(|ended| ended.number).collect();
    assert_eq!(numbers, (1..=500).collect::<Vec<_>>());
    let mut skipped = ran.ended.iter().filter(|ended| ended.end == TransactionEnd::Skipped);
    assert!(ran.count(TransactionEnd::Skipped) > 200);
    // It is skipped because it is so late.
    assert!(skipped.all(|ended| ended.tries == 0 && ended.lag > ms(10) && ended.latency == ended.lag));
    let begun = ran.ended.iter().filter(|ended| ended.end == TransactionEnd::Committed);
    assert!(begun.clone().count() > 100 && begun.clone().all(|ended| ended.lag <= ms(10)));
}

#[test]
fn clients_and_scripts_are_distinguished_and_numbers_count_for_each_run() {
    let mut case = Case::new(TRANSFER).clients(3);
    case.scripts.push((INSERT.to_owned(), 1));
    let mut stage = case.stage();
    let runs = [stage.run(StopCondition::Transactions(20)), stage.run(StopCondition::Transactions(5))];
    for (run, count) in runs.iter().zip([20, 5]) {
        for client in 0..3 {
            let of_client = run.ended.iter().filter(|ended| ended.client == client);
            let numbers: Vec<u64> = of_client.map(|ended| ended.number).collect();
            assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
        }
    }
    // A transaction of one script takes 4 ms, of the other 1 ms.
    assert!(runs[0].ended.iter().all(|ended| ended.latency == [ms(4), ms(1)][ended.script]));
    stage.end(&[&runs[0], &runs[1]]);
}
