//! The same seed gives every client the same transactions, under any other conditions.

use isobench_pgwire::SqlState;
use isobench_runner::{Pacing, Protocol, RetryPolicy};
use isobench_testkit::simulated::{Fault, Faults, On, When};

use crate::harness::{Case, TRANSFER, backoff, millis, tries};

/// The work that each client was about to commit, transaction by transaction, including those given
/// up.
fn streams(case: Case) -> Vec<Vec<String>> {
    let clients = case.spec.clients;
    let ran = case.run();
    (0..clients)
        .map(|client| {
            let mut stream: Vec<String> =
                ran.truth.matching(client, "UPDATE").into_iter().map(str::to_owned).collect();
            // A retry repeats its transaction.
            stream.dedup();
            stream
        })
        .collect()
}

fn mixed() -> Case {
    let mut case = Case::new(TRANSFER).clients(4).transactions(40);
    case.scripts.push(("\\set w random_gaussian(1, 1000000, 3)\nUPDATE u SET w = :w;\n".to_owned(), 2));
    case
}

#[test]
fn conflicts_and_retry_policies_change_no_transaction() {
    let calm = streams(mixed());
    assert_eq!(calm.iter().map(Vec::len).collect::<Vec<_>>(), [40; 4]);
    for probability in [0.05, 0.3] {
        for retry in [tries(1), tries(3), RetryPolicy::UNLIMITED, backoff("exponential:base=1ms,max=9ms")] {
            let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
            let faults = Faults::none().and(On::Insert, When::Chance(probability), conflict).and(
                On::Commit,
                When::Chance(probability),
                conflict,
            );
            assert_eq!(streams(mixed().faults(faults).retry(retry)), calm, "{probability} {retry:?}");
        }
    }
}

#[test]
fn protocols_pacing_and_speed_change_no_transaction() {
    let calm = streams(mixed());
    for protocol in Protocol::ALL {
        assert_eq!(streams(mixed().protocol(protocol)), calm);
    }
    assert_eq!(streams(mixed().pacing(Pacing::Rate(50.0))), calm);
    assert_eq!(streams(mixed().pacing(Pacing::ThinkTime(millis(3)))), calm);
    let mut slow = mixed();
    slow.settings.latency = 1..=50_000_000;
    assert_eq!(streams(slow), calm);
}

#[test]
fn the_number_of_workers_changes_no_transaction() {
    let calm = streams(mixed());
    let mut case = mixed();
    case.spec.workers = 3;
    assert_eq!(streams(case), calm);
}

#[test]
fn another_seed_gives_other_transactions_and_clients_differ() {
    let calm = streams(mixed());
    let mut case = mixed();
    case.spec.seed = 2;
    let other = streams(case);
    assert!(calm.iter().zip(&other).all(|(one, two)| one != two));
    assert_ne!(calm[0], calm[1]);
}

#[test]
fn the_same_simulation_gives_the_same_run() {
    let case = || {
        let conflict = Fault::Error(SqlState::DEADLOCK_DETECTED);
        let mut case = mixed().faults(Faults::none().and(On::Statement, When::Chance(0.2), conflict));
        case.settings.latency = 1_000..=9_000_000;
        case.settings.pieces = Some(9);
        case.run()
    };
    let (one, two) = (case(), case());
    assert_eq!((one.truth, one.ledger, one.outcome.elapsed), (two.truth, two.ledger, two.outcome.elapsed));
}
