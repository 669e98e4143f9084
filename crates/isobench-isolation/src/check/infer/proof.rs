//! The proof of a contradiction: a cycle, and the version orders that it rests on, each with the
//! path that it follows from.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::dependencies::{Label, Node};
use super::open::OpenRow;
use super::paths::{Hop, Paths, Shape, VersionPair};
use crate::check::dependencies::Link;

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
pub(super) fn contradiction(rows: &[OpenRow], paths: &Paths<'_>, cycle: Result<Node, Vec<bool>>) -> Proof {
    let mut search =
        Search { rows, paths, reached: vec![None; paths.states() as usize], touched: Vec::new() };
    let cycle = match cycle {
        Ok(node) => {
            let states = paths.shape.states(node);
            search.path(states.start, u32::MAX, |state| state == states.end - 1).unwrap_or_default()
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
    /// The length of the path to each state, and its last edge; `None` if it wasn't reached.
    reached: Vec<Option<(u32, Hop)>>,
    touched: Vec<u32>,
}

impl Search<'_> {
    /// The cost of an edge in a proof: an inferred one has to be explained, too, and an auxiliary
    /// node doesn't show.
    fn cost(hop: &Hop) -> u32 {
        match (hop.label, hop.inferred) {
            (Label::Through, _) => 0,
            (_, None) => 1,
            (_, Some(_)) => 3,
        }
    }

    /// A path of least cost and at least one edge, from a state to a goal, along dependencies that
    /// were known before a pass.
    fn path(&mut self, start: u32, before: u32, goal: impl Fn(u32) -> bool) -> Option<Vec<Hop>> {
        for state in self.touched.drain(..) {
            self.reached[state as usize] = None;
        }
        let mut open = BinaryHeap::from([Reverse((0, start, true))]);
        while let Some(Reverse((length, state, first))) = open.pop() {
            if !first {
                if self.reached[state as usize].is_some_and(|(known, _)| known < length) {
                    continue;
                }
                if goal(state) {
                    return Some(self.back(start, state));
                }
            }
            for hop in self.paths.hops(state) {
                if hop.inferred.is_some_and(|it| self.paths.inferred[it as usize].pass >= before) {
                    continue;
                }
                let length = length + Search::cost(&hop);
                let known = &mut self.reached[hop.to as usize];
                if known.is_none_or(|(known, _)| length < known) {
                    *known = Some((length, hop));
                    self.touched.push(hop.to);
                    open.push(Reverse((length, hop.to, false)));
                }
            }
        }
        None
    }

    fn back(&self, start: u32, goal: u32) -> Vec<Hop> {
        let mut hops = Vec::new();
        let mut state = goal;
        while let Some((_, hop)) = self.reached[state as usize] {
            hops.push(hop);
            state = hop.from;
            if state == start {
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
            // A cycle with one anti-dependency ends in the node's other state.
            let other = if paths.shape == Shape::Single { state | 1 } else { state };
            let closed = self.path(state, u32::MAX, |to| to == state || to == other);
            let Some(cycle) = closed else { continue };
            let cost = |cycle: &[Hop]| cycle.iter().map(Search::cost).sum::<u32>();
            if best.as_ref().is_none_or(|best| cost(&cycle) < cost(best)) {
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
        let to_reader = self.path(shape.start_after_anti(writer), pass, |state| ends.contains(&state));
        let to_writer = self.path(shape.start(writer), pass, |state| own.contains(&state));
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
