//! All simple cycles of a small graph, and the models that each of them contradicts.

use isobench_isolation::check::Dependency;
use isobench_isolation::{Anomaly, Model};

use super::explain::Edge;

/// A cycle: the dependencies from each transaction to the next, the last one back to the first.
pub type Cycle = Vec<Edge>;

fn is_anti(dependency: Dependency) -> bool {
    matches!(dependency, Dependency::ReadWrite | Dependency::PredicateReadWrite)
}

/// Calls `found` with each simple cycle, once for each choice of dependencies.
pub fn each_cycle(edges: &[Edge], nodes: usize, found: &mut dyn FnMut(&Cycle)) {
    for start in 0..nodes {
        extend(edges, start, start, &mut Vec::new(), found);
    }
}

/// Cycles whose lowest transaction is `start`.
fn extend(edges: &[Edge], start: usize, at: usize, path: &mut Cycle, found: &mut dyn FnMut(&Cycle)) {
    for &edge in edges.iter().filter(|edge| edge.0 == at) {
        let visited = path.iter().any(|step| step.0 == edge.1);
        path.push(edge);
        if edge.1 == start {
            found(path);
        } else if edge.1 > start && !visited {
            extend(edges, start, edge.1, path, found);
        }
        path.pop();
    }
}

/// The number of anti-dependencies in a cycle.
fn anti_dependencies(cycle: &[Edge]) -> usize {
    cycle.iter().filter(|edge| is_anti(edge.2)).count()
}

/// True if two anti-dependencies are adjacent.
fn adjacent(cycle: &[Edge]) -> bool {
    let next = |place: usize| cycle[(place + 1) % cycle.len()].2;
    cycle.len() > 1 && (0..cycle.len()).any(|place| is_anti(cycle[place].2) && is_anti(next(place)))
}

/// True if a model proscribes this cycle, according to the definitions rather than the table of
/// anomalies.
pub fn proscribed(model: Model, cycle: &[Edge]) -> bool {
    let has = |dependency| cycle.iter().any(|edge| edge.2 == dependency);
    match model {
        Model::ReadUncommitted => anti_dependencies(cycle) == 0 && !has(Dependency::WriteRead),
        Model::ReadCommitted => anti_dependencies(cycle) == 0,
        Model::ConsistentView => anti_dependencies(cycle) <= 1,
        Model::SnapshotIsolation => anti_dependencies(cycle) <= 1 || !adjacent(cycle),
        Model::RepeatableRead => !has(Dependency::PredicateReadWrite),
        Model::Serializable => true,
    }
}

/// The anomaly of a cycle.
pub fn class(cycle: &[Edge]) -> Anomaly {
    let has = |dependency| cycle.iter().any(|edge| edge.2 == dependency);
    let predicate = has(Dependency::PredicateReadWrite);
    match anti_dependencies(cycle) {
        0 if has(Dependency::WriteRead) => Anomaly::G1c,
        0 => Anomaly::G0,
        1 if predicate => Anomaly::GSinglePredicate,
        1 => Anomaly::GSingle,
        _ if adjacent(cycle) && predicate => Anomaly::G2,
        _ if adjacent(cycle) => Anomaly::G2Item,
        _ if predicate => Anomaly::GNonadjacentPredicate,
        _ => Anomaly::GNonadjacent,
    }
}
