//! What a run touches is among what the program of a statement touches: random statements, of which the server says
//! which tables their plans read, and which tables had rows read and changed.
//!
//! `ISOBENCH_DIFFERENTIAL_STATEMENTS` is their number, `ISOBENCH_DIFFERENTIAL_SEED` the first seed.

#[path = "../../../isobench-observation/tests/observation/differential/statement.rs"]
mod statement;

use std::collections::{BTreeMap, BTreeSet};

use isobench_database::Asked;
use isobench_observation::SeenOf;
use isobench_pgwire::Connection;
use isobench_program::templates;
use isobench_robustness::Kind;
use isobench_script::{CommandKind, Script, Symbols, parse};
use isobench_sql::{Catalog, Text};

use crate::support::{installed, load};

/// The number of statements without the variable.
const STATEMENTS: u64 = 2_000;

const SCHEMA: &str = include_str!("../../../isobench-observation/tests/observation/differential/schema.sql");

/// How often this session has looked at each table, and how many rows it has changed, since the server last collected
/// these numbers.
const TOUCHED: &str = "SELECT schemaname || '.' || relname, seq_scan + coalesce(idx_scan, 0), \
     n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables";

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Tables that are read, and those that are written.
#[derive(Debug, Default)]
struct Tables {
    read: BTreeSet<String>,
    written: BTreeSet<String>,
}

#[test]
fn what_a_run_touches_is_in_the_program() {
    let Some((_server, mut connection)) = installed("what_a_run_touches_is_in_the_program") else { return };
    connection.execute(SCHEMA).unwrap();
    let mut catalog = load(&mut connection);
    let first = number("ISOBENCH_DIFFERENTIAL_SEED", 1);
    let count = number("ISOBENCH_DIFFERENTIAL_STATEMENTS", STATEMENTS);
    let (mut failures, mut judged, mut unknown) = (Vec::new(), 0, 0);
    for seed in first..first + count {
        let text = statement::random(seed);
        let mut symbols = Symbols::new();
        let Ok(script) = parse("s", &format!("{text};\n"), &mut symbols) else { continue };
        let scripts = [script];
        catalog.readings.clear();
        catalog.read_statements(&scripts, &mut Asked(&mut connection)).unwrap();
        let Some(run) = run(&mut connection, &text, &catalog) else { continue };
        match program(&scripts, &symbols, &catalog) {
            Some(program) => {
                judged += 1;
                let seen = seen(&scripts[0], &catalog);
                let missing =
                    [("run", &run), ("seen", &seen)].map(|(by, tables)| missing(by, tables, &program));
                for why in missing.into_iter().flatten() {
                    failures.push(format!("ISOBENCH_DIFFERENTIAL_SEED={seed}: {why}\n{text}"));
                }
            }
            None => unknown += 1,
        }
        if failures.len() > 9 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    eprintln!("{judged} statements, and {unknown} that may do anything");
    assert!(judged > count / 4, "{judged} of {count}");
}

/// Functions and triggers in the forms that are read.
const CODE: &str = "
CREATE TABLE one (id int PRIMARY KEY, v int NOT NULL);
CREATE TABLE two (id int PRIMARY KEY, v int NOT NULL);
CREATE TABLE three (id serial PRIMARY KEY, one int REFERENCES one ON DELETE CASCADE, v int);
CREATE TABLE noted (at timestamptz DEFAULT now(), what text);
INSERT INTO one SELECT g, g FROM generate_series(1, 9) g;
INSERT INTO two SELECT * FROM one;
INSERT INTO three (one, v) SELECT id, v FROM one;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO noted (what) VALUES (TG_OP || ' ' || TG_TABLE_NAME || ' ' || NEW.id); RETURN NEW; END $$;
CREATE TRIGGER two_noted AFTER INSERT OR UPDATE ON two FOR EACH ROW EXECUTE FUNCTION note();
CREATE FUNCTION of_one(int) RETURNS bigint LANGUAGE sql AS 'SELECT v FROM one WHERE id = $1';
CREATE FUNCTION atomic(key int) RETURNS int LANGUAGE sql BEGIN ATOMIC
    UPDATE two SET v = v + 1 WHERE id = key; SELECT v FROM two WHERE id = key; END;
CREATE FUNCTION built(name text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE 'UPDATE ' || name || ' SET v = 1'; END $$;
CREATE FUNCTION caught() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO one VALUES (1, 1); EXCEPTION WHEN unique_violation THEN DELETE FROM two; END $$;
CREATE FUNCTION calls_built() RETURNS void LANGUAGE sql AS 'SELECT built(''one'')';
";

#[test]
fn what_functions_touch_is_in_the_program() {
    let Some((_server, mut connection)) = installed("what_functions_touch_is_in_the_program") else { return };
    connection.execute(CODE).unwrap();
    let mut catalog = load(&mut connection);
    for (text, understood) in [
        ("SELECT of_one(3)", true),
        ("SELECT atomic(3)", true),
        ("UPDATE two SET v = of_one(id)::int WHERE id < 3", true),
        ("INSERT INTO two VALUES (20, 1), (21, 2)", true),
        ("DELETE FROM one WHERE id = 2", true),
        ("SELECT built('two')", false),
        ("SELECT caught()", false),
        ("SELECT calls_built()", false),
    ] {
        let mut symbols = Symbols::new();
        let scripts = [parse("s", &format!("{text};\n"), &mut symbols).unwrap()];
        catalog.read_statements(&scripts, &mut Asked(&mut connection)).unwrap();
        let run = run(&mut connection, text, &catalog).expect(text);
        assert!(!run.read.is_empty() || !run.written.is_empty(), "{text}");
        let program = program(&scripts, &symbols, &catalog);
        assert_eq!(program.is_some(), understood, "{text}");
        assert_eq!(program.and_then(|program| missing("run", &run, &program)), None, "{text}");
    }
}

/// The tables that one of these misses.
fn missing(by: &str, found: &Tables, program: &Tables) -> Option<String> {
    let written: Vec<&String> = found.written.difference(&program.written).collect();
    let touched: BTreeSet<&String> = program.read.union(&program.written).collect();
    let read: Vec<&String> = found.read.iter().filter(|table| !touched.contains(table)).collect();
    (!written.is_empty() || !read.is_empty()).then(|| {
        format!("{by}: {read:?} are read and {written:?} are written, of which the program doesn't know")
    })
}

/// A table's root: rows of partitions and of tables that inherit are the root's.
fn root(name: &str, catalog: &Catalog) -> String {
    let found = catalog.relations.iter().position(|relation| {
        relation.qualified() == name || { format!("{}.{}", relation.schema, relation.name) == name }
    });
    found.map_or(name.to_owned(), |id| catalog.relations[catalog.root(id)].qualified())
}

/// What a statement touches when it runs; `None` if the server refuses it. It is rolled back.
fn run(connection: &mut Connection, text: &str, catalog: &Catalog) -> Option<Tables> {
    connection.execute("BEGIN").unwrap();
    let before = touched(connection);
    let ran = connection.query(text).is_ok();
    let after = if ran { touched(connection) } else { BTreeMap::new() };
    connection.execute("ROLLBACK").unwrap();
    let mut tables = Tables::default();
    for (name, [looked, changed]) in after {
        let [looked_before, changed_before] = before.get(&name).copied().unwrap_or_default();
        let table = root(&name, catalog);
        if looked > looked_before {
            tables.read.insert(table.clone());
        }
        if changed > changed_before {
            tables.written.insert(table);
        }
    }
    ran.then_some(tables)
}

fn touched(connection: &mut Connection) -> BTreeMap<String, [u64; 2]> {
    let number = |text: &Option<String>| text.as_deref().unwrap().parse().unwrap();
    let rows = connection.query(TOUCHED).unwrap().rows;
    rows.iter().map(|row| (row[0].clone().unwrap(), [number(&row[1]), number(&row[2])])).collect()
}

/// The tables of a statement's program; `None` if it may do anything.
fn program(scripts: &[Script], symbols: &Symbols, catalog: &Catalog) -> Option<Tables> {
    let found = templates(scripts, symbols, catalog, &BTreeSet::new());
    if found.statements.iter().any(|statement| statement.unknown.is_some()) {
        return None;
    }
    let mut tables = Tables::default();
    for operation in found.programs[0].branches.iter().flat_map(|branch| &branch.operations) {
        let table = operation.table.clone();
        match operation.kind {
            Kind::Insert | Kind::Update | Kind::Delete => tables.written.insert(table),
            _ => tables.read.insert(table),
        };
    }
    Some(tables)
}

/// The tables that it reads or writes, by what its result can show.
fn seen(script: &Script, catalog: &Catalog) -> Tables {
    let mut tables = Tables::default();
    for command in &script.commands {
        let CommandKind::Sql(sql) = &command.kind else { continue };
        let text = Text::scan(sql).expect("tokens");
        for range in text.statements() {
            let seen = SeenOf::statement(catalog, &text, range);
            let name = |table: usize| catalog.relations[catalog.root(table)].qualified();
            tables.read.extend(seen.shown.iter().map(|(table, _)| name(*table)));
            // It takes a MERGE that does nothing for one that writes: what is written the run says.
            tables.read.extend(seen.unseen.iter().copied().map(name));
        }
    }
    tables
}
