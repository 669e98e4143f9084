//! Options of `isobench audit`: those of `compare`, with the defaults of a check instead of a
//! measurement.

use clap::Args;

use super::CompareOptions;
use isobench_plan::Plan;

/// Options of `isobench audit`.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "These are the usual options; --help-all lists every one.",
    after_long_help = "",
    mut_arg("workload", |arg| arg.help("Checked workload (see isobench workloads), built-in script, or script file with \
        --setup; several are audited in turn (repeatable) [default: registers]")),
    mut_arg("time", |arg| arg.help("Seconds at each level [default: 10]")),
    mut_arg("warmup", |arg| arg.help("Seconds run before; they are checked, too [default: 0]")),
    mut_arg("rounds", |arg| arg.help("Number of times every level is audited [default: 1]")),
    mut_arg("history", |arg| arg.help("Write the recorded histories into this folder [default: isobench-history]")),
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
