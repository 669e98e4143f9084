//! The tags of a saved result: a small file beside it, so that the result itself is never written
//! again.
//!
//! Not here: what tags are for (`saved.rs`, `isobench_result::Axis`).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_trust::{open_to_show, refuse_foreign_links};
use serde::{Deserialize, Serialize};

use super::is_reserved;
use crate::destination::{Kind, TAGS_FORMAT, check_file};
use crate::output::{self, shown};

/// The name of the file.
pub const FILE: &str = "tags.json";

/// The version of its shape.
const VERSION: u32 = 1;

/// The longest tag.
const LONGEST: usize = 64;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct TagFile {
    format: String,
    format_version: u32,
    tags: Vec<String>,
}

fn beside(result: &Path) -> PathBuf {
    result.with_file_name(FILE)
}

/// Reads the tags beside a result; none if there is no such file.
///
/// # Errors
/// It can't be read, or isn't isobench's; the message names it.
pub fn read(result: &Path) -> Outcome<Vec<String>> {
    let path = beside(result);
    let failure = |why: &dyn std::fmt::Display| Failure::setup(format!("{}: {why}", shown(&path)));
    match path.symlink_metadata() {
        Ok(there) if there.is_file() => {}
        Ok(_) => return Err(failure(&"this is no file; remove it, and tag the result again")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failure(&error)),
    }
    let text = open_to_show(&path).and_then(io::read_to_string).map_err(|error| failure(&error))?;
    parse(text.as_bytes()).map_err(|why| failure(&why))
}

/// Reads tags from the bytes of a file.
///
/// # Errors
/// They aren't isobench's, or of a newer one.
pub fn parse(bytes: &[u8]) -> Result<Vec<String>, String> {
    let file: TagFile = serde_json::from_slice(bytes).map_err(|error| {
        format!("these are not the tags of a result: {error}; remove the file, and tag again")
    })?;
    if file.format != TAGS_FORMAT || file.format_version != VERSION {
        return Err(format!(
            "these are not tags that this isobench reads (\"{}\" {}); use a newer isobench",
            file.format, file.format_version
        ));
    }
    Ok(file.tags)
}

/// Writes the tags beside a result.
///
/// # Errors
/// The file can't be written or isn't isobench's; for root, others can write to the folder.
pub fn write(result: &Path, tags: &[String]) -> Outcome {
    let path = beside(result);
    let folder = path.parent().unwrap_or(Path::new("."));
    let failure = |error: io::Error| Failure::setup(format!("could not write {}: {error}", shown(&path)));
    refuse_foreign_links(folder).map_err(failure)?;
    let there = fs::metadata(folder).map_err(failure)?;
    if let Some(why) = untrusted(there.uid(), there.mode()) {
        return Err(Failure::setup(format!("{}: {why}", shown(folder))));
    }
    check_file("tags", &path, Kind::Tags)?;
    let file = TagFile { format: TAGS_FORMAT.to_owned(), format_version: VERSION, tags: tags.to_vec() };
    // Plain data can always be written.
    let text = serde_json::to_string_pretty(&file).unwrap_or_default() + "\n";
    output::replace(&path, &text).map(drop).map_err(failure)
}

/// Why root changes nothing in a folder of this owner and mode; `None` for other users, who can do no
/// more there than the system permits them.
fn untrusted(owner: u32, mode: u32) -> Option<&'static str> {
    let others_write = owner != 0 || mode & 0o022 != 0;
    (rustix::process::geteuid().is_root() && others_write)
        .then_some("root changes nothing in a folder that other users can write to; do it as its owner")
}

/// Reads a tag of the command line: a word, or `KEY=VALUE`.
///
/// # Errors
/// It can't be a tag; the message says why.
pub fn tag(text: &str) -> Result<String, String> {
    let fit =
        |letter: char| !letter.is_whitespace() && !letter.is_control() && !matches!(letter, '/' | '"' | '\\');
    if text.is_empty() || text.chars().count() > LONGEST || !text.chars().all(fit) {
        return Err(format!("a tag has 1 to {LONGEST} letters, without blanks, quotes and slashes"));
    }
    if text.starts_with(['-', '=', '.']) {
        return Err("a tag doesn't begin with a hyphen, a dot or \"=\"".to_owned());
    }
    if is_reserved(text) {
        return Err("latest and latest~N mean the newest results".to_owned());
    }
    Ok(text.to_owned())
}

/// The tags with others added. A key has one value, so that a new one takes the old one's place.
pub fn with(tags: &[String], added: &[String]) -> Vec<String> {
    let key = |tag: &String| tag.split_once('=').map(|(key, _)| key.to_owned());
    let mut tags = tags.to_vec();
    for tag in added {
        tags.retain(|known| known != tag && (key(known).is_none() || key(known) != key(tag)));
        tags.push(tag.clone());
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_words_that_mean_nothing_else() {
        for text in ["nightly", "commit=abc123", "v1.2", "größe", "latest-good", "a=b=c"] {
            assert_eq!(tag(text), Ok(text.to_owned()));
        }
        for text in
            ["", "a b", "a/b", "-x", "=x", ".x", "latest", "latest~3", "a\nb", "a\u{1b}b", &"x".repeat(65)]
        {
            assert!(tag(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_has_one_value() {
        let all = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        let tags = with(&all(&["a", "k=1", "b"]), &all(&["k=2", "a", "l=1"]));
        assert_eq!(tags, all(&["b", "k=2", "a", "l=1"]));
    }

    #[test]
    fn tags_come_back_and_overwrite_nothing_else() {
        let scene = tempfile::tempdir().expect("a folder");
        let result = scene.path().join("result.json");
        let tags = ["nightly".to_owned(), "commit=abc".to_owned()];
        assert_eq!(read(&result).expect("none"), [] as [String; 0]);
        write(&result, &tags).expect("it is written");
        assert_eq!(read(&result).expect("they are there"), tags);
        fs::write(scene.path().join(FILE), "{\"my\": \"notes\"}").expect("a file");
        assert!(read(&result).is_err() && write(&result, &tags).is_err());
        assert_eq!(fs::read_to_string(scene.path().join(FILE)).expect("the file"), "{\"my\": \"notes\"}");
    }
}
