//! Whose commits each transaction's snapshot had, and which tables a transaction may have read
//! without showing it.
//!
//! At repeatable read and above a transaction reads from one snapshot, which the server names:
//! numbers of transactions below which all had ended, from which on none had begun, and those
//! between that were under way (PostgreSQL: `pg_current_snapshot()`, with top-level transactions
//! only). So another transaction's writes were visible exactly if it committed, and its number is
//! below the end and not among those under way.
//!
//! The snapshots of one server contain one another, because a snapshot is taken and a transaction
//! ends under the same lock (PostgreSQL: `ProcArrayLock`). This puts commits into an order, as far
//! as snapshots tell them apart. The positions of commits in the write-ahead log don't: a transaction
//! is visible only some time after its commit record is written.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::ObservedDescription;
use crate::history::TransactionOutcome;
use crate::history::visibility::{MayRead, Seen, Visibility};

/// A transaction's snapshot, as the server named it: the lower 32 bits of numbers of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenSnapshot<'o> {
    /// The number of the transaction itself; `None` if it hadn't any, because it hadn't written.
    pub own: Option<u32>,
    /// Transactions with this number or a higher one hadn't begun.
    pub next: u32,
    /// Transactions with lower numbers that were under way, in ascending order.
    pub active: &'o [i64],
}

/// A snapshot, with numbers counted from the horizon.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snapshot {
    next: i64,
    active: Vec<i64>,
}

impl Snapshot {
    fn sees(&self, transaction: i64) -> bool {
        transaction < self.next && self.active.binary_search(&transaction).is_err()
    }

    /// A number that is larger for a snapshot that has more, and the same only for the same one.
    fn extent(&self) -> i64 {
        self.next - i64::try_from(self.active.len()).unwrap_or(i64::MAX)
    }

    /// True if a later snapshot has everything that this one has.
    fn is_within(&self, later: &Snapshot) -> bool {
        let known = |active: &i64| *active >= self.next || self.active.binary_search(active).is_ok();
        self.next <= later.next && later.active.iter().all(known)
    }
}

/// What is known of an attempt.
#[derive(Debug, Clone, Copy)]
struct Noted {
    script: u16,
    /// The place of its snapshot among those collected, and later among all in order.
    snapshot: Option<u32>,
    /// Its number, counted from the horizon.
    own: Option<i64>,
    /// It searched what isn't known, in addition: the number of what it may have read.
    further: Option<u32>,
}

/// The snapshots of a log's attempts.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    horizon: u32,
    noted: FxHashMap<u32, Noted>,
    collected: Vec<Snapshot>,
    further: Vec<BTreeSet<u16>>,
    /// Two snapshots each have something that the other one doesn't.
    contradictory: bool,
}

impl Snapshots {
    pub(super) fn new(horizon: u32) -> Snapshots {
        Snapshots { horizon, ..Snapshots::default() }
    }

    fn place(&self, transaction: u32) -> i64 {
        i64::from(transaction.wrapping_sub(self.horizon).cast_signed())
    }

    /// Notes the script of an attempt, and its snapshot if it has shown one.
    pub(super) fn note(&mut self, attempt: u32, script: u16, taken: Option<TakenSnapshot<'_>>) {
        let own = taken.and_then(|taken| taken.own).map(|own| self.place(own));
        let snapshot = taken.map(|taken| {
            let active = taken.active.iter().filter_map(|active| u32::try_from(*active).ok());
            let mut active: Vec<i64> = active.map(|active| self.place(active)).collect();
            let next = self.place(taken.next);
            // The server leaves the transaction itself out, which may have a number already.
            let itself = own.filter(|own| *own < next);
            if let Some((own, Err(place))) = itself.map(|own| (own, active.binary_search(&own))) {
                active.insert(place, own);
            }
            self.collected.push(Snapshot { next, active });
            u32::try_from(self.collected.len() - 1).unwrap_or(u32::MAX)
        });
        self.noted.insert(attempt, Noted { script, snapshot, own, further: None });
    }

    /// Notes that it isn't known what a search of an attempt missed in a table.
    pub(super) fn note_search(&mut self, attempt: u32, table: u16) {
        let Some(noted) = self.noted.get_mut(&attempt) else { return };
        let next = u32::try_from(self.further.len()).unwrap_or(u32::MAX);
        let place = *noted.further.get_or_insert(next);
        if place == next {
            self.further.push(BTreeSet::new());
        }
        if let Some(tables) = self.further.get_mut(place as usize) {
            tables.insert(table);
        }
    }

    /// Puts the snapshots in order. From then on it is known what they have.
    pub(super) fn order(&mut self) {
        let mut places: Vec<u32> = (0..u32::try_from(self.collected.len()).unwrap_or(u32::MAX)).collect();
        places.sort_by_key(|place| self.collected[*place as usize].extent());
        let mut ordered: Vec<Snapshot> = Vec::new();
        let mut of = vec![0; places.len()];
        for place in places {
            let snapshot = &self.collected[place as usize];
            if ordered.last() != Some(snapshot) {
                self.contradictory |= ordered.last().is_some_and(|last| !last.is_within(snapshot));
                ordered.push(snapshot.clone());
            }
            of[place as usize] = u32::try_from(ordered.len() - 1).unwrap_or(u32::MAX);
        }
        for noted in self.noted.values_mut() {
            noted.snapshot = noted.snapshot.and_then(|place| of.get(place as usize).copied());
        }
        self.collected = ordered;
    }

    /// The place of the first snapshot that has what a transaction wrote; after all of them if none
    /// has.
    fn appears(&self, transaction: i64) -> u32 {
        let place = self.collected.partition_point(|snapshot| !snapshot.sees(transaction));
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// Whether the snapshot of one attempt has what another one committed; `None` if the snapshots
    /// don't say.
    pub(super) fn sees(&self, reader: u32, writer: u32) -> Option<bool> {
        if self.contradictory {
            return None;
        }
        let snapshot = self.noted.get(&reader)?.snapshot?;
        let own = self.noted.get(&writer)?.own?;
        Some(self.collected.get(snapshot as usize)?.sees(own))
    }

    /// True if no attempt has been noted.
    pub(super) fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// True if any attempt has shown its snapshot.
    pub(super) fn are_known(&self) -> bool {
        !self.collected.is_empty()
    }

    /// What follows for the attempts, which have these outcomes and, where it is known from rows,
    /// these numbers. `covered` has the tables all of whose writes are known.
    pub(super) fn visibility(
        &self,
        description: &ObservedDescription,
        attempts: &[(TransactionOutcome, Option<u32>)],
        covered: &BTreeSet<u16>,
    ) -> Visibility {
        let mut sets: BTreeMap<MayRead, u32> = BTreeMap::new();
        let mut why_not =
            self.contradictory.then(|| "the server's snapshots contradict each other".to_owned());
        let mut unasked = 0_u64;
        let mut seen = Vec::with_capacity(attempts.len());
        for (attempt, (outcome, number)) in (0_u32..).zip(attempts) {
            let noted = self.noted.get(&attempt);
            let mut may_read = noted
                .and_then(|noted| description.may_read.get(usize::from(noted.script)))
                .cloned()
                .unwrap_or_default();
            let further = noted.and_then(|noted| self.further.get(noted.further? as usize));
            further.into_iter().flatten().for_each(|table| may_read.add(*table));
            let snapshot = noted.and_then(|noted| noted.snapshot);
            let committed = *outcome == TransactionOutcome::Committed;
            unasked += u64::from(committed && may_read != MayRead::Nothing && snapshot.is_none());
            let own = noted.and_then(|noted| noted.own).or_else(|| number.map(|own| self.place(own)));
            let next = u32::try_from(sets.len()).unwrap_or(u32::MAX);
            let may_read = *sets.entry(may_read).or_insert(next);
            let appears = own.map_or(u32::MAX, |own| self.appears(own));
            seen.push(Seen { snapshot, appears, may_read });
        }
        let mut may_read = vec![MayRead::Nothing; sets.len()];
        for (set, number) in sets {
            if let Some(place) = may_read.get_mut(number as usize) {
                *place = set;
            }
        }
        if unasked > 0 {
            why_not.get_or_insert_with(|| {
                format!(
                    "{unasked} transactions couldn't be asked for their snapshots, because they ended in another way \
                     than by a COMMIT of its own, or ran at a lower level"
                )
            });
        }
        if let Some(table) = unknown_table(description, &may_read, covered) {
            why_not.get_or_insert_with(|| format!("the log doesn't have the writes of table {table}"));
        }
        Visibility { seen, may_read, why_not }
    }
}

/// A table that may be read unseen, and may be written without being in the log.
fn unknown_table<'d>(
    description: &'d ObservedDescription,
    may_read: &[MayRead],
    covered: &BTreeSet<u16>,
) -> Option<&'d str> {
    let read = |table: u16| {
        may_read.iter().any(|set| match set {
            MayRead::Nothing => false,
            MayRead::Tables(tables) => tables.contains(&table),
            MayRead::Anything => true,
        })
    };
    let mut tables = (0_u16..).zip(&description.tables);
    tables
        .find(|(number, _)| !covered.contains(number) && read(*number))
        .map(|(_, table)| table.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshots(taken: &[(u32, Option<u32>, u32, &[i64])]) -> Snapshots {
        let mut snapshots = Snapshots::new(700);
        for (attempt, own, next, active) in taken {
            snapshots.note(*attempt, 0, Some(TakenSnapshot { own: *own, next: *next, active }));
        }
        snapshots.order();
        snapshots
    }

    #[test]
    fn a_commit_is_seen_below_the_end_and_not_under_way() {
        let found = snapshots(&[
            (0, Some(737), 737, &[]),
            (1, Some(738), 737, &[]),
            (2, Some(740), 740, &[738]),
            (3, None, 741, &[740]),
        ]);
        assert!(!found.contradictory);
        assert_eq!(found.sees(0, 1), Some(false));
        assert_eq!(found.sees(1, 0), Some(false));
        assert_eq!((found.sees(2, 0), found.sees(2, 1)), (Some(true), Some(false)));
        assert_eq!((found.sees(3, 1), found.sees(3, 2)), (Some(true), Some(false)));
        assert_eq!(found.sees(2, 3), None, "it wrote nothing");
    }

    #[test]
    fn a_transaction_is_under_way_in_its_own_snapshot() {
        // Its number is older than its snapshot, in which the server doesn't list it.
        let found = snapshots(&[(0, Some(705), 710, &[]), (1, Some(710), 710, &[705])]);
        assert!(!found.contradictory);
        assert_eq!((found.sees(1, 0), found.sees(0, 1)), (Some(false), Some(false)));
    }

    #[test]
    fn numbers_wrap_around() {
        let mut found = Snapshots::new(u32::MAX - 1);
        found.note(0, 0, Some(TakenSnapshot { own: Some(u32::MAX), next: u32::MAX, active: &[] }));
        found.note(1, 0, Some(TakenSnapshot { own: Some(4), next: 4, active: &[3] }));
        found.order();
        assert_eq!((found.sees(1, 0), found.sees(0, 1)), (Some(true), Some(false)));
    }

    #[test]
    fn snapshots_that_do_not_contain_one_another_prove_nothing() {
        let found = snapshots(&[(0, Some(710), 710, &[705]), (1, Some(711), 710, &[706, 707])]);
        assert!(found.contradictory);
        assert_eq!(found.sees(0, 1), None);
        let described = ObservedDescription { may_read: vec![MayRead::Anything], ..Default::default() };
        let committed = (TransactionOutcome::Committed, None);
        let visibility = found.visibility(&described, &[committed, committed], &BTreeSet::new());
        assert!(visibility.why_not.is_some_and(|why| why.contains("contradict")));
    }

    #[test]
    fn what_was_not_asked_and_what_is_not_in_the_log_clears_nothing() {
        let table = |name: &str| super::super::ObservedTable {
            name: name.to_owned(),
            key: super::super::KeyForm::Numbered,
            columns: Vec::new(),
            closed: true,
        };
        let described = ObservedDescription {
            tables: vec![table("a"), table("b")],
            may_read: vec![MayRead::Tables(BTreeSet::from([1])), MayRead::Nothing],
            ..ObservedDescription::default()
        };
        let committed = (TransactionOutcome::Committed, None);
        let why = |found: &Snapshots, covered: &[u16]| {
            found.visibility(&described, &[committed], &covered.iter().copied().collect()).why_not
        };
        let asked = snapshots(&[(0, None, 710, &[])]);
        assert_eq!(why(&asked, &[1]), None, "table a isn't read unseen");
        assert!(why(&asked, &[0]).is_some_and(|why| why.ends_with("table b")));
        let mut unasked = Snapshots::new(700);
        unasked.note(0, 0, None);
        unasked.order();
        assert!(why(&unasked, &[1]).is_some_and(|why| why.contains("couldn't be asked")));
        let mut seen_wholly = Snapshots::new(700);
        seen_wholly.note(0, 1, None);
        seen_wholly.order();
        assert_eq!(why(&seen_wholly, &[1]), None);
    }
}
