//! Observations of real servers: sessions that wait, and counts that agree to the last transaction.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use isobench_observer::{
    CountComparison, LocalServer, LocksSeen, Observed, OwnCounts, Part, PredicateLocks, Processes,
};
use isobench_pgserver::Server;
use isobench_pgwire::Connection;

use crate::support::{
    PATIENCE, newest_server, observer, on_each_server, options, session, until, wait_for,
    wait_for_lock_samples,
};

/// Settings that leave the server's transactions to the test.
const QUIET: [(&str, &str); 2] = [("autovacuum", "off"), ("deadlock_timeout", "20ms")];

/// The number of the only part.
const ONE: Part = Part(1);

/// Makes a table with some rows.
fn make_table(server: &Server) {
    let mut connection = session(server);
    connection
        .execute(
            "create table counted (id int primary key, value int); insert into counted \
             select i, 0 from generate_series(1, 500) i; analyze counted",
        )
        .unwrap();
    connection.close();
}

fn update(connection: &mut Connection, id: u32) -> bool {
    connection.execute(&format!("update counted set value = value + 1 where id = {id}")).is_ok()
}

/// Two sessions that wait for each other; both end their transactions. Returns how many committed.
fn deadlock(server: &Server) -> u64 {
    let (mut one, mut two) = (session(server), session(server));
    one.execute("begin").unwrap();
    two.execute("begin").unwrap();
    assert!(update(&mut one, 1) && update(&mut two, 2));
    let second = thread::spawn(move || {
        let went_well = update(&mut two, 1);
        two.execute("commit").unwrap();
        two.close();
        went_well
    });
    let first = update(&mut one, 2);
    one.execute("commit").unwrap();
    one.close();
    u64::from(first) + u64::from(second.join().unwrap())
}

fn shown(rows: &[CountComparison]) -> Vec<String> {
    rows.iter().map(|row| format!("{} {} {} {}", row.what, row.ours, row.servers, row.explanation)).collect()
}

#[test]
fn counts_agree_exactly() {
    on_each_server("counts_agree_exactly", &QUIET, |server| {
        make_table(server);
        let observer = observer(server, server.user(), None);
        for part in 0..2 {
            // Earlier transactions of the observer that aren't reported yet mustn't be counted
            // later.
            observer.before_sessions(ONE);
            let mut clients: Vec<Connection> = (0..3).map(|_| session(server)).collect();
            for client in &mut clients {
                // The warm-up.
                client.execute("begin; select 1; commit").unwrap();
            }
            observer.begin(ONE);
            for (client, id) in clients.iter_mut().zip([3, 4, 5]) {
                for _ in 0..100 {
                    client.execute("begin").unwrap();
                    assert!(update(client, id));
                    client.execute("commit").unwrap();
                }
                client.execute("begin").unwrap();
                assert!(update(client, id));
                client.execute("rollback").unwrap();
                client.execute("select 1 / 0").unwrap_err();
            }
            let survivors = deadlock(server);
            assert_eq!(survivors, 1);
            observer.end(ONE);
            clients.into_iter().for_each(Connection::close);
            let observed = observer.after_sessions(ONE);
            let ours = OwnCounts {
                committed: 3 * 101 + survivors,
                rolled_back: 3 * 2 + 1,
                deadlocks: 1,
                sessions: 5,
                ..OwnCounts::default()
            };
            let rows = observed.compare(&ours);
            assert!(
                rows.len() == 4 && rows.iter().all(|row| row.agrees && row.explanation.is_empty()),
                "part {part} on {}: {:#?}",
                server.version(),
                shown(&rows)
            );
            let wrong = OwnCounts { committed: ours.committed + 1, ..ours };
            assert!(!observed.compare(&wrong)[1].agrees, "one transaction more is noticed");
            counters_rose(&observed, server);
            assert_eq!(observed.notes, Vec::<String>::new());
        }
    });
}

/// Settings with which one worker of autovacuum takes a second for each table.
const SLOW_WORKER: [(&str, &str); 5] = [
    ("autovacuum_naptime", "1s"),
    ("autovacuum_max_workers", "1"),
    ("autovacuum_analyze_threshold", "1000000"),
    ("autovacuum_vacuum_cost_delay", "100ms"),
    ("autovacuum_vacuum_cost_limit", "20"),
];

#[test]
fn autovacuum_may_count_at_its_end_the_tables_of_before() {
    on_each_server("autovacuum_may_count_at_its_end_the_tables_of_before", &SLOW_WORKER, |server| {
        let mut other = session(server);
        for table in 0..8 {
            let rows = format!("create table slow{table} as select i from generate_series(1, 1500) i");
            other.execute(&rows).unwrap();
            other.execute(&format!("update slow{table} set i = i + 1")).unwrap();
        }
        let visited = "(select sum(autovacuum_count) from pg_stat_user_tables)";
        // Otherwise its regular visits could explain as much.
        until(&mut other, &format!("select {visited} >= 7"));
        other.execute("alter system set autovacuum_naptime = '1h'").unwrap();
        other.execute("select pg_reload_conf()").unwrap();
        other.close();
        let observer = observer(server, server.user(), None);
        observer.before_sessions(ONE);
        observer.begin(ONE);
        let mut client = session(server);
        client.execute("alter system set autovacuum_vacuum_cost_delay = 0").unwrap();
        client.execute("select pg_reload_conf()").unwrap();
        let (limit, mut committed) = (Instant::now() + PATIENCE, 3);
        let works = "select exists (select from pg_stat_activity where backend_type = 'autovacuum worker')";
        while client.value(works).unwrap().as_deref() == Some("t") {
            assert!(Instant::now() < limit, "the worker doesn't end");
            thread::sleep(Duration::from_millis(50));
            committed += 1;
        }
        observer.end(ONE);
        let reads = "select query from pg_stat_activity where application_name = 'isobench observer'";
        assert_eq!(client.value(reads).unwrap().as_deref(), Some("execute isobench_edge"));
        committed += 1;
        client.close();
        let observed = observer.after_sessions(ONE);
        assert_eq!(observed.notes, Vec::<String>::new());
        let rows = observed.compare(&OwnCounts { committed, sessions: 1, ..OwnCounts::default() });
        assert!(rows.iter().all(|row| row.agrees), "on {}: {:#?}", server.version(), shown(&rows));
    });
}

fn counters_rose(observed: &Observed, server: &Server) {
    // 300 updates committed, 3 rolled back, and those of the deadlock.
    let updated = observed.whole("pg_stat_database.tup_updated");
    assert!((303.0..=307.0).contains(&updated), "{updated} on {}", server.version());
    for name in ["pg_current_wal_insert_lsn.bytes", "pg_stat_wal.wal_bytes", "pg_stat_wal.wal_records"] {
        assert!(observed.whole(name) > 0.0, "{name} on {}", server.version());
    }
    let known: Vec<&str> = observed.whole.iter().map(|counter| counter.name.as_str()).collect();
    let checkpoints = known
        .iter()
        .any(|name| ["pg_stat_bgwriter.checkpoints_timed", "pg_stat_checkpointer.num_timed"].contains(name));
    assert!(checkpoints, "{known:?}");
    // The log's position is always current.
    assert!(observed.measured("pg_current_wal_insert_lsn.bytes") > 0.0);
}

#[test]
fn waits_and_locks_are_seen() {
    on_each_server("waits_and_locks_are_seen", &QUIET, |server| {
        make_table(server);
        let observer = observer(server, server.user(), None);
        // A session that doesn't belong to the test.
        let mut other = session(server);
        other.execute("begin; select 1").unwrap();
        observer.before_sessions(ONE);
        let mut reader = session(server);
        let mut holder = session(server);
        let mut waiter = session(server);
        reader.execute("begin isolation level serializable; set local enable_seqscan = off").unwrap();
        reader.query("select value from counted where id = 7").unwrap();
        holder.execute("begin").unwrap();
        assert!(update(&mut holder, 8));
        let waiting = thread::spawn(move || {
            assert!(update(&mut waiter, 8));
            waiter
        });
        // From the first sample on, the same sessions hold and await the same locks.
        until(
            &mut other,
            "select count(*) = 1 from pg_locks where locktype = 'transactionid' and not granted",
        );
        observer.begin(ONE);
        let lock = ("Lock".to_owned(), "transactionid".to_owned());
        wait_for(&observer, |sample| sample.sessions.get(&lock) == Some(&1));
        let client = ("Client".to_owned(), "ClientRead".to_owned());
        wait_for(&observer, |sample| sample.sessions.get(&client) == Some(&2));
        wait_for_lock_samples(&mut other, 2);
        observer.end(ONE);
        holder.execute("commit").unwrap();
        waiting.join().unwrap().close();
        holder.close();
        reader.close();
        let observed = observer.after_sessions(ONE);
        assert!(observed.waits.iter().any(|row| row.kind == lock.0 && row.event == lock.1));
        assert!(observed.waits.iter().all(|row| row.sessions.len() == observed.at_s.len()));
        assert!(observed.at_s.is_sorted() && observed.at_s.len() as u64 >= observed.lock_samples);
        let most = observed.waits.iter().flat_map(|row| &row.sessions).max();
        assert!(most.is_some_and(|most| *most <= 2), "the other session isn't one of the clients'");
        let locks = observed.predicate_locks.as_ref().expect("a superuser may see them");
        assert!(locks.at_s.len() >= 2 && locks.at_s.len() as u64 == observed.lock_samples);
        assert!(locks.tuple.iter().all(|count| *count == 1), "{locks:?}");
        assert!(locks.page.iter().all(|count| *count == 1), "of the index: {locks:?}");
        locked_relations(locks);
        let wait = observed.lock_waits.iter().find(|wait| wait.locktype == "transactionid").unwrap();
        assert_eq!((wait.mode.as_str(), wait.seen), ("ShareLock", observed.lock_samples));
        assert!(observed.sampling_s > 0.0);
        // The transactions of the other session, or of the observer, aren't known to the
        // comparison, but explained.
        let rows = observed.compare(&OwnCounts { sessions: 3, ..OwnCounts::default() });
        let commits = rows.iter().find(|row| row.what == "commits").unwrap();
        assert!(commits.agrees && commits.explanation.contains("1 other session"), "{:?}", shown(&rows));
    });
}

/// A server keeps the locks of a committed transaction while others overlap it, even without its
/// session.
#[test]
fn predicate_locks_from_before_arent_the_clients() {
    on_each_server("predicate_locks_from_before_arent_the_clients", &QUIET, |server| {
        make_table(server);
        let observer = observer(server, server.user(), None);
        let read = |session: &mut Connection, end: &str| {
            session.execute("begin isolation level serializable; set local enable_seqscan = off").unwrap();
            session.query("select value from counted where id = 7").unwrap();
            session.execute(end).unwrap();
        };
        let (mut overlapping, mut past) = (session(server), session(server));
        read(&mut overlapping, "select 1");
        read(&mut past, "update counted set value = 0 where id = 9; commit");
        past.close();
        for clients_lock in [false, true] {
            observer.before_sessions(ONE);
            let mut client = session(server);
            if clients_lock {
                read(&mut client, "select 1");
            }
            observer.begin(ONE);
            wait_for_lock_samples(&mut overlapping, 2);
            observer.end(ONE);
            client.close();
            let locks = observer.after_sessions(ONE).predicate_locks.expect("a superuser may see them");
            assert!(locks.tuple.iter().all(|count| *count == u64::from(clients_lock)), "{locks:?}");
            assert_eq!(locks.relations.is_empty(), !clients_lock, "{locks:?}");
        }
        overlapping.close();
    });
}

/// The reader used the index: it has locked one row of the table, and one page of the index.
fn locked_relations(locks: &PredicateLocks) {
    let every = LocksSeen { most: 1, share: 1.0 };
    let names: Vec<&str> = locks.relations.iter().map(|relation| relation.name.as_str()).collect();
    let find = |name| {
        let found = locks.relations.iter().find(|relation| relation.name == name);
        found.unwrap_or_else(|| panic!("{name} among {names:?}"))
    };
    let (table, index) = (find("counted"), find("counted_pkey"));
    assert_eq!((table.table.as_deref(), table.rows), (None, Some(500)));
    assert_eq!((table.indexes.as_slice(), index.indexes.is_empty()), (&["(id)".to_owned()][..], true));
    assert_eq!(
        (table.tuple, table.page, table.relation),
        (every, LocksSeen::default(), LocksSeen::default())
    );
    assert_eq!((index.table.as_deref(), index.rows), (Some("counted"), Some(500)));
    assert_eq!(
        (index.tuple, index.page, index.relation),
        (LocksSeen::default(), every, LocksSeen::default())
    );
    // 500 rows of 8 bytes with their headers, and as many entries of an index, beside its first
    // page.
    assert_eq!((table.pages, index.pages), (Some(3), Some(4)));
    assert_eq!((names.len(), locks.other_relations), (2, 0));
}

#[test]
fn scans_and_writes_are_counted_by_table() {
    on_each_server("scans_and_writes_are_counted_by_table", &QUIET, |server| {
        make_table(server);
        session(server).execute("create table unused (id int); insert into unused values (1)").unwrap();
        let observer = observer(server, server.user(), None);
        observer.before_sessions(ONE);
        let mut client = session(server);
        observer.begin(ONE);
        for id in 1..=7 {
            assert!(update(&mut client, id));
        }
        client.execute("insert into counted values (501, 0)").unwrap();
        client.execute("set enable_indexscan = off; set enable_bitmapscan = off").unwrap();
        client.execute("begin isolation level serializable").unwrap();
        for _ in 0..3 {
            client.query("select value from counted where id = 9").unwrap();
        }
        let mut watching = session(server);
        wait_for_lock_samples(&mut watching, 1);
        observer.end(ONE);
        client.execute("commit").unwrap();
        client.close();
        watching.close();
        let observed = observer.after_sessions(ONE);
        let [table] = observed.tables.as_slice() else { panic!("{:?}", observed.tables) };
        assert_eq!(table.table, "counted");
        assert_eq!((table.seq_scans, table.seq_rows, table.index_scans), (3, 3 * 501, 7));
        assert_eq!((table.inserted, table.updated), (1, 7));
        assert!(table.hot_updated <= 7);
        let locks = observed.predicate_locks.as_ref().expect("a superuser may see them");
        let [relation] = locks.relations.as_slice() else { panic!("{:?}", locks.relations) };
        assert_eq!((relation.name.as_str(), relation.relation.most), ("counted", 1));
    });
}

#[test]
fn without_rights_the_rest_is_seen() {
    on_each_server("without_rights_the_rest_is_seen", &QUIET, |server| {
        make_table(server);
        let mut admin = session(server);
        admin.execute("create role plain login; create role stranger login").unwrap();
        // Without the right to see others' sessions, those of the role itself are seen.
        let unprivileged = observer(server, "plain", None);
        unprivileged.before_sessions(ONE);
        let own = Connection::open(&options(server, "plain")).unwrap();
        let foreign = Connection::open(&options(server, "stranger")).unwrap();
        unprivileged.begin(ONE);
        let idle = ("idle".to_owned(), String::new());
        wait_for(&unprivileged, |sample| sample.sessions.get(&idle) == Some(&1));
        unprivileged.end(ONE);
        own.close();
        foreign.close();
        let observed = unprivileged.after_sessions(ONE);
        assert_eq!(observed.notes, Vec::<String>::new());
        assert!(observed.whole("pg_stat_database.sessions") >= 1.0);

        admin.execute("revoke select on pg_stat_activity, pg_locks, pg_stat_wal from public").unwrap();
        let blind = observer(server, "plain", None);
        blind.before_sessions(ONE);
        blind.begin(ONE);
        blind.end(ONE);
        let observed = blind.after_sessions(ONE);
        for view in ["pg_stat_activity", "pg_locks", "pg_stat_wal"] {
            let expected = format!("{view} can't be read: permission denied for view {view}");
            assert_eq!(
                observed.notes.iter().filter(|note| **note == expected).count(),
                1,
                "{:?}",
                observed.notes
            );
        }
        assert_eq!(observed.notes.len(), 3, "{:?}", observed.notes);
        assert!(observed.at_s.is_empty() && observed.predicate_locks.is_none());
        assert!(observed.whole.iter().any(|counter| counter.name == "pg_stat_database.xact_commit"));
        assert!(!observed.compare(&OwnCounts::default()).is_empty());

        admin.execute("revoke select on all tables in schema pg_catalog from public").unwrap();
        blind.before_sessions(ONE);
        blind.begin(ONE);
        blind.end(ONE);
        let observed = blind.after_sessions(ONE);
        assert!(
            observed.whole.iter().all(|counter| counter.name.starts_with("pg_current_wal")),
            "{:?}",
            observed.whole
        );
        assert_eq!(observed.compare(&OwnCounts::default()), []);
    });
}

#[test]
fn rights_that_are_taken_away_meanwhile_end_the_samples() {
    let test = "rights_that_are_taken_away_meanwhile_end_the_samples";
    let Some(server) = newest_server(test, &QUIET) else { return };
    let mut admin = session(&server);
    admin.execute("create role plain login").unwrap();
    let observer = observer(&server, "plain", None);
    observer.before_sessions(ONE);
    let client = Connection::open(&options(&server, "plain")).unwrap();
    observer.begin(ONE);
    wait_for(&observer, |sample| !sample.sessions.is_empty());
    admin.execute("revoke select on pg_stat_activity from public").unwrap();
    // The observer reaches the end after any number of samples, and reports the reason.
    let mut refused = Connection::open(&options(&server, "plain")).unwrap();
    refused.query("select * from pg_stat_activity").unwrap_err();
    observer.end(ONE);
    client.close();
    refused.close();
    let observed = observer.after_sessions(ONE);
    assert!(!observed.at_s.is_empty());
    // The rights may have been revoked between the last sample and the end.
    let reported =
        observed.notes.iter().all(|note| note.starts_with("the sessions can't be sampled any more: "));
    assert!(reported && observed.notes.len() <= 1, "{:?}", observed.notes);
    observer.before_sessions(ONE);
    observer.begin(ONE);
    observer.end(ONE);
    assert!(observer.after_sessions(ONE).at_s.is_empty());
}

/// Keeps the server busy until it has used as much CPU as the kernel surely shows.
fn work(session: &mut Connection, processes: Processes) {
    let limit = Instant::now() + PATIENCE;
    let before = processes.cpu().unwrap();
    while processes.cpu().unwrap() < before + 0.1 {
        assert!(Instant::now() < limit, "the server's work isn't seen");
        session.query("select count(*) from generate_series(1, 100000)").unwrap();
    }
}

#[test]
fn processes_of_a_local_server_are_added_up() {
    let Some(server) = newest_server("processes_of_a_local_server_are_added_up", &QUIET) else { return };
    for local in [LocalServer::Postmaster(server.pid()), LocalServer::Maybe] {
        let observer = observer(&server, server.user(), Some(local));
        observer.before_sessions(ONE);
        let mut busy = session(&server);
        observer.begin(ONE);
        let processes = Processes::find(LocalServer::Postmaster(server.pid()), None).unwrap();
        // The first half of the work is done in a session that ends.
        for _ in 0..2 {
            work(&mut busy, processes);
            busy.close();
            busy = session(&server);
        }
        observer.end(ONE);
        busy.close();
        let observed = observer.after_sessions(ONE);
        let processes = observed.processes.unwrap_or_else(|| panic!("{local:?}: {:?}", observed.notes));
        assert!(processes.cpu_s > 0.05, "{processes:?}");
        assert!(processes.memory_bytes.is_none_or(|bytes| bytes > 1 << 20), "{processes:?}");
    }
}

#[test]
fn a_server_that_dies_is_a_note() {
    let Some(server) = newest_server("a_server_that_dies_is_a_note", &QUIET) else { return };
    let observer = observer(&server, server.user(), None);
    observer.before_sessions(ONE);
    let client = session(&server);
    observer.begin(ONE);
    wait_for(&observer, |sample| !sample.sessions.is_empty());
    server.stop().unwrap();
    drop(client);
    observer.end(ONE);
    let observed = observer.after_sessions(ONE);
    assert!(!observed.at_s.is_empty(), "what was seen before is kept");
    let note = observed.notes.last().unwrap();
    assert!(note.starts_with("the server wasn't observed to the end: "), "{note}");
    assert_eq!(observed.compare(&OwnCounts::default()), [], "half a count is none");
    // It goes on without a server.
    observer.before_sessions(ONE);
    observer.begin(ONE);
    observer.end(ONE);
    assert!(!observer.after_sessions(ONE).notes.is_empty());
    let (done, dropped) = channel::<()>();
    thread::spawn(move || {
        drop(observer);
        drop(done);
    });
    assert_eq!(dropped.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
}
