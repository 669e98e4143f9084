//! The installed PostgreSQL.

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_sql::Catalog;
use isobench_testkit::installed::{postgresql_programs, skip};

/// The installed PostgreSQL with a session; `None` if there is none, so that the test is skipped.
pub fn installed(test: &str) -> Option<(Server, Connection)> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let options = ServerOptions { bin: Some(bin), ..ServerOptions::default() };
    let server = Server::start(&options, &mut |_| {}).unwrap();
    let connection = connected(&server, server.database());
    Some((server, connection))
}

/// A connection to a database of a server.
pub fn connected(server: &Server, database: &str) -> Connection {
    let host = Host::unix(server.socket_dir(), server.port());
    Connection::open(&ConnectOptions::new(host, server.user(), database)).unwrap()
}

pub fn load(connection: &mut Connection) -> Catalog {
    Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).unwrap()
}
