//! Searches that are repeated: the rows of which each of them says something new.
//!
//! Where a set is deleted and inserted again all the time, each search for it misses all rows that ever
//! were in it, so that what is missed grows with the square of the transactions. Nearly all of it follows
//! from other searches for the same:
//!
//! - A row was deleted before an earlier search for the same began, and the transaction of that one
//!   deleted another such row before this search began. The first deletion precedes that transaction, and
//!   that transaction precedes this search.
//! - A row was inserted after this search, by a transaction that had searched for the same before, and
//!   that began after another one had inserted a row after this search. The search precedes the first
//!   insertion, and that one precedes the second transaction.
//!
//! So paths of dependencies remain, with as many anti-dependencies as before, none of which is beside
//! another one that it wasn't beside before; and with them the cycles of which phenomena consist (Adya
//! 1999, §4.2). Rows of which this isn't certain are left to each search: those that were updated, or are
//! known in part; and searches that found what was gone, or didn't find what was there.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::log::{Chunk, ObservedOperation, damaged};
use super::super::predicate::Predicate;
use super::super::resolution::{Attempt, OwnWrites, ReadVersions, Resolution};
use super::{Joined, Matching, Others, Search, Searches, is_whole};
use crate::history::{FormatError, Key, TransactionOutcome};

/// The fewest searches for the same that are worth it, times the rows that they can find.
pub(in super::super) const WORTH: u64 = 50_000;

/// The fewest of them.
const REPETITIONS: u64 = 10;

/// The most different searches that are counted, and the most rows that are kept of repeated ones: those
/// that they saw, and those that they have to look at.
const MOST_COUNTED: usize = 1 << 18;
const MOST_ROWS: usize = 1 << 24;

/// What searches for the same have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Same {
    pub(super) table: u16,
    pub(super) predicate: u16,
    pub(super) operands: Vec<i64>,
}

/// The searches that are looked at together, with the rows that they can find.
type Sets = FxHashMap<Same, (Vec<u32>, Vec<Repetition>)>;

/// How often is searched for the same; of very many different searches, of those that came first.
#[derive(Debug, Default)]
pub(in super::super) struct Counts {
    searches: FxHashMap<Same, u64>,
}

impl Counts {
    /// Counts a search.
    pub(in super::super) fn add(&mut self, table: u16, predicate: u16, operands: &[i64]) {
        let same = Same { table, predicate, operands: operands.to_vec() };
        if let Some(count) = self.searches.get_mut(&same) {
            *count += 1;
        } else if self.searches.len() < MOST_COUNTED {
            self.searches.insert(same, 1);
        }
    }
}

/// The rows that repeated searches have to look at.
#[derive(Debug, Default)]
pub(in super::super) struct Repeated {
    /// By the attempt, and the number of the operation in it.
    rows: FxHashMap<(u32, u64), Vec<u32>>,
}

impl Repeated {
    /// The rows that a search has to look at; `None` if these are all that can match.
    pub(super) fn rows(&self, search: &Search<'_>) -> Option<&Vec<u32>> {
        self.rows.get(&(search.attempt, search.place))
    }

    /// Finds out what repeated searches have to look at.
    ///
    /// # Errors
    /// A chunk can't be read.
    pub(in super::super) fn of<I, B>(
        resolution: &Resolution,
        searches: &mut Searches,
        counts: Counts,
        worth: u64,
        chunks: impl FnOnce() -> Result<I, FormatError>,
    ) -> Result<Repeated, FormatError>
    where
        I: Iterator<Item = Result<B, FormatError>>,
        B: AsRef<[u8]>,
    {
        let mut repeated = Repeated::default();
        if !resolution.description.fresh || resolution.snapshots.are_known() {
            return Ok(repeated);
        }
        let mut sets: Sets = FxHashMap::default();
        for (same, count) in counts.searches {
            if count >= REPETITIONS && is_plain(resolution, &same) {
                let rows = searches.of_set(resolution, &same);
                if (rows.len() as u64).saturating_mul(count) >= worth {
                    sets.insert(same, (rows, Vec::new()));
                }
            }
        }
        if sets.is_empty() {
            return Ok(repeated);
        }
        let (mut number, mut seen) = (0, 0);
        for chunk in chunks()? {
            seen += gather(resolution, chunk?.as_ref(), &mut number, &mut sets).map_err(damaged)?;
            if seen > MOST_ROWS {
                return Ok(repeated);
            }
        }
        let mut left = MOST_ROWS;
        for (same, (rows, repetitions)) in sets {
            let Some(set) = Set::of(resolution, &same, rows, &repetitions) else { continue };
            for repetition in &set.certain {
                if let Some(rows) = set.rows(repetition).filter(|rows| rows.len() <= left) {
                    left -= rows.len();
                    repeated.rows.insert((repetition.attempt, repetition.place), rows);
                }
            }
        }
        Ok(repeated)
    }
}

/// True if only a row's own columns decide whether it is found, and all its table's writes are known.
fn is_plain(resolution: &Resolution, same: &Same) -> bool {
    let description = &resolution.description;
    let Some(predicate) = description.predicates.get(usize::from(same.predicate)) else { return false };
    let mut plain = !matches!(predicate, Predicate::Found(_) | Predicate::Absent);
    predicate.each_linked(&mut |_| plain = false);
    plain && description.tables.get(usize::from(same.table)).is_some_and(|table| table.closed)
}

/// One of the searches for the same.
struct Repetition {
    attempt: u32,
    place: u64,
    begin: u64,
    end: u64,
    /// The written rows that it found, or that its transaction had written before; sorted.
    seen: Vec<u32>,
    /// True if what it missed counts even in the part of the history that transactions used.
    used: bool,
}

/// Reads a chunk for searches for the same. Returns the number of rows that these saw.
fn gather(
    resolution: &Resolution,
    chunk: &[u8],
    number: &mut u32,
    sets: &mut Sets,
) -> Result<usize, &'static str> {
    let mut chunk = Chunk::new(chunk);
    let (mut own, mut rows_seen) = (BTreeSet::new(), 0);
    while let Some((transaction, operations)) = chunk.attempt()? {
        own.clear();
        for place in 0..operations {
            let (operation, statement) = chunk.operation()?;
            match operation {
                ObservedOperation::Write { key, .. } | ObservedOperation::Delete { key, .. } => {
                    own.extend(resolution.row(key));
                }
                ObservedOperation::Search { table, predicate, key: None, operands, found }
                    if transaction.outcome == TransactionOutcome::Committed =>
                {
                    let same = Same { table, predicate, operands: operands.to_vec() };
                    let Some((_, set)) = sets.get_mut(&same) else { continue };
                    let rows = found.iter().filter_map(|id| resolution.row(Key { table, id: *id }));
                    let mut seen: Vec<u32> = rows.chain(own.iter().copied()).collect();
                    seen.sort_unstable();
                    seen.dedup();
                    rows_seen += seen.len();
                    let usage = &resolution.description.usage;
                    let known = usage.get(usize::from(statement));
                    let used = usage.is_empty()
                        || known.is_some_and(|known| known.writes || known.product || known.flows());
                    let Attempt { begin, end, .. } = resolution.attempts[*number as usize];
                    set.push(Repetition { attempt: *number, place, begin, end, seen, used });
                }
                _ => {}
            }
        }
        *number += 1;
    }
    Ok(rows_seen)
}

/// A row that was inserted at most once and deleted at most once, and matched in between.
#[derive(Debug, Clone, Copy)]
struct Life {
    /// The attempt that inserted it; `None` if it existed before the run.
    birth: Option<u32>,
    /// The attempt that deleted it.
    death: Option<u32>,
}

/// The insertion or deletion of a row, with the times of its attempt.
#[derive(Debug, Clone, Copy)]
struct Event {
    row: u32,
    attempt: u32,
    begin: u64,
    sent: u64,
    end: u64,
}

/// The rows that searches for the same can find.
struct Set<'a> {
    resolution: &'a Resolution,
    /// The searches that are certain.
    certain: Vec<&'a Repetition>,
    size: usize,
    lives: FxHashMap<u32, Life>,
    /// The rows that every search looks at.
    others: Vec<u32>,
    /// The number of rows with lives that existed before the run.
    initial: usize,
    /// In the order of the ends.
    births: Vec<Event>,
    deaths: Vec<Event>,
    /// The instants at which the COMMITs of deletions hadn't been sent, in order.
    deaths_sent: Vec<u64>,
    /// Births in the order of those instants, with the earliest end from each one on.
    births_sent: Vec<(u64, u64)>,
    /// Births by attempts that had searched for the same, in the order of their beginnings; and the others
    /// in that of the instants.
    linked: Vec<Event>,
    unlinked: Vec<Event>,
    /// The ends of attempts that had searched for the same and deleted a row, in order; with the latest
    /// beginning of all up to there.
    links: Vec<(u64, u64)>,
    /// No attempt took longer, nor is the order of a row's instants wrong by more.
    longest: u64,
}

impl<'a> Set<'a> {
    /// `None` if nothing is gained.
    fn of(
        resolution: &'a Resolution,
        same: &Same,
        rows: Vec<u32>,
        repetitions: &'a [Repetition],
    ) -> Option<Set<'a>> {
        let mut set = Set {
            resolution,
            certain: Vec::new(),
            size: rows.len(),
            lives: FxHashMap::default(),
            others: Vec::new(),
            initial: 0,
            births: Vec::new(),
            deaths: Vec::new(),
            deaths_sent: Vec::new(),
            births_sent: Vec::new(),
            linked: Vec::new(),
            unlinked: Vec::new(),
            links: Vec::new(),
            longest: 0,
        };
        for row in rows {
            match life(resolution, same, row) {
                Some(life) => set.add(row, life)?,
                None => set.others.push(row),
            }
        }
        set.births.sort_by_key(|event| event.end);
        set.deaths.sort_by_key(|event| event.end);
        set.deaths_sent = set.deaths.iter().map(|event| event.sent).collect();
        set.deaths_sent.sort_unstable();
        set.births_sent = set.births.iter().map(|event| (event.sent, event.end)).collect();
        set.births_sent.sort_unstable();
        let mut earliest = u64::MAX;
        for (_, end) in set.births_sent.iter_mut().rev() {
            earliest = earliest.min(*end);
            *end = earliest;
        }
        set.certain = repetitions.iter().filter(|repetition| set.is_certain(repetition)).collect();
        set.link();
        Some(set)
    }

    /// `None` if it has no times.
    fn add(&mut self, row: u32, life: Life) -> Option<()> {
        let event = |attempt: u32| {
            let Attempt { begin, sent, end, .. } = self.resolution.attempts[attempt as usize];
            (begin > 0).then_some(Event { row, attempt, begin, sent, end })
        };
        let (mut born, mut sent) = (None, 0);
        if let Some(birth) = life.birth {
            let event = event(birth)?;
            sent = event.sent;
            born = Some(event);
        }
        if let Some(death) = life.death {
            let event = event(death)?;
            let wrong = sent.saturating_sub(event.sent);
            self.longest = self.longest.max(event.end.saturating_sub(event.begin)).max(wrong);
            self.deaths.push(event);
        }
        match born {
            Some(event) => {
                self.longest = self.longest.max(event.end.saturating_sub(event.begin));
                self.births.push(event);
            }
            None => self.initial += 1,
        }
        self.lives.insert(row, life);
        Some(())
    }

    /// Finds the attempts that follow all who wrote such rows before they began, by their searches.
    fn link(&mut self) {
        let used = self.certain.iter().filter(|repetition| repetition.used);
        let searched: FxHashSet<u32> = used.map(|repetition| repetition.attempt).collect();
        (self.linked, self.unlinked) =
            self.births.iter().partition(|event| searched.contains(&event.attempt));
        self.linked.sort_by_key(|event| event.begin);
        self.unlinked.sort_by_key(|event| event.sent);
        let mut latest = 0;
        for event in self.deaths.iter().filter(|event| searched.contains(&event.attempt)) {
            latest = latest.max(event.begin);
            self.links.push((event.end, latest));
        }
    }

    /// True if a search saw no row that surely was gone or not yet there, and each that surely was there.
    fn is_certain(&self, search: &Repetition) -> bool {
        let attempt = search.attempt;
        let precedes = |writer: u32| self.resolution.precedes(writer, attempt);
        let succeeds = |writer: u32| self.resolution.succeeds(writer, attempt);
        let mut seen = 0;
        for Life { birth, death } in search.seen.iter().filter_map(|row| self.lives.get(row)) {
            if death.is_some_and(precedes) || birth.is_some_and(succeeds) {
                return false;
            }
            seen += usize::from(birth.is_none_or(precedes) && death.is_none_or(succeeds));
        }
        // All that were born before, without those that died before the end; of these, without those that
        // were born while it went on.
        let born = self.initial + self.births.partition_point(|event| event.end < search.begin);
        let died = self.deaths_sent.partition_point(|sent| *sent <= search.end);
        let between = self.during(&self.births, search).filter(|event| {
            let death = self.lives.get(&event.row).and_then(|life| life.death);
            !precedes(event.attempt) && death.is_some_and(|death| !succeeds(death))
        });
        born + between.count() == seen + died
    }

    /// The events that a search may or may not have seen, and more; of events in the order of the ends.
    fn during<'s>(&self, events: &'s [Event], search: &Repetition) -> impl Iterator<Item = &'s Event> {
        let from = events.partition_point(|event| event.end < search.begin);
        let last = search.end.saturating_add(self.longest);
        let (to, end) = (events.partition_point(|event| event.end <= last), search.end);
        events[from..to.max(from)].iter().filter(move |event| event.sent <= end)
    }

    /// The rows that a certain search has to look at; `None` if these are (nearly) all.
    fn rows(&self, search: &Repetition) -> Option<Vec<u32>> {
        let mut rows = self.others.clone();
        let mut add = |event: &Event| rows.push(event.row);
        // What had been deleted before it began, but not before the last one that follows all before it.
        let links = self.links.partition_point(|(end, _)| *end < search.begin);
        let since = links.checked_sub(1).map_or(0, |last| self.links[last].1);
        let from = self.deaths.partition_point(|event| event.end < since);
        let to = self.deaths.partition_point(|event| event.end < search.begin);
        self.deaths[from..to].iter().for_each(&mut add);
        self.during(&self.deaths, search).for_each(&mut add);
        self.during(&self.births, search).for_each(&mut add);
        // What was inserted after it had ended, but not after one that all others follow.
        let first = self.births_sent.partition_point(|(sent, _)| *sent <= search.end);
        if let Some((_, until)) = self.births_sent.get(first) {
            let earliest = search.end.saturating_sub(self.longest);
            let from = self.linked.partition_point(|event| event.begin < earliest);
            let to = self.linked.partition_point(|event| event.begin <= *until);
            let later = |event: &&Event| event.sent > search.end;
            self.linked[from..to.max(from)].iter().filter(later).for_each(&mut add);
            let from = self.unlinked.partition_point(|event| event.sent <= search.end);
            self.unlinked[from..].iter().for_each(&mut add);
        }
        rows.sort_unstable();
        rows.dedup();
        (rows.len() * 2 <= self.size).then_some(rows)
    }
}

/// The life of a row that always matched; `None` if it was updated, or isn't known wholly.
fn life(resolution: &Resolution, same: &Same, number: u32) -> Option<Life> {
    let row = &resolution.rows[number as usize];
    if row.doubtful || !is_whole(resolution, row) {
        return None;
    }
    let predicate = resolution.description.predicates.get(usize::from(same.predicate))?;
    let (own, read, others) = (OwnWrites::default(), ReadVersions::default(), Others::default());
    let others = Joined { resolution, others: &others, attempt: 0, own: &own, read: &read, writer: None };
    let matching = Matching { resolution, predicate, operands: &same.operands, attempt: 0, others };
    let write = |place: usize| row.writes.get(place).map(|write| &resolution.writes[*write as usize]);
    let inserted = write(0).filter(|first| row.inserted && !first.is_deletion());
    let matches = match inserted {
        Some(first) => !first.partial && matching.matches(row, first.columns, Some(first.attempt)),
        None => !row.inserted && matching.matches(row, row.initial, None),
    };
    let deleted = write(usize::from(inserted.is_some())).map(|last| (last, last.is_deletion()));
    let ends = row.writes.len() == usize::from(inserted.is_some()) + usize::from(deleted.is_some());
    if !matches || !ends || deleted.is_some_and(|(_, is_deletion)| !is_deletion) {
        return None;
    }
    let (birth, death) = (inserted.map(|first| first.attempt), deleted.map(|(last, _)| last.attempt));
    let apart = inserted
        .zip(deleted)
        .is_none_or(|(first, (last, _))| first.attempt != last.attempt && first.counter != last.counter);
    (apart && (birth.is_some() || death.is_some())).then_some(Life { birth, death })
}

#[cfg(test)]
mod tests;
