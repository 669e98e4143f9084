//! Rows that are overwritten: their versions, in the order that counters tell, and what follows for those who read and wrote.
//!
//! Versions with counters form a *chain*. Of versions without (*loose* ones) is known only that the initial one comes first, and
//! that what a transaction read before it wrote comes before what it wrote. That suffices for anti-dependencies; write-write
//! dependencies of loose versions add nothing to the write-read ones.

use super::dependencies::{Label, Node, Place, Sink};
use super::found::Found;
use super::rows::by_transaction;
use super::scene::{Scene, fact};
use super::standing::Standing;
use crate::anomaly::Anomaly;
use crate::history::{Operation, Version};

/// A version that a transaction wrote.
#[derive(Debug, Clone, Copy)]
struct Written {
    version: Version,
    place: Place,
    /// True if its writer did not overwrite it.
    last: bool,
}

impl Written {
    fn counter(&self) -> u64 {
        self.version.counter.unwrap_or(0)
    }
}

/// Which version was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Initial,
    /// An index into the chain.
    Chain(usize),
    /// An index into the loose versions.
    Loose(usize),
}

/// The versions of one row.
#[derive(Debug, Default)]
struct Versions {
    /// Of committed transactions, by counter.
    chain: Vec<Written>,
    /// Where the chain's counters change; empty if no two are alike.
    groups: Vec<usize>,
    /// By counter, from the lowest: its first index in the chain; empty if there are big gaps.
    dense: Vec<u32>,
    /// Of committed transactions, without counters.
    loose: Vec<Written>,
    /// Of aborted ones.
    aborted: Others,
    /// Of ones of unknown outcome.
    unsure: Others,
    /// Versions that their own writers overwrote with a lower counter, or the same.
    backward: Vec<Place>,
    /// True if someone wrote a version of which no counter is known, no value, and neither.
    unknown: (bool, bool, bool),
    /// Values of chain and loose versions, sorted; made when the first is asked for.
    values: Option<Vec<(i64, Seen)>>,
}

/// Versions of transactions that don't count, to be looked up.
#[derive(Debug, Default)]
struct Others {
    /// By counter, and with one counter those without value first.
    by_counter: Vec<Written>,
    by_value: Vec<(i64, Place)>,
}

/// A read of a loose version, or before them.
struct Reader {
    seen: Seen,
    place: Place,
}

/// A loose version, or a chain's, that was made from one that its writer had read.
struct Follower {
    seen: Seen,
    place: Place,
}

/// Examines a row that is overwritten. Gives the number of pairs of versions whose order is unknown.
pub(super) fn examine<S: Sink>(scene: Scene<'_>, places: &[Place], found: &mut Found, sink: &mut S) -> u64 {
    let mut row = Examination {
        scene,
        versions: Versions::of(scene, places),
        found,
        sink,
        readers: Vec::new(),
        followers: Vec::new(),
    };
    if row.versions.none() {
        row.nothing_written(places);
        return 0;
    }
    row.duplicates();
    row.chain_order();
    for (transaction, own) in by_transaction(places) {
        if scene.counts(transaction) {
            row.transaction(transaction, own);
        }
    }
    if row.versions.loose.is_empty() {
        return 0;
    }
    row.loose_order()
}

struct Examination<'a, 'h, S> {
    scene: Scene<'h>,
    versions: Versions,
    found: &'a mut Found,
    sink: &'a mut S,
    readers: Vec<Reader>,
    followers: Vec<Follower>,
}

impl Versions {
    fn of(scene: Scene<'_>, places: &[Place]) -> Versions {
        let mut versions = Versions::default();
        for (transaction, own) in by_transaction(places) {
            let (mut chained, mut loose) = (None, None);
            for &place in own {
                let Operation::Write { version, .. } = scene.operation(place) else { continue };
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
    fn none(&self) -> bool {
        let others = self.aborted.is_empty() && self.unsure.is_empty();
        others && self.chain.is_empty() && self.loose.is_empty()
    }

    fn sort(&mut self) {
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
    fn at_or_after(&self, counter: u64) -> usize {
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
    fn group_end(&self, index: usize) -> usize {
        if self.groups.is_empty() {
            return (index + 1).min(self.chain.len());
        }
        self.groups[self.groups.partition_point(|start| *start <= index).min(self.groups.len() - 1)]
    }

    fn by_value(&mut self, value: i64) -> Option<Seen> {
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

    fn written(&self, seen: Seen) -> Option<Written> {
        match seen {
            Seen::Initial => None,
            Seen::Chain(index) => Some(self.chain[index]),
            Seen::Loose(index) => Some(self.loose[index]),
        }
    }

    /// True if others have the same counter, so that nobody knows which version came next.
    fn doubtful(&self, seen: Seen) -> bool {
        let Seen::Chain(index) = seen else { return false };
        let counter = self.chain[index].counter();
        !self.groups.is_empty() && self.at_or_after(counter) + 1 < self.group_end(index)
    }

    /// Where the versions after one begin in the chain.
    fn after(&self, seen: Seen) -> usize {
        match seen {
            Seen::Initial => 0,
            Seen::Chain(index) => self.group_end(index),
            Seen::Loose(_) => self.chain.len(),
        }
    }
}

/// True if two versions may be the same, as far as they are known.
fn alike(a: Version, b: Version) -> bool {
    fn agree<T: PartialEq + Copy>(a: Option<T>, b: Option<T>) -> bool {
        a.is_none() || b.is_none() || a == b
    }
    agree(a.counter, b.counter) && agree(a.value, b.value)
}

impl Others {
    fn push(&mut self, written: Written) {
        if written.version.counter.is_some() {
            self.by_counter.push(written);
        }
        if let Some(value) = written.version.value {
            self.by_value.push((value, written.place));
        }
    }

    fn sort(&mut self) {
        self.by_counter.sort_by_key(|written| (written.version.counter, written.version.value));
        self.by_value.sort_by_key(|(value, _)| *value);
    }

    fn is_empty(&self) -> bool {
        self.by_counter.is_empty() && self.by_value.is_empty()
    }

    fn lowest(&self) -> Option<u64> {
        self.by_counter.first().map(Written::counter)
    }

    /// Who wrote a version; the value decides, if both are known.
    fn find(&self, version: Version) -> Option<Place> {
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

impl<S: Sink> Examination<'_, '_, S> {
    /// A row that nobody wrote: whatever was read must be the initial version.
    fn nothing_written(&mut self, places: &[Place]) {
        let known = |version: Version| version.counter.is_none() && version.value.is_some();
        for &place in places {
            if let Operation::Read { version, .. } = self.scene.operation(place)
                && known(version)
                && self.scene.whole
                && self.scene.counts(place.transaction)
            {
                self.garbage(place);
            }
        }
    }

    fn garbage(&mut self, place: Place) {
        let scene = self.scene;
        self.found.note(Anomaly::GarbageRead, || {
            let why = format!("{} {}, which nobody wrote", scene.name(place.transaction), scene.deed(place));
            vec![fact(place.transaction, place.transaction, why)]
        });
    }

    /// Versions of different transactions that cannot be told apart, or that were made from the same one.
    fn duplicates(&mut self) {
        let scene = self.scene;
        for bounds in self.versions.groups.windows(2) {
            let group = &self.versions.chain[bounds[0]..bounds[1]];
            for pair in group.windows(2) {
                let (a, b) = (pair[0], pair[1]);
                if a.place.transaction == b.place.transaction {
                    continue;
                }
                if a.version == b.version && a.version.value.is_some() {
                    self.found.note(Anomaly::DuplicateWrite, || vec![twice(scene, a.place, b.place)]);
                } else {
                    self.found.note(Anomaly::LostUpdate, || {
                        let (first, second) = (a.place.transaction, b.place.transaction);
                        let why = format!(
                            "{} {}, and {} {}: both were made from the same version, so that one update is lost",
                            scene.name(first),
                            scene.deed(a.place),
                            scene.name(second),
                            scene.deed(b.place)
                        );
                        vec![fact(first, second, why)]
                    });
                }
            }
        }
        let mut loose: Vec<&Written> =
            self.versions.loose.iter().filter(|w| w.version.value.is_some()).collect();
        loose.sort_by_key(|written| written.version.value);
        for pair in loose.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            if a.version.value == b.version.value && a.place.transaction != b.place.transaction {
                self.found.note(Anomaly::DuplicateWrite, || vec![twice(scene, a.place, b.place)]);
            }
        }
    }

    /// Write-write dependencies along the chain, and versions that were made from an aborted transaction's.
    ///
    /// Of two versions with one counter nobody knows which one the next was made from, nor whether the other came later than that.
    fn chain_order(&mut self) {
        let mut before: Option<Written> = None;
        let mut counter_before = None;
        let mut start = 0;
        while start < self.versions.chain.len() {
            let end = self.versions.group_end(start);
            for index in start..end {
                if let Some(before) = before {
                    self.sink.edge(before.place, self.versions.chain[index].place, Label::WriteWrite);
                }
            }
            let counter = self.versions.chain[start].counter();
            if counter_before != counter.checked_sub(1) && !self.versions.aborted.is_empty() {
                self.made_from_aborted(start, counter);
            }
            if end == start + 1 {
                before = Some(self.versions.chain[start]);
            }
            (start, counter_before) = (end, Some(counter));
        }
        let scene = self.scene;
        for &place in &self.versions.backward {
            self.found.note(Anomaly::IncompatibleOrder, || {
                let (who, done) = (scene.name(place.transaction), scene.deed(place));
                let why = format!("{who} {done}, and then made a version that comes before it");
                vec![fact(place.transaction, place.transaction, why)]
            });
        }
    }

    /// A version whose predecessor no committed transaction wrote, but an aborted one.
    fn made_from_aborted(&mut self, index: usize, counter: u64) {
        let scene = self.scene;
        let Some(below) = counter.checked_sub(1).map(Version::counted) else { return };
        if !scene.whole || self.versions.unsure.find(below).is_some() {
            return;
        }
        let Some(aborted) = self.versions.aborted.find(below) else { return };
        self.dirty_update(aborted, self.versions.chain[index].place);
    }

    fn dirty_update(&mut self, aborted: Place, place: Place) {
        let scene = self.scene;
        self.found.note(Anomaly::DirtyUpdate, || {
            let why = format!(
                "{} {} and was rolled back, but {} {} on top of it",
                scene.name(aborted.transaction),
                scene.deed(aborted),
                scene.name(place.transaction),
                scene.deed(place)
            );
            vec![fact(aborted.transaction, place.transaction, why)]
        });
    }

    /// What a committed transaction did with the row.
    fn transaction(&mut self, transaction: Node, own: &[Place]) {
        let scene = self.scene;
        let first_write = own.iter().find_map(|&place| match scene.operation(place) {
            Operation::Write { version, .. } => Some((place, version)),
            _ => None,
        });
        let mut written: Option<Version> = None;
        let mut last_seen = None;
        let mut lost = false;
        for &place in own {
            match scene.operation(place) {
                Operation::Write { version, .. } => {
                    if let (None, Some(seen)) = (written, last_seen)
                        && (version.counter.is_none() || matches!(seen, Seen::Loose(_)))
                    {
                        self.followers.push(Follower { seen, place });
                    }
                    written = Some(version);
                }
                Operation::Read { version, .. } => {
                    if let Some(written) = written {
                        let gone = version == Version::INITIAL && written != Version::INITIAL;
                        if gone || !alike(version, written) {
                            self.not_own(transaction, place, written);
                        }
                        continue;
                    }
                    let Some(seen) = self.resolve(version, place) else { continue };
                    if self.read(place, seen, first_write, &mut lost) {
                        last_seen = Some(seen);
                    }
                }
                _ => {}
            }
        }
    }

    fn not_own(&mut self, transaction: Node, place: Place, written: Version) {
        let scene = self.scene;
        self.found.note(Anomaly::Internal, || {
            let why = format!(
                "{} {} after it had itself written {}",
                scene.name(transaction),
                scene.deed(place),
                super::scene::version_name(written)
            );
            vec![fact(transaction, transaction, why)]
        });
    }

    /// Takes down a read; false if nothing follows from it.
    fn read(
        &mut self,
        place: Place,
        seen: Seen,
        first_write: Option<(Place, Version)>,
        lost: &mut bool,
    ) -> bool {
        let scene = self.scene;
        if let Some(written) = self.versions.written(seen) {
            let writer = written.place.transaction;
            if writer == place.transaction {
                // It can be its own only if nobody else made one that looks the same.
                let version = match scene.operation(place) {
                    Operation::Read { version, .. } => version,
                    _ => Version::INITIAL,
                };
                if let Some(aborted) = self.versions.aborted.find(version) {
                    self.aborted_read(aborted, place);
                    return false;
                }
                if self.versions.unsure.find(version).is_some() {
                    return false;
                }
                self.found.note(Anomaly::Internal, || {
                    let why = format!("{} {} before it wrote it", scene.name(writer), scene.deed(place));
                    vec![fact(writer, writer, why)]
                });
                return false;
            }
            self.sink.edge(written.place, place, Label::WriteRead);
            if !written.last {
                self.found.note(Anomaly::G1b, || {
                    let why = format!(
                        "{} {}, which {} overwrote itself",
                        scene.name(place.transaction),
                        scene.deed(place),
                        scene.name(writer)
                    );
                    vec![fact(writer, place.transaction, why)]
                });
                return false;
            }
        }
        let next = self.versions.after(seen);
        let end = if self.versions.doubtful(seen) { next } else { self.versions.group_end(next) };
        let group = &self.versions.chain[next..end];
        let mut label = Label::ReadWrite;
        if let (Some((write, Version { counter: Some(counter), .. })), Some(first)) =
            (first_write, group.first())
            && !matches!(seen, Seen::Loose(_))
        {
            let between = first.counter() < counter && first.place.transaction != place.transaction;
            if between && !*lost {
                let other = first.place;
                self.found.note(Anomaly::LostUpdate, || {
                    vec![scene.step(place, other, Label::Lost), scene.step(other, write, Label::WriteWrite)]
                });
                *lost = true;
            }
            let own = group.len() > 1 && group.iter().any(|w| w.place.transaction == place.transaction);
            if between || own {
                label = Label::Lost;
            }
        }
        if let [only] = group {
            self.sink.edge(place, only.place, label);
        } else if !group.is_empty() {
            let mut fan = self.sink.fan(group.iter().map(|written| written.place).collect());
            link_others(self.sink, place, &mut fan, group, label);
        }
        if !self.versions.loose.is_empty() {
            self.readers.push(Reader { seen, place });
        }
        true
    }

    /// Finds the version that was read; notes it if there cannot be one.
    fn resolve(&mut self, version: Version, place: Place) -> Option<Seen> {
        if version == Version::INITIAL {
            return Some(Seen::Initial);
        }
        if let Some(counter) = version.counter {
            let first = self.versions.at_or_after(counter);
            let group =
                self.versions.chain[first..].iter().take_while(|written| written.counter() == counter);
            if let Some(index) = group.clone().position(|written| alike(written.version, version)) {
                return Some(Seen::Chain(first + index));
            }
        }
        let by_value = version.value.and_then(|value| self.versions.by_value(value));
        if let Some(seen) = by_value {
            let written = self.versions.written(seen)?;
            if alike(written.version, version) {
                return Some(seen);
            }
            self.contradictory(place, written.place);
            return None;
        }
        if let Some(aborted) = self.versions.aborted.find(version) {
            self.aborted_read(aborted, place);
            return None;
        }
        if self.versions.unsure.find(version).is_some() {
            return None;
        }
        if version.counter.is_some_and(|counter| self.before_all(counter)) {
            return Some(Seen::Initial);
        }
        let (counter, value, neither) = self.versions.unknown;
        let may_be = match (version.counter, version.value) {
            (Some(_), Some(_)) => neither,
            (Some(_), None) => counter,
            (None, _) => value,
        };
        if self.scene.whole && !may_be {
            self.garbage(place);
        }
        None
    }

    /// True if a counter lies below all that were written.
    fn before_all(&self, counter: u64) -> bool {
        let lowest = [&self.versions.aborted, &self.versions.unsure].map(Others::lowest);
        let chain = self.versions.chain.first().map(Written::counter);
        lowest.into_iter().chain([chain]).flatten().all(|lowest| counter < lowest)
    }

    fn contradictory(&mut self, place: Place, written: Place) {
        let scene = self.scene;
        self.found.note(Anomaly::IncompatibleOrder, || {
            let (writer, reader) = (written.transaction, place.transaction);
            let why = format!(
                "{} {}, but {} {}",
                scene.name(reader),
                scene.deed(place),
                scene.name(writer),
                scene.deed(written)
            );
            vec![fact(writer, reader, why)]
        });
    }

    fn aborted_read(&mut self, aborted: Place, place: Place) {
        let scene = self.scene;
        self.found.note(Anomaly::G1a, || {
            let (writer, reader) = (aborted.transaction, place.transaction);
            let why = format!(
                "{} {} and was rolled back, but {} {}",
                scene.name(writer),
                scene.deed(aborted),
                scene.name(reader),
                scene.deed(place)
            );
            vec![fact(writer, reader, why)]
        });
    }

    /// Anti-dependencies on loose versions, and the number of pairs whose order is unknown.
    fn loose_order(&mut self) -> u64 {
        let mut followers = std::mem::take(&mut self.followers);
        let mut readers = std::mem::take(&mut self.readers);
        let undecided = undecided(&self.versions, &followers);
        let following: Vec<Node> = followers.iter().map(|follower| follower.place.transaction).collect();
        let mut roots: Vec<Follower> = Vec::new();
        for written in &self.versions.loose {
            let transaction = written.place.transaction;
            let again = roots.last().is_some_and(|root| root.place.transaction == transaction);
            if !again && following.binary_search(&transaction).is_err() {
                roots.push(Follower { seen: Seen::Initial, place: written.place });
            }
        }
        let updates = followers.len();
        followers.append(&mut roots);
        let mut order: Vec<(Seen, bool, usize)> =
            followers.iter().enumerate().map(|(index, f)| (f.seen, index >= updates, index)).collect();
        order.sort_unstable();
        readers.sort_by_key(|reader| reader.seen);
        let mut rest = readers.as_slice();
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let seen = group[0].0;
            let skipped = rest.partition_point(|reader| reader.seen < seen);
            let count = rest[skipped..].partition_point(|reader| reader.seen == seen);
            let targets: Vec<Place> = group.iter().map(|(_, _, index)| followers[*index].place).collect();
            let updating = group.partition_point(|(_, root, _)| !root);
            self.successors(&rest[skipped..skipped + count], targets, updating);
            rest = &rest[skipped + count..];
        }
        undecided
    }

    /// One version's readers come before all that was made after it; the first so many targets were made from it.
    fn successors(&mut self, readers: &[Reader], targets: Vec<Place>, updating: usize) {
        let scene = self.scene;
        for pair in targets[..updating].windows(2) {
            let read = |write: Place| {
                let end = readers.partition_point(|reader| reader.place.transaction <= write.transaction);
                end.checked_sub(1).map(|index| &readers[index])
            };
            let (Some(first), Some(second)) = (read(pair[0]), read(pair[1])) else { continue };
            self.found.note(Anomaly::LostUpdate, || {
                vec![
                    scene.step(first.place, pair[1], Label::Lost),
                    scene.step(second.place, pair[0], Label::Lost),
                ]
            });
        }
        let mut own: Vec<(Node, usize)> =
            targets.iter().enumerate().map(|(index, place)| (place.transaction, index)).collect();
        own.sort_unstable();
        let total = targets.len();
        let mut fan = self.sink.fan(targets);
        for reader in readers {
            let found = own.binary_search_by_key(&reader.place.transaction, |(transaction, _)| *transaction);
            let at = found.map_or(total, |index| own[index].1);
            let label = if at < updating && updating > 1 { Label::Lost } else { Label::ReadWrite };
            self.sink.link(reader.place, &mut fan, 0..at, label);
            self.sink.link(reader.place, &mut fan, (at + 1).min(total)..total, label);
        }
    }
}

/// Links to all of a group but the transaction's own versions.
fn link_others<S: Sink>(sink: &mut S, from: Place, fan: &mut S::Fan, group: &[Written], label: Label) {
    let mut start = 0;
    for (index, written) in group.iter().enumerate() {
        if written.place.transaction == from.transaction {
            sink.link(from, fan, start..index, label);
            start = index + 1;
        }
    }
    sink.link(from, fan, start..group.len(), label);
}

fn twice(scene: Scene<'_>, a: Place, b: Place) -> super::Step {
    let why = format!(
        "{} {}, and {} {}, too",
        scene.name(a.transaction),
        scene.deed(a),
        scene.name(b.transaction),
        scene.deed(b)
    );
    fact(a.transaction, b.transaction, why)
}

/// Counts the pairs of versions, one of them loose, of which neither was made, by however many steps, from the other.
fn undecided(versions: &Versions, followers: &[Follower]) -> u64 {
    let loose = &versions.loose;
    // By loose version: what it was made from.
    let mut parent = vec![None; loose.len()];
    for follower in followers {
        let index = loose.partition_point(|written| written.place.record < follower.place.record);
        if loose.get(index).is_some_and(|written| written.place == follower.place) {
            parent[index] = Some(follower.seen);
        }
    }
    for index in 1..loose.len() {
        if loose[index].place.transaction == loose[index - 1].place.transaction && parent[index].is_none() {
            parent[index] = Some(Seen::Loose(index - 1));
        }
    }
    let mut depth: Vec<Option<u64>> = vec![None; loose.len()];
    let mut path = Vec::new();
    let mut decided = 0;
    for start in 0..loose.len() {
        let mut at = start;
        let mut below = loop {
            if let Some(depth) = depth[at] {
                break depth + 1;
            }
            if path.len() > loose.len() {
                break 0;
            }
            path.push(at);
            match parent[at] {
                Some(Seen::Loose(next)) => at = next,
                Some(Seen::Chain(index)) => break versions.group_end(index) as u64,
                Some(Seen::Initial) | None => break 0,
            }
        };
        while let Some(index) = path.pop() {
            if depth[index].is_none() {
                depth[index] = Some(below);
                decided += below;
            }
            below += 1;
        }
    }
    let (loose, chain) = (loose.len() as u64, versions.chain.len() as u64);
    let pairs = loose.saturating_mul(loose.saturating_sub(1)) / 2;
    pairs.saturating_add(loose.saturating_mul(chain)).saturating_sub(decided)
}
