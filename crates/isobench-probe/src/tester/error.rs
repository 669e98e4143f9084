//! Why a run can't go on.

use std::time::Duration;

use isobench_database::Error;

use super::session::Stopped;
use crate::output::seconds;

/// Why a run can't go on. Where the isolation tester ends in the same way, the words are its own.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A session can't be opened.
    #[error("could not open session \"{session}\": {source}")]
    Connection {
        /// Which one.
        session: String,
        /// Why.
        source: Error,
    },
    /// A setup block fails.
    #[error("setup failed: {0}")]
    Setup(String),
    /// A session's setup fails.
    #[error("setup of session {session} failed: {why}")]
    SessionSetup {
        /// Which session.
        session: String,
        /// The server's error.
        why: String,
    },
    /// A session was lost before a step of it.
    #[error("failed to send query for step {step}: {why}")]
    Send {
        /// Which step.
        step: String,
        /// What happened to the session.
        why: String,
    },
    /// A step goes on although it was cancelled, or its report is held back for ever.
    #[error("step {step} timed out after {} seconds\nactive steps are: {}", seconds(*after), active.join(" "))]
    Timeout {
        /// Which step.
        step: String,
        /// After how long.
        after: Duration,
        /// All steps under way.
        active: Vec<String>,
    },
    /// Markers hold back steps for each other.
    #[error("failed to complete permutation due to mutually-blocking steps")]
    MutuallyBlocking,
    /// The server can't be asked any more who waits.
    #[error("lock wait query failed: {0}")]
    Waits(String),
    /// The operating system has no thread for opening a session.
    #[error("could not start a thread: {0}")]
    NoThread(String),
    /// Somebody stopped the run.
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
