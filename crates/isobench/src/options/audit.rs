//! Options of `isobench audit`: those of `compare`, with the defaults of a check instead of a
//! measurement.

use clap::{Arg, Args};

use super::CompareOptions;
use isobench_plan::Plan;

/// An option with another help, short and long.
fn says(arg: Arg, help: &'static str) -> Arg {
    arg.help(help).long_help(help)
}

/// Options of `isobench audit`.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "These are the usual options; --help-all lists every one.",
    after_long_help = "",
    mut_arg("workload", |arg| says(arg, "Checked workload, built-in script or script file (repeatable) [default: \
        registers]")),
    mut_arg("time", |arg| says(arg, "Seconds at each level [default: 10]")),
    mut_arg("warmup", |arg| says(arg, "Warm-up in seconds (also checked) [default: 0]")),
    mut_arg("rounds", |arg| says(arg, "Number of times every level is audited [default: 1]")),
    mut_arg("resolve", |arg| arg.hide_short_help(true)),
    mut_arg("history", |arg| says(arg, "Folder for the recorded histories [default: isobench-history]")
        .hide_short_help(false)),
    mut_arg("no_verdict", |arg| arg.hide(true))
)]
pub struct AuditOptions {
    /// The options given; the others get audit's defaults.
    #[command(flatten)]
    compare: CompareOptions,
}

impl AuditOptions {
    /// Returns them as options of a comparison.
    pub fn resolve(self) -> CompareOptions {
        let history = self.compare.history.unwrap_or_else(|| "isobench-history".into());
        CompareOptions { defaults: defaults(), history: Some(history), ..self.compare }
    }
}

/// The defaults that differ from a comparison's.
fn defaults() -> Plan {
    Plan {
        workload: Some(vec!["registers".to_owned()]),
        time: Some(10.0),
        warmup: Some(0.0),
        rounds: Some(1),
        ..Plan::default()
    }
}
