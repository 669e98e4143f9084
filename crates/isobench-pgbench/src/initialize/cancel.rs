//! Ctrl-C while tables are created: the server is asked to cancel its work and reports that as an
//! error, which ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use isobench_pgwire::CancelToken;
use signal_hook::consts::SIGINT;
use signal_hook::iterator::{Handle, Signals};

use crate::console::{Console, Message};

/// Watches for Ctrl-C until it is dropped.
pub(super) struct Cancelling {
    requested: Arc<AtomicBool>,
    watch: Handle,
}

impl Cancelling {
    /// Cancels the session's current statement whenever Ctrl-C is pressed.
    ///
    /// # Errors
    /// The operating system refuses to watch signals.
    pub(super) fn watch(token: CancelToken, console: Console) -> Result<Cancelling, String> {
        let mut signals =
            Signals::new([SIGINT]).map_err(|error| format!("could not watch for signals: {error}"))?;
        let requested = Arc::new(AtomicBool::new(false));
        let (watch, note) = (signals.handle(), Arc::clone(&requested));
        thread::spawn(move || {
            for _ in signals.forever() {
                note.store(true, Ordering::Relaxed);
                let said = match token.cancel() {
                    Ok(()) => "Cancel request sent".to_owned(),
                    Err(error) => format!("Could not send cancel request: {error}"),
                };
                console.say(&Message::plain(said));
            }
        });
        Ok(Cancelling { requested, watch })
    }

    /// True if Ctrl-C was pressed.
    pub(super) fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.watch.close();
    }
}
