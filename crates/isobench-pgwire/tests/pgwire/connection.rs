//! `connect` and `Connection` with a test server in a thread, over a Unix socket and over TCP.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use isobench_pgwire::server::{self, FrontendMessage};
use isobench_pgwire::{
    ConnectOptions, Connection, Error, Host, Secret, SqlState, SslMode, TargetSessionAttrs,
    TransactionStatus, connect,
};
use isobench_testkit::handler::{Handler, Peer, serve_in_turn};

fn error(out: &mut Vec<u8>, severity: &str, code: &str, message: &str) {
    server::error_response(out, &[(b'S', severity), (b'V', severity), (b'C', code), (b'M', message)]);
}

fn ready(out: &mut Vec<u8>) {
    server::ready_for_query(out, TransactionStatus::Idle);
}

/// A server on a Unix socket, which accepts one connection for each handler.
struct Server {
    folder: tempfile::TempDir,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(handlers: Vec<Handler>) -> Self {
        Self::start_in_pieces(usize::MAX, handlers)
    }

    fn start_in_pieces(piece: usize, handlers: Vec<Handler>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let thread = serve_in_turn(&folder.path().join(".s.PGSQL.1"), piece, handlers).expect("a socket");
        Self { folder, thread: Some(thread) }
    }

    fn start_one(handler: impl FnMut(&mut Peer) + Send + 'static) -> Self {
        Self::start(vec![Box::new(handler)])
    }

    fn host(&self) -> Host {
        Host::unix(self.folder.path(), 1)
    }

    fn options(&self) -> ConnectOptions {
        ConnectOptions::new(self.host(), "me", "db")
    }

    fn connection(&self) -> Connection {
        Connection::open(&self.options()).expect("a session")
    }

    /// Waits for the handlers to end, and fails if one has failed.
    fn end(mut self) {
        self.thread.take().expect("ended once").join().expect("the handler went as expected");
    }

    /// Masks the socket's folder, which differs between runs.
    fn mask(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "DIR")
    }
}

#[test]
fn statements_rows_and_notices() {
    // The whole conversation, also byte by byte.
    for piece in [usize::MAX, 1, 7] {
        let server = Server::start_in_pieces(
            piece,
            vec![Box::new(|peer| {
                peer.welcome();
                assert_eq!(peer.query().as_deref(), Some("BEGIN; SELECT"));
                peer.send(|out| {
                    server::command_complete(out, "BEGIN");
                    server::notice_response(out, &[(b'S', "WARNING"), (b'M', "careful")]);
                    server::row_description(out, &[("a", 23), ("b", 25)]);
                    server::data_row(out, &[Some(b"1"), None]);
                    server::data_row(out, &[Some("zwölf".as_bytes()), Some(b"\xff")]);
                    server::command_complete(out, "SELECT 2");
                    server::parameter_status(out, "server_version", "16.1");
                    server::ready_for_query(out, TransactionStatus::InTransaction);
                });
                assert_eq!(peer.query().as_deref(), Some(""));
                peer.send(|out| {
                    server::empty_query_response(out);
                    ready(out);
                });
                assert_eq!(peer.next(|message| message == FrontendMessage::Terminate), Some(true));
            })],
        );
        let mut connection = server.connection();
        assert_eq!(connection.parameter("server_version"), Some("15.18"));
        let rows = connection.query("BEGIN; SELECT").expect("rows");
        assert_eq!(rows.columns, ["a", "b"]);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(rows.rows, [vec![text("1"), None], vec![text("zwölf"), text("\u{fffd}")]]);
        assert_eq!(connection.parameter("server_version"), Some("16.1"));
        assert_eq!(connection.transaction_status(), TransactionStatus::InTransaction);
        assert_eq!(connection.take_notices()[0].to_string(), "WARNING:  careful");
        assert!(connection.take_notices().is_empty());
        let completed = connection.execute("").expect("nothing to fail");
        assert_eq!((completed.len(), completed[0].tag.as_str(), completed[0].rows()), (1, "", None));
        connection.close();
        server.end();
    }
}

#[test]
fn an_error_ends_a_statement_and_not_the_session() {
    let server = Server::start_one(|peer| {
        peer.welcome();
        peer.query();
        peer.send(|out| {
            server::command_complete(out, "CREATE TABLE");
            error(out, "ERROR", "42P01", "relation \"x\" does not exist");
            server::ready_for_query(out, TransactionStatus::Failed);
        });
        peer.query();
        peer.send(|out| {
            server::row_description(out, &[("x", 23)]);
            server::data_row(out, &[Some(b"5")]);
            server::command_complete(out, "SELECT 1");
            ready(out);
        });
    });
    let mut connection = server.connection();
    let error = connection.execute("CREATE TABLE y (); TABLE x").expect_err("an error");
    assert_eq!(error.code(), Some(SqlState::UNDEFINED_TABLE));
    assert!(!error.is_connection_lost());
    assert_eq!(connection.transaction_status(), TransactionStatus::Failed);
    assert_eq!(connection.value("SELECT 5").expect("a value").as_deref(), Some("5"));
    server.end();
}

#[test]
fn lost_connections() {
    type Case = (fn(&mut Vec<u8>), Option<&'static str>, &'static str);
    let cases: [Case; 4] = [
        (|_| {}, None, "server closed the connection unexpectedly"),
        (|out| server::command_complete(out, "SELECT 1"), None, "server closed the connection unexpectedly"),
        (
            |out| error(out, "FATAL", "57P01", "terminating connection"),
            Some("57P01"),
            "FATAL:  terminating connection",
        ),
        (|out| out.extend_from_slice(b"D\0\0\0\x02"), None, "lost synchronization with the server"),
    ];
    for (encode, code, text) in cases {
        let server = Server::start_one(move |peer| {
            peer.welcome();
            peer.query();
            peer.send(encode);
        });
        let mut connection = server.connection();
        let error = connection.query("SELECT 1").expect_err("the server has gone");
        assert!(error.is_connection_lost(), "{error:?}");
        assert_eq!(error.code().map(|code| code.to_string()).as_deref(), code);
        assert!(error.to_string().starts_with(text), "{error}");
        assert!(connection.is_broken());
        let again = connection.query("SELECT 1").expect_err("there is no session");
        assert!(again.is_connection_lost());
        server.end();
    }
}

#[test]
fn a_silent_server_meets_the_time_limit() {
    let (done, wait) = mpsc::channel::<()>();
    let server = Server::start_one(move |peer| {
        peer.welcome();
        peer.query();
        let _ = wait.recv();
    });
    let mut connection = server.connection();
    connection.set_timeout(Some(Duration::from_millis(20)));
    let error = connection.execute("SELECT pg_sleep(1000)").expect_err("no answer");
    assert!(matches!(error, Error::Timeout(_)), "{error:?}");
    assert!(connection.is_broken());
    drop(done);
    server.end();
}

#[test]
fn copying_in() {
    let server = Server::start_one(|peer| {
        peer.welcome();
        peer.query();
        peer.send(|out| server::copy_in_response(out, 1));
        let mut data = Vec::new();
        while let Some(true) = peer.next(|message| match message {
            FrontendMessage::CopyData(_) => true,
            other => {
                assert_eq!(other, FrontendMessage::CopyDone);
                false
            }
        }) {
            data.push(());
        }
        assert!(data.len() > 1, "a large amount comes in several messages");
        peer.send(|out| {
            server::command_complete(out, "COPY 100000");
            ready(out);
        });
    });
    let mut connection = server.connection();
    let mut left = 100_000;
    let rows = connection.copy_in("COPY t FROM STDIN", &mut |out| {
        out.extend_from_slice(b"row\n");
        left -= 1;
        left > 0
    });
    assert_eq!(rows.expect("copied"), 100_000);
    assert_eq!(left, 0);
    server.end();
}

#[test]
fn copying_stops_at_an_error() {
    let server = Server::start_one(|peer| {
        peer.welcome();
        peer.query();
        peer.send(|out| server::copy_in_response(out, 1));
        peer.next(|_| ());
        peer.send(|out| {
            error(out, "ERROR", "53100", "could not extend file: No space left on device");
            ready(out);
        });
        // Data in transit is ignored; then the session continues.
        while peer.next(|message| matches!(message, FrontendMessage::CopyData(_) | FrontendMessage::CopyDone))
            == Some(true)
        {}
        peer.send(|out| {
            server::command_complete(out, "ROLLBACK");
            ready(out);
        });
    });
    let mut connection = server.connection();
    let mut calls = 0_u64;
    let result = connection.copy_in("COPY t FROM STDIN", &mut |out| {
        out.resize(out.len() + 10_000, b'x');
        calls += 1;
        true
    });
    assert_eq!(result.expect_err("the disk is full").code(), Some(SqlState::DISK_FULL));
    assert_eq!(connection.execute("ROLLBACK").expect("goes on")[0].tag, "ROLLBACK");
    drop(connection);
    server.end();
}

#[test]
fn copies_where_none_is_meant() {
    let server = Server::start_one(|peer| {
        peer.welcome();
        peer.query();
        peer.send(|out| {
            server::command_complete(out, "SELECT 0");
            ready(out);
        });
        peer.query();
        peer.send(|out| server::copy_in_response(out, 1));
        assert_eq!(peer.next(|message| matches!(message, FrontendMessage::CopyFail(_))), Some(true));
        peer.send(|out| {
            error(out, "ERROR", "57014", "COPY from stdin failed");
            ready(out);
        });
        peer.query();
        peer.send(|out| {
            server::copy_out_response(out, 1);
            server::copy_data(out, b"1\n");
            server::copy_done(out);
            server::command_complete(out, "COPY 1");
            ready(out);
        });
    });
    let mut connection = server.connection();
    let result = connection.copy_in("SELECT", &mut |_| false);
    assert!(matches!(result, Err(Error::NotCopyIn)), "{result:?}");
    let error = connection.execute("COPY t FROM STDIN").expect_err("no data");
    assert_eq!(error.code(), Some(SqlState::QUERY_CANCELED));
    assert_eq!(connection.execute("COPY t TO STDOUT").expect("ignored")[0].rows(), Some(1));
    server.end();
}

#[test]
fn a_session_changes_hands() {
    let server = Server::start_one(|peer| {
        peer.beginning();
        peer.send(|out| {
            server::authentication_ok(out);
            ready(out);
            // Directly after the end of start-up, with the second half still missing.
            let mut notice = Vec::new();
            server::notice_response(&mut notice, &[(b'S', "NOTICE"), (b'M', "early")]);
            out.extend_from_slice(&notice[..9]);
        });
        peer.query();
        peer.send(|out| {
            let mut notice = Vec::new();
            server::notice_response(&mut notice, &[(b'S', "NOTICE"), (b'M', "early")]);
            out.extend_from_slice(&notice[9..]);
            server::command_complete(out, "SELECT 1");
            ready(out);
        });
    });
    let session = connect(&server.options()).expect("a session");
    assert_eq!(session.pending.len(), 9);
    let session = Connection::from_established(session).into_established();
    assert_eq!(session.pending.len(), 9);
    let mut connection = Connection::from_established(session);
    connection.execute("SELECT").expect("an answer");
    assert_eq!(connection.take_notices()[0].message, "early");
    server.end();
}

#[test]
fn cancelling() {
    let (tell, told) = mpsc::channel();
    let server = Server::start(vec![
        Box::new(Peer::welcome),
        Box::new(move |peer| tell.send(peer.beginning()).expect("somebody listens")),
    ]);
    let connection = server.connection();
    let token = connection.cancel_token();
    assert_eq!(token.pid(), 7);
    assert!(!format!("{token:?}").contains("key"), "the key is a secret");
    token.cancel().expect("the request is taken");
    assert_eq!(told.recv().expect("a request"), "CancelRequest { pid: 7, key: [1, 2, 3, 4] }");
    server.end();
}

/// Connects to a server with this handler, followed by a second host that refuses; returns the
/// whole error text.
fn refusal(
    options: impl FnOnce(&mut ConnectOptions),
    handler: impl FnMut(&mut Peer) + Send + 'static,
) -> String {
    let server = Server::start_one(handler);
    let mut with = server.options();
    with.hosts.push(Host::unix("/nonexistent", 2));
    options(&mut with);
    let error = connect(&with).expect_err("no session");
    let text = server.mask(&error.to_string());
    server.end();
    text
}

const NEXT: &str = "\nconnection to server on socket \"/nonexistent/.s.PGSQL.2\" failed: No such \
                    file or directory\n\tIs the \
                    server running locally and accepting connections on that socket?";

#[test]
fn refusals_in_the_words_of_libpq() {
    type Case = (fn(&mut Vec<u8>), &'static str, bool);
    // The server's message, the error text, and whether the next host is tried, as in libpq 15.
    let cases: [Case; 8] = [
        (|out| error(out, "FATAL", "57P03", "starting up"), "FATAL:  starting up", true),
        (
            |out| error(out, "FATAL", "3D000", "database \"x\" does not exist"),
            "FATAL:  database \"x\" does not exist",
            false,
        ),
        (|out| error(out, "FATAL", "53300", "too many"), "FATAL:  too many", false),
        (
            |_| {},
            "server closed the connection unexpectedly\n\tThis probably means the server terminated \
             abnormally\n\tbefore or \
             while processing the request.",
            false,
        ),
        (
            |out| out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n"),
            "expected authentication request from server, but received H",
            false,
        ),
        (
            |out| server::ready_for_query(out, TransactionStatus::Idle),
            "expected authentication request from server, but received Z",
            false,
        ),
        (server::authentication_cleartext_password, "fe_sendauth: no password supplied", false),
        (|out| server::authentication(out, 77, &[]), "authentication method 77 not supported", false),
    ];
    for (encode, expected, next) in cases {
        let text = refusal(
            |_| {},
            move |peer| {
                peer.beginning();
                peer.send(encode);
            },
        );
        let next = if next { NEXT } else { "" };
        assert_eq!(
            text,
            format!("connection to server on socket \"DIR/.s.PGSQL.1\" failed: {expected}{next}")
        );
    }
}

#[test]
fn a_server_that_says_nothing_is_left_after_the_limit() {
    let text = refusal(
        |options| options.connect_timeout = Some(Duration::from_millis(30)),
        |peer| {
            peer.beginning();
            // Until the client disconnects.
            peer.next(|_| ());
        },
    );
    assert_eq!(
        text,
        format!("connection to server on socket \"DIR/.s.PGSQL.1\" failed: timeout expired{NEXT}")
    );
}

#[test]
fn passwords_are_asked_for_only_where_they_help() {
    let ask = |peer: &mut Peer| {
        peer.beginning();
        peer.send(server::authentication_cleartext_password);
        if peer.next(|_| ()).is_some() {
            peer.send(|out| error(out, "FATAL", "28P01", "password authentication failed for user \"me\""));
        }
    };
    let server = Server::start(vec![Box::new(ask), Box::new(ask)]);
    let missing = connect(&server.options()).expect_err("no password");
    assert!(missing.needs_password());
    let mut options = server.options();
    options.password = Some(Secret::new("wrong"));
    let wrong = connect(&options).expect_err("the wrong password");
    assert!(!wrong.needs_password());
    assert_eq!(wrong.code(), Some(SqlState::INVALID_PASSWORD));
    server.end();
}

#[test]
fn kinds_of_sessions() {
    use TargetSessionAttrs::{PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
    // The required kind, whether the server reports being read-only and a standby, or must be
    // asked; the outcome.
    let unsuitable = |text: &str| Err(format!("{text}{NEXT}"));
    let cases = [
        (ReadWrite, Some((false, false)), Ok(())),
        (ReadWrite, Some((true, false)), unsuitable("session is read-only")),
        (ReadWrite, Some((false, true)), unsuitable("session is read-only")),
        (ReadOnly, Some((false, true)), Ok(())),
        (ReadOnly, Some((false, false)), unsuitable("session is not read-only")),
        (Primary, Some((true, false)), Ok(())),
        (Primary, Some((false, true)), unsuitable("server is in hot standby mode")),
        (Standby, Some((false, false)), unsuitable("server is not in hot standby mode")),
        (ReadWrite, None, unsuitable("session is read-only")),
        (ReadOnly, None, Ok(())),
        (PreferStandby, Some((false, true)), Ok(())),
    ];
    for (kind, reported, expected) in cases {
        let server = Server::start_one(move |peer| {
            peer.beginning();
            peer.send(|out| {
                server::authentication_ok(out);
                if let Some((read_only, standby)) = reported {
                    let on = |on| if on { "on" } else { "off" };
                    server::parameter_status(out, "default_transaction_read_only", on(read_only));
                    server::parameter_status(out, "in_hot_standby", on(standby));
                }
                ready(out);
            });
            if reported.is_none() {
                assert_eq!(peer.query().as_deref(), Some("SHOW transaction_read_only"));
                peer.send(|out| {
                    server::row_description(out, &[("transaction_read_only", 25)]);
                    server::data_row(out, &[Some(b"on")]);
                    server::command_complete(out, "SHOW");
                    ready(out);
                });
            }
        });
        let mut options = server.options();
        options.hosts.push(Host::unix("/nonexistent", 2));
        options.target_session_attrs = kind;
        let place = "connection to server on socket \"DIR/.s.PGSQL.1\" failed: ";
        let result = connect(&options).map(drop).map_err(|error| server.mask(&error.to_string()));
        assert_eq!(result, expected.map_err(|text| format!("{place}{text}")), "{kind:?} {reported:?}");
        server.end();
    }
}

/// TCP: every address of a name, no delay, and the texts.
#[test]
fn tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = listener.local_addr().expect("bound").port();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut peer = Peer::new(stream);
        peer.welcome();
        peer.next(|message| message == FrontendMessage::Terminate)
    });
    let mut options = ConnectOptions::new(Host::tcp("localhost", port), "me", "db");
    options.keepalives.idle = Some(Duration::from_mins(1));
    options.tcp_user_timeout = Some(Duration::from_mins(1));
    let session = connect(&options).expect("a session");
    let isobench_pgwire::Socket::Tcp(stream) = &session.socket else { panic!("not TCP") };
    assert!(stream.nodelay().expect("a socket"));
    Connection::from_established(session).close();
    assert_eq!(thread.join().expect("no panic"), Some(true));

    // The port is closed by now.
    options.hosts = vec![
        Host::tcp("127.0.0.1", port),
        Host { hostaddr: Some("127.0.0.1".into()), ..Host::tcp("x", port) },
    ];
    let refused = format!(
        "connection to server at \"127.0.0.1\", port {port} failed: Connection refused\n\tIs the \
         server running on that host \
         and accepting TCP/IP connections?"
    );
    let error = connect(&options).expect_err("nobody listens");
    assert_eq!(error.to_string(), format!("{refused}\n{refused}"));
    assert!(!error.needs_password());

    options.hosts = vec![Host { hostaddr: Some("foo".into()), ..Host::tcp("x", port) }];
    let error = connect(&options).expect_err("no address");
    assert_eq!(error.to_string(), "could not parse network address \"foo\": Name or service not known");
}

#[test]
fn a_unix_socket_is_never_encrypted() {
    let server = Server::start_one(Peer::welcome);
    let options = ConnectOptions { ssl_mode: SslMode::VerifyFull, ..server.options() };
    assert!(connect(&options).is_ok());
    server.end();
}

#[test]
fn paths_of_sockets() {
    let long = format!("/{}", "x".repeat(110));
    let error = connect(&ConnectOptions::new(Host::unix(&long, 1), "me", "db")).expect_err("too long");
    let expected = format!("Unix-domain socket path \"{long}/.s.PGSQL.1\" is too long (maximum 107 bytes)");
    assert_eq!(error.to_string(), expected);
}

#[cfg(target_os = "linux")]
#[test]
fn abstract_sockets() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let name = format!("isobench-pgwire-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(format!("{name}/.s.PGSQL.1")).expect("a name");
    let listener = UnixListener::bind_addr(&address).expect("a socket");
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        Peer::new(stream).welcome();
    });
    let options = ConnectOptions::new(Host::unix(format!("@{name}"), 1), "me", "db");
    assert_eq!(connect(&options).expect("a session").cancel.pid(), 7);
    thread.join().expect("no panic");
    let error = connect(&options).expect_err("nobody listens").to_string();
    assert!(error.starts_with(&format!(
        "connection to server on socket \"@{name}/.s.PGSQL.1\" failed: Connection refused"
    )));
}
