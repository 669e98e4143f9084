//! Checks a workload's invariants in the database.

use isobench_database::{Database, Error};
use isobench_pgwire::Connection;

use crate::chosen::Chosen;
use crate::workload::Invariant;

/// The result of checking an invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations {
    /// The invariant's name.
    pub name: &'static str,
    /// The invariant, as a sentence.
    pub meaning: &'static str,
    /// The unit of `found`, in the plural.
    pub unit: &'static str,
    /// The number of violations, counted as the invariant's meaning says; 0 if it holds.
    pub found: u64,
    /// An example of a violation, if there are any.
    pub example: Option<String>,
}

/// Checks all invariants of a workload, with one statement each. There must be no concurrent
/// writers.
///
/// # Errors
/// If a table is missing, the result can't be parsed, or the connection is lost. A violation isn't
/// an error.
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
    Ok(Violations { name: invariant.name, meaning: invariant.meaning, unit: invariant.unit, found, example })
}
