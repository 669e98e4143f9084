//! The tables that the scripts of a comparison work on: how they get into their starting state.
//!
//! Not here: what must hold in them afterwards (`books.rs`).

use isobench_database::InitOptions;
use isobench_workloads::Chosen;

use crate::failure::{Failure, Outcome};
use crate::setup::Setup;
use crate::target::Target;

/// Whose tables they are.
#[derive(Debug, Clone)]
pub enum Tables {
    /// pgbench's, and functions that the scripts call.
    Pgbench {
        /// How they look.
        options: InitOptions,
        /// SQL that makes the functions.
        functions: Vec<String>,
    },
    /// A checked workload's.
    Checked(Chosen),
    /// The user's own.
    Own(Setup),
    /// Those that are there, on a server that can only be read.
    Found,
}

impl Tables {
    /// Makes them anew. Returns notes for people.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn make(&self, target: &Target) -> Outcome<Vec<String>> {
        if matches!(self, Tables::Found) {
            return Ok(Vec::new());
        }
        let mut connection = target.open().map_err(Failure::setup)?;
        let notes = match self {
            Tables::Pgbench { options, functions } => {
                isobench_database::reset(&mut connection, &target.database, options).and_then(|done| {
                    functions.iter().try_for_each(|sql| connection.execute(sql).map(drop))?;
                    Ok(done.notes)
                })
            }
            Tables::Checked(chosen) => isobench_workloads::make(&mut connection, &target.database, chosen),
            Tables::Own(setup) => {
                setup.run(&mut connection)?;
                Ok(Vec::new())
            }
            Tables::Found => Ok(Vec::new()),
        };
        connection.close();
        notes.map_err(Failure::setup)
    }
}
