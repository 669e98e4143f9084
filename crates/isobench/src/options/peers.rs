//! Options of `isobench peers`.

use clap::{ArgAction, Args};

use super::machines::MachineOptions;

/// Options of `isobench peers`.
#[derive(Debug, Args)]
#[command(
    mut_arg("peers", |arg| arg.help("The addresses of all machines, HOST:PORT, in the order of their ranks")
        .required_unless_present("peers_file").hide_short_help(false)),
    mut_arg("peers_file", |arg| arg.hide_short_help(false)),
    mut_arg("rank", |arg| arg.hide_short_help(false)),
    mut_arg("peers_wait", |arg| arg.hide_short_help(false))
)]
pub struct PeersOptions {
    /// The machines.
    #[command(flatten)]
    pub machines: MachineOptions,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}
