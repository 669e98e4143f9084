//! Findings so far: a count and a proof for each anomaly.

use rustc_hash::FxHashSet;

use super::context::{Context, fact};
use super::dependencies::{Node, OperationRef};
use super::doubt::{DoubtKind, Doubts};
use super::report::{Count, Finding, Witness, WitnessStep};
use crate::anomaly::Anomaly;
use crate::model::{Guarantee, Order};

/// The findings so far, by anomaly.
#[derive(Debug, Default)]
pub(super) struct Findings {
    by_anomaly: [Option<Finding>; Anomaly::ALL.len()],
    /// The transactions that show an anomaly by the data alone ([`super::Report::anomalous`]).
    anomalous: FxHashSet<Node>,
    /// Doubts about the history.
    pub(super) doubts: Doubts,
    /// Doubts about a negative verdict.
    pub(super) suspicions: Doubts,
    /// The number of rows in which an unwritten value was taken for the initial one, and the first
    /// of them.
    pub(super) assumed: Option<(u64, String)>,
}

impl Findings {
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

    /// Adds a finding, unless the anomaly was found with fewer orders.
    pub(super) fn add(&mut self, finding: Finding) {
        self.by_anomaly[finding.anomaly as usize].get_or_insert(finding);
    }

    /// Adds a finding, in place of one that needs more orders.
    pub(super) fn replace(&mut self, finding: Finding) {
        let known = &mut self.by_anomaly[finding.anomaly as usize];
        if known.as_ref().is_none_or(|known| known.order > finding.order) {
            *known = Some(finding);
        }
    }

    /// Records that an unwritten value of a row was taken for the initial one.
    pub(super) fn assume(&mut self, example: impl FnOnce() -> String) {
        match &mut self.assumed {
            Some((rows, _)) => *rows += 1,
            none => *none = Some((1, example())),
        }
    }

    /// Takes the doubts about the history that apply to any verdict. Unexplained reads are doubts
    /// unless the history is vouched for.
    pub(super) fn take_doubts(&mut self, vouched: bool) -> Doubts {
        let mut doubts = std::mem::take(&mut self.doubts);
        let unique = !doubts.has(DoubtKind::NotUnique);
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
