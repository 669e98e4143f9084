//! One session's connection, read without waiting: replies are handed out as libpq would.
//!
//! As in libpq, a query counts as busy until its first statement has an answer, and what comes
//! after that is read when that answer is taken. The order of notices and results in the isolation
//! tester's output hangs on it.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use isobench_pgwire::backend::{self, Message};
use isobench_pgwire::{CancelToken, Established, FrameBuffer, ServerError, Socket, frontend};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::event::Table;

/// The answer to one statement.
#[derive(Debug)]
pub enum Reply {
    /// It returned rows.
    Rows(Table),
    /// It didn't; the server's tag, empty for an empty statement.
    Command(String),
    /// It failed.
    Error(Box<ServerError>),
    /// The connection was lost.
    Lost(String),
    /// It is a COPY: libpq's name of that state.
    Copy(&'static str),
}

/// A notification, as far as it is shown.
#[derive(Debug)]
pub struct Notification {
    /// The sender's process id.
    pub pid: i32,
    /// The channel.
    pub channel: String,
    /// The payload.
    pub payload: String,
}

#[derive(Debug)]
enum Item {
    Reply(Reply),
    Notice(Box<ServerError>),
    Notification(Notification),
    /// Where the columns of an answer began: a notice after them comes later than one before.
    Columns,
    Ready,
}

/// libpq's words for a connection that ended without any.
const CLOSED: &str = "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n\tbefore \
                      or while processing the request.";

/// How long something may take, and what ends it before.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// The limit.
    pub limit: Duration,
    /// Asked again and again whether to stop.
    pub stopped: &'a dyn Fn() -> bool,
}

/// Somebody stopped the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// One session.
pub struct Session {
    name: String,
    id: String,
    socket: Socket,
    frames: FrameBuffer,
    cancel: CancelToken,
    /// What has arrived and wasn't dealt with, in its order.
    items: VecDeque<Item>,
    /// The rows of a statement that is under way.
    table: Option<Table>,
    notifications: Vec<Notification>,
    notices: u64,
    /// Bytes since the last query.
    received: usize,
    /// Why the connection is of no further use.
    lost: Option<String>,
}

impl Session {
    /// Takes over a connection that waits for queries; `id` is its name in the product's view of
    /// who waits.
    pub fn new(name: &str, id: String, established: Established) -> Session {
        let mut frames = FrameBuffer::new();
        drop(frames.feed(&established.pending));
        Session {
            name: name.to_owned(),
            id,
            socket: established.socket,
            frames,
            cancel: established.cancel,
            items: VecDeque::new(),
            table: None,
            notifications: Vec::new(),
            notices: 0,
            received: 0,
            lost: None,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the product calls it where it tells who waits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The server's process, 0 if it didn't say.
    pub fn pid(&self) -> i32 {
        self.cancel.pid()
    }

    /// How many notices were dealt with.
    pub fn notices(&self) -> u64 {
        self.notices
    }

    /// Asks the server to cancel, and returns whether it has taken notice. If not, it shows in the
    /// session, which goes on.
    pub fn cancel(&self) -> bool {
        self.cancel.cancel().is_ok()
    }

    /// Sends a query.
    ///
    /// # Errors
    /// The connection is lost, or the server takes nothing until the patience ends.
    pub fn send(&mut self, sql: &str, patience: Patience<'_>) -> Result<(), String> {
        if self.lost.is_some() {
            return Err("no connection to the server".to_owned());
        }
        self.received = 0;
        let mut out = Vec::new();
        frontend::query(&mut out, sql.as_bytes());
        let began = Instant::now();
        let mut rest = &out[..];
        while !rest.is_empty() {
            match self.socket.send_now(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if began.elapsed() > patience.limit || (patience.stopped)() {
                        return Err(format!("the server has taken nothing for {:?}", began.elapsed()));
                    }
                    self.poll(PollFlags::OUT, TICK);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The reason may be waiting in a message of the server.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Whether the query that was sent has no answer to its next statement yet; tells the notices
    /// before it.
    pub fn busy(&mut self, tell: &mut dyn FnMut(ServerError)) -> bool {
        self.receive();
        loop {
            match self.items.front() {
                None => return true,
                Some(Item::Reply(_)) => {
                    // Notices right behind it are dealt with at once, as in libpq.
                    while let Some(Item::Notice(_) | Item::Notification(_)) = self.items.get(1) {
                        let item = self.items.remove(1);
                        self.take_aside(item, tell);
                    }
                    return false;
                }
                Some(Item::Ready) => return false,
                Some(Item::Columns | Item::Notice(_) | Item::Notification(_)) => {
                    let item = self.items.pop_front();
                    self.take_aside(item, tell);
                }
            }
        }
    }

    /// Deals with what isn't an answer.
    fn take_aside(&mut self, item: Option<Item>, tell: &mut dyn FnMut(ServerError)) {
        match item {
            Some(Item::Notice(notice)) => {
                self.notices += 1;
                tell(*notice);
            }
            Some(Item::Notification(notification)) => self.notifications.push(notification),
            _ => {}
        }
    }

    /// Takes the next answer, once the session isn't busy; `None`: there are no more, and it waits
    /// for the next query.
    pub fn reply(&mut self) -> Option<Reply> {
        let Some(Item::Reply(reply)) = self.items.pop_front() else { return None };
        if matches!(reply, Reply::Copy("PGRES_COPY_IN")) {
            let mut out = Vec::new();
            frontend::copy_fail(&mut out, "a step has no COPY data");
            // So few bytes always fit, unless the connection is lost, which shows when its answer
            // is read.
            let _ = self.socket.send_now(&out);
        }
        Some(reply)
    }

    /// The notifications so far, including those that have just arrived.
    pub fn notifications(&mut self, tell: &mut dyn FnMut(ServerError)) -> Vec<Notification> {
        self.busy(tell);
        std::mem::take(&mut self.notifications)
    }

    /// Waits a moment for something to arrive; true if it did.
    pub fn wait(&self) -> bool {
        self.poll(PollFlags::IN, TICK)
    }

    /// Sends a query and collects the answers to all its statements.
    ///
    /// # Errors
    /// Somebody stopped the run. What the server does is an answer.
    pub fn execute(
        &mut self,
        sql: &str,
        patience: Patience<'_>,
        tell: &mut dyn FnMut(ServerError),
    ) -> Result<Vec<Reply>, Stopped> {
        let began = Instant::now();
        let limit = patience.limit;
        let mut cancelled = false;
        if let Err(why) = self.send(sql, patience) {
            return if (patience.stopped)() { Err(Stopped) } else { Ok(vec![Reply::Lost(why)]) };
        }
        let mut replies = Vec::new();
        loop {
            while self.busy(tell) {
                self.wait();
                if (patience.stopped)() {
                    self.cancel();
                    return Err(Stopped);
                }
                if !cancelled && began.elapsed() > limit {
                    self.cancel();
                    cancelled = true;
                }
                if began.elapsed() > limit * 2 {
                    self.lose(format!(
                        "the server has not answered within {:?}, nor to being cancelled",
                        limit * 2
                    ));
                }
            }
            match self.reply() {
                Some(reply) => replies.push(reply),
                None => return Ok(replies),
            }
        }
    }

    fn poll(&self, flags: PollFlags, limit: Timespec) -> bool {
        matches!(poll(&mut [PollFd::new(&self.socket, flags)], Some(&limit)), Ok(1..))
    }

    /// Reads what has arrived, but not for ever: somebody has to look at the clock.
    fn receive(&mut self) {
        let mut buffer = [0; 8192];
        for _ in 0..READS {
            if self.lost.is_some() {
                return;
            }
            match self.socket.receive_now(&mut buffer) {
                Ok(0) => self.lose(CLOSED.to_owned()),
                Ok(count) => {
                    self.understand(&buffer[..count]);
                    self.received = self.received.saturating_add(count);
                    if self.received > MOST_RECEIVED {
                        self.lose(format!("the server has answered with more than {MOST_RECEIVED} bytes"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.lose(CLOSED.to_owned()),
                Err(error) => self.lose(error.to_string()),
            }
        }
    }

    /// The connection is of no further use: that is the last answer.
    fn lose(&mut self, why: String) {
        self.items.push_back(Item::Reply(Reply::Lost(why.clone())));
        self.items.push_back(Item::Ready);
        self.lost = Some(why);
    }

    fn understand(&mut self, bytes: &[u8]) {
        let (items, table) = (&mut self.items, &mut self.table);
        let mut frames = self.frames.feed(bytes);
        let problem = loop {
            let message = match frames.next() {
                Ok(None) => return,
                Ok(Some(frame)) => backend::parse(frame),
                Err(error) => break error,
            };
            match message {
                Ok(message) => take(message, items, table),
                Err(error) => break error,
            }
        };
        drop(frames);
        self.lose(format!("lost synchronization with the server: {problem}"));
    }
}

/// How often a socket is read in a row.
const READS: u32 = 64;

/// The most that is kept of the answer to one query, in bytes: a step that returns more is lost.
const MOST_RECEIVED: usize = 64 << 20;

/// How long a look at a socket takes.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Deals with one message. Those that don't belong into the answer to a query say nothing to
/// anybody here.
fn take(message: Message<'_>, items: &mut VecDeque<Item>, table: &mut Option<Table>) {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    match message {
        Message::RowDescription(description) => {
            let columns = description.names().map(std::borrow::Cow::into_owned).collect();
            *table = Some(Table { columns, rows: Vec::new() });
            items.push_back(Item::Columns);
        }
        Message::DataRow(row) => {
            if let Some(table) = table {
                table.rows.push(row.columns().map(|value| value.map(text)).collect());
            }
        }
        Message::CommandComplete { tag } => items.push_back(Item::Reply(match table.take() {
            Some(table) => Reply::Rows(table),
            None => Reply::Command(tag.to_owned()),
        })),
        Message::EmptyQueryResponse => items.push_back(Item::Reply(Reply::Command(String::new()))),
        Message::ErrorResponse(error) => {
            *table = None;
            items.push_back(Item::Reply(Reply::Error(Box::new(error.to_error()))));
        }
        Message::NoticeResponse(notice) => items.push_back(Item::Notice(Box::new(notice.to_error()))),
        Message::NotificationResponse { pid, channel, payload } => {
            let (channel, payload) = (channel.into_owned(), payload.into_owned());
            items.push_back(Item::Notification(Notification { pid, channel, payload }));
        }
        Message::CopyInResponse(_) => items.push_back(Item::Reply(Reply::Copy("PGRES_COPY_IN"))),
        Message::CopyOutResponse(_) => items.push_back(Item::Reply(Reply::Copy("PGRES_COPY_OUT"))),
        Message::CopyBothResponse(_) => items.push_back(Item::Reply(Reply::Copy("PGRES_COPY_BOTH"))),
        Message::ReadyForQuery(_) => items.push_back(Item::Ready),
        _ => {}
    }
}
