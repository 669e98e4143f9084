//! Parts that take turns on a real server: everything is counted for the part that did it.

use isobench_observer::{CountComparison, Observed, Observer, OwnCounts, Part};
use isobench_pgserver::Server;
use isobench_pgwire::Connection;

use crate::support;
use crate::support::{newest_server, observer, on_each_server, session, wait_for};

/// Settings that leave the server's transactions to the test.
const QUIET: [(&str, &str); 1] = [("autovacuum", "off")];

/// A part with its sessions and its own table, and what they did.
struct Cell {
    part: Part,
    clients: Vec<Connection>,
    did: OwnCounts,
}

/// Makes a table of the same name for each part, in a schema of its own.
fn make_tables(server: &Server, parts: usize) {
    let mut connection = session(server);
    for part in 0..parts {
        let sql = format!(
            "create schema s{part}; create table s{part}.counted (id int primary key, value int); \
             insert into s{part}.counted select i, 0 from generate_series(1, 10) i; analyze s{part}.counted"
        );
        connection.execute(&sql).expect("a table");
    }
    connection.close();
}

impl Cell {
    /// Connects two clients in the part's first window, lets them warm up, and rest.
    fn start(server: &Server, observer: &Observer, number: usize) -> Cell {
        let part = Part(number);
        observer.before_sessions(part);
        let mut cell = Cell::connect(server, part);
        cell.work(3);
        observer.rest(part);
        cell
    }

    fn connect(server: &Server, part: Part) -> Cell {
        let mut clients: Vec<Connection> = (0..2).map(|_| session(server)).collect();
        for client in &mut clients {
            client.execute(&format!("set search_path = s{}", part.0)).expect("a setting");
        }
        let did = OwnCounts { sessions: 2, other_committed: 2, ..OwnCounts::default() };
        Cell { part, clients, did }
    }

    /// Runs so many transactions in each session, and one that fails.
    fn work(&mut self, transactions: u64) {
        for (id, client) in (1..).zip(&mut self.clients) {
            for _ in 0..transactions {
                let sql = format!("update counted set value = value + 1 where id = {id}");
                client.execute(&sql).expect("an update");
            }
            client.execute("select 1 / 0").unwrap_err();
        }
        let clients = self.clients.len() as u64;
        self.did.committed += clients * transactions;
        self.did.rolled_back += clients;
    }

    /// Works in a slice, and rests.
    fn slice(&mut self, observer: &Observer, transactions: u64) {
        observer.begin(self.part);
        self.work(transactions);
        observer.rest(self.part);
    }

    /// Closes the sessions in a window of their own.
    fn finish(self, observer: &Observer) -> (Observed, OwnCounts) {
        observer.wake(self.part);
        self.clients.into_iter().for_each(Connection::close);
        (observer.after_sessions(self.part), self.did)
    }
}

/// The server counted what the part did: not one transaction more or less, in no way explained.
fn assert_exact(observed: &Observed, did: &OwnCounts, what: &str) {
    let rows = observed.compare(did);
    let exact = |row: &CountComparison| row.agrees && row.explanation.is_empty();
    assert!(rows.len() == 4 && rows.iter().all(exact), "{what}: {rows:#?}");
    let wrong = OwnCounts { committed: did.committed + 1, rolled_back: did.rolled_back - 1, ..*did };
    let rows = observed.compare(&wrong);
    assert!(!rows[1].agrees && !rows[2].agrees, "{what}: one more or less is noticed: {rows:#?}");
    assert_eq!(observed.notes, Vec::<String>::new(), "{what}");
}

#[test]
fn two_parts_that_take_turns_are_counted_exactly() {
    on_each_server("two_parts_that_take_turns_are_counted_exactly", &QUIET, |server| {
        make_tables(server, 2);
        let observer = observer(server, server.user(), None);
        let mut cells: Vec<Cell> = (0..2).map(|part| Cell::start(server, &observer, part)).collect();
        // Sessions report once a second, so most of what they do is reported turns later.
        let mut turns = 0;
        let began = std::time::Instant::now();
        while turns < 20 || began.elapsed().as_secs_f64() < 2.5 {
            let first = usize::from(turns % 3 == 0);
            cells[first].slice(&observer, 20 + turns % 7);
            cells[1 - first].slice(&observer, 5);
            turns += 1;
        }
        // In another order than they began.
        for number in [1, 0] {
            let cell = cells.remove(number);
            let updates = cell.did.committed;
            let (observed, did) = cell.finish(&observer);
            let what = format!("part {number} on {}", server.version());
            assert_exact(&observed, &did, &what);
            let [table] = observed.tables.as_slice() else { panic!("{what}: {:?}", observed.tables) };
            assert_eq!((table.table.as_str(), table.updated), ("counted", updates), "{what}");
            assert!(observed.whole("pg_stat_database.tup_updated") >= updates as f64, "{what}");
            // The log's position is always current, so its slices have no more than its windows.
            let log = "pg_current_wal_insert_lsn.bytes";
            assert!(observed.measured(log) > 0.0, "{what}");
            assert!(observed.measured(log) <= observed.whole(log), "{what}");
        }
    });
}

#[test]
fn ends_without_a_rest_are_edges_too() {
    let test = "ends_without_a_rest_are_edges_too";
    let Some(server) = newest_server(test, &QUIET) else { return };
    make_tables(&server, 2);
    let observer = observer(&server, server.user(), None);
    let mut cells: Vec<Cell> = (0..2).map(|part| Cell::start(&server, &observer, part)).collect();
    for _ in 0..5 {
        for cell in &mut cells {
            observer.begin(cell.part);
            cell.work(7);
            observer.end(cell.part);
            // The window is still open.
            cell.work(2);
            observer.rest(cell.part);
        }
    }
    for cell in cells {
        let (observed, did) = cell.finish(&observer);
        assert_exact(&observed, &did, test);
    }
}

/// The server needs a moment to end a session that was closed.
#[test]
fn sessions_of_nobody_that_are_just_ending_are_in_nobodys_counts() {
    let test = "sessions_of_nobody_that_are_just_ending_are_in_nobodys_counts";
    let Some(server) = newest_server(test, &QUIET) else { return };
    make_tables(&server, 2);
    let observer = observer(&server, server.user(), None);
    let between = || {
        let mut connection = session(&server);
        connection.execute("select count(*) from s0.counted").expect("an answer");
        connection.close();
    };
    let mut cells: Vec<Cell> = (0..2).map(|part| Cell::start(&server, &observer, part)).collect();
    for _ in 0..10 {
        for cell in &mut cells {
            between();
            cell.slice(&observer, 3);
        }
    }
    for cell in cells {
        between();
        let (observed, did) = cell.finish(&observer);
        assert_exact(&observed, &did, test);
    }
}

#[test]
fn samples_show_the_sessions_of_the_part_at_its_own_time() {
    let test = "samples_show_the_sessions_of_the_part_at_its_own_time";
    let Some(server) = newest_server(test, &QUIET) else { return };
    make_tables(&server, 3);
    let observer = observer(&server, server.user(), None);
    let cells: Vec<Cell> = (0..3).map(|part| Cell::start(&server, &observer, part)).collect();
    let idle = ("idle".to_owned(), String::new());
    let mut measured = [0.0; 3];
    for _ in 0..4 {
        for cell in &cells {
            let began = std::time::Instant::now();
            observer.begin(cell.part);
            let before = measured[cell.part.0];
            // The latest sample may be another part's.
            wait_for(&observer, |sample| {
                sample
                    .at_s
                    .is_some_and(|at_s| at_s >= before && at_s < before + began.elapsed().as_secs_f64())
                    && sample.sessions.get(&idle) == Some(&2)
            });
            observer.rest(cell.part);
            measured[cell.part.0] += began.elapsed().as_secs_f64();
        }
    }
    for cell in cells {
        let measured = measured[cell.part.0];
        let (observed, _) = cell.finish(&observer);
        assert!(!observed.at_s.is_empty(), "{observed:?}");
        assert!(
            observed.at_s.is_sorted() && observed.at_s.iter().all(|at_s| *at_s < measured),
            "{measured}: {observed:?}"
        );
        let most = observed.waits.iter().flat_map(|row| &row.sessions).max();
        assert_eq!(most, Some(&2), "the sessions of the other parts are idle: {:?}", observed.waits);
        assert!(observed.waits.iter().all(|row| row.sessions.len() == observed.at_s.len()));
    }
}

#[test]
fn a_part_that_is_never_ended_disturbs_nobody() {
    on_each_server("a_part_that_is_never_ended_disturbs_nobody", &QUIET, |server| {
        make_tables(server, 3);
        let observer = observer(server, server.user(), None);
        // Its measurement fails in the middle.
        observer.before_sessions(Part(2));
        let mut lost = Cell::connect(server, Part(2));
        observer.begin(Part(2));
        lost.work(30);
        drop(lost);
        let mut one = Cell::start(server, &observer, 0);
        // This one rests for ever.
        let resting = Cell::start(server, &observer, 1);
        for turn in 0..5 {
            one.slice(&observer, 4 + turn);
        }
        let (observed, did) = one.finish(&observer);
        assert_exact(&observed, &did, "beside a part that rests");
        drop(resting);
        // The same numbers start anew.
        let mut cells: Vec<Cell> = (1..3).map(|part| Cell::start(server, &observer, part)).collect();
        for cell in &mut cells {
            cell.slice(&observer, 9);
        }
        for cell in cells {
            let (observed, did) = cell.finish(&observer);
            assert_exact(&observed, &did, "anew");
        }
    });
}

#[test]
fn sessions_that_end_while_they_rest_are_an_explanation() {
    let test = "sessions_that_end_while_they_rest_are_an_explanation";
    let Some(server) = newest_server(test, &QUIET) else { return };
    make_tables(&server, 2);
    let observer = observer(&server, server.user(), None);
    let mut cells: Vec<Cell> = (0..2).map(|part| Cell::start(&server, &observer, part)).collect();
    for cell in &mut cells {
        cell.slice(&observer, 10);
    }
    let mut other = cells.pop().expect("two");
    let mut dead = cells.pop().expect("two");
    observer.begin(other.part);
    dead.clients.drain(..).for_each(Connection::close);
    let gone = "select count(*) = 3 from pg_stat_clear_snapshot(), pg_stat_activity \
                where backend_type = 'client backend'";
    support::until(&mut other.clients[0], gone);
    observer.rest(other.part);
    let part = other.part;
    for (observed, did) in [dead.finish(&observer), other.finish(&observer)] {
        let rows = observed.compare(&OwnCounts { committed: did.committed + 1000, ..did });
        assert!(rows[1].explanation.contains("sessions ended while others ran"), "{part:?}: {rows:#?}");
    }
}
