use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::wal::{WalRelation, WalWrite, WalWriteKind};

fn row(key: &str) -> WalRow {
    ("t".to_owned(), key.to_owned())
}

/// Transactions that each write one row, in the order of their commits.
fn transactions(writes: &[(u32, &str)]) -> Vec<WalTransaction> {
    writes.iter().map(|(xid, key)| transaction(*xid, &[(key, None)])).collect()
}

/// A transaction that writes these rows; with an old key if that was changed.
fn transaction(xid: u32, keys: &[(&str, Option<&str>)]) -> WalTransaction {
    let relation = Arc::new(WalRelation {
        schema: "public".to_owned(),
        table: "t".to_owned(),
        columns: vec!["k".to_owned()],
        key: vec![0],
    });
    let write = |(key, old): &(&str, Option<&str>)| WalWrite {
        relation: Arc::clone(&relation),
        kind: WalWriteKind::Update,
        key: vec![Some((*key).to_owned())],
        old_key: old.map(|old| vec![Some(old.to_owned())]),
        values: Vec::new(),
    };
    WalTransaction {
        xid,
        commit_lsn: u64::from(xid),
        commit_time_micros: 0,
        writes: keys.iter().map(write).collect(),
    }
}

fn claims(rows: &[(&str, &[u32])]) -> BTreeMap<WalRow, Vec<u32>> {
    rows.iter().map(|(key, writers)| (row(key), writers.to_vec())).collect()
}

#[test]
fn equal_orders_agree() {
    let logged = transactions(&[(1, "a"), (3, "b"), (2, "a")]);
    let comparison = compare(&claims(&[("a", &[1, 2]), ("b", &[3])]), &logged);
    assert_eq!(comparison, WalComparison { rows: 2, ..WalComparison::default() });
}

#[test]
fn disagreements_name_the_row_and_both_orders() {
    let logged = transactions(&[(1, "a"), (2, "a"), (3, "a"), (4, "b")]);
    for (claimed, kind) in [
        (&[2, 1, 3][..], WalDisagreementKind::Order),
        (&[1, 2, 1, 3], WalDisagreementKind::Order),
        (&[1, 2, 3, 4], WalDisagreementKind::NotLogged),
        (&[1, 3], WalDisagreementKind::NotClaimed),
        (&[], WalDisagreementKind::NotClaimed),
    ] {
        let comparison = compare(&claims(&[("a", claimed), ("b", &[4])]), &logged);
        let (claimed, logged) = (claimed.to_vec(), vec![1, 2, 3]);
        assert_eq!(comparison.disagreements, [WalDisagreement { row: row("a"), kind, claimed, logged }]);
    }
    let only_logged = compare(&claims(&[("a", &[1, 2, 3])]), &logged);
    assert_eq!(only_logged.disagreements[0].row, row("b"));
    assert_eq!(only_logged.rows, 1);
}

#[test]
fn unknown_numbers_stand_for_writers_at_their_place() {
    let logged = transactions(&[(1, "a"), (2, "a"), (3, "a")]);
    // 12 is a subtransaction of 2 in any of these, and 13 one of 1, 2 or 3.
    for claimed in [&[1, 12, 3][..], &[1, 2, 12, 3], &[1, 12, 13], &[13, 1, 2, 3], &[1, 2, 12, 2, 3]] {
        let comparison = compare(&claims(&[("a", claimed)]), &logged);
        assert_eq!(comparison.disagreements, [], "{claimed:?}");
        assert!(comparison.unknown.contains(&12) || comparison.unknown.contains(&13));
    }
    for claimed in [&[12, 3, 13][..], &[1, 3, 12], &[12, 13], &[3, 12, 1]] {
        let comparison = compare(&claims(&[("a", claimed)]), &logged);
        assert_eq!(comparison.disagreements.len(), 1, "{claimed:?}");
    }
}

#[test]
fn a_changed_key_is_a_write_of_both_rows() {
    let logged = [
        transaction(1, &[("a", None)]),
        transaction(2, &[("b", Some("a")), ("b", None), ("c", None), ("b", None)]),
    ];
    let claimed = claims(&[("a", &[1, 2]), ("b", &[2]), ("c", &[2])]);
    assert_eq!(writers_by_row(&logged), claimed);
    assert_eq!(compare(&claimed, &logged).disagreements, []);
}

/// True if each claimed number can be given one of the log's places, a known one its own, so that
/// they ascend and leave no place out.
fn can_agree(claimed: &[u32], logged: &[u32]) -> bool {
    fn go(claimed: &[u32], logged: &[u32], at: Option<usize>) -> bool {
        let Some((first, rest)) = claimed.split_first() else {
            return at.map_or(0, |at| at + 1) == logged.len();
        };
        let next = at.map_or(0, |at| at + 1);
        let places = at.into_iter().chain([next]).filter(|place| *place < logged.len());
        let is_unknown = *first >= 10;
        places
            .into_iter()
            .any(|place| (is_unknown || logged[place] == *first) && go(rest, logged, Some(place)))
    }
    go(claimed, logged, None)
}

proptest! {
    #[test]
    fn a_disagreement_is_reported_if_no_choice_agrees(
        logged in Just((1..=5_u32).collect::<Vec<_>>()).prop_shuffle(),
        count in 0..=4_usize,
        claimed in vec(prop_oneof![1..=5_u32, 10..13_u32], 0..7),
    ) {
        // Those beyond the count write another row.
        let writes: Vec<_> = logged
            .iter()
            .enumerate()
            .map(|(place, xid)| (*xid, if place < count { "a" } else { "other" }))
            .collect();
        let comparison = compare(&claims(&[("a", &claimed)]), &transactions(&writes));
        let agrees = comparison.disagreements.iter().all(|one| one.row != row("a"));
        // An unknown number of a row that has no writers is no disagreement: it may be of a
        // transaction that didn't commit.
        let nothing = count == 0 && claimed.iter().all(|xid| *xid >= 10);
        prop_assert_eq!(agrees, nothing || can_agree(&claimed, &logged[..count]));
    }
}
