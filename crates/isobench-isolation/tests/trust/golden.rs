//! Golden histories: each anomaly in `tests/golden/NAME.txt`, and `NAME-not.txt`, which differs in
//! a single read, version or outcome and doesn't show it.
//!
//! A table here has the expected anomalies, so that blessing the rendered reports (`NAME.report`)
//! can't hide a wrong verdict.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use isobench_isolation::check::{Options, graph, render};
use isobench_isolation::history::text;
use isobench_isolation::{Anomaly, Order};
use isobench_testkit::golden::difference;

use crate::naive::Case;
use crate::oracle::wrong_verdict;
use crate::pieces::check;
use crate::witness;

/// A history's name, its anomalies, and the strongest guarantees that it doesn't contradict.
type Row = (&'static str, &'static [(Anomaly, Order)], &'static [&'static str]);

use Anomaly as A;
use Order::{Data, RealTime, Session};

const READ_UNCOMMITTED: &[&str] = &["strong session read uncommitted"];
const READ_COMMITTED: &[&str] = &["strong session read committed"];
const CONSISTENT_VIEW: &[&str] = &["strong session consistent view"];
const SNAPSHOT_ISOLATION: &[&str] = &["strong session snapshot isolation"];
const REPEATABLE_READ: &[&str] = &["strong session repeatable read (PL-2.99)"];
const SERIALIZABLE: &[&str] = &["strong session serializable"];

/// The histories with an anomaly. The one named `-not` in addition shows none.
const WITH: [Row; 45] = [
    ("garbage-read", &[(A::GarbageRead, Data)], &[]),
    ("internal", &[(A::Internal, Data)], &[]),
    ("internal-append", &[(A::Internal, Data)], &[]),
    ("incompatible-order", &[(A::IncompatibleOrder, Data)], &[]),
    ("duplicate-write", &[(A::DuplicateWrite, Data)], &[]),
    ("dirty-update", &[(A::DirtyUpdate, Data)], READ_UNCOMMITTED),
    ("g0", &[(A::G0, Data)], &[]),
    ("g1a", &[(A::G1a, Data)], READ_UNCOMMITTED),
    ("g1a-list", &[(A::G1a, Data)], READ_UNCOMMITTED),
    ("g1a-group", &[(A::G1a, Data)], READ_UNCOMMITTED),
    ("g1b", &[(A::G1b, Data)], READ_UNCOMMITTED),
    ("g1c", &[(A::G1c, Data)], READ_UNCOMMITTED),
    ("g1c-values", &[(A::G1c, Data)], READ_UNCOMMITTED),
    ("lost-update", &[(A::LostUpdate, Data)], READ_COMMITTED),
    ("lost-update-counter", &[(A::LostUpdate, Data)], READ_COMMITTED),
    ("lost-update-list", &[(A::LostUpdate, Data)], READ_COMMITTED),
    ("g-single", &[(A::GSingle, Data)], READ_COMMITTED),
    ("inconsistent-analysis", &[(A::GSingle, Data)], READ_COMMITTED),
    ("fuzzy-read", &[(A::GSingle, Data)], READ_COMMITTED),
    ("g-single-predicate", &[(A::GSinglePredicate, Data)], REPEATABLE_READ),
    ("phantom-sum", &[(A::GSinglePredicate, Data)], REPEATABLE_READ),
    ("long-fork", &[(A::GNonadjacent, Data)], CONSISTENT_VIEW),
    (
        "long-fork-group",
        &[(A::GNonadjacentPredicate, Data)],
        &["strong session consistent view", "strong session repeatable read (PL-2.99)"],
    ),
    ("write-skew", &[(A::G2Item, Data)], SNAPSHOT_ISOLATION),
    ("write-skew-lists", &[(A::G2Item, Data)], SNAPSHOT_ISOLATION),
    ("read-only", &[(A::G2Item, Data)], SNAPSHOT_ISOLATION),
    (
        "write-skew-predicate",
        &[(A::G2, Data)],
        &["strong session snapshot isolation", "strong session repeatable read (PL-2.99)"],
    ),
    (
        "write-skew-mixed",
        &[(A::G2, Data)],
        &["strong session snapshot isolation", "strong session repeatable read (PL-2.99)"],
    ),
    ("session-stale", &[(A::GSingle, Session)], &["strong session read committed", "serializable"]),
    ("session-g0", &[(A::G0, Session)], &["serializable"]),
    ("session-long-fork", &[(A::GNonadjacent, Session)], &["strong session consistent view", "serializable"]),
    ("real-time-stale", &[(A::GSingle, RealTime)], &["strong read committed", "strong session serializable"]),
    ("real-time-g1c", &[(A::G1c, RealTime)], &["strong read uncommitted", "strong session serializable"]),
    (
        "real-time-causal-reverse",
        &[(A::GSingle, RealTime)],
        &["strong read committed", "strong session serializable"],
    ),
    (
        "real-time-write-skew",
        &[(A::G2Item, RealTime)],
        &["strong snapshot isolation", "strong session serializable"],
    ),
    ("unknown-read", &[(A::GSingle, Data)], READ_COMMITTED),
    ("unknown-seen", &[(A::GSingle, RealTime)], &["strong read committed", "strong session serializable"]),
    ("unknown-group", &[(A::GSinglePredicate, Data)], REPEATABLE_READ),
    ("gap", &[(A::GSingle, Data)], READ_COMMITTED),
    ("fuzzy-read-values", &[(A::GSingle, Data)], READ_COMMITTED),
    ("inferred-read-skew", &[(A::GSingle, Data)], READ_COMMITTED),
    ("inferred-long-fork", &[(A::GNonadjacent, Data)], CONSISTENT_VIEW),
    ("inferred-write-skew", &[(A::G2Item, Data)], SNAPSHOT_ISOLATION),
    ("inferred-session", &[(A::GSingle, Session)], &["strong session read committed", "serializable"]),
    ("dropped", &[(A::G2Item, Data)], SNAPSHOT_ISOLATION),
];

/// The histories whose witness is also drawn: a cycle of two, one of four, a fact,
/// and a cycle that rests on an inferred order.
const PICTURES: [&str; 4] = ["write-skew-predicate", "long-fork", "g1a", "inferred-read-skew"];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Checks a golden history against the table and its rendered report; returns the difference.
fn wrong(name: &str, expected: &[(Anomaly, Order)], verdict: &[&str]) -> Option<String> {
    let path = directory().join(format!("{name}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let history = text::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let report = check(&history, &Options::default());
    let found: BTreeSet<_> = report.findings.iter().map(|it| (it.anomaly, it.order)).collect();
    if found != expected.iter().copied().collect() {
        return Some(format!("{name}: found {found:?}, expected {expected:?}"));
    }
    let left: BTreeSet<_> = report.verdict.not_contradicted.iter().map(ToString::to_string).collect();
    if left != verdict.iter().copied().map(str::to_owned).collect() {
        return Some(format!("{name}: not contradicted: {left:?}, expected {verdict:?}"));
    }
    let case = Case::new(&history);
    if let Some(why) = wrong_verdict(&history, &report).or_else(|| witness::verify(&case, &report).err()) {
        return Some(format!("{name}: {why}"));
    }
    if expected.is_empty() {
        return None;
    }
    let differs = |kind: &str, text: &str| difference(directory().join(format!("{name}.{kind}")), text);
    differs("report", &render(&report)).or_else(|| {
        let finding = report.findings.first().filter(|_| PICTURES.contains(&name))?;
        differs("dot", &graph::dot(&history, finding))
            .or_else(|| differs("svg", &graph::svg(&history, finding)))
    })
}

#[test]
fn each_anomaly_is_found_in_its_history_and_not_in_the_one_beside_it() {
    let mut wrongs = Vec::new();
    for (name, expected, verdict) in WITH {
        wrongs.extend(wrong(name, expected, verdict));
        let timed = verdict.iter().any(|it| it.starts_with("strong ") && !it.starts_with("strong session"));
        let strongest = if timed { &["strict serializable"] } else { SERIALIZABLE };
        wrongs.extend(wrong(&format!("{name}-not"), &[], strongest));
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n\n"));
}

#[test]
fn each_anomaly_has_a_history() {
    let shown: BTreeSet<_> = WITH.iter().flat_map(|row| row.1).map(|finding| finding.0).collect();
    assert_eq!(shown, Anomaly::ALL.into_iter().collect());
}

#[test]
fn every_file_is_in_the_table() {
    for entry in fs::read_dir(directory()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.split('.').next().unwrap_or_default().trim_end_matches("-not");
        assert!(WITH.iter().any(|row| row.0 == stem), "{name} is in no row");
    }
}
