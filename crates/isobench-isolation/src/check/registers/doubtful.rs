//! Doubts about a row's history: values written by several transactions, counters that don't
//! increase, and the initial value.
//!
//! Only histories that aren't vouched for are examined this closely, except that values must be
//! unique in every history.

use rustc_hash::FxHashMap;

use super::super::context::{Context, row_key};
use super::super::dependencies::{Node, OperationRef, Sink};
use super::super::doubt::DoubtKind;
use super::super::status::CommitStatus;
use super::examination::{Examination, Start, twice};
use super::versions::{Access, Versions, alike, by_transaction};
use crate::history::{Initial, Operation, Version};

/// The initial version stated by the history.
fn stated(context: Context<'_>, accesses: &[Access]) -> Option<Version> {
    let key = row_key(&context.operation(accesses.first()?.place))?;
    match context.history.initial().get(&key) {
        Some(Initial::Version(version)) => Some(*version),
        _ => None,
    }
}

impl<S: Sink> Examination<'_, '_, S> {
    /// Determines the initial version of the row.
    pub(super) fn start(&mut self, accesses: &[Access]) -> Start {
        let context = self.context;
        if let Some(version) = stated(context, accesses) {
            return Start::Stated(version);
        }
        if context.whole() || context.observed() || !context.complete {
            return Start::Unknown;
        }
        let Some((value, first)) = self.unwritten(accesses) else { return Start::Unknown };
        let order = |node: Node| (context.history.transactions()[node as usize].begin, node);
        let before = |access: &Access| {
            access.write
                && access.place.transaction != first.transaction
                && order(access.place.transaction) < order(first.transaction)
                && context.status(access.place.transaction) != CommitStatus::Aborted
        };
        if accesses.iter().any(before) {
            return Start::Unknown;
        }
        if !context.assume {
            return Start::Open(value);
        }
        self.found.assume(|| format!("{} {}", context.name(first.transaction), context.deed(first)));
        Start::Assumed(value)
    }

    /// The only unwritten value that was read, and the earliest of its readers; `None` if there is
    /// none, if there are several, or if a read found no row.
    fn unwritten(&mut self, accesses: &[Access]) -> Option<(i64, OperationRef)> {
        let context = self.context;
        let mut only: Option<(i64, OperationRef)> = None;
        let reads =
            accesses.iter().filter(|access| !access.write && context.counts(access.place.transaction));
        for access in reads {
            if access.version == Version::INITIAL {
                return None;
            }
            let (None, Some(value)) = (access.version.counter, access.version.value) else { continue };
            let written = self.versions.by_value(value).is_some()
                || self.versions.aborted.has(value)
                || self.versions.unsure.has(value);
            if written {
                continue;
            }
            let begin =
                |place: OperationRef| context.history.transactions()[place.transaction as usize].begin;
            only = match only {
                Some((known, _)) if known != value => return None,
                Some((_, place)) if begin(place) <= begin(access.place) => Some((value, place)),
                _ => Some((value, access.place)),
            };
        }
        only
    }

    /// Records versions that different transactions wrote identically, if one of these is of
    /// unknown outcome or the version is the initial one.
    pub(super) fn not_unique(&mut self, accesses: &[Access]) {
        let (context, start) = (self.context, self.start);
        if let Start::Stated(Version { counter: None, value: Some(value) }) = start
            && let Some(access) = accesses.iter().find(|access| access.write && start.is(access.version))
        {
            self.found.doubts.note(DoubtKind::NotUnique, 1, || {
                format!(
                    "{} {}, and the row held {value} initially",
                    context.name(access.place.transaction),
                    context.deed(access.place)
                )
            });
        }
        let Versions { chain, loose, groups, unsure, .. } = &self.versions;
        if unsure.by_value.is_empty() && loose.is_empty() && groups.is_empty() {
            return;
        }
        let sure = chain.iter().chain(loose).map(|written| written.place);
        let all = sure.chain(unsure.by_value.iter().map(|(_, place)| *place));
        let mut values: Vec<(i64, OperationRef, Version)> = all
            .filter_map(|place| match context.operation(place) {
                Operation::Write { version, .. } => Some((version.value?, place, version)),
                _ => None,
            })
            .collect();
        values.sort_by_key(|(value, place, _)| (*value, place.record));
        for pair in values.windows(2) {
            let [(one, a, first), (other, b, second)] = [pair[0], pair[1]];
            if one == other && a.transaction != b.transaction && alike(first, second) {
                self.found.doubts.note(DoubtKind::NotUnique, 1, || twice(context, a, b).why);
            }
        }
    }

    /// Records counters that don't increase as they should, unless the history is vouched for: a
    /// statement may have failed to increment them.
    pub(super) fn suspect_counters(&mut self, accesses: &[Access]) {
        if self.context.vouched || self.context.observed() || self.versions.chain.is_empty() {
            return;
        }
        let lowest = self.lowest_read(accesses);
        let mut left: FxHashMap<u32, (u64, OperationRef)> = FxHashMap::default();
        for (transaction, own) in by_transaction(accesses) {
            if self.context.counts(transaction) {
                self.suspect(transaction, own, lowest, &mut left);
            }
        }
    }

    /// The lowest version read, if only its counter is known and a transaction wrote that counter.
    fn lowest_read(&self, accesses: &[Access]) -> Option<u64> {
        let reads = accesses.iter().filter(|access| !access.write).map(|access| access.version);
        let lowest = reads.min_by_key(|version| version.counter)?;
        let first = self.versions.chain.first()?.counter();
        lowest.counter.filter(|counter| *counter == first && lowest.value.is_none())
    }

    /// Examines one transaction; `left` has the highest counter that the transactions of each
    /// client left behind.
    fn suspect(
        &mut self,
        transaction: Node,
        own: &[Access],
        lowest: Option<u64>,
        left: &mut FxHashMap<u32, (u64, OperationRef)>,
    ) {
        let client = self.context.history.transactions()[transaction as usize].client;
        let mut highest: Option<(u64, OperationRef)> = None;
        for access in own {
            let Some(counter) = access.version.counter else { continue };
            let known = highest.filter(|(known, _)| access.write && counter <= *known);
            let before = left.get(&client).copied().filter(|(left, _)| counter < *left);
            if let Some((_, place)) = known.or(before) {
                self.suspicion(place, access.place);
            }
            if access.write && highest.is_none() && (self.has_twin(counter) || lowest == Some(counter)) {
                self.suspicion(access.place, access.place);
            }
            if highest.is_none_or(|(known, _)| known <= counter) {
                highest = Some((counter, access.place));
            }
        }
        let wrote = own.iter().rev().find(|access| access.write);
        if let Some((counter, place)) = wrote.and_then(|access| Some((access.version.counter?, access.place)))
            && left.get(&client).is_none_or(|(left, _)| *left < counter)
        {
            left.insert(client, (counter, place));
        }
    }

    /// True if several versions have this counter, or may have it.
    fn has_twin(&self, counter: u64) -> bool {
        let first = self.versions.at_or_after(counter);
        let twins = self.versions.chain[first..].iter().take_while(|written| written.counter() == counter);
        twins.take(2).count() > 1 || self.versions.unsure.find(Version::counted(counter)).is_some()
    }

    fn suspicion(&mut self, before: OperationRef, after: OperationRef) {
        let context = self.context;
        self.found.suspicions.note(DoubtKind::Counter, 1, || {
            let (who, deed) = (context.name(after.transaction), context.deed(after));
            if before == after {
                return format!(
                    "{who} {deed} without having read the row, and this version may have existed before"
                );
            }
            format!("{} {}, and then {who} {deed}", context.name(before.transaction), context.deed(before))
        });
    }

    /// Records a version that may be an aborted transaction's, or that of a transaction missing
    /// from the history.
    pub(super) fn unaccounted(&mut self, aborted: OperationRef, place: OperationRef) {
        let context = self.context;
        if !context.complete {
            return;
        }
        self.found.doubts.note(DoubtKind::Unexplained, 1, || {
            format!(
                "{} {}; before it only {}, which was rolled back, is known to have written such a version",
                context.name(place.transaction),
                context.deed(place),
                context.name(aborted.transaction)
            )
        });
    }

    /// A row that was never written, in a history that isn't vouched for: all reads must be equal.
    pub(super) fn never_written(&mut self, accesses: &[Access]) {
        let context = self.context;
        let mut known: Option<Version> = match self.start {
            Start::Stated(version) => Some(version),
            Start::Assumed(value) | Start::Open(value) => Some(Version::valued(value)),
            Start::Unknown => None,
        };
        for access in accesses.iter().filter(|access| context.counts(access.place.transaction)) {
            let first = *known.get_or_insert(access.version);
            if !alike(first, access.version)
                || (first == Version::INITIAL) != (access.version == Version::INITIAL)
            {
                self.garbage(access.place);
            }
        }
    }

    /// The initial version by its counter; there is only one.
    pub(super) fn counted_initial(&mut self, version: Version, place: OperationRef) {
        let (Some(counter), false, true) = (version.counter, self.context.whole(), self.context.complete)
        else {
            return;
        };
        if *self.initial_counter.get_or_insert(counter) != counter {
            self.garbage(place);
        }
    }
}
