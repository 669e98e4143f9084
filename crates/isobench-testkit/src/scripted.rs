//! A server that follows a script: it expects queries in order and returns the answers listed below
//! each.
//!
//! It tests what isobench sends to products that aren't available, with answers recorded from them.
//!
//! ```text
//! # a comment
//! == connect database=isobench    starts the part of a connection; parameters it must have sent are optional
//! ! parameter in_hot_standby=on   reports a parameter at start-up
//! ! no key                        sends no BackendKeyData
//! > select version()              a query in the simple protocol, or an Execute of a prepared one; blanks and
//! > insert into t values *        line breaks count as one blank; a star at the end matches any rest
//! > select $1 [7]                 values bound to a prepared statement stand in brackets
//! < columns version               names of the columns; optional
//! < row CockroachDB OSS v20.1.5   a row; values are separated by " | ", NULL is NULL
//! < tag SELECT 1                  the tag of CommandComplete; optional after rows
//! < error 40001 "message" detail "…" hint "…"
//! < notice 01000 "message"
//! < copy                          asks for COPY data; what follows is the answer to its end
//! < close                         closes the connection without another word
//! ```
//!
//! Any deviation from the script is answered by an error, and [`ScriptedServer::finish`] panics
//! with both texts.

mod exchange;
mod script;

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use isobench_pgwire::{ConnectOptions, Host, Socket};

use self::script::ConnectionScript;

/// The time a connection waits for the client before it gives up, which tests shouldn't reach.
const PATIENCE: Duration = Duration::from_secs(20);

/// A scripted server, which listens until it is finished.
#[derive(Debug)]
pub struct ScriptedServer {
    host: Host,
    shared: Arc<Shared>,
    acceptor: JoinHandle<()>,
}

/// The state shared by the threads.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    complaints: Mutex<Vec<String>>,
}

impl Shared {
    fn complain(&self, complaint: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(complaint);
    }
}

/// The source of connections.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> io::Result<Socket> {
        let socket = match self {
            Listener::Tcp(listener) => Socket::Tcp(listener.accept()?.0),
            Listener::Unix(listener) => Socket::Unix(listener.accept()?.0),
        };
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    }
}

impl ScriptedServer {
    /// Listens on a free TCP port of the loopback address.
    ///
    /// # Panics
    /// If the script has an error, or there is no free port.
    pub fn start(script: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        Self::serve(Listener::Tcp(listener), Host::tcp("127.0.0.1", port), script)
    }

    /// Listens on a Unix socket in a directory, with the name for port 5432.
    ///
    /// # Panics
    /// If the script has an error, or the socket can't be created.
    pub fn start_unix(directory: &Path, script: &str) -> Self {
        let host = Host::unix(directory, 5432);
        let path = host.socket_path().expect("a Unix address has a path");
        let listener = UnixListener::bind(path).expect("a writable directory");
        Self::serve(Listener::Unix(listener), host, script)
    }

    fn serve(listener: Listener, host: Host, script: &str) -> Self {
        let connections = script::parse(script).unwrap_or_else(|error| panic!("{error}"));
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accept_all(&listener, connections, &for_thread));
        ScriptedServer { host, shared, acceptor }
    }

    /// The options for connecting: user `test`, database `test`, no password.
    pub fn options(&self) -> ConnectOptions {
        ConnectOptions::new(self.host.clone(), "test", "test")
    }

    /// Waits until all connections have ended and checks that the whole script was executed. Close
    /// the connections first.
    ///
    /// # Panics
    /// If anything differed from the script, or a part of it wasn't executed.
    pub fn finish(self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the acceptor in case it is still waiting for a connection.
        let _ = isobench_pgwire::Connection::open(&self.options());
        assert!(self.acceptor.join().is_ok(), "the scripted server panicked");
        let complaints = self.shared.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(complaints.is_empty(), "the script was not followed:\n{}", complaints.join("\n"));
    }
}

/// Accepts a connection for each part of the script, runs them concurrently, and waits for all to
/// end.
fn accept_all(listener: &Listener, connections: Vec<ConnectionScript>, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    for (index, connection) in connections.into_iter().enumerate() {
        let number = index + 1;
        let accepted = listener.accept();
        if shared.stop.load(Ordering::SeqCst) {
            shared.complain(format!("connection {number} (line {}) was never made", connection.line));
            break;
        }
        match accepted {
            Ok(socket) => {
                let shared = Arc::clone(shared);
                threads.push(thread::spawn(move || {
                    if let Err(complaint) = exchange::run(socket, connection) {
                        shared.complain(format!("connection {number}: {complaint}"));
                    }
                }));
            }
            Err(error) => shared.complain(format!("connection {number} could not be accepted: {error}")),
        }
    }
    for thread in threads {
        if thread.join().is_err() {
            shared.complain("a connection of the scripted server panicked".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_pgwire::{Connection, SqlState, TransactionStatus};

    const SCRIPT: &str = r#"
        == connect database=test
        > select version()
        < columns version
        < row Some Server 1.0
        > begin
        < tag BEGIN
        > update t
             set v = 1
        < notice 01000 "careful"
        < error 40001 "try \"again\"" hint "later"
        > rollback
        < tag ROLLBACK
        > copy t from stdin
        < copy
        < tag COPY 2
        > select a, b from *
        < row 1 | NULL
        < row 2 | x
        == connect
        > select 1
        < close
    "#;

    fn run(options: &ConnectOptions) {
        let mut conn = Connection::open(options).unwrap();
        assert_eq!(conn.value("select  version()").unwrap().as_deref(), Some("Some Server 1.0"));
        conn.execute("begin").unwrap();
        let error = conn.execute("update t set v = 1").unwrap_err();
        assert_eq!(error.code(), Some(SqlState::SERIALIZATION_FAILURE));
        assert_eq!(error.server().unwrap().message, "try \"again\"");
        assert_eq!(conn.take_notices()[0].message, "careful");
        assert_eq!(conn.transaction_status(), TransactionStatus::Failed);
        conn.execute("rollback").unwrap();
        assert_eq!(conn.transaction_status(), TransactionStatus::Idle);
        let mut lines = ["1\n", "2\n"].into_iter();
        let mut fill = |out: &mut Vec<u8>| match lines.next() {
            Some(line) => {
                out.extend_from_slice(line.as_bytes());
                true
            }
            None => false,
        };
        assert_eq!(conn.copy_in("copy t from stdin", &mut fill).unwrap(), 2);
        let rows = conn.query("select a, b from t").unwrap().rows;
        assert_eq!(rows[0], [Some("1".to_owned()), None]);
        let mut second = Connection::open(options).unwrap();
        assert!(second.execute("select 1").unwrap_err().is_connection_lost());
    }

    #[test]
    fn a_followed_script_is_no_complaint() {
        let server = ScriptedServer::start(SCRIPT);
        run(&server.options());
        server.finish();
    }

    #[test]
    #[should_panic(expected = "line 3: expected \"select 1\", got \"select 2\"")]
    fn another_query_is_a_complaint() {
        let server = ScriptedServer::start("== connect\n# here\n> select 1\n< tag SELECT 0");
        assert!(Connection::open(&server.options()).unwrap().execute("select 2").is_err());
        server.finish();
    }

    #[test]
    #[should_panic(expected = "line 2: expected \"select 1\", but the connection ended")]
    fn an_unused_query_is_a_complaint() {
        let server = ScriptedServer::start("== connect\n> select 1\n< tag SELECT 0");
        Connection::open(&server.options()).unwrap().close();
        server.finish();
    }

    #[test]
    #[should_panic(expected = "connection 1 (line 1) was never made")]
    fn an_unmade_connection_is_a_complaint() {
        ScriptedServer::start("== connect").finish();
    }
}
