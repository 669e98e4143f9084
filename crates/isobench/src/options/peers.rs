//! Options of `isobench peers`: which machines there are, and which this one is.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Options of `isobench peers`.
#[derive(Debug, Args)]
pub struct PeersOptions {
    /// The addresses of all machines, HOST:PORT, in the order of their ranks
    #[arg(long, value_name = "LIST", value_delimiter = ',', required_unless_present = "peers_file")]
    pub peers: Vec<String>,
    /// Read them from this file instead, a line each; # begins a comment
    #[arg(long, value_name = "FILE", conflicts_with = "peers")]
    pub peers_file: Option<PathBuf>,
    /// Which of them this machine is, from 0 [default: what mpiexec, srun or a Kubernetes Job says]
    #[arg(long, value_name = "NUM")]
    pub rank: Option<usize>,
    /// Seconds to wait for the others
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u64,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}
