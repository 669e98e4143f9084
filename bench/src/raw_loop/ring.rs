//! The raw loop on one `io_uring` instead of epoll: all receives and sends of a turn in one system
//! call.

use std::time::{Duration, Instant};

use isobench_ring::{Arrival, Ring};

use super::{Client, RawError, RawLoop, RawOutcome, broken_by};

impl RawLoop<'_> {
    /// Runs the clients until the time is over.
    pub(super) fn run_ring(
        &mut self,
        clients: &mut [Client],
        time: Duration,
    ) -> Result<RawOutcome, RawError> {
        let broken = broken_by(self.plan);
        let mut ring = Ring::new(clients.len()).map_err(broken)?;
        for (slot, client) in clients.iter().enumerate() {
            ring.add(slot, &client.socket).map_err(broken)?;
        }
        let start = Instant::now();
        let mut running = clients.len();
        for (slot, client) in clients.iter().enumerate() {
            ring.send(slot, self.requests[client.step].fill(&mut self.digits)).map_err(broken)?;
        }
        while running > 0 {
            ring.wait(None).map_err(broken)?;
            self.stopping = start.elapsed() >= time;
            while let Some(slot) = ring.next() {
                let client = &mut clients[slot];
                let ready = match ring.arrival() {
                    Some(Arrival::Bytes(bytes)) => client.frames.ready_after(bytes)?,
                    Some(Arrival::Failed(error)) => return Err(broken(error)),
                    Some(Arrival::End) | None => {
                        return Err(broken(std::io::ErrorKind::UnexpectedEof.into()));
                    }
                };
                if ready == 0 {
                    continue;
                }
                if self.advance(client) {
                    let request = self.requests[client.step].fill(&mut self.digits);
                    ring.send(slot, request).map_err(broken)?;
                } else {
                    running -= 1;
                }
            }
        }
        Ok(RawOutcome { transactions: self.transactions, elapsed: start.elapsed() })
    }
}
