//! Cancel requests.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use isobench_limits::LIMITS;

use crate::connect::encryption;
use crate::endpoint::Endpoint;
use crate::frontend;
use crate::patience::Patience;
use crate::socket::Deadline;
use crate::tls::TlsClient;

/// Cancels the current query of a session; can be used from any thread while the session is in use.
#[derive(Clone)]
pub struct CancelToken {
    route: CancelRoute,
    pid: i32,
    key: Vec<u8>,
}

/// Where the cancel requests of a session go: to the place of the session, encrypted as it is.
#[derive(Clone)]
pub struct CancelRoute {
    endpoint: Endpoint,
    limit: Duration,
    /// The encryption of the session, which the request uses too.
    encryption: Option<Arc<TlsClient>>,
}

impl CancelRoute {
    pub(crate) fn new(
        endpoint: Endpoint,
        limit: Option<Duration>,
        encryption: Option<Arc<TlsClient>>,
    ) -> Self {
        Self { endpoint, limit: limit.unwrap_or(LIMITS.cancel_request), encryption }
    }

    /// Sends a cancel request over a connection of its own, and waits until the server has closed it.
    ///
    /// # Errors
    ///
    /// If the server can't be reached, or doesn't close the connection in time.
    pub fn send(&self, request: &[u8]) -> io::Result<()> {
        self.send_within(request, self.limit)
    }

    /// The same, with this time limit.
    fn send_within(&self, request: &[u8], limit: Duration) -> io::Result<()> {
        // A cancel request has its own limit, and isn't affected by requests to hurry.
        let deadline = Deadline::after(Some(limit), &Patience::default());
        let mut socket = self.endpoint.open(&deadline, None)?;
        if let Some(client) = &self.encryption {
            socket = encryption::secure_again(socket, client, &deadline)
                .map_err(|problem| io::Error::other(problem.to_string()))?;
        }
        deadline.write_all(&mut socket, request)?;
        // The server closes the connection after sending the signal. It doesn't matter how.
        match deadline.read(&mut socket, &mut [0; 16]) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for CancelRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelRoute").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl CancelToken {
    pub(crate) fn new(
        endpoint: Endpoint,
        pid: i32,
        key: Vec<u8>,
        limit: Option<Duration>,
        encryption: Option<Arc<TlsClient>>,
    ) -> Self {
        Self { route: CancelRoute::new(endpoint, limit, encryption), pid, key }
    }

    /// The process id of the session's server process; 0 if unknown.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Asks the server to cancel, over a separate connection, and waits until it has received the
    /// request.
    ///
    /// Only the session itself shows whether a query was cancelled (`57014`).
    /// Source: PostgreSQL: Protocol, Message Flow, Canceling Requests in Progress.
    ///
    /// # Errors
    ///
    /// If the server can't be reached, or sent no key at start-up (`Unsupported`).
    pub fn cancel(&self) -> io::Result<()> {
        self.cancel_within(self.route.limit)
    }

    /// The same, with this time limit.
    ///
    /// # Errors
    ///
    /// Those of [`CancelToken::cancel`], or the time is over.
    pub fn cancel_within(&self, limit: Duration) -> io::Result<()> {
        if self.key.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the server sent no key for cancel requests",
            ));
        }
        let mut request = Vec::with_capacity(16);
        frontend::cancel_request(&mut request, self.pid, &self.key);
        self.route.send_within(&request, limit)
    }
}

/// Hides the key, which is secret.
impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("endpoint", &self.route.endpoint)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
