//! The golden file `rows.txt`: command lines and their outcomes, by version.
//!
//! ```text
//! $ NAME=value word 'a word'
//! 15-16 STATUS OUTPUT…
//! 17-19 STATUS OUTPUT…
//! ```

use std::fmt::Write as _;

use isobench_testkit::golden::expect;
use isobench_testkit::installed::{pgbenches, skip};

use crate::outcome::Line;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/usage/rows.txt");

fn lines() -> Vec<String> {
    let text = std::fs::read_to_string(PATH).expect("the golden file is readable");
    text.lines()
        .filter_map(|line| line.strip_prefix("$ ").or((line == "$").then_some("")))
        .map(str::to_owned)
        .collect()
}

#[test]
fn golden() {
    let mut text = String::new();
    for row in lines() {
        writeln!(text, "{}", format!("$ {row}").trim_end()).expect("writes");
        let line = Line::new(&row);
        let mut from = 15;
        for version in 15..=19 {
            let outcome = line.ours(version);
            if version == 19 || line.ours(version + 1) != outcome {
                let versions =
                    if from == version { version.to_string() } else { format!("{from}-{version}") };
                write!(text, "{versions} {outcome}").expect("writes");
                from = version + 1;
            }
        }
    }
    expect(PATH, &text);
}

#[test]
fn rows_are_pgbench_s() {
    let found = pgbenches();
    if found.is_empty() {
        return skip("rows_are_pgbench_s", "there is no pgbench to compare with");
    }
    let mut different = String::new();
    for row in lines() {
        let line = Line::new(&row);
        for pgbench in &found {
            let (ours, theirs) = (line.ours(pgbench.major), line.theirs(pgbench));
            if ours != theirs {
                writeln!(different, "$ {row} ({})\ntheirs: {theirs}ours:   {ours}", pgbench.major)
                    .expect("writes");
            }
        }
    }
    assert!(different.is_empty(), "{different}");
}

#[test]
fn help_and_version_are_pgbench_s() {
    let found = pgbenches();
    if found.is_empty() {
        return skip("help_and_version_are_pgbench_s", "there is no pgbench to compare with");
    }
    for pgbench in &found {
        for words in ["--help", "-?", "--help -c x"] {
            let line = Line::new(words);
            let (ours, theirs) = (line.ours(pgbench.major), line.theirs(pgbench));
            // Our own option, and the address for bug reports.
            let own = ours.find("isobench options:").expect("a section of our own");
            let end = ours.find("PostgreSQL home page").expect("the last line");
            let reports = theirs.find("Report bugs").expect("the last line but one");
            let last = theirs.find("PostgreSQL home page").expect("the last line");
            assert_eq!(ours[..own], theirs[..reports], "{words} of {}", pgbench.major);
            assert_eq!(ours[end..], theirs[last..]);
        }
        for words in ["--version", "-V", "-V x"] {
            let line = Line::new(words);
            let (ours, theirs) = (line.ours(pgbench.major), line.theirs(pgbench));
            let number = |text: &str| text.split(['.', ' ']).nth(3).map(str::to_owned);
            assert_eq!(number(&ours), number(&theirs), "{ours} {theirs}");
            assert!(ours.starts_with("0 pgbench (PostgreSQL) ") && ours.contains(" (isobench "), "{ours}");
        }
    }
}
