//! Which levels the built-in workloads' scripts need, from their SQL.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use isobench_database::detect;
use isobench_observation::{Catalog, Templates, templates};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_robustness::{Promoted, Promoting, Promotion, Struck, allocate, promote};
use isobench_script::{Symbols, parse};
use isobench_testkit::golden::expect;
use isobench_testkit::installed::{postgresql_programs, skip};
use isobench_workloads::{all, find};

/// The most reads that are changed.
const MOST_CHANGES: usize = 2;

#[test]
fn workloads_need_levels() {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        return skip("workloads_need_levels", "no installed PostgreSQL (pg_config)");
    };
    let options = ServerOptions { bin: Some(bin), ..ServerOptions::default() };
    let server = Server::start(&options, &mut |_| {}).unwrap();
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let mut connection = Connection::open(&options).unwrap();
    let database = detect(&mut connection).unwrap();
    let mut text = String::new();
    for workload in all() {
        let chosen = find(workload.name).unwrap();
        for statement in chosen.setup(&database).unwrap() {
            connection.execute(&statement).unwrap();
        }
        let catalog = Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).unwrap();
        let mut symbols = Symbols::new();
        let parsed: Vec<_> = chosen
            .scripts()
            .iter()
            .map(|script| parse(&script.name, &script.text, &mut symbols).unwrap())
            .collect();
        let began = Instant::now();
        let found = templates(&parsed, &symbols, &catalog, &BTreeSet::new());
        writeln!(text, "===== {}\n{}", workload.name, described(&found)).unwrap();
        if std::env::var_os("ISOBENCH_TIMES").is_some() {
            println!("{}: {:?}", workload.name, began.elapsed());
        }
    }
    expect(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/templates.txt"), &text);
}

fn described(found: &Templates) -> String {
    let programs = &found.programs;
    let mut text = String::new();
    for statement in found.statements.iter().filter(|statement| statement.unknown.is_some()) {
        let why = statement.unknown.as_deref().unwrap_or_default();
        writeln!(text, "unknown: {} {why}: {}", statement.at, statement.text).unwrap();
    }
    let allocated = allocate(programs, &Struck::new());
    let levels = |levels: &[isobench_isolation::Level]| {
        let each = programs.iter().zip(levels).map(|(program, level)| format!("{}: {level}", program.name));
        each.collect::<Vec<_>>().join(", ")
    };
    let branches: Vec<usize> = programs.iter().map(|program| program.branches.len()).collect();
    writeln!(text, "branches {branches:?}\n{}", levels(&allocated.levels)).unwrap();
    for raised in &allocated.raised {
        write!(text, "at {}:\n{}", raised.lower, raised.objection.steps(programs)).unwrap();
    }
    let promoting = Promoting { most: MOST_CHANGES, struck: &Struck::new(), may: &|_| true };
    for Promoted { promotions, levels: with, .. } in promote(programs, &promoting) {
        let change = |promotion: &Promotion| format!("{:?} {}", promotion.change, promotion.at);
        let changes: Vec<String> = promotions.iter().map(change).collect();
        writeln!(text, "{} -> {}", changes.join(" + "), levels(&with)).unwrap();
    }
    text
}
