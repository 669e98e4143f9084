//! The versions of a row, for lookup by counter and by value.

use std::ops::Range;

use super::super::context::Context;
use super::super::dependencies::{Node, OperationRef};
use super::super::status::CommitStatus;
use crate::history::{Operation, Version};

/// A version that a transaction wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) version: Version,
    pub(super) place: OperationRef,
    /// True if its writer didn't overwrite it.
    pub(super) last: bool,
}

impl Written {
    pub(super) fn counter(&self) -> u64 {
        self.version.counter.unwrap_or(0)
    }
}

/// The version that was read.
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
    /// Versions of committed transactions, by counter.
    pub(super) chain: Vec<Written>,
    /// The positions at which the chain's counters change; empty if all are different.
    pub(super) groups: Vec<usize>,
    /// The positions in the chain before which a counter is left out. In an observed history the row
    /// is inserted there again, as another object. (The first counter is 1 otherwise, and in a
    /// window of a history any other.)
    pub(super) reborn: Vec<usize>,
    /// For each counter from the lowest on, its first index in the chain; empty if there are large
    /// gaps.
    pub(super) dense: Vec<u32>,
    /// Versions of committed transactions without counters.
    pub(super) loose: Vec<Written>,
    /// Versions of aborted transactions.
    pub(super) aborted: Others,
    /// Versions of transactions of unknown outcome.
    pub(super) unsure: Others,
    /// Versions that their own writers overwrote with the same or a lower counter.
    pub(super) backward: Vec<OperationRef>,
    /// True if a version was written without a counter, without a value, and without both.
    pub(super) unknown: (bool, bool, bool),
    /// The values of chain and loose versions, sorted; computed on first use.
    pub(super) values: Option<Vec<(i64, Seen)>>,
}

/// Versions of transactions that aren't counted as committed, for lookup.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// By counter; for the same counter, those without a value first.
    pub(super) by_counter: Vec<Written>,
    pub(super) by_value: Vec<(i64, OperationRef)>,
}

/// An operation on the row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) place: OperationRef,
    pub(super) version: Version,
    pub(super) write: bool,
}

/// Copies the row's operations, which are scattered over the history, so that they can be scanned
/// repeatedly.
pub(super) fn accesses(context: Context<'_>, places: &[OperationRef]) -> Vec<Access> {
    let access = |place: &OperationRef| match context.operation(*place) {
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
    pub(super) fn of(context: Context<'_>, accesses: &[Access]) -> Versions {
        let mut versions = Versions::default();
        for (transaction, own) in by_transaction(accesses) {
            let (mut chained, mut loose) = (None, None);
            for &Access { place, version, .. } in own.iter().filter(|access| access.write) {
                let written = Written { version, place, last: true };
                let (counter, value, neither) = &mut versions.unknown;
                *counter |= version.counter.is_none();
                *value |= version.value.is_none();
                *neither |= version == Version::INITIAL;
                let (list, before) = match context.status(transaction) {
                    CommitStatus::Aborted => {
                        versions.aborted.push(written);
                        continue;
                    }
                    CommitStatus::Unsure => {
                        versions.unsure.push(written);
                        continue;
                    }
                    CommitStatus::Committed if version.counter.is_some() => {
                        (&mut versions.chain, &mut chained)
                    }
                    CommitStatus::Committed => (&mut versions.loose, &mut loose),
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

    /// True if no transaction of any outcome wrote the row.
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
        let pairs = chain.windows(2).enumerate();
        let left_out = pairs.filter(|(_, pair)| pair[1].counter() > pair[0].counter().saturating_add(1));
        let first = chain.first().filter(|written| written.counter() == 2).map(|_| 0);
        self.reborn = first.into_iter().chain(left_out.map(|(index, _)| index + 1)).collect();
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else { return };
        let base = first.counter();
        let span = last.counter() - base;
        if span > 4 * chain.len() as u64 + 64 {
            return;
        }
        // Each counter leads to the first version with that counter or a higher one.
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

    /// The end of the versions in the chain that have the same counter as this one.
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
        // The last one: of several versions by one transaction, that is the final one.
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

    /// True if other versions have the same counter, so that the next version is ambiguous.
    pub(super) fn doubtful(&self, seen: Seen) -> bool {
        let Seen::Chain(index) = seen else { return false };
        let counter = self.chain[index].counter();
        !self.groups.is_empty() && self.at_or_after(counter) + 1 < self.group_end(index)
    }

    /// True if all these versions of the chain, and the one before them, are of one object.
    pub(super) fn same_object(&self, versions: Range<usize>) -> bool {
        let first = self.reborn.partition_point(|start| *start < versions.start);
        self.reborn.get(first).is_none_or(|start| *start >= versions.end)
    }

    /// The number of pairs of versions in the chain with the same counter.
    pub(super) fn tied(&self) -> u64 {
        let sizes = self.groups.windows(2).map(|bounds| (bounds[1] - bounds[0]) as u64);
        sizes.map(|size| size * (size - 1) / 2).sum()
    }

    /// The start of the versions in the chain that follow one.
    pub(super) fn after(&self, seen: Seen) -> usize {
        match seen {
            Seen::Initial => 0,
            Seen::Chain(index) => self.group_end(index),
            Seen::Loose(_) => self.chain.len(),
        }
    }
}

/// Versions of a group that aren't of one transaction, and not the same one, as those next to them.
pub(super) fn apart(group: &[Written]) -> Vec<Written> {
    let mut apart: Vec<Written> = Vec::new();
    for written in group {
        let same = |last: &Written| {
            let twice = last.version == written.version && written.version.value.is_some();
            last.place.transaction == written.place.transaction || twice
        };
        if !apart.last().is_some_and(same) {
            apart.push(*written);
        }
    }
    apart
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

    /// The writer of a version; if both counter and value are known, the value decides.
    pub(super) fn find(&self, version: Version) -> Option<OperationRef> {
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
