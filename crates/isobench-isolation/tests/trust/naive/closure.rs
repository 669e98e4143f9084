//! Decides every guarantee by reachability alone, for histories that are too large for enumerating
//! cycles.

use std::collections::BTreeSet;

use isobench_isolation::check::Dependency;
use isobench_isolation::history::TransactionOutcome;
use isobench_isolation::{Guarantee, Model, Order};

use super::Case;
use super::explain::{Edge, Explained};
use super::judge::{flag_contradicts, guarantees};

/// The result for a history whose version orders are known.
pub enum Decision {
    /// The guarantees that the history contradicts.
    Contradicted(Vec<Guarantee>),
    /// The version orders aren't known.
    Undecided,
}

impl Case<'_> {
    /// The guarantees contradicted by a choice of committed transactions and version orders.
    pub fn contradicted(&self, counts: &[bool], explained: &Explained) -> Vec<Guarantee> {
        let of_flags = |it: &Guarantee| explained.flags.iter().any(|flag| flag_contradicts(*flag, it.model));
        let mut contradicted: Vec<_> = guarantees().filter(of_flags).collect();
        for order in Order::ALL {
            let edges = self.edges(counts, explained, order);
            for model in Model::ALL {
                if has_proscribed_cycle(model, &edges, self.len()) {
                    contradicted.push(Guarantee { model, order });
                }
            }
        }
        contradicted
    }
}

/// True if the graph has a cycle that the model proscribes.
fn has_proscribed_cycle(model: Model, edges: &[Edge], nodes: usize) -> bool {
    let of = |kinds: &[Dependency]| -> Vec<Edge> {
        edges.iter().copied().filter(|edge| kinds.contains(&edge.2)).collect()
    };
    let orders = [Dependency::Session, Dependency::RealTime];
    let forward = of(&[Dependency::WriteWrite, Dependency::WriteRead, orders[0], orders[1]]);
    let anti = of(&[Dependency::ReadWrite, Dependency::PredicateReadWrite]);
    match model {
        Model::ReadUncommitted => is_cyclic(&of(&[Dependency::WriteWrite, orders[0], orders[1]]), nodes),
        Model::ReadCommitted => is_cyclic(&forward, nodes),
        Model::ConsistentView => {
            let reached = reachability(&forward, nodes);
            is_cyclic(&forward, nodes) || anti.iter().any(|edge| reached[edge.1].contains(&edge.0))
        }
        Model::SnapshotIsolation => {
            let then_anti =
                |one: &Edge| anti.iter().filter(|two| two.0 == one.1).map(|two| two.1).collect::<Vec<_>>();
            let mut composed = forward.clone();
            composed.extend(
                forward
                    .iter()
                    .flat_map(|one| then_anti(one).into_iter().map(|to| (one.0, to, Dependency::ReadWrite))),
            );
            is_cyclic(&composed, nodes)
        }
        Model::RepeatableRead => {
            let mut rows = forward;
            rows.extend(of(&[Dependency::ReadWrite]));
            is_cyclic(&rows, nodes)
        }
        Model::Serializable => is_cyclic(edges, nodes),
    }
}

/// For each node, those reachable by at least one step.
fn reachability(edges: &[Edge], nodes: usize) -> Vec<BTreeSet<usize>> {
    let mut next = vec![BTreeSet::new(); nodes];
    for edge in edges {
        next[edge.0].insert(edge.1);
    }
    let from = |start: usize| {
        let mut reached: BTreeSet<usize> = BTreeSet::new();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            open.extend(next[at].iter().filter(|to| reached.insert(**to)));
        }
        reached
    };
    (0..nodes).map(from).collect()
}

fn is_cyclic(edges: &[Edge], nodes: usize) -> bool {
    reachability(edges, nodes).iter().enumerate().any(|(start, reached)| reached.contains(&start))
}

impl Case<'_> {
    /// Decides a history, if its version orders are known. A transaction of unknown outcome that
    /// was read either committed, or its readers made aborted reads: a guarantee is contradicted if
    /// both cases contradict it.
    pub fn decide(&self) -> Decision {
        let proved = self.proved();
        if self.known_orders(&proved).values().any(|order| order.rest.len() > 1) || !self.is_gapless(&proved)
        {
            return Decision::Undecided;
        }
        let committed: Vec<_> =
            (0..self.len()).map(|index| self.outcome(index) == TransactionOutcome::Committed).collect();
        let contradicted = |counts: &[bool]| {
            let orders = self.known_orders(counts).into_iter();
            let orders =
                orders.map(|(key, order)| (key, order.first.into_iter().chain(order.rest).collect()));
            self.contradicted(counts, &self.explain(counts, &orders.collect()))
        };
        let mut both = contradicted(&proved);
        if proved != committed {
            let other: Vec<_> = contradicted(&committed);
            both.retain(|guarantee| other.contains(guarantee));
        }
        Decision::Contradicted(both)
    }
}
