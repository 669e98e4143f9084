//! An encrypted stream over a TCP socket, which reads and writes like the socket itself.
//!
//! Not here: the handshake (`handshake.rs`, `accepted.rs`).

use std::io::{self, Read, Write};
use std::net::TcpStream;

use rustix::net::{self, RecvFlags, SendFlags};
use rustls::{Connection, IoState};

use super::words;

/// An encrypted stream over TCP.
///
/// A read without waiting takes all available bytes: fewer bytes than the buffer holds mean that
/// nothing is left, neither in the socket nor here. An edge-triggered loop can therefore treat it
/// like a socket.
///
/// Encrypted bytes can't be withdrawn: after a partial write, the rest must be offered again,
/// starting with the same bytes (as with OpenSSL's `SSL_write`).
#[derive(Debug)]
pub struct TlsStream {
    socket: TcpStream,
    session: Connection,
    /// Number of bytes that are encrypted and not yet reported to the caller as written.
    held: usize,
}

impl TlsStream {
    /// Creates a stream from a session whose handshake is complete.
    pub(super) fn new(socket: TcpStream, session: Connection) -> Self {
        Self { socket, session, held: 0 }
    }

    /// Returns the socket under the stream.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Returns whether decrypted bytes are buffered, so that the stream is readable even if the
    /// socket isn't.
    pub(crate) fn has_buffered(&mut self) -> bool {
        decrypt(&mut self.session).is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// Reads; `flags` apply to the first receive, further ones never wait.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        let mut wire = Incoming { socket: &self.socket, flags, drained: false };
        let mut count = 0;
        loop {
            let outcome = decrypt(&mut self.session);
            match self.session.reader().read(&mut buffer[count..]) {
                // The buffer is full, or the server has closed the session.
                Ok(0) => return Ok(count),
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without `close_notify` is an end as well.
                Err(_) => return Ok(count),
            }
            if count > 0 && (count == buffer.len() || wire.drained || outcome.is_err()) {
                return Ok(count);
            }
            outcome?;
            if count > 0 {
                wire.flags |= RecvFlags::DONTWAIT;
            }
            // Without decrypted bytes, only another receive can decide whether to wait.
            match self.session.read_tls(&mut wire) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A persistent error occurs again.
                Err(_) if count > 0 => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as much as `flags` allow and returns how many of the bytes were written.
    pub(crate) fn send(&mut self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        let mut count = 0;
        loop {
            match self.send_encrypted(flags) {
                Ok(()) => {}
                // A persistent error occurs again.
                Err(_) if count > 0 => return Ok(count),
                Err(error) => return Err(error),
            }
            let taken = self.held.min(bytes.len() - count);
            self.held -= taken;
            count += taken;
            if count == bytes.len() {
                return Ok(count);
            }
            decrypt(&mut self.session)?;
            self.held = self.session.writer().write(&bytes[count..])?;
            if self.held == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
    }

    /// Sends the bytes that are already encrypted.
    fn send_encrypted(&mut self, flags: SendFlags) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut Outgoing { socket: &self.socket, flags })? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// Decrypts the received bytes. A session that has failed once fails from then on.
fn decrypt(session: &mut Connection) -> io::Result<IoState> {
    let failed = |error| io::Error::new(io::ErrorKind::InvalidData, words::error(&error));
    session.process_new_packets().map_err(failed)
}

/// The socket from which rustls reads.
struct Incoming<'a> {
    socket: &'a TcpStream,
    flags: RecvFlags,
    /// The last receive took all available bytes.
    drained: bool,
}

impl Read for Incoming<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (count, _) = net::recv(self.socket, &mut *buffer, self.flags)?;
        self.drained = count < buffer.len();
        Ok(count)
    }
}

/// The socket to which rustls writes.
struct Outgoing<'a> {
    socket: &'a TcpStream,
    flags: SendFlags,
}

impl Write for Outgoing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(self.socket, bytes, self.flags | SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, RecvFlags::empty())
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes, SendFlags::empty())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_encrypted(SendFlags::empty())
    }
}

/// Sends `close_notify`, if that is possible without waiting.
impl Drop for TlsStream {
    fn drop(&mut self) {
        self.session.send_close_notify();
        // Without it, the server sees that the socket is closed.
        let _ = self.send_encrypted(SendFlags::DONTWAIT);
    }
}
