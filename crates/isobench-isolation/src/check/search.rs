//! Shortest paths in a view of the graph.

use std::collections::VecDeque;

use super::components::View;
use super::dependencies::{Label, Link, Node};

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SearchResult {
    /// The edges of a shortest path.
    Found(Vec<usize>),
    /// There is no path.
    None,
    /// The search took too many steps.
    GaveUp,
}

/// Buffers for searches in one view, reused so that the cost of a search depends only on what it
/// visits.
#[derive(Debug)]
pub(super) struct Search {
    /// The number of the search that last reached each state.
    reached: Vec<u32>,
    distance: Vec<u32>,
    /// The edge by which a state was reached, and its source.
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

    /// A shortest path, counted in transactions, from a state to one of those that are a `goal`; visits
    /// only states accepted by `allowed`.
    pub(super) fn path(
        &mut self,
        view: View<'_>,
        from: u32,
        goal: impl Fn(u32) -> bool,
        allowed: impl Fn(u32) -> bool,
        steps: &mut u64,
    ) -> SearchResult {
        self.number = self.number.wrapping_add(1);
        if self.number == 0 {
            self.reached.fill(0);
            self.number = 1;
        }
        self.open.clear();
        self.reach(from, 0, (usize::MAX, from));
        self.open.push_back(from);
        while let Some(state) = self.open.pop_front() {
            if goal(state) {
                return SearchResult::Found(self.edges(from, state));
            }
            let distance = self.distance[state as usize];
            for edge in view.graph.range(view.node(state)) {
                if *steps == 0 {
                    return SearchResult::GaveUp;
                }
                *steps -= 1;
                let Some(to) = view.follow(state, edge) else { continue };
                if !allowed(to) {
                    continue;
                }
                // An auxiliary node doesn't add to the length of a path.
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
        SearchResult::None
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

/// The dependencies represented by a closed path of edges; the first edge leads out of the
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
