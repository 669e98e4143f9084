//! Counts over time: known schedules give known bins. After every run the harness asserts that they
//! add up to the ledger.

use std::time::Duration;

use isobench_pgwire::SqlState;
use isobench_runner::{Bin, Pacing, Series, StopCondition, Urgency};
use isobench_testkit::simulated::{Fault, Faults, On, When};

use crate::harness::{Case, INSERT, RunResult, TRANSFER, backoff, millis, ms};

fn series(ran: &RunResult) -> &Series {
    ran.outcome.series.as_ref().expect("a series")
}

fn bins(ran: &RunResult, figure: fn(&Bin) -> u64) -> Vec<u64> {
    series(ran).bins.iter().map(figure).collect()
}

#[test]
fn a_steady_run_has_even_bins() {
    // A transaction takes 4 ms, and the next one starts at the same instant.
    let ran = Case::new(TRANSFER).series(millis(8)).clients(3).time(millis(40)).run();
    assert_eq!(series(&ran).bin, millis(8));
    assert_eq!(bins(&ran, |bin| bin.committed), [6; 5]);
    assert_eq!(bins(&ran, |bin| bin.latency_ns), [6 * ms(4); 5]);
    // The first of each client starts with the run; those that would start at its end don't.
    assert_eq!(bins(&ran, |bin| bin.attempts), [9, 6, 6, 6, 3]);
    assert_eq!(bins(&ran, |bin| bin.conflicts), [0; 5]);
}

#[test]
fn conflicts_count_when_the_block_is_rolled_back() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let faults = Faults::none().and(On::Commit, When::First(1), conflict);
    let ran = Case::new(TRANSFER).series(millis(3)).retry(backoff("fixed:5ms")).faults(faults).run();
    // 4 ms, a pause until 9 ms, 4 ms.
    assert_eq!(bins(&ran, |bin| bin.attempts), [1, 0, 1, 0, 0]);
    assert_eq!(bins(&ran, |bin| bin.conflicts), [0, 1, 0, 0, 0]);
    assert_eq!(bins(&ran, |bin| bin.committed), [0, 0, 0, 0, 1]);
    assert_eq!(bins(&ran, |bin| bin.latency_ns), [0, 0, 0, 0, ms(13)]);
}

#[test]
fn a_stall_at_the_end_has_bins_too() {
    let faults = Faults::none().and(On::Insert, When::Nth(0, 5), Fault::Hang { cancellable: true });
    let mut case = Case::new(INSERT).series(millis(2)).time(millis(6)).faults(faults);
    case.spec.grace = millis(14);
    let ran = case.run();
    let committed = bins(&ran, |bin| bin.committed);
    assert_eq!((&committed[..4], ran.ledger.attempts.cut_off), (&[2, 2, 1, 0][..], 1));
    assert_eq!(committed.len() as u128, ran.outcome.elapsed.as_millis() / 2);
    assert!(ran.outcome.elapsed >= millis(20));
}

#[test]
fn the_warm_up_is_not_in_it() {
    let mut stage = Case::new(INSERT).series(millis(2)).stage();
    let first = stage.run(StopCondition::Transactions(3));
    let second = stage.run(StopCondition::Transactions(4));
    assert_eq!(bins(&first, |bin| bin.committed), [2, 1]);
    assert_eq!(bins(&second, |bin| bin.committed), [2, 2]);
    stage.end(&[&first, &second]);
}

#[test]
fn a_very_long_run_has_longer_bins() {
    let ran = Case::new(INSERT).series(millis(1)).time(Duration::from_secs(3)).run();
    assert_eq!(series(&ran).bin, millis(4));
    assert_eq!(bins(&ran, |bin| bin.committed), [4; 750]);
}

#[test]
fn an_empty_run_has_one_bin() {
    let ran = Case::new(INSERT).series(millis(1)).transactions(0).run();
    assert_eq!(series(&ran).bins, [Bin::default()]);
    let ran = Case::new(INSERT).series(millis(1)).interrupt(millis(0), Urgency::Now).run();
    assert_eq!(bins(&ran, |bin| bin.attempts).iter().sum::<u64>(), ran.ledger.attempts.started);
}

#[test]
fn a_schedule_shows_in_the_attempts() {
    let ran =
        Case::new(INSERT).series(millis(100)).pacing(Pacing::Rate(1_000.0)).clients(8).time(millis(1_000));
    let ran = ran.run();
    let attempts = bins(&ran, |bin| bin.attempts);
    assert!(attempts.iter().take(10).all(|count| (60..140).contains(count)), "{attempts:?}");
}

#[test]
fn nothing_is_counted_unless_it_is_asked_for() {
    assert_eq!(Case::new(INSERT).run().outcome.series, None);
}
