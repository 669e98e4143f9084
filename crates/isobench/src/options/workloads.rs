//! Options of `isobench workloads`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Options of `isobench workloads`.
#[derive(Debug, Args)]
pub struct WorkloadsOptions {
    /// Describe this one, with variant and parameters as for --workload, and print its tables and
    /// scripts
    #[arg(value_name = "NAME[+VARIANT][:PARAMETER=VALUE,…]")]
    pub workload: Option<String>,
    /// Write tables and scripts as files into this folder instead of printing them, for a workload
    /// of your own
    #[arg(long, value_name = "FOLDER", requires = "workload")]
    pub save: Option<PathBuf>,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}
