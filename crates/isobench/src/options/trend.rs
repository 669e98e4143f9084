//! Options of `isobench trend`.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use isobench_result::{Axis, Wanted};

use super::RenderingOptions;
use crate::latest;

/// Options of `isobench trend`.
#[derive(Debug, Args)]
pub struct TrendOptions {
    /// The figure, as --require names it: [LEVEL.]METRIC[.low|.high], such as tps or
    /// serializable.ratio
    #[arg(value_name = "METRIC")]
    pub metric: Wanted,
    /// The results: names, tags that only one has, latest, latest~N, or paths [default: all in the
    /// folder]
    #[arg(value_name = "RESULT")]
    pub named: Vec<String>,
    /// Order the results by time, tag:KEY (tags KEY=VALUE), server-version or setting:NAME
    #[arg(long, value_name = "AXIS", default_value = "time")]
    pub by: Axis,
    /// The folder of the results
    #[arg(long, value_name = "FOLDER", default_value = latest::FOLDER)]
    pub folder: PathBuf,
    /// What is written, and where.
    #[command(flatten)]
    pub rendering: RenderingOptions,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}
