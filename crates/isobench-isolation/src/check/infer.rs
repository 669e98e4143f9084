//! Infers the order of versions that values alone leave unknown.
//!
//! A guarantee is contradicted if *every* order of the versions has a cycle that it proscribes. So
//! an order of two versions that would close such a cycle is excluded, and the other one holds. That
//! is repeated until there is a cycle in any case, or nothing more follows. Nothing is guessed.
//!
//! Let T1 and T2 have written a row, and T3 have read T1's version. If T1's version were before
//! T2's, Adya's dependencies would lead from T1 to T2 by write-write dependencies alone (through the
//! versions in between), and from T3 to T2 by an anti-dependency, perhaps followed by write-write
//! dependencies. So T2's version is before T1's
//!
//! - (A) if T2 *precedes T3*, because T3 → T2 → T3 would be a cycle with one anti-dependency more
//!   than the path from T2 to T3 has;
//! - (A') if T2 *precedes T1*, because T1 → T2 → T1 would be a cycle with the anti-dependencies of
//!   that path.
//!
//! And if T2's version is before T1's,
//!
//! - (B) a write-write dependency leads from T2 to T1, and an anti-dependency from each reader of T2's
//!   version to T1. (Both stand for paths with at most these anti-dependencies, so that a cycle with
//!   them stands for one that is as bad.)
//!
//! Which paths count as *precedes* depends on the model, as only cycles that it proscribes are
//! excluded. A path consists of write-read and write-write dependencies, those of the order of
//! sessions or time if the guarantee has it, and anti-dependencies:
//!
//! | model | proscribes cycles | T2 precedes T3 (A) | T2 precedes T1 (A') |
//! |---|---|---|---|
//! | read uncommitted, read committed | without anti-dependencies | - | - |
//! | consistent view | with at most one | by a path without | by a path with at most one |
//! | snapshot isolation | without two adjacent ones | by a path without two adjacent ones that neither begins nor ends with one | by a path without two adjacent ones |
//! | repeatable read | of dependencies on rows | by any path without predicates | the same |
//! | serializable | any | by any path | the same |
//!
//! At read committed, every cycle has a dependency other than anti-dependencies only, and any
//! version order that sorts the transactions topologically adds none; so there is nothing to infer.
//! At snapshot isolation a path that ends with an anti-dependency doesn't order the versions: T3's
//! snapshot may be older than T2's commit. A transaction that read two versions of a row is an
//! instance of (A): each of the two versions would have to be before the other.
//!
//! Transactions that are missing or of unknown outcome only add versions in between, hence
//! write-write dependencies to the paths above, and no cycle becomes harmless.

mod open;
mod paths;
mod proof;
mod run;

use rustc_hash::FxHashMap;

use super::context::{Context, MOST_EXPLAINED, brief, fact};
use super::cycles::{anomalous, everything, joined, rows_only, simple};
use super::dependencies::{Graph, Label, Link, OperationRef};
use super::findings::Findings;
use super::report::{Count, Finding, Witness, WitnessStep};
use crate::anomaly::Anomaly;
use crate::model::{Guarantee, Model, Order};

pub(super) use open::{Ignored, OpenRow};
use paths::{Shape, VersionPair};
use proof::{Lemma, Proof};
use run::{Outcome, run};

/// The models for which version orders matter, the strongest first.
const MODELS: [Model; 4] =
    [Model::Serializable, Model::RepeatableRead, Model::SnapshotIsolation, Model::ConsistentView];

/// What the inference needs.
pub(super) struct Inference<'a> {
    pub(super) context: Context<'a>,
    pub(super) graph: &'a Graph,
    /// The rows with unknown version orders.
    pub(super) open: Vec<OpenRow>,
    /// The most orders to consider.
    pub(super) most: Order,
    /// The number of steps for each guarantee.
    pub(super) effort: u64,
}

/// What the inference left open.
#[derive(Debug, Default)]
pub(super) struct Inferred {
    /// For each guarantee that was examined, the number of pairs of versions whose order is still
    /// unknown.
    open: Vec<(Guarantee, u64)>,
    /// The number of guarantees for which the effort didn't suffice.
    pub(super) cut: u64,
}

impl Inferred {
    /// The number of pairs whose order is unknown under the strongest guarantees; `None` if it
    /// wasn't examined for one of them, or makes no difference to them.
    pub(super) fn pairs(&self, strongest: &[Guarantee]) -> Option<u64> {
        let of = |one: &Guarantee| self.open.iter().find(|(known, _)| known == one).map(|(_, open)| *open);
        let matters = |one: &&Guarantee| Shape::of(one.model).is_some();
        let all: Option<Vec<u64>> = strongest.iter().filter(matters).map(of).collect();
        all?.into_iter().max()
    }
}

impl Inference<'_> {
    /// Adds a finding for each guarantee that no version order permits, and that nothing contradicts
    /// otherwise.
    pub(super) fn run(&self, found: &mut Findings) -> Inferred {
        let mut inferred = Inferred::default();
        if self.open.is_empty() {
            return inferred;
        }
        self.changed_reads(found);
        let mut proofs: Vec<(Guarantee, Proof)> = Vec::new();
        for order in Order::ALL.into_iter().rev().filter(|order| *order <= self.most) {
            for guarantee in MODELS.map(|model| Guarantee { model, order }) {
                let weaker = inferred.open.iter().any(|(other, _)| other.implies(guarantee));
                if weaker || found.contradicts(guarantee) {
                    continue;
                }
                match self.examine(guarantee, &self.open) {
                    Outcome::Open(pairs) => inferred.open.push((guarantee, pairs)),
                    Outcome::Contradicted(proof) => proofs.push((guarantee, proof)),
                    Outcome::Cut => inferred.cut += 1,
                }
            }
        }
        // The fewest orders and the weakest models first.
        for (guarantee, proof) in proofs.into_iter().rev() {
            if !found.contradicts(guarantee) {
                self.report(guarantee, &proof, 1, found);
            }
        }
        inferred
    }

    fn examine(&self, guarantee: Guarantee, open: &[OpenRow]) -> Outcome {
        let Some(shape) = Shape::of(guarantee.model) else { return Outcome::Cut };
        let labels = match guarantee.model {
            Model::RepeatableRead => rows_only(guarantee.order),
            _ => everything(guarantee.order),
        };
        run(self.graph, labels, shape, open, self.effort)
    }

    /// Reports transactions in which a row changed, without the effort of a whole inference.
    fn changed_reads(&self, found: &mut Findings) {
        let guarantee = Guarantee::of(Model::ConsistentView);
        if found.contradicts(guarantee) {
            return;
        }
        let changed: Vec<OpenRow> = self.open.iter().flat_map(OpenRow::changed_reads).collect();
        let Some(first) = changed.first() else { return };
        let alone = Inference { open: vec![first.clone()], effort: u64::MAX, ..*self };
        if let Outcome::Contradicted(proof) = alone.examine(guarantee, &alone.open) {
            alone.report(guarantee, &proof, changed.len() as u64, found);
        }
    }

    fn report(&self, guarantee: Guarantee, proof: &Proof, count: u64, found: &mut Findings) {
        let anomaly = match (guarantee.model, proof.uses_predicates()) {
            (Model::ConsistentView, false) => Anomaly::GSingle,
            (Model::ConsistentView, true) => Anomaly::GSinglePredicate,
            (Model::SnapshotIsolation, false) => Anomaly::GNonadjacent,
            (Model::SnapshotIsolation, true) => Anomaly::GNonadjacentPredicate,
            (Model::RepeatableRead, _) => Anomaly::G2Item,
            _ => Anomaly::G2,
        };
        let mut inferred: FxHashMap<Link, Option<VersionPair>> = FxHashMap::default();
        for (link, versions) in &proof.cycle {
            inferred.entry(*link).and_modify(|known| *known = known.and(*versions)).or_insert(*versions);
        }
        let links = proof.cycle.iter().map(|(link, _)| *link).collect();
        let cycle = joined(self.context.history, simple(links));
        if guarantee.order == Order::Data {
            found.add_anomalous(anomalous(&cycle));
        }
        let mut steps: Vec<WitnessStep> =
            proof.lemmas.iter().take(MOST_EXPLAINED).map(|lemma| self.lemma(lemma)).collect();
        let mut unexplained = Vec::new();
        for (number, link) in cycle.iter().enumerate() {
            let versions = inferred.get(link).copied().flatten();
            if versions.is_none() && number < MOST_EXPLAINED {
                unexplained.push((steps.len(), *link));
            }
            steps.push(match versions {
                Some(versions) => self.inferred_step(*link, versions),
                None => brief(self.context.history, *link),
            });
        }
        let witness = Witness { steps, smallest: false };
        let count = Count { found: count, complete: false };
        found.replace(Finding { anomaly, order: guarantee.order, count, witness }, unexplained);
    }

    /// The step for an inferred order of versions.
    fn lemma(&self, lemma: &Lemma) -> WitnessStep {
        let VersionPair { row, before, after } = lemma.versions;
        let writers = &self.open[row as usize].writers;
        let (before, after) = (writers[before as usize], writers[after as usize]);
        let (one, other) = (self.context.name(before.transaction), self.context.name(after.transaction));
        let (done, later) = (self.context.deed(before), self.context.deed(after));
        let end = lemma.path.last().map_or(after.transaction, |link| link.to);
        let path: Vec<String> = lemma.path.iter().map(|link| self.short(*link)).collect();
        let reason = if end == after.transaction {
            format!("precedes {other}")
        } else {
            format!("precedes {}, which read that version", self.context.name(end))
        };
        let why =
            format!("{one} {done} before {other} {later}, because {one} {reason} ({})", path.join(", "));
        let statement = |place: OperationRef| self.context.history.statement(place.record as usize);
        WitnessStep {
            statements: [before, after].into_iter().filter_map(statement).map(str::to_owned).collect(),
            ..fact(before.transaction, after.transaction, why)
        }
    }

    /// A dependency in few words: "T1 wr T2".
    fn short(&self, link: Link) -> String {
        let id = |node: u32| self.context.history.transactions()[node as usize].id;
        let kind = link.label.dependency().map_or("before", |dependency| dependency.name());
        format!("T{} {kind} T{}", id(link.from), id(link.to))
    }

    /// The step of a cycle that follows from an inferred order of versions.
    fn inferred_step(&self, link: Link, versions: VersionPair) -> WitnessStep {
        let row = &self.open[versions.row as usize];
        let place = |index: u32| row.writers[index as usize];
        let from: Option<OperationRef> = match link.label {
            Label::WriteWrite => Some(place(versions.before)),
            _ => row
                .readers_of(versions.before)
                .iter()
                .map(|(_, read)| *read)
                .find(|read| read.transaction == link.from),
        };
        match from {
            Some(from) => self.context.step(from, place(versions.after), link.label),
            None => brief(self.context.history, link),
        }
    }
}
