//! Asks the database whether a workload's invariants hold.

use isobench_database::{Database, Error};
use isobench_pgwire::Connection;

use crate::chosen::Chosen;
use crate::workload::Invariant;

/// What was found of one invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations {
    /// The invariant's name.
    pub name: &'static str,
    /// What must hold, in a sentence.
    pub meaning: &'static str,
    /// How many things are broken; 0: it holds. What is counted, is said by the invariant's
    /// meaning.
    pub found: u64,
    /// An example, if something is broken.
    pub example: Option<String>,
}

/// Asks for all invariants of a workload, one statement each; nobody else may be writing.
///
/// # Errors
/// A table is missing, the answer isn't understood, or the connection is lost. A violation is no
/// error.
pub fn check(conn: &mut Connection, database: &Database, chosen: &Chosen) -> Result<Vec<Violations>, Error> {
    chosen.invariants().into_iter().map(|invariant| ask(conn, database, chosen, invariant)).collect()
}

fn ask(
    conn: &mut Connection,
    database: &Database,
    chosen: &Chosen,
    invariant: &Invariant,
) -> Result<Violations, Error> {
    let sql = chosen.question(invariant);
    let sql = database.place(&sql, &chosen.names(database)).into_owned();
    let rows = isobench_database::query(conn, &sql)?.rows;
    let row = rows.into_iter().next().unwrap_or_default();
    let column = |index: usize| row.get(index).cloned().flatten();
    let found = column(0).and_then(|text| text.parse::<u64>().ok());
    let Some(found) = found else {
        return Err(Error::Answer { statement: sql, got: format!("{row:?}") });
    };
    let example = column(1).filter(|_| found > 0);
    Ok(Violations { name: invariant.name, meaning: invariant.meaning, found, example })
}
