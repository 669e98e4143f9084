//! Servers for tests, and a simulated clock.

pub mod clock;

use std::sync::Arc;

use isobench_database::{Database, Error, detect};
use isobench_pgserver::{Server, ServerOptions};
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
        let settings = vec![("max_connections".to_owned(), "20".to_owned())];
        let options = ServerOptions { bin: Some(bin), settings, ..ServerOptions::default() };
        let server = Server::start(&options, &mut |_| {}).expect("a server");
        let database = detect(&mut Connection::open(&connect_options(&server)).expect("a connection"))
            .expect("a product");
        TestServer { server, database }
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
