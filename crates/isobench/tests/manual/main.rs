//! Checks of the manual: its links resolve, its options exist, and its examples have the values
//! shown.
//!
//! Doesn't need a server. `ISOBENCH_BLESS=1` updates the option lists of
//! `docs/reference/commands.md`.

mod commands;
mod crates;
mod factors;
mod figures;
mod language;
mod links;
mod live_metrics;
mod markdown;
mod plan_file;
mod plans;
mod result_format;
mod tables;
mod transcripts;

use std::process::Command;

use isobench_testkit::installed::program_under_test;

/// The program, to be run.
fn isobench() -> Command {
    Command::new(program_under_test(env!("CARGO_BIN_EXE_isobench")))
}
