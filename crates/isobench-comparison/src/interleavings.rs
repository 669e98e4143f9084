//! A workload's scripts tried against each other, on tables of their own.
//!
//! Not here: the search, and what it finds (`isobench_probe::interleaving`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isobench_database::InitOptions;
use isobench_isolation::Level;
use isobench_probe::Options;
use isobench_probe::interleaving::{Found, Programs, TryError, Trying, explore};
use isobench_runner::{Control, RunWorkload, Urgency};

use crate::failure::{Failure, Outcome};
use crate::setup::Setup;
use crate::site::Site;
use crate::tables::Tables;
use crate::workload::Sources;

/// Scripts, and the tables on which they are tried.
#[derive(Debug)]
pub struct Attempt {
    sources: Sources,
    tables: Tables,
    scale: u32,
    defined: Vec<(String, String)>,
}

/// How long and at which levels.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'a> {
    /// The levels, at least one.
    pub levels: &'a [Level],
    /// The time after which no further combination is begun; making the tables isn't included.
    pub budget: Duration,
    /// The limits of statements.
    pub options: Options,
}

impl Attempt {
    /// Takes scripts with the tables that belong to them: those of a checked workload, those that
    /// the file makes, or pgbench's for built-in scripts.
    ///
    /// # Errors
    /// Scripts of one's own without a file that makes their tables, or a file beside a workload that
    /// has its own.
    pub fn new(
        sources: Sources,
        setup: Option<&Path>,
        scale: u32,
        defined: Vec<(String, String)>,
    ) -> Outcome<Attempt> {
        let setup = setup.map(|path| Setup::read("setup", path)).transpose()?;
        let tables = match (sources.checked(), setup) {
            (Some(_), Some(_)) => {
                return Err(Failure::setup(format!(
                    "--setup: workload {} makes its own tables; leave the option out",
                    sources.name()
                )));
            }
            (Some(chosen), None) => Tables::Checked(chosen.clone()),
            (None, Some(setup)) => Tables::Own(setup),
            (None, None) if sources.writes().is_some() => {
                let options = InitOptions { scale, ..InitOptions::default() };
                Tables::Pgbench { options, functions: Vec::new() }
            }
            (None, None) => {
                return Err(Failure::setup(
                    "--file: scripts of your own need --setup FILE.sql, which makes their tables: interleavings are \
                     tried on tables that isobench may change",
                ));
            }
        };
        Ok(Attempt { sources, tables, scale, defined })
    }

    /// Makes the tables, and tries the scripts at each level.
    ///
    /// # Errors
    /// The tables can't be made; the server refuses or is gone; the search is stopped.
    pub fn carry_out(&self, site: &Site, extent: Extent<'_>, control: &Control) -> Outcome<Found> {
        let workload = self.sources.placed(&site.database, &[])?.workload(self.scale, 1, &self.defined)?;
        self.tables.make(site)?;
        let found = try_interleavings(site, &workload, extent, control);
        found.map_err(|error| Failure::Incomplete(format!("trying interleavings: {error}")))
    }
}

/// Tries the scripts of a workload against each other, on tables in their starting state.
///
/// # Errors
/// The server refuses or is gone, or the search is stopped.
pub fn try_interleavings(
    site: &Site,
    workload: &RunWorkload,
    extent: Extent<'_>,
    control: &Control,
) -> Result<Found, TryError> {
    let scripts = workload.mix.scripts().iter().map(|weighted| &weighted.script);
    let programs = Programs::new(scripts, workload.symbols.clone(), workload.variables.clone());
    let connector = site.connector().clone();
    let trying = Trying {
        open: Arc::new(move |_| connector.open()),
        product: site.database.product,
        levels: extent.levels,
        budget: extent.budget,
        options: extent.options,
        stopped: &|| control.urgency() > Urgency::None,
    };
    explore(&programs, &trying)
}
