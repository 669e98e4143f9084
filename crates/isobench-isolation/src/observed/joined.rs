//! The other side of a join: rows of which it is certain that a search would have joined them.
//!
//! A join that didn't find a row of one table either looked at a version of it that doesn't match, or
//! found no row of the other table for it. If a row of the other table surely was there, it was the
//! former. Surely: in all versions that the search may have looked at, the row exists, is joined to the
//! version in question, and matches its own conditions.
//!
//! Which versions those are is asked on the assumption that the search looked at the version in
//! question. So its snapshot had what that version's writer had committed, and what others had
//! committed before that writer began: snapshots are of prefixes of what was committed, also on
//! standbys.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use super::predicate::{Elsewhere, Linked, NULL};
use super::resolution::{OwnWrites, ReadVersions, Resolution, Written};

/// A row that may be joined to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// A row that was written, by its number.
    Written(u32),
    /// A row that never was, by the position of its columns' values.
    Unwritten(u32),
}

/// The known rows of tables, by the values of columns by which they are joined.
#[derive(Debug, Default)]
pub(super) struct Others {
    indexes: FxHashMap<(u16, u16), FxHashMap<i64, Vec<Other>>>,
    /// The number of rows that were looked at since it was last asked for.
    looked_at: Cell<u64>,
}

impl Others {
    /// `rows` are the written rows of each table.
    pub(super) fn of(resolution: &Resolution, rows: &[Vec<u32>]) -> Others {
        let mut others = Others::default();
        for predicate in &resolution.description.predicates {
            predicate.each_linked(&mut |linked| {
                if let Some((_, column)) = linked.pairs.first() {
                    let index = others.indexes.entry((linked.table, *column));
                    index.or_insert_with(|| index_of(resolution, rows, linked.table, usize::from(*column)));
                }
            });
        }
        others
    }

    /// The number of rows that were looked at since the last call.
    pub(super) fn looked_at(&self) -> u64 {
        self.looked_at.take()
    }
}

fn index_of(
    resolution: &Resolution,
    rows: &[Vec<u32>],
    table: u16,
    column: usize,
) -> FxHashMap<i64, Vec<Other>> {
    let mut index: FxHashMap<i64, Vec<Other>> = FxHashMap::default();
    let mut add = |place: u32, other: Other| {
        let value = resolution.values(place, column + 1).get(column).copied();
        if let Some(value) = value.filter(|value| *value != NULL) {
            let others = index.entry(value).or_default();
            if others.last() != Some(&other) {
                others.push(other);
            }
        }
    };
    for &number in rows.get(usize::from(table)).into_iter().flatten() {
        let row = &resolution.rows[number as usize];
        let written = row.writes.iter().filter_map(|write| resolution.writes[*write as usize].columns);
        written.chain(row.initial).for_each(|place| add(place, Other::Written(number)));
    }
    for (key, (_, place)) in &resolution.unwritten {
        if key.table == table {
            add(*place, Other::Unwritten(*place));
        }
    }
    index
}

/// The rows that a search would have joined to a version.
#[derive(Clone, Copy)]
pub(super) struct Joined<'a> {
    pub(super) resolution: &'a Resolution,
    pub(super) others: &'a Others,
    /// The attempt that searched, what it had written before, and what it had read.
    pub(super) attempt: u32,
    pub(super) own: &'a OwnWrites,
    pub(super) read: &'a ReadVersions,
    /// The attempt that wrote the version in question; `None` for the initial one.
    pub(super) writer: Option<u32>,
}

impl Elsewhere for Joined<'_> {
    fn has(&self, linked: &Linked, columns: &[i64], operands: &[i64]) -> bool {
        let Some((own, other)) = linked.pairs.first() else { return false };
        let value = columns.get(usize::from(*own)).filter(|value| **value != NULL);
        let index = self.others.indexes.get(&(linked.table, *other));
        let others = index.zip(value).and_then(|(index, value)| index.get(value));
        others.into_iter().flatten().any(|other| self.is_there(*other, linked, columns, operands))
    }
}

impl Joined<'_> {
    /// True if every version of a row that the search may have looked at is joined and matches.
    fn is_there(&self, other: Other, linked: &Linked, columns: &[i64], operands: &[i64]) -> bool {
        self.others.looked_at.set(self.others.looked_at.get() + 1);
        let fits = |place: Option<u32>| self.fits(place, linked, columns, operands);
        // What was there before the run may be older than another snapshot had it.
        let fresh = self.resolution.description.fresh;
        let number = match other {
            Other::Unwritten(place) => return fresh && fits(Some(place)),
            Other::Written(number) => number,
        };
        let row = &self.resolution.rows[number as usize];
        if row.doubtful || self.own.contains_key(&number) {
            return false;
        }
        let writes: Vec<&Written> =
            row.writes.iter().map(|write| &self.resolution.writes[*write as usize]).collect();
        let groups: Vec<&[&Written]> = writes.chunk_by(|a, b| a.counter == b.counter).collect();
        let read = self.read.get(&number).copied();
        let seen = |group: &&[&Written]| {
            read.is_some_and(|read| group[0].counter <= Some(read))
                || group.iter().all(|write| self.has_seen(write.attempt))
        };
        let later = |group: &&[&Written]| {
            group.iter().all(|write| self.resolution.succeeds(write.attempt, self.attempt))
        };
        let first = groups.iter().rposition(seen).map_or(0, |group| group + 1);
        let end = groups.iter().position(later).unwrap_or(groups.len()) + 1;
        let fits_at = |place: usize| match place.checked_sub(1) {
            None => fresh && !row.inserted && fits(row.initial),
            Some(group) => groups[group]
                .iter()
                .all(|write| !write.is_deletion() && !write.partial && fits(write.columns)),
        };
        first < end && (first..end).all(fits_at)
    }

    /// True if a search that looked at the version in question had what an attempt committed.
    fn has_seen(&self, attempt: u32) -> bool {
        let before = |reader: u32| self.resolution.precedes(attempt, reader);
        before(self.attempt) || self.writer.is_some_and(|writer| writer == attempt || before(writer))
    }

    /// True if a version is joined to the one in question, and matches.
    fn fits(&self, place: Option<u32>, linked: &Linked, columns: &[i64], operands: &[i64]) -> bool {
        let table = self.resolution.description.tables.get(usize::from(linked.table));
        let (Some(place), Some(table)) = (place, table) else { return false };
        let others = self.resolution.values(place, table.columns.len());
        let value = |columns: &[i64], number: u16| {
            columns.get(usize::from(number)).copied().filter(|value| *value != NULL)
        };
        let equal = |(own, other): &(u16, u16)| {
            value(columns, *own).is_some() && value(columns, *own) == value(others, *other)
        };
        let text = |number: i64| self.resolution.text(number);
        linked.pairs.iter().all(equal)
            && linked.predicate.holds_with(others, operands, &text, self) == Some(true)
    }
}
