//! A connected stream socket, TCP or Unix or TCP under TLS, and the waiting that goes with it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{self, RecvFlags, SendFlags};

use crate::tls::TlsStream;

/// A connected stream socket.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix-domain socket.
    Unix(UnixStream),
    /// Over TCP, encrypted.
    Tls(Box<TlsStream>),
}

/// Calls the same method of whichever socket it is, or lies under the encryption.
macro_rules! either {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($stream) => $call,
            Socket::Unix($stream) => $call,
            Socket::Tls(encrypted) => {
                let $stream = encrypted.socket();
                $call
            }
        }
    };
}

impl Socket {
    /// Makes reads and writes return at once (`WouldBlock`), or wait.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        either!(self, stream => stream.set_nonblocking(nonblocking))
    }

    /// Ends one or both directions.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        either!(self, stream => stream.shutdown(how))
    }

    /// Bounds how long a blocking read waits; `None`: no limit.
    ///
    /// # Errors
    ///
    /// A limit of zero, or what the system says.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        either!(self, stream => stream.set_read_timeout(limit))
    }

    /// Bounds how long a blocking write waits; `None`: no limit.
    ///
    /// # Errors
    ///
    /// A limit of zero, or what the system says.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        either!(self, stream => stream.set_write_timeout(limit))
    }

    /// Receives what has arrived, without waiting, whatever the socket's mode; 0: the peer has closed.
    ///
    /// Fewer bytes than the buffer holds mean that nothing is left.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: nothing has arrived. Anything else: the connection is lost.
    #[inline]
    pub fn receive_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The system call is made without libc, whose `recv` is a cancellation point and costs as much again around it.
        let plain = match self {
            Self::Tcp(stream) => (*stream).as_fd(),
            Self::Unix(stream) => (*stream).as_fd(),
            Self::Tls(stream) => return stream.receive(buffer, RecvFlags::DONTWAIT),
        };
        let (count, _) = net::recv(plain, buffer, RecvFlags::DONTWAIT)?;
        Ok(count)
    }

    /// Sends as many bytes as go without waiting, whatever the socket's mode.
    ///
    /// The rest must be offered again when the socket is writable, the same bytes first.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: no byte was taken. Anything else: the connection is lost.
    #[inline]
    pub fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plain = match self {
            Self::Tcp(stream) => (*stream).as_fd(),
            Self::Unix(stream) => (*stream).as_fd(),
            Self::Tls(stream) => return stream.send(bytes, SendFlags::DONTWAIT),
        };
        Ok(net::send(plain, bytes, SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT))?)
    }

    /// Whether received bytes wait here, so that there may be some to read although the system's socket has none.
    pub(crate) fn has_buffered(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.has_buffered())
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

/// As with [`Socket::send_now`], what was not taken must be offered again, the same bytes first.
impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(self, stream => stream.as_fd())
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        either!(self, stream => stream.as_raw_fd())
    }
}

/// A moment until which something may take; `None`: for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// The moment `limit` from now.
    pub(crate) fn after(limit: Option<Duration>) -> Self {
        // A limit so long that the clock can't express it is none.
        Self(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    /// What is left, `None` for no limit.
    ///
    /// # Errors
    ///
    /// `TimedOut` when nothing is left.
    pub(crate) fn left(self) -> io::Result<Option<Duration>> {
        match self.0 {
            None => Ok(None),
            Some(end) => match end.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => Ok(Some(left)),
                _ => Err(io::ErrorKind::TimedOut.into()),
            },
        }
    }

    /// Reads what has arrived, waiting for the first byte at most until then. 0: the peer has closed.
    pub(crate) fn read(self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(left) = self.left()? {
                socket.set_read_timeout(Some(left))?;
            }
            match socket.read(buffer) {
                Err(error) if is_retried(&error) => {}
                result => return result,
            }
        }
    }

    /// Writes all bytes, at most until then.
    pub(crate) fn write_all(self, socket: &mut Socket, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if let Some(left) = self.left()? {
                socket.set_write_timeout(Some(left))?;
            }
            match socket.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_retried(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A signal came, or the socket's own time limit is over, about which the deadline decides.
fn is_retried(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
