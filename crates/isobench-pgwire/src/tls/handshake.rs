//! Agreeing on keys with a server, blocking, and checking who it is.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};

use super::client_certificate::Shown;
use super::stream::append_message;
use super::{Protection, TlsStream, certificate, words};
use crate::config::{SslNegotiation, TlsOptions, TlsVersion};
use crate::socket::{Deadline, Socket};

/// Room for one message of the handshake.
const CHUNK: usize = 4096;

/// How to encrypt a connection to one host.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    pub(super) config: Arc<ClientConfig>,
    /// Tells whether the server has got a certificate, where it must.
    pub(super) shown: Option<Arc<Shown>>,
    pub(super) direct: bool,
    /// The lowest and the highest version offered.
    pub(super) versions: (TlsVersion, TlsVersion),
    /// The name the server is told.
    pub(super) name: ServerName<'static>,
    /// The name its certificate must bear, if that is checked.
    pub(super) verified: Option<String>,
}

/// Why a connection could not be encrypted.
#[derive(Debug)]
pub(crate) enum TlsError {
    /// The time is over.
    Timeout,
    /// Somebody asked for the end of the wait.
    Interrupted,
    /// A sentence, libpq's where it has one.
    Refused(String),
}

impl TlsError {
    fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Refused(words::lost(Some(error))),
        }
    }
}

impl TlsClient {
    /// Whether encryption begins without asking.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether options ask for encryption without asking.
    pub(crate) fn begins_at_once(options: &TlsOptions) -> bool {
        options.negotiation == SslNegotiation::Direct
    }

    /// Encrypts a TCP connection; others stay as they are.
    ///
    /// # Errors
    /// The server isn't trusted, can't be agreed with, or doesn't answer in time.
    pub(crate) fn handshake(
        &self,
        socket: Socket,
        deadline: &Deadline,
    ) -> Result<(Socket, Protection), TlsError> {
        let mut socket = match socket {
            Socket::Tcp(stream) => Socket::Tcp(stream),
            other => return Ok((other, Protection::None)),
        };
        let refused = |error: &rustls::Error| TlsError::Refused(words::handshake_error(error, self.versions));
        let mut session = UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| refused(&error))?;
        let mut incoming = Vec::new();
        if let Err(error) = agree(&mut session, &mut socket, &mut incoming, deadline)? {
            complain(&mut session, &mut socket, &mut incoming, deadline);
            return Err(refused(&error));
        }
        let protection = self.check(&session)?;
        Ok(match socket {
            Socket::Tcp(stream) => {
                (Socket::Tls(Box::new(TlsStream::new(stream, session, incoming))), protection)
            }
            other => (other, protection),
        })
    }

    /// Checks what rustls leaves to us.
    fn check(&self, session: &UnbufferedClientConnection) -> Result<Protection, TlsError> {
        let Some(server) = session.peer_certificates().and_then(<[_]>::first) else {
            return Err(TlsError::Refused("certificate could not be obtained".to_owned()));
        };
        if let Some(host) = &self.verified {
            certificate::check_host(server, host).map_err(TlsError::Refused)?;
        }
        if self.direct && session.alpn_protocol().is_none() {
            return Err(TlsError::Refused(
                "direct SSL connection was established without ALPN protocol negotiation extension"
                    .to_owned(),
            ));
        }
        if self.shown.as_ref().is_some_and(|shown| !shown.was_shown()) {
            return Err(TlsError::Refused(
                "sslcertmode value \"require\" needs a server that asks for a certificate, and one to show"
                    .to_owned(),
            ));
        }
        Ok(Protection::Tls { end_point: certificate::end_point(server) })
    }
}

/// Tells the server why the handshake has failed, if it still listens.
fn complain(
    session: &mut UnbufferedClientConnection,
    socket: &mut Socket,
    incoming: &mut [u8],
    deadline: &Deadline,
) {
    // Asked just once: after its alert a session that has failed wants no more input.
    if let Ok(ConnectionState::EncodeTlsData(mut data)) = session.process_tls_records(incoming).state {
        let mut alert = Vec::new();
        append_message(&mut data, &mut alert);
        // What went wrong is known better than whether this does.
        let _ = deadline.write_all(socket, &alert);
    }
}

/// Runs the handshake to its end. The inner error is TLS's, the outer one the connection's.
fn agree(
    session: &mut UnbufferedClientConnection,
    socket: &mut Socket,
    incoming: &mut Vec<u8>,
    deadline: &Deadline,
) -> Result<Result<(), rustls::Error>, TlsError> {
    let mut outgoing = Vec::new();
    loop {
        let UnbufferedStatus { discard, state } = session.process_tls_records(incoming);
        let mut receive = false;
        match state {
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                append_message(&mut data, &mut outgoing);
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                deadline.write_all(socket, &outgoing).map_err(|error| TlsError::from_io(&error))?;
                outgoing.clear();
                data.done();
            }
            Ok(ConnectionState::WriteTraffic(_)) => {
                incoming.drain(..discard);
                return Ok(Ok(()));
            }
            Ok(ConnectionState::BlockedHandshake) => receive = true,
            // No server speaks before it was spoken to, and none says goodbye then.
            Ok(_) => return Err(TlsError::Refused(words::lost(None))),
            Err(error) => return Ok(Err(error)),
        }
        incoming.drain(..discard);
        if receive {
            let mut chunk = [0; CHUNK];
            match deadline.read(socket, &mut chunk) {
                Ok(0) => return Err(TlsError::Refused(words::lost(None))),
                Ok(count) => incoming.extend_from_slice(&chunk[..count]),
                Err(error) => return Err(TlsError::from_io(&error)),
            }
        }
    }
}
