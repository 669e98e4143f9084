//! Options of `isobench advise`.

use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Args};
use isobench_isolation::Level;
use isobench_plan::{Plan, RetriedState};

use super::{CaptureOptions, ConnectionOptions, EmbeddedOptions, GateOptions};

/// The heading of options that name scripts and tables.
const SCRIPTS: &str = "Transactions";

/// The heading of options of the measurement.
const LENGTH: &str = "Measurement";

/// The heading of options for the output.
const OUTPUT: &str = "Output";

/// The rounds of the measurement.
const ROUNDS: u32 = 8;

/// The seconds before each measured part. Rows are measured in turns, so what is left of a warm-up concerns all
/// alike.
const WARMUP: f64 = 0.2;

/// Options of `isobench advise`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status of --check: 3 if the levels of the file aren't enough.",
    mut_args(|arg| match arg.get_id().as_str() {
        "junit" | "sarif" => arg.help_heading(OUTPUT).requires("check"),
        _ => arg,
    }),
    group = ArgGroup::new("own").args(["file", "capture"]).multiple(true)
)]
pub struct AdviseOptions {
    /// The capture.
    #[command(flatten)]
    pub capture: CaptureOptions,
    /// Script file; several are one mix (repeatable)
    #[arg(long, short = 'f', value_name = "FILE[@WEIGHT]", help_heading = SCRIPTS)]
    pub file: Option<Vec<String>>,
    /// Built-in script, by its name or a prefix (repeatable)
    #[arg(long, short = 'b', value_name = "NAME[@WEIGHT]", help_heading = SCRIPTS)]
    pub builtin: Option<Vec<String>>,
    /// Checked workload (isobench workloads) [default: orders, if no script is named]
    #[arg(long, short = 'w', value_name = "NAME", help_heading = SCRIPTS, conflicts_with_all = ["file", "builtin"])]
    pub workload: Option<String>,
    /// SQL script that makes the tables of your own scripts
    #[arg(long, value_name = "FILE.sql", help_heading = SCRIPTS, requires = "own")]
    pub setup: Option<PathBuf>,
    /// Query that returns true as long as the data are right (repeatable)
    ///
    /// Such as 'total: SELECT sum(balance) = 1000 FROM account'.
    #[arg(long, value_name = "[NAME:] SQL", help_heading = SCRIPTS)]
    pub invariant: Option<Vec<String>>,
    /// Plan file with scripts and setup, such as isobench scripts writes
    #[arg(
        long = "plan",
        value_name = "FILE.toml",
        help_heading = SCRIPTS,
        conflicts_with_all = ["file", "builtin", "workload"]
    )]
    pub plan_file: Option<PathBuf>,
    /// Seconds for trying schedules that speak against levels, and as long again for changes
    #[arg(
        long = "try",
        value_name = "SECONDS",
        default_value = "10",
        value_parser = isobench_plan::seconds,
        help_heading = SCRIPTS
    )]
    pub budget: f64,
    /// Number of clients [default: 8]
    #[arg(long, short = 'c', visible_alias = "client", value_name = "NUM", help_heading = LENGTH)]
    pub clients: Option<u32>,
    /// Seconds of each row in each round, also 500ms [default: 1]
    #[arg(long, short = 'T', value_name = "SECONDS", value_parser = isobench_plan::seconds, help_heading = LENGTH)]
    pub time: Option<f64>,
    /// SQLSTATEs of further errors to retry, such as 23505 (unique violation)
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = LENGTH)]
    pub retry_sqlstate: Option<Vec<RetriedState>>,
    /// Number of rounds [default: 8]
    #[arg(long, value_name = "NUM", help_heading = LENGTH)]
    pub rounds: Option<u32>,
    /// Seed of all random numbers
    #[arg(long, value_name = "NUM", help_heading = LENGTH)]
    pub seed: Option<u64>,
    /// Also measure how often data go wrong if one transaction's level is too low
    #[arg(long, help_heading = LENGTH, conflicts_with = "no_measure")]
    pub controls: bool,
    /// Decide and try, but measure nothing
    #[arg(long, help_heading = LENGTH)]
    pub no_measure: bool,
    /// Print all reasons, changes and witnesses
    #[arg(long, help_heading = OUTPUT, conflicts_with = "check")]
    pub details: bool,
    /// Print how frameworks ask for these levels
    #[arg(long, help_heading = OUTPUT, conflicts_with = "check")]
    pub frameworks: bool,
    /// Write the advice as JSON to this file (- for stdout)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, conflicts_with = "check")]
    pub json: Option<PathBuf>,
    /// Write the advice as HTML to this file (- for stdout)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, conflicts_with = "check")]
    pub html: Option<PathBuf>,
    /// Write the levels to this file, for --check
    #[arg(long, value_name = "FILE.toml", help_heading = OUTPUT, conflicts_with = "check")]
    pub write: Option<PathBuf>,
    /// Check whether the levels of this file are still enough; measures nothing
    #[arg(long, value_name = "FILE.toml", help_heading = OUTPUT)]
    pub check: Option<PathBuf>,
    /// The files for services.
    #[command(flatten)]
    pub gates: GateOptions,
    /// The embedded server.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// The named server.
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print all options
    #[arg(long, action = ArgAction::HelpLong, help_heading = "Help")]
    help_all: Option<bool>,
}

impl AdviseOptions {
    /// Returns the plan of the measurement, with the scripts and tables of a plan file.
    pub fn plan(&self, file: Option<Plan>) -> Plan {
        let Some(file) = file else { return self.measured(self.scripts()) };
        let named = Plan {
            workload: file.workload,
            file: file.file,
            builtin: file.builtin,
            setup: file.setup,
            invariant: file.invariant,
            retry_sqlstate: file.retry_sqlstate,
            protocol: file.protocol,
            ..Plan::default()
        };
        self.measured(named)
    }

    /// The scripts and tables that the options name.
    fn scripts(&self) -> Plan {
        let own = self.file.is_some() || self.builtin.is_some();
        let workload = || vec![self.workload.clone().unwrap_or_else(|| "orders".to_owned())];
        Plan {
            workload: (!own).then(workload),
            file: self.file.clone(),
            builtin: self.builtin.clone(),
            setup: self.setup.clone(),
            ..Plan::default()
        }
    }

    /// A plan with the factors and the length of the measurement.
    fn measured(&self, scripts: Plan) -> Plan {
        Plan {
            invariant: self.invariant.clone().or(scripts.invariant),
            retry_sqlstate: self.retry_sqlstate.clone().or(scripts.retry_sqlstate),
            levels: Some(vec![Level::ReadCommitted]),
            clients: Some(vec![self.clients.unwrap_or(8)]),
            time: Some(self.time.unwrap_or(1.0)),
            rounds: Some(self.rounds.unwrap_or(ROUNDS)),
            warmup: Some(WARMUP),
            max_warmup: Some(WARMUP),
            seed: self.seed,
            // They were tried before.
            tries: Some(0.0),
            ..scripts
        }
    }
}
