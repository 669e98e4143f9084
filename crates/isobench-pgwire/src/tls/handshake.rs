//! Agreeing on keys with a server, blocking, and checking who it is.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::client_certificate::Shown;
use super::{Protection, TlsStream, certificate, words};
use crate::config::{SslNegotiation, TlsOptions, TlsVersion};
use crate::socket::{Deadline, Socket};

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
    fn lost(error: &io::Error) -> Self {
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
            Socket::Tcp(stream) => (Socket::Tls(Box::new(TlsStream::new(stream, session))), protection),
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
                // The server is sent the reason, if it still listens.
                let _ = session.write_tls(wire);
                return Err(self.refused(&error));
            }
        }
        Ok(())
    }

    fn refused(&self, error: &rustls::Error) -> TlsError {
        TlsError::Refused(words::handshake_error(error, self.versions))
    }

    /// Checks what rustls leaves to us.
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

/// A socket as rustls reads and writes it, waiting until the deadline.
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
