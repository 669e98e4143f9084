//! Asking a server to stop what a session is running.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::connect::encryption;
use crate::endpoint::Endpoint;
use crate::frontend;
use crate::patience::Patience;
use crate::socket::Deadline;
use crate::tls::TlsClient;

/// The longest time a cancel request may take where `connect_timeout` says nothing.
const DEFAULT_LIMIT: Duration = Duration::from_secs(10);

/// Cancels what one session is running; can be used from any thread while the session is in use.
#[derive(Clone)]
pub struct CancelToken {
    endpoint: Endpoint,
    pid: i32,
    key: Vec<u8>,
    limit: Duration,
    /// How the session is encrypted, and so the request is.
    encryption: Option<Arc<TlsClient>>,
}

impl CancelToken {
    pub(crate) fn new(
        endpoint: Endpoint,
        pid: i32,
        key: Vec<u8>,
        limit: Option<Duration>,
        encryption: Option<Arc<TlsClient>>,
    ) -> Self {
        Self { endpoint, pid, key, limit: limit.unwrap_or(DEFAULT_LIMIT), encryption }
    }

    /// Process id of the session's server process; 0 if the server didn't say.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Asks the server, over a connection of its own, to cancel, and waits until it has taken
    /// notice.
    ///
    /// Whether there was anything to cancel shows only in the session itself (`57014`).
    /// Source: PostgreSQL: Protocol, Message Flow, Canceling Requests in Progress.
    ///
    /// # Errors
    ///
    /// The server can't be reached, or sent no key at start-up (`Unsupported`).
    pub fn cancel(&self) -> io::Result<()> {
        self.cancel_within(self.limit)
    }

    /// The same, within this time.
    pub(crate) fn cancel_within(&self, limit: Duration) -> io::Result<()> {
        if self.key.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the server sent no key for cancel requests",
            ));
        }
        // Whoever cancels is in a hurry already.
        let deadline = Deadline::after(Some(limit), &Patience::default());
        let mut socket = self.endpoint.open(&deadline, None)?;
        if let Some(client) = &self.encryption {
            socket = encryption::secure_again(socket, client, &deadline)
                .map_err(|problem| io::Error::other(problem.to_string()))?;
        }
        let mut request = Vec::with_capacity(16);
        frontend::cancel_request(&mut request, self.pid, &self.key);
        deadline.write_all(&mut socket, &request)?;
        // The server closes when it has sent the signal. How it closes doesn't matter.
        match deadline.read(&mut socket, &mut [0; 16]) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
            _ => Ok(()),
        }
    }
}

/// Hides the key, which is a secret.
impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("endpoint", &self.endpoint)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
