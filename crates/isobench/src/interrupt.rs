//! Ctrl-C, SIGTERM and SIGHUP: the first asks the run to end in order, the second to cancel what is
//! under way. If that doesn't end the program within some seconds, it ends without tidying up.
//!
//! A signal that whoever started the program had ignored (`nohup`) stays ignored.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use isobench_runner::{Control, Urgency};
use procfs::process::Process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::display;
use isobench_comparison::{Failure, Outcome};

/// How long the program may take to end after the second signal. Every wait for a server ends long
/// before.
const PATIENCE: Duration = Duration::from_secs(30);

/// Watches for signals from now on, and passes them on to the control.
///
/// # Errors
/// The operating system doesn't let signals be watched.
pub fn watch(control: &Arc<Control>) -> Outcome {
    let problem = |error| Failure::setup(format!("could not watch for signals: {error}"));
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted).map_err(problem)?;
    let watched = Arc::clone(control);
    let watcher = move || {
        for _ in signals.forever() {
            if watched.interrupt() == Urgency::Soon {
                display::note("isobench: stopping; once more to stop at once");
            } else if thread::Builder::new().spawn(abandon).is_err() {
                // Without a thread that waits there is nothing to wait for.
                abandon_now();
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watcher).map_err(problem)?;
    Ok(())
}

/// A command that was interrupted before it had measured anything hasn't failed by itself: it is
/// incomplete.
pub fn blame<T>(control: &Control, outcome: Outcome<T>) -> Outcome<T> {
    outcome.map_err(|failure| match failure {
        Failure::Setup(text) if control.patience().requests() > 0 => {
            Failure::Incomplete(format!("interrupted before anything was measured ({text})"))
        }
        other => other,
    })
}

/// Makes a file that may not grow any more a failed write, as a full disk is, instead of the end of
/// the program.
pub fn outlive_file_limits() {
    // If it can't be, the program ends as most do.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

fn abandon() {
    thread::sleep(PATIENCE);
    abandon_now();
}

fn abandon_now() {
    display::abandon();
    eprintln!("isobench: error: this takes too long; giving up without tidying up");
    std::process::exit(2);
}

/// The signals that are ignored, a bit each from the lowest one. Where the system doesn't tell,
/// none.
fn ignored() -> u64 {
    Process::myself().and_then(|process| process.status()).map_or(0, |status| status.sigign)
}
