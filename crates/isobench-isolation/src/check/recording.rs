//! The check of a recording that is read once, from its start to its end, and isn't kept in memory
//! as a history.

use std::io::Read;

use super::report::Report;
use super::spill::{Spill, SpillError};
use super::{Options, check, check_source};
use crate::history::binary::Reader;
use crate::history::{FormatError, History};

/// The result of checking a recording.
#[derive(Debug)]
pub struct CheckedRecording {
    /// The report.
    pub report: Report,
    /// A history with at least the transactions of the report's witnesses, to which their steps
    /// refer.
    pub witnesses: History,
    /// The reason why the recording isn't complete, if so.
    pub problem: Option<FormatError>,
}

/// Checks a recording. Memory is some 45 bytes per transaction, and what the pieces of the history
/// need; operations are kept in a temporary file if there are many. If versions have no counters,
/// and their order isn't known otherwise, the whole history is taken into memory.
///
/// An incomplete recording is accepted if `partial`, and used as far as it goes. Then at least one
/// transaction is counted as dropped, because a missing one may have written the versions read.
///
/// # Errors
/// If the input isn't a recording, or isn't complete; or if the temporary file can't be written or
/// read.
pub fn check_recording(
    input: impl Read,
    partial: bool,
    options: &Options,
) -> Result<CheckedRecording, FormatError> {
    let mut reader = Reader::open(input)?;
    let mut spill = Spill::new(reader.blank(), options.pieces);
    let mut chunk = reader.blank();
    let problem = loop {
        chunk.clear();
        match reader.next_chunk(&mut chunk) {
            Ok(true) => spill.add(&chunk)?,
            Ok(false) => break None,
            Err(error) if partial && error.leaves_a_part() => break Some(error),
            Err(error) => return Err(error),
        }
    };
    drop(chunk);
    let dropped = reader.dropped().unwrap_or(0);
    spill.set_dropped(if problem.is_some() { dropped.max(1) } else { dropped });
    let (report, witnesses) = match check_source(&spill, options) {
        Ok(report) => with_witnesses(&spill, report)?,
        Err(SpillError::WholeNeeded) => {
            let history = spill.into_history()?;
            (check(&history, options), history)
        }
        Err(error) => return Err(error.into()),
    };
    Ok(CheckedRecording { report, witnesses, problem })
}

/// The report, with steps that refer to a history of the transactions of witnesses.
fn with_witnesses(spill: &Spill, mut report: Report) -> Result<(Report, History), SpillError> {
    use super::parts::Source;
    let steps = report.findings.iter().flat_map(|finding| &finding.witness.steps);
    let mut nodes: Vec<u32> =
        steps.flat_map(|step| [step.from, step.to]).filter_map(|node| u32::try_from(node).ok()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut witnesses = if nodes.is_empty() { spill.frame().blank() } else { spill.gather(&nodes)? };
    witnesses.set_dropped(spill.frame().dropped());
    let place = |node: usize| nodes.partition_point(|known| (*known as usize) < node);
    for step in report.findings.iter_mut().flat_map(|finding| &mut finding.witness.steps) {
        (step.from, step.to) = (place(step.from), place(step.to));
    }
    Ok((report, witnesses))
}
