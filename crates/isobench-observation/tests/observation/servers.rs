//! The corpus on real servers: the catalog is read as expected; what is sent has the author's
//! result, and shows what the tables hold.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{self, Seen};
use isobench_isolation::observed::{Elsewhere, Linked, NULL, ObservedTable, Predicate, ValueForm};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host, Rows};
use isobench_script::{
    ObservedRows, ObservedSearch, ObservedStatement, Piece, Referred, RowRole, SearchOperand, SearchValue,
    SearchWhen, Slot, Sql, TextPart,
};
use isobench_sql::{Catalog, Inheritance};
use isobench_testkit::golden::expect;
use isobench_testkit::installed::{postgresql_programs, skip};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A server of the installed PostgreSQL, or `None` after reporting why the test is skipped.
pub fn installed(test: &str) -> Option<Server> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let options = ServerOptions { bin: Some(bin), ..ServerOptions::default() };
    Some(Server::start(&options, &mut |_| {}).expect("the installed server starts"))
}

/// A fetched server, or `None` after reporting why the test is skipped.
pub fn fetched(test: &str, major: &str) -> Option<Server> {
    let version = Some(major.parse().unwrap());
    match Server::start(&ServerOptions { version, ..ServerOptions::default() }, &mut |_| {}) {
        Ok(server) => Some(server),
        Err(error) => {
            skip(test, &format!("PostgreSQL {major} can't be fetched: {error}"));
            None
        }
    }
}

/// A connection to a server with the corpus's tables.
fn prepared(server: &Server) -> Connection {
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let mut connection = Connection::open(&options).unwrap();
    connection.query(&std::fs::read_to_string(support::corpus().join("schema.sql")).unwrap()).unwrap();
    connection
}

pub fn load(connection: &mut Connection) -> Catalog {
    Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).unwrap()
}

#[test]
fn the_catalog_is_read() {
    let Some(server) = installed("the_catalog_is_read") else { return };
    let catalog = load(&mut prepared(&server));
    expect(support::corpus().join("catalog.txt"), &support::write(&catalog));
}

#[test]
fn the_catalog_of_version_18_is_the_same() {
    let Some(server) = fetched("the_catalog_of_version_18_is_the_same", "18") else { return };
    let catalog = load(&mut prepared(&server));
    assert!(catalog.version >= 180_000, "{}", catalog.version);
    expect(support::corpus().join("catalog.txt"), &support::write(&catalog));
}

/// A user's table may have the name of one of isobench's.
#[test]
fn tables_of_one_name_are_distinguished() {
    let Some(server) = installed("tables_of_one_name_are_distinguished") else { return };
    let mut connection = prepared(&server);
    connection
        .execute("create schema own; create table own.twice (id int); create table twice (id int); set search_path = own")
        .unwrap();
    let catalog = load(&mut connection);
    let named: Vec<String> = catalog.stored().filter(|name| name.contains("twice")).collect();
    assert_eq!(named, ["twice", "public.twice"]);
    assert_eq!(catalog.place_of("twice"), Some(("own", "twice")));
    assert_eq!(catalog.place_of("public.twice"), Some(("public", "twice")));
    assert_eq!(catalog.place_of("pgbench_accounts"), Some(("public", "pgbench_accounts")));
}

#[test]
fn what_is_sent_to_the_installed_server_is_right() {
    let Some(server) = installed("what_is_sent_to_the_installed_server_is_right") else { return };
    compare_all(&mut prepared(&server));
}

#[test]
fn what_is_sent_to_version_17_is_right() {
    let Some(server) = fetched("what_is_sent_to_version_17_is_right", "17") else { return };
    compare_all(&mut prepared(&server));
}

#[test]
fn what_is_sent_to_version_18_is_right() {
    let Some(server) = fetched("what_is_sent_to_version_18_is_right", "18") else { return };
    compare_all(&mut prepared(&server));
}

/// Random conditions: those that are evaluated find what the server finds.
#[test]
fn conditions_find_what_the_server_finds() {
    let Some(server) = installed("conditions_find_what_the_server_finds") else { return };
    let mut connection = prepared(&server);
    let catalog = load(&mut connection);
    let searched = Cell::new(0);
    let connection = RefCell::new(connection);
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&condition(), |condition| {
        let seen = support::see(&format!("SELECT id FROM t WHERE {condition}"), &catalog);
        let searches = seen.sql.observed.iter().map(|observed| observed.searches.len());
        searched.set(searched.get() + searches.sum::<usize>());
        compare(&mut connection.borrow_mut(), &catalog, &seen, "")
            .map_err(|why| TestCaseError::fail(format!("{condition}: {why}")))
    });
    checked.unwrap_or_else(|why| panic!("{why}"));
    assert!(searched.get() > 200, "only {} searches", searched.get());
}

/// Random joins: what is known of rows that they missed is so.
#[test]
fn joins_find_what_the_server_finds() {
    let Some(server) = installed("joins_find_what_the_server_finds") else { return };
    let mut connection = prepared(&server);
    let catalog = load(&mut connection);
    let searched = Cell::new(0);
    let connection = RefCell::new(connection);
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&join(), |statement| {
        let seen = support::see(&statement, &catalog);
        let searches = seen.sql.observed.iter().map(|observed| observed.searches.len());
        searched.set(searched.get() + searches.sum::<usize>());
        compare(&mut connection.borrow_mut(), &catalog, &seen, "")
            .map_err(|why| TestCaseError::fail(format!("{statement}: {why}")))
    });
    checked.unwrap_or_else(|why| panic!("{why}"));
    assert!(searched.get() > 100, "only {} searches", searched.get());
}

/// Random orders and limits: what is known of the rows beyond the last one is so.
#[test]
fn limits_find_what_the_server_finds() {
    let Some(server) = installed("limits_find_what_the_server_finds") else { return };
    let mut connection = prepared(&server);
    let catalog = load(&mut connection);
    let connection = RefCell::new(connection);
    let before = LIMITED.load(Ordering::Relaxed);
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&limited(), |statement| {
        let seen = support::see(&statement, &catalog);
        compare(&mut connection.borrow_mut(), &catalog, &seen, "")
            .map_err(|why| TestCaseError::fail(format!("{statement}: {why}")))
    });
    checked.unwrap_or_else(|why| panic!("{why}"));
    let reached = LIMITED.load(Ordering::Relaxed) - before;
    assert!(reached > 50, "a limit was reached {reached} times");
}

fn limited() -> impl Strategy<Value = String> {
    let column = prop_oneof![
        Just("id"),
        Just("v"),
        Just("t.v"),
        Just("price"),
        Just("at"),
        Just("2"),
        Just("other"),
        Just("name"),
        Just("v + 1")
    ];
    let direction =
        prop_oneof![Just(""), Just(" ASC"), Just(" DESC"), Just(" NULLS FIRST"), Just(" DESC NULLS LAST")];
    let order = prop::collection::vec((column, direction), 0..3).prop_map(|columns| {
        let columns: Vec<String> =
            columns.into_iter().map(|(column, way)| format!("{column}{way}")).collect();
        if columns.is_empty() { String::new() } else { format!(" ORDER BY {}", columns.join(", ")) }
    });
    let condition =
        prop_oneof![Just(""), Just(" WHERE v IS NOT NULL"), Just(" WHERE id > 1"), Just(" WHERE id = 2")];
    let limit = prop_oneof![
        Just(" LIMIT 1"),
        Just(" LIMIT 2"),
        Just(" LIMIT 5"),
        Just(" LIMIT :v"),
        Just(" LIMIT 1 OFFSET 0"),
        Just(" LIMIT 1 OFFSET 1"),
        Just(" OFFSET 1"),
        Just(" FETCH FIRST ROW ONLY"),
        Just(" OFFSET 0 ROWS FETCH FIRST 2 ROWS ONLY"),
        Just(" LIMIT 1 FOR UPDATE"),
        Just(" LIMIT NULL")
    ];
    let list = prop_oneof![
        Just("id, v AS other"),
        Just("v AS id, id AS other"),
        Just("*, id + v AS other"),
        Just("name AS x, price AS other")
    ];
    (list, condition, order, limit)
        .prop_map(|(list, condition, order, limit)| format!("SELECT {list} FROM t{condition}{order}{limit}"))
}

fn join() -> impl Strategy<Value = String> {
    let kind = prop_oneof![Just("JOIN"), Just("LEFT JOIN"), Just("LEFT JOIN")];
    let on = prop_oneof![
        Just("s.t_id = t.id"),
        Just("t.id = s.t_id AND s.amount > 5"),
        Just("s.t_id = t.id AND t.v > 5"),
        Just("s.t_id = t.id AND s.t_id = 1"),
        Just("s.id = t.id"),
        Just("s.amount = t.v")
    ];
    let third = prop_oneof![
        Just(""),
        Just(" JOIN old ON old.id = t.id"),
        Just(" LEFT JOIN old ON old.id = t.id"),
        Just(" LEFT JOIN old ON old.id = s.t_id"),
        Just(" LEFT JOIN old ON old.id = s.t_id AND old.v = 1")
    ];
    let places = prop_oneof![
        (1..5).prop_map(|id| format!("t.id = {id}")),
        (1..5).prop_map(|id| format!("s.t_id = {id}")),
        (1..5).prop_map(|id| format!("t.id = {id} AND amount > 4")),
        (1..5).prop_map(|id| format!("{id} = t.id AND t.v IS NOT NULL")),
        Just("t.v > 5".to_owned()),
        Just("t.id = 1 AND s.id IS NULL".to_owned())
    ];
    let list = prop_oneof![Just("t.v, s.amount"), Just("count(*), sum(s.amount)"), Just("*")];
    let any = (list, kind, on, third, places).prop_map(|(list, kind, on, third, condition)| {
        format!("SELECT {list} FROM t {kind} s ON {on}{third} WHERE {condition} ORDER BY 1, 2")
    });
    prop_oneof![2 => any, 2 => along_foreign_keys(), 1 => in_keys()]
}

/// Rows that refer to those of a subquery.
fn in_keys() -> impl Strategy<Value = String> {
    let own = prop_oneof![Just(""), Just(" AND c.v > 1"), Just(" AND c.id = 1"), Just(" AND c.v IN (1, 5)")];
    let inner = prop_oneof![
        Just(""),
        Just(" WHERE v = 1"),
        Just(" WHERE p.v > 1"),
        Just(" WHERE p.id = 2"),
        Just(" WHERE v IS NULL"),
        Just(" LIMIT 1")
    ];
    let key = prop_oneof![Just("p.id"), Just("id"), Just("p.v")];
    let list = prop_oneof![Just("c.id, c.v"), Just("count(*)"), Just("*")];
    (list, own, inner, key).prop_map(|(list, own, inner, key)| {
        format!("SELECT {list} FROM owned c WHERE c.owner_id IN (SELECT {key} FROM owner p{inner}){own}")
    })
}

/// Joins of a table, those that it refers to, and those that refer to it.
fn along_foreign_keys() -> impl Strategy<Value = String> {
    let kind = || prop_oneof![Just("JOIN"), Just("JOIN"), Just("LEFT JOIN")];
    let from = (kind(), kind()).prop_flat_map(|(one, other)| {
        prop_oneof![
            Just(format!("owned c {one} owner p ON c.owner_id = p.id")),
            Just(format!("owner p {one} owned c ON p.id = c.owner_id")),
            Just(format!(
                "part_of_owned x {one} owned c ON c.id = x.owned_id {other} owner p ON p.id = c.owner_id"
            )),
            Just(format!(
                "owner p {one} owned c ON c.owner_id = p.id {other} part_of_owned x ON x.owned_id = c.id"
            )),
            Just(format!(
                "owned c {one} owner p ON c.owner_id = p.id AND p.v = 1 {other} owned d ON d.owner_id = p.id"
            )),
        ]
    });
    let condition = prop_oneof![
        Just(""),
        Just(" WHERE c.v > 1"),
        Just(" WHERE c.owner_id = 1"),
        Just(" WHERE p.id = 2"),
        Just(" WHERE p.v = 1"),
        Just(" WHERE c.id = 1 AND p.v IS NOT NULL"),
        Just(" WHERE p.id IS NULL"),
        Just(" WHERE c.v = 1 OR c.v = 5")
    ];
    let list = prop_oneof![Just("p.v, c.v"), Just("count(*), max(c.v)"), Just("p.id, c.id")];
    (list, from, condition)
        .prop_map(|(list, from, condition)| format!("SELECT {list} FROM {from}{condition}"))
}

fn condition() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        Just("10"),
        Just("15"),
        Just("20"),
        Just("NULL"),
        Just("-3"),
        Just(":v"),
        Just("'20'"),
        Just(":id::int")
    ];
    let text = prop_oneof![
        Just("'open'"),
        Just("'opening'"),
        Just("''"),
        Just("NULL"),
        Just("'ä%'"),
        Just("'open%'")
    ];
    let column = prop_oneof![Just("id"), Just("v"), Just("t.v"), Just("\"v\"")];
    let op = prop_oneof![Just("="), Just("<>"), Just("!="), Just("<"), Just("<="), Just(">"), Just(">=")];
    let truth = prop_oneof![
        Just("active"),
        Just("active IS TRUE"),
        Just("active IS NOT FALSE"),
        Just("active = false"),
        Just("active IS NULL"),
        Just("u IS NOT NULL"),
        Just("true"),
        Just("false"),
        Just("v % 20 = 0"),
        Just("name IS NULL"),
        Just("v = id"),
        Just("active IS NOT UNKNOWN"),
        Just("u = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"),
        Just("u IN ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, NULL)"),
        Just("at > '2020-01-01T01:00:00+02:00'"),
        Just("at = '2019-12-31 22:30:00-01:30'::timestamptz"),
        Just("at BETWEEN '2019-01-01 00:00Z' AND 'infinity'"),
        Just("at > '2020-01-01'"),
        Just("price > 1.4"),
        Just("price = 1.50"),
        Just("price <= '2.0'"),
        Just("price <> -1.5"),
        Just("v = ANY ('{10,30,null}')"),
        Just("v <> ALL (ARRAY[10, 30])"),
        Just("id = ANY ('{}')"),
        Just("(id, v) = (1, 10)"),
        Just("(id, v) < (2, 15)"),
        Just("(v, id) >= (20, 2)"),
        Just("(id, v) IN ((1, 10), (2, NULL))"),
        Just("name LIKE '%ing'"),
        Just("name LIKE '_pen' ESCAPE ''"),
        Just("name::text LIKE '%p%n%'"),
        Just("name ILIKE 'OPEN%'"),
        Just("upper(name) = upper('Open')"),
        Just("lower(name) <> 'open'"),
        Just("upper(name::text) LIKE upper('%IN%')"),
        Just("1 = 1"),
        Just("1 <> 1"),
    ];
    let leaf = prop_oneof![
        (column.clone(), op.clone(), number.clone()).prop_map(|(c, o, n)| format!("{c} {o} {n}")),
        (number.clone(), op, column.clone()).prop_map(|(n, o, c)| format!("{n} {o} {c}")),
        (column.clone(), any::<bool>(), number.clone(), number.clone()).prop_map(|(c, not, low, high)| {
            format!("{c} {}BETWEEN {low} AND {high}", if not { "NOT " } else { "" })
        }),
        (column.clone(), any::<bool>(), prop::collection::vec(number, 1..4)).prop_map(
            |(c, not, list)| format!("{c} {}IN ({})", if not { "NOT " } else { "" }, list.join(", "))
        ),
        (prop_oneof![Just("="), Just("<>"), Just("LIKE"), Just("NOT LIKE")], text)
            .prop_map(|(o, t)| format!("name {o} {t}")),
        truth.prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} AND {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} OR {b}")),
            inner.clone().prop_map(|a| format!("NOT {a}")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.prop_map(|a| format!("({a}) IS NULL")),
        ]
    })
}

fn compare_all(connection: &mut Connection) {
    let catalog = load(connection);
    let (mut rewritten, mut searched, mut failures) = (0, 0, Vec::new());
    for (_, statement) in support::statements() {
        // These end the transaction, need another protocol, or can't run in a transaction.
        if ["BEGIN", "END", "vacuum", "COPY"].iter().any(|word| statement.starts_with(word)) {
            continue;
        }
        let seen = support::see(&statement, &catalog);
        rewritten += usize::from(seen.sql.parameterized != seen.original.parameterized);
        searched += seen.sql.observed.iter().map(|observed| observed.searches.len()).sum::<usize>();
        if let Err(why) = compare(connection, &catalog, &seen, "") {
            failures.push(format!("{statement}\n  {}\n  {why}", seen.sql.parameterized));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(rewritten > 150 && searched > 90, "only {rewritten} rewritten, {searched} searches");
}

/// The text of the simple protocol.
fn simple(sql: &Sql) -> String {
    let value = |written: &str| match written {
        ":name" => "'x'".to_owned(),
        ":v" => "15".to_owned(),
        _ => "1".to_owned(),
    };
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable { written, .. } => value(written),
    };
    sql.pieces.iter().map(piece).collect()
}

/// How often a LIMIT was reached, and all rows before the last one were known.
static LIMITED: AtomicUsize = AtomicUsize::new(0);

type Row = Vec<Option<String>>;

/// What a statement returns.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    rows: Rows,
    tags: Vec<String>,
}

/// The result of a statement, or the error's first line, which has no text of the statement.
fn outcome(connection: &mut Connection, before: &str, sql: &str) -> Result<Outcome, String> {
    let mut found = (Ok(Rows::default()), Ok(Vec::new()));
    connection.execute(&format!("BEGIN; {before}")).unwrap();
    found.0 = connection.query(sql).map_err(|error| message(&error.to_string()));
    connection.execute(&format!("ROLLBACK; BEGIN; {before}")).unwrap();
    found.1 = connection.execute(sql).map_err(|error| message(&error.to_string()));
    connection.execute("ROLLBACK").unwrap();
    Ok(Outcome { rows: found.0?, tags: found.1?.into_iter().map(|done| done.tag).collect() })
}

/// The first line of an error without the place, which may be another.
fn message(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split(" at character ").next().unwrap_or_default().to_owned()
}

/// Compares both forms of a statement, each after a command.
pub fn compare(
    connection: &mut Connection,
    catalog: &Catalog,
    seen: &Seen,
    before: &str,
) -> Result<(), String> {
    let original = outcome(connection, before, &simple(&seen.original));
    let sent = outcome(connection, before, &simple(&seen.sql));
    let count = seen.sql.statements.len();
    let last = seen.sql.observed.iter().find(|observed| observed.statement as usize + 1 == count);
    let appended = last.map_or(0, |observed| usize::from(observed.appended));
    match (original, sent) {
        (Err(original), Err(sent)) if original == sent => Ok(()),
        (Ok(original), Ok(sent)) => {
            let own = sent.rows.columns.len().saturating_sub(appended);
            same("tags", &original.tags, &sent.tags)?;
            // A statement that returned nothing may do so now.
            if !original.rows.columns.is_empty() {
                let cut: Vec<Row> = sent.rows.rows.iter().map(|row| row[..own].to_vec()).collect();
                same("columns", &original.rows.columns, &sent.rows.columns[..own].to_vec())?;
                same("rows", &original.rows.rows, &cut)?;
            }
            prepared_alike(connection, seen)?;
            match last {
                Some(observed) if appended > 0 && count == 1 => {
                    check_shown(connection, catalog, seen, observed, own)
                }
                _ => Ok(()),
            }
        }
        (original, sent) => Err(format!("originally {original:?}, sent {sent:?}")),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, left: &T, right: &T) -> Result<(), String> {
    if left == right { Ok(()) } else { Err(format!("{what}: expected {left:?}, found {right:?}")) }
}

/// In the extended protocol both forms are accepted, with parameters of the same types, or refused
/// alike.
fn prepared_alike(connection: &mut Connection, seen: &Seen) -> Result<(), String> {
    if seen.sql.statements.len() > 1 {
        return Ok(());
    }
    let mut prepare = |sql: &str| {
        connection.execute("BEGIN").unwrap();
        let prepared = connection.execute(&format!("PREPARE observed AS {sql}"));
        let types = prepared.map_err(|error| message(&error.to_string())).map(|_| {
            let types = "SELECT parameter_types FROM pg_prepared_statements WHERE name = 'observed'";
            connection.value(types).unwrap()
        });
        connection.execute("ROLLBACK").unwrap();
        connection.execute("DEALLOCATE ALL").unwrap();
        types
    };
    let (original, sent) = (prepare(&seen.original.parameterized), prepare(&seen.sql.parameterized));
    same("prepared", &original, &sent)
}

/// The rows of a table by the texts of their keys: `xmin`, and the kept columns.
type Contents = BTreeMap<Vec<String>, (String, Row)>;

fn contents(connection: &mut Connection, catalog: &Catalog, table: &ObservedTable) -> Contents {
    let is_named = |schema: &str, name: &str| {
        schema == "public" && name == table.name || format!("{schema}.{name}") == table.name
    };
    let mut relations = catalog.relations.iter();
    let relation = relations.find(|relation| is_named(&relation.schema, &relation.name)).unwrap();
    let mut key: Vec<String> =
        relation.key.iter().map(|place| quote(&relation.columns[*place].name)).collect();
    if relation.inheritance == Inheritance::Parent {
        key.push("tableoid".to_owned());
    }
    let columns: Vec<String> = table.columns.iter().map(|column| quote(&column.name)).collect();
    let all = [key.clone(), vec!["xmin".to_owned()], columns].concat().join(", ");
    let from = format!("{}.{}", quote(&relation.schema), quote(&relation.name));
    let rows = connection.query(&format!("SELECT {all} FROM {from}")).unwrap().rows;
    let row = |row: Row| {
        let texts: Vec<String> = row[..key.len()].iter().flatten().cloned().collect();
        (texts, (row[key.len()].clone().unwrap(), row[key.len() + 1..].to_vec()))
    };
    rows.into_iter().map(row).collect()
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A row that a result shows.
#[derive(Debug)]
struct Shown {
    key: Vec<String>,
    version: Option<String>,
    replaced: Option<String>,
    columns: Row,
    /// `xmax`, or the action of MERGE.
    detail: Option<String>,
}

/// Checks what the statement's result shows against the tables before and after it.
fn check_shown(
    connection: &mut Connection,
    catalog: &Catalog,
    seen: &Seen,
    observed: &ObservedStatement,
    own: usize,
) -> Result<(), String> {
    let tables = &seen.observed.tables;
    let look = |connection: &mut Connection| -> Vec<Contents> {
        tables.iter().map(|table| contents(connection, catalog, table)).collect()
    };
    connection.execute("BEGIN").unwrap();
    let before = look(connection);
    let result = connection.query(&simple(&seen.sql)).unwrap();
    let after = look(connection);
    connection.execute("ROLLBACK").unwrap();
    let mut written = vec![BTreeSet::new(); tables.len()];
    let mut found = Vec::new();
    for rows in &observed.rows {
        let number = usize::from(rows.table);
        let shown: Vec<Shown> = result.rows.iter().flat_map(|row| rows_shown(rows, &row[own..])).collect();
        for row in &shown {
            check_row(rows, row, &before[number], &after[number])?;
            if rows.role != RowRole::Read {
                written[number].insert(row.key.clone());
            }
        }
        found.push(shown);
    }
    for (number, table) in tables.iter().enumerate() {
        let unseen = observed.unseen.iter().any(|unseen| usize::from(*unseen) == number);
        if !unseen {
            same(
                &format!("written rows of {}", table.name),
                &changes(&before[number], &after[number]),
                &written[number],
            )?;
        }
    }
    let count = |value: &Option<SearchValue>| match value {
        Some(SearchValue::Constant(digits)) => digits.parse().ok(),
        Some(SearchValue::Variable(_)) => Some(1),
        _ => None,
    };
    let limit = observed.limit.as_ref();
    let limited = limit.and_then(|limit| limit.of).map_or(result.rows.len(), |entry| found[entry].len());
    let reached = limit.and_then(|limit| count(&limit.rows)).is_some_and(|most| limited >= most);
    let skips = limit.is_some_and(|limit| limit.offset.is_some());
    for search in observed.searches.iter().filter(|_| !skips) {
        let known = match search.when {
            SearchWhen::Always => true,
            SearchWhen::Empty => result.rows.is_empty(),
            SearchWhen::Nonempty => !result.rows.is_empty(),
            SearchWhen::Unlimited => !reached,
            SearchWhen::Limited => reached,
            SearchWhen::Found(entry) => !found[entry].is_empty(),
            SearchWhen::Column(column, wanted) => result.rows.iter().any(|row| {
                let text = row[usize::from(column)].as_deref();
                matches!((text, wanted), (Some("t" | "1"), true) | (Some("f" | "0"), false))
            }),
        };
        if !known {
            continue;
        }
        if seen.observed.predicates[usize::from(search.predicate)] == Predicate::Absent {
            let there = matching(seen, search, &Predicate::True, &found, &before);
            same("the row that prevents it", &there.len(), &1)?;
            continue;
        }
        let predicate = &seen.observed.predicates[usize::from(search.predicate)];
        let referred = search.referred.map(|Referred { entry, column, each }| {
            let values = found[entry].iter().filter_map(|row| row.columns[usize::from(column)].clone());
            (values.map(|value| vec![value]).collect::<BTreeSet<Vec<String>>>(), each)
        });
        if let Predicate::Found(inner) = predicate {
            let there = matching(seen, search, inner, &found, &before);
            match &referred {
                Some((keys, _)) => same("rows referred to", &keys.is_subset(&there), &true)?,
                None => same("rows found and not shown", &there.len(), &1)?,
            }
            continue;
        }
        if let Some((keys, _)) = referred {
            let there = matching(seen, search, predicate, &found, &before);
            same("rows referred to", &there, &keys)?;
            continue;
        }
        let matching = matching(seen, search, predicate, &found, &before);
        let shown: BTreeSet<Vec<String>> =
            search.rows.iter().flat_map(|rows| &found[*rows]).map(|row| row.key.clone()).collect();
        if search.when == SearchWhen::Limited {
            // The last row, and those that are equal to it, don't come before it.
            same("rows found before the last", &matching, &matching.intersection(&shown).cloned().collect())?;
            if matching.len() + 1 == shown.len() {
                LIMITED.fetch_add(1, Ordering::Relaxed);
            }
            continue;
        }
        let operands = search.operands.iter();
        let among = operands.clone().any(|one| matches!(one.value, SearchValue::Shown { .. }));
        let shown =
            if among { shown.into_iter().filter(|key| matching.contains(key)).collect() } else { shown };
        same("rows found", &matching, &shown)?;
    }
    Ok(())
}

/// The keys of rows that differ.
fn changes(before: &Contents, after: &Contents) -> BTreeSet<Vec<String>> {
    let version =
        |contents: &Contents, key: &Vec<String>| contents.get(key).map(|(version, _)| version.clone());
    let keys = before.keys().chain(after.keys());
    keys.filter(|key| version(before, key) != version(after, key)).cloned().collect()
}

fn check_row(rows: &ObservedRows, row: &Shown, before: &Contents, after: &Contents) -> Result<(), String> {
    let detail = row.detail.as_deref().unwrap_or_default();
    let (source, inserted) = match rows.role {
        RowRole::Read | RowRole::Deleted => (before, false),
        RowRole::Merged(_) if detail == "DELETE" => (before, false),
        RowRole::Inserted => (after, true),
        RowRole::Upserted(_) => (after, detail == "0"),
        RowRole::Merged(_) => (after, detail == "INSERT"),
        RowRole::Updated => (after, false),
    };
    let Some((version, columns)) = source.get(&row.key) else {
        return Err(format!("{:?} {row:?} isn't in the table", rows.role));
    };
    same("version", &Some(version.clone()), &row.version)?;
    same("kept columns", columns, &row.columns)?;
    let earlier = before.get(&row.key).map(|(version, _)| version.clone());
    if rows.role != RowRole::Read {
        same("new row", &earlier.is_none(), &inserted)?;
    }
    if rows.replaced.is_some() {
        same("replaced", &earlier, &row.replaced)?;
    }
    Ok(())
}

/// The rows that one row of a result shows.
fn rows_shown(rows: &ObservedRows, appended: &[Option<String>]) -> Vec<Shown> {
    let records = match rows.packed.map(|place| &appended[usize::from(place)]) {
        None => vec![appended.to_vec()],
        Some(None) => Vec::new(),
        Some(Some(array)) => {
            let elements = split(array.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap());
            let record =
                |text: String| split(text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap());
            elements.into_iter().flatten().map(record).collect()
        }
    };
    let row = |record: Row| {
        let at = |place: u16| record[usize::from(place)].clone();
        Some(Shown {
            key: rows.key.iter().map(|place| at(*place)).collect::<Option<_>>()?,
            version: at(rows.version),
            replaced: rows.replaced.and_then(at),
            columns: rows.columns.iter().map(|place| at(*place)).collect(),
            detail: match rows.role {
                RowRole::Upserted(place) | RowRole::Merged(place) => at(place),
                _ => None,
            },
        })
    };
    records.into_iter().filter_map(row).collect()
}

/// The parts between commas; quotes are doubled or after backslashes. An empty part is NULL.
fn split(text: &str) -> Row {
    let mut parts = Vec::new();
    let (mut part, mut quoted, mut any) = (String::new(), false, false);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => part.extend(chars.next()),
            '"' if quoted && chars.peek() == Some(&'"') => part.extend(chars.next()),
            '"' => (quoted, any) = (!quoted, true),
            ',' if !quoted => {
                parts.push((any || !part.is_empty()).then(|| std::mem::take(&mut part)));
                any = false;
            }
            other => part.push(other),
        }
    }
    parts.push((any || !part.is_empty()).then_some(part));
    parts
}

/// The keys of the rows that a search's condition matches, as the history's checker evaluates it.
fn matching(
    seen: &Seen,
    search: &ObservedSearch,
    predicate: &Predicate,
    found: &[Vec<Shown>],
    before: &[Contents],
) -> BTreeSet<Vec<String>> {
    let mut texts: Vec<String> = Vec::new();
    let variable = |slot: Slot| match seen.symbols.name(slot) {
        "name" => "x".to_owned(),
        "v" => "15".to_owned(),
        _ => "1".to_owned(),
    };
    let part = |part: &TextPart| match part {
        TextPart::Text(text) => text.clone(),
        TextPart::Variable(slot) => variable(*slot),
        TextPart::Parameter(number) => panic!("${number} has no value"),
    };
    let value_text = |value: &SearchValue| match value {
        SearchValue::Null => None,
        SearchValue::Constant(text) => Some(text.clone()),
        SearchValue::Variable(slot) | SearchValue::Uuid(slot) => Some(variable(*slot)),
        SearchValue::Joined { parts, .. } => Some(parts.iter().map(part).collect()),
        other => panic!("{other:?} has no text"),
    };
    let mut number = |form: ValueForm, text: Option<String>| match (text, form) {
        (None, _) => NULL,
        (Some(text), ValueForm::Integer) => text.parse().unwrap(),
        (Some(text), ValueForm::Boolean) => i64::from(text.starts_with('t')),
        (Some(text), ValueForm::Date | ValueForm::Timestamp | ValueForm::Instant) => {
            form.moment(&text).unwrap()
        }
        (Some(text), form) => {
            texts.push(form.canonical(&text).unwrap().into_owned());
            let last = texts.last();
            i64::try_from(texts.iter().position(|known| Some(known) == last).unwrap()).unwrap()
        }
    };
    let form =
        |table: u16, place: u16| seen.observed.tables[usize::from(table)].columns[usize::from(place)].form;
    let values = |operand: &SearchOperand| -> Row {
        match &operand.value {
            SearchValue::Last => {
                let last = found[search.rows.unwrap()].last().unwrap();
                vec![last.columns[usize::from(operand.column)].clone()]
            }
            SearchValue::Shown { entry, column } => {
                let values = found[*entry].iter().map(|row| row.columns[usize::from(*column)].clone());
                values.flatten().map(Some).collect()
            }
            SearchValue::Elements(array) => {
                let text = value_text(array).unwrap();
                split(text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap())
            }
            SearchValue::Scaled(value, _) => vec![value_text(value)],
            value => vec![value_text(value)],
        }
    };
    let operands: Vec<i64> = search
        .operands
        .iter()
        .flat_map(|operand| {
            let form = form(operand.table, operand.column);
            if let SearchValue::Moved(value, by) = &operand.value {
                return vec![form.moment(&value_text(value).unwrap()).unwrap() + by];
            }
            values(operand).into_iter().map(|text| number(form, text)).collect()
        })
        .collect();
    let mut all: Vec<Vec<(&Vec<String>, Vec<i64>)>> = Vec::new();
    for (table, before) in seen.observed.tables.iter().zip(before) {
        let rows = before.iter().map(|(key, (_, columns))| {
            let values = table.columns.iter().zip(columns);
            (key, values.map(|(column, value)| number(column.form, value.clone())).collect())
        });
        all.push(rows.collect());
    }
    let text =
        |place: i64| usize::try_from(place).ok().and_then(|place| texts.get(place)).map(String::as_str);
    let wanted: Option<Vec<String>> =
        search.key.as_ref().map(|key| key.iter().filter_map(value_text).collect());
    let holds = |key: &Vec<String>, columns: &[i64]| {
        wanted.as_ref().is_none_or(|wanted| wanted == key)
            && predicate.holds_with(columns, &operands, &text, &Others { all: &all, text: &text })
                == Some(true)
    };
    let rows = &all[usize::from(search.table)];
    rows.iter().filter(|(key, columns)| holds(key, columns)).map(|(key, _)| (*key).clone()).collect()
}

/// The rows of all tables, with the numbers of their values.
struct Others<'o, F> {
    all: &'o [Vec<(&'o Vec<String>, Vec<i64>)>],
    text: &'o F,
}

impl<'t, F: Fn(i64) -> Option<&'t str>> Elsewhere for Others<'_, F> {
    fn has(&self, linked: &Linked, columns: &[i64], operands: &[i64]) -> bool {
        let mut rows = self.all[usize::from(linked.table)].iter();
        rows.any(|(_, others)| {
            let equal = |(own, other): &(u16, u16)| {
                let (own, other) = (columns[usize::from(*own)], others[usize::from(*other)]);
                own == other && own != NULL
            };
            linked.pairs.iter().all(equal)
                && linked.predicate.holds_with(others, operands, self.text, self) == Some(true)
        })
    }
}
