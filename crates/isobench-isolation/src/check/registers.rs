//! Rows that are overwritten: their versions, in the order that counters tell, and what follows for
//! those who read and wrote.
//!
//! Versions with counters form a *chain*. Of versions without (*loose* ones) is known only that the
//! initial one comes first, and that what a transaction read before it wrote comes before what it
//! wrote. That suffices for anti-dependencies; write-write dependencies of loose versions add
//! nothing to the write-read ones.

mod doubtful;
mod loose;
mod versions;

use super::WitnessStep;
use super::dependencies::{Label, Node, Place, Sink};
use super::found::Found;
use super::scene::{Scene, fact};
use crate::anomaly::Anomaly;
use crate::history::Version;

use doubtful::Start;
use loose::{Follower, Reader};
use versions::{Access, Others, Seen, Versions, Written, accesses, alike, by_transaction};

/// Examines a row that is overwritten. Gives the number of pairs of versions whose order is
/// unknown.
pub(super) fn examine<S: Sink>(scene: Scene<'_>, places: &[Place], found: &mut Found, sink: &mut S) -> u64 {
    let accesses = accesses(scene, places);
    let mut row = Examination {
        scene,
        versions: Versions::of(scene, &accesses),
        found,
        sink,
        readers: Vec::new(),
        followers: Vec::new(),
        start: Start::Unknown,
        initial_counter: None,
    };
    row.start = row.start(&accesses);
    if row.versions.none() {
        row.nothing_written(&accesses);
        return 0;
    }
    row.not_unique(&accesses);
    row.duplicates();
    row.suspect_counters(&accesses);
    row.chain_order();
    for (transaction, own) in by_transaction(&accesses) {
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
    start: Start,
    /// The counter that was read and is below all that were written.
    initial_counter: Option<u64>,
}

impl<S: Sink> Examination<'_, '_, S> {
    /// A row that nobody wrote: whatever was read must be the initial version.
    fn nothing_written(&mut self, accesses: &[Access]) {
        if self.scene.complete && !self.scene.whole {
            return self.never_written(accesses);
        }
        let start = self.start;
        let known = |version: Version| version.counter.is_none() && version.value.is_some();
        for access in accesses.iter().filter(|access| known(access.version) && !start.is(access.version)) {
            if self.scene.whole && self.scene.counts(access.place.transaction) {
                self.garbage(access.place);
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

    /// Versions of different transactions that cannot be told apart, or that were made from the
    /// same one.
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

    /// Write-write dependencies along the chain, and versions that were made from an aborted
    /// transaction's.
    ///
    /// Of two versions with one counter nobody knows which one the next was made from, nor whether
    /// the other came later than that.
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
        if !scene.complete || self.versions.unsure.find(below).is_some() {
            return;
        }
        let Some(aborted) = self.versions.aborted.find(below) else { return };
        let place = self.versions.chain[index].place;
        if scene.whole { self.dirty_update(aborted, place) } else { self.unaccounted(aborted, place) }
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
    fn transaction(&mut self, transaction: Node, own: &[Access]) {
        let first_write = own.iter().find(|access| access.write).map(|access| (access.place, access.version));
        let mut written: Option<Version> = None;
        let mut last_seen = None;
        let mut lost = false;
        for &Access { place, version, write } in own {
            if write {
                if let (None, Some(seen)) = (written, last_seen)
                    && (version.counter.is_none() || matches!(seen, Seen::Loose(_)))
                {
                    self.followers.push(Follower { seen, place });
                }
                written = Some(version);
            } else if let Some(written) = written {
                let gone = version == Version::INITIAL && written != Version::INITIAL;
                if gone || !alike(version, written) {
                    self.not_own(transaction, place, written);
                }
            } else if let Some(seen) = self.resolve(version, place)
                && self.read(place, version, seen, first_write, &mut lost)
            {
                last_seen = Some(seen);
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
        version: Version,
        seen: Seen,
        first_write: Option<(Place, Version)>,
        lost: &mut bool,
    ) -> bool {
        let scene = self.scene;
        if let Some(written) = self.versions.written(seen) {
            let writer = written.place.transaction;
            if writer == place.transaction {
                // It can be its own only if nobody else made one that looks the same.
                if let Some(aborted) = self.versions.aborted.find(version) {
                    self.aborted_read(aborted, place, version);
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
            let by_transaction = |written: &Written| written.place.transaction;
            let own =
                group.len() > 1 && group.binary_search_by_key(&place.transaction, by_transaction).is_ok();
            if between || own {
                label = Label::Lost;
            }
        }
        // Of several with one counter one will do: that there are several says more than the rest
        // of these dependencies.
        if let Some(next) = group.iter().find(|written| written.place.transaction != place.transaction) {
            self.sink.edge(place, next.place, label);
        }
        if !self.versions.loose.is_empty() {
            self.readers.push(Reader { seen, place });
        }
        true
    }

    /// Finds the version that was read; notes it if there cannot be one.
    fn resolve(&mut self, version: Version, place: Place) -> Option<Seen> {
        if version == Version::INITIAL || self.start.is(version) {
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
            self.aborted_read(aborted, place, version);
            return None;
        }
        if self.versions.unsure.find(version).is_some() {
            return None;
        }
        if version.counter.is_some_and(|counter| self.before_all(counter)) {
            self.counted_initial(version, place);
            return Some(Seen::Initial);
        }
        if self.start.leaves_open(version) {
            return None;
        }
        let (counter, value, neither) = self.versions.unknown;
        let may_be = match (version.counter, version.value) {
            (Some(_), Some(_)) => neither,
            (Some(_), None) => counter,
            (None, _) => value,
        };
        if self.scene.complete && !may_be {
            self.garbage(place);
        }
        None
    }

    /// A read of what an aborted transaction wrote, if the value says so, or if nobody else can
    /// have written it.
    fn aborted_read(&mut self, aborted: Place, place: Place, version: Version) {
        let by_value = version.value.is_some_and(|value| self.versions.aborted.has(value));
        if by_value || self.scene.whole {
            self.found.aborted_read(self.scene, aborted, place);
        } else {
            self.unaccounted(aborted, place);
        }
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
}

fn twice(scene: Scene<'_>, a: Place, b: Place) -> WitnessStep {
    let why = format!(
        "{} {}, and {} {}, too",
        scene.name(a.transaction),
        scene.deed(a),
        scene.name(b.transaction),
        scene.deed(b)
    );
    fact(a.transaction, b.transaction, why)
}
