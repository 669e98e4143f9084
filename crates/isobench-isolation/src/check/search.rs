//! Shortest ways in a view of the graph.

use std::collections::VecDeque;

use super::components::View;
use super::dependencies::{Label, Node};

/// A dependency of a cycle, without the auxiliary nodes between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Link {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) label: Label,
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// The edges of a shortest way.
    Found(Vec<usize>),
    /// There is none.
    None,
    /// Too many steps.
    GaveUp,
}

/// Room for searches in one view: used again, so that a search costs what it looks at.
#[derive(Debug)]
pub(super) struct Search {
    /// The number of the search that a state was last reached in.
    reached: Vec<u32>,
    distance: Vec<u32>,
    /// The edge that a state was reached by, and where from.
    parent: Vec<(usize, u32)>,
    number: u32,
    open: VecDeque<u32>,
}

impl Search {
    pub(super) fn new(states: u32) -> Search {
        let states = states as usize;
        Search {
            reached: vec![0; states],
            distance: vec![0; states],
            parent: vec![(0, 0); states],
            number: 0,
            open: VecDeque::new(),
        }
    }

    /// A shortest way, in transactions, from a state to another one; looks only at states that
    /// `allowed` lets through.
    pub(super) fn way(
        &mut self,
        view: View<'_>,
        from: u32,
        goal: u32,
        allowed: impl Fn(u32) -> bool,
        steps: &mut u64,
    ) -> Way {
        self.number = self.number.wrapping_add(1);
        if self.number == 0 {
            self.reached.fill(0);
            self.number = 1;
        }
        self.open.clear();
        self.reach(from, 0, (usize::MAX, from));
        self.open.push_back(from);
        while let Some(state) = self.open.pop_front() {
            if state == goal {
                return Way::Found(self.edges(from, goal));
            }
            let distance = self.distance[state as usize];
            for edge in view.graph.range(view.node(state)) {
                if *steps == 0 {
                    return Way::GaveUp;
                }
                *steps -= 1;
                let Some(to) = view.follow(state, edge) else { continue };
                if !allowed(to) {
                    continue;
                }
                // A way through auxiliary nodes is no longer than one past them.
                let through = view.graph.label(edge) == Label::Through;
                let length = distance + u32::from(!through);
                if self.reached[to as usize] == self.number && self.distance[to as usize] <= length {
                    continue;
                }
                self.reach(to, length, (edge, state));
                if through {
                    self.open.push_front(to);
                } else {
                    self.open.push_back(to);
                }
            }
        }
        Way::None
    }

    fn reach(&mut self, state: u32, distance: u32, parent: (usize, u32)) {
        self.reached[state as usize] = self.number;
        self.distance[state as usize] = distance;
        self.parent[state as usize] = parent;
    }

    fn edges(&self, from: u32, goal: u32) -> Vec<usize> {
        let mut edges = Vec::new();
        let mut state = goal;
        while state != from {
            let (edge, before) = self.parent[state as usize];
            edges.push(edge);
            state = before;
        }
        edges.reverse();
        edges
    }
}

/// The dependencies that a closed way of edges stands for; the first edge leads out of the
/// transaction `start`.
pub(super) fn links(view: View<'_>, start: Node, edges: &[usize]) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let (mut from, mut label) = (start, Label::Through);
    for &edge in edges {
        let next = view.graph.label(edge);
        if next != Label::Through {
            label = next;
        }
        let to = view.graph.target(edge);
        if view.graph.is_transaction(to) {
            links.push(Link { from: view.graph.origin(from), to: view.graph.origin(to), label });
            from = to;
        }
    }
    links
}
