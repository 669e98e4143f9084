//! A place on a server in which the tables of a cell lie and its sessions work.
//!
//! Not here: the server, and how such a place is made (`target.rs`).

use std::borrow::Cow;

use isobench_database::{Connector, Database, RelationSize, SessionSetting, checkpoint, relation_sizes};
use isobench_pgwire::Connection;
use isobench_result as report;

use crate::endpoint::Endpoint;
use crate::failure::{Failure, Outcome};

/// A place on a server: the connection's own, a schema of the user's, or a room of isobench's.
#[derive(Debug, Clone)]
pub struct Site {
    /// The product, its version, and the schema that administrative statements name.
    pub database: Database,
    connector: Connector,
    embedded: bool,
    /// The schema of the room, and the one that stands for it in results.
    room: Option<(String, String)>,
    /// Leads to the last standby, if there is one.
    standby: Option<Connector>,
    /// Leads to sessions with more rights than those of the scripts, if theirs are confined.
    controller: Option<Connector>,
    /// The way by which clients come, if that isn't the connector's.
    endpoint: Option<Endpoint>,
}

impl Site {
    /// A place where sessions of this connector work. `embedded` is true on a server that no other
    /// program uses.
    pub(crate) fn new(database: Database, connector: Connector, embedded: bool) -> Site {
        Site { database, connector, embedded, room: None, standby: None, controller: None, endpoint: None }
    }

    /// The same place with a standby, where it can be read.
    pub(crate) fn with_standby(self, standby: Option<Connector>) -> Site {
        Site { standby, ..self }
    }

    /// The same place, with a way to sessions of isobench's own that have more rights than those of the
    /// scripts.
    pub(crate) fn with_controller(self, controller: Option<Connector>) -> Site {
        Site { controller, ..self }
    }

    /// A room, a schema like this place's, named in administrative statements if this one is.
    pub(crate) fn room(&self, schema: String, connector: Connector) -> Site {
        let named = self.database.schema.clone();
        let database = Database { schema: named.as_ref().map(|_| schema.clone()), ..self.database.clone() };
        let room = named.map(|named| (schema, named));
        // Those who read on a standby have no rooms.
        let controller = self.controller.clone();
        let embedded = self.embedded;
        Site { database, connector, embedded, room, standby: None, controller, endpoint: None }
    }

    /// The same place with these settings in every session.
    pub(crate) fn with_settings(&self, settings: &[SessionSetting]) -> Site {
        Site {
            connector: self.connector.with_settings(settings),
            standby: self.standby.as_ref().map(|standby| standby.with_settings(settings)),
            ..self.clone()
        }
    }

    /// The same place, to which clients come by an endpoint.
    pub(crate) fn with_endpoint(self, endpoint: Option<Endpoint>) -> Site {
        Site { endpoint, ..self }
    }

    /// The way by which clients come, if it isn't the direct one.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    /// A connector for the clients' sessions.
    pub(crate) fn clients(&self) -> Connector {
        let direct = || self.connector.clone();
        self.endpoint.as_ref().map_or_else(direct, |endpoint| endpoint.clients(&self.connector))
    }

    /// What clients' sessions said outside of their transactions; nothing if that were other clients'.
    pub(crate) fn unshared<'s, T>(&self, said: &'s [T]) -> &'s [T] {
        if self.shares_sessions() { &[] } else { said }
    }

    /// True if no session of the clients keeps anything between transactions.
    pub(crate) fn shares_sessions(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.shares_sessions)
    }

    /// Returns a text of the scripts as it is where cells don't take turns, so that texts of all
    /// cells are alike.
    pub fn as_alone<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.room {
            Some((room, named)) => Cow::Owned(text.replace(&format!("{room}."), &format!("{named}."))),
            None => Cow::Borrowed(text),
        }
    }

    /// What distinguishes this place from those of the same name in other databases: the number of
    /// its schema, in this database's catalogs.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn identity(&self) -> Result<String, isobench_database::Error> {
        const QUERY: &str = "SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema()";
        let mut connection = self.open()?;
        let found = connection.value(QUERY)?;
        connection.close();
        Ok(found.unwrap_or_default())
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

    /// A connector for sessions that execute nothing of the scripts' and tables' SQL.
    pub fn controller(&self) -> &Connector {
        self.controller.as_ref().unwrap_or(&self.connector)
    }

    /// A connector for sessions on the last standby; `None` if there is none.
    pub fn standby(&self) -> Option<&Connector> {
        self.standby.as_ref()
    }

    /// True if its server is the embedded one.
    pub fn is_embedded(&self) -> bool {
        self.embedded
    }

    /// Lets the server write what was changed, so that it doesn't do so while clients are measured.
    /// Returns notes for readers of the result, if that isn't permitted.
    ///
    /// # Errors
    /// The server is gone.
    pub fn checkpoint(&self) -> Outcome<Vec<String>> {
        if !self.database.product.dialect.checkpoint {
            return Ok(Vec::new());
        }
        let mut connection = self.controller().open().map_err(Failure::setup)?;
        let notes = checkpoint(&mut connection, &self.database).map_err(Failure::setup)?;
        connection.close();
        Ok(notes)
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
