//! The columns of the tables, with the example documents.

use std::collections::BTreeSet;

use isobench_result::{Column, Place, Values, bins, round_columns, rounds, series_columns};

use crate::examples;

fn is_missing(column: &Column, place: &Place<'_>) -> bool {
    match column.values {
        Values::Text(value) | Values::Instant(value) => value(place).is_none(),
        Values::Count(value) => value.at(place).is_none(),
        Values::Number(value) => value.at(place).is_none(),
        Values::Flag(value) => value(place).is_none(),
        Values::Word(_) => false,
    }
}

#[test]
fn what_is_always_there_is_there_and_the_rest_is_missing_somewhere() {
    let mut sometimes = BTreeSet::new();
    let mut lines = 0;
    for (_, document) in examples::all() {
        let rounds = rounds(&document).map(|place| (round_columns().collect::<Vec<_>>(), place));
        let bins = bins(&document).map(|place| (series_columns().collect::<Vec<_>>(), place));
        for (columns, place) in rounds.chain(bins) {
            lines += 1;
            for column in columns.into_iter().filter(|column| is_missing(column, &place)) {
                assert!(!column.always, "{} is missing", column.name);
                sometimes.insert(column.name);
            }
        }
    }
    assert!(lines > 50, "{lines} lines");
    for name in ["rate", "late", "promise_kept"] {
        assert!(sometimes.contains(name), "{name} is in every line of {sometimes:?}");
    }
}
