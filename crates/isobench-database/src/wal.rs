//! Committed writes from PostgreSQL's write-ahead log, as a second source beside what sessions see.
//!
//! Logical decoding gives every committed write of a table, whoever made it: functions, triggers
//! and cascades, too. Transactions come in the order of their commit records, and that is the order
//! of every row's versions: a transaction writes a row that another one has written only after that
//! one's commit is in the log, because until then it waits for the row's lock. What was rolled back,
//! to a savepoint as well, isn't there; reads aren't either.
//!
//! [`WalReader`] reads by SQL functions over one session, without the replication protocol: from a
//! temporary slot, which ends with the session, and a publication of the tables, which it removes.
//! The slot keeps the server from removing the log before it is read, within
//! `max_slot_wal_keep_size`.
//!
//! | file | holds |
//! |---|---|
//! | `pgoutput` | the decoder of the messages; no I/O |
//! | `assembly`, `transaction` | messages joined to transactions; no I/O |
//! | `tables` | which tables may be published |
//! | `publication`, `slot` | what is made on the server, and reading |
//!
//! Limits: `TRUNCATE` of a single partition isn't there (PostgreSQL manual, "CREATE PUBLICATION",
//! `publish_via_partition_root`). Keys are compared as texts; a table that is dropped and made
//! anew isn't read any more, so a reader is started after the tables have been made.

mod assembly;
mod error;
mod pgoutput;
mod publication;
mod slot;
mod tables;
mod transaction;

use std::collections::BTreeSet;
use std::time::Duration;

use isobench_limits::LIMITS;
use isobench_pgwire::Connection;

use self::assembly::Assembler;
pub use self::error::WalError;
pub use self::pgoutput::PgoutputError;
use self::tables::Readable;
pub use self::tables::{LeftOut, LeftOutReason};
pub use self::transaction::{WalRelation, WalTransaction, WalValue, WalWrite, WalWriteKind, key_text};
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

/// The tables to read, and limits.
#[derive(Debug, Clone)]
pub struct WalOptions {
    /// The tables, as schema and name. Partitions needn't be given beside their partitioned table;
    /// tables that inherit have to be.
    pub tables: Vec<(String, String)>,
    /// The most memory that one transaction may use, in bytes.
    pub memory: usize,
    /// The longest wait for transactions that are open when reading is prepared.
    pub patience: Duration,
}

impl WalOptions {
    /// Reads these tables, with 256 MiB for a transaction and the usual patience.
    pub fn new(tables: Vec<(String, String)>) -> WalOptions {
        WalOptions { tables, memory: 256 << 20, patience: LIMITS.wal }
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
    assembler: Assembler,
    tables: Vec<(String, String)>,
    left_out: Vec<LeftOut>,
    /// True while the publication may exist.
    published: bool,
    /// True after an error, when the slot is behind what was passed on.
    spent: bool,
}

impl WalReader {
    /// Makes publication and slot, after checking the server's settings and the tables. Tables that
    /// can't be read are left out, because publishing them might make the user's statements fail.
    ///
    /// A publication is an object of the database: call this only for a server or a schema of
    /// isobench's own, after the tables were made and before they are written. Values are written
    /// as text by the connector's sessions, so their settings should be those of the sessions with
    /// which the log is compared.
    ///
    /// # Errors
    /// [`WalError::Product`], [`WalError::Level`], [`WalError::NoSlots`], [`WalError::NoTables`],
    /// [`WalError::NotAllowed`], [`WalError::Open`]; [`Error::InUse`] if another reader is at work
    /// in this database, [`Error::NotOurs`] if the publication's name is taken; or an error of the
    /// server or the connection. Nothing is left behind.
    pub fn start(connector: &Connector, db: &Database, options: &WalOptions) -> Result<WalReader, WalError> {
        check_product(db)?;
        let mut conn = connector.open()?;
        conn.execute(PREPARE).map_err(|error| Error::of(error, PREPARE))?;
        check_settings(&mut conn)?;
        let (readable, left_out) = sort(&mut conn, &options.tables)?;
        if readable.is_empty() {
            return Err(WalError::NoTables(left_out));
        }
        publication::claim(&mut conn)?;
        let keys = readable.iter().map(|table| (table.id, table.key.clone())).collect();
        let mut reader = WalReader {
            connector: connector.clone(),
            conn: None,
            slot: None,
            assembler: Assembler::new(keys, options.memory),
            tables: readable.iter().map(|table| (table.schema.clone(), table.table.clone())).collect(),
            left_out,
            published: true,
            spent: false,
        };
        let conn = reader.conn.insert(conn);
        // In this order, because decoding needs a publication that is older than the slot.
        publication::make(conn, &readable)?;
        reader.slot = Some(slot::make(conn, options)?);
        Ok(reader)
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
        let result = slot::end_of_log(conn)
            .map_err(WalError::Server)
            .and_then(|upto| slot::read(conn, slot, &upto, &mut self.assembler, take));
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
        self.published = false;
        match self.conn.take().map(|conn| self.remove_over(conn)) {
            // The slot has ended with the lost session.
            Some(Err(error)) if error.is_connection_lost() => {
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
    fn remove_over(&mut self, mut conn: Connection) -> Result<(), Error> {
        conn.set_timeout(Some(LIMITS.removal));
        let run = |conn: &mut Connection, sql: &str| {
            conn.execute(sql).map(|_| ()).map_err(|error| Error::of(error, sql))
        };
        // A transaction is open after reading has failed.
        run(&mut conn, "ROLLBACK")?;
        publication::remove(&mut conn)?;
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
        if self.published {
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

fn check_settings(conn: &mut Connection) -> Result<(), WalError> {
    let mut ask = |query: &str| match conn.value(query) {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(error) => Err(Error::of(error, query)),
    };
    let level = ask("SHOW wal_level")?;
    if level != "logical" {
        return Err(WalError::Level { found: level });
    }
    let slots = ask("SHOW max_replication_slots")?;
    if slots == "0" {
        return Err(WalError::NoSlots { found: slots });
    }
    Ok(())
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
