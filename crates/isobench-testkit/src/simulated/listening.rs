//! The simulated server's sessions behind a Unix socket, for code that opens its own connections.
//!
//! Every session has a thread, statements take no time, and all sessions share one [`Truth`]. The
//! test passes a closure that is called before each statement: it returns a fault, counts, blocks
//! until the test releases it, or ends the server. Cancel requests are ignored, so a
//! [`Fault::Hang`] lasts until the client disconnects.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use isobench_pgwire::{ConnectOptions, Host};
use isobench_runner::Nanos;

use super::faults::Fault;
use super::registers::Registers;
use super::rng::Rng;
use super::session::{NetworkAction, Request, SessionContext, SimulatedSession};
use super::settings::SimulationSettings;
use super::truth::Truth;
use crate::handler::{self, Peer};

/// A statement that a session is about to execute.
pub struct Asked<'a> {
    /// The server.
    pub server: &'a ListeningServer,
    /// The number of the connection, from 0.
    pub connection: usize,
    /// The isolation level that the session has set, in lower case.
    pub level: &'a str,
    /// The statement, or all statements of a simple query.
    pub sql: &'a str,
}

type Rule = dyn Fn(&Asked<'_>) -> Option<Fault> + Send + Sync;

/// A handle of the server, which listens until the process ends.
#[derive(Clone)]
pub struct ListeningServer {
    host: Host,
    settings: Arc<SimulationSettings>,
    rule: Arc<Rule>,
    gone: Arc<AtomicBool>,
    state: Arc<Mutex<State>>,
}

/// The state that the sessions share.
struct State {
    truth: Truth,
    registers: Registers,
    rng: Rng,
    /// The occasions of each rule of the settings' faults, on all connections together.
    seen: Vec<u64>,
}

impl ListeningServer {
    /// Listens on the socket of port 5432 in a folder. Of the settings, `answers`, `faults` (all
    /// connections count as one) and `release_commits` apply. `rule` is called before each
    /// statement, in the thread of its session; its fault comes before those of the settings.
    ///
    /// # Errors
    /// If the socket can't be created.
    pub fn start(
        folder: &Path,
        settings: SimulationSettings,
        rule: impl Fn(&Asked<'_>) -> Option<Fault> + Send + Sync + 'static,
    ) -> io::Result<ListeningServer> {
        let state = State {
            truth: Truth::default(),
            registers: Registers::default(),
            rng: Rng::new(settings.seed),
            seen: Vec::new(),
        };
        let server = ListeningServer {
            host: Host::unix(folder, 5432),
            settings: Arc::new(settings),
            rule: Arc::new(rule),
            gone: Arc::default(),
            state: Arc::new(Mutex::new(state)),
        };
        let serving = server.clone();
        handler::serve_all(&folder.join(".s.PGSQL.5432"), move |peer, number| serving.serve(peer, number))?;
        Ok(server)
    }

    /// The connection options: user `test`, database `test`, no password.
    pub fn options(&self) -> ConnectOptions {
        ConnectOptions::new(self.host.clone(), "test", "test")
    }

    /// Ends the server: new connections are closed at once, open ones at their next message.
    pub fn end(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }

    /// The server's actual actions so far.
    pub fn truth(&self) -> Truth {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).truth.clone()
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// Serves a connection from its start to its end.
    fn serve(&self, peer: &mut Peer, number: usize) {
        let mut session = SimulatedSession::new(number, 0);
        if self.is_gone() {
            // With data left unread, the client would get a reset instead of an end.
            peer.beginning();
            return;
        }
        if !peer.welcome_to(session.process()) {
            return;
        }
        while let Some(request) = peer.next(Request::of) {
            let fault = session.statement(&request).and_then(|sql| {
                (self.rule)(&Asked { server: self, connection: number, level: session.level(), sql })
            });
            if self.is_gone() {
                return;
            }
            let (reply, open) = self.handle(&mut session, number, request, fault);
            peer.send(|out| out.extend(reply));
            if !open {
                return;
            }
        }
    }

    /// Lets a session handle a message. Returns the reply, and false if the connection ends with
    /// it.
    fn handle(
        &self,
        session: &mut SimulatedSession,
        number: usize,
        request: Request,
        next_fault: Option<Fault>,
    ) -> (Vec<u8>, bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { truth, registers, rng, seen } = &mut *state;
        truth.know(number);
        truth.sessions[number] = 1;
        let settings = &*self.settings;
        let now = Nanos(0);
        let context = &mut SessionContext { now, rng, settings, truth, registers, next_fault, seen };
        session.on_request(context, request);
        let mut reply = Vec::new();
        loop {
            let actions = session.take_actions();
            if actions.is_empty() {
                return (reply, !session.is_gone());
            }
            for action in actions {
                match action {
                    NetworkAction::Send(bytes) => reply.extend(bytes),
                    NetworkAction::Wake(_, wake) => session.on_wake(context, wake),
                    NetworkAction::Lose(..) => return (reply, false),
                }
            }
        }
    }
}

impl fmt::Debug for ListeningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListeningServer").field("host", &self.host).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use isobench_pgwire::{Connection, SqlState, TransactionStatus};

    use super::*;
    use crate::simulated::{Answer, Loss, postgresql};

    /// A server in a folder that the connections need.
    fn start(
        rule: impl Fn(&Asked<'_>) -> Option<Fault> + Send + Sync + 'static,
    ) -> (tempfile::TempDir, ListeningServer) {
        let folder = tempfile::tempdir().unwrap();
        let settings = postgresql::settings([("now()", Answer::column("now", &["never"]))]);
        let server = ListeningServer::start(folder.path(), settings, rule).unwrap();
        (folder, server)
    }

    #[test]
    fn sessions_have_levels_blocks_and_processes_of_their_own() {
        let (_folder, server) = start(|_| None);
        let open = || Connection::open(&server.options()).unwrap();
        let (mut one, mut other) = (open(), open());
        one.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ").unwrap();
        for (session, level) in [(&mut one, "repeatable read"), (&mut other, "read committed")] {
            assert_eq!(session.value("SHOW transaction_isolation").unwrap().as_deref(), Some(level));
            let process = session.cancel_token().pid().to_string();
            assert_eq!(session.value("SELECT pg_backend_pid()").unwrap(), Some(process));
        }
        one.execute("BEGIN; INSERT INTO t VALUES (1)").unwrap();
        let figures = "select (select count(*) from t), sum(abalance)";
        assert_eq!(other.value(figures).unwrap().as_deref(), Some("0"));
        assert_eq!(one.transaction_status(), TransactionStatus::InTransaction);
        assert_eq!(one.execute("END").unwrap()[0].tag, "COMMIT");
        assert_eq!(other.value(figures).unwrap().as_deref(), Some("1"));
        assert_eq!(other.execute("TRUNCATE TABLE t").unwrap()[0].tag, "TRUNCATE TABLE");
        assert_eq!(other.value("SELECT now()").unwrap().as_deref(), Some("never"));
        assert_eq!((server.truth().count("sum(abalance)"), server.truth().sessions), (2, vec![1, 1]));
    }

    #[test]
    fn a_rule_fails_loses_and_delays_statements() {
        let (release, released) = sync_channel::<()>(0);
        let (released, count) = (Mutex::new(released), AtomicUsize::new(0));
        let (_folder, server) = start(move |asked| match asked.sql {
            "UPDATE t" => {
                let number = count.fetch_add(1, Ordering::SeqCst);
                number.is_multiple_of(2).then_some(Fault::Error(SqlState::SERIALIZATION_FAILURE))
            }
            "DELETE FROM t" => Some(Fault::Lost(Loss::Closed)),
            "SELECT 1" => released.lock().unwrap().recv().map_or(Some(Fault::Lost(Loss::Closed)), |()| None),
            "SELECT 2" => {
                asked.server.end();
                None
            }
            _ => None,
        });
        let mut session = Connection::open(&server.options()).unwrap();
        let codes = [(); 4].map(|()| session.execute("UPDATE t").err().and_then(|error| error.code()));
        let failed = Some(SqlState::SERIALIZATION_FAILURE);
        assert_eq!(codes, [failed, None, failed, None]);
        let waiting = thread::spawn(move || session.execute("SELECT 1").map(|_| session));
        // Other sessions aren't delayed.
        let mut other = Connection::open(&server.options()).unwrap();
        other.execute("UPDATE u").unwrap();
        assert!(!waiting.is_finished());
        release.send(()).unwrap();
        let mut session = waiting.join().unwrap().unwrap();
        assert!(other.execute("DELETE FROM t").unwrap_err().is_connection_lost());
        assert!(session.execute("SELECT 2").unwrap_err().is_connection_lost());
        assert!(Connection::open(&server.options()).unwrap_err().is_connection_lost());
    }
}
