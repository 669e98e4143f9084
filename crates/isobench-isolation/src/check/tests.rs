//! Small histories and their results: the anomalies with counts and orders, and the guarantees that
//! aren't contradicted.

use std::fmt::Write as _;

use super::{Options, check};
use crate::history::text;
use crate::model::Order;

/// The findings and the strongest guarantees, in one line each.
fn outcome(history: &str) -> (String, String) {
    let report = check(&text::parse(history).unwrap(), &Options::default());
    let findings = report.findings.iter().map(|finding| {
        let order = match finding.order {
            Order::Data => "",
            Order::Session => " by session",
            Order::RealTime => " by real time",
        };
        assert!(!finding.witness.steps.is_empty());
        for step in &finding.witness.steps {
            assert!(!step.why.contains(") comes before T"), "no operations found for {step:?}");
        }
        let more = if finding.count.complete { "" } else { "+" };
        format!("{} {}{more}{order}", finding.anomaly.facts().name, finding.count.found)
    });
    let findings = findings.collect::<Vec<_>>().join(", ");
    let verdict =
        report.verdict.not_contradicted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    (findings, verdict)
}

/// History, findings, verdict.
const CASES: [(&str, &str, &str); 53] = [
    // Nothing was checked.
    ("", "", ""),
    ("T1 aborted: w x = 1", "", ""),
    ("T1:", "", ""),
    // A serial history with instants.
    (
        "T1 client=0 1..2: r x = init, w x = v1/1
         T2 client=1 3..4: r x = v1/1, w x = v2/2",
        "",
        "strict serializable",
    ),
    // Lost update, seen by counters, by equal counters, by values, and in lists.
    ("T1: r x = v0, w x = v1/1\nT2: r x = v0, w x = v2/2", "P4 1", "strong session read committed"),
    ("T1: r x = v0, w x = v1/1\nT2: r x = v0, w x = v1/2", "P4 1", "strong session read committed"),
    ("T1: r x = init, w x = 1\nT2: r x = init, w x = 2", "P4 1", "strong session read committed"),
    (
        "T1: l x = [], a x += 1\nT2: l x = [], a x += 2\nT3: l x = [1 2]",
        "P4 1",
        "strong session read committed",
    ),
    ("T1: l x = [], a x += 1\nT2: l x = [], a x += 2", "P4 1", "strong session read committed"),
    // Write skew.
    (
        "T1: r x = v0, r y = v0, w x = v1\nT2: r x = v0, r y = v0, w y = v1",
        "G2-item 1",
        "strong session snapshot isolation",
    ),
    // Write skew on a predicate.
    (
        "T1: g t 1 = [], i t 1 in 1\nT2: g t 1 = [], i t 2 in 1",
        "G2 1",
        "strong session snapshot isolation, strong session repeatable read (PL-2.99)",
    ),
    // Read skew, on rows and on a predicate.
    ("T1: w x = v1, w y = v1\nT2: r x = v0, r y = v1", "G-single 1", "strong session read committed"),
    (
        "T1: i t 1 in 1, w y = v1\nT2: g t 1 = [], r y = v1",
        "G-single (predicate) 1",
        "strong session repeatable read (PL-2.99)",
    ),
    // Long fork.
    (
        "T1: w x = v1\nT2: w y = v1\nT3: r x = v1, r y = v0\nT4: r x = v0, r y = v1",
        "G-nonadjacent 1",
        "strong session consistent view",
    ),
    (
        "T1: i t 1 in 1\nT2: i t 2 in 1\nT3: g t 1 = [1]\nT4: g t 1 = [2]",
        "G-nonadjacent (predicate) 1",
        "strong session consistent view, strong session repeatable read (PL-2.99)",
    ),
    // Dirty writes, and circular reads.
    ("T1: w x = v1, w y = v2\nT2: w x = v2, w y = v1", "G0 1", ""),
    ("T1: w x = v1, r y = v1\nT2: r x = v1, w y = v1", "G1c 1", "strong session read uncommitted"),
    (
        "T1 unknown: w x = v1/1, w y = v2/1\nT2: w x = v3/2, w y = v1/2\nT3: r x = v1/1",
        "G1c 1+, G-single 1",
        "strong session read uncommitted",
    ),
    // Reads of versions that must not be seen.
    ("T1 aborted: w x = v1/1\nT2: r x = v1/1", "G1a 1", "strong session read uncommitted"),
    ("T1 aborted: w x = v1/1\nT2: w x = v2/2", "dirty update 1", "strong session read uncommitted"),
    (
        "T1 aborted: a x += 1\nT2: l x = [1], a x += 2\nT3: l x = [1 2]",
        "dirty update 1, G1a 2",
        "strong session read uncommitted",
    ),
    (
        "T1 aborted: a x += 2\nT2: l x = [1 2]\nT3: a x += 1\nT4: a x += 3, l x = [1 3]",
        "G1a 1",
        "strong session read uncommitted",
    ),
    (
        "T1 unknown: a x += 2\nT2: l x = [1 2]\nT3: a x += 1\nT4: l x = [1], a x += 3\nT5: l x = [1 3]",
        "G1a 1",
        "strong session read uncommitted",
    ),
    ("T1: w x = v1/1, w x = v2/2\nT2: r x = v1/1", "G1b 1", "strong session read uncommitted"),
    ("T1: a x += 1, a x += 2\nT2: l x = [1]\nT3: l x = [1 2]", "G1b 1", "strong session read uncommitted"),
    ("T1: r x = 7", "garbage read 1", ""),
    ("T1: r x = 7\ndropped 1", "", "strong session serializable"),
    ("T1: a x += 1\nT2: l x = [1 2]", "garbage read 1", ""),
    ("T1: i t 14 in 1\nT2: g t 0 = [14]", "garbage read 1", ""),
    ("T1: g t 0 = [14]\nT2: g t 0 = [14]", "", "strong session serializable"),
    ("T1: g t 0 = [14]\nT2: g t 0 = []", "garbage read 1", ""),
    ("T1 unknown: w x = v3/1\nT2: r x = v3/2", "garbage read 1", ""),
    ("T1 unknown: w x = v3/1\nT2: r x = v2/2", "", "strong session serializable"),
    ("T1 aborted: w x = v5\nT2: r x = v5, w x = v5", "G1a 1", "strong session read uncommitted"),
    ("T1: w x = v5\nT2: r x = 7", "", "strong session serializable"),
    // A transaction and itself.
    ("T1: w x = 1, r x = init", "internal inconsistency 1", ""),
    ("T1: w x = v1, r x = v0", "internal inconsistency 1", ""),
    ("T1: a x += 1, l x = []", "internal inconsistency 1", ""),
    ("T1: i t 1 in 1, g t 1 = []", "internal inconsistency 1", ""),
    // Incompatible orders.
    ("T1: a x += 1\nT2: a x += 2\nT3: l x = [1 2]\nT4: l x = [2]", "incompatible version orders 1", ""),
    ("T1: a x += 1\nT2: l x = [1 1]", "duplicate write 1", ""),
    ("T1: w x = 1\nT2: w x = 1", "duplicate write 1", ""),
    // Orders from outside the data.
    (
        "T1 client=0: w x = v1\nT2 client=0: r x = v0",
        "G-single 1 by session",
        "serializable, strong session read committed",
    ),
    (
        "T1 10..20: w x = v1\nT2 30..40: r x = v0",
        "G-single 1 by real time",
        "strong session serializable, strong read committed",
    ),
    // Unknown outcomes: one that must have been committed, and one that stays unknown.
    (
        "T1 unknown: r y = v0, w x = v1\nT2: r x = v1, r y = v0, w y = v1\nT3: w x = v2, r y = v1",
        "",
        "strong session serializable",
    ),
    ("T1 client=1 7..15: w x = v3/1\nT2 client=1 20..27 unknown: w x = v1/2", "", "strict serializable"),
    (
        "T1: r x = v2/1\nT2 unknown: w x = v1/1, w x = v2/1\nT3: w x = v1/3, w x = v2/3, w x = v3/3",
        "P4 2",
        "strong session read committed",
    ),
    ("T1 unknown: w x = v1\nT2: r x = v0\nT3: w x = v2, r y = v0", "", "strong session serializable"),
    // Extreme cases.
    (
        "T1: w x -9223372036854775808 = v18446744073709551615/-9223372036854775808
         T2: r x -9223372036854775808 = v18446744073709551615/-9223372036854775808
         T3: w x -9223372036854775808 = v0",
        "",
        "strong session serializable",
    ),
    (
        "T1: r x = v18446744073709551615, w x = v0\nT2: w x = v18446744073709551615, w x = v18446744073709551615",
        "incompatible version orders 1, G1b 1, G1c 1",
        "",
    ),
    (
        "T1: a x += -9223372036854775808, l x = [-9223372036854775808 -9223372036854775808], \
         g x -9223372036854775808 = [-9223372036854775808], i x -9223372036854775808 in -9223372036854775808",
        "internal inconsistency 1, duplicate write 1",
        "",
    ),
    ("T1 5..5: w x = v1\nT2 0..: r x = v1", "", "strict serializable"),
    ("T1 unknown: w x = v1, r x = v1\nT2 unknown: w x = v1\nT3 aborted: r x = v9, w x = v9", "", ""),
];

#[test]
fn what_follows() {
    let mut wrong = String::new();
    for (history, findings, verdict) in CASES {
        let (found, left) = outcome(history);
        if (found.as_str(), left.as_str()) != (findings, verdict) {
            let _ = writeln!(
                wrong,
                "{history}\n  expected: {findings} | {verdict}\n  found:    {found} | {left}"
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A transaction counts once, and only if it read or did something wrong itself.
#[test]
fn anomalous_transactions_are_counted_once() {
    for (history, anomalous) in [
        ("T1: r x = v0, w x = v1/1\nT2: r x = v1/1, w x = v2/2", 0),
        // The second wrote over the first.
        ("T1: r x = v0, w x = v1/1\nT2: r x = v0, w x = v2/2", 1),
        // In two rows, which are two lost updates.
        ("T1: r x = v0, r y = v0, w x = v1/1, w y = v1/1\nT2: r x = v0, r y = v0, w x = v2/2, w y = v2/2", 1),
        // Write skew takes two.
        ("T1: r x = v0, r y = v0, w x = v1\nT2: r x = v0, r y = v0, w y = v1", 2),
        // Of a read skew only the reader sees anything.
        ("T1: w x = v1/1, w y = v1/1\nT2: r x = v0, r y = v1/1", 1),
        // A reader of an aborted write; who reads that one's own writes is innocent.
        ("T1 aborted: w x = v1/1\nT2: r x = v1/1, w y = v1/2\nT3: r y = v1/2", 1),
    ] {
        let report = check(&text::parse(history).unwrap(), &Options::default());
        assert_eq!(report.anomalous, anomalous, "{history}: {:?}", report.findings);
    }
}
