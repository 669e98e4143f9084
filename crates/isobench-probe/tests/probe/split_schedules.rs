//! What `isobench-robustness` decides, on real servers: a split schedule that it finds commits and isn't
//! serializable, and transactions for which it finds none are serializable in any schedule.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fastrand::Rng;
use isobench_isolation::Level;
use isobench_isolation::check::{check, render};
use isobench_isolation::history::text;
use isobench_robustness::concrete::{Split, Transactions};
use isobench_robustness::{Branch, Operation, Program, Strength};

use crate::mixed_levels::{
    Act, Plan, SESSIONS, Schedule, committed, execute, history, make_tables, options, seeds, spec,
};
use crate::support::{TestServer, fetched, installed};

/// A statement as an operation.
fn operation(act: Act) -> Operation {
    let strength = |name: &str| {
        let all = [Strength::KeyShare, Strength::Share, Strength::NoKeyUpdate, Strength::Update];
        all.into_iter().find(|strength| strength.clause() == format!("FOR {name}")).expect("a strength")
    };
    let row = |id: i64| id.to_string();
    match act {
        Act::Read(id) => Operation::read("mixed", [("id", row(id).as_str())], ["row"]),
        Act::Lock(id, name) => Operation::lock(strength(name), "mixed", [("id", row(id).as_str())], ["row"]),
        Act::Write(id) => Operation::update("mixed", [("id", row(id).as_str())], [], ["row"]),
        Act::Search => Operation::search("grouped", [("kind", "0")], []),
        Act::Insert => Operation::insert("grouped", []).knowing([("kind", "0")]),
    }
}

fn programs(plans: &[Plan]) -> Vec<Program> {
    let program = |(number, plan): (usize, &Plan)| {
        let operations = plan.acts.iter().map(|act| operation(*act)).collect();
        Program::new(&number.to_string(), vec![Branch::new("", operations)])
    };
    plans.iter().enumerate().map(program).collect()
}

/// The steps of a split schedule: a snapshot is taken first, and transactions that aren't part of it
/// come last.
fn steps(plans: &[Plan], split: &Split) -> Vec<String> {
    let acts =
        |session: usize, from: usize, to: usize| (from..to).map(move |act| format!("a{session}_{act}"));
    let whole = |session: usize| {
        let count = plans[session].acts.len();
        let steps = std::iter::once(format!("b{session}")).chain(acts(session, 0, count));
        steps.chain([format!("c{session}")]).collect::<Vec<_>>()
    };
    let Split { split, read, within } = split;
    let at = if plans[*split].level > Level::ReadCommitted { 0 } else { read + 1 };
    let mut steps = vec![format!("b{split}"), format!("n{split}")];
    steps.extend(acts(*split, 0, at));
    steps.extend(within.iter().flat_map(|session| whole(*session)));
    steps.extend(acts(*split, at, plans[*split].acts.len()));
    steps.push(format!("c{split}"));
    let others = (0..plans.len()).filter(|session| session != split && !within.contains(session));
    steps.extend(others.flat_map(whole));
    steps
}

/// Executes what is decided of random transactions.
fn compare(server: &TestServer, sets: u64) {
    make_tables(server);
    let options = options(server);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds(sets) {
        let mut random = Rng::with_seed(seed);
        let plans: Vec<Plan> = (0..SESSIONS).map(|_| Plan::without_repetition(&mut random)).collect();
        let levels: Vec<Option<Level>> = plans.iter().map(|plan| Some(plan.level)).collect();
        let split = Transactions::of(&programs(&plans), 1, 1).split(&levels);
        let schedules = match &split {
            Some(split) => vec![steps(&plans, split)],
            // One in which a transaction ends early, for else each would wait for the other, is of
            // others.
            None => (0..3)
                .map(|_| Schedule::random(&plans, &mut random))
                .filter(|steps| steps.len() == plans.iter().map(|plan| plan.acts.len() + 2).sum::<usize>())
                .collect(),
        };
        if schedules.is_empty() {
            continue;
        }
        for record in execute(server, &spec(&plans, &schedules)) {
            let history = history(&plans, &record);
            let report = check(&history, &options);
            let shown = || {
                let mut shown =
                    format!("seed {seed}: {split:?} {plans:?} {schedules:?}\n{}", render(&report));
                write!(shown, "{}", text::print(&history)).unwrap();
                shown
            };
            let committed = committed(&history);
            let waited = record.steps.iter().find(|step| step.cancelled);
            assert_eq!(waited, None, "{}", shown());
            let Some(split) = &split else {
                assert!(report.is_serializable(), "{}", shown());
                *counts.entry("safe").or_default() += 1;
                continue;
            };
            // Predicate locks are of pages and more, so serializable transactions may fail without need.
            let guarded = plans[split.split].level == Level::Serializable;
            if guarded && committed < plans.len() {
                *counts.entry("given up").or_default() += 1;
                continue;
            }
            assert_eq!(committed, plans.len(), "{}", shown());
            assert!(!report.is_serializable(), "{}", shown());
            *counts.entry("split").or_default() += 1;
        }
    }
    println!("{counts:?}");
    assert!(counts["split"] > 20 && counts["safe"] > 60, "{counts:?}");
}

#[test]
fn what_is_decided_happens_on_the_installed_server() {
    let Some(server) = installed("what_is_decided_happens_on_the_installed_server") else { return };
    compare(&server, 150);
}

#[test]
fn what_is_decided_happens_on_version_18() {
    let Some(server) = fetched("what_is_decided_happens_on_version_18", "18") else { return };
    compare(&server, 150);
}
