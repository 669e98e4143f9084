//! Readers that wait until the standby has caught up, which takes its time and may fail.

use std::time::Duration;

use isobench_pgwire::SqlState;
use isobench_runner::{OnError, Protocol};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

use crate::harness::{Case, backoff};

/// A transaction of a reader.
const READ: &str = "BEGIN;\nSELECT v FROM t WHERE id = 1;\nEND;\n";

/// What a reader sends before it; the simulated server answers it like any SELECT.
const WAIT: &str = "SELECT wait_for_lsn";

#[test]
fn only_readers_wait_and_only_latency_shows_it() {
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        let case = || Case::new(READ).clients(2).protocol(protocol).transactions(10);
        let (plain, waits) = (case().run(), case().readers(1, WAIT).run());
        assert_eq!((plain.ledger.attempts.committed, waits.ledger.attempts.committed), (20, 20));
        let commands = |ran: &crate::harness::RunResult| -> Vec<(u64, Option<f64>)> {
            let commands = &ran.outcome.scripts[0].commands;
            commands.iter().map(|command| (command.latency.count(), command.latency.mean_ms())).collect()
        };
        assert_eq!(commands(&plain), commands(&waits), "the script's own statements are the same");
        let sum =
            |ran: &crate::harness::RunResult| ran.outcome.scripts[0].latency.mean_ms().expect("transactions");
        // Each statement takes a millisecond; half of the transactions wait for one more.
        assert!((sum(&waits) - sum(&plain) - 0.5).abs() < 0.1, "{} {}", sum(&plain), sum(&waits));
    }
}

/// A recovery conflict while a reader waits is a conflict like any other, and a lost session is one.
/// Every attempt is accounted for, as the harness checks.
#[test]
fn errors_meet_those_that_wait() {
    let mut conflicts = 0;
    for seed in 0..40 {
        let faults = Faults::none()
            .and(On::Select, When::Chance(0.3), Fault::Error(SqlState::SERIALIZATION_FAILURE))
            .and(On::Select, When::Chance(0.1), Fault::Lost(Loss::Closed));
        let mut case = Case::new(READ)
            .clients(3)
            .retry(backoff("none"))
            .on_error(OnError::Continue)
            .readers(0, WAIT)
            .faults(faults)
            .transactions(20);
        case.settings.seed = seed;
        conflicts += case.run().ledger.attempts.retried;
    }
    assert!(conflicts > 0);
}

#[test]
fn the_end_meets_those_that_wait() {
    let mut case = Case::new(READ).clients(2).readers(0, WAIT).time(Duration::from_millis(50));
    case.settings.latency = 30_000_000..=30_000_000;
    let ran = case.run();
    assert!(ran.ledger.attempts.started >= 2);
}
