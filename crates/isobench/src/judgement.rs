//! The recorded history of a run: where it is kept, and what it proves about the level.
//!
//! Not here: how a history is checked (`isobench_isolation`), and invariants of the tables (`books.rs`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_isolation::Guarantee;
use isobench_isolation::check::{Blind, Options, check};
use isobench_report::Verdict;
use isobench_runner::{Job, Recording, Storage};

use crate::failure::{Failure, Outcome};

/// How histories are recorded and checked; the same for all cells.
#[derive(Debug, Clone, Default)]
pub struct Judging {
    /// The folder that histories are written into; none are kept without one.
    pub folder: Option<PathBuf>,
    /// How many transactions are looked at together; all without it.
    pub window: Option<u32>,
}

impl Judging {
    /// The file of one run's history, in the folder.
    ///
    /// # Errors
    /// The folder can't be made.
    pub fn file(&self, name: &str) -> Outcome<Option<PathBuf>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        fs::create_dir_all(folder).map_err(|error| {
            Failure::setup(format!("--history: could not make the folder \"{}\": {error}", folder.display()))
        })?;
        Ok(Some(folder.join(format!("{name}.history"))))
    }

    /// A job that records, into the file if there is one.
    ///
    /// # Errors
    /// The file can't be made.
    pub fn recording(job: Job, file: Option<&Path>) -> Outcome<Job> {
        let storage = file.map_or_else(Storage::default, |file| Storage::File(file.to_owned()));
        job.recording(storage).map_err(Failure::setup)
    }

    /// Checks what was recorded. Returns the verdict, and the report for people.
    ///
    /// # Errors
    /// The recording can't be read where it is kept.
    pub fn judge(
        &self,
        recording: Recording,
        promised: Option<Guarantee>,
    ) -> Result<(Verdict, String), String> {
        let problem = recording.problem();
        let history = recording
            .into_history()
            .map_err(|error| format!("the recorded history can't be read: {error}"))?;
        let began = Instant::now();
        let options = Options { promised, ..Options::default() };
        let report = check(&history, &options);
        let mut blind: Vec<String> = report.blind.iter().map(|blind: &Blind| format!("{blind:?}")).collect();
        blind.extend(problem);
        let text = format!("{report:#?}");
        Ok((Verdict::new(&history, &report, blind, began.elapsed()), text))
    }
}
