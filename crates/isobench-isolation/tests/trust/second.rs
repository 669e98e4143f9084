//! A second opinion: the crate `adya`, which implements Elle's analysis, on the same histories. Every
//! difference is explained by one of the [`Cause`]s, or the test fails.
//!
//! Only histories of one kind, lists or registers known by value, are understood by both, and only
//! fourteen guarantees have a name there.

use std::collections::BTreeMap;
use std::time::Duration;

use isobench_isolation::check::{Options, Report};
use isobench_isolation::history::elle::{Notation, write};
use isobench_isolation::history::{Draft, Key, Operation, TransactionOutcome};
use isobench_isolation::{Anomaly, Guarantee, History, Model, Order};

use crate::naive::Case;
use crate::naive::judge::guarantees;
use crate::pieces::check;
use crate::random::{self, Kind};
use crate::{published, seeds};

/// The reasons for which the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// It accuses alone: at PL-1 it orders versions by what transactions read (writes follow reads,
    /// unread elements), while PL-1 lets a transaction read anything.
    OrdersByReadsAtPl1,
    /// It accuses alone: a transaction wrote one value twice, and it takes the last write for an
    /// intermediate one.
    SameValueTwice,
    /// It accuses alone: what a transaction of unknown outcome appended contradicts other reads, so
    /// this checker takes it for aborted.
    UnknownMayBeAborted,
    /// It acquits: it holds reads that contradict the history (of nothing that was written, of the
    /// own later write, of lists in two orders) against other models than this checker, or not at
    /// all.
    ContradictionsAreMilder,
    /// It acquits: it leaves transactions of unknown outcome out, even those that were read.
    LeavesUnknownOut,
    /// It acquits: it doesn't infer version orders from paths.
    InfersLess,
    /// It acquits: the version order that it sees stops at an element of an aborted transaction.
    StopsAtAborted,
    /// It acquits: its real time doesn't include the order of sessions, so histories without instants
    /// have none.
    RealTimeWithoutSessions,
    /// It acquits: in Elle's format a client gets a new process after an unknown outcome, so its
    /// session ends there.
    SessionsEndWithUnknown,
    /// It acquits: of several reads of a row in a transaction, it follows the first only; that the
    /// others differ contradicts neither consistent view nor repeatable read there.
    FollowsFirstReads,
}

/// The crate's name of a guarantee.
fn name(guarantee: Guarantee) -> Option<&'static str> {
    use Model as M;
    Some(match (guarantee.model, guarantee.order) {
        (M::ReadUncommitted, Order::Data) => "read-uncommitted",
        (M::ReadUncommitted, Order::Session) => "strong-session-read-uncommitted",
        (M::ReadUncommitted, Order::RealTime) => "strong-read-uncommitted",
        (M::ReadCommitted, Order::Data) => "read-committed",
        (M::ReadCommitted, Order::Session) => "strong-session-read-committed",
        (M::ReadCommitted, Order::RealTime) => "strong-read-committed",
        (M::ConsistentView, Order::Data) => "consistent-view",
        (M::SnapshotIsolation, Order::Data) => "snapshot-isolation",
        (M::SnapshotIsolation, Order::Session) => "strong-session-snapshot-isolation",
        (M::SnapshotIsolation, Order::RealTime) => "strong-snapshot-isolation",
        (M::RepeatableRead, Order::Data) => "repeatable-read",
        (M::Serializable, Order::Data) => "serializable",
        (M::Serializable, Order::Session) => "strong-session-serializable",
        (M::Serializable, Order::RealTime) => "strict-serializable",
        _ => return None,
    })
}

/// The crate's verdict on each guarantee that it knows: whether it accuses.
fn theirs(history: &History, workload: adya::Workload) -> BTreeMap<Guarantee, bool> {
    let mut text = Vec::new();
    write(Notation::Json, history, &mut text).expect("the history can be written");
    let text = String::from_utf8(text).expect("JSON is UTF-8");
    let history = adya::History::from_json(&text).expect("the crate reads Elle's format");
    let judge = |guarantee: Guarantee| {
        let options = adya::Opts {
            models: vec![name(guarantee)?.to_owned()],
            wfr_keys: true,
            timeout: Duration::from_mins(1),
            ..adya::Opts::default()
        };
        let verdict = adya::check(&history, workload, &options).valid;
        Some((guarantee, verdict == adya::Valid::False))
    };
    guarantees().filter_map(judge).collect()
}

fn contradicts(report: &Report, guarantee: Guarantee) -> bool {
    report.findings.iter().any(|finding| finding.contradicts(guarantee))
}

/// True if a transaction wrote a value of a row twice.
fn same_value_twice(history: &History) -> bool {
    (0..history.transactions().len()).any(|index| {
        let writes: Vec<(Key, Option<i64>)> = history
            .operations(index)
            .filter_map(|operation| match operation {
                Operation::Write { key, version } => Some((key, version.value)),
                _ => None,
            })
            .collect();
        writes.iter().enumerate().any(|(place, write)| writes[..place].contains(write))
    })
}

/// True if a committed transaction read two versions of a row, and didn't write it in between.
fn read_twice(history: &History) -> bool {
    (0..history.transactions().len()).any(|index| {
        let mut seen: BTreeMap<Key, Operation<'_>> = BTreeMap::new();
        history.operations(index).any(|operation| match operation {
            Operation::Read { key, .. } | Operation::ReadList { key, .. } => {
                seen.insert(key, operation).is_some_and(|before| before != operation)
            }
            Operation::Write { key, .. } | Operation::Append { key, .. } => {
                seen.remove(&key);
                false
            }
            _ => false,
        })
    })
}

/// The history without the transactions of unknown outcome.
fn without_unknown(history: &History) -> History {
    let mut rest = History::new(history.tables().to_vec());
    let mut draft = Draft::new();
    for (index, transaction) in history.transactions().iter().enumerate() {
        if transaction.outcome != TransactionOutcome::Unknown {
            draft.fill(history, index);
            rest.push(*transaction, &draft);
        }
    }
    // What others read of them isn't garbage.
    rest.set_dropped(1);
    rest
}

/// The reason that they differ about a guarantee; `None` if it is unknown.
fn cause(history: &History, report: &Report, guarantee: Guarantee, accused: bool) -> Option<Cause> {
    let has = |outcome| history.transactions().iter().any(|it| it.outcome == outcome);
    let (unknown, aborted) = (has(TransactionOutcome::Unknown), has(TransactionOutcome::Aborted));
    if accused {
        return match guarantee.model {
            Model::ReadUncommitted => Some(Cause::OrdersByReadsAtPl1),
            _ if same_value_twice(history) => Some(Cause::SameValueTwice),
            _ => unknown.then_some(Cause::UnknownMayBeAborted),
        };
    }
    let broken: Vec<_> = report.findings.iter().filter(|finding| finding.contradicts(guarantee)).collect();
    let contradiction = |anomaly: Anomaly| {
        matches!(
            anomaly,
            Anomaly::GarbageRead | Anomaly::Internal | Anomaly::IncompatibleOrder | Anomaly::DuplicateWrite
        )
    };
    if broken.iter().any(|finding| contradiction(finding.anomaly)) {
        return Some(Cause::ContradictionsAreMilder);
    }
    let rest = check(&without_unknown(history), &Options::default());
    let mut rest = rest.findings.iter().filter(|finding| finding.contradicts(guarantee)).peekable();
    if rest.peek().is_none() {
        return Some(Cause::LeavesUnknownOut);
    }
    if rest.all(|finding| finding.witness.is_inferred()) {
        return Some(Cause::InfersLess);
    }
    let sessions = Guarantee { order: Order::Session, ..guarantee };
    if guarantee.order == Order::RealTime && contradicts(report, sessions) {
        return Some(Cause::RealTimeWithoutSessions);
    }
    if read_twice(history) {
        return Some(Cause::FollowsFirstReads);
    }
    if unknown && guarantee.order > Order::Data {
        return Some(Cause::SessionsEndWithUnknown);
    }
    aborted.then_some(Cause::StopsAtAborted)
}

/// Compares the two, and adds the differences to the table. Returns what can't be explained.
fn compare(
    history: &History,
    workload: adya::Workload,
    table: &mut BTreeMap<Option<Cause>, u64>,
) -> Vec<String> {
    let report = check(history, &Options::default());
    let judgement = (history.transactions().len() <= 6).then(|| Case::new(history).judge());
    let mut unexplained = Vec::new();
    for (guarantee, accused) in theirs(history, workload) {
        let ours = contradicts(&report, guarantee);
        if ours == accused {
            *table.entry(None).or_default() += 1;
            continue;
        }
        let cause = cause(history, &report, guarantee, accused);
        let clear = judgement.as_ref().is_none_or(|judgement| {
            let open = judgement.open_at_pl1 && guarantee.model == Model::ReadUncommitted;
            let weaker = cause == Some(Cause::UnknownMayBeAborted);
            open || weaker || judgement.allowed.contains(&guarantee) != ours
        });
        match cause {
            Some(cause) if clear => *table.entry(Some(cause)).or_default() += 1,
            _ => unexplained.push(format!(
                "{guarantee}: ours {ours}, theirs {accused}, {cause:?}, agrees with the definitions: {clear}"
            )),
        }
    }
    unexplained
}

/// True if Elle's format can express the history: it has no counters and no initial versions.
fn is_expressible(history: &History) -> bool {
    let counted = |operation: Operation<'_>| match operation {
        Operation::Read { version, .. } | Operation::Write { version, .. } => version.counter.is_some(),
        _ => false,
    };
    let mut operations = (0..history.transactions().len()).flat_map(|index| history.operations(index));
    history.initial().is_empty() && !operations.any(counted)
}

/// The published histories, as far as Elle's format can express them.
fn published_ones() -> impl Iterator<Item = (String, History, adya::Workload)> {
    published::all().into_iter().filter_map(|published| {
        let lists = |operation: Operation<'_>| {
            matches!(operation, Operation::Append { .. } | Operation::ReadList { .. })
        };
        let history = published.history;
        let operations = || (0..history.transactions().len()).flat_map(|index| history.operations(index));
        if !is_expressible(&history) {
            return None;
        }
        let workload =
            if operations().any(lists) { adya::Workload::ListAppend } else { adya::Workload::RwRegister };
        Some((published.name, history, workload))
    })
}

#[test]
fn differences_from_another_checker_are_explained() {
    let mut table = BTreeMap::new();
    let mut unexplained: Vec<String> = Vec::new();
    let kinds = [(Kind::Values, adya::Workload::RwRegister), (Kind::Lists, adya::Workload::ListAppend)];
    for (kind, workload) in kinds {
        for seed in seeds(150) {
            let history = random::history(kind, seed);
            if !is_expressible(&history) {
                continue;
            }
            let wrong = compare(&history, workload, &mut table);
            unexplained.extend(wrong.iter().map(|why| format!("{kind:?}, seed {seed}: {why}")));
        }
    }
    for (name, history, workload) in published_ones() {
        let wrong = compare(&history, workload, &mut table);
        unexplained.extend(wrong.iter().map(|why| format!("{name}: {why}")));
    }
    println!("{table:?}");
    // If the two differed everywhere, an opinion would be worth nothing.
    let differing: u64 = table.iter().filter(|(cause, _)| cause.is_some()).map(|(_, count)| count).sum();
    assert!(table[&None] > 5 * differing, "{table:?}");
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
}
