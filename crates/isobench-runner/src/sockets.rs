//! The real transport: the sockets of one worker. `poller.rs` waits for them.
//!
//! They are read and written without blocking by `Socket`, which handles encryption.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use isobench_pgwire::{CancelToken, ConnectOptions, Established, Socket, frontend};
use rustix::event::Timespec;

use crate::job::Reconnect;
use crate::poller::{PolledSocket, Poller};
use crate::time::Nanos;
use crate::transport::{Received, Transport};

/// One worker's sockets.
pub(crate) struct Sockets {
    poller: Poller,
    open: Vec<Option<PolledSocket>>,
    cancels: Vec<Option<CancelToken>>,
    canceller: Option<Sender<CancelToken>>,
}

impl Sockets {
    /// Sockets for this many connections, none of them open.
    pub(crate) fn new(connections: usize) -> Sockets {
        let open = std::iter::repeat_with(|| None).take(connections).collect();
        let cancels = vec![None; connections];
        Sockets { poller: Poller::new(), open, cancels, canceller: None }
    }

    /// Takes over a connection that has been set up. Returns the bytes received but not parsed.
    ///
    /// # Errors
    /// The operating system refuses to watch the socket.
    pub(crate) fn adopt(&mut self, connection: usize, session: Established) -> io::Result<Vec<u8>> {
        let watched = PolledSocket { socket: session.socket, writable: false, ended: false };
        self.poller.add(connection, &watched)?;
        self.open[connection] = Some(watched);
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
        let watched = self.open.get_mut(connection)?.take()?;
        let cancel = self.cancels.get_mut(connection)?.take()?;
        let pending = received.to_vec();
        Some(Established {
            socket: watched.socket,
            parameters: Vec::new(),
            cancel,
            notices: Vec::new(),
            pending,
            patience: options.patience.clone(),
            host,
        })
    }

    fn socket(&mut self, connection: usize) -> io::Result<&mut Socket> {
        let open = self.open[connection].as_mut().map(|watched| &mut watched.socket);
        open.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.open.iter_mut().flatten().for_each(take_leave);
    }
}

/// Sends Terminate, as far as the connection accepts it.
fn take_leave(watched: &mut PolledSocket) {
    let mut message = Vec::new();
    frontend::terminate(&mut message);
    // If the connection is lost, the server already knows.
    let _ = watched.socket.send_now(&message);
}

impl Transport for Sockets {
    fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize> {
        let socket = self.socket(connection)?;
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

    fn receive(&mut self, connection: usize, buffer: &mut [u8]) -> io::Result<Received> {
        let watched = self.open[connection].as_mut().ok_or(io::ErrorKind::NotConnected)?;
        loop {
            match watched.socket.receive_now(buffer) {
                Ok(0) => {
                    watched.ended = true;
                    return Ok(Received::Closed);
                }
                Ok(count) => return Ok(Received::Bytes(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    watched.ended = true;
                    return Err(error);
                }
            }
        }
    }

    fn watch_writable(&mut self, connection: usize, on: bool) -> io::Result<()> {
        let Some(watched) = &mut self.open[connection] else { return Ok(()) };
        watched.writable = on;
        self.poller.change(connection, watched)
    }

    fn wait(&mut self, now: Nanos, until: Nanos, ready: &mut Vec<usize>) -> io::Result<()> {
        let left = until.duration_since(now);
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        self.poller.wait(&self.open, &timeout, ready)
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
        if let Some(mut watched) = self.open[connection].take() {
            take_leave(&mut watched);
        }
    }

    fn open(
        &mut self,
        connection: usize,
        connect: &Reconnect,
        limit: Option<Duration>,
    ) -> Result<Vec<u8>, String> {
        let session = connect(limit)?.into_established();
        self.adopt(connection, session).map_err(|error| error.to_string())
    }
}
