//! Creates the tables of a workload.

use isobench_database::{Database, Error, checkpoint, execute, mark, require_ours, tidy};
use isobench_pgwire::Connection;

use crate::chosen::Chosen;

/// Makes the tables of a workload among the user's own, as [`make`] does, if everything there with
/// one of their names was made here before; and marks them so. Ends with a checkpoint where product and
/// role permit it.
///
/// # Errors
/// As [`make`]; and if a table, sequence or routine of their names is somebody else's.
pub fn make_among_others(
    conn: &mut Connection,
    helpers: &mut [Connection],
    database: &Database,
    chosen: &Chosen,
) -> Result<Vec<String>, Error> {
    let names = chosen.names(database);
    require_ours(conn, &names)?;
    let mut notes = make(conn, helpers, database, chosen)?;
    notes.extend(checkpoint(conn, database)?);
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

/// Drops and recreates the tables of a workload in a place of isobench's own, vacuumed and analyzed
/// where the product supports it; [`checkpoint`] writes them. `helpers` are further sessions there,
/// which load a share each if the workload can be loaded by several ([`Chosen::sessions`]). Returns
/// notes for the user, for example that the statistics couldn't be refreshed; usually none.
///
/// # Errors
/// If the server refuses a command other than the statistics, or a connection is lost.
pub fn make(
    conn: &mut Connection,
    helpers: &mut [Connection],
    database: &Database,
    chosen: &Chosen,
) -> Result<Vec<String>, Error> {
    let stages = chosen.stages(database, 1 + helpers.len()).map_err(|error| Error::Answer {
        statement: format!("set-up of {}", chosen.name()),
        got: error.to_string(),
    })?;
    let names = chosen.names(database);
    let run = |conn: &mut Connection, statements: &[String]| -> Result<(), Error> {
        statements.iter().try_for_each(|sql| execute(conn, database, &database.place(sql, &names)).map(drop))
    };
    run(conn, &stages.before)?;
    std::thread::scope(|scope| {
        let sessions = std::iter::once(&mut *conn).chain(helpers);
        let shares = sessions.zip(&stages.loads).map(|(session, share)| scope.spawn(|| run(session, share)));
        let shares: Vec<_> = shares.collect();
        shares
            .into_iter()
            .try_for_each(|share| share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    run(conn, &stages.after)?;
    let mut notes = Vec::new();
    tidy(conn, database, &chosen.tables(), &mut notes)?;
    Ok(notes)
}
