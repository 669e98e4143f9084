//! Errors of a blocking connection.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::error_text::{CLOSED, INTERRUPTED, errno_text};
use crate::{ConnectError, ProtocolError, ServerError, SqlState};

/// The errors of a blocking [`crate::Connection`].
#[derive(Debug)]
pub enum Error {
    /// The server reported an error; the session continues unless the error is fatal.
    Server(Box<ServerError>),
    /// No session could be opened.
    Connect(ConnectError),
    /// The connection is lost (`UnexpectedEof`: the server closed it).
    Lost(io::Error),
    /// The time limit was exceeded; the session can't be used any more.
    Timeout(Duration),
    /// The wait was ended by [`crate::Patience::hurry`]; the session can't be used any more.
    Interrupted,
    /// The reply to a query exceeds this many bytes; the session can't be used any more.
    TooLarge(usize),
    /// The peer violated the protocol; the session can't be used any more.
    Protocol(ProtocolError),
    /// The statement given to `copy_in` isn't a COPY … FROM STDIN.
    NotCopyIn,
}

impl Error {
    /// The server's error code, if the server reported an error.
    pub fn code(&self) -> Option<SqlState> {
        match self {
            Self::Server(error) => Some(error.code),
            Self::Connect(error) => error.code(),
            _ => None,
        }
    }

    /// The server's error message with all its fields, if there is one.
    pub fn server(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            _ => None,
        }
    }

    /// True if the session is lost, so that further statements need a new one.
    pub fn is_connection_lost(&self) -> bool {
        match self {
            // Some products report the end of a session by an error that isn't marked as fatal.
            Self::Server(error) => {
                let endings =
                    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CONNECTION_FAILURE];
                error.is_fatal() || endings.contains(&error.code)
            }
            Self::Lost(_)
            | Self::Timeout(_)
            | Self::Interrupted
            | Self::TooLarge(_)
            | Self::Protocol(_)
            | Self::Connect(_) => true,
            Self::NotCopyIn => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => f.write_str(&error.report(None)),
            Self::Connect(error) => error.fmt(f),
            Self::Lost(error) if error.kind() == io::ErrorKind::UnexpectedEof => f.write_str(CLOSED),
            Self::Lost(error) => write!(f, "lost the connection to the server: {}", errno_text(error)),
            Self::Timeout(limit) => write!(f, "the server has not answered within {limit:?}"),
            Self::Interrupted => f.write_str(INTERRUPTED),
            Self::TooLarge(limit) => {
                write!(f, "the server's answer is larger than {} MiB, which is the limit", limit >> 20)
            }
            Self::Protocol(error) => write!(f, "lost synchronization with the server: {error}"),
            Self::NotCopyIn => f.write_str("the statement is not a COPY … FROM STDIN"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Server(error) => Some(error),
            Self::Connect(error) => Some(error),
            Self::Lost(error) => Some(error),
            Self::Protocol(error) => Some(error),
            Self::Timeout(_) | Self::Interrupted | Self::TooLarge(_) | Self::NotCopyIn => None,
        }
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl From<ProtocolError> for Error {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        Self::Server(Box::new(error))
    }
}
