//! Creates the tables of a workload.

use isobench_database::{Database, Error, execute, tidy};
use isobench_pgwire::Connection;

use crate::chosen::Chosen;

/// Drops and recreates the tables of a workload, with vacuum, analyze and checkpoint where the
/// product supports them. Returns notes for the user, for example that a checkpoint wasn't
/// permitted; usually none.
///
/// # Errors
/// If the server refuses a command other than the checkpoint or the statistics, or the connection
/// is lost.
pub fn make(conn: &mut Connection, database: &Database, chosen: &Chosen) -> Result<Vec<String>, Error> {
    let setup = chosen.setup(database).map_err(|error| Error::Answer {
        statement: format!("set-up of {}", chosen.name()),
        got: error.to_string(),
    })?;
    let names = chosen.names(database);
    for statement in setup {
        execute(conn, database, &database.place(&statement, &names))?;
    }
    let mut notes = Vec::new();
    tidy(conn, database, &chosen.tables(), &mut notes)?;
    Ok(notes)
}
