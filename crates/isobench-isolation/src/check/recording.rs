//! The check of a recording that is read once, from its start to its end, and isn't kept in memory
//! as a history.

use std::io::Read;

use super::parts::Source;
use super::report::Report;
use super::spill::{Spill, SpillError};
use super::{Options, check, check_source};
use crate::history::binary::{Reader, read_chunk};
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

/// A recording that is to be checked when all of it is there. Until then its operations are sorted
/// by rows, chunk by chunk.
///
/// Memory is some 45 bytes per transaction; operations are kept in a temporary file if there are
/// many.
#[derive(Debug)]
pub struct GrowingRecording {
    spill: Spill,
    /// The last chunk, kept in order to reuse its memory.
    chunk: History,
}

impl GrowingRecording {
    /// Without transactions yet, of a history with these tables.
    pub fn new(tables: &[String]) -> GrowingRecording {
        GrowingRecording::of(History::new(tables.to_vec()))
    }

    /// `blank` has the tables and the provenance.
    fn of(blank: History) -> GrowingRecording {
        GrowingRecording { spill: Spill::new(blank.blank()), chunk: blank }
    }

    /// Adds a chunk, as [`crate::history::binary::Encoder::take`] returns it.
    ///
    /// # Errors
    /// It is damaged, or the temporary file can't be written.
    pub fn add(&mut self, chunk: &[u8]) -> Result<(), FormatError> {
        self.chunk.clear();
        read_chunk(chunk, &mut self.chunk)?;
        Ok(self.spill.add(&self.chunk)?)
    }

    /// Adds all chunks of a recording, as [`check_recording`] does. Returns the number of dropped
    /// transactions, and the reason why it isn't complete.
    fn read<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        partial: bool,
    ) -> Result<(u64, Option<FormatError>), FormatError> {
        let problem = loop {
            self.chunk.clear();
            match reader.next_chunk(&mut self.chunk) {
                Ok(true) => self.spill.add(&self.chunk)?,
                Ok(false) => break None,
                Err(error) if partial && error.leaves_a_part() => break Some(error),
                Err(error) => return Err(error),
            }
        };
        let dropped = reader.dropped().unwrap_or(0);
        Ok((if problem.is_some() { dropped.max(1) } else { dropped }, problem))
    }

    /// Adds all chunks of a complete recording with the same tables.
    ///
    /// # Errors
    /// If it isn't one, or the temporary file can't be written.
    pub fn add_recording(&mut self, input: impl Read) -> Result<(), FormatError> {
        self.read(&mut Reader::open(input)?, false).map(|_| ())
    }

    /// Checks what was added; this many transactions were executed and aren't there. Returns the
    /// report, and a history with at least the transactions of its witnesses.
    ///
    /// If versions have no counters, and their order isn't known otherwise, the whole history is
    /// taken into memory.
    ///
    /// # Errors
    /// If the temporary file can't be read.
    pub fn check(mut self, dropped: u64, options: &Options) -> Result<(Report, History), FormatError> {
        drop(self.chunk);
        self.spill.set_dropped(dropped);
        self.spill.set_pieces(options.pieces);
        match check_source(&self.spill, options) {
            Ok(report) => Ok(with_witnesses(&self.spill, report)?),
            Err(SpillError::WholeNeeded) => {
                let history = self.spill.into_history()?;
                Ok((check(&history, options), history))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Turns what was added into a history; this many transactions were executed and aren't there.
    ///
    /// # Errors
    /// If the temporary file can't be read.
    pub fn into_history(mut self, dropped: u64) -> Result<History, FormatError> {
        self.spill.set_dropped(dropped);
        Ok(self.spill.into_history()?)
    }
}

/// Checks a recording, as a [`GrowingRecording`] does.
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
    let mut recording = GrowingRecording::of(reader.blank());
    let (dropped, problem) = recording.read(&mut reader, partial)?;
    let (report, witnesses) = recording.check(dropped, options)?;
    Ok(CheckedRecording { report, witnesses, problem })
}

/// The report, with steps that refer to a history of the transactions of witnesses.
fn with_witnesses(spill: &Spill, mut report: Report) -> Result<(Report, History), SpillError> {
    let broken = report.mixed.iter().flat_map(|mixed| &mixed.broken).map(|broken| &broken.finding);
    let steps = report.findings.iter().chain(broken).flat_map(|finding| &finding.witness.steps);
    let mut nodes: Vec<u32> =
        steps.flat_map(|step| [step.from, step.to]).filter_map(|node| u32::try_from(node).ok()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut witnesses = if nodes.is_empty() { spill.frame().blank() } else { spill.gather(&nodes)? };
    witnesses.set_dropped(spill.frame().dropped());
    let place = |node: usize| nodes.partition_point(|known| (*known as usize) < node);
    let broken =
        report.mixed.iter_mut().flat_map(|mixed| &mut mixed.broken).map(|broken| &mut broken.finding);
    for step in report.findings.iter_mut().chain(broken).flat_map(|finding| &mut finding.witness.steps) {
        (step.from, step.to) = (place(step.from), place(step.to));
    }
    Ok((report, witnesses))
}
