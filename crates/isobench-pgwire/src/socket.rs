//! A connected stream socket, TCP or Unix or TCP under TLS, and the waiting that goes with it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

use crate::patience::Patience;
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

    /// Receives what has arrived, without waiting, whatever the socket's mode; 0: the peer has
    /// closed.
    ///
    /// Fewer bytes than the buffer holds mean that nothing is left.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: nothing has arrived. Anything else: the connection is lost.
    #[inline]
    pub fn receive_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The system call is made without libc, whose `recv` is a cancellation point and costs as
        // much again around it.
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

    /// Whether received bytes wait here, so that there may be some to read although the system's
    /// socket has none.
    pub(crate) fn has_buffered(&mut self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => false,
            Self::Tls(stream) => stream.has_buffered(),
        }
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

/// How long a wait lasts before it is looked whether somebody asks for its end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A moment until which a call may take, and whoever may ask for its end before.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    began: Instant,
    /// `None`: as long as it takes.
    end: Option<Instant>,
    patience: Patience,
    /// Requests to hurry when the call began.
    requests: u8,
}

impl Deadline {
    /// The call begins now and may take this long, `None` for no limit of its own, and as the
    /// patience goes.
    pub(crate) fn after(limit: Option<Duration>, patience: &Patience) -> Self {
        let began = Instant::now();
        // A limit so long that the clock can't express it is none.
        let end = limit.and_then(|limit| began.checked_add(limit));
        let end = end.into_iter().chain(patience.end()).min();
        Self { began, end, patience: patience.clone(), requests: patience.requests() }
    }

    /// How long the call has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// How long the call was to take at most.
    pub(crate) fn limit(&self) -> Duration {
        self.end.map_or(Duration::MAX, |end| end.duration_since(self.began))
    }

    /// What is left, `None` for no limit.
    ///
    /// # Errors
    ///
    /// `TimedOut` when nothing is left, `Interrupted` when somebody has asked for the end.
    pub(crate) fn left(&self) -> io::Result<Option<Duration>> {
        let now = Instant::now();
        let left = |end: Option<Instant>, over: io::ErrorKind| match end {
            Some(end) if end <= now => Err(io::Error::from(over)),
            end => Ok(end.map(|end| end - now)),
        };
        let hurried = self.patience.hurried(self.began, self.requests);
        let asked = left(hurried, io::ErrorKind::Interrupted)?;
        let own = left(self.end, io::ErrorKind::TimedOut)?;
        Ok(asked.into_iter().chain(own).min())
    }

    /// Waits until the socket is ready for this, or it is worth looking again.
    ///
    /// # Errors
    ///
    /// As [`Deadline::left`], or what the system says.
    pub(crate) fn wait(&self, socket: impl AsFd, wanted: PollFlags) -> io::Result<()> {
        let slice = self.left()?.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
        let slice = Timespec { tv_sec: 0, tv_nsec: slice.subsec_nanos().max(1).into() };
        match poll(&mut [PollFd::new(&socket, wanted)], Some(&slice)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what has arrived, waiting for the first byte at most until then. 0: the peer has
    /// closed.
    pub(crate) fn read(&self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Looked at each time: a peer that never stops sending is no reason to go on for ever.
            self.left()?;
            match socket.receive_now(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(&*socket, PollFlags::IN)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Writes all bytes, at most until then.
    pub(crate) fn write_all(&self, socket: &mut Socket, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.left()?;
            match socket.send_now(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(&*socket, PollFlags::OUT)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
