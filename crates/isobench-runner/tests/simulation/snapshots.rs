//! Asking transactions for their snapshots, which changes nothing else.

use isobench_isolation::check::{Cleared, Options, check};
use isobench_isolation::observed::{CommittedWrites, MayRead, ObservedDescription};
use isobench_pgwire::SqlState;
use isobench_runner::{OnError, Protocol};
use isobench_testkit::simulated::{Fault, Faults, Loss, On, When};

use crate::harness::{Case, RunResult, TRANSFER, backoff};

const PROTOCOLS: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

/// An answer of a transaction that wrote nothing.
const READ_ONLY: [Option<&str>; 3] = [None, Some("700:702:700"), Some("t")];

/// A case whose script may read anything unseen, and whose log of writes is empty.
fn case(script: &str) -> Case {
    let description = ObservedDescription {
        horizon: 700,
        may_read: vec![MayRead::Anything],
        committed: Some(CommittedWrites::default()),
        ..ObservedDescription::default()
    };
    let mut case = Case::new(script);
    case.shown = Some((description, Vec::new()));
    case
}

fn cleared(case: Case) -> (RunResult, Option<Cleared>) {
    let (ran, history, why) = case.run_shown();
    assert_eq!(why, None);
    (ran, check(&history, &Options::default()).cleared)
}

#[test]
fn every_commit_is_asked_and_nothing_else_changes() {
    for protocol in PROTOCOLS {
        let script = format!("{TRANSFER}\\set x debug(1)\n");
        let case = || case(&script).clients(2).protocol(protocol).transactions(20);
        let (plain, without) = cleared(case());
        let (asked, with) = cleared(case().asks_snapshots(READ_ONLY));
        assert_eq!(without, None);
        assert_eq!(with, Some(Cleared { dark: 40, cleared: 40, why_not: None }), "{protocol:?}");
        assert_eq!(asked.ledger.attempts, plain.ledger.attempts);
        assert_eq!(asked.debugs(), plain.debugs());
        let times = |ran: &RunResult| -> Vec<(u64, Option<f64>)> {
            let commands = ran.outcome.scripts[0].commands.iter();
            commands.map(|command| (command.latency.count(), command.latency.mean_ms())).collect()
        };
        let mut expected = times(&plain);
        // The server takes a millisecond for each statement, and no round trip is added.
        expected[4].1 = Some(2.0);
        assert_eq!(times(&asked), expected, "{protocol:?}");
    }
}

#[test]
fn a_snapshot_of_a_statement_alone_is_none_of_the_transaction() {
    for answer in [
        [None, Some("700:702:700"), Some("f")],
        [Some("x"), Some("700:702:"), Some("t")],
        [None, Some("700"), Some("t")],
        [None, None, Some("t")],
    ] {
        let (ran, found) = cleared(case(TRANSFER).transactions(3).asks_snapshots(answer));
        assert_eq!(ran.ledger.attempts.committed, 3);
        let found = found.expect("asked");
        assert_eq!((found.dark, found.cleared), (3, 0));
        assert!(found.why_not.is_some_and(|why| why.starts_with("3 transactions couldn't be asked")));
    }
}

#[test]
fn what_ends_without_a_commit_of_its_own_is_recorded_without_a_snapshot() {
    let pipeline = "\\startpipeline\nBEGIN;\nSELECT 1;\nEND;\n\\endpipeline\n";
    for (script, protocol) in [
        ("SELECT 1;\n", Protocol::Simple),
        ("SELECT 1;\n", Protocol::Prepared),
        ("BEGIN\\; SELECT 1\\; COMMIT;\n", Protocol::Simple),
        (pipeline, Protocol::Prepared),
    ] {
        let case = case(script).protocol(protocol).transactions(2).asks_snapshots(READ_ONLY);
        let (ran, found) = cleared(case);
        assert_eq!(ran.ledger.attempts.committed, 2);
        let found = found.expect("asked");
        assert_eq!((found.dark, found.cleared), (2, 0), "{script}");
        assert!(found.why_not.is_some_and(|why| why.starts_with("2 transactions couldn't be asked")));
    }
}

#[test]
fn what_is_rolled_back_is_not_recorded() {
    let (_, found) =
        cleared(case("BEGIN;\nSELECT 1;\nROLLBACK;\n").transactions(2).asks_snapshots(READ_ONLY));
    assert_eq!(found, None);
}

/// The question may fail with a conflict, or meet a lost session. Every attempt is accounted for, as
/// the harness checks.
#[test]
fn errors_meet_the_question() {
    for (seed, protocol) in (0..60).zip(PROTOCOLS.into_iter().cycle()) {
        let faults = Faults::none()
            .and(On::Select, When::Chance(0.3), Fault::Error(SqlState::SERIALIZATION_FAILURE))
            .and(On::Select, When::Chance(0.1), Fault::Lost(Loss::Closed));
        let mut case = case(TRANSFER)
            .clients(3)
            .protocol(protocol)
            .retry(backoff("none"))
            .on_error(OnError::Continue)
            .asks_snapshots(READ_ONLY)
            .faults(faults)
            .transactions(20);
        case.settings.seed = seed;
        case.run();
    }
}
