//! The results that are saved in a folder: found, put in order, and found again by their names, tags
//! and age.
//!
//! Not here: their tags as a file (`saved/tags.rs`).

pub mod tags;

use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_result::Document;
use isobench_suggest::did_you_mean;
use isobench_trust::{open_to_show, refuse_foreign_links};

use crate::latest::{self, RESULT};
use crate::output::{is_stream, say, shown};

/// The name of the newest result; with `~N` the Nth before it.
const LATEST: &str = "latest";

/// A saved result.
#[derive(Debug, Clone)]
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

    /// The result of a path: standard input, a file, or the newest in a folder.
    fn at(given: &Path) -> Outcome<SavedResult> {
        if is_stream(given) {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| Failure::setup(format!("could not read standard input: {error}")))?;
            let document = parse(given, &bytes)?;
            return Ok(SavedResult {
                name: shown(given),
                path: given.to_owned(),
                tags: Vec::new(),
                document,
            });
        }
        let path = latest::result_in(given)?;
        let document = read(&path)?;
        // A file of this name may be somebody else's where results are files of any name.
        let tags = tags::read(&path).unwrap_or_default();
        Ok(SavedResult { name: path.display().to_string(), path, tags, document })
    }

    /// The whole seconds that measuring took, if both ends are known.
    pub fn seconds(&self) -> Option<u64> {
        let time = |text: &Option<String>| humantime::parse_rfc3339_weak(text.as_deref()?).ok();
        let (start, end) = (time(&self.document.started_at)?, time(&self.document.finished_at)?);
        end.duration_since(start).ok().map(|took| took.as_secs())
    }
}

impl Saved {
    /// Reads the results in a folder, and warns of each that can't be read. Links in it are not followed.
    ///
    /// # Errors
    /// The folder can't be read, or a link on the way to it isn't to be trusted; the message names it.
    pub fn in_folder(folder: &Path) -> Outcome<Saved> {
        let failure = |error: io::Error| {
            let hint = if error.kind() == ErrorKind::NotFound {
                "; isobench compare and audit make it, --folder names another one"
            } else {
                ""
            };
            Failure::setup(format!("could not read the folder of results {}: {error}{hint}", shown(folder)))
        };
        refuse_foreign_links(folder).map_err(failure)?;
        let mut saved = Saved::default();
        let mut unreadable = Vec::new();
        for entry in fs::read_dir(folder).map_err(failure)? {
            let entry = entry.map_err(failure)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path().join(RESULT);
            let is_folder = entry.file_type().map_err(failure)?.is_dir();
            if !is_folder || !path.symlink_metadata().is_ok_and(|there| there.is_file()) {
                continue;
            }
            match SavedResult::read(&name, path) {
                Ok(result) => saved.results.push(result),
                Err(why) => unreadable.push(why.to_string()),
            }
        }
        unreadable.sort();
        for why in unreadable {
            say(&format!("warning: left out: {why}"));
        }
        saved.results.sort_by(|one, other| {
            let key = |result: &SavedResult| (result.document.started_at.clone(), result.name.clone());
            key(one).cmp(&key(other))
        });
        Ok(saved)
    }

    /// The result that a word means: a name, `latest`, `latest~N`, or a tag that one result has.
    ///
    /// # Errors
    /// There is none, or several have the tag; the message says which.
    fn find(&self, word: &str) -> Outcome<&SavedResult> {
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
                "no result has the name or the tag \"{word}\"{}; isobench report lists them",
                did_you_mean(word, self.words())
            ))),
            (_, several) => {
                let why = format!("\"{word}\" is a tag of {}: name one", several.join(", "));
                Err(Failure::setup(why))
            }
        }
    }

    /// The names and tags.
    fn words(&self) -> impl Iterator<Item = &str> {
        self.results
            .iter()
            .flat_map(|result| std::iter::once(&result.name).chain(&result.tags))
            .map(String::as_str)
    }
}

/// The results that words of the command line mean: standard input, files, folders with a result, and what
/// [`Saved::find`] finds in the folder.
///
/// # Errors
/// A word means none, or several; a result can't be read.
pub fn choose(folder: &Path, words: &[PathBuf]) -> Outcome<Vec<SavedResult>> {
    let mut saved: Option<Saved> = None;
    let mut chosen = Vec::new();
    for given in words {
        let Some(word) = given.to_str().filter(|_| !is_path(given)) else {
            chosen.push(SavedResult::at(given)?);
            continue;
        };
        let known = match saved.take() {
            Some(known) => known,
            None => Saved::in_folder(folder)
                .map_err(|why| Failure::setup(format!("\"{word}\": there is no such file; {why}")))?,
        };
        chosen.push(known.find(word)?.clone());
        saved = Some(known);
    }
    Ok(chosen)
}

/// True for what is no name of a result in a folder.
fn is_path(given: &Path) -> bool {
    let has_form = given.as_os_str().as_encoded_bytes().contains(&b'/')
        || given.extension().is_some_and(|ending| ending == "json");
    is_stream(given) || has_form || given.exists()
}

/// "" is 0, "~2" is 2.
fn steps_back(text: &str) -> Option<usize> {
    if text.is_empty() { Some(0) } else { text.strip_prefix('~')?.parse().ok() }
}

/// "1 result", "3 results".
fn counted(number: usize) -> String {
    if number == 1 { "1 result".to_owned() } else { format!("{number} results") }
}

/// True if a word means a result by its age, so that it can't be a tag.
fn is_reserved(word: &str) -> bool {
    word.strip_prefix(LATEST).is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
}
