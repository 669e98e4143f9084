//! A simulated database under random load: the checker must never accuse it when it is correct, and
//! must catch its defects.
//!
//! | file | holds |
//! |---|---|
//! | `database` | rows, versions, snapshots, locks: five levels |
//! | `dependencies` | its own dependency graph |
//! | `clients` | random transactions, interleaved, retried, rolled back, lost |
//! | `stripped` | the same histories without counters |
//! | `defect` | the defects that can be planted, when they show, and what must be found |

mod clients;
mod database;
mod defect;
mod dependencies;
mod stripped;

use isobench_isolation::check::{Options, Report};
use isobench_isolation::history::{Draft, text};
use isobench_isolation::{Guarantee, History, Model, Order};

use crate::naive::Case;
use crate::naive::closure::Decision;
use crate::naive::judge::guarantees;
use crate::pieces::check;
use crate::{assert_found, seeds, share, witness};
use clients::{SimulationSettings, Workload};
use database::Level;
use defect::Defect;

fn contradicts(report: &Report, guarantee: Guarantee) -> bool {
    report.findings.iter().any(|finding| finding.contradicts(guarantee))
}

const fn strong(model: Model) -> Guarantee {
    Guarantee { model, order: Order::RealTime }
}

/// The guarantees of each level of the simulated database.
fn guaranteed(level: Level) -> &'static [Guarantee] {
    const READ_UNCOMMITTED: [Guarantee; 1] = [strong(Model::ReadUncommitted)];
    const READ_COMMITTED: [Guarantee; 1] = [strong(Model::ReadCommitted)];
    const SNAPSHOT: [Guarantee; 1] = [strong(Model::SnapshotIsolation)];
    const CERTIFIED: [Guarantee; 2] = [strong(Model::SnapshotIsolation), Guarantee::of(Model::Serializable)];
    const LOCKED: [Guarantee; 1] = [strong(Model::Serializable)];
    match level {
        Level::ReadUncommitted => &READ_UNCOMMITTED,
        Level::ReadCommitted => &READ_COMMITTED,
        Level::Snapshot => &SNAPSHOT,
        Level::Certified => &CERTIFIED,
        Level::Locked => &LOCKED,
    }
}

/// The percentage of histories at this level that must contradict the next stronger model, because
/// the test would otherwise prove nothing.
fn fraction_of_stronger(level: Level) -> (Model, u64) {
    match level {
        Level::ReadUncommitted => (Model::ReadCommitted, 40),
        Level::ReadCommitted => (Model::ConsistentView, 10),
        Level::Snapshot => (Model::Serializable, 3),
        Level::Certified | Level::Locked => (Model::Serializable, 0),
    }
}

/// Compares a report with the definitions: each witness, and, if the version orders are known, each
/// guarantee except read uncommitted, which the definitions don't fully determine.
fn confirm(history: &History, report: &Report) -> Result<(), String> {
    let case = Case::new(history);
    witness::verify(&case, report)?;
    let Decision::Contradicted(contradicted) = case.decide() else { return Ok(()) };
    let other = guarantees()
        .filter(|it| it.model != Model::ReadUncommitted)
        .find(|it| contradicted.contains(it) != contradicts(report, *it));
    match other {
        Some(guarantee) => Err(format!("{guarantee}: the definitions say something else")),
        None => Ok(()),
    }
}

fn never_accused(level: Level) {
    let (stronger, least) = fraction_of_stronger(level);
    let (mut histories, mut accused) = (0, 0);
    for workload in Workload::ALL {
        for seed in seeds(60) {
            let run = clients::run(SimulationSettings { level, workload, defect: None, seed });
            let report = check(&run.history, &Options::default());
            let explain = |why: &str| {
                let findings: Vec<_> =
                    report.findings.iter().map(|it| (it.anomaly, it.order, &it.witness)).collect();
                format!(
                    "{level:?} {workload:?} seed {seed}: {why}\n{findings:#?}\n{}",
                    text::print(&run.history)
                )
            };
            for guarantee in guaranteed(level) {
                assert!(!contradicts(&report, *guarantee), "{}", explain("accused of what it did right"));
            }
            if let Err(why) = confirm(&run.history, &report) {
                panic!("{}", explain(&why));
            }
            histories += 1;
            accused += u64::from(contradicts(&report, Guarantee::of(stronger)));
        }
    }
    println!("{level:?}: {histories} histories, {accused} of them contradict {stronger:?}");
    assert!(accused * 100 >= histories * least, "the histories of {level:?} show too little");
}

#[test]
fn read_uncommitted_is_never_accused() {
    never_accused(Level::ReadUncommitted);
}

#[test]
fn read_committed_is_never_accused() {
    never_accused(Level::ReadCommitted);
}

#[test]
fn snapshot_isolation_is_never_accused() {
    never_accused(Level::Snapshot);
}

#[test]
fn certified_snapshots_are_never_accused() {
    never_accused(Level::Certified);
}

#[test]
fn two_phase_locking_is_never_accused() {
    never_accused(Level::Locked);
}

/// Each planted defect is found by its name whenever it shows, and no other promise is reported as
/// broken.
#[test]
fn planted_defects_are_caught() {
    for case in &defect::CASES {
        let (mut shown, mut caught) = (0, 0);
        for workload in case.workloads {
            for seed in seeds(case.seeds) {
                let settings = SimulationSettings {
                    level: case.level,
                    workload: *workload,
                    defect: Some(case.defect),
                    seed,
                };
                let run = clients::run(settings);
                let report = check(&run.history, &Options::default());
                let explain = |why: &str| {
                    let findings: Vec<_> =
                        report.findings.iter().map(|it| (it.anomaly, it.order, &it.witness)).collect();
                    format!("{settings:?}: {why}\n{findings:#?}\n{}", text::print(&run.history))
                };
                if let Some(kept) = case.kept {
                    assert!(!contradicts(&report, kept), "{}", explain("accused of what it did right"));
                }
                if let Err(why) = confirm(&run.history, &report) {
                    panic!("{}", explain(&why));
                }
                if run.shows(case.defect) {
                    shown += 1;
                    if case.caught(&report) {
                        caught += 1;
                    } else if std::env::var_os("ISOBENCH_SHOW_MISSED").is_some() {
                        println!("{}", explain("not caught"));
                    }
                }
            }
        }
        println!("{:?} at {:?}: shows in {shown} histories, caught in {caught}", case.defect, case.level);
        assert!(shown >= share(10), "{:?} at {:?} shows in {shown} histories only", case.defect, case.level);
        assert_found(caught, shown, 95, &case.defect);
    }
}

/// The transactions from one to before another in the order of the history, which is that of their
/// ends, but for those of a few clients. Others are missing.
fn window(history: &History, random: &mut fastrand::Rng) -> History {
    let count = history.transactions().len();
    let (from, to) = (random.usize(0..=count / 2), random.usize(count / 2..=count));
    let behind = random.u32(0..8);
    let mut window = History::new(history.tables().to_vec());
    let mut draft = Draft::new();
    for (index, transaction) in history.transactions().iter().enumerate().take(to).skip(from) {
        if transaction.client != behind {
            draft.fill(history, index);
            window.push(*transaction, &draft);
        }
    }
    window.set_dropped(1);
    window
}

/// What is checked while a run goes on contradicts nothing that the whole history doesn't.
#[test]
fn windows_accuse_nobody() {
    let correct = Level::ALL.iter().map(|level| (*level, None, &Workload::ALL[..]));
    let defective = defect::CASES.iter().map(|case| (case.level, Some(case.defect), case.workloads));
    for (level, defect, workloads) in correct.chain(defective) {
        let (mut whole, mut shown) = (0, 0);
        for (workload, seed) in
            workloads.iter().flat_map(|workload| seeds(25).map(move |seed| (*workload, seed)))
        {
            let settings = SimulationSettings { level, workload, defect, seed };
            let run = clients::run(settings);
            let all = check(&run.history, &Options::default());
            let window = window(&run.history, &mut fastrand::Rng::with_seed(seed));
            for vouched in [true, false] {
                let report = check(&window, &Options { vouched, ..Options::default() });
                if !report.verdict.withheld.is_empty() {
                    continue;
                }
                for guarantee in guarantees() {
                    let (before, after) = (contradicts(&all, guarantee), contradicts(&report, guarantee));
                    assert!(
                        before || !after,
                        "{settings:?}: the window contradicts {guarantee}, the history doesn't\n{:#?}\n{}\n{}",
                        report.findings,
                        text::print(&window),
                        text::print(&run.history)
                    );
                    whole += u64::from(before);
                    shown += u64::from(after);
                }
            }
        }
        println!("{level:?} {defect:?}: {shown} of {whole} contradictions show in windows");
        // What nobody wrote may have been written by one that is missing.
        assert!(defect.is_none_or(|defect| (shown > 0) != (defect == Defect::Garbage)));
    }
}

/// Compares the simulation with the definitions, without the checker: each level provides its
/// guarantees, and each defect breaks them.
#[test]
fn the_simulation_is_right() {
    let mut decided = 0;
    for (level, workload) in
        Level::ALL.iter().flat_map(|level| Workload::ALL.map(|workload| (*level, workload)))
    {
        for seed in seeds(12) {
            let settings = SimulationSettings { level, workload, defect: None, seed };
            let run = clients::run(settings);
            let Decision::Contradicted(contradicted) = Case::new(&run.history).decide() else { continue };
            decided += 1;
            let broken: Vec<_> = guaranteed(level).iter().filter(|it| contradicted.contains(it)).collect();
            assert!(broken.is_empty(), "{settings:?}: {broken:?}\n{}", text::print(&run.history));
        }
    }
    println!("{decided} decided");
    for case in &defect::CASES {
        for (workload, seed) in
            case.workloads.iter().flat_map(|workload| seeds(12).map(move |seed| (*workload, seed)))
        {
            let settings =
                SimulationSettings { level: case.level, workload, defect: Some(case.defect), seed };
            let run = clients::run(settings);
            let Decision::Contradicted(contradicted) = Case::new(&run.history).decide() else { continue };
            let shown = || format!("{settings:?}\n{}", text::print(&run.history));
            assert!(
                case.kept.is_none_or(|kept| !contradicted.contains(&kept)),
                "breaks what it should keep: {}",
                shown()
            );
            assert!(
                !run.shows(case.defect) || contradicted.contains(&case.contradicted),
                "breaks nothing: {}",
                shown()
            );
        }
    }
}
