//! The results that are saved in a folder: found, put in order, and found again by their names, tags
//! and age.
//!
//! Not here: their tags as a file (`saved/tags.rs`), the removal of results (`commands/results/prune.rs`).

pub mod tags;

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isobench_comparison::{Failure, Outcome};
use isobench_result::Document;
use isobench_suggest::did_you_mean;
use isobench_trust::{open_to_show, refuse_foreign_links};

use crate::latest::{self, RESULT};
use crate::output::shown;

/// The name of the newest result; with `~N` the Nth before it.
const LATEST: &str = "latest";

/// A saved result.
#[derive(Debug)]
pub struct SavedResult {
    /// The name of its folder, or its path if it was named by that.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its tags.
    pub tags: Vec<String>,
    /// The document.
    pub document: Document,
}

/// What a folder of results holds.
#[derive(Debug, Default)]
pub struct Saved {
    /// The results, the oldest first.
    pub results: Vec<SavedResult>,
    /// What has a `result.json` that can't be read, a sentence each.
    pub unreadable: Vec<String>,
    /// The names of everything else, except for the link to the newest result.
    pub foreign: Vec<String>,
}

/// Reads a result.
///
/// # Errors
/// It can't be read, or isn't one; the message names the file.
pub fn read(path: &Path) -> Outcome<Document> {
    let bytes = open_to_show(path)
        .and_then(|mut file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map(|_| bytes)
        })
        .map_err(|error| Failure::setup(format!("could not read {}: {error}", shown(path))))?;
    parse(path, &bytes)
}

/// Reads a result from the bytes of a file.
///
/// # Errors
/// It isn't one; the message names the file.
pub fn parse(path: &Path, bytes: &[u8]) -> Outcome<Document> {
    Document::from_json(bytes).map_err(|error| Failure::setup(format!("{}: {error}", shown(path))))
}

/// What [`Saved::find`] may be given, without reading the results: names, tags, `latest`. None where
/// the folder can't be read.
pub fn words(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut words = vec![LATEST.to_owned()];
    for entry in folders.filter(|entry| entry.path().join(RESULT).is_file()) {
        words.push(entry.file_name().to_string_lossy().into_owned());
        words.extend(tags::read(&entry.path().join(RESULT)).unwrap_or_default());
    }
    words.sort();
    words.dedup();
    words
}

impl SavedResult {
    fn read(name: &str, path: PathBuf) -> Outcome<SavedResult> {
        let document = read(&path)?;
        let tags = tags::read(&path)?;
        Ok(SavedResult { name: name.to_owned(), path, tags, document })
    }

    /// The time since the start of measuring, if it says when that was.
    pub fn age(&self) -> Option<Duration> {
        let started = humantime::parse_rfc3339_weak(self.document.started_at.as_deref()?).ok()?;
        SystemTime::now().duration_since(started).ok()
    }

    /// The whole seconds that measuring took, if both ends are known.
    pub fn seconds(&self) -> Option<u64> {
        let time = |text: &Option<String>| humantime::parse_rfc3339_weak(text.as_deref()?).ok();
        let (start, end) = (time(&self.document.started_at)?, time(&self.document.finished_at)?);
        end.duration_since(start).ok().map(|took| took.as_secs())
    }
}

impl Saved {
    /// Reads the results in a folder. Links in it are not followed.
    ///
    /// # Errors
    /// The folder can't be read, or a link on the way to it isn't to be trusted; the message names it.
    pub fn in_folder(folder: &Path) -> Outcome<Saved> {
        let failure = |error: std::io::Error| {
            let hint = if error.kind() == ErrorKind::NotFound {
                "; isobench compare and audit make it, --folder names another one"
            } else {
                ""
            };
            Failure::setup(format!("could not read the folder of results {}: {error}{hint}", shown(folder)))
        };
        refuse_foreign_links(folder).map_err(failure)?;
        let mut saved = Saved::default();
        for entry in fs::read_dir(folder).map_err(failure)? {
            let entry = entry.map_err(failure)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path().join(RESULT);
            let is_folder = entry.file_type().map_err(failure)?.is_dir();
            let has_result = || path.symlink_metadata().is_ok_and(|there| there.is_file());
            if !is_folder || !has_result() {
                if name != LATEST {
                    saved.foreign.push(name);
                }
                continue;
            }
            match SavedResult::read(&name, path) {
                Ok(result) => saved.results.push(result),
                Err(why) => saved.unreadable.push(why.to_string()),
            }
        }
        saved.results.sort_by(|one, other| {
            let key = |result: &SavedResult| (result.document.started_at.clone(), result.name.clone());
            key(one).cmp(&key(other))
        });
        saved.foreign.sort();
        saved.unreadable.sort();
        Ok(saved)
    }

    /// The result that a word means: a name, `latest`, `latest~N`, or a tag that one result has.
    ///
    /// # Errors
    /// There is none, or several have the tag; the message says which.
    pub fn find(&self, word: &str) -> Outcome<&SavedResult> {
        if let Some(result) = self.results.iter().find(|result| result.name == word) {
            return Ok(result);
        }
        if let Some(back) = word.strip_prefix(LATEST).and_then(steps_back) {
            let count = self.results.len();
            let found = count.checked_sub(back + 1).and_then(|index| self.results.get(index));
            return found.ok_or_else(|| {
                Failure::setup(format!("\"{word}\": the folder has only {}", counted(count)))
            });
        }
        let tagged = || self.results.iter().filter(|result| result.tags.iter().any(|tag| tag == word));
        let names: Vec<&str> = tagged().map(|result| result.name.as_str()).collect();
        match (tagged().next(), names.as_slice()) {
            (Some(result), [_]) => Ok(result),
            (None, _) => Err(Failure::setup(format!(
                "no result has the name or the tag \"{word}\"{}; isobench results lists them",
                did_you_mean(word, self.words())
            ))),
            (_, several) => {
                let why = format!("\"{word}\" is a tag of {}: name one", several.join(", "));
                Err(Failure::setup(why))
            }
        }
    }

    /// The same; a word that is the path of a file or a folder elsewhere means the result there.
    ///
    /// # Errors
    /// As [`Saved::find`]; the file can't be read, or isn't a result.
    pub fn find_or_read(&self, word: &str) -> Outcome<SavedResult> {
        let is_path = word.contains('/') || Path::new(word).is_file();
        if !is_path {
            let found = self.find(word)?;
            return SavedResult::read(&found.name, found.path.clone());
        }
        let path = latest::result_in(Path::new(word))?;
        SavedResult::read(word, path)
    }

    /// The names and tags.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.results
            .iter()
            .flat_map(|result| std::iter::once(&result.name).chain(&result.tags))
            .map(String::as_str)
    }
}

/// "" is 0, "~2" is 2.
fn steps_back(text: &str) -> Option<usize> {
    if text.is_empty() { Some(0) } else { text.strip_prefix('~')?.parse().ok() }
}

/// "1 result", "3 results".
pub fn counted(number: usize) -> String {
    if number == 1 { "1 result".to_owned() } else { format!("{number} results") }
}

/// True if a word means a result by its age, so that it can't be a tag.
fn is_reserved(word: &str) -> bool {
    word.strip_prefix(LATEST).is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
}
