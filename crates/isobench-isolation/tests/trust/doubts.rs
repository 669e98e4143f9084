//! Reasons for withholding a verdict: each doubt in a history that has it, and in a similar one
//! without doubts.

use isobench_isolation::Guarantee;
use isobench_isolation::check::{Blind, DoubtKind, Options, Report};
use isobench_isolation::history::text;

fn asked(vouched: bool) -> Options {
    Options {
        promised: Some(Guarantee::of(isobench_isolation::Model::Serializable)),
        vouched,
        ..Options::default()
    }
}

fn checked(history: &str, vouched: bool) -> Report {
    check(&text::parse(history).unwrap_or_else(|error| panic!("{history}: {error}")), &asked(vouched))
}

fn kinds(report: &Report) -> Vec<DoubtKind> {
    report.verdict.withheld.iter().map(|doubt| doubt.kind).collect()
}

use DoubtKind::{Assumed, Counter, NotUnique, NothingChecked, Unexplained};

use crate::pieces::check;

/// A history, the doubts that withhold its verdict if it isn't vouched for, and whether it
/// otherwise keeps the promise of serializability.
const ROWS: [(&str, &[DoubtKind], Option<bool>); 31] = [
    ("", &[NothingChecked], None),
    ("T1: ", &[NothingChecked], None),
    ("T1 unknown: w x = 1", &[NothingChecked], None),
    ("T1: w x = 1", &[], Some(true)),
    // Values written by several transactions; a value can be written again after a rollback.
    ("T1: w x = 1\nT2: w x = 1", &[NotUnique], None),
    ("T1 unknown: w x = 1\nT2: w x = 1", &[NotUnique], None),
    ("T1 unknown: w x = 1\nT2 unknown: w x = 1\nT3: r x = 1", &[NotUnique], None),
    ("T1 aborted: w x = 1\nT2: w x = 1\nT3: r x = 1", &[], Some(true)),
    ("T1: w x = v1/1\nT2: r x = v1/1, w x = v2/1", &[], Some(true)),
    ("T1 unknown: a x += 1\nT2: a x += 1", &[NotUnique], None),
    ("T1 unknown: i x 1 in 1\nT2: i x 1 in 1", &[NotUnique], None),
    ("initial x = 1\nT1: w x = 1", &[NotUnique], None),
    // Unwritten versions.
    ("T1: w x = v1/1\nT2: r x = v2/2", &[Unexplained], None),
    ("T1: r x = v1\nT2: r x = v2", &[Unexplained], None),
    ("T1: r x = v1\nT2: r x = v1", &[], Some(true)),
    ("T1: r x = init\nT2: r x = 1", &[Unexplained], None),
    ("T1: r x = v0\nT2: r x = v1\nT3: w x = v2", &[Unexplained], None),
    ("T1: w x = v1, r x = v2", &[Unexplained], None),
    ("T1 aborted: w x = v1\nT2: r x = v1", &[Unexplained], None),
    ("T1 aborted: w x = v1\nT2: w x = v2", &[Unexplained], None),
    ("T1 aborted: w x = v1/1\nT2: r x = v1/1", &[], Some(false)),
    // Initial values.
    ("initial x = 1\nT1: r x = 1, w x = 2", &[], Some(true)),
    ("initial x = 1\nT1: r x = 1, w x = 2\nT2: r x = 1, w x = 3", &[], Some(false)),
    ("T1: r x = 1, w x = 2\nT2: r x = 1, w x = 3", &[Assumed], None),
    ("initial l = [1 2]\nT1: l l = [1 2], a l += 3\nT2: l l = [1 2 3]", &[], Some(true)),
    ("initial l = [1 2]\nT1: l l = [1 9]\nT2: a l += 3", &[Unexplained], None),
    ("T1: l l = [1 2], a l += 3\nT2: l l = []", &[Unexplained], None),
    // Counters that don't increase prove nothing.
    ("T1: r x = v1, w x = v1\nT2: r x = v1, w x = v1", &[Unexplained], None),
    ("T1 client=0: r x = v1, w x = v2/1\nT2 client=0: r x = v1, w x = v2/2", &[Counter], None),
    ("T1: w x = v1/1\nT2: r x = v0/0, w x = v1/2\nT3: r x = v0/0", &[Counter], None),
    ("T1 client=0: r x = v1, w x = v2/1\nT2 client=1: r x = v1, w x = v2/2", &[], Some(false)),
];

#[test]
fn doubts_withhold_the_verdict() {
    for (history, expected, kept) in ROWS {
        let report = checked(history, false);
        assert_eq!((kinds(&report).as_slice(), report.verdict.kept), (expected, kept), "{history}");
        assert_eq!(report.verdict.not_contradicted.is_empty(), !expected.is_empty(), "{history}");
        for doubt in &report.verdict.withheld {
            assert_eq!(doubt.is_contradiction(), doubt.kind != NothingChecked);
            assert!(doubt.kind == NothingChecked || doubt.example.contains('T'), "{history}: {doubt}");
        }
    }
}

/// In a history that is vouched for, doubts become anomalies, except for values that aren't unique.
#[test]
fn what_is_vouched_for_has_fewer_doubts() {
    for (history, expected, _) in ROWS {
        let report = checked(history, true);
        let left: Vec<DoubtKind> =
            expected.iter().copied().filter(|kind| matches!(kind, NotUnique | NothingChecked)).collect();
        assert_eq!(kinds(&report), left, "{history}");
    }
}

#[test]
fn an_assumption_is_said() {
    let assumed = |history: &str| {
        checked(history, false).blind.into_iter().find_map(|blind| match blind {
            Blind::AssumedInitial { rows, example } => Some((rows, example)),
            _ => None,
        })
    };
    let said = |rows, example: &str| Some((rows, example.to_owned()));
    let both = "T1: r x = 7, w x = 1, r y = 8, w y = 1\nT2: r x = 1";
    assert_eq!(assumed(both), said(2, "T1 (client 0) read value 7 of x 0"));
    assert_eq!(assumed("initial x = 7, y = 8\nT1: r x = 7, w x = 1, r y = 8, w y = 1"), None);
    let list = "T1: l l = [7], a l += 8\nT2: l l = [7 8]";
    assert_eq!(assumed(list), said(1, "T1 (client 0) read l 0 as [7], but no transaction appended [7]"));
    // There was an earlier write, by the order in the file or by time.
    for history in ["T1: w x = 1\nT2: r x = 7", "T1 5..6: r x = 7\nT2 1..2: w x = 1"] {
        assert_eq!(assumed(history), None);
        assert_eq!(kinds(&checked(history, false)), [Unexplained]);
    }
    assert!(assumed("T1 1..2: r x = 7\nT2 5..6: w x = 1").is_some());
}
