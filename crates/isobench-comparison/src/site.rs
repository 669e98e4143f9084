//! A place on a server in which the tables of a cell lie and its sessions work.
//!
//! Not here: the server, and how such a place is made (`target.rs`).

use isobench_database::{Connector, Database, RelationSize, relation_sizes};
use isobench_pgwire::Connection;
use isobench_report as report;

/// A place on a server: the connection's own, a schema of the user's, or a room of isobench's.
#[derive(Debug, Clone)]
pub struct Site {
    /// The product, its version, and the schema that administrative statements name.
    pub database: Database,
    connector: Connector,
    embedded: bool,
}

impl Site {
    /// A place where sessions of this connector work. `embedded` is true on a server that no other
    /// program uses.
    pub(crate) fn new(database: Database, connector: Connector, embedded: bool) -> Site {
        Site { database, connector, embedded }
    }

    /// Opens a session there.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn open(&self) -> Result<Connection, isobench_database::Error> {
        self.connector.open()
    }

    /// A connector for further sessions, also from other threads.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// True if its server is the embedded one.
    pub fn is_embedded(&self) -> bool {
        self.embedded
    }

    /// Sizes of the tables and indexes there; empty if unknown.
    pub fn relations(&self) -> Vec<report::RelationSize> {
        let sizes = |mut connection| relation_sizes(&mut connection, &self.database).ok();
        let sizes = self.open().ok().and_then(sizes).unwrap_or_default();
        let size = |size: RelationSize| report::RelationSize {
            name: size.name,
            kind: size.kind,
            bytes: size.bytes,
            rows: size.rows,
        };
        sizes.into_iter().map(size).collect()
    }
}
