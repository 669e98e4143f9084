//! The server that tests share, and a database of each test on it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};

/// Settings of every server of this file. Clients of several tests connect at the same time, and
/// deadlocks end soon.
const SETTINGS: [(&str, &str); 4] = [
    ("listen_addresses", "127.0.0.1"),
    ("fsync", "off"),
    ("max_connections", "200"),
    ("deadlock_timeout", "10ms"),
];

/// A database of one test. Dropping it drops the database, and the server ends with its last one.
pub struct Place {
    pub server: Arc<Server>,
    pub name: String,
}

/// The shared server, as long as a test uses it. A static variable is never dropped, so it mustn't own
/// the server: it would outlive the tests.
fn shared() -> Arc<Server> {
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
    let settings = SETTINGS.iter().chain(settings);
    let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() }, &mut |_| {});
    server.expect("a server")
}

impl Place {
    /// Creates a database on the shared server.
    pub fn shared() -> Place {
        Place::on(shared())
    }

    /// Creates a database on a server of its own with these settings.
    pub fn with_settings(settings: &[(&str, &str)]) -> Place {
        Place::on(Arc::new(start(settings)))
    }

    fn on(server: Arc<Server>) -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let place = Place { server, name };
        let mut admin = place.connect_to(place.server.database());
        admin.execute(&format!("create database {}", place.name)).expect("a database");
        place
    }

    fn connect_to(&self, name: &str) -> Connection {
        Connection::open(&self.options(name)).expect("a connection")
    }

    fn options(&self, name: &str) -> ConnectOptions {
        let host = Host::unix(self.server.socket_dir(), self.server.port());
        ConnectOptions::new(host, self.server.user(), name)
    }

    pub fn connect(&self) -> Connection {
        self.connect_to(&self.name)
    }

    /// The variables that name the database.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("PGHOST", self.server.socket_dir().to_string_lossy().into_owned()),
            ("PGPORT", self.server.port().to_string()),
            ("PGUSER", self.server.user().to_owned()),
            ("PGDATABASE", self.name.clone()),
        ]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Of a server that has ended, or is shared by nobody else, nothing remains.
        if Arc::strong_count(&self.server) > 1
            && let Ok(mut admin) = Connection::open(&self.options(self.server.database()))
        {
            let _ = admin.execute(&format!("drop database if exists {} with (force)", self.name));
        }
    }
}
