//! Servers that are no PostgreSQL: `CockroachDB` as recorded, and `H2` over the real protocol.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use isobench_testkit::scripted::ScriptedServer;

use crate::compare::words;
use crate::support::document::{self, cells, count, rounds};
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::skip;

fn on_scripted(scene: &Scene, script: &str, arguments: &[&str]) -> Finished {
    let server = ScriptedServer::start_unix(scene.folder(), script);
    let folder = scene.folder().display().to_string();
    let named = ["-h", &folder, "-p", "5432", "-U", "test", "-d", "test"];
    let finished = scene.run(&[arguments, &named[..]].concat());
    server.finish();
    finished
}

/// `CockroachDB` v20.1 runs everything at serializable: a database of our own is made, looked at, and removed.
const REFUSAL: &str = r#"
    == connect database=test
    > SELECT version()
    < row CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)
    == connect database=test
    > SELECT coalesce(comment, '') FROM [SHOW DATABASES WITH COMMENT] WHERE database_name = 'isobench'
    < columns comment
    > CREATE database isobench
    < tag CREATE DATABASE
    > COMMENT ON database isobench IS 'made by isobench; safe to drop'
    < tag COMMENT ON DATABASE
    > DROP database IF EXISTS isobench CASCADE
    < tag DROP DATABASE
    == connect database=isobench
    > SHOW CLUSTER SETTING sql.txn.read_committed_isolation.enabled
    < error XXUUU "unknown setting: \"sql.txn.read_committed_isolation.enabled\""
    > SHOW CLUSTER SETTING sql.txn.repeatable_read_isolation.enabled
    < error XXUUU "unknown setting: \"sql.txn.repeatable_read_isolation.enabled\""
    == connect database=isobench
    > SET default_transaction_isolation = 'serializable'
    < tag SET
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
    > SET default_transaction_isolation = 'read committed'
    < tag SET
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
"#;

#[test]
fn a_raised_level_is_refused_if_levels_are_strict() {
    let scene = Scene::new();
    let finished =
        on_scripted(&scene, REFUSAL, &["compare", "--levels", "ser,rc", "--strict-levels"]).expect(1);
    let finished = finished.says(&["working in database \"isobench\"", "run one at a time"]);
    finished.says(&["--strict-levels: read committed was asked for, but the server runs serializable"]);
}

/// One client, two transactions: conflicts at COMMIT and in a statement, a COMMIT that answers ROLLBACK.
const RETRIES: &str = r#"
    == connect database=test
    > SELECT version()
    < row CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)
    == connect database=test
    > SHOW CLUSTER SETTING sql.txn.read_committed_isolation.enabled
    < error XXUUU "unknown setting: \"sql.txn.read_committed_isolation.enabled\""
    > SHOW CLUSTER SETTING sql.txn.repeatable_read_isolation.enabled
    < error XXUUU "unknown setting: \"sql.txn.repeatable_read_isolation.enabled\""
    == connect database=test
    > SET default_transaction_isolation = 'read committed'
    < tag SET
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
    > begin;
    < tag BEGIN
    > update t set v = v + 1 where k = 1;
    < tag UPDATE 1
    > commit;
    < error 40001 "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE): \"sql txn\""
    > begin;
    < tag BEGIN
    > update t set v = v + 1 where k = 1;
    < error 40001 "restart transaction: TransactionRetryWithProtoRefreshError: WriteTooOldError: write at timestamp 1,0 too old; wrote at 1,1"
    > ROLLBACK
    < tag ROLLBACK
    > begin;
    < tag BEGIN
    > update t set v = v + 1 where k = 1;
    < tag UPDATE 1
    > commit;
    < tag COMMIT
    > begin;
    < tag BEGIN
    > update t set v = v + 1 where k = 1;
    < tag UPDATE 1
    > commit;
    < error 40003 "result is ambiguous (removing async checkpoint: context deadline exceeded)"
"#;

#[test]
fn conflicts_of_cockroachdb_are_retried_and_an_ambiguous_commit_is_not() {
    let scene = Scene::new();
    scene.write("add.sql", "begin;\nupdate t set v = v + 1 where k = 1;\ncommit;\n");
    let options = "run --isolation rc -f add.sql -t 2 --max-tries 5 --json out.json";
    let finished = on_scripted(&scene, RETRIES, &words(options));
    let level = "isolation level: read committed was asked for, but the server runs serializable";
    let reasons = ["40001 RETRY_SERIALIZABLE", "40001 WriteTooOldError"];
    let finished = finished.expect(0).prints(&[level]).prints(&reasons);
    let document = document::read(&scene, "out.json");
    assert_eq!(document["server"]["product"], "CockroachDB");
    let round = rounds(&document).next().expect("a round");
    let attempts = ["started", "committed", "retried", "ambiguous"];
    let attempts = attempts.map(|name| count(round, &format!("/attempts/{name}")));
    assert_eq!(attempts, [4, 1, 2, 1], "{}", finished.stdout);
    assert_eq!(cells(&document)[0]["level"]["effective"], "serializable");
}

/// A running `H2`, stopped when dropped.
struct H2 {
    process: Child,
    port: String,
}

impl Drop for H2 {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The jar named by `ISOBENCH_H2_JAR`, or the one in the local Maven repository.
fn jar() -> Option<PathBuf> {
    let named = std::env::var_os("ISOBENCH_H2_JAR").map(PathBuf::from);
    let in_repository = || {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".m2/repository/com/h2database/h2/2.4.240/h2-2.4.240.jar"))
    };
    named.or_else(in_repository).filter(|path| path.exists())
}

fn start_h2(test: &str, scene: &Scene) -> Option<H2> {
    let Some(jar) = jar() else {
        skip(test, "no H2 jar (ISOBENCH_H2_JAR, or com.h2database:h2:2.4.240 in the Maven repository)");
        return None;
    };
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let port = port.to_string();
    let started = Command::new("java")
        .arg("-cp")
        .arg(jar)
        .args(["org.h2.tools.Server", "-pg", "-pgPort", &port, "-ifNotExists", "-baseDir"])
        .arg(scene.folder())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut process) = started else {
        skip(test, "no Java");
        return None;
    };
    let mut line = String::new();
    let stdout = process.stdout.take().expect("a pipe");
    let h2 = H2 { process, port };
    // It says that it is running, once it listens.
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert!(line.contains("PG server running"), "{line}");
    Some(h2)
}

/// H2 knows neither END nor BEGIN ISOLATION LEVEL; its tables are made by a script.
#[test]
fn compare_on_h2() {
    let scene = Scene::new();
    let Some(h2) = start_h2("compare_on_h2", &scene) else { return };
    scene.write(
        "tables.sql",
        "drop table if exists counters;\n\
         create table counters (k int primary key, v int);\n\
         insert into counters values (1, 0), (2, 0);\n",
    );
    scene.write(
        "add.sql",
        "\\set k random(1, 2)\n\
         begin;\n\
         select v from counters where k = :k;\n\
         update counters set v = v + 1 where k = :k;\n\
         commit;\n",
    );
    let options = "compare --levels rc,rr,ser --clients 4 --setup tables.sql --workload add.sql --time 0.4 --warmup 0 \
                   --rounds 1 --json out.json -h 127.0.0.1 -U sa -d test --port";
    let mut command = scene.isobench(&[&words(options)[..], &[&h2.port]].concat());
    let finished = Running::start(command.env("PGPASSWORD", "sa")).finish().expect(0);
    let finished = finished.says(&["working in schema \"isobench\""]);
    let document = document::read(&scene, "out.json");
    assert_eq!(document["server"]["product"], "H2");
    for cell in cells(&document) {
        assert_eq!(cell["level"]["requested"], cell["level"]["effective"]);
        assert!(count(&cell["rounds"][0], "/transactions/committed") > 0, "{}", finished.stdout);
        assert_eq!(count(&cell["rounds"][0], "/attempts/errored"), 0);
    }
    assert!(
        cells(&document)[1]["rounds"][0]["conflicts"].to_string().contains("40001"),
        "{}",
        finished.stdout
    );
}
