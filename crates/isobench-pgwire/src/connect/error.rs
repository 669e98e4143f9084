//! Errors of opening a session, in libpq's words.

use std::fmt;
use std::io;

use crate::SqlState;
use crate::endpoint::Endpoint;
use crate::error_text::{CLOSED, INTERRUPTED, errno_text};
use crate::startup::StartupError;

/// The problems with each place that was tried.
///
/// `Display` is libpq's text, with one or more lines for each place.
#[derive(Debug)]
pub struct ConnectError {
    /// The places tried, in order.
    pub attempts: Vec<FailedAttempt>,
}

/// A failed attempt at one place.
#[derive(Debug)]
pub struct FailedAttempt {
    /// The place, such as `at "db", port 5432`; `None` if no address was found.
    pub place: Option<String>,
    /// The problem.
    pub problem: ConnectProblem,
}

/// A problem that prevented a session.
#[derive(Debug)]
pub enum ConnectProblem {
    /// The host's name has no address, or the socket's path is too long; a sentence.
    Address(String),
    /// No connection can be made; the text includes libpq's hint that the server may not be
    /// running.
    Unreachable(io::Error),
    /// The limit of `connect_timeout`, or another limit, was exceeded.
    Timeout,
    /// The wait was ended by [`crate::Patience::hurry`].
    Interrupted,
    /// The connection broke during start-up.
    Lost(io::Error),
    /// The server closed the connection without a message.
    Closed,
    /// The server refused, or used another protocol.
    Startup(StartupError),
    /// The server refused after requesting and receiving a password.
    WrongPassword(StartupError),
    /// The connection can't be encrypted as required, or the server isn't trusted; a sentence.
    Tls(String),
    /// The session isn't of the kind required by `target_session_attrs`.
    Unsuitable(&'static str),
    /// The kind of the session could not be determined.
    Check(String),
}

impl ConnectError {
    /// True if the last server requested a password and none was given, so that asking the user may
    /// help.
    pub fn needs_password(&self) -> bool {
        matches!(self.last(), Some(ConnectProblem::Startup(StartupError::NoPassword)))
    }

    /// The server's error code, if the last attempt ended with an error message from the server.
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

    /// Records that the refusal came after a password.
    pub(super) fn about_password(self, asked: bool) -> Self {
        match self {
            Self::Startup(error @ StartupError::Server(_)) if asked => Self::WrongPassword(error),
            other => other,
        }
    }

    /// True if further hosts must not be tried. Source: libpq, Specifying Multiple Hosts.
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
            Self::Interrupted => f.write_str(INTERRUPTED),
            Self::Closed => f.write_str(CLOSED),
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
