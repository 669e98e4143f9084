//! Takes committed writes from a second source into what a log shows.

use rustc_hash::FxHashMap;

use super::super::KeyForm;
use super::super::committed::{CommitOrder, CommittedChange, CommittedWrite, CommittedWrites};
use super::super::log::Replaced;
use super::super::resolution::{Resolution, Written};
use crate::history::Key;

/// Takes the committed writes into a resolution that has read the log.
pub(super) fn commit_order(resolution: &mut Resolution, committed: &CommittedWrites) -> CommitOrder {
    for table in &committed.tables {
        if let Some(table) = resolution.description.tables.get_mut(usize::from(*table)) {
            table.closed = true;
        }
    }
    let texts = resolution.description.texts.iter().cloned();
    let mut numbers: FxHashMap<String, i64> = texts.zip(0..).collect();
    let mut seen: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for write in &resolution.writes {
        *seen.entry((write.row, write.attempt)).or_default() += 1;
    }
    let covered = committed.tables.iter().copied().collect();
    let mut order = CommitOrder { known: true, covered, ..CommitOrder::default() };
    for (place, transaction) in (0_u64..).zip(&committed.transactions) {
        let attempt = resolution.committed_attempt(transaction.transaction);
        order.strangers += u64::from(attempt.is_none());
        let mut known: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        for write in &transaction.writes {
            let Some(id) = id(resolution, write, &mut numbers) else { continue };
            let row = resolution.row_to_write(Key { table: write.table, id });
            let Some(attempt) = attempt else {
                // Somebody else's, or of a subtransaction only.
                note_unshown(resolution, row);
                continue;
            };
            order.places.insert((row, attempt), place);
            *known.entry((row, attempt)).or_default() += 1;
            if !seen.contains_key(&(row, attempt)) {
                add(&mut order, resolution, (row, attempt), transaction.transaction, write.what);
            }
        }
        // If only a part of a transaction's writes of a row was shown, it isn't known what the
        // row was like in the end.
        for (place, writes) in known {
            if seen.get(&place).is_some_and(|seen| *seen != writes) {
                note_unshown(resolution, place.0);
            }
        }
    }
    order
}

/// Notes that a row has writes that were not shown, or may not have been.
fn note_unshown(resolution: &mut Resolution, row: u32) {
    let row = &mut resolution.rows[row as usize];
    (row.doubtful, row.partly_shown) = (true, true);
}

/// Adds a write that no statement showed.
fn add(
    order: &mut CommitOrder,
    resolution: &mut Resolution,
    (row, attempt): (u32, u32),
    transaction: u32,
    what: CommittedChange,
) {
    let deleted = what == CommittedChange::Deleted;
    let replaced = match what {
        CommittedChange::Inserted => Replaced::Nothing,
        CommittedChange::Updated | CommittedChange::Deleted => Replaced::Unknown,
    };
    let writer = if deleted { 0 } else { transaction };
    let write = Written {
        row,
        attempt,
        writer,
        replaced,
        after_unseen: false,
        may_insert: replaced == Replaced::Nothing,
        answered: u64::MAX,
        columns: None,
        counter: None,
        partial: false,
        superseded: false,
    };
    let index = resolution.add_unseen(write);
    order.unseen.entry(attempt).or_default().push(index);
}

/// The key's number in the log.
fn id(
    resolution: &mut Resolution,
    write: &CommittedWrite,
    numbers: &mut FxHashMap<String, i64>,
) -> Option<i64> {
    let table = resolution.description.tables.get(usize::from(write.table))?;
    if table.key == KeyForm::Integer {
        return write.key.parse().ok();
    }
    let texts = &mut resolution.description.texts;
    let next = i64::try_from(texts.len()).ok()?;
    let number = *numbers.entry(write.key.clone()).or_insert(next);
    if number == next {
        texts.push(write.key.clone());
    }
    Some(number)
}
