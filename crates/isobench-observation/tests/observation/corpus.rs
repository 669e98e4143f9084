//! Every statement of the corpus, and what becomes of it on PostgreSQL 15 and 18.

use std::fmt::Write;

use crate::support::{self, Seen};
use isobench_observation::observe;
use isobench_script::{Symbols, parse};
use isobench_sql::Catalog;
use isobench_testkit::golden::expect;
use proptest::prelude::*;

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

/// What several scripts do together is known to each of them.
#[test]
fn scripts_are_looked_at_together() {
    let mut catalog = support::catalog(150_018);
    let dark = |others: &str, catalog: &Catalog| {
        let mut symbols = Symbols::new();
        let texts = ["SELECT v FROM t WHERE id = 1; INSERT INTO parted VALUES (5, 1, 1);", others];
        let mut scripts = texts.map(|text| parse("test.sql", text, &mut symbols).unwrap());
        let observed = observe(&mut scripts, catalog);
        let dark = observed.statements[..2].iter().flat_map(|statement| &statement.dark);
        let open =
            observed.tables.iter().filter(|table| !table.closed).map(|table| format!("open: {}", table.name));
        dark.map(ToString::to_string).chain(open).collect::<Vec<_>>().join("; ")
    };
    let names = |by: &str| {
        let one = format!("not observed: {by} may change what names and values mean");
        format!("{one}; {one}")
    };
    let savepoint = "rows of parted that it writes: INSERT into a partitioned table doesn't show xmin, and the scripts \
        set savepoints";
    let prepared =
        "not observed: a script has PREPARE TRANSACTION, after which it isn't known what is committed";
    let prepared = format!("{prepared}; {prepared}");
    let changed = "table t isn't observed: a script creates, alters or drops it; open: parted";
    for (others, expected) in [
        ("SELECT 1;", ""),
        ("SET LOCAL work_mem = 4; SET CONSTRAINTS ALL DEFERRED; BEGIN; COMMIT;", ""),
        ("SET search_path = app;", &names("SET search_path")),
        ("set local time zone 'UTC'; SET DateStyle = 'ISO, DMY'; SET search_path = public;", ""),
        ("SELECT set_config('TimeZone', 'UTC', false), set_config('lock_timeout', '1s', true);", ""),
        ("SET application_name = 'app'; SET statement_timeout TO 5; RESET TimeZone; SET NAMES 'UTF8';", ""),
        ("SET DateStyle = 'German';", &names("SET DateStyle")),
        ("SET SESSION search_path TO public, app;", &names("SET SESSION search_path")),
        ("SET client_encoding = 'LATIN1';", &names("SET client_encoding")),
        ("SELECT set_config('app.' || 'x', 'y', true);", &names("set_config()")),
        ("SELECT set_config(name, setting, true) FROM pg_settings;", &names("set_config()")),
        ("SELECT set_config('search_path', 'app', true);", &names("set_config()")),
        ("DISCARD ALL;", &names("DISCARD ALL")),
        ("SET search_path = app_:x;", &names("SET")),
        ("BEGIN\\; SET search_path = app_:x;", &names("search_path")),
        ("BEGIN; PREPARE TRANSACTION 'x';", &prepared),
        ("SAVEPOINT a;", savepoint),
        ("CREATE TEMP TABLE t (id int);", changed),
        ("SELECT bump(1);", "open: t; open: parted"),
        ("UPDATE audited SET v = 1;", "open: t; open: parted; open: audited"),
        ("UPDATE t SET id = 5;", "open: t"),
        ("DELETE FROM t_:x;", "open: t; open: parted"),
    ] {
        assert_eq!(dark(others, &catalog), expected, "{others}");
    }
    catalog.search_path = vec!["public".to_owned(), "pg_catalog".to_owned()];
    let unusual = "not observed: search_path has an unusual value";
    assert_eq!(dark("SELECT 1;", &catalog), format!("{unusual}; {unusual}"));
    catalog.standard_strings = false;
    let unusual = "not observed: standard_conforming_strings has an unusual value";
    assert_eq!(dark("SELECT 1;", &catalog), format!("{unusual}; {unusual}"));
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

/// What the parser doesn't know yet is sent as written, and may do anything that its words say.
#[test]
fn statements_of_postgresql_19_are_dark() {
    let catalog = support::catalog(190_000);
    for (statement, writes) in [
        ("REPACK t;", true),
        ("REPACK (CONCURRENTLY) t USING INDEX t_pkey;", true),
        ("UPDATE t FOR PORTION OF during FROM 1 TO 5 SET v = 2 WHERE id = 1;", true),
        ("DELETE FROM t FOR PORTION OF during FROM 1 TO 5 WHERE id = 1;", true),
        ("DELETE FROM t FOR PORTION OF during (int4range(1, 5)) WHERE id = 1;", true),
        ("INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO SELECT RETURNING v;", true),
        ("INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO SELECT FOR UPDATE RETURNING v;", true),
        (
            "SELECT * FROM GRAPH_TABLE (shop MATCH (a IS customer)-[b IS bought]->(c) COLUMNS (a.name));",
            false,
        ),
        ("SELECT v, count(*) FROM t GROUP BY ALL;", false),
    ] {
        // Of the table some other statement shows rows.
        let seen = support::see(&format!("{statement}\nSELECT v FROM t WHERE id = 1;"), &catalog);
        let described = &seen.observed.statements[0];
        assert!(!described.rewritten && !described.dark.is_empty(), "{described:?}");
        let unseen = seen.sql.observed.iter().any(|observed| !observed.unseen.is_empty());
        assert_eq!(unseen, writes, "{statement}");
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
