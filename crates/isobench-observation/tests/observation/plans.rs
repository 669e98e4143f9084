//! The plans of both forms on a server: statements whose plans would change with the columns that
//! show their rows are found, others are left alone; and a missing right is named.

use isobench_observation::{Dark, Plans};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_script::Slot;
use isobench_sql::Catalog;
use isobench_testkit::installed::{postgresql_programs, skip};

use crate::support;

const SCHEMA: &str = "
CREATE TABLE big (id int PRIMARY KEY, v int NOT NULL, name text NOT NULL);
CREATE INDEX big_v ON big (v);
INSERT INTO big SELECT g, g % 100, 'name ' || g FROM generate_series(1, 20000) AS g;
CREATE TABLE small (id int PRIMARY KEY, big_id int NOT NULL);
INSERT INTO small SELECT g, g FROM generate_series(1, 100) AS g;
CREATE TABLE inbox (id int PRIMARY KEY, text text);
CREATE ROLE writer LOGIN;
GRANT SELECT, UPDATE ON big TO writer;
GRANT INSERT ON inbox TO writer;
GRANT USAGE ON SCHEMA public TO writer";

/// A server with the tables, or `None` after reporting why the test is skipped.
fn server(test: &str) -> Option<Server> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let settings = vec![("autovacuum".to_owned(), "off".to_owned())];
    let options = ServerOptions { bin: Some(bin), settings, ..ServerOptions::default() };
    let server = Server::start(&options, &mut |_| {}).expect("the installed server starts");
    let mut connection = connect(&server, server.user());
    connection.execute(SCHEMA).unwrap();
    connection.execute("VACUUM ANALYZE").unwrap();
    Some(server)
}

fn connect(server: &Server, user: &str) -> Connection {
    let host = Host::unix(server.socket_dir(), server.port());
    Connection::open(&ConnectOptions::new(host, user, server.database())).unwrap()
}

fn load(connection: &mut Connection) -> Catalog {
    Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).unwrap()
}

/// The reason to send a statement as written, where it would be sent differently. All variables have
/// this value, or none.
fn reason(connection: &mut Connection, settings: &[&str], text: &str, value: Option<&str>) -> Option<Dark> {
    let catalog = load(connection);
    let seen = support::see(text, &catalog);
    let forms = seen.observed.forms.first().unwrap_or_else(|| panic!("{text} isn't sent differently"));
    let mut query =
        |sql: &str| connection.query(sql).map(|result| result.rows).map_err(|error| error.to_string());
    let mut plans = Plans::start(&mut query).unwrap();
    for setting in settings {
        plans.set(setting);
    }
    let found = plans.compare(forms, &|_: Slot| value.map(str::to_owned)).unwrap();
    plans.end().unwrap();
    found
}

#[test]
fn plans_that_would_change_are_found() {
    let Some(server) = server("plans_that_would_change_are_found") else { return };
    let connection = &mut connect(&server, server.user());
    let cases = [
        (
            "SELECT max(id) FROM big",
            Some("Seq Scan on big instead of Index Only Scan Backward using big_pkey on big"),
        ),
        (
            "SELECT min(v) FROM big WHERE id < 500",
            Some("using big_pkey on big instead of Index Scan using big_v"),
        ),
        (
            "SELECT min(id) FROM big WHERE name > 'a'",
            Some("Seq Scan on big instead of Index Scan using big_pkey"),
        ),
        ("SELECT count(*) FROM big WHERE v = 5", Some("Bitmap Heap Scan on big instead of Index Only Scan")),
        (
            "SELECT id FROM big WHERE id = 5",
            Some("Index Scan using big_pkey on big instead of Index Only Scan"),
        ),
        ("SELECT s.id FROM small s LEFT JOIN big b ON b.id = s.big_id", Some("instead of Seq Scan on small")),
        ("SELECT name FROM big WHERE id = :id", None),
        ("SELECT name FROM big WHERE id = :id FOR UPDATE", None),
        ("SELECT sum(v) FROM big WHERE name > 'name 5'", None),
        ("SELECT v, count(name) FROM big GROUP BY v", None),
        ("UPDATE big SET v = :v WHERE id = :id", None),
        ("UPDATE big SET v = :a + :b WHERE id = :id", None),
        ("INSERT INTO small VALUES (:id, :v) ON CONFLICT DO NOTHING", None),
        ("DELETE FROM small s USING big b WHERE b.id = s.big_id AND s.id = 5", None),
        ("WITH u AS (UPDATE big SET v = 1 WHERE id = :id RETURNING v) SELECT v FROM u", None),
        ("WITH u AS (UPDATE big SET v = 1 WHERE id = :id RETURNING v) SELECT 1 AS one", None),
    ];
    let mut failures = Vec::new();
    for (text, expected) in cases {
        for value in [Some("5"), None] {
            let found = reason(connection, &[], text, value);
            let agrees = match (&found, expected) {
                (None, None) => true,
                (Some(Dark::Plan { change }), Some(part)) => change.contains(part),
                _ => false,
            };
            if !agrees {
                failures.push(format!("{text}, variables {value:?}: {found:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn settings_of_the_script_count() {
    let Some(server) = server("settings_of_the_script_count") else { return };
    let connection = &mut connect(&server, server.user());
    let text = "SELECT id FROM big WHERE id = 5";
    assert!(matches!(reason(connection, &[], text, None), Some(Dark::Plan { .. })));
    assert_eq!(reason(connection, &["SET LOCAL enable_indexonlyscan = off"], text, None), None);
    // A setting that fails doesn't end the transaction.
    assert!(matches!(reason(connection, &["SET absent = 1"], text, None), Some(Dark::Plan { .. })));
}

#[test]
fn what_the_server_refuses_or_cannot_explain_is_sent_as_written() {
    let Some(server) = server("what_the_server_refuses_or_cannot_explain_is_sent_as_written") else { return };
    let owner = &mut connect(&server, server.user());
    let catalog = load(owner);
    let seen = support::see("UPDATE inbox SET text = 'a' WHERE id = 1", &catalog);
    let absent = support::see("UPDATE small SET big_id = absent WHERE id = :id", &catalog);
    owner.execute("GRANT SELECT (id), UPDATE ON inbox TO writer").unwrap();
    let mut writer = connect(&server, "writer");
    let mut query =
        |sql: &str| writer.query(sql).map(|result| result.rows).map_err(|error| error.to_string());
    let mut plans = Plans::start(&mut query).unwrap();
    let found = plans.compare(&seen.observed.forms[0], &|_| None).unwrap();
    let Some(Dark::Refused { why }) = found else { panic!("{found:?}") };
    assert!(why.contains("permission denied for table inbox"), "{why}");
    assert_eq!(plans.compare(&absent.observed.forms[0], &|_| None).unwrap(), Some(Dark::Unexplained));
    plans.end().unwrap();
}

#[test]
fn a_missing_right_is_named() {
    let Some(server) = server("a_missing_right_is_named") else { return };
    let catalog = load(&mut connect(&server, "writer"));
    let dark = |text: &str| {
        let seen = support::see(text, &catalog);
        let statement = &seen.observed.statements[0];
        (statement.rewritten, statement.dark.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let (rewritten, sentences) = dark("INSERT INTO inbox VALUES (1, 'a')");
    assert!(!rewritten);
    assert_eq!(sentences, ["table inbox isn't observed: showing its rows needs the SELECT right on it"]);
    assert_eq!(dark("UPDATE big SET v = 1 WHERE id = 1"), (true, Vec::new()));
}
