//! What was found so far: of each anomaly a count and a proof.

use super::dependencies::Place;
use super::doubt::Doubts;
use super::scene::{Scene, fact};
use super::{Count, Finding, Witness, WitnessStep};
use crate::anomaly::Anomaly;
use crate::model::{Guarantee, Order};

/// The findings so far, by anomaly.
#[derive(Debug, Default)]
pub(super) struct Found {
    findings: [Option<Finding>; Anomaly::ALL.len()],
    /// What makes the history doubtful.
    pub(super) doubts: Doubts,
    /// What makes an accusation doubtful.
    pub(super) suspicions: Doubts,
    /// In how many rows an unwritten value was taken for the initial one, and the first such row.
    pub(super) assumed: Option<(u64, String)>,
}

impl Found {
    /// Counts an anomaly that the data alone show; the first one is the witness.
    pub(super) fn note(&mut self, anomaly: Anomaly, steps: impl FnOnce() -> Vec<WitnessStep>) {
        match &mut self.findings[anomaly as usize] {
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

    /// Counts a read of what an aborted transaction wrote.
    pub(super) fn aborted_read(&mut self, scene: Scene<'_>, aborted: Place, place: Place) {
        self.note(Anomaly::G1a, || {
            let (writer, reader) = (aborted.transaction, place.transaction);
            let why = format!(
                "{} {} and was rolled back, but {} {}",
                scene.name(writer),
                scene.deed(aborted),
                scene.name(reader),
                scene.deed(place)
            );
            vec![fact(writer, reader, why)]
        });
    }

    /// Adds a finding, unless the anomaly was found with fewer orders.
    pub(super) fn add(&mut self, finding: Finding) {
        self.findings[finding.anomaly as usize].get_or_insert(finding);
    }

    /// Takes an unwritten value of a row for the initial one.
    pub(super) fn assume(&mut self, example: impl FnOnce() -> String) {
        match &mut self.assumed {
            Some((rows, _)) => *rows += 1,
            none => *none = Some((1, example())),
        }
    }

    /// What was found so far.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().flatten()
    }

    pub(super) fn has(&self, anomaly: Anomaly) -> bool {
        self.findings[anomaly as usize].is_some()
    }

    pub(super) fn contradicts(&self, guarantee: Guarantee) -> bool {
        self.findings().any(|finding| finding.contradicts(guarantee))
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings.into_iter().flatten().collect()
    }
}
