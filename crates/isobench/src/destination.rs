//! The files that a command is going to write: checks that they can be written without overwriting
//! a file of the user's, before anything is measured.
//!
//! Not here: the writing (`output.rs`).

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_isolation::history::binary::MAGIC;
use isobench_report::gate::{JUNIT_START, SARIF_SCHEMA};
use isobench_report::{MARKDOWN_START, TREND_TITLES, csv_titles};
use isobench_result::{FORMAT, PAIR_FORMAT, TREND_FORMAT};
use isobench_trust::refuse_foreign_links;

use crate::output::is_stream;

/// The kind of a file, by which an earlier one is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A result document, JSON.
    Result,
    /// A report, HTML.
    Page,
    /// A certificate, Markdown.
    Markdown,
    /// One line per round, CSV.
    Lines,
    /// Several results compared, JSON.
    Comparison,
    /// Two results compared, CSV.
    PairLines,
    /// One figure of a series of results, CSV.
    TrendLines,
    /// The tags of a result, JSON.
    Tags,
    /// What would be seen of statements, JSON.
    Preview,
    /// Which levels transactions need, JSON.
    Advice,
    /// The levels of scripts, TOML.
    Levels,
    /// Suspects that are accepted, TOML.
    Accepted,
    /// A recorded history, binary.
    History,
    /// A table for other programs, CSV.
    Table,
    /// Tests, as `JUnit` writes them.
    JUnit,
    /// Findings, SARIF.
    Sarif,
}

/// The value of the member `format` of a preview.
pub const PREVIEW_FORMAT: &str = "isobench/observe";

/// The value of the member `format` of a file of tags.
pub const TAGS_FORMAT: &str = "isobench/tags";

/// Maximum number of bytes read from the start of an existing file.
pub const HEAD: u64 = 4096;

/// Checks that a file can be written, and that it doesn't exist yet, is empty, or was written by
/// isobench. Anything other than a regular file (a pipe, a device) is accepted, and so is standard
/// output (`-`), except for histories, tests and findings.
///
/// # Errors
/// The file can't be written, or isn't isobench's; the message begins with the option that names
/// it.
pub fn check_file(option: &str, path: &Path, kind: Kind) -> Outcome {
    let shown = path.display();
    let refused = |why: String| Err(Failure::setup(format!("{option}: {why}")));
    let unwritable = |error: &io::Error| refused(format!("could not write \"{shown}\": {error}"));
    if is_stream(path) {
        return match kind {
            Kind::History => refused("a history can't be written to standard output; name a file".to_owned()),
            Kind::JUnit | Kind::Sarif => {
                refused("standard output has the answer for people; name a file".to_owned())
            }
            _ => Ok(()),
        };
    }
    if let Err(error) = refuse_foreign_links(path) {
        return unwritable(&error);
    }
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
    if is_stream(path) {
        return Err(io::Error::other("standard output is no folder"));
    }
    refuse_foreign_links(path)?;
    let there = path.ancestors().find(|folder| folder.symlink_metadata().is_ok());
    try_in(there.unwrap_or(Path::new(".")))
}

/// Checks that at most one of the files is standard output (`-`). Returns whether one is.
///
/// # Errors
/// Several are; the message names their options.
pub fn one_stream(files: &[(&str, &Option<PathBuf>)]) -> Outcome<bool> {
    let is_one = |path: &&Option<PathBuf>| path.as_deref().is_some_and(is_stream);
    let options: Vec<&str> =
        files.iter().filter(|(_, path)| is_one(path)).map(|(option, _)| *option).collect();
    match options.as_slice() {
        [] => Ok(false),
        [_] => Ok(true),
        several => Err(Failure::setup(format!(
            "{} -: only one of them can write to standard output; name a file for the others",
            several.join(" - and ")
        ))),
    }
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
    let mut part = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut part)?;
    Ok(part.is_empty() || kind.recognises(&part))
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Kind::Result => "result",
            Kind::Page => "report",
            Kind::Markdown => "certificate",
            Kind::Lines | Kind::PairLines | Kind::TrendLines | Kind::Table => "table",
            Kind::Tags => "file of tags",
            Kind::Comparison => "comparison",
            Kind::Preview => "preview",
            Kind::Advice => "piece of advice",
            Kind::Levels => "file of levels",
            Kind::Accepted => "file of accepted suspects",
            Kind::History => "history",
            Kind::JUnit => "file of tests",
            Kind::Sarif => "file of findings",
        }
    }

    /// Returns whether a file with this start is of this kind.
    pub fn recognises(self, head: &[u8]) -> bool {
        let text = String::from_utf8_lossy(head);
        match self {
            Kind::Result => is_json(&text, FORMAT),
            Kind::Comparison => [PAIR_FORMAT, TREND_FORMAT].iter().any(|format| is_json(&text, format)),
            Kind::TrendLines => text.starts_with(TREND_TITLES),
            Kind::Tags => is_json(&text, TAGS_FORMAT),
            Kind::Preview => is_json(&text, PREVIEW_FORMAT),
            Kind::Advice => is_json(&text, isobench_advice::FORMAT),
            Kind::Levels => text.starts_with(isobench_advice::LEVELS_START),
            Kind::Accepted => text.starts_with(isobench_suspects::ACCEPTED_START),
            Kind::Page => text.contains("name=\"generator\" content=\"isobench "),
            Kind::Markdown => text.starts_with(MARKDOWN_START),
            Kind::JUnit => text.contains(JUNIT_START),
            Kind::Sarif => text.contains(SARIF_SCHEMA) && text.contains("\"name\": \"isobench\""),
            Kind::Lines => text.starts_with(&csv_titles(3)),
            Kind::PairLines => first_line(&text).contains(",a_tps,"),
            Kind::History => head.starts_with(&MAGIC),
            Kind::Table => text.starts_with("started_at,cell,"),
        }
    }
}

/// Returns whether a text begins as JSON of this format.
fn is_json(text: &str, format: &str) -> bool {
    let start: String = text.chars().filter(|letter| !letter.is_whitespace()).take(64).collect();
    start.starts_with(&format!("{{\"format\":\"{format}\""))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use isobench_report::gate::{junit, sarif};
    use isobench_report::{
        CertificateLayout, ExportError, Layouts as _, TransactionsTable, certificate, to_csv, to_html,
        write_rounds, write_series,
    };
    use isobench_result::{Axis, Client, Document, Plan, Server, compare_results, trend};

    use super::*;

    #[test]
    fn what_we_write_is_recognised_and_nothing_else() {
        let document = Document::new(Server::default(), Client::default(), Plan::default());
        let pair = compare_results(&document, &document).expect("the same version");
        let trend = trend(&[], &"tps".parse().expect("a figure"), &Axis::Time);
        let texts = [
            (Kind::Result, document.to_json()),
            (Kind::Page, to_html(&document)),
            (Kind::Markdown, certificate(&[], "isobench 1", CertificateLayout::Markdown)),
            (Kind::Lines, to_csv(&document)),
            (Kind::Comparison, pair.to_json()),
            (Kind::PairLines, pair.to_csv()),
            (Kind::TrendLines, trend.to_csv()),
            (Kind::Tags, format!("{{\n  \"format\": \"{TAGS_FORMAT}\",\n}}")),
            (Kind::JUnit, junit("race", &[]).expect("XML")),
            (Kind::Sarif, sarif(&[], &|_| None)),
            (Kind::Table, table(|output| write_rounds(&document, output))),
            (Kind::Preview, format!("{{\n  \"format\": \"{PREVIEW_FORMAT}\",\n}}")),
        ];
        let page = certificate(&[], "isobench 1", CertificateLayout::Page);
        assert!(Kind::Page.recognises(page.as_bytes()));
        assert!(Kind::Comparison.recognises(trend.to_json().as_bytes()));
        assert!(
            Kind::Page.recognises(pair.to_html().as_bytes())
                && Kind::Page.recognises(trend.to_html().as_bytes())
        );
        for (kind, text) in &texts {
            let head = &text.as_bytes()[..text.len().min(4096)];
            for (other, _) in &texts {
                assert_eq!(other.recognises(head), kind == other, "{kind:?} as {other:?}");
            }
            assert!(!kind.recognises(b"<!DOCTYPE html><title>my thesis</title>"), "{kind:?}");
            assert!(!kind.recognises(b"{\"format\": \"other\"}"), "{kind:?}");
        }
    }

    fn table(write: impl Fn(&mut Vec<u8>) -> Result<u64, ExportError>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("a table");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn each_exported_table_is_recognised() {
        let document = Document::new(Server::default(), Client::default(), Plan::default());
        let transactions = table(|output| TransactionsTable::new(output)?.finish());
        for text in [transactions, table(|output| write_series(&document, output))] {
            assert!(Kind::Table.recognises(text.as_bytes()), "{text}");
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

    #[test]
    fn standard_output_takes_one_text() {
        let stream = Some(PathBuf::from("-"));
        for kind in [Kind::JUnit, Kind::Sarif] {
            let error = check_file("--junit", Path::new("-"), kind).expect_err("the answer is there");
            assert!(error.to_string().ends_with("; name a file"), "{error}");
        }
        for kind in [Kind::Result, Kind::Page, Kind::Lines] {
            check_file("--json", Path::new("-"), kind).expect("standard output");
        }
        let error = check_file("--history", Path::new("-"), Kind::History).expect_err("it is binary");
        assert!(error.to_string().starts_with("--history: "), "{error}");
        assert!(check_folder(Path::new("-")).is_err());
        let file = Some(PathBuf::from("x"));
        assert!(!one_stream(&[("--json", &file), ("--csv", &None)]).expect("no stream"));
        assert!(one_stream(&[("--json", &stream), ("--csv", &file)]).expect("one stream"));
        let error = one_stream(&[("--json", &stream), ("--csv", &stream)]).expect_err("two").to_string();
        assert!(error.starts_with("--json - and --csv -: "), "{error}");
    }
}
