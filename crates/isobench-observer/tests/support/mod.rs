//! What the integration tests share: real servers, sessions on them, and observers.

#![allow(dead_code, reason = "each test binary uses another part of this module")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use isobench_database::{Database, detect};
use isobench_observer::{LocalServer, Observer, ObserverOptions, Sample};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::installed::{pgbenches, postgresql_programs, skip};

/// No test waits longer for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

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

/// How to connect as that role.
pub fn options(server: &Server, user: &str) -> ConnectOptions {
    ConnectOptions::new(Host::unix(server.socket_dir(), server.port()), user, server.database())
}

/// A session of the superuser.
pub fn session(server: &Server) -> Connection {
    Connection::open(&options(server, server.user())).expect("a running server")
}

/// What the server is.
pub fn database(server: &Server) -> Database {
    detect(&mut session(server)).expect("a running server")
}

/// An observer of the server that connects as that role, and looks often.
pub fn observer(server: &Server, user: &str, local: Option<LocalServer>) -> Observer {
    observe(options(server, user), &database(server), local, Duration::from_millis(20))
}

/// An observer that connects so, and looks that often.
pub fn observe(
    options: ConnectOptions,
    database: &Database,
    local: Option<LocalServer>,
    every: Duration,
) -> Observer {
    let connect = Box::new(move || Ok(Connection::open(&options)?));
    let settings = ObserverOptions { every, ..ObserverOptions::default() };
    Observer::start(connect, database, local, &settings)
}

/// Waits for a sample of the measured part that has this.
pub fn wait_for(observer: &Observer, what: impl Fn(&Sample) -> bool) {
    let until = Instant::now() + PATIENCE;
    while !observer.latest().is_some_and(|sample| sample.at_s.is_some() && what(&sample)) {
        assert!(Instant::now() < until, "not seen: the latest sample is {:?}", observer.latest());
        std::thread::sleep(Duration::from_millis(5));
    }
}
