//! A simulated PostgreSQL under random scripts, observed by its answers: what the log proves must be
//! true, nobody is accused wrongly, and real anomalies are found.
//!
//! | file | holds |
//! |---|---|
//! | `database` | row versions with transaction numbers, snapshots, locks: three levels |
//! | `condition` | conditions of statements |
//! | `dependencies` | its own dependency graph |
//! | `scripts` | random scripts |
//! | `clients` | clients in simulated time, which keep the log |
//! | `log` | the log, and its history |
//! | `truth` | what is compared with what really happened |
//! | `defect` | the defects that can be planted |
//! | `omission` | logs from which something is missing |

mod clients;
mod condition;
mod database;
mod defect;
mod dependencies;
mod log;
mod omission;
mod scripts;
mod truth;

use isobench_isolation::check::{Options, Report};
use isobench_isolation::history::text;
use isobench_isolation::{Guarantee, History, Model, Order};

use crate::naive::judge::guarantees;
use crate::pieces::check;
use crate::{assert_found, seeds, share};
use clients::RunSettings;
use database::Level;
use defect::CASES;
use dependencies::cyclic;
use log::Log;
use omission::Omission;
use scripts::Style;
use truth::{Decided, compare, shows_all};

/// What each level guarantees: PostgreSQL respects real time at all of them, and serializability
/// holds at the strongest.
fn guaranteed(level: Level) -> &'static [Guarantee] {
    const fn strong(model: Model) -> Guarantee {
        Guarantee { model, order: Order::RealTime }
    }
    const READ_COMMITTED: [Guarantee; 1] = [strong(Model::ReadCommitted)];
    const REPEATABLE_READ: [Guarantee; 1] = [strong(Model::SnapshotIsolation)];
    const SERIALIZABLE: [Guarantee; 2] =
        [strong(Model::SnapshotIsolation), Guarantee::of(Model::Serializable)];
    match level {
        Level::ReadCommitted => &READ_COMMITTED,
        Level::RepeatableRead => &REPEATABLE_READ,
        Level::Serializable => &SERIALIZABLE,
    }
}

fn contradicts(report: &Report, guarantee: Guarantee) -> bool {
    report.findings.iter().any(|finding| finding.contradicts(guarantee))
}

fn examine(history: &History) -> Report {
    check(history, &Options { vouched: false, ..Options::default() })
}

/// An accusation of what the level guarantees, or a doubt about what is right.
fn accusation(level: Level, report: &Report) -> Option<String> {
    let broken = guaranteed(level).iter().find(|guarantee| contradicts(report, **guarantee));
    let doubt = report.verdict.withheld.iter().find(|doubt| doubt.is_contradiction());
    broken
        .map(|guarantee| format!("accused: {guarantee}"))
        .or_else(|| doubt.map(|doubt| format!("doubted: {doubt}")))
}

fn explain(settings: RunSettings, log: &Log, history: &History, report: &Report, why: &str) -> String {
    let findings: Vec<_> = report.findings.iter().map(|it| (it.anomaly, it.order, &it.witness)).collect();
    let log: Vec<String> = log.ordered().map(|attempt| format!("{attempt:?}")).collect();
    format!("{settings:?} {why}\n{findings:#?}\n{}\n{}", log.join("\n"), text::print(history))
}

/// The number of runs that truly aren't serializable, and of those that are found to be so.
#[derive(Debug, Default)]
struct Power {
    runs: u64,
    anomalous: u64,
    found: u64,
}

fn never_accused(level: Level) -> Vec<(Style, Power)> {
    let mut powers = Style::ALL.map(|style| (style, Power::default()));
    let mut all = Decided::default();
    for seed in seeds(3500) {
        let settings = RunSettings { level, defect: None, seed, blocks: seed % 5 == 0, style: None };
        let run = clients::run(settings);
        let history = run.log.resolve();
        let report = examine(&history);
        if let Some(why) = accusation(level, &report) {
            panic!("{}", explain(settings, &run.log, &history, &report, &why));
        }
        let anomalous = cyclic(&run.database);
        let found = contradicts(&report, Guarantee::of(Model::Serializable));
        assert!(
            !found || anomalous,
            "{}",
            explain(settings, &run.log, &history, &report, "it is serializable")
        );
        match compare(&run.log, &run.database, &history) {
            Ok(decided) => {
                let open = (settings.blocks || shows_all(&run)) && decided.open > 0;
                assert!(!open, "{}", explain(settings, &run.log, &history, &report, "an order isn't proved"));
                all.pairs += decided.pairs;
                all.open += decided.open;
                all.missed += decided.missed;
            }
            Err(why) => panic!("{}", explain(settings, &run.log, &history, &report, &why)),
        }
        for (_, power) in powers.iter_mut().filter(|(style, _)| *style == run.style) {
            power.runs += 1;
            power.anomalous += u64::from(anomalous);
            power.found += u64::from(found);
        }
    }
    println!("{level:?}: {all:?}, {powers:#?}");
    powers.into()
}

/// Asserts that in this percentage of the runs of a style that aren't serializable this is found.
fn assert_power(powers: &[(Style, Power)], style: Style, least: u64) {
    let (_, power) = powers.iter().find(|(it, _)| *it == style).expect("all styles are run");
    assert!(power.anomalous >= share(20), "{style:?} shows too little: {power:?}");
    assert_found(power.found, power.anomalous, least, &style);
}

#[test]
fn read_committed_is_never_accused() {
    let powers = never_accused(Level::ReadCommitted);
    assert_power(&powers, Style::ReadThenWrite, 90);
    assert_power(&powers, Style::TwoRows, 90);
    assert_power(&powers, Style::SearchThenWrite, 50);
    assert_power(&powers, Style::OneRow, 80);
    assert_power(&powers, Style::Anything, 45);
}

#[test]
fn repeatable_read_is_never_accused() {
    let powers = never_accused(Level::RepeatableRead);
    assert_power(&powers, Style::TwoRows, 90);
    assert_power(&powers, Style::SearchThenWrite, 35);
}

#[test]
fn serializable_is_never_accused() {
    never_accused(Level::Serializable);
}

/// Each planted defect is found as a contradiction of the level's promise in many of the runs in
/// which it took effect.
#[test]
fn planted_defects_are_found() {
    for case in &CASES {
        let (mut shown, mut found) = (0, 0);
        for seed in seeds(case.runs) {
            let settings = RunSettings {
                level: case.level,
                defect: Some(case.defect),
                seed,
                blocks: seed % 2 == 0,
                style: Some(case.style),
            };
            let run = clients::run(settings);
            if run.database.shows_defect() {
                let report = examine(&run.log.resolve());
                let strongest = guaranteed(case.level).last().expect("levels promise something");
                shown += 1;
                found += u64::from(contradicts(&report, Guarantee::of(strongest.model)));
            }
        }
        println!(
            "{:?} at {:?} {:?}: shows in {shown} runs, found in {found}",
            case.defect, case.level, case.style
        );
        assert!(shown >= share(50), "{:?} at {:?} shows in {shown} runs only", case.defect, case.level);
        assert_found(found, shown, case.least, &case.defect);
    }
}

/// Two machines, of which the second's clock is wrong, accuse nobody and prove nothing that isn't
/// true, if the second's times are widened by as much as they may be wrong. Otherwise they would.
#[test]
fn other_clocks_accuse_nobody() {
    let mut wrong = 0;
    for seed in seeds(1500) {
        let level = Level::ALL[usize::try_from(seed % 3).expect("below 3")];
        let settings = RunSettings { level, defect: None, seed, blocks: seed % 2 == 0, style: None };
        let run = clients::run(settings);
        let within = 1 + seed % 400;
        let ahead = fastrand::Rng::with_seed(seed).i64(-within.cast_signed()..=within.cast_signed());
        // The clock starts late enough for one that is behind.
        let log = run.log.skewed(ahead);
        let history = log.resolve_adopted(within);
        let report = examine(&history);
        let told = |why: &str| explain(settings, &log, &history, &report, &format!("{ahead}: {why}"));
        if let Some(why) = accusation(level, &report) {
            panic!("{}", told(&why));
        }
        if let Err(why) = compare(&log, &run.database, &history) {
            panic!("{}", told(&why));
        }
        let trusting = log.resolve_adopted(0);
        let untrue = compare(&log, &run.database, &trusting).is_err();
        wrong += u64::from(untrue || accusation(level, &examine(&trusting)).is_some());
    }
    assert!(wrong >= share(50), "clocks that are believed lead to something wrong in {wrong} runs only");
}

/// A log from which something is missing accuses nobody of more than the whole log does, and what it
/// proves is true.
#[test]
fn omissions_accuse_nobody() {
    for omission in Omission::ALL {
        let mut weaker = 0;
        for seed in seeds(900) {
            let level = Level::ALL[usize::try_from(seed % 3).expect("below 3")];
            let settings = RunSettings { level, defect: None, seed, blocks: false, style: None };
            let run = clients::run(settings);
            let whole = examine(&run.log.resolve());
            let mut random = fastrand::Rng::with_seed(seed);
            let log = omission.apply(&run.log, &mut random);
            let history = log.resolve();
            let report = examine(&history);
            let explain =
                |why: &str| explain(settings, &log, &history, &report, &format!("{omission:?}: {why}"));
            if let Some(why) = accusation(level, &report) {
                panic!("{}", explain(&why));
            }
            for guarantee in guarantees() {
                let (before, after) = (contradicts(&whole, guarantee), contradicts(&report, guarantee));
                assert!(before || !after, "{}", explain(&format!("now it contradicts {guarantee}")));
                weaker += u64::from(before && !after);
            }
            if let Err(why) = compare(&log, &run.database, &history) {
                panic!("{}", explain(&why));
            }
        }
        println!("{omission:?}: {weaker} guarantees aren't contradicted any more");
    }
}

/// What wasn't shown of a row was written before, between or after what was, and the server's own log may or
/// may not have it.
#[test]
fn a_row_that_is_partly_shown_accuses_nobody() {
    for seed in seeds(8000) {
        let level = Level::ALL[usize::try_from(seed % 3).expect("below 3")];
        let style = Some(Style::OneRow);
        let run = clients::run(RunSettings { level, defect: None, seed, blocks: false, style });
        let mut log = run.log.clone();
        log.committed = (seed % 4 < 2).then(|| run.database.committed_writes());
        let omission = [Omission::Statement, Omission::StatementOnce][usize::from(seed % 2 == 0)];
        let log = omission.apply(&log, &mut fastrand::Rng::with_seed(seed));
        let history = log.resolve();
        let report = examine(&history);
        let settings = RunSettings { level, defect: None, seed, blocks: false, style };
        if let Some(why) = accusation(level, &report) {
            panic!("{}", explain(settings, &log, &history, &report, &why));
        }
        if let Err(why) = compare(&log, &run.database, &history) {
            panic!("{}", explain(settings, &log, &history, &report, &why));
        }
    }
}
