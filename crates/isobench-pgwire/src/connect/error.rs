//! Why no session could be opened, in libpq's words.

use std::fmt;
use std::io;

use crate::SqlState;
use crate::endpoint::{Endpoint, errno_text};
use crate::startup::StartupError;

/// No session could be opened: what happened with every place that was tried.
///
/// `Display` is libpq's text, one or more lines for each place.
#[derive(Debug)]
pub struct ConnectError {
    /// The places tried, in order.
    pub attempts: Vec<FailedAttempt>,
}

/// One place that was tried in vain.
#[derive(Debug)]
pub struct FailedAttempt {
    /// Where, such as `at "db", port 5432`; `None` if no address was found.
    pub place: Option<String>,
    /// What happened.
    pub problem: ConnectProblem,
}

/// What prevented a session.
#[derive(Debug)]
pub enum ConnectProblem {
    /// The host's name has no address, or the socket's path doesn't fit; a sentence.
    Address(String),
    /// Nobody answers there; a sentence that asks whether the server runs (libpq's hint) is part of
    /// the text.
    Unreachable(io::Error),
    /// `connect_timeout` is over, or whatever else bounds the wait.
    Timeout,
    /// Somebody asked for the end of the wait ([`crate::Patience::hurry`]).
    Interrupted,
    /// The connection broke during start-up.
    Lost(io::Error),
    /// The server closed the connection without a word.
    Closed,
    /// The server refused, or spoke another protocol.
    Startup(StartupError),
    /// The server refused after it had asked for a password and got one.
    WrongPassword(StartupError),
    /// The connection can't be encrypted as the options ask, or its server isn't trusted; a
    /// sentence.
    Tls(String),
    /// The session is not of the kind that `target_session_attrs` asks for.
    Unsuitable(&'static str),
    /// The kind of the session could not be found out.
    Check(String),
}

impl ConnectError {
    /// Whether the last server asked for a password and none was given: asking the user may help.
    pub fn needs_password(&self) -> bool {
        matches!(self.last(), Some(ConnectProblem::Startup(StartupError::NoPassword)))
    }

    /// The server's error code, if the last attempt ended with an error message of the server.
    pub fn code(&self) -> Option<SqlState> {
        match self.last()? {
            ConnectProblem::Startup(StartupError::Server(error))
            | ConnectProblem::WrongPassword(StartupError::Server(error)) => Some(error.code),
            _ => None,
        }
    }

    fn last(&self) -> Option<&ConnectProblem> {
        self.attempts.last().map(|attempt| &attempt.problem)
    }
}

impl FailedAttempt {
    pub(super) fn new(endpoint: &Endpoint, problem: ConnectProblem) -> Self {
        let problem = match problem {
            ConnectProblem::Unreachable(error) => {
                let text = format!("{}\n\t{}", errno_text(&error), endpoint.hint());
                ConnectProblem::Unreachable(io::Error::new(error.kind(), text))
            }
            other => other,
        };
        Self { place: Some(endpoint.to_string()), problem }
    }
}

impl ConnectProblem {
    pub(super) fn from_io(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Lost(error),
        }
    }

    /// Notes that the refusal came after a password.
    pub(super) fn about_password(self, asked: bool) -> Self {
        match self {
            Self::Startup(error @ StartupError::Server(_)) if asked => Self::WrongPassword(error),
            other => other,
        }
    }

    /// Whether further hosts are not to be tried. Source: libpq, Specifying Multiple Hosts.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Startup(StartupError::Server(error)) | Self::WrongPassword(StartupError::Server(error)) => {
                error.code != SqlState::CANNOT_CONNECT_NOW
            }
            Self::Startup(_)
            | Self::WrongPassword(_)
            | Self::Tls(_)
            | Self::Closed
            | Self::Lost(_)
            | Self::Interrupted
            | Self::Check(_) => true,
            Self::Address(_) | Self::Unreachable(_) | Self::Timeout | Self::Unsuitable(_) => false,
        }
    }
}

impl fmt::Display for ConnectProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(text) | Self::Check(text) | Self::Tls(text) => f.write_str(text),
            Self::Unreachable(error) | Self::Lost(error) => f.write_str(&errno_text(error)),
            Self::Timeout => f.write_str("timeout expired"),
            Self::Interrupted => f.write_str(crate::error::INTERRUPTED),
            Self::Closed => f.write_str(crate::error::CLOSED),
            Self::Startup(error) | Self::WrongPassword(error) => error.fmt(f),
            Self::Unsuitable(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "connection to server {place} failed: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, attempt) in self.attempts.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            attempt.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConnectError {}
