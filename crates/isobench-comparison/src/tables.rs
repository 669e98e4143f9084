//! The tables that the scripts of a comparison work on: how they get into their starting state.
//!
//! Not here: what must hold in them afterwards (`invariants.rs`).

use std::time::{Duration, Instant};

use isobench_database::{InitOptions, OwnNames, can_put_back, put_back};
use isobench_pgwire::Connection;
use isobench_report::StartingState;
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

/// pgbench's tables as they were loaded on a server, and since then used by nothing but built-in
/// scripts.
#[derive(Debug)]
pub struct Loaded {
    options: InitOptions,
    took: Duration,
}

/// Tables in their starting state.
#[derive(Debug)]
pub struct Ready {
    /// How they came into it.
    pub state: StartingState,
    /// How long that took.
    pub took: Duration,
    /// Whether it takes as long before each further cell; else it was a load that isn't repeated.
    pub again: bool,
    /// Notes for people.
    pub notes: Vec<String>,
}

impl Tables {
    /// Brings them into their starting state: puts back what was loaded before if the product asks
    /// for that, and else makes them anew. `builtin` says that nothing but built-in scripts will
    /// work on them.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn prepare(&self, target: &Target, builtin: bool, loaded: &mut Option<Loaded>) -> Outcome<Ready> {
        let began = Instant::now();
        let mut notes = Vec::new();
        if matches!(self, Tables::Found) {
            let state = StartingState::Found;
            return Ok(Ready { state, took: began.elapsed(), again: true, notes });
        }
        let repeated = loaded.is_some();
        // Whatever happens from now on, they aren't as they were.
        if let Some(before) = loaded.take().filter(|_| builtin) {
            match self.put_back(target, &before) {
                Ok(None) => {}
                Ok(Some((now, told))) => {
                    *loaded = Some(now);
                    notes.push(told);
                    let state = StartingState::PutBack;
                    return Ok(Ready { state, took: began.elapsed(), again: true, notes });
                }
                Err(error) if error.is_connection_lost() => return Err(Failure::setup(error)),
                Err(error) => notes.push(format!(
                    "the rows of the tables could not be put back, so that they are made anew: {error}"
                )),
            }
        }
        notes.extend(self.make(target)?);
        let took = began.elapsed();
        if let (true, Tables::Pgbench { options, .. }) = (builtin, self) {
            *loaded = Some(Loaded { options: options.clone(), took });
        }
        let lasting = loaded.as_ref().is_some_and(|loaded| loaded.serves(target, &loaded.options));
        // Where tables of several scales take turns, loads are repeated all the same.
        Ok(Ready { state: StartingState::Made, took, again: repeated || !lasting, notes })
    }

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
                    make_functions(&mut connection, target, functions)?;
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

    /// Puts back the rows of tables that were loaded; `None` if others are needed, or new ones are
    /// no slower. Returns what is there then, and what a reader of the result should know.
    fn put_back(
        &self,
        target: &Target,
        loaded: &Loaded,
    ) -> Result<Option<(Loaded, String)>, isobench_database::Error> {
        let Tables::Pgbench { options, functions } = self else { return Ok(None) };
        if !loaded.serves(target, options) {
            return Ok(None);
        }
        let mut connection = target.open()?;
        put_back(&mut connection, &target.database, &loaded.options, options)?;
        make_functions(&mut connection, target, functions)?;
        connection.close();
        let told = format!(
            "loading takes long on {}, so the tables were loaded once for each scale; before each further cell the history was emptied \
             and the balances put back, and what the server keeps of old rows stayed",
            target.database.product.name
        );
        Ok(Some((Loaded { options: options.clone(), took: loaded.took }, told)))
    }
}

/// Makes the functions that scripts call, where the tables are.
fn make_functions(
    connection: &mut Connection,
    target: &Target,
    functions: &[String],
) -> Result<(), isobench_database::Error> {
    let names = OwnNames::made_by(functions.iter().map(String::as_str));
    for sql in functions {
        connection.execute(&target.database.place(sql, &names))?;
    }
    Ok(())
}

impl Loaded {
    /// Whether these tables can be put back into the state that is wanted.
    fn serves(&self, target: &Target, wanted: &InitOptions) -> bool {
        can_put_back(&target.database, &self.options, self.took, wanted)
    }
}
