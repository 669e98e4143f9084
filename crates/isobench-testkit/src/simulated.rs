//! A simulated PostgreSQL server with its network and clock, for running the whole runner without
//! any of them.
//!
//! It works on the bytes of the protocol, decoding requests and encoding replies. Time is simulated
//! and jumps to the next event, so a test of an hour takes milliseconds, and times can be asserted
//! exactly. All random numbers are drawn from one seed, and the same seed gives the same run. The
//! server records the [`Truth`], its actual actions, with which a runner's accounts can be
//! compared.
//!
//! | file | holds |
//! |---|---|
//! | `settings` | the parameters of a simulation |
//! | `faults` | faults, as values |
//! | `statement` | the parsing of SQL texts |
//! | `block` | transaction blocks and their rows |
//! | `registers` | a table whose rows have versions |
//! | `session` | the server side of a connection: messages in, messages out |
//! | `network` | events in time, and data in transit |
//! | `truth` | the server's actual actions |
//! | `rng` | seeded random numbers |
//! | `listening` | the same sessions behind a Unix socket, without simulated time |
//! | `postgresql` | PostgreSQL's answers to isobench's queries |
//!
//! ```
//! use isobench_runner::{Clock, Connect, Nanos, Received, Transport};
//! use isobench_testkit::simulated::{SimulationSettings, SimulatedServer};
//!
//! let mut server = SimulatedServer::new(SimulationSettings::default());
//! let mut query = Vec::new();
//! isobench_pgwire::frontend::query(&mut query, b"INSERT INTO t VALUES (1)");
//! assert_eq!(server.send(0, &query)?, query.len());
//! server.wait(server.now(), Nanos::NEVER)?;
//! assert_eq!((server.next(), server.now()), (Some(0), Nanos(1_000_000)));
//! assert!(matches!(server.receive()?, Received::Bytes(_)));
//! assert_eq!(server.truth().committed_rows, 1);
//! # Ok::<(), std::io::Error>(())
//! ```

mod block;
mod faults;
mod listening;
mod network;
pub mod postgresql;
mod registers;
mod rng;
mod session;
mod settings;
mod statement;
mod truth;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use isobench_runner::{Clock, Connect, Nanos, Received, Transport};

pub use faults::{Fault, Faults, Loss, On, When};
pub use listening::{Asked, ListeningServer};
pub use registers::Written;
pub use settings::{Answer, COMMITTED_ROWS, LEVEL, PROCESS, SCHEMA, SimulationSettings};
pub use truth::{End, Executed, Truth};

use network::Network;

/// The server, its network and its clock; clones are handles to the same one.
///
/// As a [`Transport`], its connection *n* has a connected and idle session from its first use on,
/// unless one is opened explicitly. A session opened in place of another one has a fresh state.
#[derive(Clone)]
pub struct SimulatedServer {
    network: Rc<RefCell<Network>>,
    /// The connection that `next` has returned last.
    current: usize,
    /// The bytes received last.
    received: Vec<u8>,
}

impl SimulatedServer {
    /// A server at the instant 0.
    pub fn new(settings: SimulationSettings) -> SimulatedServer {
        SimulatedServer {
            network: Rc::new(RefCell::new(Network::new(settings))),
            current: 0,
            received: Vec::new(),
        }
    }

    /// Calls `action` at an instant, for example to request the end of the run. It must not use the
    /// server itself.
    pub fn at(&self, when: Nanos, action: impl FnOnce() + 'static) {
        self.network.borrow_mut().call_at(when, Box::new(action));
    }

    /// Lets the server finish what it has started, although no client is waiting: a COMMIT that the
    /// client has abandoned may still succeed. Call this after the last run, before reading the
    /// truth.
    pub fn settle(&self) {
        self.network.borrow_mut().settle();
    }

    /// The server's actual actions so far.
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
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) {}

    fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize> {
        self.network.borrow_mut().send(connection, bytes)
    }

    fn next(&mut self) -> Option<usize> {
        self.current = self.network.borrow_mut().next()?;
        Some(self.current)
    }

    fn receive(&mut self) -> io::Result<Received<'_>> {
        self.network.borrow_mut().receive(self.current, &mut self.received)
    }

    fn watch_writable(&mut self, connection: usize, on: bool) -> io::Result<()> {
        self.network.borrow_mut().watch_writable(connection, on);
        Ok(())
    }

    fn wait(&mut self, _now: Nanos, until: Nanos) -> io::Result<()> {
        self.network.borrow_mut().wait(until)
    }

    fn cancel(&mut self, connection: usize) {
        self.network.borrow_mut().cancel(connection);
    }

    fn close(&mut self, connection: usize) {
        self.network.borrow_mut().close(connection);
    }

    fn open(
        &mut self,
        connection: usize,
        _connect: &Connect<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<u8>, String> {
        self.network.borrow_mut().open(connection, limit)
    }
}

#[cfg(test)]
mod tests {
    use isobench_pgwire::{SqlState, frontend};

    use super::*;

    const REFUSED: Fault = Fault::Error(SqlState(*b"53300"));

    fn server(faults: Faults) -> SimulatedServer {
        SimulatedServer::new(SimulationSettings {
            connecting: Duration::from_millis(2),
            faults,
            ..SimulationSettings::default()
        })
    }

    fn open(server: &mut SimulatedServer) -> Result<Vec<u8>, String> {
        server.open(0, &|_| Err("nobody is to be asked".to_owned()), None)
    }

    fn send(server: &mut SimulatedServer, sql: &str) {
        let mut query = Vec::new();
        frontend::query(&mut query, sql.as_bytes());
        assert_eq!(server.send(0, &query).expect("a connection"), query.len());
    }

    /// The connections with news within this time.
    fn wait(server: &mut SimulatedServer, milliseconds: u64) -> Vec<usize> {
        let until = server.now().after(Duration::from_millis(milliseconds));
        server.wait(server.now(), until).expect("time is left");
        std::iter::from_fn(|| server.next()).collect()
    }

    #[test]
    fn a_new_session_hears_nothing_of_the_old_one() {
        for fault in [Fault::Notice, Fault::TerminatedAfterReply, Fault::LostAfter(Loss::Reset)] {
            let mut server = server(Faults::none().and(On::Insert, When::First(1), fault));
            send(&mut server, "INSERT INTO t VALUES (1)");
            server.close(0);
            open(&mut server).expect("a session");
            assert_eq!(wait(&mut server, 5), [0; 0], "{fault:?}");
            assert_eq!(server.receive().expect("a connection"), Received::Nothing);
            // The server has nevertheless executed what it received.
            let truth = server.truth();
            assert_eq!((truth.committed_rows, truth.sessions), (1, vec![2]));
            send(&mut server, "SELECT 1");
            assert_eq!(wait(&mut server, 5), [0]);
            let sessions: Vec<u64> =
                server.truth().statements[0].iter().map(|statement| statement.session).collect();
            assert_eq!(sessions, [0, 1]);
        }
    }

    #[test]
    fn news_that_nobody_has_waited_for_goes_with_its_session() {
        let mut server = server(Faults::none());
        send(&mut server, "SELECT 1");
        // While the new session is being opened, the reply arrives at the old session.
        open(&mut server).expect("a session");
        assert_eq!(wait(&mut server, 5), [0; 0]);
    }

    #[test]
    fn a_new_session_begins_afresh_but_for_the_faults_to_come() {
        let error = Fault::Error(SqlState::UNDEFINED_TABLE);
        let mut server = server(Faults::none().and(On::Insert, When::Nth(0, 1), error));
        send(&mut server, "BEGIN; INSERT INTO t VALUES (1)");
        wait(&mut server, 5);
        server.close(0);
        open(&mut server).expect("a session");
        send(&mut server, "COMMIT; INSERT INTO t VALUES (2)");
        wait(&mut server, 5);
        let truth = server.truth();
        assert_eq!(truth.committed_rows, 0, "the block has gone with its session");
        assert_eq!(truth.statements[0][3].end, End::Failed(SqlState::UNDEFINED_TABLE));
    }

    #[test]
    fn opening_takes_time_and_may_be_refused() {
        let mut server = server(Faults::none().and(On::Connect, When::First(1), REFUSED));
        assert!(open(&mut server).is_err_and(|why| why.contains("53300")));
        assert_eq!((server.now(), server.truth().sessions), (Nanos(2_000_000), vec![0]));
        assert_eq!(open(&mut server), Ok(Vec::new()));
        assert_eq!((server.now(), server.truth().sessions), (Nanos(4_000_000), vec![1]));
    }

    #[test]
    fn a_session_that_is_closed_has_no_news_and_takes_nothing() {
        let mut server = server(Faults::none());
        send(&mut server, "SELECT 1");
        server.close(0);
        assert_eq!(wait(&mut server, 5), [0; 0]);
        assert!(server.send(0, b"x").is_err() && server.receive().is_err());
    }
}
