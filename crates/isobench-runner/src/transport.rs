//! The runner's whole contact with the network, as a trait: real sockets in `sockets.rs`, a
//! simulation in the tests.
//!
//! Not here: what the bytes mean.

use std::io;
use std::time::Duration;

use crate::job::Reconnect;
use crate::time::Nanos;

/// What one receive brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// This many bytes, at least one.
    Bytes(usize),
    /// Nothing at present.
    Nothing,
    /// The server closed the connection.
    Closed,
}

/// The connections of one worker, addressed by index, none of which ever blocks.
pub trait Transport {
    /// Sends what the connection takes at once and returns how many bytes that were (0: none at
    /// present).
    ///
    /// # Errors
    /// The connection is lost.
    fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize>;

    /// Receives into `buffer`.
    ///
    /// # Errors
    /// The connection is lost.
    fn receive(&mut self, connection: usize, buffer: &mut [u8]) -> io::Result<Received>;

    /// Asks to be woken when the connection takes bytes again (`on`), or no longer.
    ///
    /// # Errors
    /// The operating system refuses.
    fn watch_writable(&mut self, connection: usize, on: bool) -> io::Result<()>;

    /// Waits until a connection has news or the instant `until` has come, and appends the
    /// connections to `ready`; `now` is the present instant, which the caller has just read. May
    /// return early with none. News may be told only once (edge-triggered): a reader has to receive
    /// until fewer bytes came than the buffer holds. The end of a connection is news of its own.
    ///
    /// # Errors
    /// The operating system refuses; the worker can't go on.
    fn wait(&mut self, now: Nanos, until: Nanos, ready: &mut Vec<usize>) -> io::Result<()>;

    /// Asks the server to cancel what the connection is waiting for. Best effort; there is no
    /// answer.
    fn cancel(&mut self, connection: usize);

    /// Closes the connection; it brings no more news.
    fn close(&mut self, connection: usize);

    /// Opens a session in place of one that was closed, or never was, and returns what arrived with
    /// it. Blocks, at most for `limit`; `None`: as long as it takes.
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
