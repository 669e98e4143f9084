//! The command line: parses the options, hands over to one command, prints what went wrong, and exits.
//!
//! Only this file prints errors and chooses the exit status.

#[macro_use]
mod output;

mod cell;
mod commands;
mod display;
mod environment;
mod failure;
mod interrupt;
mod messages;
mod options;
mod plan;
mod sessions;
mod setup;
mod summary;
mod target;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use crate::failure::Failure;
use crate::options::{Command, Options};

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return usage(&error),
    };
    let outcome = match options.command {
        Command::Compare(options) => commands::compare::compare(&options),
        Command::Run(options) => commands::run::run(&options),
        Command::Init(options) => commands::init::init(&options),
        Command::Server(options) => commands::server::server(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("isobench: error: {failure}");
            failure.status()
        }
    }
}

/// Help and version go to standard output with status 0; a wrong option gets status 1, as in pgbench.
fn usage(error: &clap::Error) -> ExitCode {
    // Nothing can be done about a terminal that has gone away.
    let _ = error.print();
    if error.use_stderr() { Failure::USAGE } else { ExitCode::SUCCESS }
}
