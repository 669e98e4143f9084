//! Blocking work with a time limit: opening and preparing sessions.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The interval between checks whether the run is stopped.
const TICK: Duration = Duration::from_millis(10);

/// The reason that there is no result.
#[derive(Debug, PartialEq, Eq)]
pub enum BoundedError {
    /// The run was stopped.
    Stopped,
    /// The time limit was exceeded.
    TooLong,
    /// A thread couldn't be started; the operating system's reason.
    NoThread(String),
}

/// Runs blocking work in a thread of its own, which is abandoned if the work takes too long or the
/// run is stopped. The thread then continues until the work ends or the program exits.
pub fn bounded<T: Send + 'static>(
    limit: Duration,
    stopped: &dyn Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BoundedError> {
    let none = |error: io::Error| BoundedError::NoThread(error.to_string());
    let (sender, receiver) = sync_channel(1);
    let began = Instant::now();
    // The receiver may have been dropped by then.
    let work = move || drop(sender.send(work()));
    thread::Builder::new().name("session".to_owned()).spawn(work).map_err(none)?;
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(BoundedError::NoThread("it ended without a result".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) if stopped() => return Err(BoundedError::Stopped),
            Err(RecvTimeoutError::Timeout) if began.elapsed() > limit => return Err(BoundedError::TooLong),
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
        // The sender is dropped, and so the thread ends, only after the result is available.
        let blocked = |limit, stopped: bool| {
            let (_held, never) = channel::<()>();
            bounded(limit, &|| stopped, move || never.recv().is_ok())
        };
        assert_eq!(blocked(Duration::from_hours(1), true), Err(BoundedError::Stopped));
        assert_eq!(blocked(Duration::ZERO, false), Err(BoundedError::TooLong));
        assert_eq!(bounded(Duration::from_hours(1), &|| false, || 7), Ok(7));
    }
}
