//! The proof of a contradiction: a cycle, and the version orders that it rests on, each with the
//! path that it follows from.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::dependencies::{Label, Node};
use super::super::search::Link;
use super::open::OpenRow;
use super::paths::{Hop, Paths, VersionPair};

/// A proof that no version order permits a guarantee. If one did, the lemmas would hold, and yet
/// there is the cycle.
#[derive(Debug)]
pub(super) struct Proof {
    /// The orders that were inferred, each from dependencies and earlier lemmas.
    pub(super) lemmas: Vec<Lemma>,
    /// The cycle. Dependencies that follow from a lemma have its versions.
    pub(super) cycle: Vec<(Link, Option<VersionPair>)>,
}

/// An inferred order of two versions.
#[derive(Debug)]
pub(super) struct Lemma {
    pub(super) versions: VersionPair,
    /// The path from the writer of the version before, to the writer of the one after, or to its
    /// reader.
    pub(super) path: Vec<Link>,
}

impl Proof {
    /// True if the proof uses an anti-dependency on a predicate.
    pub(super) fn uses_predicates(&self) -> bool {
        let paths = self.lemmas.iter().flat_map(|lemma| &lemma.path);
        let all = paths.chain(self.cycle.iter().map(|(link, _)| link));
        all.into_iter().any(|link| link.label == Label::PredicateReadWrite)
    }
}

/// The proof, when all that could be inferred is contradictory: a transaction on a cycle, or the
/// states that may be on one.
pub(super) fn contradiction(
    rows: &[OpenRow],
    paths: &Paths<'_>,
    cycle: Result<Node, Vec<bool>>,
) -> Proof {
    let mut search = Search { rows, paths, from: vec![None; paths.states() as usize], reached: Vec::new() };
    let cycle = match cycle {
        Ok(node) => {
            let states = paths.shape.states(node);
            search.path(&[states.start], u32::MAX, |state| state == states.end - 1).unwrap_or_default()
        }
        Err(left) => search.cycle(&left),
    };
    let cycle = search.links(&cycle);
    let wanted: Vec<u32> = cycle.iter().filter_map(|(_, inferred)| *inferred).collect();
    let versions = |inferred: u32| paths.inferred[inferred as usize].versions;
    Proof {
        lemmas: search.lemmas(wanted),
        cycle: cycle.into_iter().map(|(link, inferred)| (link, inferred.map(versions))).collect(),
    }
}

struct Search<'a> {
    rows: &'a [OpenRow],
    paths: &'a Paths<'a>,
    /// The edge by which a state was reached; `None` if it wasn't.
    from: Vec<Option<Hop>>,
    reached: Vec<u32>,
}

impl Search<'_> {
    /// A shortest path, of at least one edge, from one of the states to a goal, along dependencies
    /// that were known before a pass.
    fn path(&mut self, starts: &[u32], before: u32, goal: impl Fn(u32) -> bool) -> Option<Vec<Hop>> {
        for state in self.reached.drain(..) {
            self.from[state as usize] = None;
        }
        let mut open: VecDeque<u32> = starts.iter().copied().collect();
        while let Some(state) = open.pop_front() {
            for hop in self.paths.hops(state) {
                let late = hop.inferred.is_some_and(|it| self.paths.inferred[it as usize].pass >= before);
                if late || self.from[hop.to as usize].is_some() {
                    continue;
                }
                self.from[hop.to as usize] = Some(hop);
                self.reached.push(hop.to);
                if goal(hop.to) {
                    return Some(self.back(starts, hop.to));
                }
                // An auxiliary node doesn't add to the length of a path.
                if hop.label == Label::Through { open.push_front(hop.to) } else { open.push_back(hop.to) }
            }
        }
        None
    }

    fn back(&self, starts: &[u32], goal: u32) -> Vec<Hop> {
        let mut hops = Vec::new();
        let mut state = goal;
        while let Some(hop) = self.from[state as usize] {
            hops.push(hop);
            state = hop.from;
            if starts.contains(&state) {
                break;
            }
        }
        hops.reverse();
        hops
    }

    /// A short cycle among the states left.
    fn cycle(&mut self, left: &[bool]) -> Vec<Hop> {
        // Any cycle has a dependency of the last pass.
        const TRIES: usize = 64;
        let last = self.paths.inferred.last().map_or(0, |inferred| inferred.pass);
        let within = trimmed(self.paths, left);
        let mut best: Option<Vec<Hop>> = None;
        let mut tries = 0;
        for state in (0..).take(within.len()).filter(|state| within[*state as usize]) {
            let paths = self.paths;
            let fresh = |hop: &Hop| hop.inferred.is_some_and(|it| paths.inferred[it as usize].pass == last);
            if !paths.hops(state).any(|hop| fresh(&hop) && within[hop.to as usize]) {
                continue;
            }
            if tries >= TRIES && best.is_some() {
                break;
            }
            tries += 1;
            let Some(cycle) = self.path(&[state], u32::MAX, |to| to == state) else { continue };
            if best.as_ref().is_none_or(|best| cycle.len() < best.len()) {
                best = Some(cycle);
            }
        }
        best.unwrap_or_default()
    }

    /// The dependencies of a path, without the auxiliary nodes in between.
    fn links(&self, hops: &[Hop]) -> Vec<(Link, Option<u32>)> {
        let (graph, shape) = (self.paths.graph(), self.paths.shape);
        let mut links = Vec::new();
        let mut open: Option<(Node, Label)> = None;
        for hop in hops {
            let (from, to) = (shape.node(hop.from), shape.node(hop.to));
            let (start, label) = open.take().unwrap_or((from, hop.label));
            let label = if hop.label == Label::Through { label } else { hop.label };
            if graph.is_transaction(to) {
                links.push((Link { from: start, to, label }, hop.inferred));
            } else {
                open = Some((start, label));
            }
        }
        links
    }

    /// The lemmas behind these dependencies, each after those that it needs.
    fn lemmas(&mut self, mut wanted: Vec<u32>) -> Vec<Lemma> {
        // The pass that first ordered the versions; a later one may have used the order again.
        let mut first: FxHashMap<VersionPair, u32> = FxHashMap::default();
        for inferred in &self.paths.inferred {
            first.entry(inferred.versions).or_insert(inferred.pass);
        }
        let mut known: FxHashSet<VersionPair> = FxHashSet::default();
        let mut lemmas: FxHashMap<u32, Vec<Lemma>> = FxHashMap::default();
        while let Some(index) = wanted.pop() {
            let versions = self.paths.inferred[index as usize].versions;
            if !known.insert(versions) {
                continue;
            }
            let pass = first.get(&versions).copied().unwrap_or(0);
            let path = self.reason(versions, pass);
            let links = self.links(&path);
            wanted.extend(links.iter().filter_map(|(_, inferred)| *inferred));
            let path = links.into_iter().map(|(link, _)| link).collect();
            lemmas.entry(pass).or_default().push(Lemma { versions, path });
        }
        let mut passes: Vec<u32> = lemmas.keys().copied().collect();
        passes.sort_unstable();
        passes.into_iter().filter_map(|pass| lemmas.remove(&pass)).flatten().collect()
    }

    /// The shortest path from which the order of two versions follows.
    fn reason(&mut self, versions: VersionPair, pass: u32) -> Vec<Hop> {
        let row = &self.rows[versions.row as usize];
        let shape = self.paths.shape;
        let (writer, after) = (row.writer(versions.before), row.writer(versions.after));
        let own = shape.states(after);
        let ends: FxHashSet<u32> = row
            .readers_of(versions.after)
            .iter()
            .filter(|(_, read)| read.transaction != writer)
            .map(|(_, read)| shape.end_before_anti(read.transaction))
            .collect();
        let start = [shape.start_after_anti(writer)];
        let to_reader = self.path(&start, pass, |state| ends.contains(&state));
        let to_writer = self.path(&[shape.start(writer)], pass, |state| own.contains(&state));
        match (to_reader, to_writer) {
            (Some(one), Some(other)) if other.len() <= one.len() => other,
            (Some(one), _) => one,
            (None, other) => other.unwrap_or_default(),
        }
    }
}

/// The states of which some lead to others in the set without end: those on cycles, and between.
fn trimmed(paths: &Paths<'_>, left: &[bool]) -> Vec<bool> {
    let mut within = left.to_vec();
    let mut before: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let mut leading = vec![0_u32; within.len()];
    let members = || (0..).zip(left).filter(|(_, left)| **left).map(|(state, _)| state);
    for state in members() {
        for hop in paths.hops(state).filter(|hop| left[hop.to as usize]) {
            before.entry(hop.to).or_default().push(state);
            leading[state as usize] += 1;
        }
    }
    let mut ends: Vec<u32> = members().filter(|state| leading[*state as usize] == 0).collect();
    while let Some(state) = ends.pop() {
        within[state as usize] = false;
        for &from in before.get(&state).into_iter().flatten() {
            leading[from as usize] -= 1;
            if leading[from as usize] == 0 {
                ends.push(from);
            }
        }
    }
    within
}

