//! An encrypted stream over a TCP socket, which reads and writes like the socket itself.
//!
//! Not here: how the session came about (`handshake.rs`).

use std::io::{self, Read, Write};
use std::net::TcpStream;

use rustix::net::{self, RecvFlags, SendFlags};
use rustls::{ClientConnection, IoState};

use super::words;

/// An encrypted stream over TCP.
///
/// Reading without waiting takes all there is: fewer bytes than the buffer holds mean that nothing
/// is left, neither in the socket nor here. So an edge-triggered loop can treat it like a socket.
///
/// What is encrypted can't be taken back: if not all bytes were written, the rest must be offered
/// again, the same bytes first (as with OpenSSL's `SSL_write`).
#[derive(Debug)]
pub struct TlsStream {
    socket: TcpStream,
    session: ClientConnection,
    /// Number of bytes that are encrypted and not yet reported to the writer as written.
    held: usize,
}

impl TlsStream {
    /// Makes a stream of a session whose handshake is complete.
    pub(super) fn new(socket: TcpStream, session: ClientConnection) -> Self {
        Self { socket, session, held: 0 }
    }

    /// Returns the socket under the stream.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Returns whether decrypted bytes wait here, so that the stream has something to read although
    /// the socket may have nothing.
    pub(crate) fn has_buffered(&mut self) -> bool {
        decrypt(&mut self.session).is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// Reads; `flags` are those of the first receive, the further ones never wait.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        let mut wire = Incoming { socket: &self.socket, flags, drained: false };
        let mut count = 0;
        loop {
            let outcome = decrypt(&mut self.session);
            match self.session.reader().read(&mut buffer[count..]) {
                // The buffer is full, or the server has said goodbye.
                Ok(0) => return Ok(count),
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without a goodbye is an end as well.
                Err(_) => return Ok(count),
            }
            if count > 0 && (count == buffer.len() || wire.drained || outcome.is_err()) {
                return Ok(count);
            }
            outcome?;
            if count > 0 {
                wire.flags |= RecvFlags::DONTWAIT;
            }
            // With nothing decrypted only another receive can say whether to wait.
            match self.session.read_tls(&mut wire) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It comes again, if it matters.
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
                // It comes again, if it matters.
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

    /// Sends what is encrypted already.
    fn send_encrypted(&mut self, flags: SendFlags) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut Outgoing { socket: &self.socket, flags })? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// Decrypts what has been received. A session that has failed once fails for ever.
fn decrypt(session: &mut ClientConnection) -> io::Result<IoState> {
    let failed = |error| io::Error::new(io::ErrorKind::InvalidData, words::error(&error));
    session.process_new_packets().map_err(failed)
}

/// The socket as rustls reads it.
struct Incoming<'a> {
    socket: &'a TcpStream,
    flags: RecvFlags,
    /// Whether the last receive took all there was.
    drained: bool,
}

impl Read for Incoming<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (count, _) = net::recv(self.socket, &mut *buffer, self.flags)?;
        self.drained = count < buffer.len();
        Ok(count)
    }
}

/// The socket as rustls writes it.
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

/// Says goodbye, as far as that goes without waiting.
impl Drop for TlsStream {
    fn drop(&mut self) {
        self.session.send_close_notify();
        // A server that doesn't get it sees the socket closed.
        let _ = self.send_encrypted(SendFlags::DONTWAIT);
    }
}
