//! The relay: all sessions in one thread, by epoll. What arrives at one end is sent to the other at
//! once; a copy goes into the queue of the recording afterwards.
//!
//! One read, one write and a share of one wait for each direction of a statement is what it costs. A
//! thread per session would add a switch of threads each; two per session can't share TLS.
//!
//! An end that takes no more bytes isn't read from at the other end until it does (each session by
//! itself), so nothing piles up here. An end that was closed is closed at the other end after all
//! that came before.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::net::{Shutdown, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use isobench_capture::Opened;
use isobench_pgwire::{ConnectOptions, Socket};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::inject::{Injection, Injector};
use crate::queue::{Batch, Queue, What};
use crate::reading::SessionReading;
use crate::startup::{self, Beginning, FAREWELL, Keys, Started, Way};

/// What is read at once, in bytes.
const BUFFER: usize = 64 << 10;

/// The reads from one end before others have their turn.
const TURNS: usize = 4;

/// Events taken from the system at once.
const EVENTS: usize = 256;

/// The token of the listener.
const LISTENER: u64 = 0;
/// The token of the signal that something else is to do.
const WAKE: u64 = 1;

/// The pause after a connection that couldn't be accepted, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(5);

/// Where clients connect.
#[derive(Debug)]
pub enum Listener {
    /// By TCP.
    Tcp(TcpListener),
    /// By a Unix socket.
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> io::Result<Socket> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(false)?;
                Socket::Tcp(stream)
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                Socket::Unix(stream)
            }
        })
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => listener.set_nonblocking(true),
            Self::Unix(listener) => listener.set_nonblocking(true),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

/// Asks the relay to end, from any thread.
#[derive(Debug)]
pub(crate) struct Stopper {
    stop: AtomicBool,
    wake: OwnedFd,
}

impl Stopper {
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { stop: AtomicBool::new(false), wake })
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        // It fails only if it is signalled already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// Says something to the user.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

/// What all sessions share.
pub(crate) struct Common {
    pub(crate) options: ConnectOptions,
    pub(crate) inject: Option<Injection>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) stopper: Arc<Stopper>,
    pub(crate) note: Note,
    pub(crate) began: Instant,
    pub(crate) keys: Keys,
}

impl Common {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// One end of a session.
#[derive(Debug)]
struct End {
    socket: Socket,
    /// Bytes for it that it hasn't taken, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    /// What the system is asked to report.
    interest: EventFlags,
    /// It sends nothing more.
    ended: bool,
    /// It takes nothing more.
    deaf: bool,
    /// It is to be closed for writing once it has taken everything.
    closing: bool,
}

impl End {
    fn new(socket: Socket) -> Self {
        let interest = EventFlags::empty();
        Self { socket, out: Vec::new(), sent: 0, interest, ended: false, deaf: false, closing: false }
    }

    fn is_waiting(&self) -> bool {
        self.sent < self.out.len()
    }

    /// Sends bytes, or keeps what it doesn't take.
    fn send(&mut self, bytes: &[u8]) {
        if self.deaf {
            return;
        }
        let mut rest = bytes;
        while !self.is_waiting() && !rest.is_empty() {
            match self.socket.send_now(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return self.turn_deaf(),
            }
        }
        self.out.extend_from_slice(rest);
    }

    /// Sends what was kept.
    fn flush(&mut self) {
        while self.is_waiting() {
            match self.socket.send_now(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.turn_deaf(),
            }
        }
        self.out = Vec::new();
        self.sent = 0;
        if mem::take(&mut self.closing) {
            // It may be closed already.
            let _ = self.socket.shutdown(Shutdown::Write);
            self.deaf = true;
        }
    }

    fn turn_deaf(&mut self) {
        self.deaf = true;
        self.out = Vec::new();
        self.sent = 0;
    }

    /// Closes it for writing after what it still has to take.
    fn close(&mut self) {
        self.closing = true;
        self.flush();
    }
}

/// A session.
struct Session {
    client: End,
    server: End,
    key: Vec<u8>,
    recorded: bool,
    injector: Option<Injector>,
}

/// Which end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// The relay, in a thread of its own until it is stopped.
pub(crate) struct Relay {
    common: Arc<Common>,
    listener: Listener,
    epoll: OwnedFd,
    sessions: HashMap<u64, Session>,
    next: u64,
    /// Beginnings, which the threads of `startup` report.
    begun: Receiver<(u64, Beginning)>,
    /// What they report with; none once no further client is accepted.
    report: Option<Sender<(u64, Beginning)>>,
    batch: Batch,
    buffer: Vec<u8>,
}

impl Relay {
    pub(crate) fn new(common: Arc<Common>, listener: Listener) -> io::Result<Self> {
        listener.set_nonblocking()?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &common.stopper.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let (report, begun) = channel();
        Ok(Self {
            common,
            listener,
            epoll,
            sessions: HashMap::new(),
            next: 1,
            begun,
            report: Some(report),
            batch: Batch::default(),
            buffer: vec![0; BUFFER],
        })
    }

    /// Relays until it is stopped, then what has arrived until then.
    ///
    /// # Errors
    /// The system doesn't let it wait for sockets.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut end = None;
        loop {
            let stopping = self.common.stopper.stop.load(Ordering::Acquire);
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                stopping.then_some(&at_once),
            ) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut quiet = true;
            for event in &events {
                match event.data.u64() {
                    LISTENER if stopping => {}
                    LISTENER => self.accept(),
                    WAKE => {
                        // What it counts doesn't matter.
                        let _ = rustix::io::read(&self.common.stopper.wake, &mut [0; 8]);
                    }
                    token => {
                        quiet = false;
                        let side = if token % 2 == 0 { Side::Client } else { Side::Server };
                        self.serve(token / 2, side, event.flags);
                    }
                }
            }
            while let Ok((session, beginning)) = self.begun.try_recv() {
                quiet = false;
                self.begin(session, beginning);
            }
            self.common.queue.push(&mut self.batch);
            if stopping && quiet {
                let end = *end.get_or_insert_with(|| Instant::now() + FAREWELL);
                let Some((session, beginning)) = self.last_begun(end) else { break };
                self.begin(session, beginning);
            }
        }
        for session in mem::take(&mut self.sessions).into_iter().filter(|(_, session)| session.recorded) {
            self.batch.push(session.0, self.common.now(), What::Closed(Some("recording ended".to_owned())));
        }
        self.common.queue.push(&mut self.batch);
        Ok(())
    }

    /// A beginning that is still to be reported, by `end` at the latest. The application may have ended
    /// before the thread of a client that was refused.
    fn last_begun(&mut self, end: Instant) -> Option<(u64, Beginning)> {
        drop(self.report.take());
        self.begun.recv_timeout(end.saturating_duration_since(Instant::now())).ok()
    }

    /// Accepts connections, whose beginnings are threads of their own: they wait for names, certificates
    /// and passwords.
    fn accept(&mut self) {
        loop {
            let client = match self.listener.accept() {
                Ok(client) => client,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return thread::sleep(PAUSE),
            };
            let Some(report) = self.report.clone() else { return };
            let session = self.next;
            self.next += 1;
            let common = Arc::clone(&self.common);
            let begin = move || {
                let way = Way {
                    options: &common.options,
                    keys: &common.keys,
                    program: "isobench record",
                    defaults: "",
                    acceptor: None,
                };
                match startup::begin(client, &way) {
                    Ok(Beginning::Other) => {}
                    Ok(beginning) => {
                        // The relay may have ended.
                        let _ = report.send((session, beginning));
                        common.stopper.wake();
                    }
                    Err(why) => (common.note)(&why),
                }
            };
            // Without a thread the connection is closed.
            if let Err(error) = thread::Builder::new().name("session".to_owned()).spawn(begin) {
                (self.common.note)(&format!("a connection couldn't be served: {error}"));
            }
        }
    }

    fn begin(&mut self, number: u64, beginning: Beginning) {
        let at = self.common.now();
        let open = |opened: Opened, reading: SessionReading| {
            What::Opened(Box::new(Opened { session: number, at, ..opened }), reading)
        };
        let started = match beginning {
            Beginning::Started(started) => *started,
            Beginning::Refused(opened, why) => {
                self.batch.push(number, at, open(opened, SessionReading::default()));
                self.batch.push(number, at, What::Closed(Some(why)));
                return;
            }
            Beginning::Other => return,
        };
        let Started { client, server, from_client, opened, reading, unseen, key } = started;
        self.batch.push(number, at, open(opened, reading));
        if let Some(why) = unseen {
            self.batch.push(number, at, What::Unseen(why.to_owned()));
        }
        let recorded = unseen.is_none();
        let injector = self.common.inject.as_ref().filter(|_| recorded).map(Injector::new);
        let mut session =
            Session { client: End::new(client), server: End::new(server), key, recorded, injector };
        if !from_client.is_empty() {
            session.pass(number, Side::Client, &from_client, &self.common, &mut self.batch);
        }
        self.sessions.insert(number, session);
        // Bytes may wait in the decrypted stream, of which the system knows nothing.
        self.serve(number, Side::Server, EventFlags::IN);
    }

    /// Serves one end of a session that is ready.
    fn serve(&mut self, number: u64, side: Side, ready: EventFlags) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let ends = |session: &mut Session| -> (bool, bool) {
            (session.client.is_waiting(), session.server.is_waiting())
        };
        if ready.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP) {
            let before = ends(session);
            session.end(side).flush();
            // The other end may be read from again, also what has been decrypted already.
            if before != ends(session) {
                session.read(number, side.other(), &self.common, &mut self.batch, &mut self.buffer);
            }
        }
        if ready.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP) {
            session.read(number, side, &self.common, &mut self.batch, &mut self.buffer);
        }
        if session.is_over() {
            let Some(session) = self.sessions.remove(&number) else { return };
            self.common.keys.remove(&session.key);
            let why = (!session.client.ended).then(|| "the server closed the connection".to_owned());
            self.batch.push(number, self.common.now(), What::Closed(why));
            return;
        }
        for (side, token) in [(Side::Client, number * 2), (Side::Server, number * 2 + 1)] {
            let other_waits = session.end(side.other()).is_waiting();
            let end = session.end(side);
            let mut wanted = EventFlags::empty();
            wanted.set(EventFlags::IN, !end.ended && !other_waits);
            wanted.set(EventFlags::OUT, end.is_waiting());
            if wanted == end.interest {
                continue;
            }
            let token = EventData::new_u64(token);
            // An end that isn't waited for isn't watched: its hanging up would be reported for ever.
            let result = match (end.interest.is_empty(), wanted.is_empty()) {
                (true, _) => epoll::add(&self.epoll, &end.socket, token, wanted),
                (_, true) => epoll::delete(&self.epoll, &end.socket),
                _ => epoll::modify(&self.epoll, &end.socket, token, wanted),
            };
            end.interest = wanted;
            if let Err(error) = result {
                (self.common.note)(&format!("a connection couldn't be watched: {error}"));
                end.turn_deaf();
            }
        }
    }
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl Session {
    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Reads what an end has sent and passes it on, as long as the other end takes it.
    fn read(&mut self, number: u64, side: Side, common: &Common, batch: &mut Batch, buffer: &mut [u8]) {
        let mut turns = 0;
        while !self.end(side).ended && !self.end(side.other()).is_waiting() {
            let received = self.end(side).socket.receive_now(buffer);
            match received {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => {
                    let lost = received.is_err();
                    let end = self.end(side);
                    end.ended = true;
                    if lost {
                        end.turn_deaf();
                    }
                    self.end(side.other()).close();
                    return;
                }
                Ok(count) => {
                    self.pass(number, side, &buffer[..count], common, batch);
                    turns += 1;
                    // Of a decrypted stream the system doesn't know what is left.
                    let encrypted = matches!(self.end(side).socket, Socket::Tls(_));
                    if count < buffer.len() || (turns == TURNS && !encrypted) {
                        return;
                    }
                }
            }
        }
    }

    /// Passes bytes of an end on, then records them.
    fn pass(&mut self, number: u64, side: Side, bytes: &[u8], common: &Common, batch: &mut Batch) {
        let mut recorded = bytes;
        let replaced;
        match (side, &mut self.injector) {
            (Side::Client, Some(injector)) => match injector.client(bytes) {
                Some(others) => self.server.send(&others),
                None => self.server.send(bytes),
            },
            (Side::Server, Some(injector)) => match injector.server(bytes) {
                Some(others) => {
                    replaced = others;
                    self.client.send(&replaced.bytes);
                    recorded = &replaced.bytes;
                    if replaced.injected && !common.queue.is_stopped() {
                        batch.push(number, common.now(), What::Injected);
                    }
                }
                None => self.client.send(bytes),
            },
            (Side::Client, None) => self.server.send(bytes),
            (Side::Server, None) => self.client.send(bytes),
        }
        if !self.recorded || recorded.is_empty() || common.queue.is_stopped() {
            return;
        }
        batch.bytes.extend_from_slice(recorded);
        let what = match side {
            Side::Client => What::Client(recorded.len()),
            Side::Server => What::Server(recorded.len()),
        };
        batch.push(number, common.now(), what);
    }

    /// True if nothing more can pass: the server has ended and the client has all of it, or the client
    /// takes nothing more.
    fn is_over(&self) -> bool {
        let client_is_gone = self.client.ended && self.client.deaf;
        let all_passed = self.server.ended && !self.client.is_waiting() && self.client.ended;
        // A server that takes nothing more may have sent why.
        client_is_gone || all_passed
    }
}
