//! Groups of rows that are inserted, and read by a predicate.
//!
//! A row exists from its insert on and is never deleted; one that nobody inserted was there from
//! the start. So who read the group comes after the inserters of the rows that it saw and before
//! all others.

use rustc_hash::FxHashMap;

use super::dependencies::{Label, Node, Place, Sink};
use super::doubt::DoubtKind;
use super::found::Found;
use super::rows::{Row, by_transaction};
use super::scene::{Scene, fact};
use super::standing::Standing;
use crate::anomaly::Anomaly;
use crate::history::Operation;

#[derive(Debug, Clone, Copy)]
struct Insert {
    key: i64,
    place: Place,
    standing: Standing,
}

/// What is known of a row's key.
enum Known {
    /// An index of a committed insert.
    Committed(usize),
    /// An insert that was rolled back.
    Aborted(Place),
    /// An insert of unknown outcome.
    Unsure(Place),
}

/// Examines a group of rows.
pub(super) fn examine<S: Sink>(scene: Scene<'_>, places: &[Place], found: &mut Found, sink: &mut S) {
    let (committed, known) = inserts(scene, places, found);
    let mut group = Group { scene, committed, known, order: Vec::new(), position: Vec::new(), found };
    group.initial(places);
    group.sort(places);
    let targets = group.order.iter().map(|index| group.committed[*index].place).collect();
    let mut fan = sink.fan(targets);
    for (transaction, own) in by_transaction(places) {
        if scene.counts(transaction) {
            group.transaction(transaction, own, &mut fan, sink);
        }
    }
}

fn inserts(scene: Scene<'_>, places: &[Place], found: &mut Found) -> (Vec<Insert>, FxHashMap<i64, Known>) {
    let mut committed: Vec<Insert> = Vec::new();
    let mut known: FxHashMap<i64, Known> = FxHashMap::default();
    let all = places.iter().filter_map(|&place| match scene.operation(place) {
        Operation::Insert { key, .. } => {
            Some(Insert { key: key.id, place, standing: scene.standing(place.transaction) })
        }
        _ => None,
    });
    for insert in all {
        let before = match known.get(&insert.key) {
            Some(Known::Committed(index)) => Some(committed[*index].place),
            Some(Known::Unsure(place)) => Some(*place),
            Some(Known::Aborted(_)) | None => None,
        };
        if let Some(before) = before.filter(|_| insert.standing != Standing::Aborted) {
            found.doubts.note(DoubtKind::NotUnique, 1, || twice(scene, before, insert.place));
        }
        if insert.standing != Standing::Committed {
            let other = if insert.standing == Standing::Aborted {
                Known::Aborted(insert.place)
            } else {
                Known::Unsure(insert.place)
            };
            known.entry(insert.key).or_insert(other);
            continue;
        }
        if let Some(Known::Committed(before)) = known.insert(insert.key, Known::Committed(committed.len())) {
            let before = committed[before].place;
            found.note(Anomaly::DuplicateWrite, || {
                let why = twice(scene, before, insert.place);
                vec![fact(before.transaction, insert.place.transaction, why)]
            });
        }
        committed.push(insert);
    }
    (committed, known)
}

fn twice(scene: Scene<'_>, a: Place, b: Place) -> String {
    format!("{} {}, and {} did so, too", scene.name(a.transaction), scene.deed(a), scene.name(b.transaction))
}

struct Group<'a, 'h> {
    scene: Scene<'h>,
    /// In the order of the transactions.
    committed: Vec<Insert>,
    known: FxHashMap<i64, Known>,
    /// The committed inserts, those that were seen most often first: if what was read is nested,
    /// each read is a beginning.
    order: Vec<usize>,
    /// By insert: its place in that order.
    position: Vec<usize>,
    found: &'a mut Found,
}

impl<'h> Group<'_, 'h> {
    fn reads<'p>(&self, places: &'p [Place]) -> impl Iterator<Item = (Place, &'h [i64])> + use<'p, 'h> {
        let scene = self.scene;
        places.iter().filter(move |place| scene.counts(place.transaction)).filter_map(move |&place| {
            match scene.operation(place) {
                Operation::ReadGroup { rows, .. } => Some((place, rows)),
                _ => None,
            }
        })
    }

    /// Rows that nobody inserted are there from the start, so that every read must have them.
    fn initial(&mut self, places: &[Place]) {
        if !self.scene.complete {
            return;
        }
        let scene = self.scene;
        let mut seen: FxHashMap<i64, u64> = FxHashMap::default();
        let mut reads = 0;
        for (_, rows) in self.reads(places) {
            reads += 1;
            for row in rows.iter().filter(|row| !self.known.contains_key(row)) {
                *seen.entry(*row).or_default() += 1;
            }
        }
        if seen.is_empty() {
            return;
        }
        let table = places.first().map_or(0, |place| Row::of(&scene.operation(*place)).table);
        let elsewhere = |row: i64| scene.inserted().contains(&(table, row));
        let impossible = seen.into_iter().filter(|(row, count)| *count < reads || elsewhere(*row));
        let mut partial: Vec<i64> = impossible.map(|(row, _)| row).collect();
        partial.sort_unstable();
        let all = self.reads(places);
        for (place, rows) in all {
            if let Some(row) = rows.iter().find(|row| partial.binary_search(row).is_ok()) {
                self.found.note(Anomaly::GarbageRead, || {
                    let who = place.transaction;
                    let why = format!(
                        "{} {}; nobody inserted {row} there, and it was not there from the start",
                        scene.name(who),
                        scene.deed(place)
                    );
                    vec![fact(who, who, why)]
                });
            }
        }
    }

    fn sort(&mut self, places: &[Place]) {
        let mut seen = vec![0_u64; self.committed.len()];
        for (_, rows) in self.reads(places) {
            for row in rows {
                if let Some(Known::Committed(index)) = self.known.get(row) {
                    seen[*index] += 1;
                }
            }
        }
        self.order = (0..self.committed.len()).collect();
        self.order.sort_by_key(|index| u64::MAX - seen[*index]);
        self.position = vec![0; self.order.len()];
        for (position, index) in self.order.iter().enumerate() {
            self.position[*index] = position;
        }
    }

    fn transaction<S: Sink>(&mut self, who: Node, own: &[Place], fan: &mut S::Fan, sink: &mut S) {
        let scene = self.scene;
        let start = self.committed.partition_point(|insert| insert.place.transaction < who);
        let end = self.committed.partition_point(|insert| insert.place.transaction <= who);
        for &place in own {
            let Operation::ReadGroup { rows, .. } = scene.operation(place) else { continue };
            let mut positions = Vec::with_capacity(rows.len() + end - start);
            let (mut seen_own, mut before) = (0, None);
            for row in rows {
                match self.known.get(row) {
                    Some(Known::Committed(index)) => {
                        positions.push(self.position[*index]);
                        let writer = self.committed[*index].place;
                        if writer.transaction == who {
                            seen_own += usize::from(writer.record < place.record);
                            if writer.record > place.record {
                                self.internal(place);
                            }
                        } else if before != Some(writer.transaction) {
                            before = Some(writer.transaction);
                            sink.edge(writer, place, Label::WriteRead);
                        }
                    }
                    Some(Known::Aborted(aborted)) => {
                        let aborted = *aborted;
                        self.found.aborted_read(self.scene, aborted, place);
                    }
                    Some(Known::Unsure(_)) | None => {}
                }
            }
            let made = self.committed[start..end].iter().filter(|insert| insert.place.record < place.record);
            if seen_own < made.count() {
                self.internal(place);
            }
            positions.extend((start..end).map(|index| self.position[index]));
            self.unseen(place, positions, fan, sink);
        }
    }

    /// Links to the inserts at all positions but these.
    fn unseen<S: Sink>(&self, place: Place, mut seen: Vec<usize>, fan: &mut S::Fan, sink: &mut S) {
        seen.sort_unstable();
        let mut next = 0;
        for position in seen {
            if position > next {
                sink.link(place, fan, next..position, Label::PredicateReadWrite);
            }
            next = next.max(position + 1);
        }
        if next < self.order.len() {
            sink.link(place, fan, next..self.order.len(), Label::PredicateReadWrite);
        }
    }

    fn internal(&mut self, place: Place) {
        let scene = self.scene;
        self.found.note(Anomaly::Internal, || {
            let who = place.transaction;
            let why =
                format!("{} {}, which its own inserts don't fit in", scene.name(who), scene.deed(place));
            vec![fact(who, who, why)]
        });
    }
}
