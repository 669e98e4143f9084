//! The report on one screen stays on one screen, and says nothing twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use isobench_report::{Extent, Terminal, render};
use isobench_result::Document;
use isobench_testkit::golden::expect;

use crate::examples;

/// The most lines of a report with at most three rows.
const MOST: usize = 40;

/// The most lines beside those of the rows of a report with more rows.
const MOST_BESIDE_ROWS: usize = 34;

/// The most lines of a witness.
const MOST_OF_WITNESS: usize = 16;

/// The fewest words of a sentence that must not come twice.
const WORDS: usize = 5;

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// All examples: those of the tests, and those that the manual shows.
fn all() -> Vec<(String, Document)> {
    let mut all: Vec<(String, Document)> =
        examples::all().into_iter().map(|(name, document)| (name.to_owned(), document)).collect();
    let shown = fs::read_dir(folder("../../docs/examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut shown: Vec<PathBuf> =
        shown.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect();
    shown.sort();
    for path in shown {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        all.push((name, Document::from_json(fs::read(path).unwrap()).unwrap()));
    }
    all
}

#[test]
fn the_report_fits_on_a_screen() {
    let mut table = String::new();
    for (name, document) in all() {
        let text = render(&document, 80);
        let details =
            Terminal { extent: Extent::Details, ..Terminal::of_width(80) }.render(&document).to_string();
        let (lines, details) = (text.lines().count(), details.lines().count());
        let rows = document.cells.len();
        if rows <= 3 {
            assert!(lines <= MOST, "{name} has {lines} lines:\n{text}");
        }
        // A row may have a second line, and a combination a heading and a blank line.
        assert!(lines <= MOST.max(MOST_BESIDE_ROWS + 4 * rows), "{name} has {lines} lines:\n{text}");
        // Writing to a String can't fail.
        let _ = writeln!(table, "{name}: {lines} lines, {details} with details");
    }
    expect(folder("tests/golden/lines.txt"), &table);
}

/// `isobench audit` adds the anomalies of each row, and one witness.
#[test]
fn an_audit_fits_on_a_screen() {
    let mut witnesses = 0;
    for (name, document) in all() {
        let audit = Terminal { extent: Extent::Audit, ..Terminal::of_width(80) };
        let (text, plain) = (audit.render(&document).to_string(), render(&document, 80));
        let (lines, rows) = (text.lines().count(), document.cells.len());
        if rows <= 3 {
            assert!(lines <= MOST, "{name} has {lines} lines:\n{text}");
        }
        // A row has a sentence more, of two lines at most.
        assert!(lines <= plain.lines().count() + 2 * rows + MOST_OF_WITNESS, "{name}:\n{text}");
        witnesses += usize::from(text.contains(", for example\n"));
    }
    assert!(witnesses >= 3, "{witnesses} examples show a witness");
}

#[test]
fn the_report_says_nothing_twice() {
    for (name, document) in all() {
        let text = render(&document, 80);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut known = BTreeSet::new();
        for sentence in words.split(". ").filter(|sentence| sentence.split(' ').count() >= WORDS) {
            assert!(known.insert(sentence), "{name} says twice \"{sentence}\":\n{text}");
        }
    }
}

/// The answer comes right after the line on what was measured.
#[test]
fn the_answer_is_within_the_first_lines() {
    for (name, document) in all() {
        let text = render(&document, 80);
        let answer = isobench_result::answer::brief(&document).answer;
        let first: Vec<&str> = answer[0].split_whitespace().take(4).collect();
        let start: Vec<&str> = text.lines().take(if name == "experiment" { 12 } else { 6 }).collect();
        let start = start.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(start.contains(&first.join(" ")), "{name}:\n{text}");
    }
}

#[test]
fn a_terminal_without_unicode_gets_plain_marks() {
    let (_, document) = all().into_iter().find(|(name, _)| name == "checked").unwrap();
    let text = Terminal { unicode: false, ..Terminal::of_width(80) }.render(&document).to_string();
    assert!(!text.contains(['✗', '✓']), "{text}");
    assert!(text.contains("\n  x   read committed") && text.contains("\n  ok  serializable"), "{text}");
}
