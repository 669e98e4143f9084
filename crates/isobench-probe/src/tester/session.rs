//! A session's connection, read without blocking. Replies are returned in the same way as by libpq.
//!
//! As in libpq, a query is busy until the reply to its first statement arrives, and the rest is
//! read when that reply is taken. The order of notices and results in the isolation tester's output
//! depends on this.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use isobench_pgwire::backend::{self, Message};
use isobench_pgwire::{
    CancelToken, Established, FrameBuffer, ServerError, Socket, TransactionStatus, frontend,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::event::Table;

/// The reply to a statement.
#[derive(Debug)]
pub enum Reply {
    /// It returned rows.
    Rows(Table),
    /// It returned no rows; the command tag, empty for an empty statement.
    Command(String),
    /// It failed.
    Error(Box<ServerError>),
    /// The connection was lost.
    Lost(String),
    /// It is a COPY; libpq's name of that state.
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
    /// The start of the rows of a reply: notices after it are later than those before.
    Columns,
    Ready,
}

/// libpq's message for a connection that was closed without one.
const CLOSED: &str = "server closed the connection unexpectedly\n\tThis probably means the server \
                      terminated abnormally\n\tbefore \
                      or while processing the request.";

/// A time limit, and a way to stop earlier.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// The limit.
    pub limit: Duration,
    /// Called repeatedly; if it returns true, the run is stopped.
    pub stopped: &'a dyn Fn() -> bool,
    /// The clock by which the limit is measured.
    pub now: fn() -> Instant,
}

impl Patience<'_> {
    fn elapsed(&self, since: Instant) -> Duration {
        (self.now)().duration_since(since)
    }
}

/// The run was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// One session.
pub struct TestSession {
    name: String,
    id: String,
    socket: Socket,
    frames: FrameBuffer,
    cancel: CancelToken,
    /// Items that have arrived and haven't been processed, in order.
    items: VecDeque<Item>,
    /// The rows of the statement whose reply is arriving.
    table: Option<Table>,
    notifications: Vec<Notification>,
    notices: u64,
    /// The bytes received since the last query.
    received: usize,
    /// The state of the transaction after the last query.
    status: TransactionStatus,
    /// The reason that the connection can't be used any more.
    lost: Option<String>,
}

impl TestSession {
    /// Takes over a connection that is ready for queries; `id` is its name in the product's view of
    /// waiting sessions.
    pub fn new(name: &str, id: String, established: Established) -> TestSession {
        let mut frames = FrameBuffer::new();
        drop(frames.feed(&established.pending));
        TestSession {
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
            status: TransactionStatus::Idle,
            lost: None,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name in the product's view of waiting sessions.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The process id of the server, 0 if unknown.
    pub fn pid(&self) -> i32 {
        self.cancel.pid()
    }

    /// The state of the transaction after the last query that was answered.
    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    /// True if the replies to all statements of the query have arrived.
    pub fn finished(&mut self) -> bool {
        self.receive();
        self.items.iter().any(|item| matches!(item, Item::Ready))
    }

    /// The number of notices processed.
    pub fn notices(&self) -> u64 {
        self.notices
    }

    /// Asks the server to cancel, and returns whether it received the request. The effect shows in
    /// the session's replies.
    pub fn cancel(&self) -> bool {
        self.cancel.cancel().is_ok()
    }

    /// Sends a query.
    ///
    /// # Errors
    /// If the connection is lost, or the server doesn't accept data within the limit.
    pub fn send(&mut self, sql: &str, patience: Patience<'_>) -> Result<(), String> {
        if self.lost.is_some() {
            return Err("no connection to the server".to_owned());
        }
        self.received = 0;
        let mut out = Vec::new();
        frontend::query(&mut out, sql.as_bytes());
        let began = (patience.now)();
        let mut rest = &out[..];
        while !rest.is_empty() {
            match self.socket.send_now(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let elapsed = patience.elapsed(began);
                    if elapsed > patience.limit || (patience.stopped)() {
                        return Err(format!("the server has not accepted data for {elapsed:?}"));
                    }
                    self.poll(PollFlags::OUT, TICK);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The reason may be in a message of the server that hasn't been read yet.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// True if the reply to the next statement hasn't arrived yet. Reports the notices before it.
    pub fn busy(&mut self, emit: &mut dyn FnMut(ServerError)) -> bool {
        self.receive();
        loop {
            match self.items.front() {
                None => return true,
                Some(Item::Reply(_)) => {
                    // As in libpq, notices directly after it are processed immediately.
                    while let Some(Item::Notice(_) | Item::Notification(_)) = self.items.get(1) {
                        let item = self.items.remove(1);
                        self.process_aside(item, emit);
                    }
                    return false;
                }
                Some(Item::Ready) => return false,
                Some(Item::Columns | Item::Notice(_) | Item::Notification(_)) => {
                    let item = self.items.pop_front();
                    self.process_aside(item, emit);
                }
            }
        }
    }

    /// Processes an item that isn't part of a reply.
    fn process_aside(&mut self, item: Option<Item>, emit: &mut dyn FnMut(ServerError)) {
        match item {
            Some(Item::Notice(notice)) => {
                self.notices += 1;
                emit(*notice);
            }
            Some(Item::Notification(notification)) => self.notifications.push(notification),
            _ => {}
        }
    }

    /// Takes the next reply once the session isn't busy; `None` if there are no more, and the
    /// session is ready for the next query.
    pub fn reply(&mut self) -> Option<Reply> {
        let Some(Item::Reply(reply)) = self.items.pop_front() else { return None };
        if matches!(reply, Reply::Copy("PGRES_COPY_IN")) {
            let mut out = Vec::new();
            frontend::copy_fail(&mut out, "a step has no COPY data");
            // These few bytes always fit, unless the connection is lost, which shows when the reply
            // is read.
            let _ = self.socket.send_now(&out);
        }
        Some(reply)
    }

    /// The notifications so far, including those that have just arrived.
    pub fn notifications(&mut self, emit: &mut dyn FnMut(ServerError)) -> Vec<Notification> {
        self.busy(emit);
        std::mem::take(&mut self.notifications)
    }

    /// Waits briefly for data to arrive; returns true if it did.
    pub fn wait(&self) -> bool {
        self.poll(PollFlags::IN, TICK)
    }

    /// The same for a time in milliseconds, at most 999.
    pub fn wait_for(&self, milliseconds: u32) -> bool {
        self.poll(PollFlags::IN, Timespec { tv_sec: 0, tv_nsec: (milliseconds * 1_000_000).into() })
    }

    /// Sends a query and collects the replies to all its statements.
    ///
    /// # Errors
    /// If the run is stopped. Errors of the server are replies.
    pub fn execute(
        &mut self,
        sql: &str,
        patience: Patience<'_>,
        emit: &mut dyn FnMut(ServerError),
    ) -> Result<Vec<Reply>, Stopped> {
        let began = (patience.now)();
        let limit = patience.limit;
        let mut cancelled = false;
        if let Err(why) = self.send(sql, patience) {
            return if (patience.stopped)() { Err(Stopped) } else { Ok(vec![Reply::Lost(why)]) };
        }
        let mut replies = Vec::new();
        loop {
            while self.busy(emit) {
                self.wait();
                if (patience.stopped)() {
                    // Best effort: a server that is silent doesn't hear it.
                    let _ = self.cancel.cancel_within(LIMITS.farewell);
                    return Err(Stopped);
                }
                let elapsed = patience.elapsed(began);
                if !cancelled && elapsed > limit {
                    self.cancel();
                    cancelled = true;
                }
                if elapsed > limit * 2 {
                    self.mark_lost(format!(
                        "the server has not answered within {:?}, not even to the request to cancel",
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

    /// Reads the data that has arrived, but only a limited amount, so that the caller can check the
    /// time.
    fn receive(&mut self) {
        let mut buffer = [0; 8192];
        for _ in 0..READS {
            if self.lost.is_some() {
                return;
            }
            match self.socket.receive_now(&mut buffer) {
                Ok(0) => self.mark_lost(CLOSED.to_owned()),
                Ok(count) => {
                    self.parse(&buffer[..count]);
                    self.received = self.received.saturating_add(count);
                    if self.received > MOST_RECEIVED {
                        self.mark_lost(format!(
                            "the server has answered with more than {MOST_RECEIVED} bytes"
                        ));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    self.mark_lost(CLOSED.to_owned());
                }
                Err(error) => self.mark_lost(error.to_string()),
            }
        }
    }

    /// Marks the connection as lost, which is its last reply.
    fn mark_lost(&mut self, why: String) {
        self.items.push_back(Item::Reply(Reply::Lost(why.clone())));
        self.items.push_back(Item::Ready);
        self.lost = Some(why);
    }

    fn parse(&mut self, bytes: &[u8]) {
        let (items, table, status) = (&mut self.items, &mut self.table, &mut self.status);
        let mut frames = self.frames.feed(bytes);
        let problem = loop {
            let message = match frames.next() {
                Ok(None) => return,
                Ok(Some(frame)) => backend::parse(frame),
                Err(error) => break error,
            };
            match message {
                Ok(Message::ReadyForQuery(now)) => {
                    *status = now;
                    items.push_back(Item::Ready);
                }
                Ok(message) => process(message, items, table),
                Err(error) => break error,
            }
        };
        drop(frames);
        self.mark_lost(format!("lost synchronization with the server: {problem}"));
    }
}

/// The number of consecutive reads from a socket.
const READS: u32 = 64;

/// The maximum size of the replies to one query, in bytes; beyond that the connection is given up.
const MOST_RECEIVED: usize = 64 << 20;

/// The time to wait for a socket.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Processes a message. Messages that don't belong to the reply to a query are ignored.
fn process(message: Message<'_>, items: &mut VecDeque<Item>, table: &mut Option<Table>) {
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
        _ => {}
    }
}
