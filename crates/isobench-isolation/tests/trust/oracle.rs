//! Small random histories: the checker against brute force.

use std::collections::BTreeMap;

use isobench_isolation::check::{Options, Report};
use isobench_isolation::history::{Operation, Transaction, TransactionOutcome, Version};
use isobench_isolation::{Guarantee, History, Model, Order};

use crate::counts::wrong_count;
use crate::naive::Case;
use crate::naive::judge::{Judgement, guarantees};
use crate::pieces::check;
use crate::random::{self, Kind};
use crate::{search, seeds, shrink, witness};

/// The number of checks, and of those in which the checker was weaker than the oracle, which
/// enumerates all unknowns.
#[derive(Debug, Default)]
struct Tally {
    histories: u64,
    decided: u64,
    serializable: u64,
    impossible: u64,
    weaker: u64,
}

fn contradicts(report: &Report, guarantee: Guarantee) -> bool {
    report.findings.iter().any(|finding| finding.contradicts(guarantee))
}

/// An error in the checker's result.
fn failure(history: &History) -> Option<String> {
    let case = Case::new(history);
    let judgement = case.judge();
    let report = check(history, &Options::default());
    let wrong = guarantees().find_map(|guarantee| wrong_answer(&judgement, &report, guarantee));
    wrong
        .or_else(|| witness::verify(&case, &report).err())
        .or_else(|| wrong_verdict(history, &report))
        .or_else(|| wrong_anomalous(&report))
        .or_else(
            || if judgement.decided && !judgement.open_at_pl1 { wrong_count(&case, &report) } else { None },
        )
        .map(|wrong| {
            format!(
                "{wrong}\nfound: {:?}",
                report.findings.iter().map(|it| (it.anomaly, it.order)).collect::<Vec<_>>()
            )
        })
}

/// There are anomalous transactions if the data show an anomaly, and no more than transactions.
fn wrong_anomalous(report: &Report) -> Option<String> {
    let by_data = report.findings.iter().any(|finding| finding.order == Order::Data);
    let most = report.examined.committed + report.examined.proved_committed;
    let right = (report.anomalous > 0) == by_data && report.anomalous <= most;
    (!right).then(|| format!("{} anomalous transactions of {most}, by data: {by_data}", report.anomalous))
}

fn wrong_answer(judgement: &Judgement, report: &Report, guarantee: Guarantee) -> Option<String> {
    let unclear = judgement.open_at_pl1 && guarantee.model == Model::ReadUncommitted;
    match (judgement.allowed.contains(&guarantee), contradicts(report, guarantee)) {
        (true, true) if !unclear => Some(format!("accused: {guarantee}, which allows it")),
        (false, false) if judgement.decided && !unclear => {
            Some(format!("missed: {guarantee} doesn't allow it"))
        }
        _ => None,
    }
}

/// The verdict must follow from the findings.
pub fn wrong_verdict(history: &History, report: &Report) -> Option<String> {
    let timed = history.transactions().iter().any(|it| (it.begin, it.end) != (0, 0));
    let possible = |it: &Guarantee| !contradicts(report, *it) && (timed || it.order < Order::RealTime);
    let left: Vec<_> = guarantees().filter(possible).collect();
    let strongest = |it: &Guarantee| !left.iter().any(|other| other != it && other.implies(*it));
    let mut expected: Vec<_> = left.iter().copied().filter(strongest).collect();
    let mut verdict = report.verdict.not_contradicted.clone();
    if !report.verdict.withheld.is_empty() {
        let given = report.verdict.kept.is_some() || !verdict.is_empty();
        let why = given || !doubtful(history, TransactionOutcome::Unknown) && !empty(history);
        return why.then(|| format!("withheld without reason, or not withheld: {:?}", report.verdict));
    }
    if doubtful(history, TransactionOutcome::Committed) || empty(history) {
        return Some("a verdict on a history that is empty, or has a value twice".to_owned());
    }
    expected.sort();
    verdict.sort();
    let shown = |all: &[Guarantee]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    (verdict != expected).then(|| format!("verdict {}, but {} follows", shown(&verdict), shown(&expected)))
}

/// True if no committed transaction did anything.
fn empty(history: &History) -> bool {
    let committed = |it: &Transaction| it.outcome == TransactionOutcome::Committed;
    history.operation_count() == 0 || !history.transactions().iter().any(committed)
}

/// True if two transactions with at worst this outcome wrote indistinguishable versions of one row.
fn doubtful(history: &History, worst: TransactionOutcome) -> bool {
    let mut written: Vec<(usize, Operation<'_>)> = Vec::new();
    for (index, transaction) in history.transactions().iter().enumerate() {
        let counts = transaction.outcome == TransactionOutcome::Committed || transaction.outcome == worst;
        written.extend(history.operations(index).filter(|_| counts).map(|operation| (index, operation)));
    }
    let alike = |one: Version, other: Version| {
        let counters = one.counter.is_none() || other.counter.is_none() || one.counter == other.counter;
        counters && one.value.is_some() && one.value == other.value
    };
    let twice = |(place, (one, first)): (usize, &(usize, Operation<'_>))| {
        written[..place].iter().any(|(other, second)| match (*first, *second) {
            (Operation::Write { key, version }, Operation::Write { key: row, version: known }) => {
                key == row && one != other && alike(version, known)
            }
            (
                Operation::Append { .. } | Operation::Insert { .. },
                Operation::Append { .. } | Operation::Insert { .. },
            ) => first == second,
            _ => false,
        })
    };
    written.iter().enumerate().any(twice)
}

fn compare(kind: Kind, usual: u64) -> Tally {
    let mut tally = Tally::default();
    let mut wrong: BTreeMap<String, (u64, History)> = BTreeMap::new();
    for seed in seeds(usual) {
        let history = random::history(kind, seed);
        if let Some(why) = failure(&history) {
            let reason = why.lines().next().unwrap_or_default().to_owned();
            wrong.entry(reason).or_insert((seed, history));
            continue;
        }
        let judgement = Case::new(&history).judge();
        let report = check(&history, &Options::default());
        tally.histories += 1;
        tally.decided += u64::from(judgement.decided);
        tally.serializable += u64::from(judgement.allowed.contains(&Guarantee::of(Model::Serializable)));
        for guarantee in guarantees().filter(|it| !judgement.allowed.contains(it)) {
            tally.impossible += 1;
            tally.weaker += u64::from(!contradicts(&report, guarantee));
        }
    }
    println!("{kind:?}: {tally:?}");
    let shown =
        wrong.values().map(|(seed, history)| format!("seed {seed}: {}", shrink::report(history, &failure)));
    assert!(wrong.is_empty(), "{kind:?}:\n{}", shown.collect::<Vec<_>>().join("\n"));
    assert!(tally.serializable * 10 > tally.histories, "too few histories are serializable: {tally:?}");
    assert!(tally.serializable * 10 < tally.histories * 9, "too few are not: {tally:?}");
    tally
}

/// If the version order is known, the checker agrees with the definitions.
#[test]
fn counters() {
    let tally = compare(Kind::Counters, 600);
    assert!(tally.weaker * 100 < tally.impossible, "{tally:?}");
}

#[test]
fn counters_without_values() {
    let tally = compare(Kind::CountersOnly, 600);
    assert!(tally.weaker * 100 < tally.impossible, "{tally:?}");
}

#[test]
fn lists() {
    let tally = compare(Kind::Lists, 600);
    assert!(tally.weaker * 10 < tally.impossible, "{tally:?}");
}

#[test]
fn groups() {
    let tally = compare(Kind::Groups, 600);
    assert_eq!(tally.weaker, 0, "{tally:?}");
}

#[test]
fn all_kinds_in_one() {
    let tally = compare(Kind::Mixed, 600);
    assert!(tally.weaker * 10 < tally.impossible, "{tally:?}");
}

/// Values don't show the version order, but the checker infers as much of it as these histories
/// tell. It never accuses wrongly.
#[test]
fn values() {
    let tally = compare(Kind::Values, 300);
    assert!(tally.weaker * 100 < tally.impossible, "{tally:?}");
}

/// The same beside predicates and lists.
#[test]
fn values_among_others() {
    let tally = compare(Kind::MixedValues, 300);
    assert!(tally.weaker * 100 < tally.impossible, "{tally:?}");
}

/// The definitions by graphs and those by execution agree, so neither oracle is wrong on its own.
#[test]
fn oracles_agree() {
    let differs = |history: &History| {
        let case = Case::new(history);
        let judgement = case.judge();
        if !case.is_consistent() {
            return Some("reachability and the cycles one by one say different things".to_owned());
        }
        for order in Order::ALL {
            let graph = |model| judgement.allowed.contains(&Guarantee { model, order });
            let serial = search::serializable(&case, order);
            let snapshot = search::snapshot_isolated(&case, order);
            if serial && !graph(Model::Serializable) || snapshot && !graph(Model::SnapshotIsolation) {
                return Some(format!(
                    "{order:?}: an execution explains it (serial: {serial}), the graph says no"
                ));
            }
            let known = judgement.decided || case.is_gapless(&case.proved());
            if known && (serial, snapshot) != (graph(Model::Serializable), graph(Model::SnapshotIsolation)) {
                return Some(format!(
                    "{order:?}: no execution explains it (serial: {serial}), the graph says one should"
                ));
            }
        }
        None
    };
    let mut strongest: BTreeMap<Vec<Model>, u64> = BTreeMap::new();
    for kind in Kind::ALL {
        for seed in seeds(100) {
            let history = random::history(kind, seed);
            assert!(
                differs(&history).is_none(),
                "{kind:?}, seed {seed}: {}",
                shrink::report(&history, &differs)
            );
            let allowed = Case::new(&history).judge().allowed;
            let models = || Model::ALL.into_iter().filter(|model| allowed.contains(&Guarantee::of(*model)));
            let strongest_one =
                |model: &Model| !models().any(|other| other != *model && other.implies(*model));
            *strongest.entry(models().filter(strongest_one).collect()).or_default() += 1;
        }
    }
    println!("{strongest:#?}");
    let shown = |model: &Model| strongest.keys().flatten().any(|it| it == model);
    assert!(Model::ALL.iter().all(shown), "the random histories tell no difference between some models");
}
