//! The TLS handshake, blocking, and the verification of the server.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::client_certificate::Shown;
use super::{Protection, TlsStream, certificate, words};
use crate::config::{SslNegotiation, TlsOptions, TlsVersion};
use crate::socket::{Deadline, Socket};

/// The settings for encrypting a connection to one host.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    pub(super) config: Arc<ClientConfig>,
    /// Records whether the server has received the client's certificate, if that is required.
    pub(super) shown: Option<Arc<Shown>>,
    pub(super) direct: bool,
    /// The lowest and the highest version offered.
    pub(super) versions: (TlsVersion, TlsVersion),
    /// The name sent to the server.
    pub(super) name: ServerName<'static>,
    /// The name that its certificate must have, if that is verified.
    pub(super) verified: Option<String>,
}

/// The reason why a connection could not be encrypted.
#[derive(Debug)]
pub(crate) enum TlsError {
    /// The deadline has passed.
    Timeout,
    /// The caller ended the wait.
    Interrupted,
    /// An error message, libpq's if it has one.
    Refused(String),
}

impl TlsError {
    fn lost(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Refused(words::lost(Some(error))),
        }
    }
}

impl TlsClient {
    /// Returns whether encryption starts without negotiation.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Returns whether options request encryption without negotiation.
    pub(crate) fn begins_at_once(options: &TlsOptions) -> bool {
        options.negotiation == SslNegotiation::Direct
    }

    /// Encrypts a TCP connection; other connections stay unencrypted.
    ///
    /// # Errors
    /// The server isn't trusted, there is no common version or cipher, or it doesn't answer in
    /// time.
    pub(crate) fn handshake(
        &self,
        mut socket: Socket,
        deadline: &Deadline,
    ) -> Result<(Socket, Protection), TlsError> {
        let Socket::Tcp(_) = socket else {
            return Ok((socket, Protection::None));
        };
        let mut session = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| self.refused(&error))?;
        self.agree(&mut session, &mut Wire { socket: &mut socket, deadline })?;
        let protection = self.check(&session)?;
        Ok(match socket {
            Socket::Tcp(stream) => {
                (Socket::Tls(Box::new(TlsStream::new(stream, session.into()))), protection)
            }
            other => (other, protection),
        })
    }

    /// Runs the handshake to its end.
    fn agree(&self, session: &mut ClientConnection, wire: &mut Wire<'_>) -> Result<(), TlsError> {
        while session.is_handshaking() || session.wants_write() {
            if session.wants_write() {
                session.write_tls(wire).map_err(|error| TlsError::lost(&error))?;
                continue;
            }
            if session.read_tls(wire).map_err(|error| TlsError::lost(&error))? == 0 {
                return Err(TlsError::Refused(words::lost(None)));
            }
            if let Err(error) = session.process_new_packets() {
                // Sends the server the reason, if it still reads.
                let _ = session.write_tls(wire);
                return Err(self.refused(&error));
            }
        }
        Ok(())
    }

    fn refused(&self, error: &rustls::Error) -> TlsError {
        TlsError::Refused(words::handshake_error(error, self.versions))
    }

    /// Performs the checks that rustls leaves to the caller.
    fn check(&self, session: &ClientConnection) -> Result<Protection, TlsError> {
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

/// A socket that rustls reads and writes, waiting until the deadline.
struct Wire<'a> {
    socket: &'a mut Socket,
    deadline: &'a Deadline,
}

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.deadline.read(self.socket, buffer)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.deadline.write_all(self.socket, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
