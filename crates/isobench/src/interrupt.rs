//! Ctrl-C, SIGTERM and SIGHUP: the first asks the run to end in order, the second cancels
//! statements in progress. If the program doesn't end within some seconds, it exits without
//! cleaning up.
//!
//! A signal that the parent process ignores (`nohup`) stays ignored.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use isobench_limits::LIMITS;
use isobench_runner::{Control, Urgency};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::display;
use isobench_comparison::{Failure, Outcome};

/// How often [`end_soon`] looks for a signal.
const LOOK: Duration = Duration::from_millis(100);

/// Starts to watch for signals, and passes them on to the control.
///
/// # Errors
/// The operating system doesn't let signals be watched.
pub fn watch(control: &Arc<Control>) -> Outcome {
    let problem = |error| Failure::setup(format!("could not watch for signals: {error}"));
    let mut signals = Signals::new(watchable()).map_err(problem)?;
    let watched = Arc::clone(control);
    let watcher = move || {
        for _ in signals.forever() {
            if watched.interrupt() == Urgency::Soon {
                display::note("isobench: stopping; once more to stop at once");
            } else if thread::Builder::new().spawn(abandon).is_err() {
                // Without a thread the program must end now.
                abandon_now();
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watcher).map_err(problem)?;
    Ok(())
}

/// Ends the program some seconds after the first signal, whatever it waits for: for commands that measure
/// nothing, so that nothing is lost.
///
/// # Errors
/// The system has no thread.
pub fn end_soon(control: &Arc<Control>) -> Outcome {
    let watched = Arc::clone(control);
    let watcher = move || {
        while watched.urgency() == Urgency::None {
            thread::sleep(LOOK);
        }
        thread::sleep(LIMITS.hurried);
        abandon_now();
    };
    let problem = |error| Failure::setup(format!("could not watch for signals: {error}"));
    thread::Builder::new().name("end".to_owned()).spawn(watcher).map_err(problem)?;
    Ok(())
}

/// The signals to watch for: those that aren't ignored.
pub fn watchable() -> Vec<i32> {
    let ignored = ignored();
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// Turns the failure of a command that was interrupted before any measurement into an incomplete
/// one, since the command isn't at fault.
pub fn blame<T>(control: &Control, outcome: Outcome<T>) -> Outcome<T> {
    outcome.map_err(|failure| match failure {
        Failure::Setup(text) if control.patience().requests() > 0 => {
            Failure::Incomplete(format!("interrupted before anything was measured ({text})"))
        }
        other => other,
    })
}

/// Makes exceeding the limit on file sizes a failed write, like a full disk, instead of killing the
/// program.
pub fn outlive_file_limits() {
    // Otherwise the signal ends the program, as by default.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

fn abandon() {
    thread::sleep(LIMITS.end_of_program);
    abandon_now();
}

fn abandon_now() {
    display::abandon();
    eprintln!("isobench: error: this takes too long; giving up without tidying up");
    std::process::exit(2);
}

/// Returns the ignored signals, a bit each from the lowest one; none if unknown.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
