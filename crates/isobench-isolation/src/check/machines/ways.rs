//! The ways between machines that check a history together, and how a result is sent on them.

use std::io;

use crate::check::spill::SpillError;

/// The ways between machines that check a history together. Messages from one to another arrive in the
/// order in which they were sent.
pub trait Ways: Send {
    /// This machine's number among them, from 0.
    fn rank(&self) -> usize;

    /// The number of machines.
    fn number(&self) -> usize;

    /// Sends a message to another one.
    fn send(&mut self, to: usize, message: Vec<u8>);

    /// Waits for the next message of another one.
    ///
    /// # Errors
    /// It is gone.
    fn receive(&mut self, from: usize) -> io::Result<Vec<u8>>;
}

/// The machine that has a part.
pub(super) fn owner(part: u32, machines: usize) -> usize {
    part as usize % machines
}

/// The first byte of a message with what was wanted.
const DONE: u8 = 0;

/// The first byte of a message with the reason why it can't be had.
const FAILED: u8 = 1;

/// A result as a message.
pub(super) fn result(found: Result<Vec<u8>, &SpillError>) -> Vec<u8> {
    let (first, body) = match found {
        Ok(bytes) => (DONE, bytes),
        Err(error) => (FAILED, error.to_string().into_bytes()),
    };
    let mut message = Vec::with_capacity(1 + body.len());
    message.push(first);
    message.extend(body);
    message
}

/// Waits for a result of another machine.
pub(super) fn answer(ways: &mut dyn Ways, from: usize) -> Result<Vec<u8>, SpillError> {
    let mut message = ways.receive(from).map_err(SpillError::Io)?;
    if message.first() == Some(&DONE) {
        message.remove(0);
        return Ok(message);
    }
    let why = String::from_utf8_lossy(message.get(1..).unwrap_or_default()).into_owned();
    Err(SpillError::Io(io::Error::other(format!("rank {from}: {why}"))))
}
