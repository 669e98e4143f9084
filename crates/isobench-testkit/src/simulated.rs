//! A simulated PostgreSQL server with its network and its clock, for running the whole runner without either.
//!
//! It works on the protocol's bytes: what the runner sends is decoded, what it receives has been encoded. Time is
//! simulated and jumps to the next event, so a test of an hour takes milliseconds, and times can be asserted
//! exactly. Everything is drawn from one seed; the same seed gives the same run. The server keeps the [`Truth`]:
//! what it really did, against which a runner's account can be held.
//!
//! | file | holds |
//! |---|---|
//! | `settings` | what a test asks for |
//! | `faults` | what goes wrong, as values |
//! | `statement` | what the server makes of an SQL text |
//! | `block` | transaction blocks and the rows in them |
//! | `session` | one connection's server side: messages in, messages out |
//! | `network` | events in time, and what is on its way |
//! | `truth` | what really happened |
//! | `dice` | the seeded random numbers |
//!
//! ```
//! use isobench_runner::{Clock, Nanos, Received, Reconnect, Transport};
//! use isobench_testkit::simulated::{Settings, SimulatedServer};
//!
//! let mut server = SimulatedServer::new(Settings::default());
//! let mut query = Vec::new();
//! isobench_pgwire::frontend::query(&mut query, b"INSERT INTO t VALUES (1)");
//! assert_eq!(server.send(0, &query)?, query.len());
//! let mut ready = Vec::new();
//! server.wait(Nanos::NEVER, &mut ready)?;
//! assert_eq!((ready, server.now()), (vec![0], Nanos(1_000_000)));
//! assert!(matches!(server.receive(0, &mut [0; 100])?, Received::Bytes(_)));
//! assert_eq!(server.truth().committed_rows, 1);
//! # Ok::<(), std::io::Error>(())
//! ```

mod block;
mod dice;
mod faults;
mod network;
mod session;
mod settings;
mod statement;
mod truth;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use isobench_runner::{Clock, Nanos, Received, Reconnect, Transport};

pub use faults::{Fault, Faults, Loss, On, When};
pub use settings::{Answer, Settings};
pub use truth::{End, Executed, Truth};

use network::Network;

/// The server, its network and its clock; clones are handles of the same one.
///
/// It is a [`Transport`] whose connection *n* has a session that is connected and idle from its first use on, unless that
/// is asked for. A session that is opened in place of another one begins afresh.
#[derive(Clone)]
pub struct SimulatedServer {
    network: Rc<RefCell<Network>>,
}

impl SimulatedServer {
    /// A server at the instant 0.
    pub fn new(settings: Settings) -> SimulatedServer {
        SimulatedServer { network: Rc::new(RefCell::new(Network::new(settings))) }
    }

    /// Calls `action` at an instant, such as to request the end of the run. It must not use the server itself.
    pub fn at(&self, when: Nanos, action: impl FnOnce() + 'static) {
        self.network.borrow_mut().call_at(when, Box::new(action));
    }

    /// Lets the server finish what it has begun, though nobody listens any more: a COMMIT that the client doesn't wait for
    /// may still commit. To be called after the last run, before the truth is asked for.
    pub fn settle(&self) {
        self.network.borrow_mut().settle();
    }

    /// What the server has really done so far.
    pub fn truth(&self) -> Truth {
        self.network.borrow().truth()
    }
}

impl Clock for SimulatedServer {
    fn now(&self) -> Nanos {
        self.network.borrow().now()
    }
}

impl Transport for SimulatedServer {
    fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize> {
        self.network.borrow_mut().send(connection, bytes)
    }

    fn receive(&mut self, connection: usize, buffer: &mut [u8]) -> io::Result<Received> {
        self.network.borrow_mut().receive(connection, buffer)
    }

    fn watch_writable(&mut self, connection: usize, on: bool) -> io::Result<()> {
        self.network.borrow_mut().watch_writable(connection, on);
        Ok(())
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<usize>) -> io::Result<()> {
        self.network.borrow_mut().wait(until, ready)
    }

    fn cancel(&mut self, connection: usize) {
        self.network.borrow_mut().cancel(connection);
    }

    fn close(&mut self, connection: usize) {
        self.network.borrow_mut().close(connection);
    }

    fn open(&mut self, connection: usize, _connect: &Reconnect) -> Result<Vec<u8>, String> {
        self.network.borrow_mut().open(connection)
    }
}
