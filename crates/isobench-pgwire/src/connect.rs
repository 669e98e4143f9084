//! Opening a session: every host in turn, every address of it, start-up, and the check of what kind of session it is.

mod error;

use std::io;

pub use self::error::{ConnectError, ConnectProblem, FailedAttempt};
use crate::cancel::CancelToken;
use crate::config::{Host, SslMode, TargetSessionAttrs};
use crate::connection::Connection;
use crate::endpoint::{Endpoint, watch_peer};
use crate::frame::FrameBuffer;
use crate::socket::{Deadline, Socket};
use crate::startup::{Session, Startup, StartupProgress};
use crate::{ConnectOptions, ServerError};

/// The largest message accepted before the peer has proved to be a server: its errors and parameters fit by far.
const STARTUP_LIMIT: usize = 1 << 20;

/// A session that waits for queries.
#[derive(Debug)]
pub struct Established {
    /// Its socket, blocking.
    pub socket: Socket,
    /// The run-time parameters the server reported, such as `server_version`.
    pub parameters: Vec<(String, String)>,
    /// Cancels what the session is running.
    pub cancel: CancelToken,
    /// Notices during start-up.
    pub notices: Vec<ServerError>,
    /// Bytes received after the last message that was dealt with; nearly always empty. They belong before the
    /// first read: feed them to the [`FrameBuffer`].
    pub pending: Vec<u8>,
}

impl Established {
    /// The value of a run-time parameter that the server reports, such as `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Opens a session, blocking: tries every host and every address of it in order.
///
/// As with libpq, a server that can be reached and refuses (or closes the connection) ends the search, unless it is
/// only starting up or shutting down; a session of the wrong kind (`target_session_attrs`) doesn't end it.
///
/// # Errors
///
/// What happened with every place that was tried.
pub fn connect(options: &ConnectOptions) -> Result<Established, ConnectError> {
    let mut attempts = Vec::new();
    if options.target_session_attrs == TargetSessionAttrs::PreferStandby {
        if let Some(found) = connect_any(options, TargetSessionAttrs::Standby, &mut attempts)? {
            return Ok(found);
        }
        attempts.clear();
        if let Some(found) = connect_any(options, TargetSessionAttrs::Any, &mut attempts)? {
            return Ok(found);
        }
    } else if let Some(found) = connect_any(options, options.target_session_attrs, &mut attempts)? {
        return Ok(found);
    }
    Err(ConnectError { attempts })
}

fn connect_any(
    options: &ConnectOptions,
    kind: TargetSessionAttrs,
    attempts: &mut Vec<FailedAttempt>,
) -> Result<Option<Established>, ConnectError> {
    for host in &options.hosts {
        let endpoints = match Endpoint::lookup(host) {
            Ok(endpoints) => endpoints,
            Err(text) => {
                attempts.push(FailedAttempt { place: None, problem: ConnectProblem::Address(text) });
                continue;
            }
        };
        for endpoint in endpoints {
            match connect_endpoint(options, host, &endpoint, kind) {
                Ok(session) => return Ok(Some(session)),
                Err(problem) => {
                    let is_final = problem.is_final();
                    attempts.push(FailedAttempt::new(&endpoint, problem));
                    if is_final {
                        return Err(ConnectError { attempts: std::mem::take(attempts) });
                    }
                }
            }
        }
    }
    Ok(None)
}

fn connect_endpoint(
    options: &ConnectOptions,
    host: &Host,
    endpoint: &Endpoint,
    kind: TargetSessionAttrs,
) -> Result<Established, ConnectProblem> {
    let deadline = Deadline::after(options.connect_timeout);
    let socket = endpoint.open(options.connect_timeout).map_err(|error| match error.kind() {
        // A Unix socket says WouldBlock when its limit is over.
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock if options.connect_timeout.is_some() => {
            ConnectProblem::Timeout
        }
        _ => ConnectProblem::Unreachable(error),
    })?;
    watch_peer(&socket, options.keepalives, options.tcp_user_timeout).map_err(ConnectProblem::Lost)?;
    let socket = encrypt(socket, options.ssl_mode, endpoint)?;
    let (session, pending) = start(&socket, options, host, deadline)?;
    if options.connect_timeout.is_some() {
        socket.set_read_timeout(None).map_err(ConnectProblem::Lost)?;
        socket.set_write_timeout(None).map_err(ConnectProblem::Lost)?;
    }
    let cancel = CancelToken::new(endpoint.clone(), session.pid, session.key, options.connect_timeout);
    let established =
        Established { socket, parameters: session.parameters, cancel, notices: session.notices, pending };
    check_kind(established, kind, deadline)
}

/// The place for TLS: what comes after this goes over the encrypted stream.
fn encrypt(socket: Socket, mode: SslMode, endpoint: &Endpoint) -> Result<Socket, ConnectProblem> {
    match (mode, endpoint) {
        // libpq doesn't encrypt Unix sockets whatever the mode.
        (SslMode::Disable | SslMode::Allow | SslMode::Prefer, _) | (_, Endpoint::Unix(_)) => Ok(socket),
        (SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull, Endpoint::Tcp { .. }) => {
            Err(ConnectProblem::TlsNotSupported)
        }
    }
}

/// Sends the start-up packet and answers until the session waits for queries.
fn start(
    socket: &Socket,
    options: &ConnectOptions,
    host: &Host,
    deadline: Deadline,
) -> Result<(Session, Vec<u8>), ConnectProblem> {
    let mut out = Vec::new();
    let mut startup = Startup::for_host(options, host, &mut out);
    let mut frames = FrameBuffer::with_limit(STARTUP_LIMIT);
    let mut buffer = [0; 4096];
    loop {
        deadline.write_all(socket, &out).or_else(prefer_answer)?;
        out.clear();
        let count = deadline.read(socket, &mut buffer).map_err(ConnectProblem::from_io)?;
        if count == 0 {
            return Err(ConnectProblem::Closed);
        }
        let mut arrived = frames.feed(&buffer[..count]);
        while let Some(frame) = arrived.next().map_err(|error| {
            let turn = startup.check_turn(error.tag());
            ConnectProblem::Startup(turn.err().unwrap_or_else(|| error.into()))
        })? {
            match startup.on_frame(frame, &mut out) {
                Ok(StartupProgress::Continue) => {}
                Ok(StartupProgress::Ready(session)) => {
                    drop(arrived);
                    return Ok((session, frames.pending().to_vec()));
                }
                Err(error) => {
                    return Err(ConnectProblem::Startup(error).about_password(startup.password_asked()));
                }
            }
        }
    }
}

/// A server may refuse and close before it has read our bytes: its message is worth more than `Broken pipe`.
fn prefer_answer(error: io::Error) -> Result<(), ConnectProblem> {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
        _ => Err(ConnectProblem::from_io(error)),
    }
}

/// Checks `target_session_attrs`.
fn check_kind(
    session: Established,
    kind: TargetSessionAttrs,
    deadline: Deadline,
) -> Result<Established, ConnectProblem> {
    // The reported parameters (PostgreSQL 14 and later), the query for others, the value that is wanted, what to say.
    let writable = ["default_transaction_read_only", "in_hot_standby"];
    let primary = ["in_hot_standby"];
    let (reported, query, wanted, complaint): (&[&str], _, _, _) = match kind {
        TargetSessionAttrs::Any | TargetSessionAttrs::PreferStandby => return Ok(session),
        TargetSessionAttrs::ReadWrite => {
            (&writable, "SHOW transaction_read_only", false, "session is read-only")
        }
        TargetSessionAttrs::ReadOnly => {
            (&writable, "SHOW transaction_read_only", true, "session is not read-only")
        }
        TargetSessionAttrs::Primary => {
            (&primary, "SELECT pg_catalog.pg_is_in_recovery()", false, "server is in hot standby mode")
        }
        TargetSessionAttrs::Standby => {
            (&primary, "SELECT pg_catalog.pg_is_in_recovery()", true, "server is not in hot standby mode")
        }
    };
    let (session, found) = if reported.iter().all(|name| session.parameter(name).is_some()) {
        let found = reported.iter().any(|name| session.parameter(name) == Some("on"));
        (session, found)
    } else {
        let mut connection = Connection::from_established(session);
        connection.set_timeout(deadline.left().map_err(ConnectProblem::from_io)?);
        let answer = connection.value(query).map_err(|error| ConnectProblem::Check(error.to_string()))?;
        connection.set_timeout(None);
        (connection.into_established(), matches!(answer.as_deref(), Some("on" | "t")))
    };
    if found == wanted { Ok(session) } else { Err(ConnectProblem::Unsuitable(complaint)) }
}
