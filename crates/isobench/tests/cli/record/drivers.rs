//! Drivers: the same small program returns the same with and without the recorder, and the capture has
//! its statements.

use std::path::{Path, PathBuf};
use std::process::Command;

use isobench_testkit::installed::python_with;

use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::skip;

const TABLES: &str = "create table item (id int primary key, name text, price numeric(10,2), code uuid, day date, ok \
    bool, weight float8, raw bytea); create table copied (id int, name text)";

/// Runs a driver's program without and with the recorder, on fresh tables.
fn compare(test: &str, program: &Path, arguments: &[&str]) {
    let Some(database) = Database::new(test) else { return };
    let scene = Scene::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/record/drivers");
    let arguments: Vec<String> =
        arguments.iter().map(|word| word.replace('@', &folder.to_string_lossy())).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (port, password) = database.tcp();
    let renew = || {
        let mut admin = database.connect();
        admin.execute("drop table if exists item, copied").expect("dropped");
        admin.execute(TABLES).expect("tables");
    };
    let environment =
        |command: &mut Command| {
            command
                .envs([("PGHOST", "127.0.0.1"), ("PGPORT", &port), ("PGDATABASE", &database.name)])
                .envs([("PGUSER", "postgres"), ("PGPASSWORD", &password), ("PYTHONDONTWRITEBYTECODE", "1")]);
        };
    renew();
    let mut direct = scene.program(program, &arguments);
    environment(&mut direct);
    let direct = Running::start(&mut direct).finish().expect(0);
    assert!(direct.stdout.contains("23505") && direct.stdout.contains("Ada's"), "{}", direct.stdout);
    renew();
    let mut recorded = scene.isobench(&["record", "--"]);
    recorded.arg(program).args(&arguments);
    environment(&mut recorded);
    let recorded = Running::start(&mut recorded).finish().expect(0);
    assert_eq!(recorded.stdout, direct.stdout);
    let shown = scene.run(&["record", "--show", "isobench.capture"]).expect(0).stdout;
    for expected in ["INSERT INTO item", "UPDATE item", "23505", "serializable", "It ended in order"] {
        // pgjdbc's program has no UPDATE.
        let missing = expected == "UPDATE item" && arguments.iter().any(|word| word.ends_with("Driver.java"));
        assert!(missing || shown.contains(expected), "\"{expected}\" is missing in\n{shown}");
    }
    assert!(!shown.contains("Not recorded"), "{shown}");
}

fn python(test: &str, module: &str, driver: &str) {
    match python_with(module) {
        Ok(python) => compare(test, &python, &["@/driver.py", driver]),
        Err(why) => skip(test, &why),
    }
}

#[test]
fn psycopg_3() {
    python("psycopg_3", "psycopg", "psycopg");
}

#[test]
fn psycopg_2() {
    python("psycopg_2", "psycopg2", "psycopg2");
}

#[test]
fn asyncpg() {
    python("asyncpg", "asyncpg", "asyncpg");
}

#[test]
fn pg8000() {
    python("pg8000", "pg8000", "pg8000");
}

#[test]
fn sqlalchemy() {
    python("sqlalchemy", "sqlalchemy", "sqlalchemy");
}

#[test]
fn pgjdbc() {
    let jar = "/usr/share/java/postgresql.jar";
    if !Path::new(jar).exists() {
        return skip("pgjdbc", "there is no pgjdbc (Debian: libpostgresql-jdbc-java)");
    }
    // A program in one file needs the compiler.
    if Command::new("javac").arg("-version").output().is_err() {
        return skip("pgjdbc", "there is no Java compiler");
    }
    compare("pgjdbc", &PathBuf::from("java"), &["-cp", jar, "@/Driver.java"]);
}

#[test]
fn ruby_pg() {
    if !Command::new("ruby").args(["-e", "require 'pg'"]).output().is_ok_and(|found| found.status.success()) {
        return skip("ruby_pg", "there is no Ruby with pg (Debian: ruby-pg)");
    }
    compare("ruby_pg", &PathBuf::from("ruby"), &["@/driver.rb"]);
}

/// `NODE_PATH` names the folder with node-postgres: .ci/nightly makes it, since it is neither a package of
/// Debian for this Node nor a wheel.
#[test]
fn node_postgres() {
    if std::env::var_os("NODE_PATH").is_none() {
        eprintln!("left to .ci/nightly: node_postgres: NODE_PATH names no folder with pg");
        return;
    }
    compare("node_postgres", &PathBuf::from("node"), &["@/driver.js"]);
}

#[test]
fn libpq() {
    let output = Command::new("pg_config").args(["--includedir", "--libdir"]).output();
    let folders = output.map(|found| String::from_utf8_lossy(&found.stdout).into_owned()).unwrap_or_default();
    let Some((headers, libraries)) = folders
        .trim_end()
        .split_once('\n')
        .filter(|(headers, _)| Path::new(headers).join("libpq-fe.h").exists())
    else {
        return skip("libpq", "there are no headers of libpq (Debian: libpq-dev)");
    };
    if Command::new("cc").arg("--version").output().is_err() {
        return skip("libpq", "there is no C compiler");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("driver");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/record/drivers/driver.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror", "-o"]).arg(&program).arg(source);
    compiler.arg(format!("-I{headers}")).arg(format!("-L{libraries}")).arg("-lpq");
    Running::start(&mut compiler).finish_as("the compiler").expect(0);
    compare("libpq", &program, &[]);
}

/// A program that .ci/nightly builds of the sources in drivers/, and names in this variable.
fn built(test: &str, variable: &str) {
    match std::env::var_os(variable) {
        Some(program) => compare(test, Path::new(&program), &[]),
        None => eprintln!("left to .ci/nightly: {test}: {variable} names no program"),
    }
}

#[test]
fn pgx() {
    built("pgx", "ISOBENCH_PGX");
}

#[test]
fn tokio_postgres() {
    built("tokio_postgres", "ISOBENCH_TOKIO_POSTGRES");
}
