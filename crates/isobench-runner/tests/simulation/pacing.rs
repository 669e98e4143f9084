//! The starts of transactions: think time, and schedules with lag, skipped and late transactions.

use isobench_runner::Pacing;
use isobench_stats::TimeLedger;
use isobench_testkit::simulated::{Fault, Faults, On, When};

use crate::harness::{Case, RunResult, TRANSFER, backoff, millis, ms};

/// The instants at which blocks started, over all clients, in order.
fn begins(ran: &RunResult) -> Vec<u64> {
    let statements = ran.truth.statements.iter().flatten();
    let mut begins: Vec<u64> =
        statements.filter(|statement| statement.sql == "BEGIN").map(|statement| statement.began.0).collect();
    begins.sort_unstable();
    begins
}

#[test]
fn think_time_is_between_transactions() {
    let ran = Case::new(TRANSFER).pacing(Pacing::ThinkTime(millis(5))).transactions(3).run();
    assert_eq!(begins(&ran), [0, ms(9), ms(18)]);
    assert_eq!(ran.ledger.time, TimeLedger { useful: ms(12), waiting: ms(10), ..TimeLedger::default() });
    assert_eq!(ran.outcome.elapsed, millis(22));
    // The pause isn't part of the latency.
    assert_eq!(ran.outcome.latency().max_ms(), Some(4.0));
}

#[test]
fn think_time_ends_with_the_run() {
    for end in [10, 13] {
        let ran = Case::new(TRANSFER).pacing(Pacing::ThinkTime(millis(9))).time(millis(end)).run();
        assert_eq!(ran.ledger.transactions.total, 1, "the second would be due at 13 ms");
        assert_eq!((ran.ledger.time.waiting, ran.outcome.elapsed), (ms(end - 4), millis(end)));
    }
}

#[test]
fn a_schedule_that_can_be_kept_is_kept_without_lag() {
    let ran = Case::new(TRANSFER).clients(20).pacing(Pacing::Rate(100.0)).time(millis(10_000)).run();
    let count = ran.ledger.transactions.committed;
    assert!((850..1150).contains(&count), "{count} transactions in 10 s at 100 per second");
    let script = &ran.outcome.scripts[0];
    assert_eq!((script.lag.count(), script.lag.max_ns()), (count, Some(0)));
    assert_eq!(script.latency.max_ms(), Some(4.0));
    assert_eq!(ran.ledger.time.useful, count * ms(4));
    assert_eq!((ran.ledger.transactions.skipped, ran.ledger.late), (0, 0));
}

#[test]
fn a_schedule_doesnt_depend_on_how_fast_the_server_is() {
    let due = |clients, latency| {
        let mut case = Case::new(TRANSFER)
            .clients(clients)
            .pacing(Pacing::Rate(50.0))
            .transactions(400 / clients as u64);
        case.settings.latency = latency..=latency;
        begins(&case.run())
    };
    let (fast, slow) = (due(1, 1_000), due(1, 100_000));
    // Starts after a pause are those of the schedule, and the same in both runs.
    let both = fast.iter().filter(|begin| slow.contains(begin)).count();
    assert!(both > 350, "{both} of 400 begin on time");
}

#[test]
fn latency_counts_from_the_schedule() {
    // One client can complete 250 transactions a second; 500 are due.
    let ran = Case::new(TRANSFER).pacing(Pacing::Rate(500.0)).transactions(200).run();
    let script = &ran.outcome.scripts[0];
    let (lag, latency) = (script.lag.max_ns().unwrap_or(0), script.latency.max_ms().unwrap_or(0.0));
    assert!(lag > ms(200), "{lag}");
    assert!((latency - (lag + ms(4)) as f64 / 1e6).abs() < 0.01 * latency, "{latency} {lag}");
    assert_eq!(ran.ledger.time.useful, ms(800));
    let time = ran.ledger.time;
    assert_eq!(u128::from(time.useful + time.waiting), ran.outcome.elapsed.as_nanos());
}

#[test]
fn transactions_that_are_too_late_are_skipped() {
    let ran = Case::new(TRANSFER).pacing(Pacing::Rate(1000.0)).limit(millis(10)).time(millis(1_000)).run();
    let transactions = ran.ledger.transactions;
    assert!((240..=251).contains(&transactions.committed), "{transactions:?}");
    assert!(transactions.skipped > 600, "{transactions:?}");
    assert_eq!(transactions.total, transactions.committed + transactions.skipped);
    assert!(ran.ledger.late > 0 && ran.ledger.late < transactions.committed);
    let lag = ran.outcome.scripts[0].lag.max_ns().unwrap_or(0);
    assert!(lag <= ms(10), "one that lags behind further doesn't begin: {lag}");
}

#[test]
fn skipped_transactions_count_for_the_number_asked_for() {
    let ran =
        Case::new(TRANSFER).clients(3).pacing(Pacing::Rate(5000.0)).limit(millis(5)).transactions(100).run();
    assert_eq!(ran.ledger.transactions.total, 300);
    assert!(ran.ledger.transactions.skipped > 200, "{:?}", ran.ledger.transactions);
}

#[test]
fn a_rate_beyond_reason_ends_with_the_run() {
    let ran = Case::new(TRANSFER).pacing(Pacing::Rate(1e12)).limit(millis(3)).time(millis(20)).run();
    assert!(ran.ledger.transactions.skipped > 1_000, "{:?}", ran.ledger.transactions);
    assert!(ran.outcome.elapsed < millis(25));
}

#[test]
fn a_transaction_that_waits_at_the_end_isnt_counted() {
    let ran = Case::new(TRANSFER).clients(10).pacing(Pacing::Rate(0.001)).time(millis(500)).run();
    assert_eq!(ran.ledger.transactions.total, 0);
    assert_eq!((ran.ledger.time.waiting, ran.outcome.elapsed), (ms(5_000), millis(500)));
    assert!(ran.outcome.is_complete());
}

#[test]
fn a_retry_keeps_the_scheduled_start() {
    let conflict = Fault::Error(isobench_pgwire::SqlState::SERIALIZATION_FAILURE);
    let ran = Case::new(TRANSFER)
        .pacing(Pacing::Rate(10.0))
        .retry(backoff("fixed:3ms"))
        .faults(Faults::none().and(On::Commit, When::First(1), conflict))
        .run();
    assert_eq!(ran.outcome.latency().max_ms(), Some(11.0));
    assert_eq!(ran.outcome.scripts[0].lag.max_ns(), Some(0));
}
