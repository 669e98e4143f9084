//! A workload's scripts tried against each other, on tables of their own.
//!
//! Not here: the search, and what it finds (`isobench_probe::interleaving`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isobench_database::products::{COCKROACHDB, POSTGRESQL, YUGABYTEDB};
use isobench_database::{InitOptions, Product};
use isobench_isolation::Allocation;
use isobench_probe::Options;
use isobench_probe::interleaving::{
    ChangedTable as ProbedTable, Found, LevelFound, Order, Programs, Step, TriedCondition, TryError, Trying,
    Witness, explore, names_schema,
};
use isobench_result::numbers::counted;
use isobench_result::{AnsweredRows, ChangedTable, NotTried, OrderOutcome, Tried, TriedStep, WrongOutcome};
use isobench_runner::{Control, RunWorkload, Urgency};

use crate::cell::CellMeasurer;
use crate::conditions::{Condition, Conditions};
use crate::failure::{Failure, Outcome};
use crate::relations::require_relations;
use crate::setup::Setup;
use crate::site::Site;
use crate::tables::Tables;
use crate::workload::Sources;

/// The products whose catalog shows the tables well enough to put their rows back.
const TRIED_ON: [&str; 3] = [POSTGRESQL.name, COCKROACHDB.name, YUGABYTEDB.name];

/// Why interleavings aren't tried on a product, if they aren't.
fn untried_on(product: &Product) -> Option<String> {
    (!TRIED_ON.contains(&product.name)).then(|| format!("that isn't done on {}", product.name))
}

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
    /// The levels of the scripts, at least one.
    pub allocations: &'a [Allocation],
    /// The scripts that meet, by name, as [`Trying::combinations`] has them; `None`: all.
    pub combinations: Option<&'a [Vec<String>]>,
    /// The time after which no further combination is begun; making the tables isn't included.
    pub budget: Duration,
    /// Conditions that the tables have to meet.
    pub conditions: &'a [Condition],
    /// The limits of statements.
    pub options: Options,
    /// Values of variables are parameters (protocol extended or prepared).
    pub literals: bool,
}

impl Attempt {
    /// Takes scripts with the tables that belong to them: those of a checked workload, those that
    /// the file makes, or pgbench's for built-in scripts.
    ///
    /// # Errors
    /// Scripts of one's own without a file that makes their tables, or a file with a workload that
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

    /// The names of the scripts.
    pub fn names(&self) -> Vec<String> {
        self.sources.mix().scripts().iter().map(|one| one.script.name.clone()).collect()
    }

    /// True if SQL of a recorded application or a copied database is executed.
    pub fn runs_recorded_sql(&self) -> bool {
        self.sources.are_recorded() || self.tables.are_recorded()
    }

    /// The statements of the user's that make the tables, as a specification can hold them.
    ///
    /// # Errors
    /// Rows follow one of them; the place.
    pub fn setup(&self) -> Result<Vec<&str>, String> {
        let Tables::Own(setup) = &self.tables else { return Ok(Vec::new()) };
        match setup.rows() {
            Some(place) => Err(place),
            None => Ok(setup.placed_statements().map(|(_, sql)| sql).collect()),
        }
    }

    /// Makes the tables, and tries the scripts at each level.
    ///
    /// # Errors
    /// The tables can't be made; the server refuses or is gone; the search is stopped.
    pub fn carry_out(&self, site: &Site, extent: Extent<'_>, control: &Control) -> Outcome<Found> {
        if let Some(why) = untried_on(site.database.product) {
            return Err(Failure::setup(format!("trying interleavings: {why}")));
        }
        let workload = self.sources.placed(&site.database, &[])?.workload(self.scale, 1, &self.defined)?;
        let names: Vec<&str> = workload.mix.scripts().iter().map(|one| one.script.name.as_str()).collect();
        if let Some(unknown) = extent.allocations.iter().flat_map(|one| one.unknown(&names)).next() {
            return Err(Failure::setup(format!(
                "--allocation: no script is called {unknown}; the scripts are {}",
                names.join(", ")
            )));
        }
        self.tables.make(site)?;
        require_relations(site, &self.tables, workload.mix.scripts().iter().map(|one| &one.script))?;
        Conditions::require(extent.conditions, site.connector())?;
        try_interleavings(site, &workload, extent, control).map_err(|error| match error {
            TryError::Script { .. } => Failure::setup(format!("--file: {error}")),
            _ => Failure::Incomplete(format!("trying interleavings: {error}")),
        })
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
    // Scripts that don't meet others needn't be prepared.
    let meets =
        |name: &String| extent.combinations.is_none_or(|given| given.iter().flatten().any(|one| one == name));
    let scripts = workload.mix.scripts().iter().map(|weighted| &weighted.script);
    let scripts = scripts.filter(|script| meets(&script.name));
    let programs = Programs::new(scripts, workload.symbols.clone(), workload.variables.clone());
    let mut programs = programs.outside_of(&other_schemas(site)?);
    programs.literals = extent.literals;
    let connector = site.connector().clone();
    let conditions: Vec<TriedCondition> = extent.conditions.iter().map(Condition::tried).collect();
    let trying = Trying {
        conditions: &conditions,
        open: Arc::new(move |_| connector.open()),
        product: site.database.product,
        allocations: extent.allocations,
        combinations: extent.combinations,
        budget: extent.budget,
        options: extent.options,
        stopped: &|| control.urgency() > Urgency::None,
    };
    explore(&programs, &trying)
}

/// The schemas other than that of the tables, whose rows aren't put back.
///
/// # Errors
/// The server is gone, or a function in the schema of the tables names one of them.
fn other_schemas(site: &Site) -> Result<Vec<String>, TryError> {
    const OTHERS: &str = "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname <> current_schema() AND nspname NOT \
        IN ('pg_catalog', 'information_schema')";
    const FUNCTIONS: &str = "SELECT pg_catalog.pg_get_functiondef(p.oid) FROM pg_catalog.pg_proc p WHERE p.prokind IN \
        ('f', 'p') AND p.pronamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema())";
    let lost = |error: &dyn std::fmt::Display| TryError::Lost(error.to_string());
    let mut connection = site.open().map_err(|error| lost(&error))?;
    let mut texts = |sql: &str| -> Result<Vec<String>, TryError> {
        let rows = connection.query(sql).map_err(|error| lost(&error))?.rows;
        Ok(rows.into_iter().flatten().flatten().collect())
    };
    let (schemas, functions) = (texts(OTHERS)?, texts(FUNCTIONS)?);
    connection.close();
    let named = schemas.iter().find(|schema| functions.iter().any(|text| names_schema(text, schema)));
    named.map_or(Ok(()), |schema| Err(TryError::Elsewhere(schema.clone())))?;
    Ok(schemas)
}

impl CellMeasurer<'_> {
    /// True if the scripts of a work are to be tried against each other where the plan has time for it:
    /// histories are checked, on one machine, on tables of isobench's own.
    pub fn tries(&self, work: usize) -> bool {
        let tables = &self.design.works[work].tables;
        let made = matches!(tables, Tables::Pgbench { .. } | Tables::Checked(_) | Tables::Own(_));
        self.judging.is_some() && self.machines.is_none() && made
    }

    /// Tries the scripts of a work against each other, on tables of their own that are removed
    /// afterwards, and says so. Returns the reason if that can't be done or fails, and `None` if it isn't
    /// wanted.
    ///
    /// # Errors
    /// The tables can't be made.
    pub fn try_interleavings(
        &self,
        server: usize,
        work: usize,
        allocations: &[Allocation],
        budget: Duration,
        say: &mut dyn FnMut(&str),
    ) -> Outcome<Option<Result<Found, String>>> {
        if !self.tries(work) {
            return Ok(None);
        }
        let (target, work) = (&self.targets[server], &self.design.works[work]);
        if let Some(why) = untried_on(target.database.product) {
            return Ok(Some(Err(why)));
        }
        if let Some(why) = work.tables.bound(target.is_embedded()) {
            return Ok(Some(Err(why)));
        }
        let Some(room) = target.apart()? else {
            return Ok(Some(Err("there is no place for tables of their own".to_owned())));
        };
        // What two transactions do to each other doesn't depend on the number of rows.
        let tables = match &work.tables {
            Tables::Pgbench { options, functions } => Tables::Pgbench {
                options: InitOptions { scale: 1, ..options.clone() },
                functions: functions.clone(),
            },
            other => other.clone(),
        };
        let workload = work.workload(self.design.seed(), &room.database)?;
        let options = Options { step_timeout: STEP, ..Options::default() };
        let combinations = None;
        let literals = self.design.sends_parameters();
        let extent = Extent {
            allocations,
            combinations,
            budget,
            conditions: &self.design.conditions,
            options,
            literals,
        };
        let attempt = || -> Outcome<Result<Found, TryError>> {
            tables.make(&room)?;
            let found = try_interleavings(&room, &workload, extent, self.control);
            target.make_anew(&room)?;
            Ok(found)
        };
        say(&format!("trying the scripts against each other, for {:.0} s", budget.as_secs_f64().ceil()));
        let mut found = attempt()?;
        if found.as_ref().is_err_and(TryError::may_pass) {
            found = attempt()?;
        }
        let found = match found {
            Ok(found) => {
                say(&in_short(&found));
                Some(Ok(found))
            }
            Err(TryError::Stopped) => None,
            // If the server is gone, whatever comes next says so; a script may have ended its session.
            Err(error) => Some(Err(error.to_string())),
        };
        Ok(found)
    }
}

/// What was found at which levels, in a line: the first answer, long before the last round.
fn in_short(found: &Found) -> String {
    let trials: u64 = found.levels.iter().map(|level| level.trials).sum();
    let broken = found.levels.iter().filter(|level| level.gravest().is_some());
    let levels: Vec<String> = broken.map(|level| level.allocation.said()).collect();
    let shown = if levels.is_empty() {
        "nothing wrong was found".to_owned()
    } else {
        format!("an outcome that no serial order gives at {}", levels.join("; at "))
    };
    format!("tried {}: {shown}", counted(trials, "interleaving"))
}

/// The limit of a statement of a script that is tried.
const STEP: Duration = Duration::from_secs(5);

/// What the search found at a level, as the result document has it.
pub fn tried(found: &Found, level: &LevelFound) -> Tried {
    let reason =
        |(script, reason): &(String, String)| NotTried { script: script.clone(), reason: reason.clone() };
    let by_design = found.by_design.iter().filter(|other| other.allocation == level.allocation);
    Tried {
        interleavings: level.trials,
        with_failures: level.with_failures,
        inconclusive: level.inconclusive,
        complete: found.complete,
        untried: found.untried_at(&level.allocation).to_vec(),
        undetermined: found.undetermined,
        seconds: found.elapsed.as_secs_f64(),
        found: level.damage.iter().chain(&level.wrong_answer).map(wrong_outcome).collect(),
        not_tried: found.refused.iter().map(reason).collect(),
        masked: found.masked.iter().cloned().collect(),
        by_design: by_design.map(|other| format!("{} in {}", other.how, other.scripts)).collect(),
    }
}

/// What is said of cells whose scripts weren't tried at all.
pub fn untried(reason: String) -> Tried {
    Tried { not_tried: vec![NotTried { script: String::new(), reason }], ..Tried::default() }
}

fn wrong_outcome(witness: &Witness) -> WrongOutcome {
    let step = |step: &Step| TriedStep {
        transaction: step.transaction + 1,
        sql: step.sql.split_whitespace().collect::<Vec<_>>().join(" "),
        line: step.line,
        answer: step.answer(),
    };
    WrongOutcome {
        damage: witness.damage,
        scripts: witness.scripts.clone(),
        before: witness.before.clone(),
        no_level_prevents: witness.no_level_prevents,
        broken: witness.broken.clone(),
        steps: witness.steps.iter().map(step).collect(),
        outcome: order(&witness.outcome),
        serial_orders: witness.orders.iter().map(order).collect(),
    }
}

fn order(order: &Order) -> OrderOutcome {
    OrderOutcome {
        order: order.transactions.iter().map(|number| number + 1).collect(),
        changes: order.changes.clone(),
        answers: order.answers.iter().map(|(number, rows)| format!("T{}: {rows}", number + 1)).collect(),
        tables: order.tables.iter().map(changed).collect(),
        rows: order.rows.iter().map(answered).collect(),
    }
}

fn changed(table: &ProbedTable) -> ChangedTable {
    ChangedTable {
        table: table.name.clone(),
        columns: table.columns.clone(),
        removed: table.removed.clone(),
        added: table.added.clone(),
    }
}

fn answered((number, table): &(usize, isobench_probe::Table)) -> AnsweredRows {
    AnsweredRows { transaction: number + 1, columns: table.columns.clone(), rows: table.rows.clone() }
}
