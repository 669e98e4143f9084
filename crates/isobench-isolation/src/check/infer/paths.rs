//! The paths that, closed to a cycle, a model proscribes.
//!
//! A path is followed through *states*: a transaction, and what matters of the path that led to it.
//! So a model's proscribed paths are the walks of a graph of states, and reachability is enough.

use super::super::dependencies::{Graph, Label, Labels, Node};
use crate::model::Model;

/// The most 64-bit words of a set of columns.
const WORDS: usize = 8;

/// The most words of all sets together.
const MEMORY: usize = 1 << 23;

/// For each state, the set of columns whose starts lead to it.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// The number of words of a set.
    words: usize,
    sets: Vec<u64>,
}

impl Reached {
    /// The set of a state.
    pub(super) fn of(&self, state: u32) -> &[u64] {
        &self.sets[state as usize * self.words..][..self.words]
    }
}

/// True if a set has a column.
pub(super) fn has(set: &[u64], column: usize) -> bool {
    set[column / 64] >> (column % 64) & 1 == 1
}

/// The paths that a model proscribes in a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Any path (serializable; of dependencies on rows, repeatable read).
    Any,
    /// Paths without two adjacent anti-dependencies (snapshot isolation). A state is a transaction,
    /// and whether an anti-dependency led to it.
    Apart,
    /// Paths with at most one anti-dependency (consistent view). A state is a transaction, and the
    /// number of anti-dependencies so far.
    Single,
}

impl Shape {
    /// The shape of the cycles that a model proscribes; `None` for models that don't proscribe
    /// anti-dependencies, which any version order that agrees with the other dependencies fits.
    pub(super) const fn of(model: Model) -> Option<Shape> {
        match model {
            Model::ReadUncommitted | Model::ReadCommitted => None,
            Model::ConsistentView => Some(Shape::Single),
            Model::SnapshotIsolation => Some(Shape::Apart),
            Model::RepeatableRead | Model::Serializable => Some(Shape::Any),
        }
    }

    /// The number of states of a node, as a power of two.
    const fn shift(self) -> u32 {
        match self {
            Shape::Any => 0,
            Shape::Apart | Shape::Single => 1,
        }
    }

    /// The states of a node.
    pub(super) fn states(self, node: Node) -> std::ops::Range<u32> {
        node << self.shift()..(node + 1) << self.shift()
    }

    /// The state in which a path starts at a node, and any dependency may follow.
    pub(super) fn start(self, node: Node) -> u32 {
        node << self.shift()
    }

    /// The state in which a path starts at a node to which an anti-dependency leads.
    pub(super) fn start_after_anti(self, node: Node) -> u32 {
        match self {
            Shape::Apart => node << 1 | 1,
            // A single anti-dependency must lead back along others, so that none may follow; paths
            // that have none are those in this state.
            Shape::Any | Shape::Single => self.start(node),
        }
    }

    /// The state of a node from which an anti-dependency may lead on, to close a cycle.
    pub(super) fn end_before_anti(self, node: Node) -> u32 {
        self.start(node)
    }

    pub(super) fn node(self, state: u32) -> Node {
        state >> self.shift()
    }

    /// The state that a dependency leads to; `None` if it may not follow.
    fn follow(self, state: u32, label: Label, to: Node) -> Option<u32> {
        let past = state & 1;
        match self {
            Shape::Any => Some(to),
            Shape::Apart | Shape::Single if label == Label::Through => Some(to << 1 | past),
            Shape::Apart | Shape::Single if label.is_anti() => (past == 0).then_some(to << 1 | 1),
            Shape::Apart => Some(to << 1),
            Shape::Single => Some(to << 1 | past),
        }
    }
}

/// An order of two versions of a row, by the indices of their writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct VersionPair {
    pub(super) row: u32,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// A dependency that follows from an inferred order of two versions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inferred {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) label: Label,
    pub(super) versions: VersionPair,
    /// The pass that inferred it, from what was known before.
    pub(super) pass: u32,
}

/// An edge of the graph of states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) label: Label,
    /// The index of the inferred dependency, if it is one.
    pub(super) inferred: Option<u32>,
}

/// The graph, with the inferred dependencies.
#[derive(Debug)]
pub(super) struct Paths<'g> {
    graph: &'g Graph,
    labels: Labels,
    pub(super) shape: Shape,
    pub(super) inferred: Vec<Inferred>,
    /// The indices of the inferred dependencies by source, and where those of each node start.
    by_source: Vec<u32>,
    starts: Vec<u32>,
}

impl<'g> Paths<'g> {
    pub(super) fn new(graph: &'g Graph, labels: Labels, shape: Shape) -> Paths<'g> {
        let starts = vec![0; graph.nodes() as usize + 1];
        Paths { graph, labels, shape, inferred: Vec::new(), by_source: Vec::new(), starts }
    }

    /// Adds inferred dependencies.
    pub(super) fn extend(&mut self, more: Vec<Inferred>) {
        self.inferred.extend(more);
        self.by_source = (0_u32..).take(self.inferred.len()).collect();
        self.by_source.sort_by_key(|index| self.inferred[*index as usize].from);
        self.starts.fill(0);
        for inferred in &self.inferred {
            self.starts[inferred.from as usize + 1] += 1;
        }
        for node in 1..self.starts.len() {
            self.starts[node] += self.starts[node - 1];
        }
    }

    pub(super) fn graph(&self) -> &'g Graph {
        self.graph
    }

    pub(super) fn states(&self) -> u32 {
        self.graph.nodes() << self.shape.shift()
    }

    /// An upper bound of the number of edges between states.
    pub(super) fn edges(&self) -> u64 {
        ((self.graph.edge_count() + self.inferred.len()) as u64) << self.shape.shift()
    }

    /// The edges out of a state.
    pub(super) fn hops(&self, state: u32) -> impl Iterator<Item = Hop> + '_ {
        let node = self.shape.node(state);
        let known =
            self.graph.range(node).map(|edge| (self.graph.label(edge), self.graph.target(edge), None));
        let own = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
        let inferred = self.by_source[own].iter().map(|index| {
            let inferred = &self.inferred[*index as usize];
            (inferred.label, inferred.to, Some(*index))
        });
        known.chain(inferred).filter_map(move |(label, to, inferred)| {
            let to = self.shape.follow(state, label, to).filter(|_| self.labels.contains(label))?;
            Some(Hop { from: state, to, label, inferred })
        })
    }

    /// All states, so that edges lead to later ones. If there is a cycle, the states that aren't
    /// before the first one, as an error.
    pub(super) fn sorted(&self) -> Result<Vec<u32>, Vec<bool>> {
        let states = self.states();
        let mut waiting = vec![0_u32; states as usize];
        for state in 0..states {
            self.hops(state).for_each(|hop| waiting[hop.to as usize] += 1);
        }
        let mut sorted: Vec<u32> = (0..states).filter(|state| waiting[*state as usize] == 0).collect();
        let mut next = 0;
        while let Some(&state) = sorted.get(next) {
            next += 1;
            for hop in self.hops(state) {
                waiting[hop.to as usize] -= 1;
                if waiting[hop.to as usize] == 0 {
                    sorted.push(hop.to);
                }
            }
        }
        let all = sorted.len() == states as usize;
        if all { Ok(sorted) } else { Err(waiting.iter().map(|waiting| *waiting > 0).collect()) }
    }

    /// The number of columns to compute at once: so many that the sets fit into memory.
    pub(super) fn columns(&self) -> usize {
        64 * (MEMORY / (self.states() as usize).max(1)).clamp(1, WORDS)
    }

    /// Computes for each state the columns whose starts lead to it, or are it.
    pub(super) fn reach(&self, sorted: &[u32], starts: &[u32], reached: &mut Reached) {
        let words = starts.len().div_ceil(64).min(WORDS);
        reached.words = words;
        reached.sets.clear();
        reached.sets.resize(self.states() as usize * words, 0);
        for (column, start) in starts.iter().enumerate() {
            reached.sets[*start as usize * words + column / 64] |= 1 << (column % 64);
        }
        let mut from = [0; WORDS];
        for &state in sorted {
            from[..words].copy_from_slice(reached.of(state));
            if from[..words].iter().all(|word| *word == 0) {
                continue;
            }
            for hop in self.hops(state) {
                let to = &mut reached.sets[hop.to as usize * words..][..words];
                to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
            }
        }
    }
}
