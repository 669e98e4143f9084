//! Opens a session: tries every host and every address of it, performs start-up, and checks the
//! kind of session.

pub(crate) mod encryption;
mod error;
mod failure;
mod link;

use std::io;
use std::time::Duration;

use self::encryption::{EncryptionChoice, Secured};
pub use self::error::{ConnectError, ConnectProblem, FailedAttempt};
use self::failure::Failure;
pub use self::link::{Link, Links};
use crate::cancel::CancelToken;
use crate::config::{Host, TargetSessionAttrs};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::established::Established;
use crate::frame::FrameBuffer;
use crate::socket::{Deadline, Socket};
use crate::startup::{ReadySession, Startup, StartupError, StartupProgress};
use crate::tls::Protection;
use crate::{ConnectOptions, Error, SqlState};

/// The maximum message size accepted before the peer is authenticated as a server, ample for its
/// errors and parameters.
const STARTUP_LIMIT: usize = 1 << 20;

/// The maximum number of bytes accepted before a session is ready for queries, in all messages.
const STARTUP_TOTAL: usize = 16 << 20;

/// Opens a session, blocking: tries every host and every address of it in order.
///
/// As in libpq, a server that can be reached but refuses (or closes the connection) ends the
/// search, unless it is starting up or shutting down; a session of the wrong kind
/// (`target_session_attrs`) doesn't end it.
///
/// # Errors
///
/// The problem with each place that was tried.
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

impl Connection {
    /// Opens a session.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`].
    pub fn open(options: &ConnectOptions) -> Result<Self, Error> {
        Ok(Self::from_established(connect(options)?))
    }
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
            match connect_endpoint(options, host, &endpoint, kind, attempts) {
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

/// Opens a session at one place, trying the uses of encryption that the mode permits.
///
/// All problems but the last are added to `attempts`.
fn connect_endpoint(
    options: &ConnectOptions,
    host: &Host,
    endpoint: &Endpoint,
    kind: TargetSessionAttrs,
    attempts: &mut Vec<FailedAttempt>,
) -> Result<Established, ConnectProblem> {
    let mut choices = encryption::choices(options.ssl_mode, endpoint).iter().peekable();
    loop {
        let choice = choices.next().copied().unwrap_or(EncryptionChoice::Plain);
        match connect_in_one_way(options, host, endpoint, kind, choice) {
            Ok(session) => return Ok(session),
            Err(failure) if failure.other_choice_may_help && choices.peek().is_some() => {
                attempts.push(FailedAttempt::new(endpoint, failure.problem));
            }
            Err(failure) => return Err(failure.problem),
        }
    }
}

fn connect_in_one_way(
    options: &ConnectOptions,
    host: &Host,
    endpoint: &Endpoint,
    kind: TargetSessionAttrs,
    choice: EncryptionChoice,
) -> Result<Established, Failure> {
    let deadline = &Deadline::after(limit(options), &options.patience);
    let socket = endpoint.open(deadline, Some(options)).map_err(|error| {
        // The system reports its own timeout by the same error.
        let over = deadline.left().err().map(|over| not_in_time(over, options));
        Failure::permanent(over.unwrap_or(ConnectProblem::Unreachable(error)))
    })?;
    let Secured { mut socket, protection, client } =
        encryption::secure(socket, choice, options, host, deadline)?;
    let differs = choice == EncryptionChoice::Plain || protection != Protection::None;
    let (session, pending) = start(&mut socket, options, host, protection, deadline).map_err(|failure| {
        Failure { other_choice_may_help: failure.other_choice_may_help && differs, ..failure }
    })?;
    let cancel =
        CancelToken::new(endpoint.clone(), session.pid, session.key, options.connect_timeout, client);
    let established = Established {
        socket,
        parameters: session.parameters,
        host: host.clone(),
        cancel,
        notices: session.notices,
        pending,
        patience: options.patience.clone(),
    };
    check_kind(established, kind, deadline).map_err(Failure::permanent)
}

/// The time limit for connecting to one address.
fn limit(options: &ConnectOptions) -> Option<Duration> {
    options.connect_timeout.into_iter().chain(options.patience.limit()).min()
}

/// The problem of a wait. The server is doubted if it didn't answer in time.
fn not_in_time(error: io::Error, options: &ConnectOptions) -> ConnectProblem {
    // A limit chosen by the user says nothing about the server.
    let waited = error.kind() == io::ErrorKind::TimedOut && options.connect_timeout.is_none();
    if waited || error.kind() == io::ErrorKind::Interrupted {
        options.patience.doubt();
    }
    ConnectProblem::from_io(error)
}

/// Sends the start-up packet and answers messages until the session is ready for queries.
fn start(
    socket: &mut Socket,
    options: &ConnectOptions,
    host: &Host,
    protection: Protection,
    deadline: &Deadline,
) -> Result<(ReadySession, Vec<u8>), Failure> {
    let mut out = Vec::new();
    let mut startup = Startup::for_host(options, host, &mut out).over(protection);
    let mut frames = FrameBuffer::with_limit(STARTUP_LIMIT);
    let mut buffer = [0; 4096];
    let mut total = 0;
    loop {
        deadline.write_all(socket, &out).or_else(prefer_answer).map_err(Failure::permanent)?;
        out.clear();
        let count = deadline
            .read(socket, &mut buffer)
            .map_err(|error| Failure::permanent(not_in_time(error, options)))?;
        if count == 0 {
            return Err(Failure::permanent(ConnectProblem::Closed));
        }
        total += count;
        if total > STARTUP_TOTAL {
            return Err(Failure::permanent(ConnectProblem::Startup(StartupError::TooMuch(STARTUP_TOTAL))));
        }
        let mut arrived = frames.feed(&buffer[..count]);
        while let Some(frame) = arrived.next().map_err(|error| {
            let turn = startup.check_turn(error.tag());
            Failure::permanent(ConnectProblem::Startup(turn.err().unwrap_or_else(|| error.into())))
        })? {
            match startup.on_frame(frame, &mut out) {
                Ok(StartupProgress::Continue) => {}
                Ok(StartupProgress::Ready(session)) => {
                    drop(arrived);
                    return Ok((session, frames.pending().to_vec()));
                }
                Err(error) => return Err(refused(error, &startup)),
            }
        }
    }
}

/// The problem of a start-up that ended with an error.
fn refused(error: StartupError, startup: &Startup) -> Failure {
    // Rules about connections can depend on encryption; later steps don't.
    let other_choice_may_help = !startup.is_authenticated()
        && matches!(&error, StartupError::Server(error) if error.code != SqlState::CANNOT_CONNECT_NOW);
    let problem = ConnectProblem::Startup(error).about_password(startup.password_asked());
    Failure { problem, other_choice_may_help }
}

/// A server may refuse and close before it has read all data. Its message is more useful than
/// `Broken pipe`.
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
    deadline: &Deadline,
) -> Result<Established, ConnectProblem> {
    // The reported parameters (PostgreSQL 14 and later), the query for other versions, the required
    // value, and the message.
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
