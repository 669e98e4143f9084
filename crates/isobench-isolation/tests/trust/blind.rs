//! The limits of a check must be reported: each one in a history that has it, and in one that
//! doesn't.

use isobench_isolation::check::{Blind, Options, check};
use isobench_isolation::history::text;

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
