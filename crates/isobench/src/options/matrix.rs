//! Options of `isobench matrix` and `isobench check-result`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Options of `isobench matrix`.
#[derive(Debug, Args)]
pub struct MatrixOptions {
    /// The folder with the results: all files *.json in it and in folders below it; links aren't followed
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Write the page to this file; - is standard output [default: FOLDER/index.html]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}

/// Options of `isobench check-result`.
#[derive(Debug, Args)]
pub struct CheckResultOptions {
    /// The results
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}
