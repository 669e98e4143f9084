//! The real transport: sockets behind one epoll instance per worker, edge-triggered.
//!
//! They are read and written through rustix, which makes the system call itself: in a process with threads libc's `send` and
//! `recv` are cancellation points and cost as much again around it.
//!
//! Waits are as fine as the clock (`epoll_pwait2`); where the kernel lacks that, rustix rounds them to milliseconds.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use isobench_pgwire::{CancelToken, Established, Socket};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

use crate::job::Reconnect;
use crate::time::{Clock, Nanos, SystemClock};
use crate::transport::{Received, Transport};

/// The most events taken from the kernel at once.
const EVENTS: usize = 256;

/// Never waits, so that the sockets may be in blocking mode, and a connection that is gone is an error, no signal.
const SEND: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// One worker's sockets.
pub(crate) struct Epoll {
    poller: OwnedFd,
    sockets: Vec<Option<Socket>>,
    cancels: Vec<Option<CancelToken>>,
    canceller: Option<Sender<CancelToken>>,
    clock: SystemClock,
}

impl Epoll {
    /// Sockets for so many connections, none of which is open.
    ///
    /// # Errors
    /// The operating system refuses another epoll instance.
    pub(crate) fn new(connections: usize, clock: SystemClock) -> io::Result<Epoll> {
        let poller = epoll::create(CreateFlags::CLOEXEC)?;
        let sockets = std::iter::repeat_with(|| None).take(connections).collect();
        Ok(Epoll { poller, sockets, cancels: vec![None; connections], canceller: None, clock })
    }

    /// Takes over a connection that has been set up; returns what it has received and not understood.
    ///
    /// # Errors
    /// The operating system refuses to watch the socket.
    pub(crate) fn adopt(&mut self, connection: usize, session: Established) -> io::Result<Vec<u8>> {
        let data = EventData::new_u64(connection as u64);
        epoll::add(&self.poller, &session.socket, data, Self::flags(false))?;
        self.sockets[connection] = Some(session.socket);
        self.cancels[connection] = Some(session.cancel);
        Ok(session.pending)
    }

    fn flags(writable: bool) -> EventFlags {
        let readable = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        if writable { readable | EventFlags::OUT } else { readable }
    }

    fn socket(&mut self, connection: usize) -> io::Result<&mut Socket> {
        self.sockets[connection].as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Transport for Epoll {
    fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize> {
        let socket = self.socket(connection)?;
        loop {
            match net::send(&*socket, bytes, SEND) {
                Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(&mut self, connection: usize, buffer: &mut [u8]) -> io::Result<Received> {
        let socket = self.socket(connection)?;
        loop {
            match net::recv(&*socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Ok(Received::Closed),
                Ok((count, _)) => return Ok(Received::Bytes(count)),
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn watch_writable(&mut self, connection: usize, on: bool) -> io::Result<()> {
        if let Some(socket) = &self.sockets[connection] {
            let data = EventData::new_u64(connection as u64);
            epoll::modify(&self.poller, socket, data, Self::flags(on))?;
        }
        Ok(())
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<usize>) -> io::Result<()> {
        let left = until.duration_since(self.clock.now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        let (events, _) = match epoll::wait(&self.poller, &mut events, Some(&timeout)) {
            Ok(events) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events.iter() {
            let (flags, data) = (event.flags, event.data);
            let Ok(connection) = usize::try_from(data.u64()) else { continue };
            ready.push(connection);
            // What arrived together with the end of the stream is one event, and the end needs a receive of its own.
            if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
                ready.push(connection);
            }
        }
        Ok(())
    }

    fn cancel(&mut self, connection: usize) {
        // Cancelling opens a connection, which may block; so a thread of its own does it, one after the other.
        let canceller = self.canceller.get_or_insert_with(|| {
            let (sender, tokens) = channel::<CancelToken>();
            thread::spawn(move || {
                for token in tokens {
                    // Best effort: if the server can't be reached, the connection is closed soon.
                    let _ = token.cancel();
                }
            });
            sender
        });
        if let Some(token) = &self.cancels[connection] {
            let _ = canceller.send(token.clone());
        }
    }

    fn close(&mut self, connection: usize) {
        self.sockets[connection] = None;
    }

    fn open(&mut self, connection: usize, connect: &Reconnect) -> Result<Vec<u8>, String> {
        let session = connect()?.into_established();
        self.adopt(connection, session).map_err(|error| error.to_string())
    }
}
