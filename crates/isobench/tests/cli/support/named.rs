//! A named server: one for all tests, with a database for each.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};

use super::has_postgresql;
use super::program::{Finished, Running};
use super::scene::Scene;

/// A database of one test. The server ends with the last of them.
pub struct Database {
    server: Arc<Server>,
    pub name: String,
}

/// The server, as long as a test uses it: a static variable is never dropped, so it mustn't own the
/// server.
fn server() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(start(&[]));
    *shared = Arc::downgrade(&server);
    server
}

/// Starts a server with further settings.
fn start(settings: &[(&str, &str)]) -> Server {
    let settings = [("listen_addresses", "127.0.0.1"), ("fsync", "off")].iter().chain(settings);
    let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() }, &mut |_| {});
    server.expect("a server")
}

impl Database {
    /// Creates a database; `None` after printing the reason if there is none.
    pub fn new(test: &str) -> Option<Database> {
        has_postgresql(test).then(|| Database::on(server()))
    }

    /// Creates a database on a server of its own with these settings; `None` after printing the reason
    /// if there is none.
    pub fn with_settings(test: &str, settings: &[(&str, &str)]) -> Option<Database> {
        has_postgresql(test).then(|| Database::on(Arc::new(start(settings))))
    }

    fn on(server: Arc<Server>) -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let database = Database { server, name };
        let mut admin = database.connect_to(database.server.database());
        admin.execute(&format!("create database {}", database.name)).expect("a database");
        database
    }

    fn connect_to(&self, name: &str) -> Connection {
        let host = Host::unix(self.server.socket_dir(), self.server.port());
        Connection::open(&ConnectOptions::new(host, self.server.user(), name)).expect("a connection")
    }

    pub fn connect(&self) -> Connection {
        self.connect_to(&self.name)
    }

    /// The options that name the server, for isobench, pgbench and psql.
    pub fn server_options(&self) -> [String; 6] {
        let host = self.server.socket_dir().to_string_lossy().into_owned();
        let (port, user) = (self.server.port().to_string(), self.server.user().to_owned());
        ["-h".to_owned(), host, "-p".to_owned(), port, "-U".to_owned(), user]
    }

    /// The program with arguments, and the options that name this database.
    pub fn isobench(&self, scene: &Scene, arguments: &[&str]) -> Command {
        let mut command = scene.isobench(arguments);
        command.args(self.server_options()).args(["-d", &self.name]);
        command
    }

    /// Runs the program on this database to its end.
    pub fn run(&self, scene: &Scene, arguments: &[&str]) -> Finished {
        Running::start(&mut self.isobench(scene, arguments)).finish()
    }

    /// The port and the password of its TCP address, 127.0.0.1.
    pub fn tcp(&self) -> (String, String) {
        (self.server.port().to_string(), self.server.password().expect("a password").to_owned())
    }

    /// The first value of a query.
    pub fn value(&self, sql: &str) -> String {
        self.connect().value(sql).expect("an answer").unwrap_or_default()
    }

    /// All objects besides the system's own: kind and name, one per line.
    pub fn inventory(&self) -> String {
        self.value(
            "select coalesce(string_agg(what, ', ' order by what), '') from (
                select 'schema ' || nspname as what from pg_namespace
                    where nspname !~ '^pg_' and nspname not in ('information_schema', 'public')
                union all select nspname || '.' || relname from pg_class c join pg_namespace n on n.oid = relnamespace
                    where nspname !~ '^pg_' and nspname <> 'information_schema'
            ) as found",
        )
    }
}
