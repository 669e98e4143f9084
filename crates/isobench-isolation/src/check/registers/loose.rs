//! Versions without counters: anti-dependencies on them, and the unknown part of their order.

use super::super::dependencies::{Label, Node, OperationRef, Sink};
use super::examination::{Examination, Follower, Reader};
use super::versions::{Seen, Versions};
use crate::anomaly::Anomaly;

impl<S: Sink> Examination<'_, '_, S> {
    /// Adds anti-dependencies on loose versions. Returns the number of pairs whose order is
    /// unknown.
    pub(super) fn loose_order(&mut self) -> u64 {
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
            let targets: Vec<OperationRef> =
                group.iter().map(|(_, _, index)| followers[*index].place).collect();
            let updating = group.partition_point(|(_, root, _)| !root);
            self.successors(&rest[skipped..skipped + count], targets, updating);
            rest = &rest[skipped + count..];
        }
        undecided
    }

    /// Orders a version's readers before all versions made after it; the first `updating` targets
    /// were made from it.
    fn successors(&mut self, readers: &[Reader], targets: Vec<OperationRef>, updating: usize) {
        let context = self.context;
        let read = |write: &OperationRef| {
            let end = readers.partition_point(|reader| reader.place.transaction <= write.transaction);
            end.checked_sub(1).map(|index| (readers[index].place, *write))
        };
        let steps = |a: (OperationRef, OperationRef), b: (OperationRef, OperationRef)| {
            vec![context.step(a.0, b.1, Label::Lost), context.step(b.0, a.1, Label::Lost)]
        };
        for pair in targets[..updating].windows(2) {
            let (Some(first), Some(second)) = (read(&pair[0]), read(&pair[1])) else { continue };
            self.found.note(Anomaly::LostUpdate, pair[1].transaction, || steps(first, second));
        }
        let updates: Vec<(OperationRef, OperationRef)> =
            targets[..updating].iter().filter_map(read).collect();
        self.found.break_lost(&updates, |(_, write)| write.transaction, steps);
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

/// Counts the pairs of versions, one of them loose, in which neither was made from the other,
/// directly or indirectly.
fn undecided(versions: &Versions, followers: &[Follower]) -> u64 {
    let loose = &versions.loose;
    // For each loose version, the version that it was made from.
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
