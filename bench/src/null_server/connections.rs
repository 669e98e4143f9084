//! The null server's event loop: accepts, reads, passes bytes to the sessions, writes, closes.
//!
//! It makes one read and one write per wake-up. A connection whose replies don't fit in the socket
//! isn't read until they have been sent.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::session::{Next, NullSession};

/// The size of the read buffer, in bytes, shared by all connections.
const READ_BUFFER: usize = 64 * 1024;
/// The maximum number of connections waiting to be accepted; the default of 128 is too low for a
/// client with thousands.
const BACKLOG: i32 = 4096;

/// The event data of the two listeners and the stop signal. Connections have the slot in the low
/// half and the slot's generation in the high half, so that an event for a closed connection can't
/// reach its successor.
const TCP: u64 = u64::MAX;
const UNIX: u64 = u64::MAX - 1;
const STOP: u64 = u64::MAX - 2;

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    session: NullSession,
    /// Replies that the socket hasn't accepted yet.
    pending: Vec<u8>,
    closing: bool,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Connection>,
}

/// The state of the server's thread.
#[derive(Debug)]
pub struct EventLoop {
    epoll: OwnedFd,
    unix: UnixListener,
    tcp: TcpListener,
    stop: Arc<OwnedFd>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    accepted: u32,
    /// False without file descriptors: the listeners aren't watched until a connection closes.
    accepting: bool,
}

impl EventLoop {
    /// Takes over two listening sockets; a write to the event descriptor `stop` ends the loop.
    ///
    /// # Errors
    /// If the system has no more descriptors or memory.
    pub fn new(unix: UnixListener, tcp: TcpListener, stop: Arc<OwnedFd>) -> io::Result<EventLoop> {
        rustix::net::listen(&unix, BACKLOG)?;
        rustix::net::listen(&tcp, BACKLOG)?;
        unix.set_nonblocking(true)?;
        tcp.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let mut events = EventLoop {
            epoll,
            unix,
            tcp,
            stop,
            slots: Vec::new(),
            free: Vec::new(),
            accepted: 0,
            accepting: false,
        };
        events.watch_listeners()?;
        Ok(events)
    }

    /// Serves until stopped.
    ///
    /// # Errors
    /// If waiting for events fails; errors of a connection only close that connection.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(1024);
        let mut input = vec![0; READ_BUFFER];
        let mut output = Vec::with_capacity(READ_BUFFER);
        loop {
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    STOP => {
                        let _ = rustix::io::read(&self.stop, &mut [0; 8]);
                        return Ok(());
                    }
                    TCP => self.accept(true)?,
                    UNIX => self.accept(false)?,
                    data => self.serve(data, &mut input, &mut output)?,
                }
            }
        }
    }

    fn watch_listeners(&mut self) -> io::Result<()> {
        if !self.accepting {
            epoll::add(&self.epoll, &self.tcp, EventData::new_u64(TCP), EventFlags::IN)?;
            epoll::add(&self.epoll, &self.unix, EventData::new_u64(UNIX), EventFlags::IN)?;
            self.accepting = true;
        }
        Ok(())
    }

    fn accept(&mut self, tcp: bool) -> io::Result<()> {
        loop {
            let listener = if tcp { self.tcp.as_fd() } else { self.unix.as_fd() };
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    if tcp {
                        // Replies are sent as a whole anyway, so a failure only costs time.
                        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
                    }
                    self.insert(socket)?;
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    // A listener that stays readable would cause a busy loop; waits until a
                    // connection returns a descriptor.
                    if self.accepting {
                        epoll::delete(&self.epoll, &self.tcp)?;
                        epoll::delete(&self.epoll, &self.unix)?;
                        self.accepting = false;
                    }
                    return Ok(());
                }
                // Errors of the connection that was being accepted.
                Err(_) => {}
            }
        }
    }

    fn insert(&mut self, socket: OwnedFd) -> io::Result<()> {
        let Ok(next) = u32::try_from(self.slots.len()) else { return Ok(()) };
        let number = self.free.pop().unwrap_or(next);
        let index = number as usize;
        if number == next {
            self.slots.push(Slot::default());
        }
        self.accepted = self.accepted.wrapping_add(1);
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1) & (u32::MAX >> 1);
        let data = EventData::new_u64(u64::from(slot.generation) << 32 | u64::from(number));
        epoll::add(&self.epoll, &socket, data, EventFlags::IN)?;
        let session = NullSession::new(self.accepted);
        slot.connection = Some(Connection { socket, session, pending: Vec::new(), closing: false });
        Ok(())
    }

    fn serve(&mut self, data: u64, input: &mut [u8], output: &mut Vec<u8>) -> io::Result<()> {
        let number = u32::try_from(data & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let Some(slot) = self.slots.get_mut(number as usize) else { return Ok(()) };
        if u64::from(slot.generation) != data >> 32 {
            return Ok(());
        }
        let Some(connection) = &mut slot.connection else { return Ok(()) };
        if connection.step(&self.epoll, data, input, output).is_ok() {
            return Ok(());
        }
        slot.connection = None;
        self.free.push(number);
        self.watch_listeners()
    }
}

/// The connection has ended, on either side.
struct ConnectionClosed;

impl From<Errno> for ConnectionClosed {
    fn from(_: Errno) -> ConnectionClosed {
        ConnectionClosed
    }
}

impl Connection {
    fn step(
        &mut self,
        epoll: &OwnedFd,
        data: u64,
        input: &mut [u8],
        output: &mut Vec<u8>,
    ) -> Result<(), ConnectionClosed> {
        if self.pending.is_empty() {
            let count = match rustix::io::read(&self.socket, &mut *input) {
                Ok(0) => return Err(ConnectionClosed),
                Ok(count) => count,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            output.clear();
            self.closing = self.session.on_bytes(&input[..count], output) == Next::Close;
            let sent = send(&self.socket, output)?;
            if sent < output.len() {
                self.pending.extend_from_slice(&output[sent..]);
                epoll::modify(epoll, &self.socket, EventData::new_u64(data), EventFlags::OUT)?;
                return Ok(());
            }
        } else {
            let sent = send(&self.socket, &self.pending)?;
            self.pending.drain(..sent);
            if !self.pending.is_empty() {
                return Ok(());
            }
            self.pending = Vec::new();
            epoll::modify(epoll, &self.socket, EventData::new_u64(data), EventFlags::IN)?;
        }
        if self.closing { Err(ConnectionClosed) } else { Ok(()) }
    }
}

/// Sends as much as the socket accepts; returns the number of bytes.
fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, ConnectionClosed> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match rustix::net::send(socket, bytes, rustix::net::SendFlags::NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
