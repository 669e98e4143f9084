//! Whether a server is a hot standby, which can be read and not written.

use isobench_pgwire::Connection;

use crate::database::Database;
use crate::error::Error;
use crate::products::POSTGRESQL;

/// True if the server only follows a primary (PostgreSQL manual, "Hot Standby"). Since version 14
/// it says so at start-up, before and behind a pooler it is asked.
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
        // Whatever doesn't know the question follows nobody.
        Err(_) => Ok(false),
    }
}
