//! Tests with a real PostgreSQL, started from the programs that `pg_config --bindir` specifies;
//! skipped if there are none.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use isobench_pgwire::{Connection, Error, Secret, SqlState, TransactionStatus, connect};
use isobench_testkit::installed::skip;

use crate::support::postgres::Server;

/// The authentication rules.
const RULES: &str = "local all postgres trust\nlocal all clear password\nlocal all hashed \
                     md5\nlocal all scrammed scram-sha-256\n";

#[test]
fn real_server() {
    match Server::start(RULES, &[], 5432) {
        Err(reason) => skip("real_server", &reason),
        Ok(server) => {
            authentication(&server);
            statements(&server);
            copying(&server);
            cancelling(&server);
            termination(&server);
            reports_like_psql(&server);
        }
    }
}

/// All four methods, with the right password and a wrong one.
fn authentication(server: &Server) {
    let mut admin = server.connection();
    admin
        .execute(
            "SET password_encryption = 'md5'; CREATE ROLE hashed LOGIN PASSWORD 'päss word';
             SET password_encryption = 'scram-sha-256'; CREATE ROLE scrammed LOGIN PASSWORD 'päss word';
             CREATE ROLE clear LOGIN PASSWORD 'päss word'",
        )
        .expect("roles");
    for user in ["clear", "hashed", "scrammed"] {
        let mut options = server.options(user);
        let missing = connect(&options).expect_err("no password");
        assert!(missing.needs_password(), "{missing}");
        options.password = Some(Secret::new("wrong"));
        let wrong = connect(&options).expect_err("a wrong password");
        assert_eq!(wrong.code(), Some(SqlState::INVALID_PASSWORD));
        let expected = format!("failed: FATAL:  password authentication failed for user \"{user}\"");
        assert!(wrong.to_string().ends_with(&expected), "{wrong}");
        options.password = Some(Secret::new("päss word"));
        let mut connection = Connection::open(&options).expect("the right password");
        assert_eq!(connection.value("SELECT current_user").expect("a value").as_deref(), Some(user));
        connection.close();
    }
    let mut options = server.options("postgres");
    "nosuch".clone_into(&mut options.dbname);
    let error = connect(&options).expect_err("no such database");
    assert!(error.to_string().ends_with("failed: FATAL:  database \"nosuch\" does not exist"), "{error}");
    assert_eq!(error.code(), Some(SqlState::INVALID_CATALOG_NAME));
}

fn statements(server: &Server) {
    let mut options = server.options("postgres");
    options.options = Some("-c search_path=isobench -c statement_timeout=5min".to_owned());
    options.application_name = Some("a test".to_owned());
    options.extra.push(("timezone".to_owned(), "Asia/Tokyo".to_owned()));
    let mut connection = Connection::open(&options).expect("a session");
    for (setting, expected) in
        [("search_path", "isobench"), ("application_name", "a test"), ("timezone", "Asia/Tokyo")]
    {
        let value = connection.value(&format!("SHOW {setting}")).expect("a value");
        assert_eq!(value.as_deref(), Some(expected));
    }
    assert!(connection.parameter("server_version").is_some());
    assert!(connection.cancel_token().pid() > 0);

    let completed =
        connection.execute("BEGIN; CREATE TEMP TABLE t (a int); INSERT INTO t VALUES (1), (NULL);");
    let tags: Vec<_> = completed.expect("done").into_iter().map(|completed| completed.tag).collect();
    assert_eq!(tags, ["BEGIN", "CREATE TABLE", "INSERT 0 2"]);
    assert_eq!(connection.transaction_status(), TransactionStatus::InTransaction);
    let rows = connection.query("SELECT a, 'ü' AS ö FROM t; ; UPDATE t SET a = 2").expect("rows");
    assert_eq!(rows.columns, ["a", "ö"]);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(rows.rows, [[text("1"), text("ü")], [None, text("ü")]]);
    let error = connection.execute("SELECT 1/0").expect_err("division by zero");
    assert_eq!(error.server().map(|error| error.message.as_str()), Some("division by zero"));
    assert_eq!(connection.transaction_status(), TransactionStatus::Failed);
    let error = connection.execute("SELECT 1").expect_err("the block has failed");
    assert_eq!(error.code(), Some(SqlState::IN_FAILED_SQL_TRANSACTION));
    connection.execute("ROLLBACK; DROP TABLE IF EXISTS nosuch").expect("a notice only");
    let notices = connection.take_notices();
    assert_eq!(notices[0].to_string(), "NOTICE:  table \"nosuch\" does not exist, skipping");
    // More than fits in any buffer.
    let long = connection.value("SELECT repeat('x', 1000000)").expect("a value").expect("not NULL");
    assert_eq!(long.len(), 1_000_000);
}

fn copying(server: &Server) {
    let mut connection = server.connection();
    connection.execute("CREATE TABLE c (a int PRIMARY KEY, b text)").expect("a table");
    let mut next = 0;
    let rows = connection.copy_in("COPY c FROM STDIN", &mut |out| {
        next += 1;
        out.extend_from_slice(format!("{next}\tfiller\n").as_bytes());
        next < 50_000
    });
    assert_eq!(rows.expect("copied"), 50_000);
    assert_eq!(connection.value("SELECT count(*) FROM c").expect("a value").as_deref(), Some("50000"));
    // An invalid row ends it, even if the data doesn't.
    let error = connection.copy_in("COPY c FROM STDIN", &mut |out| {
        out.extend_from_slice(b"1\tagain\n");
        true
    });
    let error = error.expect_err("a duplicate");
    assert_eq!(error.code(), Some(SqlState::UNIQUE_VIOLATION));
    assert!(error.server().is_some_and(|error| error.constraint.as_deref() == Some("c_pkey")));
    assert!(matches!(connection.copy_in("SELECT 1", &mut |_| false), Err(Error::NotCopyIn)));
    let error = connection.execute("COPY c FROM STDIN").expect_err("no data");
    assert_eq!(error.code(), Some(SqlState::QUERY_CANCELED));
    assert_eq!(connection.execute("COPY c TO STDOUT").expect("ignored")[0].rows(), Some(50_000));
    assert_eq!(connection.transaction_status(), TransactionStatus::Idle);
}

fn cancelling(server: &Server) {
    let mut connection = server.connection();
    let token = connection.cancel_token();
    let mut watcher = server.connection();
    let pid = token.pid();
    let canceller = std::thread::spawn(move || {
        // Cancelling too early would have no effect.
        let active =
            format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'PgSleep'");
        while watcher.value(&active).expect("a value").as_deref() != Some("1") {
            std::thread::sleep(Duration::from_millis(5));
        }
        token.cancel()
    });
    let error = connection.execute("SELECT pg_sleep(100)").expect_err("cancelled");
    assert_eq!(error.code(), Some(SqlState::QUERY_CANCELED));
    canceller.join().expect("no panic").expect("the request was taken");
    connection.execute("SELECT 1").expect("the session goes on");
}

fn termination(server: &Server) {
    let mut victim = server.connection();
    let pid = victim.cancel_token().pid();
    server.connection().execute(&format!("SELECT pg_terminate_backend({pid}, 5000)")).expect("terminated");
    let error = victim.execute("SELECT 1").expect_err("the session is gone");
    assert_eq!(error.code(), Some(SqlState::ADMIN_SHUTDOWN));
    assert!(error.is_connection_lost());
    assert!(victim.is_broken());
}

/// The text of errors with their position, for many queries, is the same as in psql.
fn reports_like_psql(server: &Server) {
    let psql = server.bin().join("psql");
    if !psql.exists() {
        skip("reports_like_psql", "no psql");
        return;
    }
    let mut queries = vec![
        "select foo".to_owned(),
        "select 1,\n  foo\nfrom x".to_owned(),
        "select 'äöü日本', foo".to_owned(),
        "select\t'a',\tfoo".to_owned(),
        "do $$ begin execute 'selec 1'; end $$".to_owned(),
        "select now(1)".to_owned(),
        "select 1/0".to_owned(),
        format!("select '{}', foo, '{}'", "日本".repeat(20), "語".repeat(20)),
    ];
    for before in (0..90).step_by(7) {
        for after in (0..90).step_by(11) {
            queries.push(format!("select '{}', foo, '{}'", "a".repeat(before), "b".repeat(after)));
        }
    }
    for length in 30..70 {
        queries.push(format!("select '{}', foo", "a".repeat(length)));
        queries.push(format!("select foo, '{}'", "a".repeat(length)));
        queries.push(format!("select '{}', foo, '{}'", "a".repeat(length), "b".repeat(40)));
    }
    // psql sends the semicolon too.
    for query in &mut queries {
        query.push(';');
    }
    let mut connection = server.connection();
    connection.execute("SET client_encoding = 'UTF8'").expect("an encoding");
    let ours: Vec<String> = queries
        .iter()
        .map(|sql| {
            let error = connection.execute(sql).expect_err("all have an error");
            error.server().expect("of the server").report(Some(sql))
        })
        .collect();
    let mut process = Command::new(psql)
        .args(["-X", "-q", "-U", "postgres", "-f", "-", "-d", "postgres", "-h"])
        .arg(server.folder())
        .env("PGCLIENTENCODING", "UTF8")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql starts");
    let mut stdin = process.stdin.take().expect("piped");
    let script: String = queries.join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = process.wait_with_output().expect("psql ends");
    writer.join().expect("no panic").expect("psql reads all");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let theirs: Vec<&str> = text
        .split("psql:<stdin>:")
        .skip(1)
        .map(|part| part.split_once(": ").map_or(part, |(_, report)| report).trim_end())
        .collect();
    assert_eq!(theirs.len(), ours.len(), "{text}");
    for ((ours, theirs), sql) in ours.iter().zip(&theirs).zip(&queries) {
        assert_eq!(ours, theirs, "{sql}");
    }
}
