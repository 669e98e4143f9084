//! What levels promise to the transactions of a mixed history, by simple cycles.

use isobench_isolation::check::Dependency;
use isobench_isolation::{Anomaly, Level, Mixing, Order};

use crate::naive::Case;
use crate::naive::VersionOrders;
use crate::naive::cycles::each_cycle;
use crate::naive::explain::Edge;

/// What breaks promises in a history whose version orders are known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// True if there is a cycle that the levels of its transactions exclude.
    pub cycle: bool,
    /// True if there is what no level permits, and isn't a cycle.
    pub fact: bool,
    /// True if versions have the same counter, so that an update was lost of which it isn't known
    /// whose it was.
    pub unclear: bool,
    /// The transactions on cycles.
    pub cyclic: Vec<usize>,
    /// The transactions on cycles that break a promise.
    pub accused: Vec<usize>,
}

fn is_anti(edge: &Edge) -> bool {
    matches!(edge.2, Dependency::ReadWrite | Dependency::PredicateReadWrite)
}

/// True if the levels of a cycle's transactions exclude it.
pub fn excluded(mixing: Mixing, cycle: &[Edge], levels: &[Level]) -> bool {
    let level = |transaction: usize| levels[transaction];
    if !cycle.iter().any(is_anti) {
        return true;
    }
    if mixing == Mixing::AmongEquals {
        let next = |place: usize| &cycle[(place + 1) % cycle.len()];
        let adjacent = (0..cycle.len()).any(|place| is_anti(&cycle[place]) && is_anti(next(place)));
        let all = levels.iter().all(|level| *level >= Level::RepeatableRead);
        return cycle.iter().all(|edge| level(edge.0) == Level::Serializable) || all && !adjacent;
    }
    (0..cycle.len()).all(|place| {
        let (edge, next) = (cycle[place], cycle[(place + 1) % cycle.len()]);
        if !is_anti(&edge) {
            return true;
        }
        let one_snapshot = level(edge.0) >= Level::RepeatableRead;
        let three = [edge.0, edge.1, next.1];
        let protected = match mixing {
            Mixing::AmongSerializable => three.into_iter().all(|it| level(it) == Level::Serializable),
            Mixing::EachSerializable | Mixing::AmongEquals => level(edge.1) == Level::Serializable,
        };
        one_snapshot && (!is_anti(&next) || protected)
    })
}

/// Judges a history of which every version order is known; `None` of another one.
pub fn judge(case: &Case<'_>, mixing: Mixing, levels: &[Level]) -> Option<Broken> {
    let counts = case.proved();
    let orders = case.possible_orders(&counts);
    if !orders.values().all(|orders| orders.len() == 1) {
        return None;
    }
    let orders: VersionOrders = orders.into_iter().map(|(key, mut orders)| (key, orders.remove(0))).collect();
    let explained = case.explain(&counts, &orders);
    let mut broken = Broken {
        unclear: explained.flags.contains(&Anomaly::LostUpdate),
        fact: explained.flags.iter().any(|flag| *flag != Anomaly::LostUpdate),
        ..Broken::default()
    };
    let edges: Vec<Edge> = case.edges(&counts, &explained, Order::Data);
    each_cycle(&edges, case.len(), &mut |cycle| {
        let accuses = excluded(mixing, cycle, levels);
        broken.cycle |= accuses;
        for transaction in cycle.iter().map(|edge| edge.0) {
            broken.cyclic.push(transaction);
            broken.accused.extend(accuses.then_some(transaction));
        }
    });
    for list in [&mut broken.cyclic, &mut broken.accused] {
        list.sort_unstable();
        list.dedup();
    }
    Some(broken)
}
