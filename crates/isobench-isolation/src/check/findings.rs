//! Findings so far: a count and a proof for each anomaly.

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::{Context, fact};
use super::dependencies::{Node, OperationRef};
use super::doubt::{DoubtKind, Doubts};
use super::report::{Count, Finding, Witness, WitnessStep};
use super::search::Link;
use crate::anomaly::Anomaly;
use crate::model::{Guarantee, Order};

/// The findings so far, by anomaly.
#[derive(Debug, Default)]
pub(super) struct Findings {
    by_anomaly: [Option<Finding>; Anomaly::ALL.len()],
    /// For each anomaly, the place where it was first noted.
    places: [u32; Anomaly::ALL.len()],
    /// For each anomaly, the steps of its witness that are dependencies to be explained.
    unexplained: [Vec<(usize, Link)>; Anomaly::ALL.len()],
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
    /// Sets the place of what is noted: of all that is noted of an anomaly, that with the lowest
    /// place is shown.
    pub(super) fn set_place(&mut self, place: u32) {
        self.place = place;
        (self.doubts.place, self.suspicions.place) = (place, place);
    }

    /// Replaces the numbers of transactions in a part of the history by those in the whole.
    pub(super) fn renumber(&mut self, nodes: &[Node]) {
        for step in self.by_anomaly.iter_mut().flatten().flat_map(|finding| &mut finding.witness.steps) {
            (step.from, step.to) = (nodes[step.from] as usize, nodes[step.to] as usize);
        }
        self.anomalous = self.anomalous.iter().map(|node| nodes[*node as usize]).collect();
    }

    /// Adds what was noted of another part of the history.
    pub(super) fn join(&mut self, other: Findings) {
        self.anomalous.extend(other.anomalous);
        self.doubts.join(other.doubts);
        self.suspicions.join(other.suspicions);
        self.assumed = match (self.assumed.take(), other.assumed) {
            (Some((rows, place, example)), Some((more, at, other))) => {
                Some(if at < place { (rows + more, at, other) } else { (rows + more, place, example) })
            }
            (one, other) => one.or(other),
        };
        for (anomaly, more) in other.by_anomaly.into_iter().enumerate() {
            let (Some(mut more), place) = (more, other.places[anomaly]) else { continue };
            let known = &mut self.by_anomaly[anomaly];
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

    /// Counts an anomaly of a transaction that the data alone shows; the first one is the witness.
    pub(super) fn note(
        &mut self,
        anomaly: Anomaly,
        transaction: Node,
        steps: impl FnOnce() -> Vec<WitnessStep>,
    ) {
        self.anomalous.insert(transaction);
        match &mut self.by_anomaly[anomaly as usize] {
            Some(finding) => finding.count.found += 1,
            empty => {
                self.places[anomaly as usize] = self.place;
                *empty = Some(Finding {
                    anomaly,
                    order: Order::Data,
                    count: Count { found: 1, complete: true },
                    witness: Witness { steps: steps(), smallest: true },
                });
            }
        }
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
        let anomaly = finding.anomaly as usize;
        if self.by_anomaly[anomaly].as_ref().is_none_or(|known| known.order > finding.order) {
            self.by_anomaly[anomaly] = Some(finding);
            self.unexplained[anomaly] = unexplained;
        }
    }

    /// The dependencies to be explained.
    pub(super) fn unexplained(&self) -> Vec<Link> {
        self.unexplained.iter().flatten().map(|(_, link)| *link).collect()
    }

    /// Explains the dependencies.
    pub(super) fn explain(&mut self, steps: &FxHashMap<Link, WitnessStep>) {
        for (finding, unexplained) in self.by_anomaly.iter_mut().zip(&mut self.unexplained) {
            let Some(finding) = finding else { continue };
            for (index, link) in unexplained.drain(..) {
                if let Some(step) = steps.get(&link) {
                    finding.witness.steps[index] = step.clone();
                }
            }
        }
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
        self.by_anomaly.iter().flatten()
    }

    pub(super) fn has(&self, anomaly: Anomaly) -> bool {
        self.by_anomaly[anomaly as usize].is_some()
    }

    pub(super) fn contradicts(&self, guarantee: Guarantee) -> bool {
        self.findings().any(|finding| finding.contradicts(guarantee))
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.by_anomaly.into_iter().flatten().collect()
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
