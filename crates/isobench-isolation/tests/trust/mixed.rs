//! Mixed histories: each transaction is judged by what its own level promises.
//!
//! | file | holds |
//! |---|---|
//! | `mixed` | all small histories and random ones against the definition; the examples |
//! | `mixed/definition` | the promises, by simple cycles |
//! | `mixed/statements` | random histories whose statements are known, and what each of them may see |
//! | `mixed/schedules` | all schedules of small transactions that PostgreSQL may execute |

mod definition;
mod schedules;
mod statements;

use std::collections::BTreeSet;

use isobench_isolation::check::{MixedReport, Options, Report, render};
use isobench_isolation::history::{
    Draft, Key, Mode, Operation, Transaction, TransactionOutcome, Version, text,
};
use isobench_isolation::{Anomaly, History, Level, LevelPromises, Mixing, Model};

use crate::naive::Case;
use crate::naive::permutations;
use crate::pieces::check;
use crate::random::{self, Kind};
use crate::{is_tried, seeds, share};
use definition::judge;
use schedules::{Step, each_schedule};
use statements::Plan;

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

const fn promises(mixing: Mixing) -> LevelPromises {
    let models = [Model::ReadCommitted, Model::ReadCommitted, Model::SnapshotIsolation, Model::Serializable];
    LevelPromises { models, mixing }
}

fn options(mixing: Mixing) -> Options {
    Options { levels: Some(promises(mixing)), ..Options::default() }
}

fn judged(history: &str) -> Report {
    check(&text::parse(history).expect("parses"), &options(Mixing::AmongSerializable))
}

fn mixed(report: &Report) -> &MixedReport {
    report.mixed.as_ref().expect("levels differ")
}

/// Every choice of a level for each of some transactions.
fn allocations(count: usize) -> Vec<Vec<Level>> {
    (0..count).fold(vec![Vec::new()], |all, _| {
        let longer = |one: Vec<Level>| LEVELS.map(|level| one.iter().copied().chain([level]).collect());
        all.into_iter().flat_map(longer).collect()
    })
}

/// The history with these levels.
fn at(history: &History, levels: &[Level]) -> History {
    let mut other = History::new(history.tables().to_vec());
    let mut draft = Draft::new();
    for (index, transaction) in history.transactions().iter().enumerate() {
        draft.fill(history, index);
        other.push(Transaction { mode: Some(Mode::of(levels[index])), ..*transaction }, &draft);
    }
    other
}

/// An error in the checker's judgement of a history.
fn failure(history: &History, levels: &[Level], mixing: Mixing) -> Option<String> {
    let history = &at(history, levels);
    let case = Case::new(history);
    let judgement = case.judge();
    if !judgement.decided || judgement.open_at_pl1 {
        return None;
    }
    // What was rolled back was promised nothing.
    let aborted = |index: usize| case.outcome(index) == TransactionOutcome::Aborted;
    let counted: Vec<Level> =
        (0..case.len()).map(|it| if aborted(it) { Level::Serializable } else { levels[it] }).collect();
    let expected = judge(&case, mixing, &counted)?;
    let report = check(history, &options(mixing));
    let mixed = report.mixed.as_ref()?;
    let broken = !mixed.broken.is_empty();
    let right = if expected.unclear {
        broken || !expected.cycle
    } else {
        broken == (expected.cycle || expected.fact)
    };
    let whole = expected.cyclic.is_empty() && !expected.fact && !expected.unclear;
    let only: usize = expected.cyclic.iter().filter(|it| !expected.accused.contains(it)).count();
    let permitted = mixed.permitted();
    match () {
        () if !right => Some(format!("broken: {broken}, expected {expected:?}\n{}", render(&report))),
        () if report.is_serializable() != whole => Some(format!("serializable: {expected:?}")),
        () if !broken && permitted != only as u64 => {
            Some(format!("{permitted} permitted, expected {expected:?}"))
        }
        () if report.verdict.kept != Some(!broken) && report.verdict.withheld.is_empty() => {
            Some(format!("kept: {:?}", report.verdict.kept))
        }
        () => None,
    }
}

/// All histories of `count` transactions, each of which reads at most one and writes at most one of two
/// rows, with any order of versions and any versions read that another transaction wrote.
fn each_small_history(count: usize, found: &mut dyn FnMut(&History)) {
    let choices = [None, Some(0), Some(1)];
    let shapes: Vec<(Option<i64>, Option<i64>)> =
        choices.into_iter().flat_map(|read| choices.map(|write| (read, write))).collect();
    let mut chosen = vec![0; count];
    loop {
        // The transactions are interchangeable, since all levels are tried.
        if chosen.is_sorted() {
            let of: Vec<_> = chosen.iter().map(|shape| shapes[*shape]).collect();
            each_order(&of, found);
        }
        let Some(place) = chosen.iter().rposition(|shape| shape + 1 < shapes.len()) else { return };
        chosen[place] += 1;
        chosen[place + 1..].fill(0);
    }
}

fn each_order(shapes: &[(Option<i64>, Option<i64>)], found: &mut dyn FnMut(&History)) {
    let writers =
        |row: i64| -> Vec<usize> { (0..shapes.len()).filter(|it| shapes[*it].1 == Some(row)).collect() };
    for first in permutations(&writers(0)) {
        for second in permutations(&writers(1)) {
            let orders = [first.clone(), second];
            let readers: Vec<usize> = (0..shapes.len()).filter(|it| shapes[*it].0.is_some()).collect();
            let mut seen = vec![0; readers.len()];
            loop {
                if let Some(history) = small(shapes, &orders, &readers, &seen) {
                    found(&history);
                }
                let last = |place: &usize| {
                    let row = shapes[readers[*place]].0.unwrap_or(0);
                    seen[*place] < orders[usize::try_from(row).unwrap_or(0)].len()
                };
                let Some(place) = (0..readers.len()).rev().find(last) else { break };
                seen[place] += 1;
                seen[place + 1..].fill(0);
            }
        }
    }
}

/// The history in which each reader sees this version; `None` if one would see its own.
fn small(
    shapes: &[(Option<i64>, Option<i64>)],
    orders: &[Vec<usize>; 2],
    readers: &[usize],
    seen: &[usize],
) -> Option<History> {
    let mut history = History::new(vec!["rows".to_owned()]);
    for (index, (read, write)) in shapes.iter().enumerate() {
        let mut draft = Draft::new();
        let order = |row: i64| &orders[usize::try_from(row).unwrap_or(0)];
        if let Some(row) = *read {
            let version = seen[readers.iter().position(|it| *it == index)?];
            if version.checked_sub(1).is_some_and(|place| order(row)[place] == index) {
                return None;
            }
            let version = Version::counted(version as u64);
            draft.push(Operation::Read { key: Key { table: 0, id: row }, version });
        }
        if let Some(row) = *write {
            let place = order(row).iter().position(|it| *it == index)?;
            let version = Version::counted(place as u64 + 1);
            draft.push(Operation::Write { key: Key { table: 0, id: row }, version });
        }
        let (id, client) = (index as u64 + 1, u32::try_from(index).ok()?);
        let outcome = TransactionOutcome::Committed;
        history.push(Transaction { id, client, begin: 0, end: 0, outcome, mode: None }, &draft);
    }
    Some(history)
}

#[test]
fn all_small_histories_are_judged_by_the_definition() {
    let (mut histories, mut accused, mut permitted) = (0_u64, 0_u64, 0_u64);
    for count in [2, 3] {
        let allocations = allocations(count);
        each_small_history(count, &mut |history| {
            for levels in &allocations {
                histories += 1;
                if !is_tried(histories) {
                    continue;
                }
                let history = &at(history, levels);
                let expected =
                    judge(&Case::new(history), Mixing::AmongSerializable, levels).expect("counters");
                // The usual way only: the others are compared below.
                let report = isobench_isolation::check::check(history, &options(Mixing::AmongSerializable));
                let broken = report.verdict.kept == Some(false);
                let uniform = levels.windows(2).all(|pair| pair[0] == pair[1]);
                assert_eq!(uniform, report.mixed.is_none());
                let shown = || format!("{expected:?}\n{}\n{}", render(&report), text::print(history));
                assert_eq!(broken, expected.cycle || expected.fact, "{}", shown());
                if let Some(mixed) = &report.mixed {
                    let only = expected.cyclic.iter().filter(|it| !expected.accused.contains(it)).count();
                    assert_eq!(mixed.permitted(), only as u64, "{}", shown());
                    assert_eq!(report.is_serializable(), expected.cyclic.is_empty() && !expected.fact);
                    permitted += u64::from(only > 0);
                }
                accused += u64::from(broken);
            }
        });
    }
    println!("{histories} histories: {accused} break a promise, {permitted} have other cycles");
    assert!(histories > 30_000 && accused > share(1000) && permitted > share(1000));
}

/// The same for random ones of all kinds of data, with transactions that were rolled back or lost.
#[test]
fn random_histories_are_judged_by_the_definition() {
    for mixing in [Mixing::AmongSerializable, Mixing::EachSerializable, Mixing::AmongEquals] {
        for kind in Kind::ALL {
            for seed in seeds(150) {
                let history = random::history(kind, seed);
                let mut random = fastrand::Rng::with_seed(seed);
                let levels: Vec<Level> =
                    history.transactions().iter().map(|_| LEVELS[random.usize(0..3)]).collect();
                if let Some(why) = failure(&history, &levels, mixing) {
                    panic!("{mixing:?} {kind:?} seed {seed}: {why}\n{}", text::print(&at(&history, &levels)));
                }
            }
        }
    }
}

/// Statements of read committed count as well, where they are known.
#[test]
fn random_statements_are_judged_by_the_definition() {
    let (mut mixed, mut broken) = (0, 0);
    for seed in seeds(6000) {
        let plan = Plan::random(&mut fastrand::Rng::with_seed(seed));
        if plan.levels.windows(2).all(|pair| pair[0] == pair[1]) {
            continue;
        }
        let history = plan.history();
        let report = check(&history, &options(Mixing::AmongSerializable));
        if report.verdict.kept.is_none() {
            assert!(history.operation_count() == 0, "{}", render(&report));
            continue;
        }
        let expected = plan.breaks_a_promise();
        let shown = || format!("seed {seed}: {plan:?}\n{}\n{}", render(&report), text::print(&history));
        assert_eq!(report.verdict.kept, Some(!expected), "{}", shown());
        mixed += 1;
        broken += u64::from(expected);
    }
    println!("{mixed} histories with statements, {broken} of them break a promise");
    assert!(broken > share(100) && mixed - broken > share(100));
}

#[test]
fn a_statement_sees_no_less_than_an_earlier_one() {
    let lines = |order: &str| {
        format!(
            "observed searches=0 searches-left=0 reads-left=0 reads-odd=0 orders-agreed=0 orders-differ=0\n\
             statement \"a.sql:1: SELECT 1\"\nstatement \"a.sql:2: SELECT 2\"\n\
             T1 ser: w x = v1/7, w y = v1/7\nT2 rc: {order}"
        )
    };
    let report = judged(&lines("r x = v1/7 @0, r y = init @1"));
    assert_eq!(report.verdict.kept, Some(false));
    assert_eq!(
        mixed(&report).broken[0].why,
        "by the promise of its level, T2 (client 1, read committed) sees no less in a statement than in an \
         earlier one"
    );
    // The other way round it sees more, and within a statement it may have waited.
    assert_eq!(judged(&lines("r y = init @0, r x = v1/7 @1")).verdict.kept, Some(true));
    assert_eq!(judged(&lines("r x = v1/7 @0, r y = init @0")).verdict.kept, Some(true));
}

/// Executes all schedules of these programs at all levels. Returns the number of different histories,
/// and of those that aren't serializable.
fn execute(programs: &[Vec<Step>], seen: &mut BTreeSet<String>) -> (u64, u64) {
    let (mut histories, mut cyclic) = (0, 0);
    for levels in allocations(programs.len()) {
        each_schedule(programs, &levels, &mut |history| {
            if !seen.insert(text::print(history)) {
                return;
            }
            let report = isobench_isolation::check::check(history, &options(Mixing::AmongSerializable));
            assert_ne!(
                report.verdict.kept,
                Some(false),
                "accused of what PostgreSQL does:\n{}\n{}",
                render(&report),
                text::print(history)
            );
            histories += 1;
            cyclic += u64::from(!report.is_serializable());
        });
    }
    (histories, cyclic)
}

#[test]
fn what_postgresql_does_is_never_accused() {
    let two: Vec<Vec<Step>> =
        Step::ALL.into_iter().flat_map(|first| Step::ALL.map(|second| vec![first, second])).collect();
    let (mut pairs, mut histories, mut cyclic) = (0, 0, 0);
    for (place, first) in two.iter().enumerate() {
        for second in &two[place..] {
            pairs += 1;
            if !is_tried(pairs) {
                continue;
            }
            let found = execute(&[first.clone(), second.clone()], &mut BTreeSet::new());
            (histories, cyclic) = (histories + found.0, cyclic + found.1);
        }
    }
    println!("two transactions: {histories} histories, {cyclic} of them with cycles");
    assert!(cyclic > share(100));
    (histories, cyclic) = (0, 0);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in seeds(12) {
        let programs: Vec<Vec<Step>> = (0..3).map(|_| two[random.usize(0..two.len())].clone()).collect();
        let found = execute(&programs, &mut BTreeSet::new());
        (histories, cyclic) = (histories + found.0, cyclic + found.1);
    }
    println!("three transactions: {histories} histories, {cyclic} of them with cycles");
    assert!(cyclic > share(100));
}

/// The history of the read-only anomaly (Fekete, O'Neil and O'Neil 2004), with these words for the
/// levels of the two writers and the reader.
fn receipts(writers: &str, reader: &str) -> String {
    format!(
        "T1 {writers}: r control = v0, w receipts = v1\n\
         T2 {writers}: r control = v0, w control = v1\n\
         T3 {reader}: r control = v1, r receipts = v0"
    )
}

#[test]
fn a_report_at_repeatable_read_sees_the_read_only_anomaly_and_no_promise_is_broken() {
    let report = judged(&receipts("ser", "rr readonly"));
    assert!(!report.is_serializable());
    assert_eq!(report.verdict.kept, Some(true));
    assert_eq!(mixed(&report).permitted(), 3);
    let shown = render(&report);
    assert!(
        shown.starts_with("NOT SERIALIZABLE as a whole: the history shows write skew (G2-item)."),
        "{shown}"
    );
    assert!(
        shown.contains(
            "Nothing contradicts what each transaction's own level promises (1 at repeatable read, 2 at \
         serializable)."
        ),
        "{shown}"
    );
    assert!(
        shown.contains(
            "3 transactions lie on cycles that no level promises to prevent: 1 at repeatable read, 2 at \
         serializable."
        ),
        "{shown}"
    );
    assert!(shown.contains("T3 (client 2, repeatable read, read only)"), "{shown}");
    // All of them serializable is as it always was.
    let same = judged(&receipts("ser", "ser"));
    assert_eq!((same.mixed.clone(), same.verdict.kept), (None, Some(false)));
    let text = receipts("", "");
    let before = Options { promised: "serializable".parse().ok(), ..Options::default() };
    assert_eq!(render(&same), render(&check(&text::parse(&text).expect("parses"), &before)));
}

/// Two serializable transactions and one in between that isn't: a cycle of three anti-dependencies.
fn three(middle: &str) -> String {
    format!(
        "T1 ser: r x = v0, w y = v1\nT2 {middle}: r z = v0, w x = v1\nT3 ser: r y = v0, w z = v1\nT4 rc: r q = v0"
    )
}

#[test]
fn a_dangerous_structure_breaks_a_promise_if_all_three_are_serializable() {
    for weak in ["rc", "rr"] {
        let report = judged(&three(weak));
        assert_eq!(report.verdict.kept, Some(true), "{}", render(&report));
        assert_eq!(mixed(&report).permitted(), 3);
    }
    let report = judged(&three("ser"));
    assert_eq!(report.verdict.kept, Some(false));
    let [broken] = mixed(&report).broken.as_slice() else { panic!("{report:#?}") };
    assert_eq!((broken.finding.anomaly, broken.finding.count.found), (Anomaly::G2Item, 1));
    assert_eq!(mixed(&report).permitted(), 0);
    let shown = render(&report);
    assert!(
        shown.contains(
            "PROMISE BROKEN to transactions by their own levels (1 at read committed, 3 at serializable): \
         write skew (G2-item)."
        ),
        "{shown}"
    );
    assert!(
        shown.contains(
            "BROKEN PROMISE, 1: by the promise of their levels, each of T1 (client 0, serializable), "
        ),
        "{shown}"
    );
}

#[test]
fn a_snapshot_is_promised_to_those_who_have_one() {
    let torn = |level: &str| format!("T1 ser: w x = v1, w y = v1\nT2 {level}: r x = v0, r y = v1");
    assert_eq!(judged(&torn("rc")).verdict.kept, Some(true));
    let report = judged(&torn("rr"));
    assert_eq!(report.verdict.kept, Some(false));
    let why = &mixed(&report).broken[0].why;
    // Both are promised snapshot isolation at least.
    assert_eq!(why, "snapshot isolation is promised to every transaction of this history");
    let report = judged(&(torn("rr") + "\nT3 rc: r z = v0"));
    let why = &mixed(&report).broken[0].why;
    assert_eq!(
        why,
        "by the promise of its level, T2 (client 1, repeatable read) reads one snapshot and overwrites nothing newer"
    );
}

#[test]
fn a_lost_update_counts_against_the_one_who_overwrote() {
    let lost = |first: &str, second: &str| {
        judged(&format!("T1 {first}: r x = v0, w x = v1\nT2 {second}: r x = v0, w x = v2\nT3 ru: r y = v0"))
    };
    assert_eq!(lost("ser", "rc").verdict.kept, Some(true));
    assert_eq!(lost("rc", "rr").verdict.kept, Some(false));
    let report = lost("rc", "ser");
    assert_eq!(mixed(&report).broken[0].finding.anomaly, Anomaly::LostUpdate);
    assert!(mixed(&report).broken[0].why.contains("T2 (client 1, serializable) reads one snapshot"));
    // Of two versions with the same counter, the one at read committed may have been the second.
    let equal = |first: &str, second: &str| {
        judged(&format!(
            "T1 {first}: r x = v0/9, w x = v1/1\nT2 {second}: r x = v0/9, w x = v1/2\nT3 rc: r y = v0"
        ))
    };
    assert_eq!(equal("rc", "ser").verdict.kept, Some(true));
    assert_eq!(equal("rr", "ser").verdict.kept, Some(false));
}

#[test]
fn what_no_level_permits_is_broken_for_each() {
    let aborted = judged("T1 ser aborted: w x = v1/7\nT2 rc: r x = v1/7\nT3 rr: r y = v0");
    assert_eq!(aborted.verdict.kept, Some(false));
    assert_eq!(mixed(&aborted).broken[0].finding.anomaly, Anomaly::G1a);
    let circle = judged("T1 rc: w x = v1, r y = v1\nT2 ser: w y = v1, r x = v1");
    assert_eq!(mixed(&circle).broken[0].finding.anomaly, Anomaly::G1c);
}

#[test]
fn cockroachdb_promises_more_to_a_serializable_transaction() {
    let kept =
        |history: &str, mixing| check(&text::parse(history).expect("parses"), &options(mixing)).verdict.kept;
    // T1's snapshot has T3's work, and T2 is before T3 and, as it reads and writes as at one instant,
    // in the snapshot as well; but T1 doesn't see its work.
    let pivot = |level: &str| {
        format!("T1 rr: r x = v0, r z = v1\nT2 {level}: r y = v0, w x = v1\nT3 rc: w y = v1, w z = v1")
    };
    for mixing in [Mixing::AmongEquals, Mixing::AmongSerializable] {
        assert_eq!(kept(&pivot("ser"), mixing), Some(true));
    }
    assert_eq!(kept(&pivot("ser"), Mixing::EachSerializable), Some(false));
    assert_eq!(kept(&pivot("rr"), Mixing::EachSerializable), Some(true));
}

/// A transaction of unknown level is promised what the weakest level is.
#[test]
fn who_has_no_level_is_promised_the_least() {
    let report = judged("T1: r x = v0, r y = v0, w x = v1\nT2 ser: r x = v0, r y = v0, w y = v1");
    assert_eq!(report.verdict.kept, Some(true));
    assert!(render(&report).contains("1 at serializable, 1 at an unknown level"));
    // If none has one, nothing is promised.
    let report = judged("T1: r x = v0, r y = v0, w x = v1\nT2: r x = v0, r y = v0, w y = v1");
    assert_eq!((report.verdict.promised, report.verdict.kept), (None, None));
}

#[test]
fn a_promise_that_was_given_counts_for_all() {
    let history = text::parse(&receipts("ser", "rr")).expect("parses");
    let promised = "snapshot isolation".parse().ok();
    let report = check(&history, &Options { promised, ..options(Mixing::AmongSerializable) });
    assert_eq!((report.mixed, report.verdict.promised, report.verdict.kept), (None, promised, Some(true)));
}
