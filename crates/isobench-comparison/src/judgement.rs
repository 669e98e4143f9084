//! The recorded history of a run: its file, and its verdict on the level.
//!
//! Not here: the check of a history (`isobench_isolation`), and invariants of the tables
//! (`invariants.rs`).

mod hint;

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_isolation::check::{Blind, Options, Ways, render};
use isobench_isolation::history::binary;
use isobench_isolation::{Guarantee, History, LevelPromises};
use isobench_result::Verdict;
use isobench_runner::{Job, Recording, Storage};

use crate::failure::{Failure, Outcome};
use crate::workload::Sources;
use hint::hint;

/// What became of a history.
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// A report for people.
    pub text: String,
    /// The reason why the history isn't in its file, if that was wanted.
    pub unwritten: Option<String>,
}

/// What a history's transactions were promised.
#[derive(Debug, Clone, Copy)]
pub enum Promise {
    /// Nothing that is known.
    None,
    /// All of them the same.
    One(Guarantee),
    /// Each what its own level promises.
    OfLevels(LevelPromises),
}

impl Promise {
    /// The promise, if it is the same for all.
    fn one(self) -> Option<Guarantee> {
        match self {
            Promise::One(promised) => Some(promised),
            Promise::None | Promise::OfLevels(_) => None,
        }
    }
}

/// The settings for recording and checking histories, the same for all cells.
#[derive(Debug, Clone, Default)]
pub struct Judging {
    /// The folder of the history files; `None`: histories aren't kept.
    pub folder: Option<PathBuf>,
    /// A broken promise ends the run, and with it the comparison.
    pub stop_on_broken: bool,
    /// Verdicts have the dependencies by their statements.
    pub between: bool,
}

impl Judging {
    /// Returns the file of one run's history, in the folder.
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

    /// Returns a job that records its history, into the file if there is one.
    ///
    /// # Errors
    /// The file can't be made.
    pub fn recording(job: Job, file: Option<&Path>) -> Outcome<Job> {
        let storage = file.map_or_else(Storage::default, |file| Storage::File(file.to_owned()));
        job.recording(storage).map_err(Failure::setup)
    }

    /// The question for the recorded history of these scripts; `fresh_tables` if no earlier run wrote
    /// to the tables.
    fn options(recording: &Recording, promise: Promise, sources: &Sources, fresh_tables: bool) -> Options {
        // The `--@` lines of isobench's own workloads are trusted; those of a user's scripts
        // aren't. No transaction of this history wrote the rows of an earlier run.
        let vouched = fresh_tables && sources.checked().is_some() && !recording.shows_rows();
        let (promised, levels) = match promise {
            Promise::None => (None, None),
            Promise::One(promised) => (Some(promised), None),
            Promise::OfLevels(levels) => (None, Some(levels)),
        };
        Options { promised, levels, vouched, ..Options::default() }
    }

    /// Follows what a job records, from now on. The arguments are those of [`Judging::judge`].
    pub fn follow(&self, recording: &Recording, promise: Promise, sources: &Sources, fresh_tables: bool) {
        let options = Judging::options(recording, promise, sources, fresh_tables);
        recording.follow(self.stop_on_broken.then_some(options));
    }

    /// Checks the recorded history of these scripts, to be written to a file if one is given, together
    /// with other machines if there are ways to them; `fresh_tables` if no earlier run wrote to the
    /// tables. Returns the verdict and a report.
    pub fn judge(
        &self,
        (recording, file, ways): (Recording, Option<&Path>, Option<&mut dyn Ways>),
        promise: Promise,
        sources: &Sources,
        fresh_tables: bool,
    ) -> Judged {
        let (problem, missing) = (recording.problem(), recording.dropped());
        // What is annotated has been in its file from the start.
        let ends_early = file.filter(|_| !recording.shows_rows()).zip(problem.as_ref());
        let ends_early = ends_early.map(|(file, problem)| {
            format!("--history: the file \"{}\" ends before the run: {problem}", file.display())
        });
        let (shown, incomplete) = (recording.shows_rows(), recording.incomplete());
        let began = Instant::now();
        let options = Judging::options(&recording, promise, sources, fresh_tables);
        let options = Options { between: self.between, ..options };
        let (history, mut report) = match recording.check(&options, ways) {
            Ok(checked) => checked,
            Err(error) => {
                let why = format!("nothing was checked: the recorded history can't be read: {error}");
                let text = format!("VERDICT WITHHELD: {why}.\n");
                return Judged { verdict: Verdict::missing(promise.one(), why), text, unwritten: ends_early };
            }
        };
        if let Some(problem) = problem {
            report.cut(format!("{missing} attempts are missing; {problem}"));
        } else if let Some(why) = incomplete {
            report.blind.push(Blind::Incomplete { attempts: missing, why });
        }
        let mut verdict = Verdict::new(&history, &report, began.elapsed());
        let mut text = render(&report);
        if verdict.is_doubtful()
            && !shown
            && let Some(hint) = hint(sources)
        {
            for withheld in verdict.withheld.iter_mut().filter(|withheld| withheld.doubtful) {
                withheld.reason = format!("{}; {hint}", withheld.reason);
            }
            text = format!("{text}\nWhere to look: {hint}.\n");
        }
        let file = file.filter(|_| shown);
        let unwritten = ends_early.or_else(|| write(&history, file?).err());
        Judged { verdict, text, unwritten }
    }
}

/// Writes a history. The error is a sentence for the user; then there is no file, rather than one
/// that ends early.
fn write(history: &History, file: &Path) -> Result<(), String> {
    let written = File::create(file).and_then(|output| binary::write(history, BufWriter::new(output)));
    written.map_err(|error| {
        let left = match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                format!("what is there ends early, and can't be removed ({error})")
            }
            _ => "there is none now".to_owned(),
        };
        format!(
            "--history: could not write the file \"{}\": {error}; {left}; its verdict is not concerned",
            file.display()
        )
    })
}
