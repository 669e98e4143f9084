//! The real transport: the sockets of one worker. During a run, `poller.rs` or a ring waits for them.
//!
//! With a poller they are read and written without blocking by `Socket`, which handles encryption. A
//! ring receives and sends by itself; it can't handle encryption. Between two runs they are plain
//! sockets.

use std::io;
use std::mem;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use isobench_pgwire::{CancelToken, ConnectOptions, Established, Socket, frontend};
use isobench_ring::{Arrival, Ring};

use crate::event_loop::EventLoop;
use crate::poller::Poller;
use crate::time::Nanos;
use crate::transport::{Connect, Received, Transport};

/// Size of the receive buffer, bytes.
const BUFFER: usize = 64 * 1024;

/// One worker's sockets.
pub(crate) struct Sockets {
    event_loop: EventLoop,
    /// Present during a run.
    waiter: Option<Waiter>,
    open: Vec<Option<OpenSocket>>,
    /// Connections that are ready, the next one last; not those of which the ring knows.
    ready: Vec<usize>,
    /// The connection that `next` has returned last.
    current: usize,
    /// Connections that weren't empty after their turn. The poller doesn't report them again.
    again: Vec<usize>,
    buffer: Vec<u8>,
    /// Bytes left over from the run before, while they are read.
    left: Vec<u8>,
    cancels: Vec<Option<CancelToken>>,
    canceller: Option<Sender<CancelToken>>,
}

/// What waits for the sockets.
enum Waiter {
    Poller(Poller),
    /// Belongs to the thread of the run.
    Ring(Box<Ring>),
}

/// An open connection.
struct OpenSocket {
    socket: Socket,
    /// Bytes that the ring received in the run before, and that nobody has read.
    left: Vec<u8>,
}

impl Waiter {
    fn add(&mut self, connection: usize, open: &OpenSocket) -> io::Result<()> {
        match self {
            Waiter::Poller(poller) => poller.add(connection, &open.socket),
            Waiter::Ring(_) if matches!(open.socket, Socket::Tls(_)) => {
                Err(io::Error::other("io_uring can't carry an encrypted connection"))
            }
            Waiter::Ring(ring) => ring.add(connection, &open.socket),
        }
    }
}

impl Sockets {
    /// Sockets for this many connections, none of them open.
    pub(crate) fn new(connections: usize) -> Sockets {
        Sockets {
            event_loop: EventLoop::Epoll,
            waiter: None,
            open: std::iter::repeat_with(|| None).take(connections).collect(),
            ready: Vec::new(),
            current: 0,
            again: Vec::new(),
            buffer: Vec::new(),
            left: Vec::new(),
            cancels: vec![None; connections],
            canceller: None,
        }
    }

    /// Runs with this event loop from now on.
    pub(crate) fn set_event_loop(&mut self, event_loop: EventLoop) {
        self.event_loop = event_loop;
    }

    /// True if a connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.open.iter().flatten().any(|open| matches!(open.socket, Socket::Tls(_)))
    }

    /// Takes over a connection that has been set up. Returns the bytes received but not parsed.
    ///
    /// # Errors
    /// The operating system refuses to watch the socket.
    pub(crate) fn adopt(&mut self, connection: usize, session: Established) -> io::Result<Vec<u8>> {
        let open = OpenSocket { socket: session.socket, left: Vec::new() };
        if let Some(waiter) = &mut self.waiter {
            waiter.add(connection, &open)?;
        }
        self.open[connection] = Some(open);
        self.cancels[connection] = Some(session.cancel);
        Ok(session.pending)
    }

    /// Gives a connection back as a session of these options; `received` are the bytes received but
    /// not parsed.
    pub(crate) fn release(
        &mut self,
        connection: usize,
        received: &[u8],
        options: &ConnectOptions,
    ) -> Option<Established> {
        let host = options.hosts.first()?.clone();
        let open = self.open.get_mut(connection)?.take()?;
        let cancel = self.cancels.get_mut(connection)?.take()?;
        Some(Established {
            socket: open.socket,
            parameters: Vec::new(),
            cancel,
            notices: Vec::new(),
            pending: [received, &open.left].concat(),
            patience: options.patience.clone(),
            host,
        })
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.open.iter_mut().flatten().for_each(|open| take_leave(&mut open.socket));
    }
}

/// Sends Terminate, as far as the connection accepts it.
fn take_leave(socket: &mut Socket) {
    let mut message = Vec::new();
    frontend::terminate(&mut message);
    // If the connection is lost, the server already knows.
    let _ = socket.send_now(&message);
}

/// Sends what a socket accepts without waiting.
fn send_now(socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match socket.send_now(bytes) {
            Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Transport for Sockets {
    fn begin(&mut self) -> io::Result<()> {
        let mut waiter = match self.event_loop {
            EventLoop::Epoll => Waiter::Poller(Poller::new()?),
            EventLoop::IoUring => Waiter::Ring(Box::new(Ring::new(self.open.len())?)),
        };
        for (connection, open) in self.open.iter().enumerate() {
            let Some(open) = open else { continue };
            waiter.add(connection, open)?;
            if !open.left.is_empty() {
                self.again.push(connection);
            }
        }
        self.waiter = Some(waiter);
        self.buffer = vec![0; BUFFER];
        Ok(())
    }

    fn end(&mut self) {
        self.buffer = Vec::new();
        self.ready.clear();
        self.again.clear();
        let Some(Waiter::Ring(mut ring)) = self.waiter.take() else { return };
        for (connection, place) in self.open.iter_mut().enumerate() {
            let Some(open) = place else { continue };
            match ring.remove(connection) {
                Ok(removed) if !removed.unsent => open.left.extend(removed.received),
                // A part of a message has been sent: nothing can follow it.
                Ok(_) | Err(_) => *place = None,
            }
        }
    }

    fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize> {
        let open = self.open[connection].as_mut().ok_or(io::ErrorKind::NotConnected)?;
        match &mut self.waiter {
            Some(Waiter::Ring(ring)) => ring.send(connection, bytes).map(|()| bytes.len()),
            _ => send_now(&mut open.socket, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.waiter {
            Some(Waiter::Ring(ring)) => ring.flush(),
            _ => Ok(()),
        }
    }

    fn wait(&mut self, now: Nanos, until: Nanos) -> io::Result<()> {
        self.ready.append(&mut self.again);
        let left = if self.ready.is_empty() { until.duration_since(now) } else { Duration::ZERO };
        match &mut self.waiter {
            Some(Waiter::Ring(ring)) => ring.wait(Some(left))?,
            Some(Waiter::Poller(poller)) => poller.wait(left, &mut self.ready)?,
            None => return Err(io::ErrorKind::NotConnected.into()),
        }
        self.ready.reverse();
        Ok(())
    }

    fn next(&mut self) -> Option<usize> {
        self.current = match (self.ready.pop(), &mut self.waiter) {
            (Some(connection), _) => connection,
            (None, Some(Waiter::Ring(ring))) => ring.next()?,
            (None, _) => return None,
        };
        Some(self.current)
    }

    fn receive(&mut self) -> io::Result<Received<'_>> {
        let open = self.open[self.current].as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if !open.left.is_empty() {
            self.left = mem::take(&mut open.left);
            return Ok(Received::Bytes(&self.left));
        }
        if let Some(Waiter::Ring(ring)) = &self.waiter {
            return Ok(match ring.arrival() {
                Some(Arrival::Bytes(bytes)) => Received::Bytes(bytes),
                Some(Arrival::End) => Received::Closed,
                Some(Arrival::Failed(error)) => return Err(error),
                None => Received::Nothing,
            });
        }
        loop {
            match open.socket.receive_now(&mut self.buffer) {
                Ok(0) => return Ok(Received::Closed),
                Ok(count) => {
                    // A short read means that the connection is empty. Another receive would cost a
                    // system call for every reply.
                    if count == self.buffer.len() {
                        self.again.push(self.current);
                    }
                    return Ok(Received::Bytes(&self.buffer[..count]));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn has_news(&mut self) -> bool {
        if let Some(Waiter::Ring(ring)) = &mut self.waiter { ring.has_news() } else { false }
    }

    fn watch_writable(&mut self, connection: usize, on: bool) -> io::Result<()> {
        match (&self.waiter, &self.open[connection]) {
            (Some(Waiter::Poller(poller)), Some(open)) => poller.watch_writable(connection, &open.socket, on),
            _ => Ok(()),
        }
    }

    fn cancel(&mut self, connection: usize) {
        // Cancelling opens a connection, which may block, so it happens in a separate thread, one
        // after the other.
        let canceller = self.canceller.get_or_insert_with(|| {
            let (sender, tokens) = channel::<CancelToken>();
            // Best effort: if there is no thread, or the server can't be reached, the connection is
            // closed soon afterwards.
            let _ = thread::Builder::new().spawn(move || {
                for token in tokens {
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
        if let Some(mut open) = self.open[connection].take() {
            if let Some(Waiter::Ring(ring)) = &mut self.waiter {
                // Best effort: the ring lets go of the socket when it is dropped at the latest.
                let _ = ring.remove(connection);
            }
            self.ready.retain(|&ready| ready != connection);
            self.again.retain(|&again| again != connection);
            take_leave(&mut open.socket);
        }
    }

    fn open(
        &mut self,
        connection: usize,
        connect: &Connect<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<u8>, String> {
        let session = connect(limit)?.into_established();
        self.adopt(connection, session).map_err(|error| error.to_string())
    }
}
