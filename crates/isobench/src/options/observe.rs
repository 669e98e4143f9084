//! Options of `isobench observe`.

use std::path::PathBuf;

use clap::Args;
use isobench_plan::Plan;

use super::{ConnectionOptions, EmbeddedOptions};

/// The heading of options that name scripts and tables.
const SCRIPTS: &str = "What to look at";

/// Options of `isobench observe`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  isobench observe -w tpcb-like
  isobench observe --file order.sql --setup tables.sql --sent
  isobench observe --file order.sql --schema shop -h db.example -d shop")]
pub struct ObserveOptions {
    /// Script files, - for standard input (repeatable)
    #[arg(long, short = 'f', alias = "script", value_name = "FILE", num_args = 1.., help_heading = SCRIPTS)]
    pub file: Option<Vec<String>>,
    /// Built-in script, by its name or a prefix (repeatable)
    #[arg(long, short = 'b', value_name = "NAME", help_heading = SCRIPTS)]
    pub builtin: Option<Vec<String>>,
    /// Checked workload, built-in script or script file, each by itself (repeatable)
    #[arg(
        long,
        short = 'w',
        value_name = "NAME|FILE",
        help_heading = SCRIPTS,
        conflicts_with_all = ["file", "builtin"]
    )]
    pub workload: Option<Vec<String>>,
    /// SQL script that makes the tables of your own scripts
    #[arg(long, value_name = "FILE.sql", help_heading = SCRIPTS)]
    pub setup: Option<PathBuf>,
    /// Schema with your own tables on a server; only the catalogs are read
    #[arg(long, value_name = "NAME", help_heading = SCRIPTS, conflicts_with = "setup")]
    pub schema: Option<String>,
    /// Show the SQL that is sent in place of each statement
    #[arg(long)]
    pub sent: bool,
    /// Write what can be tracked as JSON to this file (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The embedded server.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// The named server.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl ObserveOptions {
    /// Returns a plan with these scripts and tables; `None` if no script is named.
    pub fn plan(&self) -> Option<Plan> {
        let named = self.file.is_some() || self.builtin.is_some() || self.workload.is_some();
        named.then(|| Plan {
            workload: self.workload.clone(),
            file: self.file.clone(),
            builtin: self.builtin.clone(),
            setup: self.setup.clone(),
            schema: self.schema.clone(),
            // Nothing is executed, so all data are kept.
            keep_data: self.schema.as_ref().map(|_| true),
            ..Plan::default()
        })
    }
}
