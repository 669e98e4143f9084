//! What was found so far: of each anomaly a count and a proof.

use super::dependencies::Place;
use super::scene::{Scene, fact};
use super::{Count, Finding, Step, Witness};
use crate::anomaly::Anomaly;
use crate::model::{Guarantee, Order};

/// The findings so far, by anomaly.
#[derive(Debug, Default)]
pub(super) struct Found {
    findings: [Option<Finding>; Anomaly::ALL.len()],
}

impl Found {
    /// Counts an anomaly that the data alone show; the first one is the witness.
    pub(super) fn note(&mut self, anomaly: Anomaly, steps: impl FnOnce() -> Vec<Step>) {
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

    pub(super) fn has(&self, anomaly: Anomaly) -> bool {
        self.findings[anomaly as usize].is_some()
    }

    pub(super) fn contradicts(&self, guarantee: Guarantee) -> bool {
        self.findings.iter().flatten().any(|finding| finding.contradicts(guarantee))
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings.into_iter().flatten().collect()
    }
}
