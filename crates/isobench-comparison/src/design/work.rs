//! The scripts and tables of a cell: the workload with one strategy and one value of each
//! parameter.
//!
//! Not here: levels, clients, rates (`design.rs`), and the strategies themselves
//! (`isobench_workloads`).

use isobench_database::{Database, InitOptions};
use isobench_plan::{DEFAULT_STRATEGY, Vary};
use isobench_result::PlannedStrategy;
use isobench_result::factor::{SERVER_BIN, SERVER_VERSION, SETTING};
use isobench_runner::RunWorkload;
use isobench_suggest::did_you_mean;
use isobench_workloads::{Chosen, OnConflict, Strategy, UnknownWorkload, strategy};

use super::candidates::Rows;
use super::kept::Kept;
use super::values::wrong;
use super::vary::{Assignment, combinations};
use crate::failure::{Failure, Outcome};
use crate::setup::Setup;
use crate::tables::Tables;
use crate::workload::Sources;

/// The workload with one strategy and one value of each parameter.
#[derive(Debug, Clone)]
pub struct Work {
    /// Its workload, an index into [`super::Design::workloads`].
    pub workload: usize,
    /// The name of the strategy; `None` if the plan has none.
    pub strategy: Option<String>,
    /// The values of the parameters.
    pub varied: Assignment,
    /// The rows in which it is measured; `None`: all.
    pub rows: Option<Rows>,
    /// The scripts.
    pub sources: Sources,
    /// The tables.
    pub tables: Tables,
    /// Scale of the tables.
    pub scale: u32,
    /// Value of the variable `scale` in the scripts, if it differs from that of the tables.
    script_scale: Option<u32>,
    /// Variables of the user's own scripts.
    defined: Vec<(String, String)>,
}

/// The parts of the plan that all works of a workload share.
pub struct WorkBase<'a> {
    /// The number of the workload.
    pub workload: usize,
    /// The workload without strategy.
    pub sources: &'a Sources,
    /// SQL that creates the tables of the user's own workload.
    pub setup: Option<&'a Setup>,
    /// Existing tables of the user's.
    pub kept: Option<&'a Kept>,
    /// The options of pgbench's tables, with their scale.
    pub tables: &'a InitOptions,
}

impl WorkBase<'_> {
    /// Every combination of parameters with every strategy; strategies vary fastest. Without
    /// strategies the workload itself.
    ///
    /// # Errors
    /// The workload has no such strategy or parameter, or a value is out of range.
    pub fn works(&self, strategies: Option<&[&str]>, vary: &[Vary]) -> Outcome<Vec<Work>> {
        let strategies: Vec<Option<&str>> = match strategies {
            None => vec![None],
            Some(names) => names.iter().copied().map(Some).collect(),
        };
        let mut works = Vec::new();
        for varied in combinations(vary) {
            for strategy in &strategies {
                works.push(match self.sources.checked() {
                    Some(chosen) => self.checked(chosen, *strategy, &varied)?,
                    None => self.unchecked(*strategy, &varied)?,
                });
            }
        }
        Ok(works)
    }

    /// A work of a checked workload, whose strategies are variants and whose name has the
    /// parameters.
    fn checked(&self, chosen: &Chosen, strategy: Option<&str>, varied: &Assignment) -> Outcome<Work> {
        if strategy.is_some() && chosen.variant().is_some() {
            return Err(wrong(
                "strategies",
                format!(
                    "workload {} names a variant already; name it among the strategies instead",
                    chosen.name()
                ),
            ));
        }
        let variant = strategy.filter(|name| *name != DEFAULT_STRATEGY);
        let chosen = chosen.varied(variant, varied).map_err(|error| {
            let option = if matches!(error, UnknownWorkload::Variant { .. }) { "strategies" } else { "vary" };
            let of_tables = varied.keys().find(|name| option == "vary" && is_of_tables(name));
            let hint = of_tables.map_or("", |_| "; for a parameter of pgbench's tables add -w tpcb-like");
            wrong(option, format!("{error}{hint}"))
        })?;
        Ok(Work {
            workload: self.workload,
            strategy: strategy.map(str::to_owned),
            varied: varied.clone(),
            rows: None,
            sources: Sources::of_checked(chosen.clone())?,
            tables: Tables::Checked(chosen),
            scale: self.tables.scale,
            script_scale: None,
            defined: Vec::new(),
        })
    }

    /// A work of built-in scripts or the user's own.
    fn unchecked(&self, strategy: Option<&str>, varied: &Assignment) -> Outcome<Work> {
        let (sources, functions) = self.sources.coping(strategy.unwrap_or(DEFAULT_STRATEGY))?;
        if !functions.is_empty() && self.setup.is_some() {
            return Err(wrong(
                "strategies",
                format!(
                    "{} needs pgbench's tables, but --setup makes others; leave out one or the other",
                    strategy.unwrap_or_default()
                ),
            ));
        }
        let mut options = self.tables.clone();
        let (mut script_scale, mut defined) = (None, Vec::new());
        let made = self.setup.is_none() && self.kept.is_none();
        for (name, value) in varied {
            match name.as_str() {
                SCRIPT_SCALE => script_scale = Some(scale(name, value)?),
                name if made && is_of_tables(name) => set(&mut options, name, value)?,
                name if sources.mentions(name) => defined.push((name.to_owned(), value.clone())),
                name => return Err(unknown(name, made, sources.variables())),
            }
        }
        Ok(Work {
            workload: self.workload,
            strategy: strategy.map(str::to_owned),
            varied: varied.clone(),
            rows: None,
            scale: options.scale,
            sources,
            tables: match (self.setup, self.kept) {
                (_, Some(kept)) => Tables::Kept(kept.reset.clone()),
                (Some(setup), None) => Tables::Own(setup.clone()),
                (None, None) => Tables::Pgbench { options, functions },
            },
            script_scale,
            defined,
        })
    }
}

/// The parameter that sets the variable `scale` of the scripts.
const SCRIPT_SCALE: &str = "script-scale";

/// The parameters of pgbench's tables.
const OF_TABLES: [&str; 4] = ["scale", "foreign-keys", "unlogged-tables", "fillfactor"];

fn is_of_tables(name: &str) -> bool {
    OF_TABLES.contains(&name)
}

fn unknown<'a>(name: &str, pgbench: bool, variables: impl Iterator<Item = &'a str>) -> Failure {
    let known = OF_TABLES.into_iter().filter(|_| pgbench).chain([SCRIPT_SCALE, SERVER_VERSION, SERVER_BIN]);
    let meant = did_you_mean(name, known.chain(variables));
    let of_tables = if pgbench { format!("{}, ", OF_TABLES.join(", ")) } else { String::new() };
    wrong(
        "vary",
        format!(
            "\"{name}\"{meant} isn't a parameter here; there are {of_tables}{SCRIPT_SCALE}, {SERVER_VERSION}, \
             {SERVER_BIN}, {SETTING}NAME for settings, and the variables that scripts of your own mention"
        ),
    )
}

fn set(options: &mut InitOptions, name: &str, value: &str) -> Outcome {
    match name {
        "scale" => options.scale = scale(name, value)?,
        "foreign-keys" => options.foreign_keys = switch(name, value)?,
        "unlogged-tables" => options.unlogged = switch(name, value)?,
        _ => options.fillfactor = u8::try_from(number(name, value, 10, 100)?).unwrap_or(100),
    }
    Ok(())
}

/// The largest scale whose account numbers fit, as for `isobench init`.
const MOST_SCALE: u32 = 21_474;

fn scale(name: &str, value: &str) -> Outcome<u32> {
    number(name, value, 1, MOST_SCALE)
}

fn number(name: &str, value: &str, least: u32, most: u32) -> Outcome<u32> {
    let number = value.parse::<u32>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        wrong("vary", format!("{name}={value}: must be a whole number from {least} to {most}"))
    })
}

fn switch(name: &str, value: &str) -> Outcome<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(wrong("vary", format!("{name}={value}: must be on or off"))),
    }
}

impl Work {
    /// The same work with other scripts.
    #[must_use]
    pub fn with_sources(&self, sources: Sources) -> Work {
        Work { sources, ..self.clone() }
    }

    /// Returns the workload for the runner.
    ///
    /// # Errors
    /// A variable's name is invalid.
    pub fn workload(&self, seed: u64, database: &Database) -> Outcome<RunWorkload> {
        let scale = self.script_scale.unwrap_or(self.scale);
        self.placed(database)?.workload(scale, seed, &self.defined)
    }

    /// Returns its scripts, each alone, for the trial before the measurement.
    ///
    /// # Errors
    /// A variable's name is invalid.
    pub fn tried(&self, seed: u64, database: &Database) -> Outcome<Vec<RunWorkload>> {
        let scale = self.script_scale.unwrap_or(self.scale);
        self.placed(database)?.tried(scale, seed, &self.defined)
    }

    /// Returns its scripts, adapted to this server.
    fn placed(&self, database: &Database) -> Outcome<Sources> {
        let functions = match &self.tables {
            Tables::Pgbench { functions, .. } => functions.as_slice(),
            Tables::Checked(_) | Tables::Own(_) | Tables::Found | Tables::Kept(_) => &[],
        };
        self.sources.placed(database, functions)
    }

    /// Returns the row of its strategy, if it is a general one.
    fn known(&self) -> Option<&'static Strategy> {
        strategy(self.strategy.as_deref()?)
    }

    /// Returns the client's action after a conflict.
    pub fn on_conflict(&self) -> OnConflict {
        self.known().map_or(OnConflict::Retries, |strategy| strategy.client)
    }

    /// Returns the reason why this server doesn't support the strategy, if it doesn't.
    pub fn refusal(&self, database: &Database) -> Option<String> {
        self.known()?.refusal(database)
    }

    /// Its strategy for the result; `None` if the plan has none. `workload` as in
    /// [`Sources::planned`].
    pub fn planned(&self, workload: &str) -> Option<PlannedStrategy> {
        let name = self.strategy.as_ref()?;
        let variant = self.sources.checked().and_then(Chosen::variant).map(|variant| variant.summary);
        let summary = variant.or(self.known().map(|strategy| strategy.summary)).unwrap_or_default();
        let (least, most) = self.sources.round_trips();
        Some(PlannedStrategy {
            name: name.clone(),
            summary: summary.to_owned(),
            scripts: self.sources.planned(workload),
            round_trips_least: least,
            round_trips_most: most,
        })
    }
}
