//! Messages on standard error in the form of PostgreSQL's programs: `pgbench: error: …`, coloured as `PG_COLOR` says.
//!
//! Not here: results, which go to standard output.

/// Where messages go, and which of them are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Console {
    /// Messages for debugging are shown (`--debug`).
    pub debugging: bool,
    colours: bool,
}
