//! The network as a trait: real sockets in `sockets.rs`, a simulation in the tests.
//!
//! Not here: the meaning of the bytes.

use std::io;
use std::time::Duration;

use crate::job::Reconnect;
use crate::time::Nanos;

/// The result of a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// This many bytes, at least one.
    Bytes(usize),
    /// Nothing at the moment.
    Nothing,
    /// The server closed the connection.
    Closed,
}

/// The connections of one worker, addressed by index. None of the calls blocks, except `wait` and
/// `open`.
pub trait Transport {
    /// Sends as much as the connection accepts at once. Returns the number of bytes (0: none at the
    /// moment).
    ///
    /// # Errors
    /// The connection is lost.
    fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize>;

    /// Receives into `buffer`.
    ///
    /// # Errors
    /// The connection is lost.
    fn receive(&mut self, connection: usize, buffer: &mut [u8]) -> io::Result<Received>;

    /// Turns on or off that the connection is reported as ready when it accepts more bytes.
    ///
    /// # Errors
    /// The operating system refuses.
    fn watch_writable(&mut self, connection: usize, on: bool) -> io::Result<()>;

    /// Waits until a connection is ready or the instant `until` has come, and appends the ready
    /// connections to `ready`. May return early with none.
    ///
    /// `now` is the current instant, which the caller has just read. Readiness may be reported only
    /// once (edge-triggered), so a reader has to receive until fewer bytes arrive than the buffer
    /// holds. The end of a connection is reported separately.
    ///
    /// # Errors
    /// The operating system refuses; the worker can't continue.
    fn wait(&mut self, now: Nanos, until: Nanos, ready: &mut Vec<usize>) -> io::Result<()>;

    /// Asks the server to cancel the request that the connection is waiting for. Best effort,
    /// without an answer.
    fn cancel(&mut self, connection: usize);

    /// Closes the connection. It is never reported as ready again.
    fn close(&mut self, connection: usize);

    /// Opens a session on a connection that is closed. Returns the bytes that arrived with it.
    /// Blocks at most for `limit` (`None`: without a limit).
    ///
    /// # Errors
    /// The reason, for the user.
    fn open(
        &mut self,
        connection: usize,
        connect: &Reconnect,
        limit: Option<Duration>,
    ) -> Result<Vec<u8>, String>;
}
