//! Groups of rows that are inserted, and read by a predicate.
//!
//! A row exists from its insert on and is never deleted; a row without an insert existed initially.
//! So a reader of the group follows the inserters of the rows that it saw, and precedes all others.

use rustc_hash::FxHashMap;

use super::context::{Context, fact};
use super::dependencies::{Label, Node, OperationRef, Sink};
use super::doubt::DoubtKind;
use super::findings::Findings;
use super::rows::{Row, by_transaction};
use super::status::CommitStatus;
use crate::anomaly::Anomaly;
use crate::history::Operation;

#[derive(Debug, Clone, Copy)]
struct Insert {
    key: i64,
    place: OperationRef,
    status: CommitStatus,
}

/// The origin of a row's key.
enum Origin {
    /// The index of a committed insert.
    Committed(usize),
    /// An insert that was rolled back.
    Aborted(OperationRef),
    /// An insert of unknown outcome.
    Unsure(OperationRef),
}

/// Examines a group of rows.
pub(super) fn examine<S: Sink>(
    context: Context<'_>,
    places: &[OperationRef],
    found: &mut Findings,
    sink: &mut S,
) {
    let (committed, known) = inserts(context, places, found);
    let mut group = Group { context, committed, known, order: Vec::new(), position: Vec::new(), found };
    group.initial(places);
    group.sort(places);
    let targets = group.order.iter().map(|index| group.committed[*index].place).collect();
    let mut fan = sink.fan(targets);
    for (transaction, own) in by_transaction(places) {
        if context.counts(transaction) {
            group.transaction(transaction, own, &mut fan, sink);
        }
    }
}

fn inserts(
    context: Context<'_>,
    places: &[OperationRef],
    found: &mut Findings,
) -> (Vec<Insert>, FxHashMap<i64, Origin>) {
    let mut committed: Vec<Insert> = Vec::new();
    let mut known: FxHashMap<i64, Origin> = FxHashMap::default();
    let all = places.iter().filter_map(|&place| match context.operation(place) {
        Operation::Insert { key, .. } => {
            Some(Insert { key: key.id, place, status: context.status(place.transaction) })
        }
        _ => None,
    });
    for insert in all {
        let before = match known.get(&insert.key) {
            Some(Origin::Committed(index)) => Some(committed[*index].place),
            Some(Origin::Unsure(place)) => Some(*place),
            Some(Origin::Aborted(_)) | None => None,
        };
        if let Some(before) = before.filter(|_| insert.status != CommitStatus::Aborted) {
            found.doubts.note(DoubtKind::NotUnique, 1, || twice(context, before, insert.place));
        }
        if insert.status != CommitStatus::Committed {
            let other = if insert.status == CommitStatus::Aborted {
                Origin::Aborted(insert.place)
            } else {
                Origin::Unsure(insert.place)
            };
            known.entry(insert.key).or_insert(other);
            continue;
        }
        if let Some(Origin::Committed(before)) = known.insert(insert.key, Origin::Committed(committed.len()))
        {
            let before = committed[before].place;
            found.note(Anomaly::DuplicateWrite, insert.place.transaction, || {
                let why = twice(context, before, insert.place);
                vec![fact(before.transaction, insert.place.transaction, why)]
            });
        }
        committed.push(insert);
    }
    (committed, known)
}

fn twice(context: Context<'_>, a: OperationRef, b: OperationRef) -> String {
    format!("{} {}, and so did {}", context.name(a.transaction), context.deed(a), context.name(b.transaction))
}

struct Group<'a, 'h> {
    context: Context<'h>,
    /// The inserts, in the order of the transactions.
    committed: Vec<Insert>,
    known: FxHashMap<i64, Origin>,
    /// The committed inserts, the most frequently seen first: if the reads are nested, each of them
    /// is a prefix.
    order: Vec<usize>,
    /// For each insert, its position in that order.
    position: Vec<usize>,
    found: &'a mut Findings,
}

impl<'h> Group<'_, 'h> {
    fn reads<'p>(
        &self,
        places: &'p [OperationRef],
    ) -> impl Iterator<Item = (OperationRef, &'h [i64])> + use<'p, 'h> {
        let context = self.context;
        places.iter().filter(move |place| context.counts(place.transaction)).filter_map(move |&place| {
            match context.operation(place) {
                Operation::ReadGroup { rows, .. } => Some((place, rows)),
                _ => None,
            }
        })
    }

    /// Rows without an insert existed initially, so every read must have them.
    fn initial(&mut self, places: &[OperationRef]) {
        if !self.context.complete {
            return;
        }
        let context = self.context;
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
        let table = places.first().map_or(0, |place| Row::of(&context.operation(*place)).table);
        let elsewhere = |row: i64| context.inserted().contains(&(table, row));
        let impossible = seen.into_iter().filter(|(row, count)| *count < reads || elsewhere(*row));
        let mut partial: Vec<i64> = impossible.map(|(row, _)| row).collect();
        partial.sort_unstable();
        let all = self.reads(places);
        for (place, rows) in all {
            if let Some(row) = rows.iter().find(|row| partial.binary_search(row).is_ok()) {
                self.found.note(Anomaly::GarbageRead, place.transaction, || {
                    let who = place.transaction;
                    let why = format!(
                        "{} {}; no transaction inserted {row}, and it did not exist initially",
                        context.name(who),
                        context.deed(place)
                    );
                    vec![fact(who, who, why)]
                });
            }
        }
    }

    fn sort(&mut self, places: &[OperationRef]) {
        let mut seen = vec![0_u64; self.committed.len()];
        for (_, rows) in self.reads(places) {
            for row in rows {
                if let Some(Origin::Committed(index)) = self.known.get(row) {
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

    fn transaction<S: Sink>(&mut self, who: Node, own: &[OperationRef], fan: &mut S::Fan, sink: &mut S) {
        let context = self.context;
        let start = self.committed.partition_point(|insert| insert.place.transaction < who);
        let end = self.committed.partition_point(|insert| insert.place.transaction <= who);
        for &place in own {
            let Operation::ReadGroup { rows, .. } = context.operation(place) else { continue };
            let mut positions = Vec::with_capacity(rows.len() + end - start);
            let (mut seen_own, mut before) = (0, None);
            for row in rows {
                match self.known.get(row) {
                    Some(Origin::Committed(index)) => {
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
                    Some(Origin::Aborted(aborted)) => {
                        let aborted = *aborted;
                        self.found.aborted_read(self.context, aborted, place);
                    }
                    Some(Origin::Unsure(_)) | None => {}
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

    /// Links to the inserts at all positions except these.
    fn unseen<S: Sink>(&self, place: OperationRef, mut seen: Vec<usize>, fan: &mut S::Fan, sink: &mut S) {
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

    fn internal(&mut self, place: OperationRef) {
        let context = self.context;
        self.found.note(Anomaly::Internal, place.transaction, || {
            let who = place.transaction;
            let why =
                format!("{} {}, which doesn't match its own inserts", context.name(who), context.deed(place));
            vec![fact(who, who, why)]
        });
    }
}
