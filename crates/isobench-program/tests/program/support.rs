//! A server with the tables of the corpus, and the catalog of scripts that it has read.

#[path = "../../../isobench-observation/tests/observation/support/statements.rs"]
mod statements;

#[path = "../../../isobench-observation/tests/observation/installed.rs"]
mod own;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use isobench_database::Asked;
use isobench_pgserver::Server;
use isobench_pgwire::Connection;
use isobench_script::{Script, Symbols, parse};
use isobench_sql::Catalog;

pub use own::{connected, installed, load};

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

/// Scripts of these texts, by number: `0.sql`, `1.sql`, …
pub fn parsed(texts: &[&str]) -> (Vec<Script>, Symbols) {
    let mut symbols = Symbols::new();
    let script = |(number, text): (usize, &&str)| parse(&format!("{number}.sql"), text, &mut symbols);
    let scripts = texts.iter().enumerate().map(script).map(|one| one.expect("a script")).collect();
    (scripts, symbols)
}

/// The catalog after the server has read scripts.
pub fn reading(catalog: &Catalog, connection: &mut Connection, scripts: &[Script]) -> Catalog {
    let mut catalog = catalog.clone();
    catalog.read_statements(scripts, &mut Asked(connection)).unwrap();
    catalog
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
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        reading(&self.catalog, &mut connection, scripts)
    }
}
