//! Options of `isobench compare`, except for those that are also keys of a plan file
//! (`isobench_plan`).

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::{
    CaptureOptions, ConnectionOptions, EmbeddedOptions, GateOptions, MachineOptions, MonitorOptions,
    TableOptions,
};
use isobench_plan::{Plan, Size};

/// The heading of options that say what is compared; the plan has most of them.
const FACTORS: &str = "What to compare";

/// The heading of options for the output.
const OUTPUT: &str = "Output";

/// The heading of options for standbys; the plan has more under the same one.
const STANDBYS: &str = "Standbys and faults";

/// The heading of rarely needed options; the plan has some under the same one.
const EXPERT: &str = "Advanced";

/// Options shared with other commands that a comparison seldom needs.
const SELDOM: [&str; 6] = ["fillfactor", "unlogged_tables", "foreign_keys", "bin", "copy_from", "copy_limit"];

/// Options of `isobench compare`.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "These are the usual options; --help-all lists every one.",
    after_long_help = "",
    mut_args(|arg| match arg.get_id().as_str() {
        "junit" | "sarif" => arg.help_heading(OUTPUT).hide_short_help(true),
        id if SELDOM.contains(&id) => arg.hide_short_help(true),
        _ => arg,
    })
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct CompareOptions {
    /// The capture.
    #[command(flatten)]
    pub capture: CaptureOptions,
    /// The comparison.
    #[command(flatten)]
    pub plan: Plan,
    /// Defaults of the command where they aren't those of [`Plan::defaults`].
    #[arg(skip)]
    pub defaults: Plan,
    /// Repeat a published experiment (isobench plans), or read a plan file
    ///
    /// Options override it.
    #[arg(long = "plan", value_name = "NAME|FILE.toml", help_heading = FACTORS)]
    pub plan_file: Option<PathBuf>,
    /// The plan's small size, about a minute for a published experiment [default]
    #[arg(long, requires = "plan_file", help_heading = FACTORS, hide_short_help = true)]
    pub quick: bool,
    /// The plan's full size: the published size and time of a published experiment
    #[arg(
        long,
        requires = "plan_file",
        conflicts_with = "quick",
        help_heading = FACTORS,
        hide_short_help = true
    )]
    pub full: bool,
    /// On a named server: change settings of --vary by ALTER SYSTEM, and restore them
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub alter_system: bool,
    /// The standby of a server you connect to, for --readers; a connection string or URI
    #[arg(long, value_name = "CONNINFO", help_heading = STANDBYS, hide_short_help = true)]
    pub standby_server: Option<String>,
    /// Show throughput, conflicts and waits while measuring
    ///
    /// On a terminal: also latency, and what sessions wait for.
    #[arg(long, help_heading = OUTPUT)]
    pub live: bool,
    /// Print all details, not only what fits on a screen
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub details: bool,
    /// Print all details, and what the columns of the table mean
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub legend: bool,
    /// Folder for result and report [default: isobench-results/TIME]
    ///
    /// Files result.json and report.html, also if the comparison is interrupted.
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT, conflicts_with_all = ["json", "html", "no_save"])]
    pub results: Option<PathBuf>,
    /// Write the result as JSON to this file (- for stdout), no folder
    ///
    /// With - the table is written to standard error.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub json: Option<PathBuf>,
    /// Write the report as HTML to this file (- for stdout), no folder
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// Write neither result nor report
    #[arg(long, help_heading = OUTPUT, hide_short_help = true, conflicts_with_all = ["json", "html"])]
    pub no_save: bool,
    /// Write a line for each cell and round as CSV to this file (- for stdout)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    pub csv: Option<PathBuf>,
    /// The files for services.
    #[command(flatten)]
    pub gates: GateOptions,
    /// Write the recorded histories into this folder, a file for each cell and round
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT, hide_short_help = true)]
    pub history: Option<PathBuf>,
    /// Record and check no history, and send every statement as written
    #[arg(long, help_heading = EXPERT, hide_short_help = true, conflicts_with = "history")]
    pub no_verdict: bool,
    /// Keep the schema isobench afterwards, on a server you connect to
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub keep: bool,
    /// With --schema: don't ask whether the data there may be changed
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub yes: bool,
    /// Live metrics.
    #[command(flatten)]
    pub monitor: MonitorOptions,
    /// The machines.
    #[command(flatten)]
    pub machines: MachineOptions,
    /// The tables.
    #[command(flatten)]
    pub tables: TableOptions,
    /// The embedded server.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// The named server.
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print all options
    #[arg(long, action = ArgAction::HelpLong, help_heading = "Help")]
    pub(super) help_all: Option<bool>,
}

impl CompareOptions {
    /// Returns the requested size of the plan.
    pub fn size(&self) -> Size {
        if self.full { Size::Full } else { Size::Quick }
    }
}
