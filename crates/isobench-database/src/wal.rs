//! Committed writes from PostgreSQL's write-ahead log, as a second source beside what sessions see.
//!
//! Logical decoding gives every committed write of a table, whoever made it: functions, triggers
//! and cascades, too. Transactions come in the order of their commit records, and that is the order
//! of every row's versions: a transaction writes a row that another one has written only after that
//! one's commit is in the log, because until then it waits for the row's lock. What was rolled back,
//! to a savepoint as well, isn't there; reads aren't either.
//!
//! [`WalReader`] reads by SQL functions over one session, without the replication protocol, from a
//! temporary slot, which ends with the session. The slot keeps the server from removing the log before
//! it is read, within `max_slot_wal_keep_size`, and dead rows of its catalogs.
//!
//! On a server of isobench's own `pgoutput` decodes, which takes a publication of the tables. That is an
//! object of the database, and may make statements fail, so on a server that the user names it is
//! `test_decoding`: that takes nothing but the slot ([`WalPlugin`]).
//!
//! | file | holds |
//! |---|---|
//! | `pgoutput`, `assembly` | the decoder of its messages, joined to transactions; no I/O |
//! | `test_decoding` | the decoder of its lines, joined to transactions; no I/O |
//! | `collector`, `transaction` | transactions; no I/O |
//! | `tables` | which tables can be read |
//! | `publication`, `slot` | what is made on the server, and reading |
//!
//! Limits: with `pgoutput` `TRUNCATE` of a single partition isn't there (PostgreSQL manual, "CREATE
//! PUBLICATION", `publish_via_partition_root`). Keys are compared as texts. A reader is started after
//! the tables have been made: one that is dropped and made anew isn't read any more, and with
//! `test_decoding`, whose lines have names only, reading fails then.

mod assembly;
mod collector;
mod error;
mod pgoutput;
mod publication;
mod slot;
mod tables;
mod test_decoding;
mod transaction;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use isobench_limits::LIMITS;
use isobench_pgwire::Connection;

use self::assembly::Assembler;
pub use self::error::{TestDecodingError, WalError};
pub use self::pgoutput::PgoutputError;
use self::slot::Decoder;
pub use self::tables::{LeftOut, LeftOutReason};
use self::tables::{Place, Readable};
use self::test_decoding::{Lines, Part};
pub use self::transaction::{WalRelation, WalTransaction, WalWrite, WalWriteKind, key_text};
use crate::database::Database;
use crate::error::Error;
use crate::namespace::Connector;
use crate::products::POSTGRESQL;

/// A session's settings that decide how constants, texts and transactions work there, whatever the
/// role's defaults are. None of them changes how values are written as text. The server doesn't end
/// the session for being idle during a run.
const PREPARE: &str = "SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; \
    SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
    SET synchronous_commit = local; SET idle_session_timeout = 0; \
    SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; SET lock_timeout = 0";

/// What lets a server notice within a minute that the program with a slot is gone, even if its machine
/// or the network is.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; \
    SET tcp_keepalives_count = 3";

/// What decodes the log on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WalPlugin {
    /// Takes a publication of the tables, an object of the database that may make statements on them
    /// fail. For a server or a schema of isobench's own.
    Pgoutput,
    /// Takes nothing but the slot, and no statement fails because of it. Decodes what others write in
    /// the database, too. For a server that the user names.
    TestDecoding,
}

impl WalPlugin {
    /// The name of the server's library.
    pub fn name(self) -> &'static str {
        match self {
            WalPlugin::Pgoutput => "pgoutput",
            WalPlugin::TestDecoding => "test_decoding",
        }
    }
}

/// The tables to read, and limits.
#[derive(Debug, Clone)]
pub struct WalOptions {
    /// The tables, as schema and name. Partitions needn't be given beside their partitioned table;
    /// tables that inherit have to be.
    pub tables: Vec<(String, String)>,
    /// What decodes the log.
    pub plugin: WalPlugin,
    /// The most memory that one transaction may use, in bytes.
    pub memory: usize,
    /// The longest wait for transactions that are open when reading is prepared, and for the server to
    /// write its log.
    pub patience: Duration,
    /// The time without a call after which the server ends the session, and with it the slot; `None` for
    /// any time.
    pub idle: Option<Duration>,
}

impl WalOptions {
    /// Reads these tables, with 256 MiB for a transaction and the usual patience.
    pub fn new(tables: Vec<(String, String)>, plugin: WalPlugin) -> WalOptions {
        WalOptions { tables, plugin, memory: 256 << 20, patience: LIMITS.wal, idle: None }
    }
}

/// A place in the write-ahead log, as the server writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WalLsn(String);

/// Reads committed writes from the write-ahead log, beginning with those after it was started.
///
/// Dropping it removes slot and publication, over a new session if its own was lost. If the program
/// is killed, the slot ends with the session, and the next start in the same database removes the
/// publication.
#[derive(Debug)]
pub struct WalReader {
    connector: Connector,
    conn: Option<Connection>,
    slot: Option<String>,
    plugin: WalPlugin,
    patience: Duration,
    decoder: Decoder,
    /// Where the rows of the tables are, which has to stay as it is.
    places: Vec<Place>,
    tables: Vec<(String, String)>,
    left_out: Vec<LeftOut>,
    /// True while the publication may exist.
    published: bool,
    /// True after an error, when the slot is behind what was passed on.
    spent: bool,
}

impl WalReader {
    /// Makes the slot, and a publication if the plugin needs one, after checking the server's settings
    /// and the tables. Tables that can't be read are left out; publishing them might make the user's
    /// statements fail.
    ///
    /// Call this after the tables were made and before they are written; with [`WalPlugin::Pgoutput`]
    /// only for a server or a schema of isobench's own. Values are written as text by the connector's
    /// sessions, so their settings should be those of the sessions with which the log is compared.
    ///
    /// # Errors
    /// [`WalError::Product`], [`WalError::Standby`], [`WalError::Pooler`], [`WalError::Level`],
    /// [`WalError::NoSlots`], [`WalError::NoTables`], [`WalError::NoPlugin`], [`WalError::NotAllowed`],
    /// [`WalError::Open`]; with a publication [`Error::InUse`] if another reader is at work in this
    /// database, [`Error::NotOurs`] if its name is taken; or an error of the server or the connection.
    /// Nothing is left behind.
    pub fn start(connector: &Connector, db: &Database, options: &WalOptions) -> Result<WalReader, WalError> {
        let mut conn = open(connector, db, options)?;
        let (readable, left_out) = sort(&mut conn, &options.tables)?;
        if readable.is_empty() {
            return Err(WalError::NoTables(left_out));
        }
        let tables = readable.iter().map(|table| (table.schema.clone(), table.table.clone())).collect();
        let mut reader = WalReader::unprepared(connector, options);
        (reader.tables, reader.left_out) = (tables, left_out);
        match options.plugin {
            WalPlugin::Pgoutput => {
                let keys = readable.iter().map(|table| (table.id, table.key.clone())).collect();
                reader.decoder = Decoder::Messages(Assembler::new(keys, options.memory));
                publication::claim(&mut conn)?;
                reader.published = true;
                // In this order, because decoding needs a publication that is older than the slot.
                publication::make(reader.conn.insert(conn), &readable)?;
            }
            WalPlugin::TestDecoding => {
                reader.places = tables::places(&mut conn, &readable)?;
                reader.decoder = Decoder::Lines(Lines::new(parts(&readable, &reader.places), options.memory));
                reader.conn = Some(conn);
            }
        }
        reader.make_slot()?;
        // What was made in between would be read by its name.
        reader.check_places()?;
        Ok(reader)
    }

    /// Makes a slot as [`WalReader::start`] does with [`WalPlugin::TestDecoding`], reads from it, and
    /// removes it: everything that reading takes is there if this succeeds.
    ///
    /// # Errors
    /// As [`WalReader::start`].
    pub fn try_out(connector: &Connector, db: &Database) -> Result<(), WalError> {
        let options = WalOptions::new(Vec::new(), WalPlugin::TestDecoding);
        let conn = open(connector, db, &options)?;
        let mut reader = WalReader::unprepared(connector, &options);
        reader.conn = Some(conn);
        reader.make_slot()?;
        reader.read(&mut |_| ())?;
        reader.stop()
    }

    /// A reader of no tables without session and slot.
    fn unprepared(connector: &Connector, options: &WalOptions) -> WalReader {
        WalReader {
            connector: connector.clone(),
            conn: None,
            slot: None,
            plugin: options.plugin,
            patience: options.patience,
            decoder: Decoder::Lines(Lines::new(HashMap::new(), options.memory)),
            places: Vec::new(),
            tables: Vec::new(),
            left_out: Vec::new(),
            published: false,
            spent: false,
        }
    }

    fn make_slot(&mut self) -> Result<(), WalError> {
        if let Some(conn) = &mut self.conn {
            self.slot = Some(slot::make(conn, self.plugin, self.patience)?);
        }
        Ok(())
    }

    /// Checks that the rows of the tables are where they were, if they are known by names.
    fn check_places(&mut self) -> Result<(), WalError> {
        let (Some(conn), false) = (&mut self.conn, self.places.is_empty()) else { return Ok(()) };
        let roots: BTreeSet<u32> = self.places.iter().map(|place| place.root).collect();
        let now = tables::places_of(conn, &roots)?;
        let of = |root: u32, places: &[Place]| -> Vec<Place> {
            places.iter().filter(|place| place.root == root).cloned().collect()
        };
        match roots.into_iter().find(|root| of(*root, &now) != of(*root, &self.places)) {
            None => Ok(()),
            Some(root) => {
                let table = self.places.iter().find(|place| place.id == root);
                Err(WalError::Altered { table: table.map_or_else(String::new, |place| place.table.clone()) })
            }
        }
    }

    /// The tables that are read, as schema and name.
    pub fn tables(&self) -> &[(String, String)] {
        &self.tables
    }

    /// The tables that aren't read, with the reasons.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Reads everything that was committed since the start or the last call, and passes the
    /// transactions on in the order of their commits. Transactions that wrote no row of the tables
    /// are left out. At most one transaction and one answer of the server (32 MiB) are in memory.
    ///
    /// A transaction is committed, for this, as soon as its commit was answered, also with
    /// `synchronous_commit` off. May be called while clients are at work.
    ///
    /// # Errors
    /// The session is lost, the log can't be decoded, or a transaction is too large. Afterwards,
    /// every call is an error.
    pub fn read(&mut self, take: &mut dyn FnMut(WalTransaction)) -> Result<(), WalError> {
        let (Some(conn), Some(slot), false) = (&mut self.conn, &self.slot, self.spent) else {
            return Err(WalError::Spent);
        };
        let result = slot::end_of_log(conn, self.plugin, self.patience)
            .and_then(|upto| slot::read(conn, slot, &upto, &mut self.decoder, take))
            .and_then(|()| self.check_places());
        self.spent = result.is_err();
        result.map_err(|error| match error {
            WalError::Server(error) if error.is_connection_lost() => WalError::Lost(error),
            other => other,
        })
    }

    /// Reads everything that was committed since the start or the last call ([`WalReader::read`]).
    ///
    /// # Errors
    /// As [`WalReader::read`].
    pub fn read_all(&mut self) -> Result<Vec<WalTransaction>, WalError> {
        let mut transactions = Vec::new();
        self.read(&mut |transaction| transactions.push(transaction))?;
        Ok(transactions)
    }

    /// Removes slot and publication, and ends the session.
    ///
    /// # Errors
    /// The server refuses, or can't be reached; then the publication may be left.
    pub fn stop(mut self) -> Result<(), WalError> {
        self.remove()
    }

    fn remove(&mut self) -> Result<(), WalError> {
        let published = std::mem::take(&mut self.published);
        match self.conn.take().map(|conn| self.remove_over(conn, published)) {
            // The slot has ended with the lost session.
            Some(Err(error)) if error.is_connection_lost() => {
                if !published {
                    return Ok(());
                }
                // The publication belongs to no schema, and the connector's may be gone already.
                let within = self.connector.within(Some(LIMITS.removal));
                let mut conn = Connection::open(within.options()).map_err(Error::from)?;
                publication::remove_later(&mut conn)?;
                conn.close();
                Ok(())
            }
            Some(other) => Ok(other?),
            None => Ok(()),
        }
    }

    /// Removes slot and publication over the session that made them, and ends it.
    fn remove_over(&mut self, mut conn: Connection, published: bool) -> Result<(), Error> {
        conn.set_timeout(Some(LIMITS.removal));
        let run = |conn: &mut Connection, sql: &str| {
            conn.execute(sql).map(|_| ()).map_err(|error| Error::of(error, sql))
        };
        // A transaction is open after reading has failed.
        run(&mut conn, "ROLLBACK")?;
        if published {
            publication::remove(&mut conn)?;
        }
        if let Some(slot) = self.slot.take() {
            // It would end with the session, but a moment after that.
            run(&mut conn, &format!("SELECT pg_catalog.pg_drop_replication_slot('{slot}')"))?;
        }
        conn.close();
        Ok(())
    }
}

impl Drop for WalReader {
    fn drop(&mut self) {
        if self.published || self.conn.is_some() {
            // An error can't be reported any more.
            let _ = self.remove();
        }
    }
}

/// Checks that logical decoding exists there as it is used here.
fn check_product(db: &Database) -> Result<(), WalError> {
    if db.product.name == POSTGRESQL.name && db.at_least(14, 0) {
        Ok(())
    } else {
        Err(WalError::Product { product: db.product.name, version: db.version.clone() })
    }
}

/// Opens the session of a reader, and checks the server's settings.
fn open(connector: &Connector, db: &Database, options: &WalOptions) -> Result<Connection, WalError> {
    check_product(db)?;
    let mut conn = connector.open()?;
    conn.execute(PREPARE).map_err(|error| Error::of(error, PREPARE))?;
    let mut ask = |query: &str| match conn.value(query) {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(error) => Err(Error::of(error, query)),
    };
    if ask("SELECT pg_catalog.pg_is_in_recovery()")? == "t" {
        return Err(WalError::Standby);
    }
    let level = ask("SHOW wal_level")?;
    if level != "logical" {
        return Err(WalError::Level { found: level });
    }
    if ask("SHOW max_replication_slots")? == "0" {
        return Err(WalError::NoSlots("max_replication_slots is 0".to_owned()));
    }
    if options.plugin == WalPlugin::TestDecoding {
        let process = ask("SELECT pg_catalog.pg_backend_pid()")?;
        if process != conn.cancel_token().pid().to_string() {
            return Err(WalError::Pooler);
        }
        conn.execute(KEEPALIVE).map_err(|error| Error::of(error, KEEPALIVE))?;
        if let Some(idle) = options.idle {
            let limit = format!("SET idle_session_timeout = {}", idle.as_millis().clamp(1, 2_147_483_647));
            conn.execute(&limit).map_err(|error| Error::of(error, &limit))?;
        }
    }
    Ok(conn)
}

/// The tables and partitions by the names that lines have.
fn parts(readable: &[Readable], places: &[Place]) -> HashMap<(String, String), Part> {
    let tables: HashMap<u32, Part> = readable
        .iter()
        .map(|table| {
            let relation = WalRelation { schema: table.schema.clone(), table: table.table.clone() };
            (table.id, Part { relation: Arc::new(relation), key: table.key.clone().into() })
        })
        .collect();
    let part =
        |place: &Place| Some(((place.schema.clone(), place.table.clone()), tables.get(&place.root)?.clone()));
    places.iter().filter_map(part).collect()
}

/// Separates the tables that can be read from those that can't.
fn sort(
    conn: &mut Connection,
    tables: &[(String, String)],
) -> Result<(Vec<Readable>, Vec<LeftOut>), WalError> {
    let (mut readable, mut left_out) = (Vec::new(), Vec::new());
    for (schema, table) in tables.iter().collect::<BTreeSet<_>>() {
        match tables::examine(conn, schema, table)? {
            Ok(table) => readable.push(table),
            Err(table) => left_out.push(table),
        }
    }
    Ok((readable, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_postgresql_since_14_is_read() {
        for (text, expected) in [
            ("PostgreSQL 18.4 on x86_64-pc-linux-gnu", None),
            ("PostgreSQL 14.0 on x86_64-pc-linux-gnu", None),
            ("PostgreSQL 13.14 on x86_64-pc-linux-gnu", Some("this server is PostgreSQL 13.14")),
            ("PostgreSQL 15.12-YB-2.25.1.0-b381 on x", Some("this server is YugabyteDB 2.25.1.0-b381")),
        ] {
            let error =
                check_product(&Database::from_version_text(text)).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some());
            assert!(error.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
