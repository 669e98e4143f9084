//! Every statement of the corpus, and what becomes of it on PostgreSQL 15 and 18.

mod support;

use std::fmt::Write;

use isobench_observation::Catalog;
use isobench_testkit::golden::expect;
use proptest::prelude::*;
use support::Seen;

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

/// True if `written` is `sent` without some of its characters.
fn is_within(written: &str, sent: &str) -> bool {
    let mut rest = sent.chars();
    written.chars().all(|wanted| rest.any(|found| found == wanted))
}

/// Nothing of the author's is lost, and no variable added.
fn keeps_the_text(seen: &Seen) -> bool {
    is_within(&seen.original.parameterized, &seen.sql.parameterized)
        && seen.original.params == seen.sql.params
        && seen.original.statements == seen.sql.statements
}

/// What is known of a command apart from its text.
fn facts(text: &str, catalog: &Catalog) -> String {
    let described = support::describe(&support::see(text, catalog));
    let known = |line: &&str| !line.starts_with('>') && !line.contains('"');
    described.lines().filter(known).collect::<Vec<_>>().join("\n")
}

/// A statement with other blanks, comments and cases, where SQL allows it.
fn laid_out(statement: &str, choices: &[u8]) -> String {
    let mut text = String::new();
    let mut quote = None;
    let mut choices = choices.iter().cycle();
    for char in statement.chars() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (None, '\'' | '"') => quote = Some(char),
            _ => {}
        }
        if quote.is_none() && char == ' ' {
            text.push_str(match choices.next().unwrap() % 6 {
                0 => "\n",
                1 => " /* , FROM \"t\" ' */ ",
                2 => " -- WHERE ( é\n",
                3 => "\t ",
                _ => " ",
            });
        } else {
            text.push(char);
        }
    }
    text
}

/// The statements whose layout can be changed without tokenizing them.
fn plain_statements() -> Vec<String> {
    let odd = ["--", "$", "\\", "/*", "E'", "U&", "\n"];
    let statements = support::statements().into_iter().map(|(_, statement)| statement);
    statements.filter(|statement| !odd.iter().any(|odd| statement.contains(odd))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Blanks, comments and line breaks change nothing.
    #[test]
    fn layout_does_not_matter(which in any::<prop::sample::Index>(), choices in prop::collection::vec(any::<u8>(), 8)) {
        let statements = plain_statements();
        let catalog = support::catalog(180_004);
        let statement = which.get(&statements);
        let other = laid_out(statement, &choices);
        prop_assert!(keeps_the_text(&support::see(&other, &catalog)), "{}", other);
        prop_assert_eq!(facts(statement, &catalog), facts(&other, &catalog), "{}", other);
    }

    /// Words in any order neither crash it, nor lose anything.
    #[test]
    fn any_words_keep_their_text(words in prop::collection::vec(prop::sample::select(WORDS), 1..14)) {
        let text = format!("SELECT {}", words.join(" "));
        prop_assert!(keeps_the_text(&support::see(&text, &support::catalog(180_004))), "{}", text);
    }
}

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "t",
    "s",
    "id",
    "v",
    "WHERE",
    "=",
    "1",
    ":v",
    ",",
    "(",
    ")",
    "*",
    "count(*)",
    "JOIN",
    "ON",
    "LEFT",
    "AS",
    "x",
    "UPDATE",
    "SET",
    "RETURNING",
    "WITH",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "FOR UPDATE OF",
    "UNION",
    "'é",
    "'",
    "\"",
    "--",
    "/*",
    "*/",
    "$$",
    ".",
    "old",
    "INSERT INTO",
    "VALUES",
    "ON CONFLICT DO NOTHING",
    "DELETE FROM",
    "IS DISTINCT FROM",
    "NO KEY",
    "DISTINCT",
    "\n",
    "LATERAL",
    "t.id",
    "true",
    "::int",
    "[",
    "]",
];
