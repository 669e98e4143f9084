//! Histories without their counters, and with counters that tell only a part of the order, as those
//! that are proved in observed histories: what is inferred must be true by the counters, at sizes
//! that no enumeration reaches.

use std::collections::BTreeMap;

use isobench_isolation::check::{Options, Report};
use isobench_isolation::history::{Draft, Key, Operation, Provenance, TransactionOutcome, Version, text};
use isobench_isolation::{History, Model};

use super::clients::{self, SimulationSettings, Workload};
use super::database::Level;
use super::{contradicts, defect};
use crate::naive::Case;
use crate::naive::judge::guarantees;
use crate::pieces::check;
use crate::{seeds, share, witness};

/// The history with other versions. Writes that make the version that their transaction has already
/// made are left out.
fn with(history: &History, change: impl Fn(Key, Version) -> Version) -> History {
    let mut rest = History::new(history.tables().to_vec());
    let mut draft = Draft::new();
    for (index, transaction) in history.transactions().iter().enumerate() {
        draft.clear();
        for operation in history.operations(index) {
            let changed = match operation {
                Operation::Read { key, version } => Operation::Read { key, version: change(key, version) },
                Operation::Write { key, version } => Operation::Write { key, version: change(key, version) },
                other => other,
            };
            let again = matches!(changed, Operation::Write { .. }) && draft.iter().any(|it| it == changed);
            if !again {
                draft.push(changed);
            }
        }
        rest.push(*transaction, &draft);
    }
    rest
}

/// The history with values only. The initial version has no value.
fn stripped(history: &History) -> History {
    with(history, |_, version| match version.value {
        Some(0) | None => Version::INITIAL,
        Some(value) => Version { counter: None, value: Some(value) },
    })
}

/// The history as if it had been observed, so that the order of neighbouring versions isn't proved.
/// All versions of a transaction have one counter, and those of aborted ones none.
fn coarse(history: &History) -> History {
    let mut last: BTreeMap<Key, BTreeMap<usize, u64>> = BTreeMap::new();
    let mut writers: BTreeMap<(Key, Option<i64>), usize> = BTreeMap::new();
    for (index, transaction) in history.transactions().iter().enumerate() {
        let committed = transaction.outcome == TransactionOutcome::Committed;
        for operation in history.operations(index).filter(|_| committed) {
            if let Operation::Write { key, version } = operation {
                last.entry(key).or_default().insert(index, version.counter.unwrap_or(0));
                writers.insert((key, version.value), index);
            }
        }
    }
    let counter = |key: Key, writer: usize| {
        let rows = last.get(&key)?;
        let own = rows.get(&writer)?;
        Some(rows.values().filter(|counter| *counter < own).count() as u64 / 2 + 1)
    };
    let mut observed = with(history, |key, version| match version.value {
        Some(0) | None => Version::INITIAL,
        value => Version { counter: writers.get(&(key, value)).and_then(|it| counter(key, *it)), value },
    });
    observed.set_provenance(Provenance::default());
    observed
}

/// The contradictions that the counters show, those of them that the values show, and those that
/// rest on inferred orders.
#[derive(Debug, Default)]
struct Tally {
    shown: u64,
    found: u64,
    inferred: u64,
}

/// Compares a history with one that tells less.
fn compare(settings: SimulationSettings, less: fn(&History) -> History, tally: &mut Tally) {
    let run = clients::run(settings);
    let bare = less(&run.history);
    let (full, report) = (check(&run.history, &Options::default()), check(&bare, &Options::default()));
    let explain = |why: &str| {
        let findings: Vec<_> = report.findings.iter().map(|it| (it.anomaly, it.order, &it.witness)).collect();
        let (all, part) = (text::print(&run.history), text::print(&bare));
        format!("{settings:?}: {why}\n{findings:#?}\n{all}\n{part}")
    };
    // At PL-1 a value of unknown outcome that was read proves less than a counter.
    for guarantee in guarantees().filter(|it| it.model != Model::ReadUncommitted) {
        let (by_counters, by_values) = (contradicts(&full, guarantee), contradicts(&report, guarantee));
        assert!(by_counters || !by_values, "{}", explain(&format!("{guarantee} is accused wrongly")));
        tally.shown += u64::from(by_counters);
        tally.found += u64::from(by_values);
    }
    tally.inferred += inferred(&report);
    // The other definitions know no counters that tell a part of the order.
    if bare.provenance().is_none()
        && let Err(why) = witness::verify(&Case::new(&bare), &report)
    {
        panic!("{}", explain(&why));
    }
}

fn inferred(report: &Report) -> u64 {
    report.findings.iter().filter(|finding| finding.witness.is_inferred()).count() as u64
}

/// The databases without and with defects.
fn settings(levels: &[Level], often: u64) -> Vec<SimulationSettings> {
    let workload = Workload::Counters;
    let mut all: Vec<SimulationSettings> = Vec::new();
    for &level in levels {
        all.extend(seeds(often).map(|seed| SimulationSettings { level, workload, defect: None, seed }));
    }
    for case in defect::CASES.iter().filter(|case| case.workloads.contains(&workload)) {
        let (level, defect) = (case.level, Some(case.defect));
        if levels.contains(&level) {
            all.extend(seeds(case.seeds).map(|seed| SimulationSettings { level, workload, defect, seed }));
        }
    }
    all
}

#[test]
fn what_values_show_is_what_counters_show() {
    let mut tally = Tally::default();
    for settings in settings(&Level::ALL, 120) {
        compare(settings, stripped, &mut tally);
    }
    println!("{tally:?}");
    // The rest rests on orders that nothing but a counter tells, such as that of writes alone.
    assert!(tally.found * 3 > tally.shown * 2, "values show too little: {tally:?}");
    assert!(tally.inferred > share(20), "too little is inferred: {tally:?}");
}

/// Only levels that keep the writers of one row apart, without defects, as the proof of an order
/// assumes.
#[test]
fn what_a_part_of_the_order_shows_is_what_counters_show() {
    let mut tally = Tally::default();
    let levels = [Level::ReadCommitted, Level::Snapshot, Level::Certified, Level::Locked];
    let sound = |settings: &SimulationSettings| settings.defect.is_none();
    for settings in settings(&levels, 240).into_iter().filter(sound) {
        compare(settings, coarse, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.found * 4 > tally.shown * 3, "too little is shown: {tally:?}");
    assert!(tally.inferred > share(20), "too little is inferred: {tally:?}");
}
