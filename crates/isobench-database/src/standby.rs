//! Recognition of hot standbys, which can be read but not written.

use isobench_pgwire::Connection;

use crate::database::Database;
use crate::error::Error;
use crate::products::POSTGRESQL;

/// True if the server is a standby (PostgreSQL manual, "Hot Standby"). Since version 14 it reports
/// that at start-up; older versions, and servers behind a pooler, are asked.
///
/// # Errors
/// The connection is lost.
pub fn is_standby(conn: &mut Connection, db: &Database) -> Result<bool, Error> {
    const QUESTION: &str = "SELECT pg_catalog.pg_is_in_recovery()";
    if db.product.name != POSTGRESQL.name {
        return Ok(false);
    }
    if let Some(answer) = conn.parameter("in_hot_standby") {
        return Ok(answer == "on");
    }
    match conn.value(QUESTION) {
        Ok(answer) => Ok(answer.as_deref() == Some("t")),
        Err(error) if error.is_connection_lost() => Err(Error::of(error, QUESTION)),
        // A server that doesn't know the function isn't a standby.
        Err(_) => Ok(false),
    }
}
