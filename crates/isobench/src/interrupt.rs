//! Ctrl-C and SIGTERM: the first asks the run to end in order, the second to cancel what is under way. If that doesn't end
//! the program within some seconds (a server that is gone without a word), it ends without tidying up.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use isobench_runner::{Control, Urgency};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::display;
use crate::failure::{Failure, Outcome};

/// How long the program may take to end after the second signal.
const PATIENCE: Duration = Duration::from_secs(10);

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
                display::note("isobench: stopping; once more to stop at once");
            } else {
                thread::spawn(|| {
                    thread::sleep(PATIENCE);
                    display::abandon();
                    eprintln!("isobench: error: the server doesn't answer; giving up without tidying up");
                    std::process::exit(2);
                });
            }
        }
    });
    Ok(control)
}
