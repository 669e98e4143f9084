//! Random workloads on real PostgreSQL: at levels that are promised nobody is accused, and no verdict
//! is withheld.
//!
//! `ISOBENCH_SEEDS=N` runs N times as many, `ISOBENCH_MINUTES=N` as many as N minutes allow, from seed
//! `ISOBENCH_FIRST_SEED`; `ISOBENCH_SEED=N` only the one with this seed, which a failure names.

use std::env;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, cells, count};
use crate::support::scene::Scene;

/// Seeds without `ISOBENCH_SEEDS`.
const SEEDS: u64 = 4;

/// Rows of a table at the start; keys are drawn from twice as many.
const ROWS: i64 = 12;

/// Classes, the column that conditions are about.
const CLASSES: i64 = 4;

/// The form of a table's key.
#[derive(Clone, Copy, Debug)]
enum Key {
    Integer,
    Composite,
    Text,
}

#[derive(Debug)]
struct Table {
    name: String,
    key: Key,
    indexed: bool,
}

impl Table {
    /// The columns of the key.
    fn columns(&self) -> &'static str {
        match self.key {
            Key::Integer => "id",
            Key::Composite => "a, b",
            Key::Text => "name",
        }
    }

    fn create(&self) -> String {
        let (columns, value) = match self.key {
            Key::Integer => ("id int", "i"),
            Key::Composite => ("a int, b text", "i, 'b' || i % 3"),
            Key::Text => ("name text", "'k,' || i"),
        };
        let index =
            if self.indexed { format!("CREATE INDEX ON {} (c);\n", self.name) } else { String::new() };
        format!(
            "DROP TABLE IF EXISTS {name};\nCREATE TABLE {name} ({columns}, v int, c int, PRIMARY KEY ({key}));\n\
             INSERT INTO {name} SELECT {value}, 0, i % {CLASSES} FROM generate_series(1, {ROWS}) i;\n{index}",
            name = self.name,
            key = self.columns(),
        )
    }

    /// A whole key, of variable `k` or a constant, as values.
    fn values(&self, rng: &mut Rng) -> String {
        let number = rng.i64(1..=2 * ROWS);
        match (self.key, rng.bool()) {
            (Key::Integer, true) => ":k".to_owned(),
            (Key::Integer, false) => number.to_string(),
            (Key::Composite, true) => "CAST(:k AS int), 'b' || CAST(:k AS int) % 3".to_owned(),
            (Key::Composite, false) => format!("{number}, 'b{}'", number % 3),
            (Key::Text, true) => "'k,' || CAST(:k AS text)".to_owned(),
            (Key::Text, false) => format!("'k,{number}'"),
        }
    }

    /// A condition on a whole key.
    fn by_key(&self, rng: &mut Rng, alias: &str) -> String {
        let number = rng.i64(1..=2 * ROWS);
        match (self.key, rng.bool()) {
            (Key::Integer, true) => format!("{alias}.id = :k"),
            (Key::Integer, false) => format!("{alias}.id = {number}"),
            (Key::Composite, true) => format!("{alias}.a = :k AND {alias}.b = 'b{}'", number % 3),
            (Key::Composite, false) => format!("{alias}.a = {number} AND {alias}.b = 'b{}'", number % 3),
            (Key::Text, true) => format!("{alias}.name = 'k,' || CAST(:k AS text)"),
            (Key::Text, false) => format!("{alias}.name = 'k,{number}'"),
        }
    }

    /// A condition that several rows fulfil.
    fn by_condition(&self, rng: &mut Rng, alias: &str) -> String {
        let (one, other) = (rng.i64(0..CLASSES), rng.i64(0..CLASSES));
        let key = match self.key {
            Key::Integer => format!("{alias}.id BETWEEN {one} AND :k"),
            Key::Composite => format!("{alias}.a <= {} OR {alias}.b = 'b1'", one + 2),
            Key::Text => format!("{alias}.name LIKE 'k,1%'"),
        };
        match rng.u8(0..8) {
            0 => format!("{alias}.c = :c"),
            1 => format!("{alias}.c = {one}"),
            2 => format!("{alias}.c IN ({one}, {other})"),
            3 => format!("{alias}.c >= {one} AND NOT {alias}.c = {other}"),
            4 => format!("{alias}.c IS NULL"),
            5 => format!("({key}) AND {alias}.v >= 0"),
            6 => format!("{alias}.v < {}", one * 3),
            _ => key,
        }
    }

    /// Inserts rows made of others.
    fn copied(&self, rng: &mut Rng) -> String {
        let key = match self.key {
            Key::Integer => "x.id % 24 + 1",
            Key::Composite => "x.a % 24 + 1, x.b",
            Key::Text => "'k,' || length(x.name) + coalesce(x.c, 0)",
        };
        format!(
            "INSERT INTO {name} ({columns}, v, c) SELECT {key}, x.v, x.c FROM {name} x WHERE {} ON CONFLICT DO NOTHING",
            self.by_condition(rng, "x"),
            name = self.name,
            columns = self.columns(),
        )
    }

    /// Changes a key.
    fn moved(&self, rng: &mut Rng) -> String {
        let key = match self.key {
            Key::Integer => "id = x.id % 24 + 1",
            Key::Composite => "b = 'b' || x.a % 2",
            Key::Text => "name = 'k,' || length(x.name)",
        };
        format!("UPDATE {} x SET {key} WHERE {}", self.name, self.by_key(rng, "x"))
    }

    fn merged(&self, rng: &mut Rng) -> String {
        let name = &self.name;
        if !matches!(self.key, Key::Integer) {
            return format!("SELECT max(x.v) FROM {name} x WHERE {}", self.condition(rng, "x"));
        }
        format!(
            "MERGE INTO {name} x USING (SELECT CAST(:k AS int) AS k) s ON x.id = s.k WHEN MATCHED AND x.v > 50 THEN \
             DELETE WHEN MATCHED THEN UPDATE SET v = x.v + 7 WHEN NOT MATCHED THEN INSERT (id, v, c) VALUES (s.k, 1, 1)"
        )
    }

    fn condition(&self, rng: &mut Rng, alias: &str) -> String {
        if rng.bool() { self.by_key(rng, alias) } else { self.by_condition(rng, alias) }
    }
}

/// A random workload.
struct Workload {
    setup: String,
    scripts: Vec<(String, u64)>,
    protocol: &'static str,
    version: &'static str,
    observe: &'static str,
    clients: usize,
}

impl Workload {
    fn new(seed: u64) -> Workload {
        let mut rng = Rng::with_seed(seed);
        let tables: Vec<Table> = (0..rng.usize(1..=3))
            .map(|number| Table {
                name: format!("t{number}"),
                key: *choice(&mut rng, &[Key::Integer, Key::Composite, Key::Text]),
                indexed: rng.bool(),
            })
            .collect();
        let protocol = word(&mut rng, &["simple", "extended", "prepared"]);
        let scripts = (0..rng.usize(1..=4)).map(|_| (script(&mut rng, &tables, protocol), rng.u64(1..=4)));
        let mut scripts: Vec<(String, u64)> = scripts.collect();
        // If nothing is found to read or write, there is nothing to judge; nor if a changed key exists
        // already however often it is tried (--max-tries).
        scripts.push(("SELECT count(*) FROM t0;\n".to_owned(), 1));
        Workload {
            scripts,
            setup: tables.iter().map(Table::create).collect::<String>() + "ANALYZE;\n",
            protocol,
            version: word(&mut rng, &["15", "18"]),
            observe: word(&mut rng, &["rows", "wal"]),
            clients: rng.usize(2..=8),
        }
    }

    /// Writes the files, and returns the command.
    fn write(&self, scene: &Scene, seed: u64) -> String {
        scene.write("setup.sql", &self.setup);
        let mut files = String::new();
        for (number, (text, weight)) in self.scripts.iter().enumerate() {
            scene.write(&format!("s{number}.sql"), text);
            let _ = write!(files, "-f s{number}.sql@{weight} ");
        }
        format!(
            "compare {files}--setup setup.sql -M {} --server-version {} --observe {} --clients {} --seed {seed} \
             --levels rr,ser --time 1 --warmup 0 --rounds 1 --retry-sqlstate 23505 --max-tries 20 --server-setting \
             fsync=off --json out.json",
            self.protocol, self.version, self.observe, self.clients
        )
    }
}

fn choice<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

fn word(rng: &mut Rng, from: &[&'static str]) -> &'static str {
    from[rng.usize(..from.len())]
}

/// A script: a block, a block in one request or pipeline, or single statements.
fn script(rng: &mut Rng, tables: &[Table], protocol: &str) -> String {
    let statements: Vec<String> = (0..rng.usize(1..=6)).map(|_| statement(rng, tables)).collect();
    let mut text = format!(
        "\\set k random(1, {})\n\\set c random(0, {})\n\\set n random(1, 9)\n\\set v 0\n",
        2 * ROWS,
        CLASSES - 1
    );
    let stores = statements.iter().any(|statement| statement.contains('\\'));
    match rng.u8(0..6) {
        0 => text.extend(statements.iter().take(1).map(|statement| ended(statement))),
        1 if !stores && protocol == "simple" => {
            let _ = writeln!(text, "BEGIN\\; {}\\; END;", statements.join("\\; "));
        }
        2 if !stores && protocol != "simple" => {
            let all: String = statements.iter().map(|statement| ended(statement)).collect();
            let _ = write!(text, "\\startpipeline\nBEGIN;\n{all}END;\n\\endpipeline\n");
        }
        3 => {
            text.push_str("BEGIN;\n");
            for (number, statement) in statements.iter().enumerate() {
                let savepoint = rng.bool();
                if savepoint {
                    let _ = writeln!(text, "SAVEPOINT s{number};");
                }
                text.push_str(&ended(statement));
                if savepoint && rng.bool() {
                    let _ = writeln!(text, "RELEASE SAVEPOINT s{number};");
                }
            }
            text.push_str("END;\n");
        }
        _ => {
            let all: String = statements.iter().map(|statement| ended(statement)).collect();
            let _ = write!(text, "BEGIN;\n{all}END;\n");
        }
    }
    text
}

/// A statement with its end, unless it has one.
fn ended(statement: &str) -> String {
    if statement.contains('\\') { format!("{statement}\n") } else { format!("{statement};\n") }
}

fn statement(rng: &mut Rng, tables: &[Table]) -> String {
    let (table, other) = (choice(rng, tables), choice(rng, tables));
    match rng.u8(0..24) {
        kind @ 0..=7 => reads(rng, kind, table, other),
        kind @ (8..=12 | 16..=17) => updates(rng, kind, table, other),
        kind => inserts_or_deletes(rng, kind, table, other),
    }
}

fn reads(rng: &mut Rng, kind: u8, table: &Table, other: &Table) -> String {
    let name = &table.name;
    match kind {
        0..=2 => read(rng, table),
        3 => format!("SELECT x.v, x.c FROM {name} x WHERE {} FOR UPDATE", table.by_key(rng, "x")),
        4 => format!("SELECT count(*), sum(x.v) FROM {name} x WHERE {}", table.by_condition(rng, "x")),
        5 => format!("SELECT x.c, max(x.v) FROM {name} x GROUP BY x.c ORDER BY x.c"),
        6 => format!(
            "SELECT x.v, y.c FROM {name} x JOIN {} y ON x.c = y.c WHERE {}",
            other.name,
            table.condition(rng, "x")
        ),
        _ => {
            format!("SELECT coalesce(max(x.v), 0) AS v FROM {name} x WHERE {} \\gset", table.by_key(rng, "x"))
        }
    }
}

fn updates(rng: &mut Rng, kind: u8, table: &Table, other: &Table) -> String {
    let name = &table.name;
    match kind {
        8..=9 => format!("UPDATE {name} x SET v = :v + CAST(:n AS int) WHERE {}", table.by_key(rng, "x")),
        10 => format!("UPDATE {name} x SET v = (x.v + 1) % 100, c = :c WHERE {}", table.by_key(rng, "x")),
        11 => format!("UPDATE {name} x SET v = (x.v + 1) % 100 WHERE {}", table.by_condition(rng, "x")),
        12 => format!(
            "UPDATE {name} x SET v = (coalesce(x.v, 0) + y.v) % 100 FROM {} y WHERE x.c = y.c AND {}",
            other.name,
            table.by_key(rng, "x")
        ),
        16 => format!("UPDATE {name} x SET c = NULL WHERE {}", table.by_key(rng, "x")),
        _ => format!(
            "WITH w AS (UPDATE {name} x SET v = (x.v + 1) % 100 WHERE {} RETURNING x.v) SELECT count(*) FROM w",
            table.by_key(rng, "x")
        ),
    }
}

fn inserts_or_deletes(rng: &mut Rng, kind: u8, table: &Table, other: &Table) -> String {
    let (name, columns) = (&table.name, table.columns());
    match kind {
        13..=14 => format!(
            "INSERT INTO {name} AS x ({columns}, v, c) VALUES ({}, :n, :c) ON CONFLICT ({columns}) DO {}",
            table.values(rng),
            choice(rng, &["NOTHING", "UPDATE SET v = (x.v + excluded.v) % 100", "UPDATE SET c = excluded.c"])
        ),
        15 => format!("DELETE FROM {name} x WHERE {}", table.by_key(rng, "x")),
        18 => format!(
            "WITH w AS (DELETE FROM {name} x WHERE {} RETURNING x.*) INSERT INTO {} AS z ({}, v, c) SELECT {}, 1, 2 \
             FROM (SELECT count(*) FROM w) counted ON CONFLICT DO NOTHING",
            table.by_key(rng, "x"),
            other.name,
            other.columns(),
            other.values(rng)
        ),
        19 => format!("DELETE FROM {name} x WHERE x.v > 40 AND {}", table.by_condition(rng, "x")),
        20 => {
            let values = table.values(rng);
            format!(
                "DELETE FROM {name} WHERE ({columns}) = ({values});\n\
                 INSERT INTO {name} ({columns}, v, c) VALUES ({values}, 1, :c)"
            )
        }
        21 => table.copied(rng),
        22 => table.moved(rng),
        _ => table.merged(rng),
    }
}

/// A SELECT of rows by any condition.
fn read(rng: &mut Rng, table: &Table) -> String {
    let columns = table.columns().split(", ").map(|column| format!("x.{column}"));
    let columns = columns.collect::<Vec<String>>().join(", ");
    let order = match rng.u8(0..3) {
        0 => format!(" ORDER BY {columns} LIMIT {}", rng.u8(1..5)),
        1 => format!(" ORDER BY {columns}"),
        _ => String::new(),
    };
    format!("SELECT {columns}, x.v FROM {} x WHERE {}{order}", table.name, table.condition(rng, "x"))
}

/// Runs a workload. Fails with all that is needed to repeat it.
fn accuses_nobody(seed: u64) -> u64 {
    let (scene, workload) = (Scene::new(), Workload::new(seed));
    let line = workload.write(&scene, seed);
    let finished = scene.run(&words(&line));
    let told = || {
        let texts: Vec<&str> = workload.scripts.iter().map(|(text, _)| text.as_str()).collect();
        let scripts = texts.join("\n-- script\n");
        format!(
            "isobench {line}\n\n{}\n-- script\n{scripts}\n\n\
             repeat it: ISOBENCH_SEED={seed} cargo test -p isobench --test cli random_workloads\n\n{}\n{}",
            workload.setup, finished.stdout, finished.stderr
        )
    };
    assert_eq!(finished.status.code(), Some(0), "seed {seed}: {}", told());
    let document = document::read(&scene, "out.json");
    let mut dependencies = 0;
    for cell in cells(&document) {
        let verdict = &cell["rounds"][0]["verdict"];
        if verdict.is_null() {
            continue;
        }
        let kept = verdict["kept"] == true && verdict["withheld"] == Value::Array(Vec::new());
        assert!(kept, "seed {seed}: {verdict:#}\n{}", told());
        for kind in ["write_write", "write_read", "read_write"] {
            dependencies += count(verdict, &format!("/examined/{kind}"));
        }
    }
    if env::var_os("ISOBENCH_SEED").is_some() {
        println!("{}\n{document:#}", told());
    }
    dependencies
}

#[test]
fn random_workloads_accuse_nobody() {
    if !crate::support::has_postgresql("random_workloads_accuse_nobody") {
        return;
    }
    let number = |name| env::var(name).ok().map(|text: String| text.parse::<u64>().expect("a number"));
    let first = number("ISOBENCH_FIRST_SEED").unwrap_or(1);
    let minutes = number("ISOBENCH_MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
    let seeds = match (number("ISOBENCH_SEED"), minutes) {
        (Some(seed), _) => seed..=seed,
        (None, Some(_)) => first..=u64::MAX,
        (None, None) => first..=first + SEEDS * number("ISOBENCH_SEEDS").unwrap_or(1) - 1,
    };
    let (alone, began) = (seeds.start() == seeds.end(), Instant::now());
    let seeds = seeds.take_while(|_| minutes.is_none_or(|minutes| began.elapsed() < minutes));
    let mut run = 0_u64;
    let dependencies: u64 = seeds.inspect(|_| run += 1).map(accuses_nobody).sum();
    println!("{run} random workloads, {dependencies} dependencies");
    assert!(alone || dependencies > 100 * run, "hardly anything happened: {dependencies} dependencies");
}
