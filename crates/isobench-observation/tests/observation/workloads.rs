//! What is seen of the built-in workloads' and pgbench's own scripts.

use std::fmt::Write;
use std::path::Path;

use isobench_database::detect;
use isobench_observation::observe;
use isobench_script::{Symbols, builtins, parse};
use isobench_sql::Catalog;
use isobench_testkit::golden::expect;
use isobench_workloads::{all, find};

use crate::installed::{installed, load};

const PGBENCH: &str = "
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));";

#[test]
fn workloads_are_seen() {
    let Some((_server, mut connection)) = installed("workloads_are_seen") else { return };
    let database = detect(&mut connection).unwrap();
    connection.execute(PGBENCH).unwrap();
    let mut text = String::new();
    let catalog = load(&mut connection);
    for builtin in builtins() {
        write!(text, "{}", scripts(&catalog, &[(builtin.name.to_owned(), builtin.text.to_owned())])).unwrap();
    }
    for workload in all() {
        let variants = workload.variants.iter().map(|variant| format!("{}+{}", workload.name, variant.name));
        for name in [workload.name.to_owned()].into_iter().chain(variants) {
            let chosen = find(&name).unwrap();
            for statement in chosen.setup(&database).unwrap() {
                connection.execute(&statement).unwrap();
            }
            let catalog = load(&mut connection);
            let found: Vec<(String, String)> =
                chosen.scripts().into_iter().map(|script| (script.name, script.text)).collect();
            writeln!(text, "===== {name}\n").unwrap();
            text.push_str(&scripts(&catalog, &found));
        }
    }
    expect(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/workloads.txt"), &text);
}

/// What is seen of scripts that run together.
fn scripts(catalog: &Catalog, scripts: &[(String, String)]) -> String {
    let mut symbols = Symbols::new();
    let mut parsed: Vec<_> =
        scripts.iter().map(|(name, text)| parse(name, text, &mut symbols).unwrap()).collect();
    let observed = observe(&mut parsed, catalog);
    let mut text = String::new();
    let mut file = String::new();
    for statement in &observed.statements {
        if statement.file != file {
            writeln!(text, "--- {}", statement.file).unwrap();
            statement.file.clone_into(&mut file);
        }
        writeln!(text, "{}: {}", statement.line, statement.text).unwrap();
        for table in &statement.tables {
            let searched = if table.searched { ", searched" } else { "" };
            writeln!(text, "    {} {} {}: {}{searched}", table.access, table.table, table.key, table.order)
                .unwrap();
        }
        for dark in &statement.dark {
            writeln!(text, "    dark: {dark}").unwrap();
        }
    }
    for table in &observed.tables {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let state = if table.closed { "closed" } else { "open" };
        writeln!(text, "table {} {:?} {state} [{}]", table.name, table.key, columns.join(", ")).unwrap();
    }
    text.push('\n');
    text
}
