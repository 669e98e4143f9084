//! The check of a history that isn't in memory.

use super::parts::Source;
use super::report::Report;
use super::scope::Steps;
use super::spill::{SpillError, whole};
use super::{Options, check, check_source};
use crate::history::History;

/// Checks a history that isn't in memory, in parts if that is possible, and as a whole otherwise.
pub(super) fn check_spilled<S: Steps<Error = SpillError>>(
    source: S,
    options: &Options,
) -> Result<(Report, History), SpillError> {
    match check_source(&source, options) {
        Ok(report) => with_witnesses(&source, report),
        Err(SpillError::WholeNeeded) => {
            let history = whole(&source)?;
            drop(source);
            Ok((check(&history, options), history))
        }
        Err(error) => Err(error),
    }
}

/// The report, with steps that refer to a history of the transactions of witnesses.
fn with_witnesses<S: Source>(source: &S, mut report: Report) -> Result<(Report, History), S::Error> {
    let broken = report.mixed.iter().flat_map(|mixed| &mixed.broken).map(|broken| &broken.finding);
    let steps = report.findings.iter().chain(broken).flat_map(|finding| &finding.witness.steps);
    let mut nodes: Vec<u32> =
        steps.flat_map(|step| [step.from, step.to]).filter_map(|node| u32::try_from(node).ok()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut witnesses = if nodes.is_empty() { source.frame().blank() } else { source.gather(&nodes)? };
    witnesses.set_dropped(source.frame().dropped());
    let place = |node: usize| nodes.partition_point(|known| (*known as usize) < node);
    let broken =
        report.mixed.iter_mut().flat_map(|mixed| &mut mixed.broken).map(|broken| &mut broken.finding);
    for step in report.findings.iter_mut().chain(broken).flat_map(|finding| &mut finding.witness.steps) {
        (step.from, step.to) = (place(step.from), place(step.to));
    }
    Ok((report, witnesses))
}
