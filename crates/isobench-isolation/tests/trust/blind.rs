//! The limits of a check must be reported: each one in a history that has it, and in one that
//! doesn't.

use isobench_isolation::check::{Blind, Options, Report, render};
use isobench_isolation::history::text;
use isobench_isolation::{Guarantee, Model};

use crate::pieces::check;

/// A history and the limits of its check.
const ROWS: [(&str, &[Blind]); 11] = [
    ("T1: w x = v1/1, g m 1 = []\nT2: r x = v1/1", &[Blind::NoInstants]),
    ("T1 0..1: w x = v1/1, g m 1 = []\nT2 2..3: r x = v1/1", &[]),
    ("T1 0..1: w x = v1/1\nT2 2..3: r x = v1/1", &[Blind::NoPredicates]),
    ("T1 0..1: w x = v1/1, g m 1 = []\nT2 2..3: w y = v1/1", &[Blind::NothingShared]),
    ("T1 0..1: w x = v1/1, g m 1 = []\nT2 2..3: r x = v1/1\ndropped 3", &[Blind::Dropped(3)]),
    (
        "T1 0..1: w x = v1/1, g m 1 = []\nT2 2..3: r x = v1/1\nT3 0.. unknown: w x = v2/3",
        &[Blind::UnknownOutcomes(1)],
    ),
    ("T1 0..1 unknown: w x = v1/1, g m 1 = []\nT2 2..3: r x = v1/1, g m 1 = []", &[]),
    ("T1 0..9: w x = 1, g m 1 = []\nT2 0..9: w x = 2\nT3 0..9: r x = 1", &[Blind::UndecidedOrder(1)]),
    (
        "T1 0..9: w x = 1, g m 1 = []\nT2 0..9: w x = 2\nT3 0..9: w x = 3\nT4 0..9: r x = 1",
        &[Blind::UndecidedOrder(3)],
    ),
    (
        "T1 0..9: w x = 1, g m 1 = []\nT2 0..9: r x = 1, w x = 2\nT3 0..9: w x = 3",
        &[Blind::UndecidedOrder(2)],
    ),
    ("T1 0..9: w x = 1, g m 1 = []\nT2 0..9: r x = 1, w x = 2\nT3 0..9: r x = 2, w x = 3", &[]),
];

#[test]
fn what_cannot_be_seen_is_said() {
    for (history, expected) in ROWS {
        let report = check(&text::parse(history).unwrap(), &Options::default());
        assert_eq!(report.blind, expected, "{history}");
    }
}

/// A row that was read in two versions is found without any effort; the rest takes some.
#[test]
fn a_search_that_was_cut_is_said() {
    let short = Options { effort: 0, ..Options::default() };
    let skew = "T1 0..9: w x = 1, w y = 1\nT2 0..9: r x = 1, w y = 2\nT3 0..9: r y = 1, w x = 2";
    let report = |history: &str, options: &Options| check(&text::parse(history).unwrap(), options);
    let cut = |report: &Report| report.blind.iter().any(|blind| matches!(blind, Blind::OrderNotInferred(_)));
    let (whole, part) = (report(skew, &Options::default()), report(skew, &short));
    assert!(!cut(&whole) && !whole.findings.is_empty(), "{whole:?}");
    assert!(cut(&part) && part.findings.is_empty(), "{part:?}");
    assert!(render(&part).contains("the search for orders of versions was cut short"), "{part:?}");
    let fuzzy = report("T1: w x = 1\nT2: w x = 2\nT3: r x = 1, r x = 2", &short);
    assert_eq!(fuzzy.findings.len(), 1, "{fuzzy:?}");
    assert!(fuzzy.findings[0].contradicts(Guarantee::of(Model::RepeatableRead)));
    let counted = report("T1: w x = v1/1\nT2: r x = v1/1, w x = v2/2\nT3: r x = v1/1", &short);
    assert!(!cut(&counted), "nothing is inferred for counters: {counted:?}");
}

/// Pairs whose order was inferred aren't open.
#[test]
fn what_is_inferred_is_not_open() {
    let open = |history: &str| {
        let report = check(&text::parse(history).unwrap(), &Options::default());
        let open = report.blind.iter().find_map(|blind| match blind {
            Blind::UndecidedOrder(pairs) => Some(*pairs),
            _ => None,
        });
        assert_eq!(render(&report).contains("left open"), open.is_some(), "{report:?}");
        open
    };
    assert_eq!(open("T1 0..9: w x = 1\nT2 0..9: w x = 2"), Some(1));
    // T1 ended before T2 began, and strict serializability isn't contradicted.
    assert_eq!(open("T1 0..1: w x = 1\nT2 2..3: w x = 2"), None);
    assert_eq!(open("T1 client=0: w x = 1\nT2 client=0: w x = 2"), None);
    // T3 read T1's version after T2 had written its own.
    assert_eq!(open("T1 0..9: w x = 1\nT2 0..9: w x = 2, w y = 1\nT3 0..9: r y = 1, r x = 1"), None);
    assert_eq!(open("T1 0..9: w x = 1\nT2 0..9: w x = 2, w y = 1\nT3 0..9: r x = 1"), Some(1));
}
