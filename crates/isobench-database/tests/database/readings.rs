//! What servers of versions 14 to 18 say of statements (tests/readings/statements.sql) is the same
//! (tests/readings/bound.txt), and nothing of asking them stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use isobench_database::Asked;
use isobench_pgserver::{Server, ServerError, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_sql::{
    BUILTINS, Bound, BoundRelation, Builtins, Output, Value, Wait, is_reserved, read_statements,
};
use isobench_testkit::golden::expect;
use isobench_testkit::installed::{postgresql_programs, skip};

const TABLES: &str = "
CREATE TABLE doctors (id int PRIMARY KEY, shift int, on_call bool DEFAULT false);
CREATE TABLE log (doctor int, note text);
CREATE TABLE parts (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts DEFAULT;
CREATE VIEW on_call_doctors AS SELECT * FROM doctors WHERE on_call;
CREATE SEQUENCE numbers;
CREATE FUNCTION on_call_ids() RETURNS SETOF int LANGUAGE sql AS 'SELECT id FROM doctors WHERE on_call';
CREATE FUNCTION on_call_count() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM doctors WHERE on_call';
CREATE FUNCTION on_call_of(doctors) RETURNS bool LANGUAGE sql AS 'SELECT on_call FROM doctors WHERE id = $1.id';
CREATE FUNCTION with_other(int, int) RETURNS bool LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM doctors WHERE id = $1 + $2)';
CREATE OPERATOR ### (LEFTARG = int, RIGHTARG = int, FUNCTION = with_other);
CREATE AGGREGATE sum_of(int) (SFUNC = int4pl, STYPE = int);
CREATE DOMAIN small AS int CHECK (VALUE < 100);";

/// The server of this version, or the installed one.
fn server(test: &str, major: Option<&str>) -> Option<(Server, Connection)> {
    let installed = postgresql_programs().filter(|folder| folder.join("postgres").exists());
    let bin = installed.filter(|_| major.is_none());
    if bin.is_none() && major.is_none() {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    }
    let options =
        ServerOptions { bin, version: major.map(|major| major.parse().unwrap()), ..ServerOptions::default() };
    let server = match Server::start(&options, &mut |_| {}) {
        Ok(server) => server,
        Err(ServerError::Fetch { message, .. }) => {
            skip(test, &message);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let connection = Connection::open(&options).unwrap();
    Some((server, connection))
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readings").join(name)
}

/// The names of what has OIDs from a query.
fn names(connection: &mut Connection, query: &str) -> BTreeMap<u32, String> {
    let rows = connection.query(query).unwrap().rows;
    let text = |value: &Option<String>| value.clone().unwrap();
    rows.iter().map(|row| (text(&row[0]).parse().unwrap(), text(&row[1]))).collect()
}

fn value_as_text(value: &Value) -> String {
    match value {
        Value::Parameter(number) => format!("${number}"),
        Value::Constant { of_type: 20 | 21 | 23, bytes } => {
            i64::from_le_bytes(bytes.as_slice().try_into().unwrap()).to_string()
        }
        Value::Constant { of_type: 25, bytes } => format!("'{}'", String::from_utf8_lossy(&bytes[4..])),
        // Another one in each version.
        Value::Constant { of_type: 2205, .. } => "a relation".to_owned(),
        Value::Constant { of_type, bytes } => format!("{bytes:?} of type {of_type}"),
        Value::WithoutBlanks(value) => format!("{} without blanks", value_as_text(value)),
        Value::Computed { text, parameters } => format!("{text} of {parameters:?}"),
    }
}

fn relation_as_text(relation: &BoundRelation, name: &str, columns: &BTreeMap<(u32, i32), String>) -> String {
    let column = |number: &i32| match number {
        0 => "*".to_owned(),
        number => columns.get(&(relation.oid, *number)).cloned().unwrap_or_else(|| number.to_string()),
    };
    let list = |letter: &str, numbers: &BTreeSet<i32>| -> String {
        if numbers.is_empty() {
            return String::new();
        }
        format!(" {letter}({})", numbers.iter().map(column).collect::<Vec<_>>().join(" "))
    };
    let values = |word: &str, values: &BTreeMap<i32, Value>| -> String {
        let each =
            values.iter().map(|(number, value)| format!("{} {}", column(number), value_as_text(value)));
        format!(" {word}({})", each.collect::<Vec<_>>().join(", "))
    };
    let found = &relation.found;
    let mut text = name.to_owned();
    for (is_so, word) in [
        (relation.merges, " merge"),
        (relation.inserts, " insert"),
        (relation.updates, " update"),
        (relation.deletes, " delete"),
        (relation.skips_conflicts, " or nothing"),
        (relation.arbiter_is_partial, " by a partial index"),
    ] {
        text.push_str(if is_so { word } else { "" });
    }
    text.push_str(&list("r", &relation.read));
    text.push_str(&list("i", &relation.inserted));
    text.push_str(&list("u", &relation.updated));
    if !found.equal.is_empty() {
        text.push_str(&values("=", &found.equal));
    }
    text.push_str(&list("?", &found.tested));
    text.push_str(&list("with others", &found.joined));
    text.push_str(&list("order", &found.ordered));
    text.push_str(if found.exactly { " exactly" } else { "" });
    text.push_str(if found.nullable { " or none" } else { "" });
    if !found.as_text.is_empty() {
        text.push_str(&values("text", &found.as_text));
    }
    if !relation.set.is_empty() {
        text.push_str(&values("set", &relation.set));
    }
    for (number, times) in &relation.kept_up {
        write!(text, " {} of itself, {times} times", column(number)).unwrap();
    }
    for (number, raised) in &relation.raised {
        write!(text, " {} raised from {raised:?}", column(number)).unwrap();
    }
    relation.rows.iter().for_each(|row| text.push_str(&values("row", row)));
    text.push_str(if relation.lists_rows { " listed" } else { "" });
    for lock in &relation.locks {
        let wait = match lock.wait {
            Wait::Blocks => "",
            Wait::Skips => " SKIP LOCKED",
            Wait::Fails => " NOWAIT",
        };
        write!(text, " {:?}{wait}", lock.strength).unwrap();
    }
    text
}

/// The columns of a statement's result, how often it mentions columns, and its shape.
fn result_as_text(
    bound: &Bound,
    relations: &BTreeMap<u32, String>,
    columns: &BTreeMap<(u32, i32), String>,
) -> Vec<String> {
    let name = |oid: u32, number: i32| {
        let column = columns.get(&(oid, number)).cloned().unwrap_or_else(|| number.to_string());
        format!("{}.{column}", relations[&oid])
    };
    let output = |output: &Output| {
        let column = output.column.map(|(place, number)| name(bound.relations[place].oid, number));
        let call = output.call.as_ref().map(|(function, values)| {
            let values: Vec<String> = values.iter().map(value_as_text).collect();
            format!("function {function} of {}", values.join(", "))
        });
        match column.or(call) {
            Some(is) => format!("{} is {is}", output.name),
            None => output.name.clone(),
        }
    };
    let outputs: Vec<String> = bound.outputs.iter().map(output).collect();
    let mentions =
        bound.mentions.iter().map(|((oid, number), times)| format!("{} {times}", name(*oid, *number)));
    let mentions: Vec<String> = mentions.collect();
    let shape = bound.shape;
    let shape = [
        (shape.shows_rows, "shows rows"),
        (shape.any_values, "any values"),
        (shape.ordered, "ordered"),
        (shape.limited, "limited"),
        (shape.one_row, "one row"),
    ];
    let shape: Vec<&str> = shape.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
    [("result", outputs.join(", ")), ("mentions", mentions.join(", ")), ("shape", shape.join(", "))]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(word, text)| format!("{word}: {text}"))
        .collect()
}

/// What a server says of all statements that it knows.
fn said(connection: &mut Connection) -> BTreeMap<String, String> {
    connection.execute(TABLES).unwrap();
    let own = "oid >= 16384";
    let relations = names(connection, &format!("SELECT oid, relname FROM pg_class WHERE {own}"));
    let functions = names(connection, &format!("SELECT oid, proname FROM pg_proc WHERE {own}"));
    let operators = names(connection, &format!("SELECT oid, oprname FROM pg_operator WHERE {own}"));
    let types = names(connection, &format!("SELECT oid, typname FROM pg_type WHERE {own}"));
    let rows = connection
        .query("SELECT attrelid, attnum, attname FROM pg_attribute WHERE attrelid >= 16384")
        .unwrap();
    let columns: BTreeMap<(u32, i32), String> = rows
        .rows
        .into_iter()
        .map(|row| {
            let text = |at: usize| row[at].clone().unwrap();
            ((text(0).parse().unwrap(), text(1).parse().unwrap()), text(2))
        })
        .collect();
    let major: u32 =
        connection.parameter("server_version").unwrap().split('.').next().unwrap().parse().unwrap();
    let mut builtins = Builtins::default();
    for row in connection.query(BUILTINS).unwrap().rows {
        let oid = row[1].as_deref().unwrap().parse().unwrap();
        match &row[2] {
            None => {
                builtins.equalities.insert(oid);
            }
            Some(name) if row[0].as_deref() == Some("()") => {
                builtins.immutable.insert(oid, name.clone());
            }
            Some(name) => {
                builtins.types.insert(oid, name.clone());
            }
        }
    }
    let as_text = |bound: &Bound| {
        let mut text = String::new();
        let mut lines: Vec<String> =
            bound.relations.iter().map(|one| relation_as_text(one, &relations[&one.oid], &columns)).collect();
        lines.sort();
        for (word, found, known) in [
            ("calls", &bound.functions, &functions),
            ("operator", &bound.operators, &operators),
            ("type", &bound.types, &types),
        ] {
            lines.extend(found.iter().filter_map(|oid| known.get(oid)).map(|name| format!("{word} {name}")));
        }
        if lines.is_empty() {
            lines.push("nothing".to_owned());
        }
        lines.extend(result_as_text(bound, &relations, &columns));
        for line in lines {
            writeln!(text, "    {line}").unwrap();
        }
        text
    };
    let statements = std::fs::read_to_string(corpus("statements.sql")).unwrap();
    let known = statements.lines().filter_map(|statement| match statement.split_once(' ') {
        Some((number, text)) if number.parse::<u32>().is_ok() => {
            (number.parse::<u32>().unwrap() <= major).then_some((statement, text))
        }
        _ => Some((statement, statement)),
    });
    let (statements, texts): (Vec<&str>, Vec<&str>) = known.unzip();
    let mut found = BTreeMap::new();
    for (statement, read) in
        statements.into_iter().zip(read_statements(&texts, &builtins, &mut Asked(connection)).unwrap())
    {
        let said = match read {
            Ok(bound) => as_text(&bound),
            Err(reading) => format!("    {reading}\n"),
        };
        found.insert(statement.to_owned(), said);
    }
    found
}

/// All objects in the catalogs.
fn objects(connection: &mut Connection) -> Option<String> {
    let count = "SELECT concat_ws(' ', (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_class), \
        (SELECT count(*) FROM pg_namespace), (SELECT count(*) FROM pg_depend))";
    connection.value(count).unwrap()
}

#[test]
fn nothing_stays_and_no_statement_is_executed() {
    let Some((_server, mut connection)) = server("nothing_stays_and_no_statement_is_executed", None) else {
        return;
    };
    connection.execute(TABLES).unwrap();
    connection.execute("INSERT INTO doctors VALUES (1, 1, true)").unwrap();
    let before = objects(&mut connection);
    let numbers = connection.value("SELECT nextval('numbers')").unwrap();
    for statement in [
        "DELETE FROM doctors",
        "SELECT nextval('numbers')",
        "SELECT 1; DROP TABLE doctors",
        "SELECT 1\n; END; DROP TABLE doctors; --",
        "SELECT 1; END",
        "DROP TABLE doctors",
        "COMMIT",
        "SELECT 'a\\'; END; DROP TABLE doctors; --'",
        "",
    ] {
        for strings in ["on", "off"] {
            connection.execute(&format!("SET standard_conforming_strings = {strings}")).unwrap();
            let asked = [statement, "SELECT 1", statement];
            let read = read_statements(&asked, &Builtins::default(), &mut Asked(&mut connection)).unwrap();
            assert!(read[1].is_ok(), "{statement}: {read:?}");
        }
    }
    connection.execute("SET standard_conforming_strings = on").unwrap();
    assert_eq!(connection.value("SELECT count(*) FROM doctors").unwrap().as_deref(), Some("1"));
    assert_eq!(objects(&mut connection), before);
    let next = connection.value("SELECT nextval('numbers')").unwrap();
    assert_eq!((numbers.as_deref(), next.as_deref()), (Some("1"), Some("2")));
    // A session that can't create anything has the reason.
    connection.execute("SET default_transaction_read_only = on").unwrap();
    let read = read_statements(&["SELECT 1"], &Builtins::default(), &mut Asked(&mut connection)).unwrap();
    assert!(read[0].as_ref().unwrap_err().to_string().contains("read-only"));
}

/// More than what systems keep for a receiver, in both directions.
#[test]
fn thousands_of_statements_are_read_at_once() {
    let Some((_server, mut connection)) = server("thousands_of_statements_are_read_at_once", None) else {
        return;
    };
    connection.execute(TABLES).unwrap();
    let long = "x".repeat(3000);
    let texts: Vec<String> = (0..1000)
        .map(|number| format!("SELECT shift FROM doctors WHERE id = {number} AND '{long}' <> 'a'"))
        .chain([String::from("SELECT absent"), String::from("SELECT 1")])
        .collect();
    let asked: Vec<&str> = texts.iter().map(String::as_str).collect();
    let read = read_statements(&asked, &Builtins::default(), &mut Asked(&mut connection)).unwrap();
    let refused: Vec<usize> = (0..read.len()).filter(|at| read[*at].is_err()).collect();
    assert_eq!((read.len(), refused), (1002, vec![1000]));
    assert_eq!(
        connection.value("SELECT count(*) FROM pg_proc WHERE proname = 'isobench_reads'").unwrap().as_deref(),
        Some("0")
    );
}

/// The golden file is that of version 18, which knows all statements.
fn same_in_version(test: &str, major: Option<&str>) {
    let Some((_server, mut connection)) = server(test, major) else { return };
    let found = said(&mut connection);
    let statements = std::fs::read_to_string(corpus("statements.sql")).unwrap();
    let path = corpus("bound.txt");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let head = known.split("\n\n").next().unwrap_or_default();
    let mut text = format!("{head}\n\n");
    let mut of_others: BTreeMap<&str, &str> = BTreeMap::new();
    for part in known.split("\n\n").skip(1) {
        let (statement, said) = part.split_once('\n').unwrap_or((part, ""));
        of_others.insert(statement, said);
    }
    for statement in statements.lines() {
        // What this version doesn't know is as the file has it.
        let said = found.get(statement).cloned();
        let said =
            said.unwrap_or_else(|| format!("{}\n", of_others.get(statement).copied().unwrap_or_default()));
        write!(text, "{statement}\n{}\n\n", said.trim_end()).unwrap();
    }
    expect(path, &format!("{}\n", text.trim_end()));
}

#[test]
fn the_installed_server_reads_statements() {
    same_in_version("the_installed_server_reads_statements", None);
}

#[test]
fn version_14_reads_them_alike() {
    same_in_version("version_14_reads_them_alike", Some("14"));
}

#[test]
fn version_16_reads_them_alike() {
    same_in_version("version_16_reads_them_alike", Some("16"));
}

#[test]
fn version_17_reads_them_alike() {
    same_in_version("version_17_reads_them_alike", Some("17"));
}

#[test]
fn version_18_reads_them_alike() {
    same_in_version("version_18_reads_them_alike", Some("18"));
}

#[test]
fn the_servers_reserved_words_are_known() {
    let Some((_server, mut connection)) = server("the_servers_reserved_words_are_known", None) else {
        return;
    };
    let words = "SELECT string_agg(word, ' ') FROM pg_get_keywords() WHERE catcode IN ('R', 'T')";
    let words = connection.value(words).expect("keywords").expect("some");
    let unknown: Vec<&str> = words.split(' ').filter(|word| !is_reserved(word)).collect();
    assert!(unknown.is_empty() && words.len() > 100, "{unknown:?} of {words}");
    assert!(!is_reserved("balance"));
}
