//! Clients that are split over several machines: what they do, and what their outcomes are together.

use isobench_pgwire::SqlState;
use isobench_runner::{ClientShare, RunOutcome, ScriptRecord};
use isobench_stats::{LatencyHistogram, Ledger};
use isobench_testkit::simulated::{Fault, Faults, On, When};

use crate::harness::{Case, TRANSFER, backoff, millis};

/// A run in which transactions conflict by chance.
fn mixed() -> Case {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let faults = Faults::none().and(On::Commit, When::Chance(0.2), conflict);
    let mut case = Case::new(TRANSFER).clients(7).transactions(30).series(millis(5)).faults(faults);
    case.spec.keeps_attempts = true;
    case.retry(backoff("fixed:2ms"))
}

fn share(rank: usize, machines: usize) -> Case {
    let mut case = mixed();
    case.spec.share = Some(ClientShare::of(7, rank, machines));
    case
}

#[test]
fn every_client_is_on_one_machine() {
    for machines in 1..=9 {
        let shares: Vec<ClientShare> = (0..machines).map(|rank| ClientShare::of(7, rank, machines)).collect();
        let numbers: Vec<usize> =
            shares.iter().flat_map(|share| share.first..share.first + share.clients).collect();
        assert_eq!(numbers, (0..7).collect::<Vec<_>>(), "{machines}");
        let sizes = shares.iter().map(|share| share.clients);
        assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1, "{shares:?}");
    }
}

#[test]
fn a_client_does_the_same_wherever_it_is() {
    let stream = |case: Case, place: usize| -> Vec<String> {
        let ran = case.run();
        let mut stream: Vec<String> =
            ran.truth.matching(place, "UPDATE").into_iter().map(str::to_owned).collect();
        // A retry repeats its transaction.
        stream.dedup();
        stream
    };
    for rank in 0..3 {
        let ClientShare { first, clients } = ClientShare::of(7, rank, 3);
        for place in 0..clients {
            assert_eq!(
                stream(share(rank, 3), place),
                stream(mixed(), first + place),
                "client {}",
                first + place
            );
        }
    }
}

#[test]
fn an_outcome_arrives_as_it_was_sent() {
    let outcome = mixed().run().outcome;
    let arrived = RunOutcome::from_bytes(&outcome.to_bytes().expect("bytes")).expect("an outcome");
    assert_eq!(arrived.ledger(), outcome.ledger());
    let latencies = |outcome: &RunOutcome| -> Vec<LatencyHistogram> {
        let load = outcome.load.iter().flat_map(|load| [load.lag.clone(), load.timers.clone()]);
        outcome.scripts.iter().map(|script| script.latency.clone()).chain(load).collect()
    };
    for (arrived, sent) in latencies(&arrived).iter().zip(&latencies(&outcome)) {
        assert_eq!(arrived.moments(), sent.moments());
        for percent in [0.1, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            assert_eq!(arrived.percentile(percent), sent.percentile(percent));
        }
    }
    let scripts = |outcome: &RunOutcome| {
        let script =
            |script: &ScriptRecord| ScriptRecord { latency: LatencyHistogram::new(), ..script.clone() };
        outcome.scripts.iter().map(|one| format!("{:?}", script(one))).collect::<Vec<_>>()
    };
    assert_eq!(scripts(&arrived), scripts(&outcome));
    assert_eq!((&arrived.conflicts, arrived.elapsed), (&outcome.conflicts, outcome.elapsed));
    assert_eq!((arrived.idle, arrived.load.len()), (outcome.idle, outcome.load.len()));
    assert_eq!((arrived.series, arrived.ended), (outcome.series, outcome.ended));
    assert!(RunOutcome::from_bytes(b"{}").is_err());
}

#[test]
fn the_whole_equals_the_parts() {
    let parts: Vec<RunOutcome> = (0..3).map(|rank| share(rank, 3).run().outcome).collect();
    let whole = RunOutcome::together(parts.clone()).expect("an outcome");
    whole.check().expect("the identities hold on the whole");
    let ledger: Ledger = parts.iter().map(RunOutcome::ledger).collect::<Vec<_>>().iter().sum();
    assert_eq!(whole.ledger(), ledger);
    let mut latency = parts[0].latency();
    parts[1..].iter().for_each(|part| latency.merge(&part.latency()));
    // On the way and back, as the others' are.
    let sent = parts.iter().map(|part| RunOutcome::from_bytes(&part.to_bytes().expect("bytes")));
    let arrived =
        RunOutcome::together(sent.collect::<Result<_, _>>().expect("outcomes")).expect("an outcome");
    for percent in 1..=1000 {
        let of = |latency: &LatencyHistogram| latency.percentile(f64::from(percent) / 10.0);
        assert_eq!(of(&whole.latency()), of(&latency), "percentiles of the whole, bit for bit");
        assert_eq!(of(&arrived.latency()), of(&latency), "bit for bit");
    }
    assert_eq!((arrived.ledger(), &arrived.series), (whole.ledger(), &whole.series));
    assert_eq!(whole.latency().moments(), latency.moments());
    assert_eq!(whole.elapsed, parts.iter().map(|part| part.elapsed).max().unwrap());
    assert_eq!(whole.ended.len(), parts.iter().map(|part| part.ended.len()).sum::<usize>());
    let ids: std::collections::BTreeSet<u64> = whole.ended.iter().map(|attempt| attempt.id).collect();
    assert_eq!(ids.len(), whole.ended.len(), "numbers of attempts are unique over machines");
    assert_eq!(whole.load.len(), parts.iter().map(|part| part.load.len()).sum::<usize>());
    assert!(RunOutcome::together(Vec::new()).is_none());
    // The order of the machines doesn't matter to what is counted.
    let backwards = RunOutcome::together(parts.into_iter().rev().collect()).expect("an outcome");
    assert_eq!((backwards.ledger(), backwards.series), (whole.ledger(), whole.series));
}
