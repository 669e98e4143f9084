//! The physical limit: the bytes of a benchmark are sent and received, and nothing else.
//!
//! It has one thread with one epoll loop, and makes one write per request and one read per reply; or
//! one `io_uring` ([`ring`]).
//! Replies are parsed only for `ReadyForQuery` (and for an error, which ends the run). It has no
//! latencies, statistics or variables; numbers are random digits that overwrite the previous ones.
//! Costs of a client above this are its own; the costs of this are the kernel's. The requests are
//! in [`requests`].

pub mod requests;
mod ring;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use requests::{Digits, Mode, Request, Workload};

/// The parameters of a run, with the meaning of the pgbench options.
#[derive(Clone, Debug)]
pub struct RawPlan {
    /// `-h`: a folder if it starts with a slash, otherwise a host name.
    pub host: String,
    /// `-p`.
    pub port: u16,
    /// `-U`.
    pub user: String,
    /// `-d`.
    pub database: String,
    /// `-c`, at least 1.
    pub clients: usize,
    /// `-T`, without the connection time.
    pub time: Duration,
    /// `-s`, at least 1.
    pub scale: u32,
    /// `-M`.
    pub mode: Mode,
    /// `-S` or the TPC-B-like script.
    pub workload: Workload,
    /// On `io_uring` instead of epoll.
    pub ring: bool,
}

/// The results of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawOutcome {
    /// The number of scripts executed.
    pub transactions: u64,
    /// The time from when all clients are connected to the last reply.
    pub elapsed: Duration,
}

/// The reason that a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// Connecting or communicating failed.
    #[error("the raw loop's connection to {host} port {port} failed: {source}")]
    Connection {
        /// Host or folder.
        host: String,
        /// Port.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// The server requested a password, which the raw loop doesn't support.
    #[error("the server requests a password, which the raw loop does not support")]
    Password,
    /// The server reported an error.
    #[error("the server refused what the raw loop sent: {0}")]
    Server(String),
}

/// Connects all clients, runs the script on each repeatedly, and stops when the time is over, each
/// client at the end of its script.
///
/// # Errors
/// If the server can't be reached, requests a password, reports an error or closes a connection.
pub fn run(plan: &RawPlan) -> Result<RawOutcome, RawError> {
    let broken = broken_by(plan);
    let script = requests::script(plan.workload, plan.mode);
    let mut clients = Vec::with_capacity(plan.clients);
    for _ in 0..plan.clients {
        let mut socket = Socket::connect(plan).map_err(broken)?;
        socket.exchange(&requests::start_up(&plan.user, &plan.database), broken)?;
        if !script.preparation.is_empty() {
            socket.exchange(&script.preparation, broken)?;
        }
        clients.push(Client { socket, step: 0, frames: Frames::default() });
    }
    let mut work = RawLoop {
        plan,
        requests: script.requests,
        digits: Digits::new(plan.scale),
        buffer: vec![0; 64 * 1024],
        transactions: 0,
        stopping: false,
    };
    if plan.ring { work.run_ring(&mut clients, plan.time) } else { work.run(&mut clients, plan.time) }
}

/// The error for a failure of the system.
fn broken_by(plan: &RawPlan) -> impl Fn(io::Error) -> RawError + Copy + '_ {
    move |source| RawError::Connection { host: plan.host.clone(), port: plan.port, source }
}

/// A blocking socket: the loop reads only when it is readable, and requests are far smaller than
/// its buffer.
#[derive(Debug)]
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn connect(plan: &RawPlan) -> io::Result<Socket> {
        if plan.host.starts_with('/') {
            return UnixStream::connect(format!("{}/.s.PGSQL.{}", plan.host, plan.port)).map(Socket::Unix);
        }
        let stream = TcpStream::connect((plan.host.as_str(), plan.port))?;
        stream.set_nodelay(true)?;
        Ok(Socket::Tcp(stream))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self {
            Socket::Unix(stream) => stream.read(buffer),
            Socket::Tcp(stream) => stream.read(buffer),
        }?;
        if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => stream.write_all(bytes),
            Socket::Tcp(stream) => stream.write_all(bytes),
        }
    }

    /// Sends bytes and waits for `ReadyForQuery`.
    fn exchange(
        &mut self,
        bytes: &[u8],
        broken: impl Fn(io::Error) -> RawError + Copy,
    ) -> Result<(), RawError> {
        self.write(bytes).map_err(broken)?;
        let mut frames = Frames::default();
        let mut buffer = [0; 4096];
        loop {
            let count = self.read(&mut buffer).map_err(broken)?;
            if frames.ready_after(&buffer[..count])? > 0 {
                return Ok(());
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[derive(Debug)]
struct Client {
    socket: Socket,
    step: usize,
    frames: Frames,
}

#[derive(Debug)]
struct RawLoop<'a> {
    plan: &'a RawPlan,
    requests: Vec<Request>,
    digits: Digits,
    buffer: Vec<u8>,
    transactions: u64,
    stopping: bool,
}

impl RawLoop<'_> {
    fn run(&mut self, clients: &mut [Client], time: Duration) -> Result<RawOutcome, RawError> {
        let broken = broken_by(self.plan);
        let epoll = watch(clients).map_err(broken)?;
        let mut events: Vec<Event> = Vec::with_capacity(256);
        let start = Instant::now();
        let mut running = clients.len();
        for client in &mut *clients {
            self.send(client).map_err(broken)?;
        }
        while running > 0 {
            match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(broken(error.into())),
            }
            self.stopping = start.elapsed() >= time;
            for event in events.drain(..) {
                let Some(client) = usize::try_from(event.data.u64()).ok().and_then(|at| clients.get_mut(at))
                else {
                    continue;
                };
                let count = client.socket.read(&mut self.buffer).map_err(broken)?;
                if client.frames.ready_after(&self.buffer[..count])? == 0 {
                    continue;
                }
                if self.advance(client) {
                    self.send(client).map_err(broken)?;
                } else {
                    running -= 1;
                }
            }
        }
        Ok(RawOutcome { transactions: self.transactions, elapsed: start.elapsed() })
    }

    /// Continues after a reply; returns false when the client is done.
    fn advance(&mut self, client: &mut Client) -> bool {
        client.step += 1;
        if client.step == self.requests.len() {
            client.step = 0;
            self.transactions += 1;
            if self.stopping {
                return false;
            }
        }
        true
    }

    fn send(&mut self, client: &mut Client) -> io::Result<()> {
        client.socket.write(self.requests[client.step].fill(&mut self.digits))
    }
}

fn watch(clients: &[Client]) -> io::Result<OwnedFd> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (number, client) in clients.iter().enumerate() {
        epoll::add(&epoll, &client.socket, EventData::new_u64(number as u64), EventFlags::IN)?;
    }
    Ok(epoll)
}

/// Finds message boundaries in a stream of replies, in any chunks.
#[derive(Debug, Default)]
struct Frames {
    header: [u8; 5],
    header_length: usize,
    body_left: usize,
}

impl Frames {
    /// Processes the next bytes; returns the number of `ReadyForQuery` that start in them.
    fn ready_after(&mut self, mut bytes: &[u8]) -> Result<usize, RawError> {
        let mut ready = 0;
        loop {
            let skipped = self.body_left.min(bytes.len());
            bytes = &bytes[skipped..];
            self.body_left -= skipped;
            let taken = bytes.len().min(5 - self.header_length);
            self.header[self.header_length..self.header_length + taken].copy_from_slice(&bytes[..taken]);
            self.header_length += taken;
            bytes = &bytes[taken..];
            if self.header_length < 5 {
                return Ok(ready);
            }
            let [kind, length @ ..] = self.header;
            self.header_length = 0;
            self.body_left = (u32::from_be_bytes(length) as usize).saturating_sub(4);
            match kind {
                b'Z' => ready += 1,
                b'E' => return Err(RawError::Server(error_text(bytes))),
                b'R' if bytes.get(..4).is_some_and(|code| code != [0; 4]) => return Err(RawError::Password),
                _ => {}
            }
        }
    }
}

/// The message field of an `ErrorResponse`, as far as it has arrived.
fn error_text(body: &[u8]) -> String {
    let message = body.split(|&byte| byte == 0).find_map(|field| field.strip_prefix(b"M"));
    String::from_utf8_lossy(message.unwrap_or(b"(no message)")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_in_any_chunks() {
        let stream = b"2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x01ZC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        for size in 1..=stream.len() {
            let mut frames = Frames::default();
            let ready: usize = stream.chunks(size).map(|chunk| frames.ready_after(chunk).unwrap()).sum();
            assert_eq!(ready, 1, "in chunks of {size}");
        }
    }

    #[test]
    fn an_error_ends_the_run_with_its_message() {
        let error =
            Frames::default().ready_after(b"E\0\0\0\x20SERROR\0C42P01\0Mno such table\0\0").unwrap_err();
        assert!(matches!(error, RawError::Server(text) if text == "no such table"));
        let error = Frames::default().ready_after(b"R\0\0\0\x08\0\0\0\x03").unwrap_err();
        assert!(matches!(error, RawError::Password));
    }
}
