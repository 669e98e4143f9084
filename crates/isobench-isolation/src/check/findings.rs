//! Findings so far: a count and a proof for each anomaly.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::context::{Context, MOST_EXPLAINED, fact};
use super::dependencies::{Link, Node, OperationRef};
use super::doubt::{DoubtKind, Doubts};
use super::report::{Count, Finding, Witness, WitnessStep};
use crate::anomaly::Anomaly;
use crate::model::{Guarantee, Model, Order};

/// Findings by anomaly, at most one of each.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ByAnomaly {
    findings: [Option<Finding>; Anomaly::ALL.len()],
    /// For each anomaly, the place where it was first noted.
    places: [u32; Anomaly::ALL.len()],
    /// For each anomaly, the steps of its witness that are dependencies to be explained.
    #[serde(skip)]
    unexplained: [Vec<(usize, Link)>; Anomaly::ALL.len()],
}

impl ByAnomaly {
    /// Counts an anomaly that the data alone shows; the first one is the witness.
    fn note(&mut self, anomaly: Anomaly, place: u32, steps: impl FnOnce() -> Vec<WitnessStep>) {
        match &mut self.findings[anomaly as usize] {
            Some(finding) => finding.count.found += 1,
            empty => {
                self.places[anomaly as usize] = place;
                *empty = Some(Finding {
                    anomaly,
                    order: Order::Data,
                    count: Count { found: 1, complete: true },
                    witness: Witness { steps: steps(), smallest: true },
                });
            }
        }
    }

    fn renumber(&mut self, nodes: &[Node]) {
        for step in self.findings.iter_mut().flatten().flat_map(|finding| &mut finding.witness.steps) {
            (step.from, step.to) = (nodes[step.from] as usize, nodes[step.to] as usize);
        }
    }

    fn join(&mut self, other: ByAnomaly) {
        for (anomaly, more) in other.findings.into_iter().enumerate() {
            let (Some(mut more), place) = (more, other.places[anomaly]) else { continue };
            let known = &mut self.findings[anomaly];
            if let Some(known) = known.as_mut() {
                more.count.found += known.count.found;
                if self.places[anomaly] <= place {
                    known.count = more.count;
                    continue;
                }
            }
            *known = Some(more);
            self.places[anomaly] = place;
        }
    }

    fn set(&mut self, finding: Finding, unexplained: Vec<(usize, Link)>) {
        let anomaly = finding.anomaly as usize;
        self.findings[anomaly] = Some(finding);
        self.unexplained[anomaly] = unexplained;
    }

    fn explain(&mut self, steps: &FxHashMap<Link, WitnessStep>) {
        for (finding, unexplained) in self.findings.iter_mut().zip(&mut self.unexplained) {
            let Some(finding) = finding else { continue };
            for (index, link) in unexplained.drain(..) {
                if let Some(step) = steps.get(&link) {
                    finding.witness.steps[index] = step.clone();
                }
            }
        }
    }
}

/// The findings so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Findings {
    all: ByAnomaly,
    /// What breaks the promise to a transaction, where promises differ.
    broken: ByAnomaly,
    /// The transactions to which a promise was broken by what isn't a cycle.
    accused: FxHashSet<usize>,
    /// What each transaction is promised, where promises differ.
    #[serde(skip)]
    models: Option<Vec<Model>>,
    /// The place of what is noted.
    place: u32,
    /// The transactions that show an anomaly by the data alone ([`super::Report::anomalous`]).
    anomalous: FxHashSet<Node>,
    /// Doubts about the history.
    pub(super) doubts: Doubts,
    /// Doubts about a negative verdict.
    pub(super) suspicions: Doubts,
    /// The number of rows in which an unwritten value was taken for the initial one, and the first
    /// of them with its place.
    pub(super) assumed: Option<(u64, u32, String)>,
}

impl Findings {
    /// None so far, about transactions that are promised this each, if promises differ.
    pub(super) fn with_promises(models: Option<Vec<Model>>) -> Findings {
        Findings { models, ..Findings::default() }
    }

    /// Sets the place of what is noted: of all that is noted of an anomaly, that with the lowest
    /// place is shown.
    pub(super) fn set_place(&mut self, place: u32) {
        self.place = place;
        (self.doubts.place, self.suspicions.place) = (place, place);
    }

    /// Replaces the numbers of transactions in a part of the history by those in the whole.
    pub(super) fn renumber(&mut self, nodes: &[Node]) {
        self.all.renumber(nodes);
        self.broken.renumber(nodes);
        self.anomalous = self.anomalous.iter().map(|node| nodes[*node as usize]).collect();
        self.accused = self.accused.iter().map(|node| nodes[*node] as usize).collect();
    }

    /// Adds what was noted of another part of the history.
    pub(super) fn join(&mut self, other: Findings) {
        self.anomalous.extend(other.anomalous);
        self.accused.extend(other.accused);
        self.doubts.join(other.doubts);
        self.suspicions.join(other.suspicions);
        self.assumed = match (self.assumed.take(), other.assumed) {
            (Some((rows, place, example)), Some((more, at, other))) => {
                Some(if at < place { (rows + more, at, other) } else { (rows + more, place, example) })
            }
            (one, other) => one.or(other),
        };
        self.all.join(other.all);
        self.broken.join(other.broken);
    }

    /// Counts an anomaly of a transaction that the data alone shows; the first one is the witness. If
    /// promises differ, it counts against the promise to this transaction, except for a lost update:
    /// of its transactions it isn't known which came first, or it is a cycle.
    pub(super) fn note(
        &mut self,
        anomaly: Anomaly,
        transaction: Node,
        steps: impl FnOnce() -> Vec<WitnessStep>,
    ) {
        self.anomalous.insert(transaction);
        if anomaly == Anomaly::LostUpdate || !self.is_promised(anomaly, transaction) {
            return self.all.note(anomaly, self.place, steps);
        }
        self.accused.insert(transaction as usize);
        let steps = steps();
        self.broken.note(anomaly, self.place, || steps.clone());
        self.all.note(anomaly, self.place, || steps);
    }

    /// True if promises differ, and this transaction is promised that the anomaly doesn't happen to
    /// it.
    fn is_promised(&self, anomaly: Anomaly, transaction: Node) -> bool {
        self.models.as_ref().is_some_and(|models| anomaly.contradicts(models[transaction as usize]))
    }

    /// Counts updates that were lost because these transactions wrote one after the other what each had
    /// made from the same version, in whatever order. If promises differ, each transaction that is
    /// promised not to lose one breaks a promise, except for the one that may have been first.
    pub(super) fn break_lost<T: Copy>(
        &mut self,
        writers: &[T],
        transaction: impl Fn(T) -> Node,
        mut steps: impl FnMut(T, T) -> Vec<WitnessStep>,
    ) {
        if self.models.is_none() {
            return;
        }
        let promised = |one: &T| self.is_promised(Anomaly::LostUpdate, transaction(*one));
        let promised: Vec<T> = writers.iter().copied().filter(promised).collect();
        for pair in promised.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            self.accused.extend([first, second].map(|one| transaction(one) as usize));
            self.broken.note(Anomaly::LostUpdate, self.place, || steps(first, second));
        }
    }

    /// Adds a cycle that breaks a promise; the smallest one of each anomaly is the witness.
    pub(super) fn break_by_cycle(&mut self, mut finding: Finding, cycle: &[Link]) {
        let known = self.broken.findings[finding.anomaly as usize].as_mut();
        if let Some(known) = known {
            known.count.found += finding.count.found;
            known.count.complete &= finding.count.complete;
            if known.witness.steps.len() <= finding.witness.steps.len() {
                return;
            }
            finding.count = known.count;
        }
        let unexplained = cycle.iter().copied().enumerate().take(MOST_EXPLAINED).collect();
        self.broken.set(finding, unexplained);
    }

    /// What breaks a promise to a transaction, and the transactions to which one was broken by what
    /// isn't a cycle.
    pub(super) fn take_broken(&mut self) -> (Vec<Finding>, FxHashSet<usize>) {
        let broken = std::mem::take(&mut self.broken.findings);
        (broken.into_iter().flatten().collect(), std::mem::take(&mut self.accused))
    }

    /// Counts a read from an aborted transaction.
    pub(super) fn aborted_read(&mut self, context: Context<'_>, aborted: OperationRef, place: OperationRef) {
        self.note(Anomaly::G1a, place.transaction, || {
            let (writer, reader) = (aborted.transaction, place.transaction);
            let why = format!(
                "{} {} and was rolled back, but {} {}",
                context.name(writer),
                context.deed(aborted),
                context.name(reader),
                context.deed(place)
            );
            vec![fact(writer, reader, why)]
        });
    }

    /// Adds transactions that show an anomaly by the data alone.
    pub(super) fn add_anomalous(&mut self, transactions: impl IntoIterator<Item = Node>) {
        self.anomalous.extend(transactions);
    }

    /// The number of transactions that show an anomaly by the data alone.
    pub(super) fn anomalous(&self) -> u64 {
        self.anomalous.len() as u64
    }

    /// Adds a finding, unless the anomaly was found with fewer orders. The steps with these
    /// positions are dependencies to be explained.
    pub(super) fn add(&mut self, finding: Finding, unexplained: Vec<(usize, Link)>) {
        if !self.has(finding.anomaly) {
            self.replace(finding, unexplained);
        }
    }

    /// Adds a finding in the same way, in place of one that needs more orders.
    pub(super) fn replace(&mut self, finding: Finding, unexplained: Vec<(usize, Link)>) {
        let known = &self.all.findings[finding.anomaly as usize];
        if known.as_ref().is_none_or(|known| known.order > finding.order) {
            self.all.set(finding, unexplained);
        }
    }

    /// The dependencies to be explained.
    pub(super) fn unexplained(&self) -> Vec<Link> {
        let all = self.all.unexplained.iter().chain(&self.broken.unexplained);
        all.flatten().map(|(_, link)| *link).collect()
    }

    /// Explains the dependencies.
    pub(super) fn explain(&mut self, steps: &FxHashMap<Link, WitnessStep>) {
        self.all.explain(steps);
        self.broken.explain(steps);
    }

    /// Records that an unwritten value of a row was taken for the initial one.
    pub(super) fn assume(&mut self, example: impl FnOnce() -> String) {
        match &mut self.assumed {
            Some((rows, ..)) => *rows += 1,
            none => *none = Some((1, self.place, example())),
        }
    }

    /// Takes the doubts about the history that apply to any verdict. Unexplained reads are doubts
    /// unless the history is vouched for.
    pub(super) fn take_doubts(&mut self, vouched: bool) -> Doubts {
        let mut doubts = std::mem::take(&mut self.doubts);
        let unique = !doubts.has(DoubtKind::NotUnique);
        // What was noted in rows comes first.
        doubts.place = u32::MAX;
        for finding in self.findings().filter(|_| !vouched) {
            let explained = finding.anomaly == Anomaly::DuplicateWrite && !unique;
            if is_contradiction(finding.anomaly) && !explained {
                doubts.note(DoubtKind::Unexplained, finding.count.found, || example(finding));
            }
        }
        doubts
    }

    /// The findings so far.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.all.findings.iter().flatten()
    }

    pub(super) fn has(&self, anomaly: Anomaly) -> bool {
        self.all.findings[anomaly as usize].is_some()
    }

    pub(super) fn contradicts(&self, guarantee: Guarantee) -> bool {
        self.findings().any(|finding| finding.contradicts(guarantee))
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.all.findings.into_iter().flatten().collect()
    }
}

/// True if the anomaly is a contradiction within the history rather than a cycle. No level of any
/// database permits it, but an incomplete history shows it.
fn is_contradiction(anomaly: Anomaly) -> bool {
    matches!(
        anomaly,
        Anomaly::GarbageRead | Anomaly::Internal | Anomaly::IncompatibleOrder | Anomaly::DuplicateWrite
    )
}

fn example(finding: &Finding) -> String {
    finding.witness.steps.first().map(|step| step.why.clone()).unwrap_or_default()
}
