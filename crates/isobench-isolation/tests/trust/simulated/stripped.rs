//! Histories without their counters: what is inferred from the values alone must be true by the
//! counters, at sizes that no enumeration reaches.

use isobench_isolation::check::{Options, Report, check};
use isobench_isolation::history::{Draft, Operation, Version, text};
use isobench_isolation::{History, Model};

use super::clients::{self, SimulationSettings, Workload};
use super::database::Level;
use super::{contradicts, defect};
use crate::naive::Case;
use crate::naive::judge::guarantees;
use crate::{seeds, witness};

/// The history with values only. The initial version has no value.
fn stripped(history: &History) -> History {
    let bare = |version: Version| match version.value {
        Some(0) | None => Version::INITIAL,
        Some(value) => Version { counter: None, value: Some(value) },
    };
    let mut rest = History::new(history.tables().to_vec());
    let mut draft = Draft::new();
    for (index, transaction) in history.transactions().iter().enumerate() {
        draft.fill(history.operations(index).map(|operation| match operation {
            Operation::Read { key, version } => Operation::Read { key, version: bare(version) },
            Operation::Write { key, version } => Operation::Write { key, version: bare(version) },
            other => other,
        }));
        rest.push(*transaction, &draft);
    }
    rest
}

/// The contradictions that the counters show, those of them that the values show, and those that
/// rest on inferred orders.
#[derive(Debug, Default)]
struct Tally {
    shown: u64,
    found: u64,
    inferred: u64,
}

/// Compares a history with the same one without counters.
fn compare(settings: SimulationSettings, tally: &mut Tally) {
    let run = clients::run(settings);
    let bare = stripped(&run.history);
    let (full, report) = (check(&run.history, &Options::default()), check(&bare, &Options::default()));
    let explain = |why: &str| {
        let findings: Vec<_> = report.findings.iter().map(|it| (it.anomaly, it.order, &it.witness)).collect();
        format!("{settings:?}: {why}\n{findings:#?}\n{}", text::print(&run.history))
    };
    // At PL-1 a value of unknown outcome that was read proves less than a counter.
    for guarantee in guarantees().filter(|it| it.model != Model::ReadUncommitted) {
        let (by_counters, by_values) = (contradicts(&full, guarantee), contradicts(&report, guarantee));
        assert!(by_counters || !by_values, "{}", explain(&format!("{guarantee} is accused wrongly")));
        tally.shown += u64::from(by_counters);
        tally.found += u64::from(by_values);
    }
    tally.inferred += inferred(&report);
    if let Err(why) = witness::verify(&Case::new(&bare), &report) {
        panic!("{}", explain(&why));
    }
}

fn inferred(report: &Report) -> u64 {
    report.findings.iter().filter(|finding| finding.witness.is_inferred()).count() as u64
}

#[test]
fn what_values_show_is_what_counters_show() {
    let mut tally = Tally::default();
    for level in Level::ALL {
        for seed in seeds(120) {
            let settings = SimulationSettings { level, workload: Workload::Counters, defect: None, seed };
            compare(settings, &mut tally);
        }
    }
    for case in defect::CASES.iter().filter(|case| case.workloads.contains(&Workload::Counters)) {
        for seed in seeds(case.seeds) {
            compare(
                SimulationSettings {
                    level: case.level,
                    workload: Workload::Counters,
                    defect: Some(case.defect),
                    seed,
                },
                &mut tally,
            );
        }
    }
    println!("{tally:?}");
    // The rest rests on orders that nothing but a counter tells, such as that of writes alone.
    assert!(tally.found * 3 > tally.shown * 2, "values show too little: {tally:?}");
    assert!(tally.inferred > 20, "too little is inferred: {tally:?}");
}
