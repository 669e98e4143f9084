//! Shared by the integration tests: real servers, sessions on them, and observers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use isobench_database::{Database, detect};
use isobench_observer::{LocalServer, Observer, ObserverOptions, Sample};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::installed::{pgbenches, postgresql_programs, skip};

/// The longest wait for something that must happen.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// The folders with the programs of the installed servers, one of each major version that is known
/// to be here.
fn programs() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = pgbenches().into_iter().filter_map(|pgbench| pgbench.server).collect();
    let installed = postgresql_programs().filter(|folder| folder.join("postgres").exists());
    if folders.is_empty() {
        folders.extend(installed);
    }
    folders
}

/// Runs a test on a server of each installed version, with these settings.
pub fn on_each_server(test: &str, settings: &[(&str, &str)], run: impl Fn(&Server)) {
    let folders = programs();
    if folders.is_empty() {
        skip(test, "no installed PostgreSQL (pg_config)");
    }
    for folder in folders {
        run(&start(folder, settings));
    }
}

/// A server of the newest installed version.
pub fn newest_server(test: &str, settings: &[(&str, &str)]) -> Option<Server> {
    let newest = programs().pop();
    if newest.is_none() {
        skip(test, "no installed PostgreSQL (pg_config)");
    }
    newest.map(|folder| start(folder, settings))
}

fn start(folder: PathBuf, settings: &[(&str, &str)]) -> Server {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = ServerOptions { bin: Some(folder), settings, ..ServerOptions::default() };
    Server::start(&options, &mut |_| {}).expect("the installed server starts")
}

/// The options to connect as that role.
pub fn options(server: &Server, user: &str) -> ConnectOptions {
    ConnectOptions::new(Host::unix(server.socket_dir(), server.port()), user, server.database())
}

/// A session of the superuser.
pub fn session(server: &Server) -> Connection {
    Connection::open(&options(server, server.user())).expect("a running server")
}

/// The server's product and version.
pub fn database(server: &Server) -> Database {
    detect(&mut session(server)).expect("a running server")
}

/// An observer of the server that connects as that role and samples often.
pub fn observer(server: &Server, user: &str, local: Option<LocalServer>) -> Observer {
    observe(options(server, user), &database(server), local, Duration::from_millis(20))
}

/// An observer with these options that samples at this interval.
pub fn observe(
    options: ConnectOptions,
    database: &Database,
    local: Option<LocalServer>,
    every: Duration,
) -> Observer {
    let connect = Box::new(move || Ok(Connection::open(&options)?));
    let settings = ObserverOptions { every, patience: PATIENCE, ..ObserverOptions::default() };
    Observer::start(connect, database, local, &settings)
}

/// Waits until a query returns true.
pub fn until(session: &mut Connection, query: &str) {
    let limit = Instant::now() + PATIENCE;
    while session.value(query).expect("an answer").as_deref() != Some("t") {
        assert!(Instant::now() < limit, "never true: {query}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the observer has sampled the locks this many times more. `session` may be in a
/// transaction.
pub fn wait_for_lock_samples(session: &mut Connection, count: usize) {
    let query = "select query_start from pg_stat_clear_snapshot(), pg_stat_activity \
                 where application_name = 'isobench observer' and query like 'execute isobench_locks%'";
    let limit = Instant::now() + PATIENCE;
    let mut seen = BTreeSet::new();
    while seen.len() < count {
        assert!(Instant::now() < limit, "the locks were sampled {} times", seen.len());
        seen.extend(session.value(query).expect("an answer"));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for a sample of the measured part that fulfils the condition.
pub fn wait_for(observer: &Observer, what: impl Fn(&Sample) -> bool) {
    let until = Instant::now() + PATIENCE;
    while !observer.latest().is_some_and(|sample| sample.at_s.is_some() && what(&sample)) {
        assert!(Instant::now() < until, "not seen: the latest sample is {:?}", observer.latest());
        std::thread::sleep(Duration::from_millis(5));
    }
}
