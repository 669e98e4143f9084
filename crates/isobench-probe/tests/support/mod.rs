//! Servers for tests.

use isobench_database::{Database, Error, detect};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::installed::{postgresql_programs, skip};

/// A server and how to reach it.
pub struct Place {
    pub server: Server,
    pub database: Database,
}

impl Place {
    /// Starts a server with the programs in a folder.
    pub fn start(bin: std::path::PathBuf) -> Place {
        let settings = vec![("max_connections".to_owned(), "20".to_owned())];
        let options = ServerOptions { bin: Some(bin), settings, ..ServerOptions::default() };
        let server = Server::start(&options, &mut |_| {}).expect("a server");
        let database = detect(&mut open(&server).expect("a connection")).expect("a product");
        Place { server, database }
    }

    pub fn open(&self) -> Result<Connection, Error> {
        open(&self.server)
    }
}

fn open(server: &Server) -> Result<Connection, Error> {
    let host = Host::unix(server.socket_dir(), server.port());
    Ok(Connection::open(&ConnectOptions::new(host, server.user(), server.database()))?)
}

/// The installed PostgreSQL; `None` after saying that there is none.
pub fn installed(test: &str) -> Option<Place> {
    let found = postgresql_programs().filter(|bin| bin.join("initdb").is_file());
    if found.is_none() {
        skip(test, "no PostgreSQL is installed");
    }
    found.map(Place::start)
}
