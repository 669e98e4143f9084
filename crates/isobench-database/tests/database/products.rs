//! Products that aren't installed, as scripted servers that replay recordings of them
//! (tests/scripts/).

use isobench_database::products::{POSTGRESQL, UNKNOWN};
use isobench_database::{
    Database, Error, InitOptions, InitProgress, Namespace, Pooling, detect, init, pooling, reset, settings,
};
use isobench_isolation::{EffectiveLevel, Level};
use isobench_pgwire::{Connection, Error as WireError};
use isobench_testkit::scripted::ScriptedServer;

fn start(script: &str) -> (ScriptedServer, Connection, Database) {
    let server = ScriptedServer::start(script);
    let mut conn = Connection::open(&server.options()).unwrap();
    let db = detect(&mut conn).unwrap();
    (server, conn, db)
}

/// The reason that the product's rules give for a statement's error.
fn reason(conn: &mut Connection, db: &Database, sql: &str) -> Option<String> {
    match conn.execute(sql).unwrap_err() {
        WireError::Server(error) => db.product.conflict(&error).map(|conflict| conflict.reason.into_owned()),
        other => panic!("{other}"),
    }
}

#[test]
fn cockroachdb_raises_levels_and_reports_conflicts() {
    let (server, mut conn, db) = start(include_str!("../scripts/cockroachdb-levels.txt"));
    assert_eq!((db.product.name, db.version.as_str()), ("CockroachDB", "v20.1.5"));
    db.product.apply_level(&mut conn, Level::ReadCommitted).unwrap();
    let level = db.product.read_effective(&mut conn).unwrap();
    assert_eq!(level, EffectiveLevel::Standard(Level::Serializable));
    assert!(level.differs_from(Level::ReadCommitted));

    conn.execute("begin").unwrap();
    let update = "update t set v=v+1 where k=1";
    assert_eq!(reason(&mut conn, &db, update).as_deref(), Some("WriteTooOldError"));
    assert_eq!(reason(&mut conn, &db, "select 1"), None, "25P02 is a consequence");
    assert_eq!(conn.execute("commit").unwrap()[0].tag, "ROLLBACK");
    conn.execute("begin").unwrap();
    assert_eq!(reason(&mut conn, &db, "commit").as_deref(), Some("RETRY_SERIALIZABLE"));
    conn.execute("begin").unwrap();
    assert_eq!(reason(&mut conn, &db, update).as_deref(), Some("ABORT_REASON_PUSHER_ABORTED"));
    conn.execute("rollback").unwrap();
    let settings = settings(&mut conn, &db).unwrap();
    assert!(settings.values.is_empty());
    assert!(settings.note.unwrap().starts_with("sql.txn.read_committed_isolation.enabled can't be read"));
    conn.close();
    server.finish();
}

#[test]
fn cockroachdb_load_is_tried_again() {
    let (server, mut conn, db) = start(include_str!("../scripts/cockroachdb-init.txt"));
    let opts = InitOptions { steps: "dtGvpf".parse().unwrap(), ..InitOptions::default() };
    let mut said = Vec::new();
    let timings =
        init(&mut conn, &db, &InitOptions { steps: "dtg".parse().unwrap(), ..opts.clone() }, &mut |p| {
            if !matches!(p, InitProgress::Rows { .. }) {
                said.push(format!("{p:?}"));
            }
        })
        .unwrap();
    assert_eq!(timings.steps.len(), 3);
    assert_eq!(said.len(), 3, "{said:?}");
    let timings = init(&mut conn, &db, &InitOptions { steps: "vpf".parse().unwrap(), ..opts }, &mut |p| {
        said.push(format!("{p:?}"));
    })
    .unwrap();
    // Only the foreign keys need an action there.
    assert_eq!(timings.steps.len(), 1);
    assert!(said[3].starts_with("Note(\"no vacuum on CockroachDB"), "{said:?}");
    conn.close();
    server.finish();
}

#[test]
fn cockroachdb_before_schemas_gets_a_database() {
    let server = ScriptedServer::start(include_str!("../scripts/cockroachdb-namespace.txt"));
    let db = Database::from_version_text("CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)");
    let namespace = Namespace::claim(&server.options(), &db).unwrap();
    let line = namespace.describe();
    assert!(line.starts_with("working in database \"isobench\""), "{line}");
    assert!(line.contains("run one at a time"), "{line}");
    let conn = namespace.connector().open().unwrap();
    conn.close();
    namespace.release().unwrap();
    server.finish();
}

#[test]
fn yugabytedb_reports_its_effective_level() {
    let (server, mut conn, db) = start(include_str!("../scripts/yugabytedb.txt"));
    assert_eq!((db.product.name, db.version.as_str()), ("YugabyteDB", "2.13.0.0-b0"));
    db.product.apply_level(&mut conn, Level::ReadCommitted).unwrap();
    let level = db.product.read_effective(&mut conn).unwrap();
    assert_eq!(level, EffectiveLevel::Standard(Level::RepeatableRead));
    let level = db.product.read_effective(&mut conn).unwrap();
    assert_eq!(level, EffectiveLevel::Unknown, "a version without the function can't tell");

    let update = "update t set v=v+1 where k=1";
    let mut next = || reason(&mut conn, &db, update);
    assert_eq!(next().as_deref(), Some("conflicts with higher priority transaction"));
    assert_eq!(next().as_deref(), Some("restart read required"));
    assert_eq!(next().as_deref(), Some("expired or aborted by a conflict"));
    assert_eq!(next().as_deref(), Some("restart read required"));
    assert_eq!(next(), None);
    let note = reset(&mut conn, &db, &InitOptions::default()).unwrap();
    assert_eq!(note.notes, ["the statistics could not be refreshed: ANALYZE is not supported here"]);
    conn.close();
    server.finish();
}

#[test]
fn aurora_dsql_has_one_level_and_reports_conflicts_at_commit() {
    let (server, mut conn, db) = start(include_str!("../scripts/aurora-dsql.txt"));
    assert_eq!((db.product.name, db.version.as_str()), ("Aurora DSQL", "16"));
    // Nothing is sent: it refuses to set even the level that it has.
    db.product.apply_level(&mut conn, Level::Serializable).unwrap();
    let level = db.product.read_effective(&mut conn).unwrap();
    assert_eq!(level, EffectiveLevel::Standard(Level::RepeatableRead));
    assert!(level.differs_from(Level::Serializable) && !level.differs_from(Level::RepeatableRead));
    for expected in ["data conflict (OC000)", "schema conflict (OC001)"] {
        conn.execute("begin").unwrap();
        conn.execute("update t set v=v+1 where k=1").unwrap();
        assert_eq!(reason(&mut conn, &db, "commit").as_deref(), Some(expected));
    }
    assert_eq!(reason(&mut conn, &db, "insert into t select 1"), None, "a limit is no conflict");
    conn.close();
    server.finish();
}

/// A server that calls itself as shortly, but isn't Aurora DSQL.
#[test]
fn a_short_version_text_is_asked_about() {
    let script = "== connect\n> SELECT version()\n< row PostgreSQL 16\n> SELECT sys.dsql_major_version()\n\
        < error 3F000 \"schema \\\"sys\\\" does not exist\"\n";
    let (server, conn, db) = start(script);
    assert_eq!((db.product.name, db.version.as_str()), ("PostgreSQL", "16"));
    conn.close();
    server.finish();
}

/// Like `PGlite`'s socket server, which names the same process to all of its clients.
#[test]
fn a_proxy_with_one_session_for_all_is_recognised() {
    let session = "== connect database=test\n> SELECT pg_catalog.pg_backend_pid()\n< row 42\n";
    let server = ScriptedServer::start(&session.repeat(2));
    assert_eq!(pooling(&server.options(), &POSTGRESQL).unwrap(), Pooling::Transactions);
    server.finish();
    let server = ScriptedServer::start(&session.repeat(2));
    let db = Database::from_version_text("PostgreSQL 18.6 (PGlite 0.5.14) on wasm32-unknown-emscripten");
    let error = Namespace::claim(&server.options(), &db).unwrap_err();
    assert!(matches!(error, Error::Pooled), "{error}");
    server.finish();
}

/// The conversation with a product whose sessions have no names.
const NAMELESS: &str = "== connect database=test\n> SELECT pg_backend_pid()\n< error 42883 \"no such function\"\n\
    > BEGIN\n< tag BEGIN\n> ROLLBACK\n< tag ROLLBACK\n";
/// Its other session isn't in that transaction.
const ALONE: &str = "== connect database=test\n> SELECT 1\n< row 1\n";
/// The query for the mark.
const MARKED: &str = "> SELECT CASE WHEN EXISTS (SELECT 1 FROM information_schema.tables WHERE lower(table_schema) = \
    'isobench' AND lower(table_name) = 'safe_to_drop') THEN 'made by isobench; safe to drop' ELSE '' END FROM \
    information_schema.schemata WHERE lower(schema_name) = 'isobench'\n< columns mark\n";
const MADE: &str = "> CREATE schema isobench\n< tag CREATE SCHEMA\n> CREATE TABLE isobench.safe_to_drop (made int)\n\
    < tag CREATE TABLE\n";
const OURS: &str = "< row made by isobench; safe to drop\n";

/// What becomes of a schema on an unknown product after this conversation of the administrative session.
fn claimed(administration: &str) -> Result<(), Error> {
    let server =
        ScriptedServer::start(&format!("{NAMELESS}{ALONE}== connect database=test\n{administration}"));
    let db = Database::from_version_text("Sample 1.0");
    let claimed = Namespace::claim(&server.options(), &db).and_then(Namespace::release);
    server.finish();
    claimed
}

#[test]
fn the_schema_of_an_unknown_product_is_marked_by_a_table() {
    let removed = "> DROP schema IF EXISTS isobench CASCADE\n< tag DROP SCHEMA\n";
    claimed(&format!("{MARKED}{MADE}{MARKED}{OURS}{MARKED}{OURS}{removed}")).unwrap();
    // A user's own schema is left alone.
    let error = claimed(&format!("{MARKED}< row \n")).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    // Nobody would remove a schema later whose mark the server doesn't show.
    let dropped =
        "> DROP TABLE isobench.safe_to_drop\n< tag DROP TABLE\n> DROP schema isobench\n< tag DROP SCHEMA\n";
    let error = claimed(&format!("{MARKED}{MADE}{MARKED}{dropped}")).unwrap_err();
    assert!(error.to_string().contains("doesn't show schema \"isobench\""), "{error}");
}

/// The second session is in the first one's transaction, though neither has a name.
#[test]
fn a_proxy_with_one_transaction_for_all_is_recognised() {
    let shared = "== connect database=test\n> SELECT 1\n< tag BEGIN\n";
    let server = ScriptedServer::start(&format!("{NAMELESS}{shared}"));
    assert_eq!(pooling(&server.options(), &UNKNOWN).unwrap(), Pooling::Transactions);
    server.finish();
}
