//! The tables of a comparison's scripts, and their reset to the starting state.
//!
//! Not here: their invariants (`invariants.rs`).

use std::time::{Duration, Instant};

use isobench_database::{InitOptions, OwnNames, can_put_back, put_back};
use isobench_pgwire::Connection;
use isobench_result::StartingState;
use isobench_sql::Reach;
use isobench_workloads::Chosen;

use crate::failure::{Failure, Outcome};
use crate::setup::Setup;
use crate::site::Site;

/// The owner of the tables.
#[derive(Debug, Clone)]
pub enum Tables {
    /// pgbench's tables, and functions that the scripts call.
    Pgbench {
        /// The options of the tables.
        options: InitOptions,
        /// SQL that creates the functions.
        functions: Vec<String>,
    },
    /// The tables of a checked workload.
    Checked(Chosen),
    /// The user's own tables.
    Own(Setup),
    /// Existing tables, on a read-only server.
    Found,
    /// Existing tables of the user's in a schema of the user's, with the SQL that puts their rows
    /// back, if there is one.
    Kept(Option<Setup>),
}

/// pgbench's tables as loaded on a server, since then used by built-in scripts only.
#[derive(Debug)]
pub struct Loaded {
    options: InitOptions,
    took: Duration,
}

/// Tables in their starting state.
#[derive(Debug)]
pub struct Ready {
    /// The way to their starting state.
    pub state: StartingState,
    /// The time it took.
    pub took: Duration,
    /// True if every further cell takes as long; false for a load that isn't repeated.
    pub again: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Tables {
    /// Why these tables can't be made in a place of their own ([`Target::apart`]), if they can't: on a server
    /// of isobench's `own` that is a database, and a schema on another one.
    ///
    /// [`Target::apart`]: crate::Target::apart
    pub fn bound(&self, own: bool) -> Option<String> {
        let Tables::Own(setup) = self else { return None };
        let (reach, place) = setup.reach()?;
        let word = reach.word();
        if !own {
            return Some(format!(
                "{place} says \"{word}\", which reaches further than a schema of isobench's on this server: leave it \
                 out (from a dump: sed 's/public\\.//g; /set_config/d'), or name no server, so that isobench starts \
                 one of its own"
            ));
        }
        let whole = matches!(reach, Reach::Server(_));
        whole.then(|| {
            format!("{place} says \"{word}\", which concerns the whole server; leave that statement out")
        })
    }

    /// Brings the tables into their starting state but for a checkpoint ([`Tables::are_written`]):
    /// restores rows loaded before if the product prefers that, and otherwise creates the tables again.
    /// `builtin` is true if only built-in scripts will use them.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn prepare(&self, site: &Site, builtin: bool, loaded: &mut Option<Loaded>) -> Outcome<Ready> {
        let began = Instant::now();
        let mut notes = Vec::new();
        let left = match self {
            Tables::Found => Some(StartingState::Found),
            Tables::Kept(None) => Some(StartingState::Kept),
            Tables::Kept(Some(_)) => {
                self.make(site)?;
                Some(StartingState::Reset)
            }
            Tables::Pgbench { .. } | Tables::Checked(_) | Tables::Own(_) => None,
        };
        if let Some(state) = left {
            return Ok(Ready { state, took: began.elapsed(), again: true, notes });
        }
        let repeated = loaded.is_some();
        // From here on the loaded state may be lost.
        if let Some(before) = loaded.take().filter(|_| builtin) {
            match self.put_back(site, &before) {
                Ok(None) => {}
                Ok(Some((now, note))) => {
                    *loaded = Some(now);
                    notes.push(note);
                    let state = StartingState::PutBack;
                    return Ok(Ready { state, took: began.elapsed(), again: true, notes });
                }
                Err(error) if error.is_connection_lost() => return Err(Failure::setup(error)),
                Err(error) => notes.push(format!(
                    "the rows of the tables could not be put back, so that they are made anew: {error}"
                )),
            }
        }
        notes.extend(self.make(site)?);
        let took = began.elapsed();
        if let (true, Tables::Pgbench { options, .. }) = (builtin, self) {
            *loaded = Some(Loaded { options: options.clone(), took });
        }
        let lasting = loaded.as_ref().is_some_and(|loaded| loaded.serves(site, &loaded.options));
        // If several scales alternate, loads are repeated nevertheless.
        Ok(Ready { state: StartingState::Made, took, again: repeated || !lasting, notes })
    }

    /// True if they are made by SQL of a recorded application or a copied database.
    pub fn are_recorded(&self) -> bool {
        match self {
            Tables::Own(setup) | Tables::Kept(Some(setup)) => setup.is_recorded(),
            Tables::Pgbench { .. } | Tables::Checked(_) | Tables::Found | Tables::Kept(None) => false,
        }
    }

    /// True if the starting state includes that the server has written the tables, by a checkpoint:
    /// those that isobench makes. A user's set-up can run one.
    pub fn are_written(&self) -> bool {
        matches!(self, Tables::Pgbench { .. } | Tables::Checked(_))
    }

    /// Creates the tables again, or puts their rows back, without a checkpoint. Returns notes for the
    /// user.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn make(&self, site: &Site) -> Outcome<Vec<String>> {
        if matches!(self, Tables::Found | Tables::Kept(None)) {
            return Ok(Vec::new());
        }
        let mut connection = site.open().map_err(Failure::setup)?;
        if self.are_written() && site.is_embedded() {
            // A checkpoint follows, so no commit before it has to wait for the disk.
            connection.execute("SET synchronous_commit = off").map_err(Failure::setup)?;
        }
        let notes = match self {
            Tables::Pgbench { options, functions } => {
                isobench_database::reset(&mut connection, &site.database, options).and_then(|done| {
                    make_functions(&mut connection, site, functions)?;
                    Ok(done.notes)
                })
            }
            Tables::Checked(chosen) => make_checked(&mut connection, site, chosen),
            Tables::Own(sql) | Tables::Kept(Some(sql)) => {
                sql.run(&mut connection, site.is_embedded())?;
                Ok(Vec::new())
            }
            Tables::Found | Tables::Kept(None) => Ok(Vec::new()),
        };
        connection.close();
        notes.map_err(Failure::setup)
    }

    /// Restores the rows of loaded tables; `None` if other tables are needed, or a new load isn't
    /// slower. Returns the new state, and notes for readers of the result.
    fn put_back(
        &self,
        site: &Site,
        loaded: &Loaded,
    ) -> Result<Option<(Loaded, String)>, isobench_database::Error> {
        let Tables::Pgbench { options, functions } = self else { return Ok(None) };
        if !loaded.serves(site, options) {
            return Ok(None);
        }
        let mut connection = site.open()?;
        put_back(&mut connection, &site.database, &loaded.options, options)?;
        make_functions(&mut connection, site, functions)?;
        connection.close();
        let note = format!(
            "loading takes long on {}, so the tables were loaded once for each scale; before each further cell the \
             history was emptied and the balances put back, and what the server keeps of old rows stayed",
            site.database.product.name
        );
        Ok(Some((Loaded { options: options.clone(), took: loaded.took }, note)))
    }
}

/// Creates the tables of a checked workload, by as many sessions as help.
fn make_checked(
    connection: &mut Connection,
    site: &Site,
    chosen: &Chosen,
) -> Result<Vec<String>, isobench_database::Error> {
    let helpers: Result<Vec<Connection>, _> = (1..chosen.sessions()).map(|_| site.open()).collect();
    let mut helpers = helpers?;
    let notes = isobench_workloads::make(connection, &mut helpers, &site.database, chosen);
    helpers.into_iter().for_each(Connection::close);
    notes
}

/// Creates the functions that scripts call, in the schema of the tables.
fn make_functions(
    connection: &mut Connection,
    site: &Site,
    functions: &[String],
) -> Result<(), isobench_database::Error> {
    let names = OwnNames::made_by(functions.iter().map(String::as_str));
    for sql in functions {
        connection.execute(&site.database.place(sql, &names))?;
    }
    Ok(())
}

impl Loaded {
    /// Returns whether these tables can be restored to the requested state.
    fn serves(&self, site: &Site, wanted: &InitOptions) -> bool {
        can_put_back(&site.database, &self.options, self.took, wanted)
    }
}
