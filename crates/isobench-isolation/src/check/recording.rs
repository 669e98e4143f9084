//! The check of a recording that is read once, from its start to its end, and isn't kept in memory
//! as a history.

use std::io::{Read, Seek};

use super::Options;
use super::machines::{Ways, check_together, refuse};
use super::report::Report;
use super::spill::{Spill, whole};
use super::spilled::check_spilled;
use crate::history::binary::{Reader, Share, read_chunk};
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
    /// What the shares of one recording have in common; 0 if each machine has its own recording.
    identity: u32,
}

impl GrowingRecording {
    /// Without transactions yet, of a history with these tables.
    pub fn new(tables: &[String]) -> GrowingRecording {
        GrowingRecording::of(History::new(tables.to_vec()))
    }

    /// `blank` has the tables and the provenance.
    fn of(blank: History) -> GrowingRecording {
        GrowingRecording { spill: Spill::new(blank.blank()), chunk: blank, identity: 0 }
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
        Ok(check_spilled(self.spill, options)?)
    }

    /// Moves start and end of what was added apart, by nanoseconds on both sides by which the clock of
    /// this machine may be wrong.
    pub fn widen(&mut self, within: u64) {
        self.spill.widen(within);
    }

    /// Checks what was added here and on other machines, all of which do this, as one history, in the
    /// order of their numbers. The first machine returns what [`GrowingRecording::check`] does, and the
    /// others nothing; its options apply.
    ///
    /// # Errors
    /// A machine is gone, or can't use its temporary file; they have recorded other tables; or there are
    /// more than 2^28 transactions or 2^32 operations.
    pub fn check_together(
        self,
        dropped: u64,
        options: &Options,
        ways: &mut dyn Ways,
    ) -> Result<Option<(Report, History)>, FormatError> {
        drop(self.chunk);
        check_together(self.spill, (dropped, self.identity), options, ways)
    }

    /// Turns what was added into a history; this many transactions were executed and aren't there.
    ///
    /// # Errors
    /// If the temporary file can't be read.
    pub fn into_history(mut self, dropped: u64) -> Result<History, FormatError> {
        self.spill.set_dropped(dropped);
        Ok(whole(&self.spill)?)
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

/// Checks a recording, of which each of several machines that have it reads a share, as
/// [`check_recording`] does. The first machine returns the result, and the others nothing.
///
/// # Errors
/// As those of [`check_recording`]; or a machine is gone, or has another recording.
pub fn check_recording_together(
    input: impl Read + Seek,
    partial: bool,
    options: &Options,
    ways: &mut dyn Ways,
) -> Result<Option<CheckedRecording>, FormatError> {
    let read = || -> Result<_, FormatError> {
        let mut share = Share::open(input, ways.rank(), ways.number(), partial)?;
        let mut recording = GrowingRecording::of(share.blank());
        while share.next_chunk(&mut recording.chunk)? {
            recording.spill.add(&recording.chunk)?;
            recording.chunk.clear();
        }
        Ok((share, recording))
    };
    let (share, mut recording) = match read() {
        Ok(read) => read,
        Err(error) => {
            refuse(ways, &error.to_string());
            return Err(error);
        }
    };
    recording.identity = share.identity();
    // What is missing is missing once.
    let dropped = if ways.rank() == 0 { share.dropped() } else { 0 };
    let checked = recording.check_together(dropped, options, ways)?;
    let problem = share.problem();
    Ok(checked.map(|(report, witnesses)| CheckedRecording { report, witnesses, problem }))
}
