//! The corpus on real servers: the catalog is read as expected, and what is sent has the author's
//! result and shows what the tables hold.

mod support;

use isobench_observation::Catalog;
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::golden::expect;
use isobench_testkit::installed::{postgresql_programs, skip};

/// A server of the installed PostgreSQL, or `None` after reporting why the test is skipped.
fn installed(test: &str) -> Option<Server> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let options = ServerOptions { bin: Some(bin), ..ServerOptions::default() };
    Some(Server::start(&options, &mut |_| {}).expect("the installed server starts"))
}

fn connect(server: &Server) -> Connection {
    let host = Host::unix(server.socket_dir(), server.port());
    Connection::open(&ConnectOptions::new(host, server.user(), server.database())).unwrap()
}

fn load(connection: &mut Connection) -> Catalog {
    Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).unwrap()
}

#[test]
fn the_catalog_is_read() {
    let Some(server) = installed("the_catalog_is_read") else { return };
    let mut connection = connect(&server);
    connection.query(&std::fs::read_to_string(support::corpus().join("schema.sql")).unwrap()).unwrap();
    let catalog = load(&mut connection);
    expect(support::corpus().join("catalog.txt"), &support::write(&catalog));
}
