//! `isobench record`: real clients through the recorder behave as without it, and the capture has what
//! they sent.

mod drivers;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use isobench_testkit::installed;
use rustix::process::Signal;

use crate::encrypted;
use crate::support::named::Database;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::{has_postgresql, skip, wait_for};

/// True if psql is in the search path; if not, says that the test is skipped.
fn has_psql(test: &str) -> bool {
    let found = Command::new("psql").arg("--version").output().is_ok();
    if !found {
        skip(test, "psql isn't installed");
    }
    found
}

/// A database of the test, if there are a server and psql.
fn database(test: &str) -> Option<(Scene, Database)> {
    let database = has_psql(test).then(|| Database::new(test))??;
    Some((Scene::new(), database))
}

/// Records a command, with options before it.
fn record(scene: &Scene, database: &Database, options: &[&str], command: &[&str]) -> Finished {
    let mut program = database.isobench(scene, &["record"]);
    program.args(options).arg("--").args(command);
    Running::start(&mut program).finish()
}

/// What `--show` prints of the usual capture.
fn shown(scene: &Scene) -> String {
    scene.run(&["record", "--show", "isobench.capture"]).expect(0).stdout
}

/// By a Unix socket a server may take whoever connects for the user that runs the recorder.
#[test]
fn another_user_does_not_come_in_through_the_recorder() {
    let test = "another_user_does_not_come_in_through_the_recorder";
    let Some((scene, database)) = database(test) else { return };
    if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        return skip(test, "only root can be another user");
    }
    let command =
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "psql", "-c", "select 1"];
    let refused = record(&scene, &database, &[], &command).expect(2);
    refused.says(&["this client is another user's", "0 statements of 1 session"]);
    record(&scene, &database, &["-o", "own.capture"], &["psql", "-c", "select 1"]).expect(0);
}

#[test]
fn an_application_is_led_to_the_recorder_and_its_status_is_passed_on() {
    let test = "an_application_is_led_to_the_recorder_and_its_status_is_passed_on";
    let Some((scene, database)) = database(test) else { return };
    let script = "psql -Atc \"select 'by variables', 7 /* here */\"; psql \"$DATABASE_URL\" -Atc \"select 'by URL'\"; \
        psql -c 'select 1/0'; psql -c \"create role \\\"$PGDATABASE\\\" password 'geheim'\"; exit 5";
    let recorded = record(&scene, &database, &[], &["sh", "-c", script]).expect(5);
    let recorded = recorded.prints(&["by variables|7", "by URL", "CREATE ROLE"]);
    recorded.says(&["division by zero", "isobench: 4 statements of 4 sessions in \"isobench.capture\""]);
    let mode = fs::metadata(scene.file("isobench.capture")).expect("a capture").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = shown(&scene);
    for expected in ["It ended in order", "4 sessions, 0 of them encrypted", "22012", " SELECT ?, ?\n"] {
        assert!(text.contains(expected), "\"{expected}\" is missing in\n{text}");
    }
    let capture = scene.read("isobench.capture");
    assert!(
        capture.contains("/* here */") && capture.contains("by variables") && !capture.contains("geheim")
    );
    // It is never overwritten, and nothing is started then.
    let again = record(&scene, &database, &[], &["touch", "started"]).expect(1);
    again.says(&["\"isobench.capture\" exists"]);
    assert!(!scene.file("started").exists());
}

#[test]
fn a_redacted_capture_has_no_text() {
    let Some((scene, database)) = database("a_redacted_capture_has_no_text") else { return };
    let sql = "select 'Ada' as name, 7 as number; select x'Ada'; select 'a'::int";
    record(&scene, &database, &["--redact"], &["psql", "-c", sql]).expect(1);
    let capture = scene.read("isobench.capture");
    assert!(!capture.contains("Ada") && capture.contains("\"7\"") && capture.contains("22P02"), "{capture}");
    assert!(shown(&scene).contains("Redacted: "));
}

#[test]
fn pgbench_runs_in_all_protocols_and_the_capture_has_its_transactions() {
    let test = "pgbench_runs_in_all_protocols_and_the_capture_has_its_transactions";
    let Some((scene, database)) = database(test) else { return };
    let Ok((pgbench, _)) = installed::pgbench() else { return skip(test, "there is no pgbench") };
    let pgbench = pgbench.to_string_lossy().into_owned();
    record(&scene, &database, &["-o", "init.capture"], &[&pgbench, "-i", "-q"]).expect(0);
    for protocol in ["simple", "extended", "prepared"] {
        let name = format!("{protocol}.capture");
        let command = [&pgbench, "-n", "-c", "4", "-j", "2", "-t", "50", "-M", protocol];
        let recorded = record(&scene, &database, &["-o", &name], &command.map(|word| word)).expect(0);
        recorded.prints(&["number of transactions actually processed: 200/200"]);
        let text = scene.run(&["record", "--show", &name]).expect(0).stdout;
        assert!(text.contains("BEGIN 200, COMMIT 200"), "{text}");
        assert!(text.contains("      200  UPDATE pgbench_accounts SET abalance = abalance + "), "{text}");
        assert!(!text.contains("Not recorded"), "{text}");
    }
    assert_eq!(database.value("select count(*) from pgbench_history"), "600");
}

#[test]
fn copy_and_cancel_work_through_it() {
    let Some((scene, database)) = database("copy_and_cancel_work_through_it") else { return };
    database.connect().execute("create table t (a int, b text)").expect("a table");
    let lines: Vec<String> = (0..20_000).map(|number| format!("{number}\tline {number}\n")).collect();
    let lines = lines.concat();
    scene.write("lines.txt", &lines);
    let script = "psql -c '\\copy t from lines.txt' && psql -c '\\copy t to copied.txt'; \
        psql -c 'select pg_sleep(1000)' & slow=$!; \
        until [ \"$(psql -Atc \"select count(*) from pg_stat_activity where query = 'select pg_sleep(1000)' \
            and state = 'active'\")\" = 1 ]; do :; done; kill -INT $slow; wait $slow";
    record(&scene, &database, &[], &["sh", "-c", script])
        .expect(1)
        .prints(&["COPY 20000"])
        .says(&["canceling statement due to user request"]);
    assert_eq!(scene.read("copied.txt"), lines);
    let text = shown(&scene);
    assert!(text.contains("57014") && text.contains("COPY t FROM STDIN"), "{text}");
    assert!(!scene.read("isobench.capture").contains("line 77"), "COPY data isn't recorded");
}

#[test]
fn a_session_that_the_server_ends_gets_the_servers_error() {
    let Some((scene, database)) = database("a_session_that_the_server_ends_gets_the_servers_error") else {
        return;
    };
    let sql = ["-c", "begin", "-c", "select pg_terminate_backend(pg_backend_pid())", "-c", "commit"];
    let command: Vec<&str> = std::iter::once("psql").chain(sql).collect();
    record(&scene, &database, &[], &command)
        .expect(2)
        .says(&["terminating connection due to administrator command", "server closed the connection"]);
    assert!(shown(&scene).contains("57P01"));
}

#[test]
fn commits_fail_if_asked_for() {
    let Some((scene, database)) = database("commits_fail_if_asked_for") else { return };
    database.connect().execute("create table t (a int)").expect("a table");
    let sql =
        ["-c", "begin", "-c", "insert into t values (1)", "-c", "commit", "-c", "insert into t values (2)"];
    let command: Vec<&str> = std::iter::once("psql").chain(sql).collect();
    record(&scene, &database, &["--inject", "40001:1"], &command)
        .expect(0)
        .says(&["could not serialize access", "isobench record --inject"]);
    assert_eq!(database.value("select string_agg(a::text, ',') from t"), "2", "it was rolled back");
    assert!(shown(&scene).contains("40001 (1 injected)"));
    let wrong = record(&scene, &database, &["--inject", "40001"], &["true"]).expect(1);
    wrong.says(&["expected SQLSTATE:PROBABILITY"]);
}

#[test]
fn passwords_and_encryption_work_without_the_recorder_knowing() {
    let test = "passwords_and_encryption_work_without_the_recorder_knowing";
    if !has_postgresql(test) || !has_psql(test) {
        return;
    }
    let scene = Scene::new();
    let server = encrypted::start();
    let password = server.password().expect("a password");
    for (mode, encrypted, method) in
        [("disable", 0, "scram-sha-256"), ("prefer", 1, "scram-sha-256"), ("require", 1, "scram-sha-256")]
    {
        let name = format!("{mode}.capture");
        let place = format!(
            "host=127.0.0.1 port={} user={} dbname={} sslmode={mode}",
            server.port(),
            server.user(),
            server.database()
        );
        let sql = "select 'encrypted ' || ssl::text from pg_stat_ssl where pid = pg_backend_pid()";
        let mut command = scene.isobench(&["record", "-o", &name, "-d", &place, "--", "psql", "-Atc", sql]);
        let answer = format!("encrypted {}", if encrypted == 1 { "true" } else { "false" });
        Running::start(command.env("PGPASSWORD", password)).finish().expect(0).prints(&[&answer]);
        let text = scene.run(&["record", "--show", &name]).expect(0).stdout;
        assert!(text.contains(&format!("1 sessions, {encrypted} of them encrypted")), "{method}: {text}");
        assert!(!scene.read(&name).contains(password));
        // A wrong one is refused by the server.
        let wrong = format!("wrong-{name}");
        let mut command =
            scene.isobench(&["record", "-o", &wrong, "-d", &place, "--", "psql", "-c", "select 1"]);
        let refused = Running::start(command.env("PGPASSWORD", "wrong")).finish().expect(2);
        refused.says(&["password authentication failed"]);
    }
}

#[test]
fn without_a_command_it_listens_until_it_is_interrupted() {
    let Some((scene, database)) = database("without_a_command_it_listens_until_it_is_interrupted") else {
        return;
    };
    let folder = scene.file("sockets");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("chmod");
    let mut command = database.isobench(&scene, &["record", "--listen", "./sockets"]);
    let running = Running::start(&mut command);
    running.wait_for_stderr("recording at");
    let host = folder.to_string_lossy().into_owned();
    let user = &database.server_options()[5];
    let arguments = ["-h", &host, "-U", user, "-d", &database.name, "-Atc", "select 'through a socket'"];
    let answered = Running::start(&mut scene.program(&PathBuf::from("psql"), &arguments)).finish().expect(0);
    answered.prints(&["through a socket"]);
    running.signal(Signal::INT);
    running.finish().expect(0).says(&["1 statement of 1 session"]);
    assert!(!folder.join(".s.PGSQL.5432").exists(), "the socket is removed");
}

#[test]
fn signals_reach_the_application() {
    let Some((scene, database)) = database("signals_reach_the_application") else { return };
    let script = "trap 'exit 7' TERM; touch ready; while :; do sleep 0.05; done";
    let mut command = database.isobench(&scene, &["record"]);
    command.args(["--", "sh", "-c", script]);
    let running = Running::start(&mut command);
    wait_for("the application", || scene.file("ready").exists().then_some(()));
    running.signal(Signal::TERM);
    running.finish().expect(7);
}

#[test]
fn wrong_uses_are_refused_before_anything_is_made() {
    let scene = Scene::new();
    let server = ["-h", "127.0.0.1", "-p", "1"];
    for (words, message) in [
        (&["record", "--", "true"][..], "record needs the server"),
        (&["record", "-h", "127.0.0.1"], "what is to be recorded?"),
        (&["record", "-h", "127.0.0.1", "--", "no-such-program"], "there is no program \"no-such-program\""),
        (&["record", "-h", "127.0.0.1", "--listen", "6432"], "neither an address and a port"),
        (&["record", "-d", "host=a target_session_attrs=primary", "--", "true"], "name the one server"),
        (&["record", "--show", "missing"], "No such file"),
        (&["record", "--from-log", "missing"], "could not read"),
    ] {
        scene.run(words).expect(1).says(&[message]);
    }
    assert!(!scene.file("isobench.capture").exists());
    // Without a server the application gets an error of the protocol.
    let words: Vec<&str> =
        ["record"].into_iter().chain(server).chain(["--", "psql", "-c", "select 1"]).collect();
    if has_psql("wrong_uses_are_refused_before_anything_is_made") {
        scene.run(&words).expect(2).says(&["isobench record: connection to server", "Connection refused"]);
    }
}

/// A log doesn't say what was read, so that the sum that an application wrote may come from that.
#[test]
fn what_was_computed_from_reads_that_are_not_in_the_log_is_not_called_safe() {
    let Some(scene) = Scene::with_server("what_was_computed_from_reads_that_are_not_in_the_log") else {
        return;
    };
    let transactions = (0..40).flat_map(|number| {
        let statements = [
            "BEGIN".to_owned(),
            format!("SELECT v FROM t WHERE id = {}", number % 4),
            format!("UPDATE t SET v = {} WHERE id = {}", number + 1, number % 4),
            "COMMIT".to_owned(),
        ];
        statements.into_iter().enumerate().map(move |(step, sql)| {
            format!(
                "{{\"timestamp\":\"2026-11-26 10:00:{number:02}.00{step} UTC\",\"user\":\"ada\",\"dbname\":\"shop\",\
                 \"pid\":7,\"session_id\":\"65a.7\",\"line_num\":{},\"error_severity\":\"LOG\",\
                 \"message\":\"duration: 0.1 ms  statement: {sql}\",\"backend_type\":\"client backend\"}}\n",
                number * 4 + step + 1
            )
        })
    });
    scene.write("log.json", &transactions.collect::<String>());
    scene.write(
        "setup.sql",
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT id, 0 FROM generate_series(0, 3) id;\n",
    );
    scene.run(&["record", "--from-log", "log.json"]).expect(0);
    let advise =
        ["advise", "isobench.capture", "--setup", "setup.sql", "--no-measure", "--details", "--try", "1"];
    scene.run(&advise).expect(0).prints(&[
        "repeatable read  proved; may be unsafe at read committed",
        "known what the values that it writes are computed from",
        "+SELECT v FROM t WHERE id = :i_id FOR NO KEY UPDATE;",
    ]);
}

#[test]
fn a_servers_log_becomes_a_capture() {
    let Some(scene) = Scene::with_server("a_servers_log_becomes_a_capture") else { return };
    let line = |number: u32, message: &str| {
        format!(
            "2026-11-26 10:00:0{number}.000 UTC,\"ada\",\"shop\",7,\"[local]\",65a.7,{number},\"idle\",2026-11-26 09:59:59 UTC,\
             3/2,0,LOG,00000,\"{message}\",,,,,,,,,\"app\",\"client backend\",,0\n"
        )
    };
    let messages = ["BEGIN", "UPDATE t SET v = v + 1 WHERE id = 1", "COMMIT"];
    let log = (1..).zip(messages).map(|(number, sql)| line(number, &format!("statement: {sql}")));
    scene.write("log.csv", &log.collect::<String>());
    scene.run(&["record", "--from-log", "log.csv"]).expect(0).says(&["3 statements of 1 session"]);
    let text = shown(&scene);
    assert!(
        text.contains("from the server's log, without results") && text.contains("shop as ada, app"),
        "{text}"
    );
    // What isn't in the log isn't compared.
    scene.write("setup.sql", "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0);\n");
    let scripts = scene.run(&["scripts", "isobench.capture", "-o", "scripts", "--setup", "setup.sql"]);
    let deviation = "deviate from the record by at most 0 %. A server's log doesn't say how many rows";
    scripts.expect(0).prints(&["Replayed 1 transactions", deviation]);
}
