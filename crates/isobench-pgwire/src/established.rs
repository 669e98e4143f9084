//! A session that was opened and waits for queries.

use crate::ServerError;
use crate::cancel::CancelToken;
use crate::config::Host;
use crate::patience::Patience;
use crate::socket::Socket;

/// A session that waits for queries.
#[derive(Debug)]
pub struct Established {
    /// Its socket, blocking.
    pub socket: Socket,
    /// The run-time parameters the server reported, such as `server_version`.
    pub parameters: Vec<(String, String)>,
    /// Which of the hosts it is on.
    pub host: Host,
    /// Cancels what the session is running.
    pub cancel: CancelToken,
    /// Notices during start-up.
    pub notices: Vec<ServerError>,
    /// Bytes received after the last message that was dealt with; nearly always empty. They belong
    /// before the first read: feed them to the [`FrameBuffer`](crate::FrameBuffer).
    pub pending: Vec<u8>,
    /// How long blocking calls of the session wait.
    pub patience: Patience,
}

impl Established {
    /// The value of a run-time parameter that the server reports, such as `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
