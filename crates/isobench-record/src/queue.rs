//! The queue between the relay and the thread that records: copies of bytes, in order.
//!
//! The relay never waits for it. If the recording falls behind by more than [`MOST`] bytes, it ends.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use isobench_capture::Opened;

use crate::reading::SessionReading;

/// The most bytes that wait.
const MOST: usize = 256 << 20;

/// The bytes that wake the recording at once.
const MANY: usize = 1 << 20;

/// The time for which the recording lets bytes gather, so that it doesn't wake for each statement.
const GATHER: Duration = Duration::from_millis(10);

/// Something that happened to a session.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) session: u64,
    /// Microseconds since recording began.
    pub(crate) at: u64,
    pub(crate) what: What,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum What {
    /// The session began, and how its server reads.
    Opened(Box<Opened>, SessionReading),
    /// The client sent so many bytes.
    Client(usize),
    /// The server, or the recorder in its place, sent so many bytes to the client.
    Server(usize),
    /// The next error is the recorder's.
    Injected,
    /// Something isn't recorded.
    Unseen(String),
    /// The session ended; why, unless the client said goodbye.
    Closed(Option<String>),
}

/// Events, and the bytes of those that have some, in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    pub(crate) bytes: Vec<u8>,
}

impl Batch {
    pub(crate) fn push(&mut self, session: u64, at: u64, what: What) {
        self.events.push(Event { session, at, what });
    }

    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.bytes.clear();
    }
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    waiting: bool,
    closed: bool,
    behind: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Nothing more is recorded.
    stopped: AtomicBool,
}

impl Queue {
    /// True if nothing more is recorded, so that nothing needs to be copied.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the recording.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.lock().batch = Batch::default();
    }

    /// Adds what a batch holds, and empties it. Doesn't wait.
    pub(crate) fn push(&self, batch: &mut Batch) {
        if batch.events.is_empty() {
            return;
        }
        let mut state = self.lock();
        if self.is_stopped() || state.behind {
            batch.clear();
            return;
        }
        if state.batch.bytes.len() + batch.bytes.len() > MOST {
            state.behind = true;
            batch.clear();
        } else if state.batch.events.is_empty() {
            mem::swap(&mut state.batch, batch);
        } else {
            state.batch.events.append(&mut batch.events);
            state.batch.bytes.append(&mut batch.bytes);
        }
        if state.waiting || state.batch.bytes.len() > MANY {
            self.changed.notify_one();
        }
    }

    /// No more will be pushed.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Waits for events, and puts them into an empty batch. False at the end.
    ///
    /// # Errors
    /// The recording fell behind.
    pub(crate) fn take(&self, batch: &mut Batch) -> Result<bool, &'static str> {
        let mut state = self.lock();
        state.waiting = true;
        state = self
            .changed
            .wait_while(state, |state| state.batch.events.is_empty() && !state.closed && !state.behind)
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting = false;
        if !state.closed {
            let gathering =
                |state: &mut State| state.batch.bytes.len() <= MANY && !state.closed && !state.behind;
            let waited = self.changed.wait_timeout_while(state, GATHER, gathering);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.behind {
            return Err("it fell behind the application");
        }
        mem::swap(&mut state.batch, batch);
        Ok(!batch.events.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_in_order_until_the_end() {
        let queue = Queue::default();
        let mut batch = Batch::default();
        for session in 0..3 {
            batch.push(session, 0, What::Injected);
            queue.push(&mut batch);
            assert!(batch.events.is_empty());
        }
        queue.close();
        assert_eq!(queue.take(&mut batch), Ok(true));
        assert_eq!(batch.events.iter().map(|event| event.session).collect::<Vec<_>>(), [0, 1, 2]);
        batch.clear();
        assert_eq!(queue.take(&mut batch), Ok(false));
    }

    #[test]
    fn a_recording_that_falls_behind_ends() {
        let queue = Queue::default();
        for _ in 0..=4 {
            let mut batch = Batch::default();
            batch.bytes.resize(MOST / 4, 0);
            batch.push(1, 0, What::Client(MOST / 4));
            queue.push(&mut batch);
        }
        assert!(queue.take(&mut Batch::default()).is_err());
        queue.stop();
        assert!(queue.is_stopped());
    }
}
