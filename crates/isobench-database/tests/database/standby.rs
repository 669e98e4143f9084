//! A hot standby: its recognition, and the errors of sessions that conflict with its recovery.

use std::thread;

use isobench_database::wal::{WalError, WalReader};
use isobench_database::{Connector, Database, detect, is_standby};
use isobench_pgwire::{ConnectOptions, Connection, Error};
use isobench_testkit::scripted::ScriptedServer;
use isobench_testkit::standby::{Standby, until};

use crate::support;

/// Reason and code of a conflict, and whether it ended the session.
fn conflict(db: &Database, met: Result<(), Error>) -> Option<(String, String, bool)> {
    let Err(Error::Server(error)) = met else { return None };
    let reason = db.product.conflict(&error)?.reason.into_owned();
    Some((reason, error.code.to_string(), error.is_fatal()))
}

#[test]
fn a_standby_is_recognised_and_its_recovery_conflicts_are_distinguished() {
    let test = "a_standby_is_recognised_and_its_recovery_conflicts_are_distinguished";
    let Some((server, bin)) = support::postgresql(test) else { return };
    let mut primary = Connection::open(&support::options(&server, server.database())).unwrap();
    primary.execute("create table t as select k from generate_series(1, 1000) as numbers(k)").unwrap();
    let standby =
        Standby::start(&bin, server.socket_dir(), server.port(), &["max_standby_streaming_delay=0"]);
    standby.catch_up();
    let db = detect(&mut primary).unwrap();
    assert!(!is_standby(&mut primary, &db).unwrap());
    let (mut sleeper, mut idler, mut watcher) = (standby.connect(), standby.connect(), standby.connect());
    assert!(is_standby(&mut watcher, &db).unwrap());
    let there = Connector::direct(ConnectOptions::new(standby.host(), server.user(), server.database()));
    let unread = WalReader::try_out(&there, &db).unwrap_err();
    assert!(matches!(unread, WalError::Standby), "{unread}");

    // Both have a snapshot that needs the rows which the primary removes; one is executing a
    // statement, the other one is idle in its transaction.
    idler.execute("begin isolation level repeatable read; select count(*) from t").unwrap();
    let sleeping = thread::spawn(move || {
        let sql = "begin isolation level repeatable read; select count(*) from t; select pg_sleep(600)";
        sleeper.execute(sql).map(drop)
    });
    until("it sleeps", || {
        let question = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        match watcher.value(question) {
            Ok(Some(count)) if count == "1" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    primary.execute("delete from t").unwrap();
    primary.execute("vacuum t").unwrap();
    let cancelled = conflict(&db, sleeping.join().unwrap());
    assert_eq!(cancelled, Some(("recovery conflict".to_owned(), "40001".to_owned(), false)));
    standby.catch_up();
    let ended = conflict(&db, idler.execute("select count(*) from t").map(drop));
    assert_eq!(ended, Some(("recovery conflict".to_owned(), "40001".to_owned(), true)));

    // The reason why no level above repeatable read is measured there.
    watcher.execute("set default_transaction_isolation = 'serializable'").unwrap();
    let refused = watcher.execute("select 1").unwrap_err();
    assert_eq!(refused.code().unwrap().as_str(), "0A000");
}

#[test]
fn others_are_asked_only_if_they_may_be_standbys() {
    let script = "
        == connect
        > SELECT pg_catalog.pg_is_in_recovery()
        < row t
        == connect
        ! parameter in_hot_standby=off
        == connect
        ! no key";
    let server = ScriptedServer::start(script);
    let postgresql = Database::from_version_text("PostgreSQL 13.14 on x86_64-pc-linux-gnu");
    let cockroachdb = Database::from_version_text("CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)");
    let standby = |db| {
        let mut conn = Connection::open(&server.options()).unwrap();
        let standby = is_standby(&mut conn, db).unwrap();
        conn.close();
        standby
    };
    assert!(standby(&postgresql));
    assert!(!standby(&postgresql));
    assert!(!standby(&cockroachdb));
    server.finish();
}
