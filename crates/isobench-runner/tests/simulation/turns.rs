//! A run in turns: its clock stops in between, and nothing else changes.

use std::time::Duration;

use isobench_pgwire::SqlState;
use isobench_runner::{Pacing, StopCondition, Urgency};
use isobench_testkit::simulated::{Fault, Faults, On, When};

use crate::harness::{Case, RunResult, TRANSFER, backoff, millis, tries};

const CONFLICT: Fault = Fault::Error(SqlState::SERIALIZATION_FAILURE);

/// Runs a case in turns, and compares it with what the server did.
fn in_turns(case: Case, turns: u32, length: Duration) -> RunResult {
    let mut stage = case.stage();
    let ran = stage.run_in_turns(turns, length);
    let truth = stage.end(&[&ran]);
    RunResult { truth, ..ran }
}

#[test]
fn what_is_under_way_at_the_end_of_a_turn_is_finished_and_nothing_starts() {
    // A transaction takes 4 ms.
    let ran = in_turns(Case::new(TRANSFER).series(millis(1)), 3, millis(10));
    assert_eq!((ran.ledger.transactions.committed, ran.ledger.attempts.cut_off), (9, 0));
    assert_eq!((ran.outcome.elapsed, ran.outcome.turns), (millis(36), 3));
    let series = ran.outcome.series.expect("a series");
    assert_eq!((series.bin, series.bins.iter().map(|bin| bin.committed).collect()), (millis(10), vec![3; 3]));
}

#[test]
fn clients_that_have_finished_are_idle_until_the_last_one_has() {
    let mut case = Case::new("BEGIN;\nINSERT INTO h VALUES (1);\n\\sleep :pause ms\nEND;\n").clients(1);
    case.variables = vec![("pause", 7)];
    // 3 ms of requests and 7 ms of sleep: the second transaction ends at 20 ms.
    let ran = in_turns(case, 1, millis(15));
    assert_eq!((ran.outcome.elapsed, ran.outcome.idle), (millis(20), Duration::ZERO));
    let mut case = Case::new(TRANSFER).clients(2);
    case.settings.latency = 500_000..=4_000_000;
    let ran = in_turns(case, 4, millis(20));
    assert!(ran.outcome.idle > Duration::ZERO && ran.outcome.idle < ran.outcome.elapsed / 2);
}

#[test]
fn a_retry_waits_for_the_next_turn_and_repeats_the_same_transaction() {
    // The first attempt ends at 3 ms + 1 ms for ROLLBACK, after the end of the turn.
    let faults = Faults::none().and(On::Insert, When::First(1), CONFLICT);
    let ran = in_turns(Case::new(TRANSFER).faults(faults), 2, millis(3));
    assert_eq!(ran.outcome.series, None);
    let (attempts, transactions) = (ran.ledger.attempts, ran.ledger.transactions);
    assert_eq!((attempts.started, attempts.retried, attempts.committed), (2, 1, 1));
    assert_eq!((transactions.total, transactions.committed, transactions.cut_off), (1, 1, 0));
    let mut updates = ran.truth.matching(0, "UPDATE");
    updates.dedup();
    assert_eq!(updates.len(), 1, "{updates:?}");
}

#[test]
fn a_retry_that_waits_for_a_turn_that_never_comes_is_cut_off() {
    let faults = Faults::none().and(On::Insert, When::First(1), CONFLICT);
    let ran = in_turns(Case::new(TRANSFER).faults(faults), 1, millis(3));
    let (attempts, transactions) = (ran.ledger.attempts, ran.ledger.transactions);
    assert_eq!((attempts.started, attempts.retried, attempts.cut_off), (1, 1, 0));
    assert_eq!((transactions.total, transactions.committed, transactions.cut_off), (1, 0, 1));
    assert!(ran.outcome.is_complete());
}

#[test]
fn a_backoff_goes_on_in_the_next_turn() {
    // Fails at 4 ms, waits for 20 ms.
    let faults = Faults::none().and(On::Insert, When::First(1), CONFLICT);
    let case = Case::new(TRANSFER).faults(faults).retry(backoff("fixed:20ms"));
    let ran = in_turns(case, 7, millis(4));
    let begins: Vec<u64> = ran.truth.statements[0]
        .iter()
        .filter(|statement| statement.sql == "BEGIN")
        .map(|statement| statement.began.0 / 1_000_000)
        .collect();
    assert_eq!(begins, [0, 24], "turns of 4 ms, in which nothing happens but waiting");
    // The simulated clock needs a moment for each end.
    assert_eq!(ran.ledger.time.backoff / 100_000, 200);
}

#[test]
fn think_time_lies_between_transactions_and_not_between_turns() {
    let ran = in_turns(Case::new(TRANSFER).pacing(Pacing::ThinkTime(millis(10))), 6, millis(4));
    // From 0 to 4 ms, and from 14 to 18, which prolongs a turn by two.
    assert_eq!((ran.ledger.transactions.committed, ran.ledger.time.waiting.div_ceil(1_000_000)), (2, 18));
}

#[test]
fn a_schedule_keeps_its_backlog() {
    // Twice as much as the server can do: what is late stays late.
    let case = || Case::new(TRANSFER).pacing(Pacing::Rate(500.0));
    let turned = in_turns(case(), 20, millis(20));
    let whole = case().time(millis(400)).run();
    let worst = |ran: &RunResult| ran.outcome.scripts[0].lag.max_ns().unwrap_or_default() as f64 / 1e6;
    assert!(worst(&turned) > 150.0 && (worst(&turned) / worst(&whole) - 1.0).abs() < 0.1);
    let begun = |ran: &RunResult| ran.ledger.transactions.total;
    assert!(begun(&turned).abs_diff(begun(&whole)) <= 1, "{} {}", begun(&turned), begun(&whole));
}

/// The updates of a client, those of repeated attempts once.
fn updates(ran: &RunResult, client: usize) -> Vec<&str> {
    let mut updates = ran.truth.matching(client, "UPDATE");
    updates.dedup();
    updates
}

#[test]
fn turns_do_the_same_transactions_as_one_piece() {
    for pacing in [Pacing::Unpaced, Pacing::Rate(300.0), Pacing::ThinkTime(millis(3))] {
        let case = || {
            let faults = Faults::none().and(On::Insert, When::Chance(0.4), CONFLICT);
            let mut case = Case::new(TRANSFER).clients(5).pacing(pacing).faults(faults).retry(tries(50));
            case.settings.latency = 300_000..=2_000_000;
            case
        };
        let turned = in_turns(case(), 30, millis(7));
        let whole = case().time(millis(210)).run();
        for client in 0..5 {
            let (mut turned, mut whole) = (updates(&turned, client), updates(&whole, client));
            let common = turned.len().min(whole.len());
            assert!(common > 5, "{turned:?}");
            turned.truncate(common);
            whole.truncate(common);
            assert_eq!(turned, whole, "{pacing:?}");
        }
    }
}

#[test]
fn an_interrupt_ends_a_turn_for_good() {
    let faults = Faults::none().and(On::Insert, When::Chance(0.5), CONFLICT);
    for urgency in [Urgency::Soon, Urgency::Now] {
        let mut case = Case::new(TRANSFER).clients(3).faults(faults.clone()).retry(backoff("fixed:2ms"));
        case = case.interrupt(millis(9), urgency);
        let mut stage = case.stage();
        let ran = stage.run(StopCondition::Turn(millis(60)));
        assert!(ran.outcome.interrupted && ran.outcome.elapsed < millis(60), "{:?}", ran.outcome.elapsed);
        stage.end(&[&ran]);
    }
}

#[test]
fn a_statement_that_hangs_at_the_end_of_a_turn_is_cancelled() {
    let faults = Faults::none().and(On::Update, When::Nth(0, 1), Fault::Hang { cancellable: true });
    let mut case = Case::new(TRANSFER).clients(2).faults(faults);
    case.spec.grace = millis(100);
    let ran = in_turns(case, 1, millis(10));
    assert_eq!((ran.ledger.attempts.cut_off, ran.truth.cancels), (1, 1));
}
