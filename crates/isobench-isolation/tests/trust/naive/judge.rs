//! The guarantees that a history permits: some choice of the unknowns has none of the phenomena
//! that the guarantee proscribes.

use std::collections::BTreeMap;

use isobench_isolation::check::Dependency;
use isobench_isolation::history::{Key, Operation, TransactionOutcome, Version};
use isobench_isolation::{Anomaly, Guarantee, Model, Order};

use super::cycles::{each_cycle, proscribed};
use super::explain::{Edge, Explained};
use super::{Case, VersionOrders};

/// The conclusions about a history.
#[derive(Debug)]
pub struct Judgement {
    /// The guarantees that the history permits.
    pub allowed: Vec<Guarantee>,
    /// True if there is only one possible version order for each row, so that nothing had to be
    /// enumerated.
    pub decided: bool,
    /// True if the definition of PL-1 leaves open whether it permits the history: uncommitted
    /// transactions wrote a row in turns, or a write of unknown outcome was read, which proves
    /// nothing at PL-1.
    pub open_at_pl1: bool,
}

/// All guarantees.
pub fn guarantees() -> impl Iterator<Item = Guarantee> {
    Model::ALL
        .into_iter()
        .flat_map(|model| Order::ALL.into_iter().map(move |order| Guarantee { model, order }))
}

impl Case<'_> {
    /// Enumerates everything.
    pub fn judge(&self) -> Judgement {
        let mut allowed: Vec<Guarantee> = Vec::new();
        for counts in self.choices() {
            for orders in all_orders(&self.possible_orders(&counts)) {
                let explained = self.explain(&counts, &orders);
                let contradicted = self.contradicted(&counts, &explained);
                for guarantee in guarantees() {
                    if !contradicted.contains(&guarantee) && !allowed.contains(&guarantee) {
                        allowed.push(guarantee);
                    }
                }
            }
        }
        allowed.sort();
        let proved = self.proved();
        let orders = self.possible_orders(&proved);
        let decided = orders.values().all(|orders| orders.len() == 1) && self.is_gapless(&proved);
        let interleaved = orders.keys().any(|&key| self.interleaved(&proved, key));
        let read =
            (0..self.len()).any(|index| proved[index] && self.outcome(index) == TransactionOutcome::Unknown);
        Judgement { allowed, decided, open_at_pl1: interleaved || read }
    }

    /// True if no counter is missing or duplicated among the committed ones, none belongs to two
    /// transactions of unknown outcome, and no read is of one that is missing before the first.
    pub fn is_gapless(&self, counts: &[bool]) -> bool {
        let written = self.possible_orders(counts).keys().all(|&key| {
            let mut counters = self.counters(key, |index| counts[index]);
            counters.sort_unstable();
            counters.windows(2).all(|pair| pair[0] + 1 == pair[1])
        });
        let open = self.possible_orders(counts).keys().any(|&key| {
            let unknown = |index: usize| !counts[index] && self.outcome(index) == TransactionOutcome::Unknown;
            let committed = self.counters(key, |index| counts[index]);
            let is_open = |it: &u64| !committed.contains(it) && committed.contains(&(it + 1));
            self.counters(key, unknown).iter().any(is_open)
        });
        let too_low = |operation: &Operation<'_>| match *operation {
            Operation::Read { key, version: Version { counter: Some(counter), .. } } => {
                self.counters(key, |_| true).into_iter().min().is_some_and(|lowest| counter + 1 < lowest)
            }
            _ => false,
        };
        written && !open && !self.operations.iter().flatten().any(too_low)
    }

    /// All dependencies, including those of the order of sessions or time.
    pub fn edges(&self, counts: &[bool], explained: &Explained, order: Order) -> Vec<Edge> {
        let mut edges: Vec<_> = explained.edges.iter().copied().collect();
        for first in (0..self.len()).filter(|&index| counts[index]) {
            for second in (0..self.len()).filter(|&index| counts[index]) {
                if let Some(why) = self.precedes(first, second, order) {
                    edges.push((first, second, why));
                }
            }
        }
        edges
    }

    /// True if enumerating cycles and reachability agree for every choice.
    pub fn is_consistent(&self) -> bool {
        self.choices().iter().all(|counts| {
            all_orders(&self.possible_orders(counts)).iter().all(|orders| {
                let explained = self.explain(counts, orders);
                let contradicted = self.contradicted(counts, &explained);
                let by_cycles = self.contradicted_by_cycles(counts, &explained);
                guarantees().all(|it| contradicted.contains(&it) == by_cycles.contains(&it))
            })
        })
    }

    fn contradicted_by_cycles(&self, counts: &[bool], explained: &Explained) -> Vec<Guarantee> {
        let mut contradicted: Vec<Guarantee> = guarantees()
            .filter(|guarantee| explained.flags.iter().any(|flag| flag_contradicts(*flag, guarantee.model)))
            .collect();
        for order in Order::ALL {
            each_cycle(&self.edges(counts, explained, order), self.len(), &mut |cycle| {
                for model in Model::ALL {
                    let guarantee = Guarantee { model, order };
                    if proscribed(model, cycle) && !contradicted.contains(&guarantee) {
                        contradicted.push(guarantee);
                    }
                }
            });
        }
        contradicted
    }
}

/// True if an anomaly that isn't a cycle contradicts a model.
pub fn flag_contradicts(flag: Anomaly, model: Model) -> bool {
    match flag {
        Anomaly::GarbageRead | Anomaly::Internal | Anomaly::IncompatibleOrder | Anomaly::DuplicateWrite => {
            true
        }
        Anomaly::DirtyUpdate | Anomaly::G1a | Anomaly::G1b => model != Model::ReadUncommitted,
        _ => !matches!(model, Model::ReadUncommitted | Model::ReadCommitted),
    }
}

/// Every combination of the rows' orders.
fn all_orders(possible: &BTreeMap<Key, Vec<Vec<usize>>>) -> Vec<VersionOrders> {
    let mut all = vec![VersionOrders::new()];
    for (&key, orders) in possible {
        all = all
            .iter()
            .flat_map(|so_far| {
                orders.iter().map(move |order| {
                    let mut next = so_far.clone();
                    next.insert(key, order.clone());
                    next
                })
            })
            .collect();
    }
    all
}

/// The order that an edge needs in addition to the data.
pub fn needs(dependency: Dependency) -> Order {
    match dependency {
        Dependency::Session => Order::Session,
        Dependency::RealTime => Order::RealTime,
        _ => Order::Data,
    }
}
