//! The ways between the machines for a history that they check together.

use std::io;

use super::Machines;
use isobench_isolation::check::Ways;
use isobench_limits::LIMITS;

/// The ways from this machine to the others.
pub struct MachineWays<'m>(&'m Machines);

impl Machines {
    /// The ways to the others, for [`isobench_isolation::check::check_recording_together`].
    pub fn ways(&self) -> MachineWays<'_> {
        MachineWays(self)
    }
}

impl Ways for MachineWays<'_> {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn number(&self) -> usize {
        self.0.number()
    }

    fn send(&mut self, to: usize, message: Vec<u8>) {
        self.0.peers().send(to, message);
    }

    fn receive(&mut self, from: usize) -> io::Result<Vec<u8>> {
        let received = self.0.peers().receive_from(from, "checking the history", LIMITS.check);
        received.map_err(|error| io::Error::other(self.0.failed(&error).to_string()))
    }
}
