//! Options that say which machines measure together, and which of them this one is.

use std::path::PathBuf;

use clap::Args;

/// The heading of these options.
const MACHINES: &str = "Several machines";

/// Options for several machines.
#[derive(Debug, Clone, Args)]
pub struct MachineOptions {
    /// Work from several machines as one: HOST:PORT of each, in the order of ranks
    ///
    /// Start the same command on each.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = MACHINES, hide_short_help = true)]
    pub peers: Vec<String>,
    /// Read the addresses from this file instead, a line each; # begins a comment
    #[arg(long, value_name = "FILE", conflicts_with = "peers", help_heading = MACHINES, hide_short_help = true)]
    pub peers_file: Option<PathBuf>,
    /// This machine's rank, from 0; rank 0 keeps the result [default: mpiexec's, srun's, Job's]
    #[arg(long, value_name = "NUM", help_heading = MACHINES, hide_short_help = true)]
    pub rank: Option<usize>,
    /// Seconds to wait for the other machines at the start
    #[arg(long, value_name = "SECONDS", default_value_t = 60, help_heading = MACHINES, hide_short_help = true)]
    pub peers_wait: u64,
}

impl MachineOptions {
    /// Returns whether several machines are named.
    pub fn any(&self) -> bool {
        !self.peers.is_empty() || self.peers_file.is_some()
    }
}
