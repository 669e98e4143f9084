//! The worker's load, on a clock that stands still while it works and on one that doesn't.

use isobench_pgwire::SqlState;
use isobench_runner::{Pacing, StopCondition, WorkerLoad};
use isobench_testkit::simulated::{Fault, Faults, On, When};

use crate::harness::{Case, INSERT, RunResult, TRANSFER, backoff, micros, millis};

fn load(ran: &RunResult) -> &WorkerLoad {
    let [load] = &ran.outcome.load[..] else { panic!("{:?}", ran.outcome.load) };
    load
}

#[test]
fn a_client_that_takes_no_time_is_never_busy() {
    let ran = Case::new(TRANSFER).clients(3).transactions(5).run();
    let load = load(&ran);
    assert_eq!((load.clients, load.elapsed, load.busy), (3, millis(20), millis(0)));
    assert_eq!((load.cpu, load.starved), (None, None));
    assert_eq!((load.busy_share(), load.starved_share()), (0.0, None));
    // Three clients start, and receive 5 × 4 replies each, all at the same instants.
    assert_eq!((load.passes, load.lag.len(), load.lag.max_ms()), (21, 3 + 60, Some(0.0)));
    assert!(load.timers.is_empty());
}

#[test]
fn a_receive_that_takes_time_makes_others_wait() {
    // Each of four replies takes 100 µs, so a pass takes 400 µs, and what it starts is spread in
    // time from then on.
    let mut case = Case::new(INSERT).clients(4).transactions(1);
    case.settings.receiving = micros(100);
    let ran = case.run();
    let load = load(&ran);
    assert_eq!((load.passes, load.busy, load.elapsed), (2, micros(400), micros(1_400)));
    assert_eq!((load.lag.len(), load.lag.mean_ms(), load.lag.max_ms()), (8, Some(0.2), Some(0.4)));
    assert!((load.busy_share() - 4.0 / 14.0).abs() < 1e-12);
}

#[test]
fn a_worker_that_is_always_late_is_always_busy() {
    // The server answers in 1 ms; the worker needs 100 µs for each reply, and 50 clients.
    let mut case = Case::new(INSERT).clients(50).time(millis(500));
    case.settings.receiving = micros(100);
    let ran = case.run();
    let load = load(&ran);
    assert!(load.busy_share() > 0.99, "{}", load.busy_share());
    // 50 replies take 5 ms, which is the latency of a transaction; 1 ms of it is the server's.
    let mean = load.lag.mean_ms().expect("replies");
    let latency = ran.outcome.latency().mean_ms().expect("transactions");
    assert!((latency - mean - 1.0).abs() < 0.05, "{latency} ms, lag {mean} ms");
}

#[test]
fn timers_are_late_when_the_worker_is() {
    let idle = Case::new(INSERT).pacing(Pacing::ThinkTime(millis(3))).transactions(5).run();
    assert_eq!((load(&idle).timers.len(), load(&idle).timers.max_ms()), (4, Some(0.0)));
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let faults = Faults::none().and(On::Update, When::First(10), conflict);
    let mut case = Case::new(TRANSFER).retry(backoff("fixed:2ms")).faults(faults).clients(5).transactions(20);
    case.settings.receiving = micros(300);
    // Keeps the clients out of step.
    case.settings.latency = 500_000..=1_500_000;
    let ran = case.run();
    let load = load(&ran);
    // Ten of each client.
    assert_eq!((load.timers.len(), ran.ledger.attempts.retried), (50, 50));
    // A timer that becomes due during a pass waits for its end; a pass serves each client at most
    // once.
    let latest = load.timers.max_ms().expect("timers");
    assert!((0.1..=1.5).contains(&latest) && Some(latest) <= load.lag.max_ms(), "{latest}");
}

#[test]
fn every_run_has_a_load_of_its_own() {
    let mut stage = Case::new(INSERT).stage();
    let runs = [3, 2].map(|count| stage.run(StopCondition::Transactions(count)));
    assert_eq!(runs.each_ref().map(|run| load(run).lag.len()), [1 + 3, 1 + 2]);
    assert_eq!(runs.each_ref().map(|run| load(run).elapsed), [millis(3), millis(2)]);
    stage.end(&[&runs[0], &runs[1]]);
}
