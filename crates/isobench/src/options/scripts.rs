//! Options of `isobench scripts`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use isobench_replay::Options;

use super::EmbeddedOptions;

/// The heading of options on the tables.
const TABLES: &str = "Tables";

/// What becomes a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Each transaction
    Transaction,
    /// All transactions of a request in sequence, where statements name it (traceparent)
    Request,
}

/// Options of `isobench scripts`.
#[derive(Debug, Args)]
pub struct ScriptsOptions {
    /// The capture, - for standard input
    #[arg(value_name = "CAPTURE")]
    pub capture: PathBuf,
    /// Folder for the scripts; it must be empty, or not there
    #[arg(long, short = 'o', value_name = "FOLDER")]
    pub output: PathBuf,
    /// What becomes a script
    #[arg(long, value_name = "UNIT", value_enum, default_value = "transaction")]
    pub scope: Unit,
    /// Percentage of the transactions that the scripts cover, the most frequent first
    #[arg(long, value_name = "PERCENT", default_value_t = Options::default().coverage, value_parser = percentage)]
    pub coverage: f64,
    /// Pause within transactions as long as the application did
    #[arg(long)]
    pub pauses: bool,
    /// SQL script that makes the tables of your own scripts
    #[arg(long, value_name = "FILE.sql", help_heading = TABLES)]
    pub setup: Option<PathBuf>,
    /// The database to copy.
    #[command(flatten)]
    pub copy: CopyOptions,
    /// Don't replay the scripts to compare them with the capture
    #[arg(long)]
    pub no_check: bool,
    /// The server for the check.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// Print help
    #[arg(long, short = '?', action = ArgAction::Help, help_heading = "Help")]
    help: Option<bool>,
}

/// The database whose tables a capture's scripts use.
#[derive(Debug, Args)]
pub struct CopyOptions {
    /// Copy schema and rows of this database for a capture's scripts; read only
    ///
    /// A connection string or URI.
    #[arg(
        long,
        value_name = "CONNINFO",
        help_heading = TABLES,
        requires = "capture",
        conflicts_with = "setup"
    )]
    pub copy_from: Option<String>,
    /// Megabytes above which a database isn't copied
    #[arg(long, value_name = "MB", default_value = "200", help_heading = TABLES, requires = "copy_from")]
    pub copy_limit: u64,
}

/// A capture whose scripts are made before they are used.
#[derive(Debug, Args)]
pub struct CaptureOptions {
    /// Capture (isobench record): its scripts are made first, in a folder next to it
    #[arg(value_name = "CAPTURE", conflicts_with_all = ["file", "builtin", "workload", "plan_file"])]
    pub capture: Option<PathBuf>,
    /// The database to copy.
    #[command(flatten)]
    pub copy: CopyOptions,
}

fn percentage(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim_end_matches('%').parse().map_err(|_| "it isn't a number".to_owned())?;
    if number > 0.0 && number <= 100.0 { Ok(number) } else { Err("it isn't between 0 and 100".to_owned()) }
}
