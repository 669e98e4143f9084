//! A connection to another machine, which remembers how it was lost.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt;
use timely::communication::allocator::zero_copy::stream::Stream;

/// Time within which the kernel notices that nothing arrives any more: a second without traffic, and four
/// probes without an answer, a second each.
pub const NOTICED: Duration = Duration::from_secs(5);

/// The connections that were lost, in that order: the rank, and how that was noticed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost {
    lost: Arc<Mutex<Vec<(usize, String)>>>,
    /// All are leaving, so that the end of a connection is no loss.
    leaving: Arc<AtomicBool>,
}

impl Lost {
    /// The first one, if any was.
    pub(crate) fn first(&self) -> Option<(usize, String)> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }

    /// From now on connections end because all leave.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// True if one was, and not because all leave.
    fn is_any(&self) -> bool {
        !self.leaving.load(Ordering::Acquire) && self.first().is_some()
    }

    /// True if that of a rank was.
    pub(crate) fn has(&self, rank: usize) -> bool {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|(lost, _)| *lost == rank)
    }

    pub(crate) fn note(&self, rank: usize, why: String) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.iter().all(|(known, _)| *known != rank) {
            lost.push((rank, why));
        }
    }
}

/// The connection to a rank.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    rank: usize,
    lost: Lost,
}

impl Link {
    /// Takes over a connection, and lets the kernel watch it.
    ///
    /// # Errors
    /// The system refuses an option.
    pub(crate) fn new(stream: TcpStream, rank: usize, lost: &Lost) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        let second = Duration::from_secs(1);
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, second)?;
        sockopt::set_tcp_keepintvl(&stream, second)?;
        sockopt::set_tcp_keepcnt(&stream, 4)?;
        let patience = u32::try_from(NOTICED.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(&stream, patience)?;
        Ok(Link { stream, rank, lost: lost.clone() })
    }

    /// What keeps the connection open after the engine has ended.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn hold(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    fn noted<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.lost.note(self.rank, error.to_string());
            }
        })
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let outcome = self.stream.read(buffer);
        let read = self.noted(outcome)?;
        if read == 0 {
            // An orderly end is a message of its own, after which nobody waits for anything.
            self.lost.note(self.rank, "it has closed the connection".to_owned());
        }
        Ok(read)
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.stream.write(bytes);
        self.noted(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.stream.flush();
        self.noted(outcome)
    }
}

impl Stream for Link {
    fn try_clone(&self) -> io::Result<Link> {
        Ok(Link { stream: self.stream.try_clone()?, rank: self.rank, lost: self.lost.clone() })
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        // If the engine ends because a machine was lost, the others are to notice that one's loss
        // first.
        if self.lost.is_any() { Ok(()) } else { self.stream.shutdown(how) }
    }
}
