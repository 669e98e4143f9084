//! The files of `isobench report --tables FOLDER`, and the recordings that they are made of.
//!
//! Not here: what is in them (`isobench_report`).

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_report::{ExportError, TransactionsTable, write_rounds, write_series};
use isobench_result::{Document, Place, RecordedHistory, rounds};
use isobench_trust::open_to_show;
use tempfile::NamedTempFile;

use crate::destination::{Kind, check_file, check_folder};
use crate::output;

const ROUNDS: &str = "rounds.csv";
const SERIES: &str = "series.csv";
const TRANSACTIONS: &str = "transactions.csv";

/// The tables to write, of one result.
pub struct Tables<'a> {
    folder: &'a Path,
    document: &'a Document,
    /// The recordings, in the order of their rounds; `None` if they aren't wanted.
    recordings: Option<Vec<Recorded<'a>>>,
}

/// A round and its recording.
struct Recorded<'a> {
    place: Place<'a>,
    path: PathBuf,
}

impl<'a> Tables<'a> {
    /// The tables for this folder; `given` are recordings, or folders of them.
    ///
    /// # Errors
    /// The files can't be written, or would overwrite others; a recording isn't there, or isn't one of
    /// this result.
    pub fn new(folder: &'a Path, given: &[PathBuf], document: &'a Document) -> Outcome<Tables<'a>> {
        check_folder(folder).map_err(|error| {
            Failure::setup(format!("--tables: could not write into \"{}\": {error}", folder.display()))
        })?;
        if folder.exists() {
            for name in [ROUNDS, SERIES, TRANSACTIONS] {
                check_file("--tables", &folder.join(name), Kind::Table)?;
            }
        }
        let old = folder.join(TRANSACTIONS);
        if given.is_empty() && old.exists() {
            return Err(Failure::setup(format!(
                "--tables: \"{}\" is of another export, and would be taken for one of this; remove it, name another \
                 folder, or give --transactions",
                old.display()
            )));
        }
        let recordings = (!given.is_empty()).then(|| recordings(document, given)).transpose()?;
        Ok(Tables { folder, document, recordings })
    }

    /// Writes all tables. Only when each is whole they get their names.
    ///
    /// # Errors
    /// A recording can't be read, or the output can't be written; then the folder is as before.
    pub fn write(self) -> Outcome {
        fs::create_dir_all(self.folder).map_err(|error| self.unwritable(ROUNDS, &error))?;
        let mut whole = Vec::new();
        if let Some(recordings) = &self.recordings {
            whole.push(self.write_one(TRANSACTIONS, |output| transactions(recordings, output))?);
        }
        whole.push(self.write_one(SERIES, |output| {
            write_series(self.document, BufWriter::new(output))
                .map_err(|error| self.unwritable(SERIES, &error))
        })?);
        whole.push(self.write_one(ROUNDS, |output| {
            write_rounds(self.document, BufWriter::new(output))
                .map_err(|error| self.unwritable(ROUNDS, &error))
        })?);
        let mut told = Vec::new();
        for (name, file, rows) in whole {
            file.persist(self.folder.join(name)).map_err(|error| self.unwritable(name, &error.error))?;
            told.push(format!("{name} ({rows} {})", if rows == 1 { "row" } else { "rows" }));
        }
        told.reverse();
        eprintln!("the tables are in \"{}\": {}", self.folder.display(), told.join(", "));
        Ok(())
    }

    /// Writes a table to a file without its name yet.
    fn write_one(
        &self,
        name: &'static str,
        write: impl FnOnce(&File) -> Outcome<u64>,
    ) -> Outcome<(&'static str, NamedTempFile, u64)> {
        let file = output::begin(&self.folder.join(name)).map_err(|error| self.unwritable(name, &error))?;
        let rows = write(file.as_file())?;
        Ok((name, file, rows))
    }

    fn unwritable(&self, name: &str, error: &dyn std::error::Error) -> Failure {
        Failure::Output(format!("could not write \"{}\": {error}", self.folder.join(name).display()))
    }
}

/// Writes the transactions of all recordings.
fn transactions(recordings: &[Recorded<'_>], output: &File) -> Outcome<u64> {
    let unwritable = |error: ExportError| Failure::Output(format!("could not write {TRANSACTIONS}: {error}"));
    let mut table = TransactionsTable::new(BufWriter::new(output)).map_err(unwritable)?;
    for Recorded { place, path } in recordings {
        let shown = path.display();
        let file = open_to_show(path);
        let file = file.map_err(|error| {
            Failure::setup(format!("--transactions: could not read \"{shown}\": {error}"))
        })?;
        table.add(place, BufReader::new(file)).map_err(|error| match error {
            ExportError::Unreadable(_) | ExportError::Foreign { .. } => {
                Failure::setup(format!("--transactions: \"{shown}\": {error}"))
            }
            ExportError::Unwritable(_) => unwritable(error),
        })?;
    }
    table.finish().map_err(unwritable)
}

/// The recordings among what is given, in the order of the result's rounds.
///
/// # Errors
/// The result names no recordings; a file is none of them; a folder lacks one.
fn recordings<'a>(document: &'a Document, given: &[PathBuf]) -> Outcome<Vec<Recorded<'a>>> {
    let named: Vec<(Place<'a>, &'a RecordedHistory)> =
        rounds(document).filter_map(|place| Some((place, place.round.history.as_ref()?))).collect();
    if named.is_empty() {
        return Err(Failure::setup(
            "--transactions: the result names no recordings; measure with compare --history FOLDER, or run --history \
             FILE",
        ));
    }
    let (folders, files): (Vec<&PathBuf>, Vec<&PathBuf>) = given.iter().partition(|path| path.is_dir());
    let stranger = files.iter().find(|file| !named.iter().any(|(_, history)| is_named(file, history)));
    if let Some(file) = stranger {
        return Err(Failure::setup(format!(
            "--transactions: \"{}\" isn't named as a recording by the result; the first that it names is \"{}\"",
            file.display(),
            named[0].1.file
        )));
    }
    let mut found = Vec::new();
    for (place, history) in named {
        let file = files.iter().find(|file| is_named(file, history)).map(|file| (*file).clone());
        // The name comes from the result, which may be somebody else's.
        let name = Path::new(&history.file).file_name().unwrap_or_default();
        let inside = || folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        match file.or_else(inside) {
            Some(path) => found.push(Recorded { place, path }),
            None if folders.is_empty() => {}
            None => {
                return Err(Failure::setup(format!(
                    "--transactions: there is no \"{}\" in \"{}\", the recording of round {} of {}; name those files \
                     that are there",
                    history.file,
                    folders[0].display(),
                    place.round.round,
                    place.cell.level.name()
                )));
            }
        }
    }
    Ok(found)
}

/// True if a path has the name of a recording.
fn is_named(path: &Path, history: &RecordedHistory) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy() == history.file)
}
