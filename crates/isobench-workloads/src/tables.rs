//! Creates the tables of a workload.

use isobench_database::{Database, Error, execute, mark, require_ours, tidy};
use isobench_pgwire::Connection;

use crate::chosen::Chosen;

/// Makes the tables of a workload among the user's own, as [`make`] does, if everything there with
/// one of their names was made here before; and marks them so.
///
/// # Errors
/// As [`make`]; and if a table, sequence or routine of their names is somebody else's.
pub fn make_among_others(
    conn: &mut Connection,
    database: &Database,
    chosen: &Chosen,
) -> Result<Vec<String>, Error> {
    let names = chosen.names(database);
    require_ours(conn, &names)?;
    let mut notes = make(conn, database, chosen)?;
    notes.extend(mark(conn, database, &names)?);
    Ok(notes)
}

/// Checks that the tables of a workload are there, and made by [`make_among_others`].
///
/// # Errors
/// If one is missing or somebody else's, or the server doesn't tell.
pub fn require_tables(conn: &mut Connection, database: &Database, chosen: &Chosen) -> Result<(), Error> {
    let there = require_ours(conn, &chosen.names(database))?;
    match chosen.tables().into_iter().find(|table| !there.iter().any(|name| name == table)) {
        Some(table) => Err(Error::MissingTable { table, workload: chosen.name() }),
        None => Ok(()),
    }
}

/// Drops and recreates the tables of a workload in a place of isobench's own, with vacuum, analyze and checkpoint where the
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
