//! Options of `isobench plans`.

use clap::{ArgAction, Args};

/// Options of `isobench plans`.
#[derive(Debug, Args)]
pub struct PlansOptions {
    /// Print the file of this plan, to be read, changed and given to compare --plan
    #[arg(value_name = "NAME")]
    pub plan: Option<String>,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}
