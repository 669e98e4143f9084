//! Options of `isobench compare`, except for those that are also keys of a plan file
//! (`isobench_plan`).

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::{ConnectionOptions, EmbeddedOptions, MachineOptions, MonitorOptions, TableOptions};
use isobench_plan::{Plan, Size};

/// The heading of options for the output.
const OUTPUT: &str = "Output";

/// The heading of options for standbys; the plan has more under the same one.
const STANDBYS: &str = "Standbys and faults";

/// The heading of rarely needed options; the plan has some under the same one.
const EXPERT: &str = "For experts";

/// Options of `isobench compare`.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "These are the usual options; --help-all lists every one.",
    after_long_help = ""
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct CompareOptions {
    /// The comparison.
    #[command(flatten)]
    pub plan: Plan,
    /// Defaults of the command where they aren't those of [`Plan::defaults`].
    #[arg(skip)]
    pub defaults: Plan,
    /// Repeat a published experiment (see isobench plans), or read the plan from this file; options
    /// override it
    #[arg(long = "plan", value_name = "NAME|FILE.toml", help_heading = "Plan")]
    pub plan_file: Option<PathBuf>,
    /// The plan's small size: of a published experiment about a minute [default]
    #[arg(long, requires = "plan_file", help_heading = "Plan", hide_short_help = true)]
    pub quick: bool,
    /// The plan's full size: of a published experiment the published size and time
    #[arg(long, requires = "plan_file", conflicts_with = "quick", help_heading = "Plan")]
    pub full: bool,
    /// On a named server: change settings of the whole server that --vary names (ALTER SYSTEM), and put
    /// them back at the end
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub alter_system: bool,
    /// On a named server: its standby, on which --readers read; a connection string or URI
    #[arg(long, value_name = "CONNINFO", help_heading = STANDBYS)]
    pub standby_server: Option<String>,
    /// Show the running cell while it is measured: throughput, conflicts, latency, what sessions
    /// wait for (on a terminal)
    #[arg(long, help_heading = OUTPUT)]
    pub live: bool,
    /// Explain the columns of the table
    #[arg(long, help_heading = OUTPUT)]
    pub legend: bool,
    /// Write the result (result.json) and the report (report.html) into this folder, also if the
    /// comparison is interrupted [default: isobench-results/TIME]
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT, conflicts_with_all = ["json", "html", "no_save"])]
    pub results: Option<PathBuf>,
    /// Write the result to this file as JSON, and nothing else unless it is named, too; - is
    /// standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub json: Option<PathBuf>,
    /// Write the report to this file as HTML, and nothing else unless it is named, too; - as for
    /// --json
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// Write neither result nor report
    #[arg(long, help_heading = OUTPUT, conflicts_with_all = ["json", "html"])]
    pub no_save: bool,
    /// Write one line for each cell and round to this file as CSV; - as for --json
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    pub csv: Option<PathBuf>,
    /// Write the recorded histories into this folder, a file for each cell and round
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT)]
    pub history: Option<PathBuf>,
    /// Record and check no history, and send every statement as written
    #[arg(long, help_heading = EXPERT, hide_short_help = true, conflicts_with = "history")]
    pub no_verdict: bool,
    /// On a server that isn't embedded: leave schema isobench behind
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub keep: bool,
    /// With --schema: don't ask whether the data there may be changed
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub yes: bool,
    /// Print all options
    #[arg(long, action = ArgAction::HelpLong, help_heading = "Help")]
    pub(super) help_all: Option<bool>,
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
}

impl CompareOptions {
    /// Returns the requested size of the plan.
    pub fn size(&self) -> Size {
        if self.full { Size::Full } else { Size::Quick }
    }
}
