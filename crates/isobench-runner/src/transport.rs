//! The network as a trait: real sockets in `sockets.rs`, a simulation in the tests.
//!
//! Not here: the meaning of the bytes.

use std::io;
use std::time::Duration;

use isobench_pgwire::Connection;

use crate::time::Nanos;

/// The result of a receive.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// These bytes, at least one.
    Bytes(&'a [u8]),
    /// Nothing at the moment.
    Nothing,
    /// The server closed the connection.
    Closed,
}

/// Opens a connection within this time (`None`: without a limit). The error is a text for the user.
pub type Connect<'a> = dyn Fn(Option<Duration>) -> Result<Connection, String> + 'a;

/// The connections of one worker, addressed by index. None of the calls blocks, except `wait` and
/// `open`.
///
/// A turn of a worker is a `wait`, then a `receive` for each connection that `next` returns, then a
/// `send` for each request that follows from these. So both a poller, which has to be asked for the
/// bytes, and a ring, which has received them already, can be behind it.
pub trait Transport {
    /// Begins a run. Called on the thread that makes all calls until `end`.
    ///
    /// # Errors
    /// The operating system refuses what the event loop needs.
    fn begin(&mut self) -> io::Result<()>;

    /// Ends a run: lets go of everything that belongs to the thread. The connections stay open.
    fn end(&mut self);

    /// Sends as much as the connection accepts at once. Returns the number of bytes (0: none at the
    /// moment). The bytes leave with the next `wait` at the latest.
    ///
    /// # Errors
    /// The connection is lost.
    fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize>;

    /// Lets everything leave that `send` has accepted.
    ///
    /// # Errors
    /// The operating system refuses; the worker can't continue.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Waits until a connection is ready or the instant `until` has come. May return early.
    ///
    /// `now` is the current instant, which the caller has just read.
    ///
    /// # Errors
    /// The operating system refuses; the worker can't continue.
    fn wait(&mut self, now: Nanos, until: Nanos) -> io::Result<()>;

    /// Returns the next connection that is ready since the last `wait`. A connection may come
    /// several times. What isn't received then is reported again by the `wait` after.
    fn next(&mut self) -> Option<usize>;

    /// Receives from the connection that `next` has returned last, once.
    ///
    /// # Errors
    /// The connection is lost.
    fn receive(&mut self) -> io::Result<Received<'_>>;

    /// True if the next `wait` would return at once, with work that it does itself.
    fn has_news(&mut self) -> bool {
        false
    }

    /// Turns on or off that the connection is reported as ready when it accepts more bytes.
    ///
    /// # Errors
    /// The operating system refuses.
    fn watch_writable(&mut self, connection: usize, on: bool) -> io::Result<()>;

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
        connect: &Connect<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<u8>, String>;
}
