//! Ctrl-C and SIGTERM: the first asks the run to end in order, the second to end at once.

use std::sync::Arc;
use std::thread;

use isobench_runner::{Control, Urgency};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, Outcome};

/// Watches for signals from now on, and passes them on to the control that is returned.
///
/// # Errors
/// The operating system doesn't let signals be watched.
pub fn watch() -> Outcome<Arc<Control>> {
    let control = Arc::new(Control::new());
    let watched = Arc::clone(&control);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::setup(format!("could not watch for signals: {error}")))?;
    thread::spawn(move || {
        for _ in signals.forever() {
            let urgency = if watched.urgency() == Urgency::None { Urgency::Soon } else { Urgency::Now };
            watched.request(urgency);
            if urgency == Urgency::Soon {
                eprintln!("isobench: stopping; once more to stop at once");
            }
        }
    });
    Ok(control)
}
