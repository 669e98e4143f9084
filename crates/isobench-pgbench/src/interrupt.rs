//! Ctrl-C and SIGTERM during a run: it ends, what was measured is printed, and then the program
//! dies of the signal, as whoever sent it expects. The second one kills it at once. (pgbench dies
//! without a report.)

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use isobench_runner::{Control, Urgency};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// The signal that came, if one came.
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Ends the run of this control when a signal comes.
    ///
    /// # Errors
    /// The operating system doesn't let signals be watched.
    pub fn watch(control: &Arc<Control>) -> Result<Interrupt, String> {
        let mut signals = Signals::new([SIGINT, SIGTERM])
            .map_err(|error| format!("could not watch for signals: {error}"))?;
        let came = Arc::new(AtomicI32::new(0));
        let (note, control) = (Arc::clone(&came), Arc::clone(control));
        let watcher = move || {
            for signal in signals.forever() {
                if note.swap(signal, Ordering::Relaxed) != 0 {
                    die(signal);
                }
                control.request(Urgency::Now);
            }
        };
        let thread = thread::Builder::new().spawn(watcher);
        thread.map_err(|error| format!("could not watch for signals: {error}"))?;
        Ok(Interrupt(came))
    }

    /// Dies of the signal, if one came.
    pub fn obey(&self) {
        let signal = self.0.load(Ordering::Relaxed);
        if signal != 0 {
            die(signal);
        }
    }
}

fn die(signal: i32) {
    // It only returns if it can't, and then the program ends anyway.
    let _ = emulate_default_handler(signal);
}
