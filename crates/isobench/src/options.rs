//! The options of all commands, as clap reads them.
//!
//! Not here: those of a plan (`isobench_plan`), and their meaning together (`isobench_comparison`
//! for comparisons, the commands for the rest).

mod advise;
mod audit;
mod check;
mod compare;
mod completing;
mod connection;
mod examples;
mod gates;
mod help;
mod init;
mod machines;
mod monitor;
mod observe;
mod peers;
mod plans;
mod probe;
mod race;
mod record;
#[cfg(test)]
mod reference;
mod report;
mod run;
mod scripts;
mod unknown;
mod workloads;
mod written;

pub use advise::AdviseOptions;
pub use audit::AuditOptions;
pub use check::{CheckOptions, Conversion, Found};
pub use compare::CompareOptions;
pub use connection::{ConnectionOptions, EmbeddedOptions};
pub use gates::GateOptions;
pub use help::{CompletionsOptions, HelpOptions, ManOptions, Shell};
pub use init::{InitArguments, TableOptions};
pub use machines::MachineOptions;
pub use monitor::MonitorOptions;
pub use observe::ObserveOptions;
pub use peers::PeersOptions;
pub use plans::PlansOptions;
pub use probe::ProbeOptions;
pub use race::RaceOptions;
pub use record::RecordOptions;
pub use report::{RenderingOptions, ReportFormat, ReportOptions};
pub use run::RunOptions;
pub use scripts::{CaptureOptions, CopyOptions, ScriptsOptions, Unit};
pub use unknown::{elsewhere, suggest};
pub use workloads::WorkloadsOptions;
pub use written::command;

use clap::{ArgAction, Args, Command as Program, CommandFactory, FromArgMatches, Parser, Subcommand};

/// Measures what transaction isolation costs and what it buys, on PostgreSQL and the databases that
/// speak its protocol.
#[derive(Debug, Parser)]
#[command(
    name = "isobench",
    version,
    infer_subcommands = true,
    infer_long_args = true,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit status: 0 success; 1 wrong options, no server, or output that can't be written; \
2 incomplete (clients aborted, server lost, interrupted); 3 a promise is broken (by an invariant, a history or a \
probe), or a result is worse than another (report --fail-on-regression); 4 a requirement isn't met (--require)."
)]
pub struct Options {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload at several isolation levels and compare them
    Compare(CompareOptions),
    /// Find out which isolation level each transaction needs, and the smallest change for a lower one
    #[command(disable_help_flag = true)]
    Advise(AdviseOptions),
    /// Run a checked workload and report the anomalies that each level let through
    Audit(AuditOptions),
    /// Find out which anomalies each isolation level of a server permits
    Probe(ProbeOptions),
    /// Show which reads and writes of a script isobench can track, without running it
    #[command(disable_help_flag = true)]
    Observe(ObserveOptions),
    /// Make scripts of what an application was recorded to do, for compare and advise
    #[command(disable_help_flag = true)]
    Scripts(ScriptsOptions),
    /// Record what an application sends to its database, without changing it
    #[command(disable_help_flag = true)]
    Record(RecordOptions),
    /// Run two commands of an application against each other, statement by statement: do they race?
    #[command(disable_help_flag = true)]
    Race(RaceOptions),
    /// Check a recorded history: what it proves about the isolation level
    Check(CheckOptions),
    /// List saved results, show one again, compare two, or show how a figure changed over many
    Report(ReportOptions),
    /// Run one benchmark, with pgbench's options and summary
    #[command(disable_help_flag = true)]
    Run(RunOptions),
    /// Create and fill pgbench's tables, as pgbench -i does
    #[command(disable_help_flag = true)]
    Init(InitArguments),
    /// List the checked workloads, or describe one: invariants, parameters, tables, scripts
    Workloads(WorkloadsOptions),
    /// List the published experiments that compare can repeat, or print the plan of one
    Plans(PlansOptions),
    /// Test connectivity and clock skew between machines
    Peers(PeersOptions),
    /// Print the help of a command, or a page of the manual
    Help(HelpOptions),
    /// Generate shell completions
    Completions(CompletionsOptions),
    /// Print isobench's manual page, or write those of all commands
    Man(ManOptions),
    /// Start an embedded PostgreSQL and keep it running until Ctrl-C
    Server(ServerOptions),
    /// Drop-in replacement for pgbench (also when invoked as pgbench)
    #[command(disable_help_flag = true)]
    Pgbench {
        /// pgbench's options; see isobench pgbench --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        words: Vec<std::ffi::OsString>,
    },
}

/// The variable by which a shell asks for what may follow (`isobench completions`).
pub const COMPLETE: &str = "ISOBENCH_COMPLETE";

/// The program's options, with examples.
pub fn program() -> Program {
    examples::with_examples(Options::command())
}

/// The commands that the usual help only names; `isobench help` describes them.
const FURTHER: [&str; 10] =
    ["record", "scripts", "observe", "init", "workloads", "plans", "server", "peers", "completions", "man"];

/// The same with the commands that most users need.
fn briefly(program: Program) -> Program {
    let status = program.get_after_help().map(ToString::to_string).unwrap_or_default();
    let further = format!("More commands (see isobench help): {}.", FURTHER.join(", "));
    let hidden = |program: Program, name| program.mut_subcommand(name, |command| command.hide(true));
    FURTHER.into_iter().fold(program, hidden).after_help(format!("{further}\n\n{status}"))
}

/// The same with what a shell may offer.
pub fn completing() -> Program {
    completing::with_values(program())
}

impl Options {
    /// Reads the options from the words of the command line.
    ///
    /// # Errors
    /// They are wrong, or help is wanted.
    pub fn read(words: &[std::ffi::OsString]) -> Result<Options, clap::Error> {
        let mut program = briefly(program());
        let matches = program.try_get_matches_from_mut(words)?;
        Options::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
    }
}

/// Options of `isobench server`.
#[derive(Debug, Args)]
pub struct ServerOptions {
    /// The server.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}
