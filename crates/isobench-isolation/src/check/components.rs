//! Views of the graph, and their strongly connected components.
//!
//! A view is the part of the graph with certain labels, either plain, *doubled* or *protected*. In a
//! doubled view a state also records whether the dependency leading to it was an anti-dependency,
//! and then no other one may follow. So the closed walks of a doubled view are exactly those without
//! two adjacent anti-dependencies, which snapshot isolation excludes (Cerone and Gotsman 2018,
//! theorem 10). Those of a protected view are the ones that the levels of their transactions exclude
//! (`protection.rs`).

use super::dependencies::{Graph, Label, Labels, Node};
use super::protection::Protection;

/// A part of the graph; see above.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'g> {
    pub(super) graph: &'g Graph,
    pub(super) labels: Labels,
    pub(super) walk: Walk<'g>,
    /// True to leave out transactions that only reads prove to be committed.
    pub(super) sure: bool,
}

/// The walks of a view.
#[derive(Debug, Clone, Copy)]
pub(super) enum Walk<'g> {
    /// All.
    Plain,
    /// Those without two adjacent anti-dependencies.
    Doubled,
    /// Those that the promises to their transactions exclude.
    Protected(&'g Protection),
}

impl Walk<'_> {
    /// The number of bits of a state that aren't the node's.
    fn bits(self) -> u32 {
        match self {
            Walk::Plain => 0,
            Walk::Doubled => 1,
            Walk::Protected(_) => Protection::BITS,
        }
    }
}

impl<'g> View<'g> {
    pub(super) fn plain(graph: &'g Graph, labels: Labels) -> View<'g> {
        View { graph, labels, walk: Walk::Plain, sure: false }
    }

    pub(super) fn doubled(graph: &'g Graph, labels: Labels) -> View<'g> {
        View { graph, labels, walk: Walk::Doubled, sure: false }
    }

    pub(super) fn protected(graph: &'g Graph, labels: Labels, protection: &'g Protection) -> View<'g> {
        View { graph, labels, walk: Walk::Protected(protection), sure: false }
    }

    /// The number of states.
    pub(super) fn states(self) -> u32 {
        self.graph.nodes() << self.walk.bits()
    }

    /// The graph node of a state.
    pub(super) fn node(self, state: u32) -> Node {
        state >> self.walk.bits()
    }

    /// The state of a node that wasn't reached by an anti-dependency.
    pub(super) fn state(self, node: Node) -> u32 {
        node << self.walk.bits()
    }

    /// The state that an edge leads to; `None` if the view doesn't have the edge.
    pub(super) fn follow(self, state: u32, edge: usize) -> Option<u32> {
        let label = self.graph.label(edge);
        if !self.labels.contains(label) {
            return None;
        }
        let to = self.graph.target(edge);
        if self.sure && self.graph.doubtful(to) {
            return None;
        }
        let after_anti = state & 1;
        match (self.walk, label) {
            (Walk::Plain, _) => Some(to),
            (Walk::Doubled, Label::Through) => Some(to << 1 | after_anti),
            (Walk::Doubled, _) if label.is_anti() => (after_anti == 0).then_some(to << 1 | 1),
            (Walk::Doubled, _) => Some(to << 1),
            (Walk::Protected(protection), _) => protection.follow(state, label, to),
        }
    }
}

/// The component of each state. Components are numbered so that edges lead to the same or a smaller
/// number.
#[derive(Debug)]
pub(super) struct Components {
    of: Vec<u32>,
    /// True for each component that has more than one state.
    many: Vec<bool>,
    cyclic: bool,
}

impl Components {
    /// True if there is a cycle. (No node has an edge to itself.)
    pub(super) fn cyclic(&self) -> bool {
        self.cyclic
    }

    /// True if two states are in the same component.
    pub(super) fn same(&self, a: u32, b: u32) -> bool {
        self.of[a as usize] == self.of[b as usize]
    }

    /// True if a cycle leads through the state.
    pub(super) fn on_cycle(&self, state: u32) -> bool {
        self.many[self.of[state as usize] as usize]
    }

    pub(super) fn of(&self, state: u32) -> u32 {
        self.of[state as usize]
    }

    pub(super) fn count(&self) -> usize {
        self.many.len()
    }

    /// Tarjan's algorithm (1972) without recursion.
    pub(super) fn of_view(view: View<'_>) -> Components {
        const NONE: u32 = u32::MAX;
        let states = view.states();
        let mut of = vec![NONE; states as usize];
        // The order of discovery, which is irrelevant once a state has its component.
        let mut low = vec![0_u32; states as usize];
        let mut many = Vec::new();
        let mut stack: Vec<u32> = Vec::new();
        let mut path: Vec<(u32, usize, u32)> = Vec::new();
        let mut discovered = 0_u32;
        let mut cyclic = false;
        for root in 0..states {
            if low[root as usize] != 0 {
                continue;
            }
            discovered += 1;
            low[root as usize] = discovered;
            stack.push(root);
            path.push((root, view.graph.range(view.node(root)).start, discovered));
            while let Some((state, next, own)) = path.last_mut() {
                let (state, own) = (*state, *own);
                if *next < view.graph.range(view.node(state)).end {
                    let edge = *next;
                    *next += 1;
                    let Some(to) = view.follow(state, edge) else { continue };
                    if low[to as usize] == 0 {
                        discovered += 1;
                        low[to as usize] = discovered;
                        stack.push(to);
                        path.push((to, view.graph.range(view.node(to)).start, discovered));
                    } else if of[to as usize] == NONE {
                        low[state as usize] = low[state as usize].min(low[to as usize]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _, _)) = path.last() {
                    let parent = *parent as usize;
                    low[parent] = low[parent].min(low[state as usize]);
                }
                if low[state as usize] == own {
                    let number = u32::try_from(many.len()).unwrap_or(NONE);
                    let mut size = 0;
                    while let Some(member) = stack.pop() {
                        of[member as usize] = number;
                        size += 1;
                        if member == state {
                            break;
                        }
                    }
                    cyclic |= size > 1;
                    many.push(size > 1);
                }
            }
        }
        Components { of, many, cyclic }
    }
}

/// True if the whole graph has no cycles. Removes nodes without incoming edges until none are left
/// (Kahn 1962).
pub(super) fn acyclic(graph: &Graph) -> bool {
    let nodes = graph.nodes();
    let mut waiting = vec![0_u32; nodes as usize];
    for edge in 0..graph.edge_count() {
        waiting[graph.target(edge) as usize] += 1;
    }
    let mut open: Vec<Node> = (0..nodes).filter(|node| waiting[*node as usize] == 0).collect();
    let mut taken = 0;
    while let Some(node) = open.pop() {
        taken += 1;
        for edge in graph.range(node) {
            let to = graph.target(edge);
            waiting[to as usize] -= 1;
            if waiting[to as usize] == 0 {
                open.push(to);
            }
        }
    }
    taken == nodes
}
