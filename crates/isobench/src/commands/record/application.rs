//! The application that `isobench record` starts: found, given its environment and its signals, waited
//! for.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread;

use isobench_comparison::{Failure, Outcome};
use isobench_pgwire::ConnectOptions;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{Address, signals, variables};

/// Variables that would lead an application past the recorder, or make it ask for what the recorder's
/// address doesn't have.
pub(in crate::commands) const FOREIGN: [&str; 6] = [
    "PGHOSTADDR",
    "PGSERVICE",
    "PGSSLNEGOTIATION",
    "PGCHANNELBINDING",
    "PGREQUIREAUTH",
    "PGTARGETSESSIONATTRS",
];

/// Checks that the program is there, before anything is made. No command is fine.
///
/// # Errors
/// It isn't.
pub(super) fn find(command: &[OsString]) -> Outcome {
    let Some(program) = command.first() else { return Ok(()) };
    let path = Path::new(program);
    let found = if path.components().count() > 1 {
        path.is_file()
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(path).is_file())
    };
    if found { Ok(()) } else { Err(Failure::setup(format!("there is no program \"{}\"", path.display()))) }
}

/// Runs the application to its end, and returns its exit status; of one that a signal ended, 128 and
/// the signal's number, as a shell does.
///
/// # Errors
/// It can't be started.
pub(super) fn run(command: &[OsString], address: &Address, server: &ConnectOptions) -> Outcome<u8> {
    let Some((program, arguments)) = command.split_first() else { return Ok(0) };
    let name = Path::new(program).display().to_string();
    let mut signals = signals()?;
    let mut prepared = Command::new(program);
    prepared.args(arguments).envs(variables(address, server));
    for name in FOREIGN {
        prepared.env_remove(name);
    }
    let failure = |error| Failure::setup(format!("could not run \"{name}\": {error}"));
    let mut child = prepared.spawn().map_err(failure)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = signals.handle();
    let passing = thread::spawn(move || {
        for signal in signals.forever() {
            let passed = match signal {
                // The terminal sends it to the application, too.
                SIGINT if is_in_foreground() => None,
                SIGINT => Some(Signal::INT),
                SIGTERM => Some(Signal::TERM),
                SIGHUP => Some(Signal::HUP),
                _ => None,
            };
            if let (Some(pid), Some(signal)) = (pid, passed) {
                // It may have ended already.
                let _ = kill_process(pid, signal);
            }
        }
    });
    let status = child.wait().map_err(failure);
    handle.close();
    // It ends with the handle.
    let _ = passing.join();
    status.map(code)
}

/// True if Ctrl-C at the terminal reaches this process and those that it started.
fn is_in_foreground() -> bool {
    File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_status_is_a_shells() {
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(15)), 143);
    }

    #[test]
    fn a_missing_program_is_found_out_before() {
        assert!(find(&[]).is_ok() && find(&["sh".into()]).is_ok() && find(&["/bin/sh".into()]).is_ok());
        assert!(find(&["/no/such".into()]).is_err() && find(&["no-such-program".into()]).is_err());
    }
}
