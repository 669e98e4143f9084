//! What the transactions of a history are promised: the same, or each something else by its level.

use rustc_hash::FxHashSet;

use super::dependencies::{Graph, Link, Node};
use super::protection::{Strength, excludes};
use crate::anomaly::Anomaly;
use crate::history::{Transaction, TransactionOutcome};
use crate::model::{Guarantee, Model};
use crate::promise::{LevelPromises, Mixing};

/// The promise to a history.
#[derive(Debug)]
pub(super) enum Promised {
    /// Nothing is known, or it isn't asked for.
    Nothing,
    /// The same to all transactions.
    ToAll(Guarantee),
    /// Different ones.
    ToEach(ToEach),
}

/// Different promises to the transactions of a history.
#[derive(Debug)]
pub(super) struct ToEach {
    /// The server's promises to each level.
    pub(super) promises: LevelPromises,
    /// What each transaction is promised, whatever the others are.
    models: Vec<Model>,
    /// The weakest of them.
    pub(super) weakest: Model,
}

impl Promised {
    /// The promise to transactions by their levels.
    pub(super) fn of(promises: Option<LevelPromises>, transactions: &[Transaction]) -> Promised {
        let known = transactions.iter().any(|transaction| transaction.mode.is_some());
        let Some(promises) = promises.filter(|_| known) else { return Promised::Nothing };
        let rolled_back = |transaction: &&Transaction| transaction.outcome == TransactionOutcome::Aborted;
        let model = |transaction: &Transaction| promises.model(transaction.mode);
        let all = || transactions.iter().filter(|transaction| !rolled_back(transaction)).map(model);
        let Some(first) = all().next() else { return Promised::Nothing };
        if all().all(|model| model == first) {
            return Promised::ToAll(Guarantee::of(first));
        }
        let weakest =
            all().fold(first, |weakest, model| if weakest.implies(model) { model } else { weakest });
        Promised::ToEach(ToEach { promises, models: transactions.iter().map(model).collect(), weakest })
    }
}

impl ToEach {
    /// What these transactions are promised, whatever the others are.
    pub(super) fn models(&self, nodes: &[Node]) -> Vec<Model> {
        nodes.iter().map(|node| self.model(*node)).collect()
    }

    fn model(&self, node: Node) -> Model {
        self.models[node as usize]
    }

    /// True if a transaction is promised not to lose updates.
    pub(super) fn loses_none(&self, transaction: usize) -> bool {
        Anomaly::LostUpdate.contradicts(self.models[transaction])
    }

    pub(super) fn is_serializable(&self, transaction: usize) -> bool {
        self.models[transaction] == Model::Serializable
    }

    pub(super) fn is_weak(&self, transaction: usize) -> bool {
        Strength::of(self.models[transaction]) == Strength::Weak
    }

    pub(super) fn strength(&self, node: Node) -> Strength {
        Strength::of(self.model(node))
    }

    /// True if a cycle is one that the levels of its transactions exclude.
    pub(super) fn excludes(&self, cycle: &[Link]) -> bool {
        let anti = cycle.iter().any(|link| link.label.is_anti());
        !anti || excludes(self.promises.mixing, cycle, |node| self.strength(node))
    }

    /// The transactions of a graph that are promised statements with snapshots, and nothing stronger.
    pub(super) fn weak(&self, graph: &Graph) -> FxHashSet<Node> {
        if self.promises.mixing == Mixing::AmongEquals {
            return FxHashSet::default();
        }
        let all = (0..graph.transactions()).map(|node| graph.origin(node));
        all.filter(|node| self.strength(*node) == Strength::Weak).collect()
    }
}
