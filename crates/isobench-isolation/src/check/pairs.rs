//! Paths of a single dependency back to a transaction, through the trees of fans, without visiting
//! all the targets of a fan.
//!
//! `search.rs` finds longer paths.

use super::components::View;
use super::dependencies::{Graph, Node};

/// The fan nodes above each node, and those above one transaction.
#[derive(Debug)]
pub(super) struct Pairs {
    starts: Vec<usize>,
    /// A fan node, and its edge that leads down.
    above: Vec<(Node, usize)>,
    /// The goal above which a fan node was last found, and the edge towards it.
    found: Vec<(u32, usize)>,
    number: u32,
    goal: Node,
}

impl Pairs {
    pub(super) fn new(graph: &Graph) -> Pairs {
        let mut starts = vec![0; graph.nodes() as usize + 2];
        let down = || graph.fans().flat_map(|fan| graph.range(fan).map(move |edge| (fan, edge)));
        for (_, edge) in down() {
            starts[graph.target(edge) as usize + 2] += 1;
        }
        for node in 2..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut above = vec![(0, 0); starts.last().copied().unwrap_or(0)];
        for (fan, edge) in down() {
            let at = &mut starts[graph.target(edge) as usize + 1];
            above[*at] = (fan, edge);
            *at += 1;
        }
        starts.pop();
        Pairs { starts, above, found: vec![(0, 0); graph.nodes() as usize], number: 0, goal: 0 }
    }

    /// Makes this transaction the goal of the paths.
    pub(super) fn aim(&mut self, goal: Node) {
        self.number = self.number.wrapping_add(1);
        if self.number == 0 {
            self.found.fill((0, 0));
            self.number = 1;
        }
        self.goal = goal;
        let mut open = vec![goal];
        while let Some(node) = open.pop() {
            for &(fan, edge) in &self.above[self.starts[node as usize]..self.starts[node as usize + 1]] {
                if self.found[fan as usize].0 != self.number {
                    self.found[fan as usize] = (self.number, edge);
                    open.push(fan);
                }
            }
        }
    }

    /// The edges of a path of one dependency from a state to the goal.
    pub(super) fn back(&self, view: View<'_>, state: u32) -> Option<Vec<usize>> {
        for edge in view.graph.range(view.node(state)) {
            let Some(to) = view.follow(state, edge) else { continue };
            let mut node = view.node(to);
            if to != view.state(node) || node != self.goal && self.found[node as usize].0 != self.number {
                continue;
            }
            let mut edges = vec![edge];
            while node != self.goal {
                let down = self.found[node as usize].1;
                edges.push(down);
                node = view.graph.target(down);
            }
            return Some(edges);
        }
        None
    }

    /// The same, from the first transactions below the state of a fan.
    pub(super) fn back_from_fan(&self, view: View<'_>, state: u32) -> Option<Vec<usize>> {
        const MOST: usize = 256;
        let mut path: Vec<(u32, usize)> = vec![(state, view.graph.range(view.node(state)).start)];
        let mut down: Vec<usize> = Vec::new();
        let mut steps = 0;
        while let Some((state, next)) = path.last_mut() {
            steps += 1;
            if steps > MOST {
                return None;
            }
            let (state, edge) = (*state, *next);
            if edge >= view.graph.range(view.node(state)).end {
                path.pop();
                down.pop();
                continue;
            }
            *next += 1;
            let Some(to) = view.follow(state, edge) else { continue };
            let node = view.node(to);
            if !view.graph.is_transaction(node) {
                down.push(edge);
                path.push((to, view.graph.range(node).start));
            } else if node != self.goal
                && view.graph.range(node).len() <= MOST
                && let Some(back) = self.back(view, to)
            {
                down.push(edge);
                down.extend(back);
                return Some(down);
            }
        }
        None
    }
}
