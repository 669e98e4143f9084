//! Errors that end a run.

use std::time::Duration;

use isobench_database::Error;

use super::session::Stopped;
use crate::output::seconds;

/// An error that ends a run. Where the isolation tester ends in the same way, the message is its
/// own.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A session can't be opened.
    #[error("could not open session \"{session}\": {source}")]
    Connection {
        /// The session.
        session: String,
        /// The cause.
        source: Error,
    },
    /// A setup block fails.
    #[error("setup failed: {0}")]
    Setup(String),
    /// A session's setup fails.
    #[error("setup of session {session} failed: {why}")]
    SessionSetup {
        /// The session.
        session: String,
        /// The server's error.
        why: String,
    },
    /// A session was lost before one of its steps.
    #[error("failed to send query for step {step}: {why}")]
    Send {
        /// The step.
        step: String,
        /// The reason that the session was lost.
        why: String,
    },
    /// A step continues after being cancelled, or reporting its completion is delayed for ever.
    #[error("step {step} timed out after {} seconds\nactive steps are: {}", seconds(*after), active.join(" "))]
    Timeout {
        /// The step.
        step: String,
        /// The time limit.
        after: Duration,
        /// All active steps.
        active: Vec<String>,
    },
    /// Markers make steps wait for each other.
    #[error("failed to complete permutation due to mutually-blocking steps")]
    MutuallyBlocking,
    /// The query for waiting sessions failed.
    #[error("lock wait query failed: {0}")]
    Waits(String),
    /// A thread for opening a session couldn't be started.
    #[error("could not start a thread: {0}")]
    NoThread(String),
    /// The run was stopped.
    #[error("interrupted")]
    Stopped,
}

impl RunError {
    /// True if a connection couldn't be opened, or was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self, RunError::Connection { .. } | RunError::Send { .. } | RunError::Waits(_))
    }
}

impl From<Stopped> for RunError {
    fn from(Stopped: Stopped) -> RunError {
        RunError::Stopped
    }
}
