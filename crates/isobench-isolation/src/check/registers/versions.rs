//! The versions of one row, to be looked up by counter and by value.

use super::super::dependencies::{Node, Place};
use super::super::scene::Scene;
use super::super::standing::Standing;
use crate::history::{Operation, Version};

/// A version that a transaction wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) version: Version,
    pub(super) place: Place,
    /// True if its writer did not overwrite it.
    pub(super) last: bool,
}

impl Written {
    pub(super) fn counter(&self) -> u64 {
        self.version.counter.unwrap_or(0)
    }
}

/// Which version was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    Initial,
    /// An index into the chain.
    Chain(usize),
    /// An index into the loose versions.
    Loose(usize),
}

/// The versions of one row.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Of committed transactions, by counter.
    pub(super) chain: Vec<Written>,
    /// Where the chain's counters change; empty if no two are alike.
    pub(super) groups: Vec<usize>,
    /// By counter, from the lowest: its first index in the chain; empty if there are big gaps.
    pub(super) dense: Vec<u32>,
    /// Of committed transactions, without counters.
    pub(super) loose: Vec<Written>,
    /// Of aborted ones.
    pub(super) aborted: Others,
    /// Of ones of unknown outcome.
    pub(super) unsure: Others,
    /// Versions that their own writers overwrote with a lower counter, or the same.
    pub(super) backward: Vec<Place>,
    /// True if someone wrote a version of which no counter is known, no value, and neither.
    pub(super) unknown: (bool, bool, bool),
    /// Values of chain and loose versions, sorted; made when the first is asked for.
    pub(super) values: Option<Vec<(i64, Seen)>>,
}

/// Versions of transactions that don't count, to be looked up.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// By counter, and with one counter those without value first.
    pub(super) by_counter: Vec<Written>,
    pub(super) by_value: Vec<(i64, Place)>,
}

/// An operation on the row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) place: Place,
    pub(super) version: Version,
    pub(super) write: bool,
}

/// Copies the row's operations, which lie far apart in the history, so that they can be looked at
/// twice.
pub(super) fn accesses(scene: Scene<'_>, places: &[Place]) -> Vec<Access> {
    let access = |place: &Place| match scene.operation(*place) {
        Operation::Read { version, .. } => Some(Access { place: *place, version, write: false }),
        Operation::Write { version, .. } => Some(Access { place: *place, version, write: true }),
        _ => None,
    };
    places.iter().filter_map(access).collect()
}

/// Splits the row's operations by transaction.
pub(super) fn by_transaction(accesses: &[Access]) -> impl Iterator<Item = (Node, &[Access])> {
    let chunks = accesses.chunk_by(|a, b| a.place.transaction == b.place.transaction);
    chunks.map(|chunk| (chunk[0].place.transaction, chunk))
}

impl Versions {
    pub(super) fn of(scene: Scene<'_>, accesses: &[Access]) -> Versions {
        let mut versions = Versions::default();
        for (transaction, own) in by_transaction(accesses) {
            let (mut chained, mut loose) = (None, None);
            for &Access { place, version, .. } in own.iter().filter(|access| access.write) {
                let written = Written { version, place, last: true };
                let (counter, value, neither) = &mut versions.unknown;
                *counter |= version.counter.is_none();
                *value |= version.value.is_none();
                *neither |= version == Version::INITIAL;
                let (list, before) = match scene.standing(transaction) {
                    Standing::Aborted => {
                        versions.aborted.push(written);
                        continue;
                    }
                    Standing::Unsure => {
                        versions.unsure.push(written);
                        continue;
                    }
                    Standing::Committed if version.counter.is_some() => (&mut versions.chain, &mut chained),
                    Standing::Committed => (&mut versions.loose, &mut loose),
                };
                if let Some(before) = before.replace(list.len()) {
                    list[before].last = false;
                    if version.counter.is_some() && version.counter <= list[before].version.counter {
                        versions.backward.push(list[before].place);
                    }
                }
                list.push(written);
            }
        }
        versions.sort();
        versions.aborted.sort();
        versions.unsure.sort();
        versions
    }

    /// True if no transaction wrote the row, whatever became of it.
    pub(super) fn none(&self) -> bool {
        let others = self.aborted.is_empty() && self.unsure.is_empty();
        others && self.chain.is_empty() && self.loose.is_empty()
    }

    pub(super) fn sort(&mut self) {
        let chain = &mut self.chain;
        if !chain.is_sorted_by_key(Written::counter) {
            chain.sort_by_key(Written::counter);
        }
        if chain.windows(2).any(|pair| pair[0].counter() == pair[1].counter()) {
            let ends = chain.chunk_by(|a, b| a.counter() == b.counter()).scan(0, |end, group| {
                *end += group.len();
                Some(*end)
            });
            self.groups = std::iter::once(0).chain(ends).collect();
        }
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else { return };
        let base = first.counter();
        let span = last.counter() - base;
        if span > 4 * chain.len() as u64 + 64 {
            return;
        }
        // Each counter leads to the first version that has it or a higher one.
        self.dense = Vec::with_capacity(usize::try_from(span).unwrap_or(0) + 1);
        for (index, written) in (0_u32..).zip(chain.iter()) {
            while (self.dense.len() as u64) <= written.counter() - base {
                self.dense.push(index);
            }
        }
    }

    /// The first index in the chain with this counter or a higher one.
    pub(super) fn at_or_after(&self, counter: u64) -> usize {
        let Some(first) = self.chain.first() else { return 0 };
        let Some(offset) = counter.checked_sub(first.counter()) else { return 0 };
        match usize::try_from(offset).ok().and_then(|offset| self.dense.get(offset)) {
            Some(index) => *index as usize,
            None if self.dense.is_empty() => {
                self.chain.partition_point(|written| written.counter() < counter)
            }
            None => self.chain.len(),
        }
    }

    /// The end of the chain's versions that have the same counter as this one.
    pub(super) fn group_end(&self, index: usize) -> usize {
        if self.groups.is_empty() {
            return (index + 1).min(self.chain.len());
        }
        self.groups[self.groups.partition_point(|start| *start <= index).min(self.groups.len() - 1)]
    }

    pub(super) fn by_value(&mut self, value: i64) -> Option<Seen> {
        let values = self.values.get_or_insert_with(|| {
            let chain = self.chain.iter().enumerate().map(|(index, w)| (w, Seen::Chain(index)));
            let loose = self.loose.iter().enumerate().map(|(index, w)| (w, Seen::Loose(index)));
            let mut values: Vec<(i64, Seen)> = chain
                .chain(loose)
                .filter_map(|(written, seen)| Some((written.version.value?, seen)))
                .collect();
            values.sort_unstable();
            values
        });
        // The last one: of several by one transaction that is the one that it left.
        let end = values.partition_point(|(known, _)| *known <= value);
        end.checked_sub(1)
            .map(|index| values[index])
            .filter(|(known, _)| *known == value)
            .map(|(_, seen)| seen)
    }

    pub(super) fn written(&self, seen: Seen) -> Option<Written> {
        match seen {
            Seen::Initial => None,
            Seen::Chain(index) => Some(self.chain[index]),
            Seen::Loose(index) => Some(self.loose[index]),
        }
    }

    /// True if others have the same counter, so that nobody knows which version came next.
    pub(super) fn doubtful(&self, seen: Seen) -> bool {
        let Seen::Chain(index) = seen else { return false };
        let counter = self.chain[index].counter();
        !self.groups.is_empty() && self.at_or_after(counter) + 1 < self.group_end(index)
    }

    /// Where the versions after one begin in the chain.
    pub(super) fn after(&self, seen: Seen) -> usize {
        match seen {
            Seen::Initial => 0,
            Seen::Chain(index) => self.group_end(index),
            Seen::Loose(_) => self.chain.len(),
        }
    }
}

/// True if two versions may be the same, as far as they are known.
pub(super) fn alike(a: Version, b: Version) -> bool {
    pub(super) fn agree<T: PartialEq + Copy>(a: Option<T>, b: Option<T>) -> bool {
        a.is_none() || b.is_none() || a == b
    }
    agree(a.counter, b.counter) && agree(a.value, b.value)
}

impl Others {
    pub(super) fn push(&mut self, written: Written) {
        if written.version.counter.is_some() {
            self.by_counter.push(written);
        }
        if let Some(value) = written.version.value {
            self.by_value.push((value, written.place));
        }
    }

    pub(super) fn sort(&mut self) {
        self.by_counter.sort_by_key(|written| (written.version.counter, written.version.value));
        self.by_value.sort_by_key(|(value, _)| *value);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_counter.is_empty() && self.by_value.is_empty()
    }

    /// True if one of them wrote this value.
    pub(super) fn has(&self, value: i64) -> bool {
        self.by_value.binary_search_by_key(&value, |(known, _)| *known).is_ok()
    }

    pub(super) fn lowest(&self) -> Option<u64> {
        self.by_counter.first().map(Written::counter)
    }

    /// Who wrote a version; the value decides, if both are known.
    pub(super) fn find(&self, version: Version) -> Option<Place> {
        if let Some(value) = version.value {
            let first = self.by_value.partition_point(|(known, _)| *known < value);
            if let Some((_, place)) = self.by_value.get(first).filter(|(known, _)| *known == value) {
                return Some(*place);
            }
        }
        let counter = version.counter?;
        let first = self.by_counter.partition_point(|written| written.counter() < counter);
        let written = self.by_counter.get(first).filter(|written| written.counter() == counter)?;
        alike(written.version, version).then_some(written.place)
    }
}
