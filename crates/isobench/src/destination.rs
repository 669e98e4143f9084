//! The files that a command is going to write: checks that they can be written without overwriting
//! a file of the user's, before anything is measured.
//!
//! Not here: the writing (`output.rs`).

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use isobench_isolation::history::binary::MAGIC;
use isobench_report::{FORMAT, csv_titles};

use isobench_comparison::{Failure, Outcome};

/// The kind of a file, by which an earlier one is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A result document, JSON.
    Result,
    /// A report, HTML.
    Page,
    /// One line per round, CSV.
    Lines,
    /// A recorded history, binary.
    History,
}

/// Maximum number of bytes read from an existing file.
const HEAD: u64 = 4096;

/// Checks that a file can be written, and that it doesn't exist yet, is empty, or was written by
/// isobench. Anything other than a regular file (a pipe, a device) is accepted.
///
/// # Errors
/// The file can't be written, or isn't isobench's; the message begins with the option that names
/// it.
pub fn check_file(option: &str, path: &Path, kind: Kind) -> Outcome {
    let shown = path.display();
    let refused = |why: String| Err(Failure::setup(format!("{option}: {why}")));
    let unwritable = |error: &io::Error| refused(format!("could not write \"{shown}\": {error}"));
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return refused(format!("\"{shown}\" is a folder")),
        Ok(metadata) if !metadata.is_file() => return Ok(()),
        Ok(_) => match is_ours(path, kind) {
            Ok(true) => {}
            Ok(false) => {
                return refused(format!(
                    "\"{shown}\" exists and isn't a {} of isobench, so it isn't overwritten; remove it, or name \
                     another",
                    kind.word()
                ));
            }
            Err(error) => return unwritable(&error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return unwritable(&error),
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    try_in(folder).or_else(|error| unwritable(&error))
}

/// Checks that a folder exists or can be created, and that it is writable. Creates nothing.
///
/// # Errors
/// It isn't.
pub fn check_folder(path: &Path) -> io::Result<()> {
    let there = path.ancestors().find(|folder| folder.symlink_metadata().is_ok());
    try_in(there.unwrap_or(Path::new(".")))
}

/// Creates a file in a folder, and removes it.
fn try_in(folder: &Path) -> io::Result<()> {
    let file = tempfile::Builder::new().prefix(".isobench-").tempfile_in(folder);
    match file {
        Ok(file) => file.close(),
        // Without the message's path, which is that of the temporary file.
        Err(error) => Err(error.kind().into()),
    }
}

/// Returns whether an existing file is empty or of this kind.
fn is_ours(path: &Path, kind: Kind) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head.is_empty() || kind.recognises(&head))
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Kind::Result => "result",
            Kind::Page => "report",
            Kind::Lines => "table",
            Kind::History => "history",
        }
    }

    /// Returns whether a file with this start is of this kind.
    fn recognises(self, head: &[u8]) -> bool {
        let text = String::from_utf8_lossy(head);
        match self {
            Kind::Result => {
                let blank = |c: &char| !c.is_whitespace();
                let start: String = text.chars().filter(blank).take(64).collect();
                start.starts_with(&format!("{{\"format\":\"{FORMAT}\""))
            }
            Kind::Page => text.contains("name=\"generator\" content=\"isobench "),
            Kind::Lines => text.starts_with(&csv_titles(3)),
            Kind::History => head.starts_with(&MAGIC),
        }
    }
}

#[cfg(test)]
mod tests {
    use isobench_report::{Client, Document, Plan, Server, to_csv, to_html};

    use super::*;

    #[test]
    fn what_we_write_is_recognised_and_nothing_else() {
        let document = Document::new(Server::default(), Client::default(), Plan::default());
        let texts = [
            (Kind::Result, document.to_json()),
            (Kind::Page, to_html(&document)),
            (Kind::Lines, to_csv(&document)),
        ];
        for (kind, text) in &texts {
            let head = &text.as_bytes()[..text.len().min(4096)];
            for (other, _) in &texts {
                assert_eq!(other.recognises(head), kind == other, "{kind:?} as {other:?}");
            }
            assert!(!kind.recognises(b"<!DOCTYPE html><title>my thesis</title>"), "{kind:?}");
            assert!(!kind.recognises(b"{\"format\": \"other\"}"), "{kind:?}");
        }
    }

    #[test]
    fn a_folder_is_tried_and_not_made() {
        let scene = tempfile::tempdir().expect("a folder");
        let wanted = scene.path().join("a/b/c");
        check_folder(&wanted).expect("it could be made");
        assert!(fs::read_dir(scene.path()).expect("the folder").next().is_none(), "nothing is left");
        fs::write(scene.path().join("a"), "").expect("a file");
        assert!(check_folder(&wanted).is_err());
    }

    #[test]
    fn a_file_of_somebody_elses_is_left_alone() {
        let scene = tempfile::tempdir().expect("a folder");
        let path = scene.path().join("x.json");
        check_file("--json", &path, Kind::Result).expect("nothing is there");
        fs::write(&path, "").expect("a file");
        check_file("--json", &path, Kind::Result).expect("an empty file is no loss");
        fs::write(&path, "{\"name\": \"package\"}").expect("a file");
        let error = check_file("--json", &path, Kind::Result).expect_err("it would be lost").to_string();
        assert!(error.starts_with("--json: ") && error.contains("isn't overwritten"), "{error}");
        let error = check_file("--json", scene.path(), Kind::Result).expect_err("a folder").to_string();
        assert!(error.ends_with("is a folder"), "{error}");
        let error = check_file("--json", &path.join("y"), Kind::Result).expect_err("no folder").to_string();
        assert!(error.contains("could not write"), "{error}");
        check_file("--json", Path::new("/dev/null"), Kind::Result).expect("a device");
    }
}
