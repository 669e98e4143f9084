//! The command line: parses the options, runs one command, prints its error, and exits.
//!
//! Only this file prints errors and chooses the exit status.

#[macro_use]
mod output;

mod commands;
mod destination;
mod display;
mod gates;
mod interrupt;
mod latest;
mod machines;
mod monitor;
mod options;
mod saved;
mod servers;
mod summary;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap_complete::CompleteEnv;
use isobench_comparison::{Failure, Outcome};
use isobench_pgwire::fit;

use crate::options::{COMPLETE, Command, Options, completing, suggest};

fn main() -> ExitCode {
    interrupt::outlive_file_limits();
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(words) = as_pgbench(&words) {
        return ExitCode::from(isobench_pgbench::main(words));
    }
    if let Some(text) = verbose_version(&words) {
        return ended(output::print(&text));
    }
    CompleteEnv::with_factory(completing).var(COMPLETE).complete();
    let options = match Options::read(&words) {
        Ok(options) => options,
        Err(error) => return usage(error, &words),
    };
    let outcome = match options.command {
        Command::Compare(options) => commands::compare::compare(&options),
        Command::Advise(options) => commands::advise::advise(&options),
        Command::Audit(options) => commands::audit::audit(options),
        Command::Probe(options) => commands::probe::probe(&options),
        Command::Observe(options) => commands::observe::observe(&options),
        Command::Scripts(options) => commands::scripts::scripts(&options),
        Command::Record(options) => match commands::record::record(&options) {
            Ok(status) => return ExitCode::from(status),
            Err(failure) => Err(failure),
        },
        Command::Race(options) => commands::race::race(&options),
        Command::Check(options) => commands::check::check(&options),
        Command::Report(options) => commands::report::report(&options),
        Command::Run(options) => commands::run::run(&options),
        Command::Init(options) => commands::init::init(&options),
        Command::Workloads(options) => commands::workloads::workloads(&options),
        Command::Plans(options) => commands::plans::plans(&options),
        Command::Peers(options) => commands::peers::peers(&options),
        Command::Help(options) => commands::help::help(&options),
        Command::Completions(options) => commands::help::completions(&options),
        Command::Man(options) => commands::help::man(&options),
        Command::Server(options) => commands::server::server(&options),
        Command::Pgbench { words } => {
            let words = std::iter::once(PGBENCH.into()).chain(words);
            return ExitCode::from(isobench_pgbench::main(words));
        }
    };
    ended(outcome)
}

/// Says why a command failed, if it did, and returns its exit status.
fn ended(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say(&format!("isobench: error: {failure}"));
            status(&failure)
        }
    }
}

/// The exit status of a failure. Source: pgbench's, 3 for a broken promise, 4 for a threshold.
fn status(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Setup(_) | Failure::Withheld(_) | Failure::Output(_) => ExitCode::FAILURE,
        Failure::Incomplete(_) => ExitCode::from(2),
        Failure::Broken(_) => ExitCode::from(3),
        Failure::Unmet(_) => ExitCode::from(4),
    }
}

/// The text of `--version --verbose`: the version, and what the program was built for and with.
fn verbose_version(words: &[OsString]) -> Option<String> {
    let [_, one, other] = words else { return None };
    let wanted = |one: &OsString, other: &OsString| {
        (one == "--version" || one == "-V") && (other == "--verbose" || other == "-v")
    };
    if !wanted(one, other) && !wanted(other, one) {
        return None;
    }
    let libc = if cfg!(target_env = "musl") { "musl" } else { "glibc" };
    let facts = [
        ("built for", format!("{}-{}, {libc}", std::env::consts::ARCH, std::env::consts::OS)),
        ("build", if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()),
        ("event loops", "epoll, io_uring where the kernel permits it".to_owned()),
        ("fetches", format!("PostgreSQL {}", isobench_pgserver::MajorVersion::FETCHED)),
        ("result format", format!("{} {}", isobench_result::FORMAT, isobench_result::FORMAT_VERSION)),
    ];
    let facts = facts.map(|(name, fact)| format!("{:<15} {fact}\n", format!("{name}:"))).concat();
    Some(format!("isobench {}\n{facts}", env!("CARGO_PKG_VERSION")))
}

/// The name under which the program is the strict drop-in.
const PGBENCH: &str = "pgbench";

/// Returns the command line of the strict drop-in, if it was started, by name or as a command. Its
/// options differ from this program's, so they aren't parsed here.
fn as_pgbench(words: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = words.split_first()?;
    if Path::new(program).file_name()? == PGBENCH {
        return Some(words.to_vec());
    }
    (rest.first()? == PGBENCH).then(|| rest.to_vec())
}

/// Prints help and version on standard output with status 0; a wrong option gets status 1, as in
/// pgbench.
fn usage(mut error: clap::Error, words: &[OsString]) -> ExitCode {
    suggest(&mut error, words.iter().map(|word| word.to_string_lossy().into_owned()));
    let plain = error.to_string();
    if error.use_stderr() && fit(&plain) != plain {
        // It quotes arguments, which may contain a password.
        eprint!("{}", fit(&plain));
    } else {
        let open = if error.use_stderr() { Ok(()) } else { output::stdout().map(drop) };
        let printed = open.and_then(|()| error.print());
        if let (false, Err(unprinted)) = (error.use_stderr(), printed) {
            return ended(Err(output::unwritten(unprinted)));
        }
    }
    if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
