//! Whether a connection is encrypted: the ways that a mode allows, and asking the server.
//!
//! Not here: TLS itself (`tls.rs`).

use std::sync::Arc;

use super::{ConnectProblem, Failure};
use crate::config::{ConnectOptions, Host, SslMode};
use crate::endpoint::Endpoint;
use crate::frontend;
use crate::socket::{Deadline, Socket};
use crate::tls::{Protection, TlsClient, TlsError};

/// One way of connecting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    /// Unencrypted.
    Plain,
    /// Encrypted if the server can, else unencrypted.
    TlsIfOffered,
    /// Encrypted.
    Tls,
}

/// The ways to try, each over a connection of its own. Source: libpq: sslmode.
pub(super) fn ways(mode: SslMode, endpoint: &Endpoint) -> &'static [Way] {
    match (endpoint, mode) {
        // Unix sockets are never encrypted, whatever the mode.
        (Endpoint::Unix(_), _) | (_, SslMode::Disable) => &[Way::Plain],
        (_, SslMode::Allow) => &[Way::Plain, Way::TlsIfOffered],
        (_, SslMode::Prefer) => &[Way::TlsIfOffered, Way::Plain],
        (_, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => &[Way::Tls],
    }
}

/// A connection that start-up can begin on.
pub(super) struct Secured {
    pub(super) socket: Socket,
    pub(super) protection: Protection,
    /// How further connections of the session, such as cancel requests, are encrypted; `None`: they
    /// aren't.
    pub(super) client: Option<Arc<TlsClient>>,
}

/// Encrypts a connection if that is the way.
pub(super) fn secure(
    mut socket: Socket,
    way: Way,
    options: &ConnectOptions,
    host: &Host,
    deadline: &Deadline,
) -> Result<Secured, Failure> {
    let plain = |socket| Secured { socket, protection: Protection::None, client: None };
    if way == Way::Plain {
        return Ok(plain(socket));
    }
    let is_offered =
        TlsClient::begins_at_once(&options.tls) || ask(&mut socket, deadline).map_err(Failure::lasting)?;
    if !is_offered {
        return match way {
            Way::Tls => Err(Failure::lasting(ConnectProblem::Tls(
                "server does not support SSL, but SSL was required".to_owned(),
            ))),
            Way::Plain | Way::TlsIfOffered => Ok(plain(socket)),
        };
    }
    let client = TlsClient::new(options.ssl_mode, &options.tls, host)
        .map_err(|text| Failure::of_this_way(ConnectProblem::Tls(text)))?;
    match client.handshake(socket, deadline) {
        Ok((socket, protection)) => Ok(Secured { socket, protection, client: Some(Arc::new(client)) }),
        Err(error @ TlsError::Refused(_)) => Err(Failure::of_this_way(error.into())),
        Err(error) => Err(Failure::lasting(error.into())),
    }
}

/// Encrypts a connection in the same way as an earlier one to the same server.
///
/// # Errors
/// It can't be.
pub(crate) fn secure_again(
    mut socket: Socket,
    client: &TlsClient,
    deadline: &Deadline,
) -> Result<Socket, ConnectProblem> {
    if !client.is_direct() && !ask(&mut socket, deadline)? {
        return Err(ConnectProblem::Tls("server does not support SSL, but SSL was required".to_owned()));
    }
    Ok(client.handshake(socket, deadline)?.0)
}

impl From<TlsError> for ConnectProblem {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Timeout => Self::Timeout,
            TlsError::Interrupted => Self::Interrupted,
            TlsError::Refused(text) => Self::Tls(text),
        }
    }
}

/// Asks the server whether it can encrypt.
fn ask(socket: &mut Socket, deadline: &Deadline) -> Result<bool, ConnectProblem> {
    let mut request = Vec::with_capacity(8);
    frontend::ssl_request(&mut request);
    deadline.write_all(socket, &request).map_err(ConnectProblem::from_io)?;
    let mut reply = [0; 64];
    let count = deadline.read(socket, &mut reply).map_err(ConnectProblem::from_io)?;
    let refusal = |text: String| Err(ConnectProblem::Tls(text));
    match reply.get(..count).unwrap_or_default() {
        [] => Err(ConnectProblem::Closed),
        [b'S'] => Ok(true),
        [b'N'] => Ok(false),
        // Somebody in between may have put them there (CVE-2021-23222).
        [b'S' | b'N', ..] => refusal("received unencrypted data after SSL response".to_owned()),
        // Its text isn't shown: anybody in between may have written it (CVE-2024-10977).
        [b'E', ..] => refusal("server sent an error response during SSL exchange".to_owned()),
        [byte, ..] => refusal(format!(
            "received invalid response to SSL negotiation: {}",
            char::from(*byte).escape_default()
        )),
    }
}
