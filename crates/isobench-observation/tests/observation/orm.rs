//! The SQL of eight object-relational mappers: the share of it that is seen, and that what is shown is
//! what the tables hold.
//!
//! Each folder of `tests/orm` has the tables of an application (`schema.sql`) and the statements that
//! the mapper sends (`statements.sql`): before each the call, and after it the values of its
//! parameters, `-- $ 1, 'a'`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::servers::{compare, fetched, installed, load};
use crate::support;
use isobench_observation::Plans;
use isobench_pgserver::Server;
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_sql::Catalog;
use isobench_testkit::golden::expect;

/// The least share of statements that are seen wholly with variables or values, percent.
const LEAST: usize = 89;
/// The least share of those as written, with parameters, that are if each OFFSET is 0, percent.
const LEAST_IF_WHOLE: usize = 90;

/// Lets all sequences give the same numbers again.
const SEQUENCES: &str = "SELECT setval(oid::regclass, 100) FROM pg_class WHERE relkind = 'S'";

/// A statement of a mapper.
struct Sent {
    call: String,
    /// With `$1`, `$2`, …
    text: String,
    values: Vec<String>,
}

impl Sent {
    /// A script with variables in place of the parameters, of which `\\set` gives numbers their values.
    fn with_variables(&self) -> String {
        let mut text = self.text.clone();
        let mut set = String::new();
        for (number, value) in self.values.iter().enumerate().map(|(place, value)| (place + 1, value)).rev() {
            text = text.replace(&format!("${number}"), &format!(":p{number}"));
            if value.parse::<i64>().is_ok() {
                writeln!(set, "\\set p{number} {value}").unwrap();
            }
        }
        format!("{set}{text}")
    }

    /// The statement with its values in place of the parameters.
    fn with_values(&self) -> String {
        let mut text = self.text.clone();
        for (number, value) in self.values.iter().enumerate().map(|(place, value)| (place + 1, value)).rev() {
            text = text.replace(&format!("${number}"), value);
        }
        text
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/orm")
}

fn mappers() -> Vec<String> {
    let folders =
        std::fs::read_dir(folder()).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn statements(mapper: &str) -> Vec<Sent> {
    let text = std::fs::read_to_string(folder().join(mapper).join("statements.sql")).unwrap();
    let mut found: Vec<Sent> = Vec::new();
    let mut call = String::new();
    for line in text.lines() {
        if let Some(values) = line.strip_prefix("-- $ ") {
            found.last_mut().unwrap().values = split(values);
        } else if let Some(title) = line.strip_prefix("-- ") {
            title.clone_into(&mut call);
        } else {
            found.push(Sent { call: call.clone(), text: line.to_owned(), values: Vec::new() });
        }
    }
    found
}

/// Values between commas that aren't in quotes.
fn split(values: &str) -> Vec<String> {
    let (mut found, mut quoted) = (vec![String::new()], false);
    for char in values.chars() {
        quoted ^= char == '\'';
        if char == ',' && !quoted {
            found.push(String::new());
        } else {
            found.last_mut().unwrap().push(char);
        }
    }
    found.into_iter().map(|value| value.trim().to_owned()).collect()
}

/// A connection to a database with a mapper's tables.
fn prepared(server: &Server, mapper: &str) -> Connection {
    let options = |database: &str| {
        let host = Host::unix(server.socket_dir(), server.port());
        ConnectOptions::new(host, server.user(), database)
    };
    Connection::open(&options(server.database()))
        .unwrap()
        .execute(&format!("CREATE DATABASE {mapper}"))
        .unwrap();
    let mut connection = Connection::open(&options(mapper)).unwrap();
    connection.execute(&std::fs::read_to_string(folder().join(mapper).join("schema.sql")).unwrap()).unwrap();
    connection.execute("VACUUM ANALYZE").unwrap();
    connection
}

/// What isn't seen of a statement, in words, empty if it is seen wholly; and whether it is if its OFFSET
/// is 0.
fn dark(connection: &mut Connection, catalog: &Catalog, text: &str) -> (Vec<String>, bool) {
    let seen = support::see(text, catalog);
    let open = seen.observed.statements.iter().filter(|one| !one.dark.is_empty());
    let unless_skipping = open.clone().all(|one| one.wholly_if().is_some());
    let mut dark: Vec<String> =
        seen.observed.statements.iter().flat_map(|one| &one.dark).map(ToString::to_string).collect();
    let mut query =
        |sql: &str| connection.query(sql).map(|result| result.rows).map_err(|error| error.to_string());
    let mut plans = Plans::start(&mut query).unwrap();
    let mut changed = Vec::new();
    for forms in &seen.observed.forms {
        changed.extend(plans.compare(forms, &|_| None).unwrap().map(|reason| reason.to_string()));
    }
    let planned = dark.len();
    dark.extend(changed);
    plans.end().unwrap();
    let unless_skipping = unless_skipping && dark.len() == planned;
    (dark, unless_skipping)
}

fn share(of: &mut String, what: &str, seen: usize, all: usize) {
    writeln!(of, "{what}: {seen} of {all} ({} %)", seen * 100 / all).unwrap();
}

#[test]
fn most_statements_of_mappers_are_seen_wholly() {
    let Some(server) = installed("most_statements_of_mappers_are_seen_wholly") else { return };
    let (mut text, mut total) = (String::new(), [0; 5]);
    for mapper in mappers() {
        let mut connection = prepared(&server, &mapper);
        let catalog = load(&mut connection);
        let (mut list, mut own) = (String::new(), [0; 5]);
        for sent in statements(&mapper) {
            let (written, unless_skipping) = dark(&mut connection, &catalog, &sent.text);
            let (valued, _) = dark(&mut connection, &catalog, &sent.with_values());
            let (variable, _) = dark(&mut connection, &catalog, &sent.with_variables());
            let counted = [true, written.is_empty(), variable.is_empty(), valued.is_empty(), unless_skipping];
            for (place, one) in counted.into_iter().enumerate() {
                own[place] += usize::from(one);
            }
            if !written.is_empty() {
                writeln!(list, "  {}: {}", sent.call, written.join("; ")).unwrap();
                let both = [("variables", &variable), ("values", &valued)];
                for (what, _) in both.into_iter().filter(|(_, dark)| dark.is_empty()) {
                    writeln!(list, "    with its {what}: all").unwrap();
                }
            }
        }
        share(&mut text, &mapper, own[1], own[0]);
        share(&mut text, &format!("{mapper}, if each OFFSET is 0"), own[4], own[0]);
        share(&mut text, &format!("{mapper}, with variables"), own[2], own[0]);
        share(&mut text, &format!("{mapper}, with values"), own[3], own[0]);
        text.push_str(&list);
        text.push('\n');
        total = std::array::from_fn(|place| total[place] + own[place]);
    }
    share(&mut text, "all", total[1], total[0]);
    share(&mut text, "all, if each OFFSET is 0", total[4], total[0]);
    share(&mut text, "all, with variables", total[2], total[0]);
    share(&mut text, "all, with values", total[3], total[0]);
    expect(folder().join("seen.txt"), &text);
    assert!(total[0] >= 300, "{} statements", total[0]);
    assert!(total[2].min(total[3]) * 100 >= LEAST * total[0], "{text}");
    assert!(total[4] * 100 >= LEAST_IF_WHOLE * total[0], "{text}");
}

#[test]
fn what_is_sent_of_mappers_is_right() {
    let Some(server) = installed("what_is_sent_of_mappers_is_right") else { return };
    compare_all(&server);
}

#[test]
fn what_is_sent_of_mappers_to_version_18_is_right() {
    let Some(server) = fetched("what_is_sent_of_mappers_to_version_18_is_right", "18") else { return };
    compare_all(&server);
}

fn compare_all(server: &Server) {
    let mut failures = Vec::new();
    for mapper in mappers() {
        let mut connection = prepared(server, &mapper);
        let catalog = load(&mut connection);
        for sent in statements(&mapper) {
            let seen = support::see(&sent.with_values(), &catalog);
            if let Err(why) = compare(&mut connection, &catalog, &seen, SEQUENCES) {
                failures.push(format!("{mapper}, {}\n  {}\n  {why}", sent.call, seen.sql.parameterized));
            }
            connection.execute("BEGIN").unwrap();
            if let Err(error) = connection.query(&sent.with_values()) {
                failures.push(format!("{mapper}, {}: {error}", sent.call));
            }
            connection.execute("ROLLBACK").unwrap();
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
