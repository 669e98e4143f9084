//! A blocking connection for administrative work: tables, settings, invariants. It isn't used for
//! measuring.

mod answer;

use std::io;
use std::time::Duration;

use isobench_limits::LIMITS;

use self::answer::{Answer, Next};
pub use self::answer::{Completed, Rows};
use crate::backend::{self, Message};
use crate::patience::Patience;
use crate::socket::{Deadline, Socket};
use crate::startup::{Notices, ReadySession};
use crate::{CancelToken, Error, Established, FrameBuffer, Host, ServerError, TransactionStatus, frontend};

/// The maximum size of the reply to one query and of a message, in bytes. Replies to administrative
/// queries have some kilobytes.
const ANSWER_LIMIT: usize = 64 << 20;

/// The number of bytes after which replies are read before more is sent: systems keep more for a receiver.
const MOST_UNANSWERED: usize = 32 * 1024;

/// The number of bytes of COPY data that are collected before sending.
const COPY_CHUNK: usize = 128 * 1024;

/// A server's replies to several requests: each one's result, or its refusal.
pub type Replies<T> = Vec<Result<T, Box<ServerError>>>;

/// A blocking connection for administrative work, in the simple protocol.
///
/// Dropping it closes the socket, which ends the session too; [`Connection::close`] ends it
/// properly.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    frames: FrameBuffer,
    buffer: Vec<u8>,
    out: Vec<u8>,
    status: TransactionStatus,
    parameters: Vec<(String, String)>,
    host: Host,
    notices: Notices,
    cancel: CancelToken,
    timeout: Option<Duration>,
    patience: Patience,
    /// True if the session can't be used any more.
    broken: bool,
    /// The number of transactions that ended without an error.
    committed: u64,
}

impl Connection {
    /// Continues a session that was opened elsewhere and is ready for queries outside a
    /// transaction.
    pub fn from_established(session: Established) -> Self {
        let mut frames = FrameBuffer::with_limit(ANSWER_LIMIT);
        drop(frames.feed(&session.pending));
        Self {
            socket: session.socket,
            frames,
            buffer: vec![0; 16 * 1024],
            out: Vec::new(),
            status: TransactionStatus::Idle,
            parameters: session.parameters,
            host: session.host,
            notices: session.notices.into(),
            cancel: session.cancel,
            timeout: None,
            patience: session.patience,
            broken: false,
            committed: 0,
        }
    }

    /// Runs any number of statements (in one implicit transaction, unless they specify otherwise),
    /// ignoring rows.
    ///
    /// # Errors
    ///
    /// The first error reported by the server, or the loss of the connection.
    pub fn execute(&mut self, sql: &str) -> Result<Vec<Completed>, Error> {
        Ok(self.run(sql, false)?.completed)
    }

    /// Runs statements and returns the rows of the last one that returned any; without columns if
    /// none did.
    ///
    /// # Errors
    ///
    /// The first error reported by the server, or the loss of the connection.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        Ok(self.run(sql, true)?.rows)
    }

    /// The first column of the first row; `None` for NULL, and if there is no row.
    ///
    /// # Errors
    ///
    /// The first error reported by the server, or the loss of the connection.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, Error> {
        let rows = self.query(sql)?.rows;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }

    /// Lets the server analyse a statement, without executing it: an unnamed prepared statement (PostgreSQL
    /// manual, "Extended Query"). Utility commands aren't analysed. Returns the types of its parameters, by OID.
    ///
    /// # Errors
    ///
    /// The server's, such as for a name that it doesn't know, or the loss of the connection.
    pub fn analyse(&mut self, sql: &str) -> Result<Vec<u32>, Error> {
        self.out.clear();
        frontend::parse(&mut self.out, "", sql);
        frontend::describe_statement(&mut self.out, "");
        frontend::sync(&mut self.out);
        Ok(self.complete(Answer::of_extended())?.types)
    }

    /// Lets the server analyse statements as [`Self::analyse`] does, all in one round trip. The inner results are
    /// the server's.
    ///
    /// # Errors
    ///
    /// The loss of the connection.
    pub fn analyse_all(&mut self, statements: &[&str]) -> Result<Replies<Vec<u32>>, Error> {
        let analyse = |out: &mut Vec<u8>, statement: &&str| {
            frontend::parse(out, "", statement);
            frontend::describe_statement(out, "");
        };
        let replies = self.each_synchronised(statements, analyse)?;
        Ok(replies.into_iter().map(|reply| reply.map(|answer| answer.types)).collect())
    }

    /// Runs groups of texts, all in one round trip. Each text has to be one statement without parameters: the server
    /// refuses several, however they are hidden (PostgreSQL manual, "Extended Query"). After an error the rest of
    /// its group is left out. The inner results are the rows of a group's last statement, or the server's error.
    ///
    /// # Errors
    ///
    /// The loss of the connection.
    pub fn run_groups(&mut self, groups: &[Vec<String>]) -> Result<Replies<Rows>, Error> {
        let run = |out: &mut Vec<u8>, group: &Vec<String>| {
            for statement in group {
                frontend::parse(out, "", statement);
                let mark = frontend::begin_bind(out, "", 0);
                frontend::finish_bind(out, mark);
                frontend::execute(out);
            }
        };
        let replies = self.each_synchronised(groups, run)?;
        Ok(replies.into_iter().map(|reply| reply.map(|answer| answer.rows)).collect())
    }

    /// Sends the messages of each part and Sync after it, and reads all replies.
    fn each_synchronised<T>(
        &mut self,
        parts: &[T],
        write: impl Fn(&mut Vec<u8>, &T),
    ) -> Result<Replies<Answer>, Error> {
        let deadline = &self.deadline();
        let mut replies = Vec::new();
        let mut sent = 0;
        self.out.clear();
        while replies.len() < parts.len() {
            // The server may not read on until its replies are read.
            while self.out.len() < MOST_UNANSWERED && sent < parts.len() {
                write(&mut self.out, &parts[sent]);
                frontend::sync(&mut self.out);
                sent += 1;
            }
            self.flush(deadline)?;
            while replies.len() < sent {
                let mut answer = Answer::of_extended();
                while self.receive(&mut answer, deadline)? == Next::CopyIn {
                    self.refuse_copy(deadline)?;
                }
                let done = answer.error.is_none() && self.status == TransactionStatus::Idle;
                self.committed += u64::from(done);
                replies.push(match answer.error.take() {
                    Some(error) => Err(Box::new(error)),
                    None => Ok(answer),
                });
            }
        }
        self.patience.took(deadline.elapsed());
        Ok(replies)
    }

    /// Runs COPY … FROM STDIN; `fill` appends rows in COPY's text format until it returns false.
    ///
    /// Returns the number of rows reported by the server. Filling stops early if the server reports
    /// an error in the meantime.
    ///
    /// # Errors
    ///
    /// The server's error, the loss of the connection, or [`Error::NotCopyIn`] (the statement was
    /// executed nevertheless).
    pub fn copy_in(&mut self, sql: &str, fill: &mut dyn FnMut(&mut Vec<u8>) -> bool) -> Result<u64, Error> {
        let deadline = &self.deadline();
        let mut answer = Answer::new(false);
        self.send_query(sql, deadline)?;
        if self.receive(&mut answer, deadline)? == Next::Ready {
            return answer.finish().and(Err(Error::NotCopyIn));
        }
        let mut ready = false;
        let mut more = true;
        while more && !ready && answer.error.is_none() {
            let mark = frontend::begin(&mut self.out, backend::tag::COPY_DATA);
            let start = self.out.len();
            while more && self.out.len() - start < COPY_CHUNK {
                more = fill(&mut self.out);
            }
            frontend::end(&mut self.out, mark);
            self.flush(deadline)?;
            ready = self.receive_arrived(&mut answer, deadline)?;
        }
        // After an error the server has already left copy mode.
        if answer.error.is_none() && !ready {
            frontend::copy_done(&mut self.out);
            self.flush(deadline)?;
        }
        while !ready {
            ready = self.receive(&mut answer, deadline)? == Next::Ready;
            if !ready {
                self.refuse_copy(deadline)?;
            }
        }
        let answer = answer.finish()?;
        self.patience.took(deadline.elapsed());
        Ok(answer.completed.iter().filter_map(Completed::rows).sum())
    }

    /// The number of this session's transactions that ended without an error, as counted by the
    /// server (PostgreSQL: `pg_stat_database.xact_commit`): statements outside a block, and blocks.
    /// Those of COPY FROM STDIN aren't counted.
    pub fn transactions(&self) -> u64 {
        self.committed
    }

    /// The state of the session's transaction after the last statement.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.status
    }

    /// The value of a run-time parameter that the server reports, such as `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The host of the session, one of those in the options.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The notices since the last call (at most 1,000 and 1 MiB; further ones are dropped).
    pub fn take_notices(&mut self) -> Vec<ServerError> {
        self.notices.take()
    }

    /// Cancels the session's current query from another thread.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// Limits the time of each following call; after [`Error::Timeout`] the session can't be used
    /// any more.
    pub fn set_timeout(&mut self, limit: Option<Duration>) {
        self.timeout = limit;
    }

    /// True if the session can't be used any more.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Hands over the session, for example to an event loop.
    pub fn into_established(mut self) -> Established {
        Established {
            pending: self.frames.pending().to_vec(),
            socket: self.socket,
            parameters: self.parameters,
            host: self.host,
            cancel: self.cancel,
            notices: self.notices.take(),
            patience: self.patience,
        }
    }

    /// Ends the session properly, as far as possible without waiting.
    pub fn close(mut self) {
        self.out.clear();
        frontend::terminate(&mut self.out);
        // If the server doesn't receive the message, it sees that the socket is closed.
        if !self.broken {
            let _ = self.socket.send_now(&self.out);
        }
    }

    /// Runs statements and reads the complete reply.
    fn run(&mut self, sql: &str, keep_rows: bool) -> Result<Answer, Error> {
        self.out.clear();
        frontend::query(&mut self.out, sql.as_bytes());
        self.complete(Answer::new(keep_rows))
    }

    /// Sends what was written and reads the complete reply.
    fn complete(&mut self, mut answer: Answer) -> Result<Answer, Error> {
        let deadline = &self.deadline();
        self.flush(deadline)?;
        while self.receive(&mut answer, deadline)? == Next::CopyIn {
            self.refuse_copy(deadline)?;
        }
        let answer = answer.finish()?;
        self.patience.took(deadline.elapsed());
        self.committed += u64::from(self.status == TransactionStatus::Idle);
        Ok(answer)
    }

    /// The deadline of a call that starts now.
    fn deadline(&self) -> Deadline {
        let limit = self.timeout.into_iter().chain(self.patience.limit()).min();
        Deadline::after(limit, &self.patience)
    }

    fn send_query(&mut self, sql: &str, deadline: &Deadline) -> Result<(), Error> {
        self.out.clear();
        frontend::query(&mut self.out, sql.as_bytes());
        self.flush(deadline)
    }

    /// Answers a COPY FROM STDIN that has no data.
    fn refuse_copy(&mut self, deadline: &Deadline) -> Result<(), Error> {
        frontend::copy_fail(&mut self.out, "no data are available for COPY FROM STDIN here");
        self.flush(deadline)
    }

    fn flush(&mut self, deadline: &Deadline) -> Result<(), Error> {
        let result = if self.broken {
            Err(io::ErrorKind::NotConnected.into())
        } else {
            deadline.write_all(&mut self.socket, &self.out)
        };
        self.out.clear();
        match result {
            Ok(()) => Ok(()),
            // The reason may be in a message of the server that hasn't been read yet.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(self.lost(error, deadline)),
        }
    }

    /// Reads messages up to ReadyForQuery, or to the request for COPY data.
    fn receive(&mut self, answer: &mut Answer, deadline: &Deadline) -> Result<Next, Error> {
        let mut count = 0;
        loop {
            if let Some(next) = self.take_frames(count, answer)? {
                return Ok(next);
            }
            count = match self.read(deadline) {
                Ok(count) => count,
                // A fatal error precedes the end of the connection, and has the reason.
                Err(error) => return Err(answer.error.take().map_or(error, Error::from)),
            };
        }
    }

    /// Processes messages that have already arrived, without waiting. Returns true if the reply is
    /// complete.
    fn receive_arrived(&mut self, answer: &mut Answer, deadline: &Deadline) -> Result<bool, Error> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        while self.socket.has_buffered()
            || matches!(poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&now)), Ok(1..))
        {
            let count =
                self.read(deadline).map_err(|error| answer.error.take().map_or(error, Error::from))?;
            if self.take_frames(count, answer)? == Some(Next::Ready) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn read(&mut self, deadline: &Deadline) -> Result<usize, Error> {
        let result = if self.broken {
            Err(io::ErrorKind::NotConnected.into())
        } else {
            deadline.read(&mut self.socket, &mut self.buffer)
        };
        match result {
            Ok(0) => Err(self.lost(io::ErrorKind::UnexpectedEof.into(), deadline)),
            Ok(count) => Ok(count),
            Err(error) => Err(self.lost(error, deadline)),
        }
    }

    /// Processes the messages in the first `count` bytes of the read buffer.
    fn take_frames(&mut self, count: usize, answer: &mut Answer) -> Result<Option<Next>, Error> {
        let mut frames = self.frames.feed(&self.buffer[..count]);
        let result = loop {
            let frame = match frames.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(None),
                Err(error) => break Err(error),
            };
            match backend::parse(frame) {
                Ok(Message::ReadyForQuery(status)) => {
                    self.status = status;
                    return Ok(Some(Next::Ready));
                }
                Ok(Message::ParameterStatus { name, value }) => {
                    ReadySession::set_parameter(&mut self.parameters, &name, &value);
                }
                Ok(Message::NoticeResponse(notice)) => self.notices.add(notice, frame.body.len()),
                Ok(message) => match answer.take(frame, &message) {
                    Ok(None) if answer.kept > ANSWER_LIMIT => {
                        self.broken = true;
                        return Err(Error::TooLarge(ANSWER_LIMIT));
                    }
                    Ok(None) => {}
                    Ok(next) => return Ok(next),
                    Err(error) => break Err(error),
                },
                Err(error) => break Err(error),
            }
        };
        self.broken = true;
        result.map_err(Error::from)
    }

    fn lost(&mut self, error: io::Error, deadline: &Deadline) -> Error {
        self.broken = true;
        let silent = self.patience.requests() > 0 && self.patience.is_doubted();
        let error = match error.kind() {
            io::ErrorKind::TimedOut if deadline.left().is_err() => {
                // A limit chosen by the caller says nothing about the server.
                if self.timeout.is_none() {
                    self.patience.doubt();
                }
                Error::Timeout(deadline.limit())
            }
            io::ErrorKind::Interrupted => {
                self.patience.doubt();
                Error::Interrupted
            }
            _ => return Error::Lost(error),
        };
        // The result isn't needed any more, and the server may hold locks. If the server can't be
        // told, nothing more can be done.
        if !silent {
            let _ = self.cancel.cancel_within(LIMITS.farewell);
        }
        error
    }
}
