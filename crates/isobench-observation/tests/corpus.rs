//! Every statement of the corpus, and what becomes of it on PostgreSQL 15 and 18.

mod support;

use std::fmt::Write;

use isobench_testkit::golden::expect;

/// A golden file of all statements for a server's version.
fn corpus(version: u32, file: &str) {
    let catalog = support::catalog(version);
    let mut text = String::new();
    let mut last = String::new();
    for (section, statement) in support::statements() {
        if section != last {
            writeln!(text, "===== {section}\n").unwrap();
            last = section;
        }
        let seen = support::see(&statement, &catalog);
        writeln!(text, "{statement}\n{}", support::describe(&seen)).unwrap();
    }
    expect(support::corpus().join(file), &text);
}

#[test]
fn statements_on_postgresql_15() {
    corpus(150_018, "15.txt");
}

#[test]
fn statements_on_postgresql_18() {
    corpus(180_004, "18.txt");
}
