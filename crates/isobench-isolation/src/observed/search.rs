//! What searches missed.
//!
//! A search that didn't find a row looked at some version of the row that doesn't match its
//! condition, possibly the version in which the row doesn't exist. Which one is unknown, but it is
//! neither older than the first such version in the row's version order, nor newer than the last. So
//! the search follows the writers of all versions before the first one (they made a version match
//! that ceased to), and precedes those of all versions after the last one (Adya 1999, §4.2:
//! predicate-read- and predicate-anti-depends). A version of which it isn't known whether it matches
//! counts as one that doesn't.
//!
//! Two facts narrow down which version it was. It isn't older than one that the same transaction had
//! read before, or that was committed before the transaction began; and it is older than those whose
//! COMMIT was sent after the transaction's end. If the versions between don't match in one run, the
//! search follows the writer with which that run began, and precedes the one that ended it.
//!
//! A join that missed a row of one table did so because of that row, if the row of the other table that
//! it would have been joined to surely was there (`joined.rs`).
//!
//! A search for the row's absence ([`Predicate::Absent`]) that doesn't find it looked at a version in
//! which the row exists. Likewise, a row that was found and isn't shown ([`Predicate::Found`]) was in a
//! version that may match. If the key isn't known, it is that of the only row of which any version may
//! match, if one surely does: while that row isn't there, another one may be, but then it was written,
//! too, since both can't be there at once.

mod repeated;

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::joined::{Joined, Others};
use super::predicate::{Comparison, Predicate};
use super::resolution::{OwnWrites, ReadVersions, Resolution, Row, Written};
use crate::history::Key;

use repeated::Same;
pub(super) use repeated::{Counts, Repeated, WORTH};

/// The most versions that are compared with conditions.
const EFFORT: u64 = 200_000_000;

/// A search.
pub(super) struct Search<'o> {
    pub(super) table: u16,
    pub(super) predicate: u16,
    pub(super) key: Option<i64>,
    pub(super) operands: &'o [i64],
    pub(super) found: &'o [i64],
    /// The attempt that searched.
    pub(super) attempt: u32,
    /// The number of the operation in the attempt.
    pub(super) place: u64,
}

/// The counters between which the version lies that a search looked at: not older than the first,
/// older than the second.
pub(super) type Between = (Option<u64>, Option<u64>);

/// Rows by the values of a column.
type Index = FxHashMap<i64, Vec<u32>>;

/// The state of looking for what searches missed.
pub(super) struct Searches {
    /// The written rows of each table.
    rows: Vec<Vec<u32>>,
    /// By table and column.
    indexes: FxHashMap<(u16, u16), Index>,
    others: Others,
    effort: u64,
    /// Searches for which it is known what they missed.
    pub(super) done: u64,
    /// Searches for which it isn't.
    pub(super) left: u64,
    /// True if all dependencies of the last search are known: no version of a row that it may have
    /// looked at is known in part only.
    pub(super) complete: bool,
    /// For each table, true if all versions of its written rows are known wholly.
    whole: Vec<bool>,
    /// What searches have to look at that are made again and again.
    pub(super) repeated: Repeated,
}

impl Searches {
    pub(super) fn of(resolution: &Resolution) -> Searches {
        let mut rows = vec![Vec::new(); resolution.description.tables.len()];
        let mut whole = vec![true; rows.len()];
        for (number, row) in (0_u32..).zip(&resolution.rows) {
            if let Some(rows) = rows.get_mut(usize::from(row.key.table)) {
                rows.push(number);
                whole[usize::from(row.key.table)] &= is_whole(resolution, row);
            }
        }
        let (indexes, others) = (FxHashMap::default(), Others::of(resolution, &rows));
        let repeated = Repeated::default();
        Searches { rows, indexes, others, effort: EFFORT, done: 0, left: 0, complete: true, whole, repeated }
    }

    /// The rows that a search missed although some of their versions match, apart from rows that its
    /// own transaction had written.
    pub(super) fn missed(
        &mut self,
        resolution: &Resolution,
        search: &Search<'_>,
        own: &OwnWrites,
        read: &ReadVersions,
    ) -> Vec<(Key, Between)> {
        let description = &resolution.description;
        let is_closed =
            |table: u16| description.tables.get(usize::from(table)).is_some_and(|table| table.closed);
        self.complete = false;
        let Some(predicate) = description.predicates.get(usize::from(search.predicate)) else {
            return Vec::new();
        };
        let mut closed = is_closed(search.table);
        predicate.each_linked(&mut |linked| closed &= is_closed(linked.table));
        let rows = self.candidates(resolution, search, predicate);
        if !closed || description.dropped > 0 || self.effort < rows.len() as u64 {
            self.left += 1;
            return Vec::new();
        }
        self.done += 1;
        let rows = match predicate {
            Predicate::Found(_) if search.key.is_none() => {
                self.effort = self.effort.saturating_sub(rows.len() as u64);
                let others = Joined {
                    resolution,
                    others: &self.others,
                    attempt: search.attempt,
                    own,
                    read,
                    writer: None,
                };
                let matches = Matching {
                    resolution,
                    predicate,
                    operands: search.operands,
                    attempt: search.attempt,
                    others,
                };
                matches.only_row(&rows)
            }
            _ => rows,
        };
        // Of rows that other rows decide on, not all that were missed are known.
        let mut joined = matches!(predicate, Predicate::Found(_));
        predicate.each_linked(&mut |_| joined = true);
        let any = matches!(predicate, Predicate::True | Predicate::Absent);
        let whole = self.whole.get(usize::from(search.table)).copied().unwrap_or(false);
        self.complete = !joined && (search.key.is_some() || any || whole);
        let mut found = search.found.to_vec();
        found.sort_unstable();
        let mut missed = Vec::new();
        for number in rows {
            let row = &resolution.rows[number as usize];
            self.complete &= !row.doubtful && (any || whole || is_whole(resolution, row));
            if row.doubtful || own.contains_key(&number) || found.binary_search(&row.key.id).is_ok() {
                continue;
            }
            self.effort = self.effort.saturating_sub(row.writes.len() as u64);
            let Search { operands, attempt, .. } = *search;
            let others = Joined { resolution, others: &self.others, attempt, own, read, writer: None };
            let matches = Matching { resolution, predicate, operands, attempt, others };
            if let Some(between) = matches.between(row, read.get(&number).copied()) {
                missed.push((row.key, between));
            }
            self.effort = self.effort.saturating_sub(self.others.looked_at());
        }
        missed
    }

    /// The written rows that can have a version that matches.
    fn candidates(
        &mut self,
        resolution: &Resolution,
        search: &Search<'_>,
        predicate: &Predicate,
    ) -> Vec<u32> {
        if let Some(id) = search.key {
            return resolution.row(Key { table: search.table, id }).into_iter().collect();
        }
        if let Some(rows) = self.repeated.rows(search) {
            return rows.clone();
        }
        self.with_operands(resolution, search.table, predicate, search.operands)
    }

    /// The written rows that searches of a set can find.
    fn of_set(&mut self, resolution: &Resolution, set: &Same) -> Vec<u32> {
        let predicate = resolution.description.predicates.get(usize::from(set.predicate));
        let of = |predicate| self.with_operands(resolution, set.table, predicate, &set.operands);
        predicate.map(of).unwrap_or_default()
    }

    /// The written rows of a table that can have a version that matches with these operands.
    fn with_operands(
        &mut self,
        resolution: &Resolution,
        table: u16,
        predicate: &Predicate,
        operands: &[i64],
    ) -> Vec<u32> {
        let Some((column, places)) = equality(predicate, operands.len()) else {
            return self.rows.get(usize::from(table)).cloned().unwrap_or_default();
        };
        let rows = self.rows.get(usize::from(table)).map_or(&[][..], Vec::as_slice);
        let index = self
            .indexes
            .entry((table, column))
            .or_insert_with(|| index(resolution, rows, usize::from(column)));
        let values = places.iter().filter_map(|place| operands.get(usize::from(*place)));
        let mut rows: Vec<u32> = values.filter_map(|value| index.get(value)).flatten().copied().collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

/// True if the values of all versions of a row are known.
fn is_whole(resolution: &Resolution, row: &Row) -> bool {
    let known = |write: &u32| {
        let write = &resolution.writes[*write as usize];
        write.is_deletion() || write.columns.is_some() && !write.partial
    };
    !row.doubtful && (row.inserted || row.initial.is_some()) && row.writes.iter().all(known)
}

/// The column that must equal one of the operands, of which there are so many, if there is one.
fn equality(predicate: &Predicate, count: usize) -> Option<(u16, Vec<u16>)> {
    match predicate {
        Predicate::Compare { column, comparison: Comparison::Equal, operand } => {
            Some((*column, vec![*operand]))
        }
        Predicate::In { column, operands } => Some((*column, operands.clone())),
        Predicate::Among { column, first } => {
            Some((*column, (*first..u16::try_from(count).unwrap_or(u16::MAX)).collect()))
        }
        Predicate::And(parts) => parts.iter().find_map(|part| equality(part, count)),
        _ => None,
    }
}

fn index(resolution: &Resolution, rows: &[u32], column: usize) -> Index {
    let mut index = Index::default();
    for &number in rows {
        let row = &resolution.rows[number as usize];
        let written = row.writes.iter().filter_map(|write| resolution.writes[*write as usize].columns);
        for place in written.chain(row.initial) {
            if let Some(value) = resolution.values(place, column + 1).get(column) {
                let rows = index.entry(*value).or_default();
                if rows.last() != Some(&number) {
                    rows.push(number);
                }
            }
        }
    }
    index
}

/// True if the writer of the first of these versions also wrote the next one.
fn replaced_by_itself(groups: &[&[&Written]]) -> bool {
    let [first, next, ..] = groups else { return false };
    first.iter().any(|write| next.iter().any(|later| later.attempt == write.attempt))
}

/// A search's condition with its operands.
struct Matching<'a> {
    resolution: &'a Resolution,
    predicate: &'a Predicate,
    operands: &'a [i64],
    attempt: u32,
    others: Joined<'a>,
}

impl Matching<'_> {
    /// The limits of the version that was looked at; `None` if nothing follows from it. `read` is the
    /// counter of the version of the row that the transaction had read before.
    fn between(&self, row: &Row, read: Option<u64>) -> Option<Between> {
        let writes: Vec<&Written> =
            row.writes.iter().map(|write| &self.resolution.writes[*write as usize]).collect();
        let groups: Vec<&[&Written]> = writes.chunk_by(|a, b| a.counter == b.counter).collect();
        groups.first()?;
        // Versions by place: 0 is the initial one, the others are those of the groups.
        let absent = *self.predicate == Predicate::Absent;
        let found = self.found();
        let initial_misses = if absent || found.is_some() {
            !row.inserted && found.is_none_or(|found| self.may_match(row, found, row.initial))
        } else {
            row.inserted || !self.matches(row, row.initial, None)
        };
        let misses = |place: usize| match (place.checked_sub(1), found) {
            (None, _) => initial_misses,
            (Some(group), Some(found)) => {
                groups[group].iter().any(|write| self.may_be_found(row, found, write))
            }
            // What its writer replaced itself was never to be found by others.
            (Some(group), None) => {
                replaced_by_itself(&groups[group..])
                    || !groups[group].iter().all(|write| self.written(row, write))
            }
        };
        let among = |places: Range<usize>| {
            let first = places.clone().find(|place| misses(*place))?;
            Some((first, places.rev().find(|place| misses(*place))?))
        };
        // If it should have been found, the server may have looked at a version that it mustn't.
        let looked_at = self.lowest(&groups, read)..self.end(&groups);
        let (first, last) = among(looked_at).or_else(|| among(0..groups.len() + 1))?;
        let began = (0..=first).rev().take_while(|place| misses(*place)).last().unwrap_or(first);
        let ended = (last + 1..=groups.len()).find(|place| !misses(*place));
        let counter = |place: usize| place.checked_sub(1).and_then(|group| groups[group][0].counter);
        let alone = |place: usize| place.checked_sub(1).is_none_or(|group| groups[group].len() == 1);
        let after = if alone(began) { counter(began) } else { counter(began - 1) };
        let others = |place: &usize| groups[place - 1].iter().any(|write| write.attempt != self.attempt);
        let before = ended.filter(others).and_then(counter);
        (after.is_some() || before.is_some()).then_some((after, before))
    }

    /// The condition of a row that was found and isn't shown.
    fn found(&self) -> Option<&Predicate> {
        match self.predicate {
            Predicate::Found(inner) => Some(inner),
            _ => None,
        }
    }

    /// The only one of these rows of which a version may match, if one surely does.
    fn only_row(&self, rows: &[u32]) -> Vec<u32> {
        let Some(found) = self.found() else { return Vec::new() };
        let mut only = Vec::new();
        for &number in rows {
            let row = &self.resolution.rows[number as usize];
            let writes = || row.writes.iter().map(|write| &self.resolution.writes[*write as usize]);
            let initial = !row.inserted && self.may_match(row, found, row.initial);
            if row.doubtful || initial || writes().any(|write| self.may_be_found(row, found, write)) {
                only.push(number);
            }
        }
        let surely = |number: &u32| {
            let row = &self.resolution.rows[*number as usize];
            let sure = |columns: Option<u32>| self.truth(row, found, columns) == Some(true);
            let mut writes = row.writes.iter().map(|write| &self.resolution.writes[*write as usize]);
            !row.inserted && sure(row.initial)
                || writes.any(|write| !write.is_deletion() && !write.partial && sure(write.columns))
        };
        if only.len() == 1 && surely(&only[0]) { only } else { Vec::new() }
    }

    /// True if a written version may match a condition.
    fn may_be_found(&self, row: &Row, found: &Predicate, write: &Written) -> bool {
        !write.is_deletion() && (write.partial || self.may_match(row, found, write.columns))
    }

    /// True if a version with these columns may match a condition.
    fn may_match(&self, row: &Row, found: &Predicate, columns: Option<u32>) -> bool {
        self.truth(row, found, columns) != Some(false)
    }

    /// The truth of a condition for a version; `None` if it isn't known, or NULL.
    fn truth(&self, row: &Row, condition: &Predicate, columns: Option<u32>) -> Option<bool> {
        let count = self.resolution.description.tables[usize::from(row.key.table)].columns.len();
        let columns = self.resolution.values(columns?, count);
        if columns.is_empty() {
            return None;
        }
        let text = |number: i64| self.resolution.text(number);
        condition.holds_with(columns, self.operands, &text, &self.others)
    }

    /// The place of the oldest version that may have been looked at.
    fn lowest(&self, groups: &[&[&Written]], read: Option<u64>) -> usize {
        let known = |group: &&[&Written]| {
            read.is_some_and(|read| group[0].counter <= Some(read))
                || group.iter().all(|write| self.resolution.precedes(write.attempt, self.attempt))
        };
        groups.iter().rposition(known).map_or(0, |group| group + 1)
    }

    /// The place after the newest version that may have been looked at.
    fn end(&self, groups: &[&[&Written]]) -> usize {
        let later = |group: &&[&Written]| {
            group.iter().all(|write| self.resolution.succeeds(write.attempt, self.attempt))
        };
        groups.iter().position(later).map_or(groups.len(), |group| group) + 1
    }

    /// True if a version is known to match, and those of the same transaction that were left out
    /// aren't of interest. (PostgreSQL at read committed: an UPDATE that waits for a transaction which
    /// deletes the row and inserts it again doesn't find it.)
    fn written(&self, row: &Row, write: &Written) -> bool {
        if *self.predicate == Predicate::Absent {
            return write.is_deletion();
        }
        !write.is_deletion() && !write.partial && self.matches(row, write.columns, Some(write.attempt))
    }

    /// True if a version with these columns, of this writer, is known to match.
    fn matches(&self, row: &Row, columns: Option<u32>, writer: Option<u32>) -> bool {
        let description = &self.resolution.description;
        let count = description.tables[usize::from(row.key.table)].columns.len();
        let columns = columns.map_or(&[][..], |place| self.resolution.values(place, count));
        // Without its columns a version matches only a condition that every row fulfils.
        if columns.is_empty() && *self.predicate != Predicate::True {
            return false;
        }
        let text = |number: i64| self.resolution.text(number);
        let others = Joined { writer, ..self.others };
        self.predicate.holds_with(columns, self.operands, &text, &others) == Some(true)
    }
}
