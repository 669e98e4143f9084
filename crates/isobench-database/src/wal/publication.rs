//! The publication that selects the tables, and the lock that tells whose it is.
//!
//! It is marked by a comment as the schema `isobench` is, and named by a lock of its own: a marked
//! publication is the leftover of a killed run unless another session holds the lock.

use isobench_pgwire::Connection;

use super::WalPlugin;
use super::error::WalError;
use super::tables::Readable;
use crate::error::Error;
use crate::namespace::MARK;
use crate::quoting::identifier;

/// The name of the publication, which is unique in its database.
pub(crate) const NAME: &str = "isobench_wal";
/// The key of the advisory lock: the letters `isobwal`.
const LOCK_KEY: i64 = i64::from_be_bytes(*b"isobwal\0");
/// The kind of object, for messages.
const WHAT: &str = "publication";

/// Takes the lock, and removes the leftover of a killed run.
///
/// # Errors
/// [`Error::InUse`], [`Error::NotOurs`], or an error of the server or the connection.
pub(crate) fn claim(conn: &mut Connection) -> Result<(), Error> {
    let lock = format!("SELECT pg_catalog.pg_try_advisory_lock({LOCK_KEY})");
    match conn.value(&lock).map_err(|error| Error::of(error, &lock))?.as_deref() {
        Some("t") => remove(conn),
        _ => Err(Error::InUse { what: WHAT, name: NAME.to_owned() }),
    }
}

/// Makes the publication of these tables. Call it only after [`claim`].
///
/// # Errors
/// [`WalError::NotAllowed`], or an error of the server or the connection.
pub(crate) fn make(conn: &mut Connection, tables: &[Readable]) -> Result<(), WalError> {
    // ONLY leaves out tables that inherit, whose keys weren't examined. Partitions are included
    // nevertheless.
    let name = |table: &Readable| format!("ONLY {}.{}", identifier(&table.schema), identifier(&table.table));
    let tables: Vec<String> = tables.iter().map(name).collect();
    let create = format!(
        "CREATE PUBLICATION {NAME} FOR TABLE {} WITH (publish = 'insert, update, delete, truncate', \
         publish_via_partition_root = true); COMMENT ON PUBLICATION {NAME} IS '{MARK}'",
        tables.join(", ")
    );
    match conn.execute(&create) {
        Ok(_) => Ok(()),
        Err(error) => Err(WalError::of_rights(WalPlugin::Pgoutput, Error::of(error, &create))),
    }
}

/// Removes the publication, if it exists and has our mark.
///
/// # Errors
/// [`Error::NotOurs`], or an error of the server or the connection.
pub(crate) fn remove(conn: &mut Connection) -> Result<(), Error> {
    let marked = format!(
        "SELECT coalesce(pg_catalog.obj_description(oid, 'pg_publication'), '') \
         FROM pg_catalog.pg_publication WHERE pubname = '{NAME}'"
    );
    match conn.value(&marked).map_err(|error| Error::of(error, &marked))?.as_deref() {
        None => Ok(()),
        Some(MARK) => {
            let drop = format!("DROP PUBLICATION {NAME}");
            conn.execute(&drop).map(|_| ()).map_err(|error| Error::of(error, &drop))
        }
        Some(_) => Err(Error::NotOurs { what: WHAT, name: NAME.to_owned() }),
    }
}

/// Removes the publication over a new session, after the one that made it was lost. Waits until the
/// server has noticed the loss; if another run has taken over, it has removed it already.
///
/// # Errors
/// As [`remove`].
pub(crate) fn remove_later(conn: &mut Connection) -> Result<(), Error> {
    let wait = format!("SET lock_timeout = '10s'; SELECT pg_catalog.pg_advisory_lock({LOCK_KEY})");
    match conn.execute(&wait) {
        Ok(_) => remove(conn),
        Err(error) if error.code() == Some(isobench_pgwire::SqlState::LOCK_NOT_AVAILABLE) => Ok(()),
        Err(error) => Err(Error::of(error, &wait)),
    }
}
