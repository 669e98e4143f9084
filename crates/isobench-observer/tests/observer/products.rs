//! Other products: scripted answers, H2, and no server at all.

use std::time::Duration;

use isobench_database::Database;
use isobench_observer::{Observed, Observer, ObserverOptions, OwnCounts, Part};
use isobench_pgwire::{ConnectOptions, Host};
use isobench_testkit::h2::H2;
use isobench_testkit::installed::skip;
use isobench_testkit::scripted::ScriptedServer;

use crate::support;

/// An observer that takes no samples, so that its queries are always the same.
fn quiet(options: ConnectOptions, database: &Database) -> Observer {
    support::observe(options, database, None, Duration::from_hours(1))
}

/// Calls all methods in their order.
fn once(observer: &Observer) -> Observed {
    observer.before_sessions(Part(0));
    observer.begin(Part(0));
    observer.end(Part(0));
    observer.after_sessions(Part(0))
}

/// Two parts that take turns, one slice each; returns their results.
fn turns(observer: &Observer) -> [Observed; 2] {
    let (one, two) = (Part(1), Part(2));
    for part in [one, two] {
        observer.before_sessions(part);
        observer.rest(part);
    }
    observer.begin(one);
    observer.rest(one);
    observer.begin(two);
    observer.end(two);
    observer.rest(two);
    observer.wake(two);
    let two = observer.after_sessions(two);
    observer.wake(one);
    [observer.after_sessions(one), two]
}

#[test]
fn cockroachdbs_metrics_are_added_up_over_turns() {
    let mut script =
        include_str!("../scripts/cockroachdb-20.1.txt").split("> select sum(").next().unwrap().to_owned();
    // The first reading, then those of `turns` in their order.
    let windows = "0 | 1 2 | 4 8 | 16 32 | 64 128 256 | 512 1024 | 2048 4096";
    let rest = " | NULL".repeat(21);
    let answer = |commits| {
        format!("> select sum(case when name = 'txn.commits' then value end), *\n< row {commits}{rest}\n")
    };
    let answers: Vec<String> = windows.split_whitespace().filter(|text| *text != "|").map(answer).collect();
    script += &answers.concat();
    let server = ScriptedServer::start(&script);
    let database = Database::from_version_text("CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)");
    let observer = quiet(server.options(), &database);
    let expected = [(1 + 16 + 2048, 16), (4 + (256 - 64) + 512, 64)];
    for (observed, (whole, measured)) in turns(&observer).iter().zip(expected) {
        assert_eq!(observed.notes.len(), 1, "{:?}", observed.notes);
        let name = "crdb_internal.node_metrics.txn.commits";
        assert!((observed.whole(name) - f64::from(whole)).abs() < 1e-9, "{:?}", observed.whole);
        assert!((observed.measured(name) - f64::from(measured)).abs() < 1e-9, "{:?}", observed.counters);
    }
    drop(observer);
    server.finish();
}

#[test]
fn a_server_that_cant_tell_turns_apart_has_no_counters_for_them() {
    let mut script = include_str!("../scripts/yugabytedb.txt")
        .split("> execute isobench_sessions")
        .next()
        .unwrap()
        .to_owned();
    let counters =
        "> select xact_commit, xact_rollback, *\n< row 100 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0\n";
    let sessions = |pids: &[u32]| {
        let rows = pids.iter().map(|pid| format!("< row {pid}\n")).collect::<Vec<_>>().concat();
        let tag = if pids.is_empty() { "< tag SELECT 0\n" } else { "" };
        format!("> execute isobench_sessions\n{rows}{tag}")
    };
    // After the first reading, the steps of `turns`; those between the turns read no counters. The
    // sessions of the first part, which rest, aren't waited for when the second starts.
    script += &sessions(&[]);
    script += &[&sessions(&[]), counters, &sessions(&[]), &sessions(&[98])].concat();
    script += &[&sessions(&[98]), counters, &sessions(&[98]), &sessions(&[98, 99])].concat();
    script += &sessions(&[98, 99]).repeat(3);
    script += &[sessions(&[98]), sessions(&[])].concat();
    let server = ScriptedServer::start(&script);
    let database = Database::from_version_text("PostgreSQL 11.2-YB-2.13.0.0-b0 on x86_64-pc-linux-gnu");
    let observer = quiet(server.options(), &database);
    for observed in turns(&observer) {
        assert!(observed.whole.is_empty() && observed.counters.is_empty() && observed.tables.is_empty());
        assert_eq!(observed.compare(&OwnCounts::default()), []);
        assert_eq!(
            observed.notes[1..],
            [
                "no counters, as the cells took turns and YugabyteDB counts each retry of a statement, and by node; \
              cells that are measured as a whole have them"
            ]
        );
    }
    drop(observer);
    server.finish();
}

#[test]
fn cockroachdb_reports_its_retries() {
    let server = ScriptedServer::start(include_str!("../scripts/cockroachdb.txt"));
    let database = Database::from_version_text("CockroachDB CCL v23.2.1 (x86_64-pc-linux-gnu, built …)");
    let observer = quiet(server.options(), &database);
    let observed = once(&observer);
    assert!((observed.measured("crdb_internal.node_metrics.txn.restarts.writetooold") - 7.0).abs() < 1e-9);
    assert!((observed.whole("crdb_internal.node_metrics.txn.restarts.writetooold") - 12.0).abs() < 1e-9);
    assert!((observed.whole("crdb_internal.node_metrics.txn.refresh.auto_retries") - 40.0).abs() < 1e-9);
    let upgraded = observed.measured("crdb_internal.node_metrics.sql.txn.upgraded_iso_level.count");
    assert!((upgraded - 900.0).abs() < 1e-9);
    let known = |name: &str| observed.whole.iter().any(|counter| counter.name.ends_with(name));
    assert!(!known("txn.autoretries"), "this version doesn't have it: NULL");
    assert!(observed.notes[0].starts_with("CockroachDB: what sessions wait for isn't sampled"));
    assert_eq!(
        observed.notes[1],
        "crdb_internal.cluster_contention_events can't be read: user test does not have VIEWACTIVITY privilege"
    );
    assert_eq!(observed.compare(&OwnCounts::default()), []);
    drop(observer);
    server.finish();
}

#[test]
fn an_old_cockroachdb_has_other_metrics_and_no_process() {
    let server = ScriptedServer::start(include_str!("../scripts/cockroachdb-20.1.txt"));
    let database = Database::from_version_text("CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)");
    let observer = quiet(server.options(), &database);
    let observed = once(&observer);
    let measured = |name: &str| observed.measured(&format!("crdb_internal.node_metrics.{name}"));
    assert!((measured("txn.restarts.writetoooldmulti") - 10.0).abs() < 1e-9);
    assert!((measured("txn.refresh.fail") - 12.0).abs() < 1e-9);
    let known = |name: &str| observed.whole.iter().any(|counter| counter.name.ends_with(name));
    assert!(known("sql.txn.abort.count") && !known("sql.txn.contended.count"));
    assert_eq!(observed.notes.len(), 1, "{:?}", observed.notes);
    assert!(observed.processes.is_none() && observed.waits.is_empty());
    drop(observer);
    server.finish();
}

#[test]
fn yugabytedb_is_like_postgresql_as_far_as_it_goes() {
    let server = ScriptedServer::start(include_str!("../scripts/yugabytedb.txt"));
    let database = Database::from_version_text("PostgreSQL 11.2-YB-2.13.0.0-b0 on x86_64-pc-linux-gnu");
    let observer = quiet(server.options(), &database);
    let observed = once(&observer);
    assert!((observed.whole("pg_stat_database.xact_commit") - 25.0).abs() < 1e-9);
    let rows = observed.compare(&OwnCounts { committed: 3, ..OwnCounts::default() });
    assert!(rows.iter().all(|row| row.agrees), "{rows:?}");
    assert!(rows[0].explanation.starts_with("YugabyteDB counts each retry"), "{rows:?}");
    assert!(
        observed.notes.iter().any(|note| note.starts_with("YugabyteDB: statistics are those of the node"))
    );
    drop(observer);
    server.finish();
}

#[test]
fn a_product_without_known_statistics_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let h2 = match H2::start(folder.path()) {
        Ok(h2) => h2,
        Err(why) => return skip("a_product_without_known_statistics_is_left_alone", &why),
    };
    let database =
        Database::from_version_text("PostgreSQL 8.2.23 server protocol using H2 2.4.240 (2025-09-22)");
    let observed = once(&quiet(h2.options(), &database));
    assert_eq!(
        observed.notes,
        ["the server isn't observed: isobench knows no statistics of this product (H2)"]
    );
}

#[test]
fn no_connection_is_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let options = ConnectOptions::new(Host::unix(folder.path(), 1), "nobody", "nothing");
    let database = Database::from_version_text("PostgreSQL 18.1 on x86_64-pc-linux-gnu, compiled by gcc");
    let observed = once(&quiet(options, &database));
    assert_eq!(observed.notes.len(), 1, "{:?}", observed.notes);
    assert!(
        observed.notes[0].starts_with("the server isn't observed: connection to server"),
        "{:?}",
        observed.notes
    );
    assert!(observed.whole.is_empty() && observed.at_s.is_empty() && observed.predicate_locks.is_none());
    assert_eq!(observed.compare(&OwnCounts::default()), []);
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let database = Database::from_version_text("PostgreSQL 18.1 on x86_64-pc-linux-gnu, compiled by gcc");
    let (release, held) = std::sync::mpsc::channel::<()>();
    let connect = Box::new(move || {
        // Held until the test is over.
        let _ = held.recv();
        Err(isobench_pgwire::Error::Timeout(Duration::ZERO).into())
    });
    let settings = ObserverOptions { patience: Duration::from_millis(50), ..ObserverOptions::default() };
    let observer = Observer::start(connect, &database, None, &settings);
    let observed = once(&observer);
    assert_eq!(
        observed.notes,
        ["the server wasn't observed to the end: its statistics didn't answer in time"]
    );
    drop(observer);
    drop(release);
}
