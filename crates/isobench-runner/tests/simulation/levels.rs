//! Asking transactions for their level, which changes nothing else.

use isobench_pgwire::SqlState;
use isobench_runner::{OnError, Protocol, StopCondition};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

use crate::harness::{Case, INSERT, TRANSFER, backoff};

#[test]
fn one_in_128_transactions_is_asked_and_nothing_else_changes() {
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        let case = || Case::new(TRANSFER).clients(2).protocol(protocol).transactions(257);
        let (plain, asked) = (case().run(), case().asks("read committed").run());
        assert_eq!(plain.outcome.levels().len(), 0);
        assert_eq!(asked.outcome.levels()["read committed"], 6, "1, 129 and 257 of each client");
        assert_eq!(asked.ledger.attempts.committed, 514);
        let count = |ran: &crate::harness::RunResult| -> Vec<u64> {
            ran.outcome.scripts[0].commands.iter().map(|command| command.latency.count()).collect()
        };
        assert_eq!(count(&plain), count(&asked));
        // COMMIT takes a millisecond, whether the level is asked for or not.
        let commit = |ran: &crate::harness::RunResult| ran.outcome.scripts[0].commands[4].latency.mean_ms();
        assert_eq!(commit(&plain), commit(&asked));
    }
}

#[test]
fn every_run_of_a_fleet_asks_again() {
    let mut stage = Case::new(TRANSFER).asks("serializable").transactions(3).stage();
    let first = stage.run(StopCondition::Transactions(3));
    let second = stage.run(StopCondition::Transactions(3));
    assert_eq!((first.outcome.levels()["serializable"], second.outcome.levels()["serializable"]), (1, 1));
}

#[test]
fn statements_outside_a_block_and_pipelines_are_not_asked() {
    let pipeline = "\\startpipeline\nBEGIN;\nUPDATE t SET v = 1;\nEND;\n\\endpipeline\n";
    for (script, protocol) in [(INSERT, Protocol::Simple), (pipeline, Protocol::Prepared)] {
        let ran = Case::new(script).protocol(protocol).asks("read committed").transactions(2).run();
        assert_eq!((ran.outcome.levels().len(), ran.ledger.attempts.committed), (0, 2), "{script}");
    }
}

/// Asking may fail with a conflict, or lose the session. Every attempt is accounted for, as the
/// harness checks.
#[test]
fn errors_meet_the_question() {
    for seed in 0..40 {
        let faults = Faults::none()
            .and(On::Select, When::Chance(0.3), Fault::Error(SqlState::SERIALIZATION_FAILURE))
            .and(On::Select, When::Chance(0.1), Fault::Lost(Loss::Closed));
        let mut case = Case::new(TRANSFER)
            .clients(3)
            .retry(backoff("none"))
            .on_error(OnError::Continue)
            .asks("serializable")
            .faults(faults)
            .transactions(20);
        case.settings.seed = seed;
        case.run();
    }
}
