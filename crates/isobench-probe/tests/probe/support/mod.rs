//! Servers for tests, and a simulated clock.

pub mod clock;

use std::sync::Arc;

use isobench_database::{Database, Error, detect};
use isobench_pgserver::{Server, ServerError, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_probe::Opener;
use isobench_testkit::installed::{postgresql_programs, skip};

/// A server and the options for connecting to it.
pub struct TestServer {
    pub server: Server,
    pub database: Database,
}

impl TestServer {
    /// Starts a server with the programs in a folder.
    pub fn start(bin: std::path::PathBuf) -> TestServer {
        TestServer::with(ServerOptions { bin: Some(bin), ..ServerOptions::default() }).expect("a server")
    }

    fn with(options: ServerOptions) -> Result<TestServer, ServerError> {
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let settings = vec![setting("max_connections", "20"), setting("fsync", "off")];
        let server = Server::start(&ServerOptions { settings, ..options }, &mut |_| {})?;
        let database = detect(&mut Connection::open(&connect_options(&server)).expect("a connection"))
            .expect("a product");
        Ok(TestServer { server, database })
    }

    pub fn opener(&self) -> Opener {
        opener(connect_options(&self.server))
    }

    pub fn open(&self) -> Result<Connection, Error> {
        (self.opener())("test")
    }
}

/// Opens sessions with these options.
pub fn opener(options: ConnectOptions) -> Opener {
    Arc::new(move |_| Ok(Connection::open(&options)?))
}

fn connect_options(server: &Server) -> ConnectOptions {
    let host = Host::unix(server.socket_dir(), server.port());
    ConnectOptions::new(host, server.user(), server.database())
}

/// The installed PostgreSQL; `None` after reporting that there is none.
pub fn installed(test: &str) -> Option<TestServer> {
    let found = postgresql_programs().filter(|bin| bin.join("initdb").is_file());
    if found.is_none() {
        skip(test, "no PostgreSQL is installed");
    }
    found.map(TestServer::start)
}

/// A fetched PostgreSQL; `None` after reporting why there is none.
pub fn fetched(test: &str, major: &str) -> Option<TestServer> {
    let version = Some(major.parse().expect("a version"));
    match TestServer::with(ServerOptions { version, ..ServerOptions::default() }) {
        Ok(server) => Some(server),
        Err(error) => {
            skip(test, &format!("PostgreSQL {major} can't be fetched: {error}"));
            None
        }
    }
}
