//! A connected stream socket (TCP, Unix, or TCP with TLS), and waiting for it.

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

/// Calls the same method on the socket, or on the one below the encryption.
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
    /// Makes reads and writes return immediately (`WouldBlock`), or wait.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        either!(self, stream => stream.set_nonblocking(nonblocking))
    }

    /// Ends one or both directions.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        either!(self, stream => stream.shutdown(how))
    }

    /// Limits the wait of a blocking read; `None` for no limit.
    ///
    /// # Errors
    ///
    /// A limit of zero, or the system's error.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        either!(self, stream => stream.set_read_timeout(limit))
    }

    /// Limits the wait of a blocking write; `None` for no limit.
    ///
    /// # Errors
    ///
    /// A limit of zero, or the system's error.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        either!(self, stream => stream.set_write_timeout(limit))
    }

    /// Receives data that has arrived, without waiting, regardless of the socket's mode. 0 means
    /// that the peer has closed the connection.
    ///
    /// If the result is smaller than the buffer, nothing is left.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: nothing has arrived. Anything else: the connection is lost.
    #[inline]
    pub fn receive_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The system call is made without libc, whose `recv` is a cancellation point, which costs
        // as much as the call itself.
        let plain = match self {
            Self::Tcp(stream) => (*stream).as_fd(),
            Self::Unix(stream) => (*stream).as_fd(),
            Self::Tls(stream) => return stream.receive(buffer, RecvFlags::DONTWAIT),
        };
        let (count, _) = net::recv(plain, buffer, RecvFlags::DONTWAIT)?;
        Ok(count)
    }

    /// Sends as many bytes as possible without waiting, regardless of the socket's mode.
    ///
    /// The rest must be passed again when the socket is writable, starting with the same bytes.
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

    /// True if received bytes are buffered here, so that reading may succeed although the system's
    /// socket has no data.
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

/// As with [`Socket::send_now`], the rest must be passed again, starting with the same bytes.
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

/// The duration of a wait before requests to end it are checked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The end of a call, and the requests to end it earlier.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    began: Instant,
    /// The end; `None` for no limit.
    end: Option<Instant>,
    patience: Patience,
    /// The number of requests to hurry at the start of the call.
    requests: u8,
}

impl Deadline {
    /// The deadline of a call that starts now, with this time limit (`None` for no limit of its
    /// own) and those of the patience.
    pub(crate) fn after(limit: Option<Duration>, patience: &Patience) -> Self {
        let began = Instant::now();
        // A limit beyond the range of the clock means no limit.
        let end = limit.and_then(|limit| began.checked_add(limit));
        let end = end.into_iter().chain(patience.end()).min();
        Self { began, end, patience: patience.clone(), requests: patience.requests() }
    }

    /// The time since the start of the call.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The time limit of the call.
    pub(crate) fn limit(&self) -> Duration {
        self.end.map_or(Duration::MAX, |end| end.duration_since(self.began))
    }

    /// The remaining time; `None` for no limit.
    ///
    /// # Errors
    ///
    /// `TimedOut` if there is none, `Interrupted` if the end was requested.
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

    /// Waits until the socket is ready, or the deadline must be checked again.
    ///
    /// # Errors
    ///
    /// As for [`Deadline::left`], or the system's error.
    pub(crate) fn wait(&self, socket: impl AsFd, wanted: PollFlags) -> io::Result<()> {
        let slice = self.left()?.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
        let slice = Timespec { tv_sec: 0, tv_nsec: slice.subsec_nanos().max(1).into() };
        match poll(&mut [PollFd::new(&socket, wanted)], Some(&slice)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads data that has arrived, waiting for the first byte until the deadline. 0 means that the
    /// peer has closed the connection.
    pub(crate) fn read(&self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Checked each time, because a peer may never stop sending.
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

    /// Writes all bytes until the deadline.
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
