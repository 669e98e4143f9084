//! The use of encryption: the attempts that a mode permits, and the request to the server.
//!
//! TLS itself is in `tls.rs`.

use std::sync::Arc;

use super::error::ConnectProblem;
use super::failure::Failure;
use crate::config::{ConnectOptions, Host, SslMode};
use crate::endpoint::Endpoint;
use crate::frontend;
use crate::socket::{Deadline, Socket};
use crate::tls::{Protection, TlsClient, TlsError};

/// A use of encryption for a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EncryptionChoice {
    /// Unencrypted.
    Plain,
    /// Encrypted if the server supports it, otherwise unencrypted.
    TlsIfOffered,
    /// Encrypted.
    Tls,
}

/// The uses to try, each over a new connection. Source: libpq: sslmode.
pub(super) fn choices(mode: SslMode, endpoint: &Endpoint) -> &'static [EncryptionChoice] {
    match (endpoint, mode) {
        // Unix sockets are never encrypted, regardless of the mode.
        (Endpoint::Unix(_), _) | (_, SslMode::Disable) => &[EncryptionChoice::Plain],
        (_, SslMode::Allow) => &[EncryptionChoice::Plain, EncryptionChoice::TlsIfOffered],
        (_, SslMode::Prefer) => &[EncryptionChoice::TlsIfOffered, EncryptionChoice::Plain],
        (_, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => &[EncryptionChoice::Tls],
    }
}

/// A connection on which start-up can begin.
pub(super) struct Secured {
    pub(super) socket: Socket,
    pub(super) protection: Protection,
    /// The encryption of further connections of the session, such as cancel requests; `None` if
    /// unencrypted.
    pub(super) client: Option<Arc<TlsClient>>,
}

/// Encrypts a connection if requested.
pub(super) fn secure(
    mut socket: Socket,
    choice: EncryptionChoice,
    options: &ConnectOptions,
    host: &Host,
    deadline: &Deadline,
) -> Result<Secured, Failure> {
    let plain = |socket| Secured { socket, protection: Protection::None, client: None };
    if choice == EncryptionChoice::Plain {
        return Ok(plain(socket));
    }
    let is_offered =
        TlsClient::begins_at_once(&options.tls) || ask(&mut socket, deadline).map_err(Failure::permanent)?;
    if !is_offered {
        return match choice {
            EncryptionChoice::Tls => Err(Failure::permanent(ConnectProblem::Tls(
                "server does not support SSL, but SSL was required".to_owned(),
            ))),
            EncryptionChoice::Plain | EncryptionChoice::TlsIfOffered => Ok(plain(socket)),
        };
    }
    let client = TlsClient::new(options.ssl_mode, &options.tls, host)
        .map_err(|text| Failure::of_encryption(ConnectProblem::Tls(text)))?;
    match client.handshake(socket, deadline) {
        Ok((socket, protection)) => Ok(Secured { socket, protection, client: Some(Arc::new(client)) }),
        Err(error @ TlsError::Refused(_)) => Err(Failure::of_encryption(error.into())),
        Err(error) => Err(Failure::permanent(error.into())),
    }
}

/// Encrypts a connection in the same way as an earlier one to the same server.
///
/// # Errors
/// If that fails.
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

/// Asks the server whether it supports encryption.
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
        // A man in the middle may have inserted them (CVE-2021-23222).
        [b'S' | b'N', ..] => refusal("received unencrypted data after SSL response".to_owned()),
        // Its text isn't shown, because a man in the middle may have written it (CVE-2024-10977).
        [b'E', ..] => refusal("server sent an error response during SSL exchange".to_owned()),
        [byte, ..] => refusal(format!(
            "received invalid response to SSL negotiation: {}",
            char::from(*byte).escape_default()
        )),
    }
}
