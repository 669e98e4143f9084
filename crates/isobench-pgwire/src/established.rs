//! A session that was opened and is ready for queries.

use crate::ServerError;
use crate::cancel::CancelToken;
use crate::config::Host;
use crate::patience::Patience;
use crate::socket::Socket;

/// A session that is ready for queries.
#[derive(Debug)]
pub struct Established {
    /// The socket, in blocking mode.
    pub socket: Socket,
    /// The run-time parameters the server reported, such as `server_version`.
    pub parameters: Vec<(String, String)>,
    /// Its host, one of those in the options.
    pub host: Host,
    /// Cancels the session's current query.
    pub cancel: CancelToken,
    /// The notices received during start-up.
    pub notices: Vec<ServerError>,
    /// Bytes received after the last processed message; almost always empty. They must be processed
    /// before the first read: pass them to the [`FrameBuffer`](crate::FrameBuffer).
    pub pending: Vec<u8>,
    /// The time limits of the session's blocking calls.
    pub patience: Patience,
}

impl Established {
    /// The value of a run-time parameter that the server reports, such as `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
