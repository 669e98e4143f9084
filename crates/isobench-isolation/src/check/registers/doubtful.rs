//! What makes a row's history doubtful: values that several transactions wrote, counters that don't
//! rise, and what it held initially.
//!
//! Only what isn't vouched for is looked at so closely; that values are unique is asked of every
//! history.

use rustc_hash::FxHashMap;

use super::super::dependencies::{Node, Place, Sink};
use super::super::doubt::DoubtKind;
use super::super::scene::{Scene, row_key};
use super::super::standing::Standing;
use super::Examination;
use super::versions::{Access, Versions, alike, by_transaction};
use crate::history::{Initial, Operation, Version};

/// What a row held before all transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing is known but what counters tell.
    Unknown,
    /// The history states it.
    Stated(Version),
    /// A value that nobody wrote was read first.
    Assumed(i64),
    /// A value that nobody wrote was read first, and isn't to be taken for the initial one.
    Open(i64),
}

impl Start {
    /// True if a version is the initial one.
    pub(super) fn is(self, version: Version) -> bool {
        match self {
            Start::Stated(stated) => {
                let common = version.counter.and(stated.counter).is_some()
                    || version.value.and(stated.value).is_some();
                common && alike(version, stated)
            }
            Start::Assumed(value) => version == Version::valued(value),
            Start::Unknown | Start::Open(_) => false,
        }
    }

    /// True if nobody knows where a version comes from.
    pub(super) fn leaves_open(self, version: Version) -> bool {
        matches!(self, Start::Open(value) if version == Version::valued(value))
    }
}

/// What the history states of the row.
fn stated(scene: Scene<'_>, accesses: &[Access]) -> Option<Version> {
    let key = row_key(&scene.operation(accesses.first()?.place))?;
    match scene.history.initial().get(&key) {
        Some(Initial::Version(version)) => Some(*version),
        _ => None,
    }
}

impl<S: Sink> Examination<'_, '_, S> {
    /// Finds out what the row held before all transactions.
    pub(super) fn start(&mut self, accesses: &[Access]) -> Start {
        let scene = self.scene;
        if let Some(version) = stated(scene, accesses) {
            return Start::Stated(version);
        }
        if scene.whole || !scene.complete {
            return Start::Unknown;
        }
        let Some((value, first)) = self.unwritten(accesses) else { return Start::Unknown };
        let order = |node: Node| (scene.history.transactions()[node as usize].begin, node);
        let before = |access: &Access| {
            access.write
                && access.place.transaction != first.transaction
                && order(access.place.transaction) < order(first.transaction)
                && scene.standing(access.place.transaction) != Standing::Aborted
        };
        if accesses.iter().any(before) {
            return Start::Unknown;
        }
        if !scene.assume {
            return Start::Open(value);
        }
        self.found.assume(|| format!("{} {}", scene.name(first.transaction), scene.deed(first)));
        Start::Assumed(value)
    }

    /// The only value that was read and that nobody wrote, and who began first of those who read
    /// it; `None` if there is none, if there are several, or if somebody found no row.
    fn unwritten(&mut self, accesses: &[Access]) -> Option<(i64, Place)> {
        let scene = self.scene;
        let mut only: Option<(i64, Place)> = None;
        let reads = accesses.iter().filter(|access| !access.write && scene.counts(access.place.transaction));
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
            let begin = |place: Place| scene.history.transactions()[place.transaction as usize].begin;
            only = match only {
                Some((known, _)) if known != value => return None,
                Some((_, place)) if begin(place) <= begin(access.place) => Some((value, place)),
                _ => Some((value, access.place)),
            };
        }
        only
    }

    /// Versions that different transactions wrote alike, one of them of unknown outcome, or that
    /// are the initial one.
    pub(super) fn not_unique(&mut self, accesses: &[Access]) {
        let (scene, start) = (self.scene, self.start);
        if let Start::Stated(Version { counter: None, value: Some(value) }) = start
            && let Some(access) = accesses.iter().find(|access| access.write && start.is(access.version))
        {
            self.found.doubts.note(DoubtKind::NotUnique, 1, || {
                format!(
                    "{} {}, and the row held {value} initially",
                    scene.name(access.place.transaction),
                    scene.deed(access.place)
                )
            });
        }
        let Versions { chain, loose, groups, unsure, .. } = &self.versions;
        if unsure.by_value.is_empty() && loose.is_empty() && groups.is_empty() {
            return;
        }
        let sure = chain.iter().chain(loose).map(|written| written.place);
        let all = sure.chain(unsure.by_value.iter().map(|(_, place)| *place));
        let mut values: Vec<(i64, Place, Version)> = all
            .filter_map(|place| match scene.operation(place) {
                Operation::Write { version, .. } => Some((version.value?, place, version)),
                _ => None,
            })
            .collect();
        values.sort_by_key(|(value, place, _)| (*value, place.record));
        for pair in values.windows(2) {
            let [(one, a, first), (other, b, second)] = [pair[0], pair[1]];
            if one == other && a.transaction != b.transaction && alike(first, second) {
                self.found.doubts.note(DoubtKind::NotUnique, 1, || super::twice(scene, a, b).why);
            }
        }
    }

    /// Counters that don't rise as they should, if nobody vouches for them: they may belong to a
    /// statement that forgets to raise them.
    pub(super) fn suspect_counters(&mut self, accesses: &[Access]) {
        if self.scene.whole || self.versions.chain.is_empty() {
            return;
        }
        let lowest = self.lowest_read(accesses);
        let mut left: FxHashMap<u32, (u64, Place)> = FxHashMap::default();
        for (transaction, own) in by_transaction(accesses) {
            if self.scene.counts(transaction) {
                self.suspect(transaction, own, lowest, &mut left);
            }
        }
    }

    /// The lowest version that was read, if it is known by its counter alone and somebody wrote
    /// that counter.
    fn lowest_read(&self, accesses: &[Access]) -> Option<u64> {
        let reads = accesses.iter().filter(|access| !access.write).map(|access| access.version);
        let lowest = reads.min_by_key(|version| version.counter)?;
        let first = self.versions.chain.first()?.counter();
        lowest.counter.filter(|counter| *counter == first && lowest.value.is_none())
    }

    /// Looks at one transaction; `left` has the highest counter that each client's transactions
    /// left.
    fn suspect(
        &mut self,
        transaction: Node,
        own: &[Access],
        lowest: Option<u64>,
        left: &mut FxHashMap<u32, (u64, Place)>,
    ) {
        let client = self.scene.history.transactions()[transaction as usize].client;
        let mut highest: Option<(u64, Place)> = None;
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

    /// True if several versions have this counter, or may have.
    fn has_twin(&self, counter: u64) -> bool {
        let first = self.versions.at_or_after(counter);
        let twins = self.versions.chain[first..].iter().take_while(|written| written.counter() == counter);
        twins.take(2).count() > 1 || self.versions.unsure.find(Version::counted(counter)).is_some()
    }

    fn suspicion(&mut self, before: Place, after: Place) {
        let scene = self.scene;
        self.found.suspicions.note(DoubtKind::Counter, 1, || {
            let (who, deed) = (scene.name(after.transaction), scene.deed(after));
            if before == after {
                return format!(
                    "{who} {deed} without having read the row, and this version may have been there before"
                );
            }
            format!("{} {}, and then {who} {deed}", scene.name(before.transaction), scene.deed(before))
        });
    }

    /// A version that may be that of an aborted transaction, or of one that isn't in the history.
    pub(super) fn unaccounted(&mut self, aborted: Place, place: Place) {
        let scene = self.scene;
        if !scene.complete {
            return;
        }
        self.found.doubts.note(DoubtKind::Unexplained, 1, || {
            format!(
                "{} {}; before it only {}, which was rolled back, is known to have written such a version",
                scene.name(place.transaction),
                scene.deed(place),
                scene.name(aborted.transaction)
            )
        });
    }

    /// A row that nobody wrote, in a history that nobody vouches for: all must have read the same.
    pub(super) fn never_written(&mut self, accesses: &[Access]) {
        let scene = self.scene;
        let mut known: Option<Version> = match self.start {
            Start::Stated(version) => Some(version),
            Start::Assumed(value) | Start::Open(value) => Some(Version::valued(value)),
            Start::Unknown => None,
        };
        for access in accesses.iter().filter(|access| scene.counts(access.place.transaction)) {
            let first = *known.get_or_insert(access.version);
            if !alike(first, access.version)
                || (first == Version::INITIAL) != (access.version == Version::INITIAL)
            {
                self.garbage(access.place);
            }
        }
    }

    /// The initial version by its counter; there is only one.
    pub(super) fn counted_initial(&mut self, version: Version, place: Place) {
        let (Some(counter), false, true) = (version.counter, self.scene.whole, self.scene.complete) else {
            return;
        };
        if *self.initial_counter.get_or_insert(counter) != counter {
            self.garbage(place);
        }
    }
}
