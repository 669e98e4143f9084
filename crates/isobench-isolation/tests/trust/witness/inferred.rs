//! Verifies proofs with inferred version orders: that each order follows from its path by the rules
//! in `src/check/infer.rs`, that each step of each path holds, and that the cycle is proscribed.

use isobench_isolation::check::{Dependency, Finding, WitnessStep};
use isobench_isolation::history::Key;
use isobench_isolation::{Anomaly, Model, Order};

use super::Facts;
use crate::naive::cycles::proscribed;
use crate::naive::explain::{Edge, Source};
use crate::naive::judge::needs;

/// A row, and two writers in the order of their versions.
type Inferred = (Key, usize, usize);

impl Facts<'_> {
    pub(super) fn verify_inferred(&self, finding: &Finding) -> Result<(), String> {
        let model = match finding.anomaly {
            Anomaly::GSingle | Anomaly::GSinglePredicate => Model::ConsistentView,
            Anomaly::GNonadjacent | Anomaly::GNonadjacentPredicate => Model::SnapshotIsolation,
            Anomaly::G2Item => Model::RepeatableRead,
            Anomaly::G2 => Model::Serializable,
            other => return Err(format!("{other:?} isn't inferred")),
        };
        let (mut known, mut cycle): (Vec<Inferred>, Vec<Edge>) = (Vec::new(), Vec::new());
        let mut most = Order::Data;
        for step in &finding.witness.steps {
            let Some(dependency) = step.dependency else {
                if !cycle.is_empty() {
                    return Err("a fact after the cycle began".to_owned());
                }
                let path = self.path(step)?;
                most = path.iter().map(|edge| needs(edge.2)).fold(most, Order::max);
                let inferred = self.infer(&known, step, &path, model)?;
                known.extend(inferred);
                continue;
            };
            let edge = (step.from, step.to, dependency);
            most = most.max(needs(dependency));
            if !self.follows(&known, edge) {
                return Err(format!("doesn't follow: {}", step.why));
            }
            if cycle.last().is_some_and(|last| last.1 != step.from) {
                return Err("a step doesn't lead to the next".to_owned());
            }
            cycle.push(edge);
        }
        let closed = cycle.first().zip(cycle.last()).is_some_and(|(first, last)| first.0 == last.1);
        if !closed || !proscribed(model, &cycle) {
            return Err(format!("{model:?} doesn't proscribe this"));
        }
        if most != finding.order {
            return Err(format!("the proof needs {most:?}, the finding says {:?}", finding.order));
        }
        Ok(())
    }

    /// The path in the parentheses: "(T1 wr T2, T2 session T3)".
    fn path(&self, step: &WitnessStep) -> Result<Vec<Edge>, String> {
        let why = &step.why;
        let text = why.rfind("(T").and_then(|at| why[at + 1..].strip_suffix(')'));
        let text = text.ok_or_else(|| format!("no path in: {why}"))?;
        let all = [
            Dependency::WriteWrite,
            Dependency::WriteRead,
            Dependency::ReadWrite,
            Dependency::PredicateReadWrite,
            Dependency::Session,
            Dependency::RealTime,
        ];
        let index = |name: &str| {
            let transactions = self.case.history.transactions();
            transactions.iter().position(|it| format!("T{}", it.id) == name)
        };
        let edge = |hop: &str| -> Option<Edge> {
            let (from, rest) = hop.split_once(' ')?;
            let (kind, to) = rest.rsplit_once(' ')?;
            Some((index(from)?, index(to)?, all.into_iter().find(|it| it.name() == kind)?))
        };
        text.split(", ").map(edge).collect::<Option<_>>().ok_or_else(|| format!("unclear path: {why}"))
    }

    /// True if the data, an order or an inferred version order proves this dependency.
    fn follows(&self, known: &[Inferred], edge: Edge) -> bool {
        let (from, to, dependency) = edge;
        let mut to_later = known.iter().filter(|inferred| inferred.2 == to);
        match dependency {
            _ if self.holds(edge) => true,
            Dependency::WriteWrite => to_later.any(|inferred| inferred.1 == from),
            Dependency::ReadWrite => to_later.any(|(key, before, _)| self.read(from, *key, *before)),
            _ => false,
        }
    }

    /// True if a transaction read another one's version of a row.
    fn read(&self, reader: usize, key: Key, writer: usize) -> bool {
        reader != writer && self.sources(reader, key).contains(&Source::Writer(writer, true))
    }

    /// The rows of which the order of versions follows from a path.
    fn infer(
        &self,
        known: &[Inferred],
        step: &WitnessStep,
        path: &[Edge],
        model: Model,
    ) -> Result<Vec<Inferred>, String> {
        let connected = path.windows(2).all(|pair| pair[0].1 == pair[1].0);
        let end = path.last().map_or(step.to, |edge| edge.1);
        if !connected || path.first().is_none_or(|edge| edge.0 != step.from) {
            return Err(format!("not a path: {}", step.why));
        }
        if let Some(edge) = path.iter().find(|edge| !self.follows(known, **edge)) {
            return Err(format!("{edge:?} doesn't hold in: {}", step.why));
        }
        let anti = |edge: &Edge| matches!(edge.2, Dependency::ReadWrite | Dependency::PredicateReadWrite);
        let adjacent = path.windows(2).any(|pair| anti(&pair[0]) && anti(&pair[1]));
        let count = path.iter().filter(|edge| anti(edge)).count();
        let predicate = path.iter().any(|edge| edge.2 == Dependency::PredicateReadWrite);
        let ends = anti(&path[0]) || anti(&path[path.len() - 1]);
        let (to_writer, to_reader) = match model {
            Model::ConsistentView => (count <= 1, count == 0),
            Model::SnapshotIsolation => (!adjacent, !adjacent && !ends),
            Model::RepeatableRead => (!predicate, !predicate),
            _ => (true, true),
        };
        let wrote = |key: &Key, writer: usize| {
            self.orders[key].first.contains(&writer) || self.orders[key].rest.contains(&writer)
        };
        let rows: Vec<Inferred> = self
            .orders
            .keys()
            .filter(|key| wrote(key, step.from) && wrote(key, step.to))
            .filter(|key| {
                to_writer && end == step.to || to_reader && end != step.from && self.read(end, **key, step.to)
            })
            .map(|key| (*key, step.from, step.to))
            .collect();
        if rows.is_empty() { Err(format!("nothing follows: {}", step.why)) } else { Ok(rows) }
    }
}
