//! A server with the tables of the corpus, and the catalog of scripts that it has read.

#[path = "../../../isobench-observation/tests/observation/support/statements.rs"]
mod statements;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use isobench_database::Asked;
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_script::Script;
use isobench_sql::Catalog;
use isobench_testkit::installed::{postgresql_programs, skip};

/// The folder of the corpus of statements, with its schema.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../isobench-observation/tests/corpus")
}

/// A file of what is found of the corpus.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

/// The statements, each with its section.
pub fn statements() -> Vec<(String, String)> {
    statements::of(&corpus())
}

/// A server of its own, and a session.
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

/// A server with the tables of the corpus, which tests share that run at the same time.
pub struct Corpus {
    connection: Mutex<Connection>,
    catalog: Catalog,
    _server: Server,
}

impl Corpus {
    pub fn of(test: &str) -> Option<Arc<Corpus>> {
        static SHARED: Mutex<Weak<Corpus>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(corpus) = shared.upgrade() {
            return Some(corpus);
        }
        let (server, mut connection) = installed(test)?;
        connection.execute(&std::fs::read_to_string(corpus().join("schema.sql")).unwrap()).unwrap();
        let catalog = load(&mut connection);
        let corpus = Arc::new(Corpus { connection: Mutex::new(connection), catalog, _server: server });
        *shared = Arc::downgrade(&corpus);
        Some(corpus)
    }

    /// Its catalog, after the server has read these scripts.
    pub fn catalog(&self, scripts: &[Script]) -> Catalog {
        let mut catalog = self.catalog.clone();
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        catalog.read_statements(scripts, &mut Asked(&mut connection)).unwrap();
        catalog
    }
}
