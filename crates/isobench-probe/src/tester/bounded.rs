//! Blocking work that can be given up: opening and preparing sessions.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time it may take to open a session and to ask it a few questions.
pub const OPENING: Duration = Duration::from_mins(1);

/// How often it is asked whether to stop.
const TICK: Duration = Duration::from_millis(10);

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Somebody stopped the run.
    Stopped,
    /// The limit is over.
    TooLong,
    /// There is no thread for it: the operating system's reason.
    NoThread(String),
}

/// Does something that may block in a thread of its own, which is left alone if it takes too long
/// or is to stop. It then goes on until whatever it waits for happens, or the program ends.
pub fn bounded<T: Send + 'static>(
    limit: Duration,
    stopped: &dyn Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GivenUp> {
    let none = |error: io::Error| GivenUp::NoThread(error.to_string());
    let (sender, receiver) = sync_channel(1);
    let began = Instant::now();
    // The receiver may be gone by then.
    let work = move || drop(sender.send(work()));
    thread::Builder::new().name("session".to_owned()).spawn(work).map_err(none)?;
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(GivenUp::NoThread("it ended without a result".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) if stopped() => return Err(GivenUp::Stopped),
            Err(RecvTimeoutError::Timeout) if began.elapsed() > limit => return Err(GivenUp::TooLong),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_blocks_for_ever_is_given_up() {
        // The sender is dropped, and so the thread ends, after the result is there.
        let blocked = |limit, stopped: bool| {
            let (_held, never) = channel::<()>();
            bounded(limit, &|| stopped, move || never.recv().is_ok())
        };
        assert_eq!(blocked(Duration::from_hours(1), true), Err(GivenUp::Stopped));
        assert_eq!(blocked(Duration::ZERO, false), Err(GivenUp::TooLong));
        assert_eq!(bounded(Duration::from_hours(1), &|| false, || 7), Ok(7));
    }
}
