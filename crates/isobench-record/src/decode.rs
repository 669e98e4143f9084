//! One session's bytes, turned into records.
//!
//! The client's messages wait in a queue for the server's answers. Names of statements and portals
//! take effect when the server confirms them, in its order, so a batch that fails half-way leaves
//! the same names here as there. After an error the server skips to Sync, and so does the queue.
//! Source: PostgreSQL: Protocol, Message Flow.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use isobench_capture::{Answer, Column, ErrorAnswer, Statement};
use isobench_pgwire::backend::{self, Message, tag};
use isobench_pgwire::server::{self, Describable, FrontendMessage};
use isobench_pgwire::{Frame, FrameBuffer};

pub(crate) use self::portal::Recorded;
use self::portal::{Bound, Portal, Prepared, columns_of, format_of, recorded_of};
use crate::policy::{Kept, Policy};
use crate::reading::{Reading, SessionReading};

/// The number of rows of an answer whose values are kept.
const ROWS: u64 = 20;

/// The largest message that is examined, in bytes. A larger one ends the recording of its session.
const LARGEST: usize = 64 << 20;

/// What a session's bytes show.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    /// A statement was answered.
    Statement(Box<Recorded>),
    /// Something passed that isn't recorded.
    Unseen {
        /// Microseconds since recording began.
        at: u64,
        /// What, and why.
        what: String,
    },
}

/// A message of the client that the server hasn't answered to the end.
#[derive(Debug)]
enum Expected {
    Query {
        sql: Vec<u8>,
    },
    Parse {
        name: Vec<u8>,
        sql: Vec<u8>,
        types: Vec<u32>,
    },
    Bind {
        portal: Vec<u8>,
        statement: Vec<u8>,
        bound: Bound,
    },
    DescribeStatement(Vec<u8>),
    DescribePortal(Vec<u8>),
    Execute(Vec<u8>),
    CloseStatement(Vec<u8>),
    ClosePortal(Vec<u8>),
    Sync,
    FunctionCall,
    /// The end of COPY data from the client, which has no answer of its own.
    CopyEnd,
}

/// Turns the bytes of one session into records.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own of one of the two streams")]
pub(crate) struct Decoder {
    session: u64,
    policy: Arc<Policy>,
    client: FrameBuffer,
    server: FrameBuffer,
    expected: VecDeque<(u64, Expected)>,
    statements: HashMap<Vec<u8>, Prepared>,
    portals: HashMap<Vec<u8>, Portal>,
    /// The server ignores everything until Sync.
    skipping: bool,
    /// The server takes COPY data in the extended protocol, and ignores Sync and Flush.
    copying: bool,
    /// The answers to the front of the queue.
    answers: Vec<Answer>,
    columns: Vec<Option<Arc<[Column]>>>,
    /// The answer that has begun.
    open: Option<(Answer, Option<Arc<[Column]>>)>,
    /// The last statement before the Sync, whose status is still to come.
    held: Option<Box<Recorded>>,
    /// The next error was made by the recorder.
    injected: bool,
    /// How the server reads texts.
    reading: SessionReading,
    /// What is kept of the text of the query at the front, once its answer has begun.
    query: Option<Kept>,
    /// The client said goodbye.
    pub(crate) terminated: bool,
    /// The code of an error between statements, with which a server ends a session.
    pub(crate) fatal: Option<String>,
}

impl Decoder {
    pub(crate) fn new(session: u64, policy: Arc<Policy>, reading: SessionReading) -> Self {
        Self {
            session,
            policy,
            client: FrameBuffer::with_limit(LARGEST),
            server: FrameBuffer::with_limit(LARGEST),
            expected: VecDeque::new(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            skipping: false,
            copying: false,
            answers: Vec::new(),
            columns: Vec::new(),
            open: None,
            held: None,
            injected: false,
            reading,
            query: None,
            terminated: false,
            fatal: None,
        }
    }

    /// The next error comes from the recorder, not from the server.
    pub(crate) fn inject(&mut self) {
        self.injected = true;
    }

    /// Bytes of the client. An error means that the session can't be recorded any further.
    pub(crate) fn client(&mut self, at: u64, bytes: &[u8]) -> Result<(), String> {
        let mut buffer = mem::take(&mut self.client);
        let mut frames = buffer.feed(bytes);
        let outcome = loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    if let Err(why) = self.client_message(at, frame) {
                        break Err(why);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(format!("a message of the client isn't understood: {error}")),
            }
        };
        drop(frames);
        self.client = buffer;
        outcome
    }

    /// Bytes of the server. An error means that the session can't be recorded any further.
    pub(crate) fn server(&mut self, at: u64, bytes: &[u8], out: &mut Vec<Seen>) -> Result<(), String> {
        let mut buffer = mem::take(&mut self.server);
        let mut frames = buffer.feed(bytes);
        let outcome = loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    if let Err(why) = self.server_message(at, frame, out) {
                        break Err(why);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(format!("a message of the server isn't understood: {error}")),
            }
        };
        drop(frames);
        self.server = buffer;
        outcome
    }

    /// What is left when the session ends: a statement whose status never came, and those that were
    /// never answered.
    pub(crate) fn end(&mut self, out: &mut Vec<Seen>) {
        self.release(None, out);
        // An error that ends the session comes without ReadyForQuery.
        let (mut answers, mut columns) = (mem::take(&mut self.answers), mem::take(&mut self.columns));
        for (at, expected) in mem::take(&mut self.expected) {
            let recorded = match expected {
                Expected::Query { sql } => {
                    let kept = self.query.take();
                    let kept = kept.unwrap_or_else(|| self.policy.sql(&sql, self.reading.next()));
                    let answers = mem::take(&mut answers);
                    let statement = Statement { at, comment: kept.comment, answers, ..Statement::default() };
                    let columns = mem::take(&mut columns);
                    Recorded { statement, sql: kept.text.into(), columns, secret: kept.secret }
                }
                Expected::Execute(name) => {
                    let Some(portal) = self.portals.get(&name) else { continue };
                    let mut recorded = recorded_of(self.session, (at, at), portal, Answer::default(), None);
                    recorded.statement.answers = Vec::new();
                    recorded
                }
                _ => continue,
            };
            let statement = Statement { session: self.session, ..recorded.statement };
            out.push(Seen::Statement(Box::new(Recorded { statement, ..recorded })));
        }
    }

    fn client_message(&mut self, at: u64, frame: Frame<'_>) -> Result<(), String> {
        match frame.tag {
            b'd' => return Ok(()),
            b'F' => {
                self.expect(at, Expected::FunctionCall);
                return Ok(());
            }
            _ => {}
        }
        let message = server::parse(frame)
            .map_err(|error| format!("a message of the client isn't understood: {error}"))?;
        let expected = match message {
            FrontendMessage::Query(sql) => Expected::Query { sql: sql.to_vec() },
            FrontendMessage::Parse { statement, sql, types } => {
                Expected::Parse { name: statement.to_vec(), sql: sql.to_vec(), types }
            }
            FrontendMessage::Bind { portal, statement, formats, parameters, result_formats } => {
                let parameters = parameters.into_iter().map(|value| value.map(<[u8]>::to_vec)).collect();
                let bound = Bound { formats, parameters, result_formats };
                Expected::Bind { portal: portal.to_vec(), statement: statement.to_vec(), bound }
            }
            FrontendMessage::Describe(Describable::Statement(name)) => {
                Expected::DescribeStatement(name.to_vec())
            }
            FrontendMessage::Describe(Describable::Portal(name)) => Expected::DescribePortal(name.to_vec()),
            FrontendMessage::Close(Describable::Statement(name)) => Expected::CloseStatement(name.to_vec()),
            FrontendMessage::Close(Describable::Portal(name)) => Expected::ClosePortal(name.to_vec()),
            FrontendMessage::Execute { portal, .. } => Expected::Execute(portal.to_vec()),
            FrontendMessage::Sync if self.copying => return Ok(()),
            FrontendMessage::Sync => Expected::Sync,
            FrontendMessage::CopyDone | FrontendMessage::CopyFail(_) => {
                self.copying = false;
                Expected::CopyEnd
            }
            FrontendMessage::Terminate => {
                self.terminated = true;
                return Ok(());
            }
            FrontendMessage::Flush => return Ok(()),
            FrontendMessage::Password(_)
            | FrontendMessage::CopyData(_)
            | FrontendMessage::Startup { .. }
            | FrontendMessage::CancelRequest { .. }
            | FrontendMessage::SslRequest
            | FrontendMessage::GssEncRequest => {
                return Err("a message of the client came out of turn".to_owned());
            }
        };
        self.expect(at, expected);
        Ok(())
    }

    fn expect(&mut self, at: u64, expected: Expected) {
        if self.skipping && self.expected.is_empty() && !matches!(expected, Expected::Sync) {
            return;
        }
        self.expected.push_back((at, expected));
    }

    /// Drops the ends of COPY data that have come to the front.
    fn settle(&mut self) {
        while matches!(self.expected.front(), Some((_, Expected::CopyEnd))) {
            self.expected.pop_front();
        }
    }

    fn server_message(&mut self, at: u64, frame: Frame<'_>, out: &mut Vec<Seen>) -> Result<(), String> {
        match frame.tag {
            // Anywhere, and without a bearing on statements.
            tag::PARAMETER_STATUS => {
                self.reading.report(frame.body);
                return Ok(());
            }
            tag::NOTICE_RESPONSE | tag::NOTIFICATION_RESPONSE | tag::COPY_DATA | tag::COPY_DONE => {
                return Ok(());
            }
            _ => {}
        }
        self.settle();
        if let (None, Some((_, Expected::Query { sql }))) = (&self.query, self.expected.front()) {
            self.query = Some(self.policy.sql(sql, self.reading.next()));
        }
        let message = backend::parse(frame)
            .map_err(|error| format!("a message of the server isn't understood: {error}"))?;
        let front = self.expected.front().map(|(_, expected)| expected);
        match (message, front) {
            (Message::DataRow(row), Some(Expected::Query { .. } | Expected::Execute(_))) => self.row(row),
            (Message::CommandComplete { tag }, Some(Expected::Query { .. })) => {
                let (answer, columns) = self.open.take().unwrap_or_default();
                self.answers.push(Answer { tag: Some(tag.to_owned()), ..answer });
                self.columns.push(columns);
            }
            (Message::CommandComplete { tag }, Some(Expected::Execute(_))) => {
                self.executed(at, Some(tag.to_owned()), out)?;
            }
            (Message::EmptyQueryResponse, Some(Expected::Execute(_))) => {
                self.executed(at, Some(String::new()), out)?;
            }
            (Message::PortalSuspended, Some(Expected::Execute(_))) => self.executed(at, None, out)?,
            (Message::RowDescription(row), Some(Expected::Query { .. })) => {
                self.open = Some((Answer::default(), Some(columns_of(row))));
            }
            (
                Message::RowDescription(row),
                Some(Expected::DescribeStatement(_) | Expected::DescribePortal(_)),
            ) => {
                self.described(Some(columns_of(row)));
            }
            (Message::NoData, Some(Expected::DescribeStatement(_) | Expected::DescribePortal(_))) => {
                self.described(None);
            }
            (Message::ParameterDescription(types), Some(Expected::DescribeStatement(name))) => {
                if let Some(statement) = self.statements.get_mut(name) {
                    statement.types = types.types().collect();
                }
            }
            (Message::ParseComplete, Some(Expected::Parse { .. })) => self.parsed(),
            (Message::BindComplete, Some(Expected::Bind { .. })) => self.bound(out),
            (Message::CloseComplete, Some(Expected::CloseStatement(name))) => {
                self.statements.remove(name);
                self.expected.pop_front();
            }
            (Message::CloseComplete, Some(Expected::ClosePortal(name))) => {
                self.portals.remove(name);
                self.expected.pop_front();
            }
            (Message::CopyInResponse(_), Some(Expected::Execute(_))) => self.copy_in(),
            (
                Message::CopyInResponse(_) | Message::CopyOutResponse(_),
                Some(Expected::Query { .. } | Expected::Execute(_)),
            )
            | (Message::EmptyQueryResponse, Some(Expected::Query { .. }))
            | (Message::FunctionCallResponse { .. }, Some(Expected::FunctionCall)) => {}
            (Message::ErrorResponse(error), _) => {
                let code = String::from_utf8_lossy(error.field(b'C').unwrap_or_default()).into_owned();
                let secret = self.front_is_secret();
                let message = self.policy.message(error.field(b'M').unwrap_or_default(), secret);
                let error = ErrorAnswer { code, message, injected: mem::take(&mut self.injected) };
                self.failed(at, error, out);
            }
            (Message::ReadyForQuery(status), _) => self.ready(at, char::from(status.to_byte()), out)?,
            (message, _) => {
                let name = format!("{message:?}");
                let name = name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
                return Err(format!("{name} of the server came out of turn"));
            }
        }
        Ok(())
    }

    /// A row of the answer at the front.
    fn row(&mut self, row: backend::DataRow<'_>) {
        let portal = match self.expected.front() {
            Some((_, Expected::Execute(name))) => self.portals.get(name),
            _ => None,
        };
        let (answer, columns) = self.open.get_or_insert_with(|| {
            (Answer::default(), portal.and_then(|portal| portal.prepared.columns.clone()))
        });
        answer.rows += 1;
        if answer.rows > ROWS {
            return;
        }
        let formats = portal.map_or(&[][..], |portal| &portal.formats);
        let columns = columns.as_deref().unwrap_or_default();
        let secret = match portal {
            Some(portal) => portal.prepared.secret,
            None => self.query.as_ref().is_some_and(|query| query.secret),
        };
        let values = row.columns().enumerate().map(|(index, value)| {
            let type_oid = columns.get(index).map_or(0, |column| column.type_oid);
            Some(self.policy.value(type_oid, format_of(formats, index), value?, secret))
        });
        answer.values.push(values.collect());
    }

    fn parsed(&mut self) {
        if let Some((_, Expected::Parse { name, sql, types })) = self.expected.pop_front() {
            let prepared = self.prepared(&sql, types);
            self.statements.insert(name, prepared);
        }
    }

    fn prepared(&self, sql: &[u8], types: Vec<u32>) -> Prepared {
        let Kept { text, comment, secret } = self.policy.sql(sql, self.reading.next());
        Prepared { sql: text.into(), comment, secret, types: types.into(), columns: None }
    }

    /// True if the message that the server answers next may hold a password.
    fn front_is_secret(&self) -> bool {
        match self.expected.front().map(|(_, expected)| expected) {
            Some(Expected::Query { .. }) => self.query.as_ref().is_some_and(|query| query.secret),
            Some(Expected::Parse { sql, .. }) => self.policy.sql(sql, self.reading.next()).secret,
            Some(Expected::Bind { statement: name, .. } | Expected::DescribeStatement(name)) => {
                self.statements.get(name).is_none_or(|statement| statement.secret)
            }
            Some(Expected::DescribePortal(name) | Expected::Execute(name)) => {
                self.portals.get(name).is_none_or(|portal| portal.prepared.secret)
            }
            Some(Expected::Sync) => self.held.as_ref().is_some_and(|held| held.secret),
            _ => false,
        }
    }

    fn bound(&mut self, out: &mut Vec<Seen>) {
        let Some((at, Expected::Bind { portal, statement, bound })) = self.expected.pop_front() else {
            return;
        };
        let Some(prepared) = self.statements.get(&statement).cloned() else {
            self.portals.remove(&portal);
            let what = "a statement that was prepared by PREPARE, and bound by a message".to_owned();
            out.push(Seen::Unseen { at, what });
            return;
        };
        let portal_of = Portal { statement, ..self.portal(prepared, bound) };
        self.portals.insert(portal, portal_of);
    }

    fn portal(&self, prepared: Prepared, bound: Bound) -> Portal {
        let value = |(index, value): (usize, Option<Vec<u8>>)| {
            let type_oid = prepared.types.get(index).copied().unwrap_or(0);
            let format = format_of(&bound.formats, index);
            Some(self.policy.value(type_oid, format, &value?, prepared.secret))
        };
        let parameters = bound.parameters.into_iter().enumerate().map(value).collect();
        let formats = bound.result_formats.into();
        Portal { statement: Vec::new(), prepared, parameters, formats, begun: false }
    }

    /// The answer to a Describe: the columns, or that there are none.
    fn described(&mut self, columns: Option<Arc<[Column]>>) {
        match self.expected.pop_front() {
            Some((_, Expected::DescribeStatement(name))) => {
                if let Some(statement) = self.statements.get_mut(&name) {
                    statement.columns = columns;
                }
            }
            Some((_, Expected::DescribePortal(name))) => {
                let Some(portal) = self.portals.get_mut(&name) else { return };
                portal.prepared.columns.clone_from(&columns);
                // A driver that knows the columns now, as pgjdbc, asks for them no more.
                let statement = self.statements.get_mut(&portal.statement);
                let own = |one: &&mut Prepared| Arc::ptr_eq(&one.sql, &portal.prepared.sql);
                if let Some(statement) = statement.filter(own) {
                    statement.columns = columns;
                }
            }
            _ => {}
        }
    }

    /// The server has begun to take COPY data: every Sync before their end has no answer.
    fn copy_in(&mut self) {
        let end = self.expected.iter().position(|(_, expected)| matches!(expected, Expected::CopyEnd));
        self.copying = end.is_none();
        let mut left = end.unwrap_or(self.expected.len());
        self.expected.retain(|(_, expected)| {
            let before = left > 0;
            left = left.saturating_sub(1);
            !(before && matches!(expected, Expected::Sync))
        });
    }

    /// An Execute has been answered. The tag is missing if rows are left in the portal.
    fn executed(&mut self, at: u64, tag: Option<String>, out: &mut Vec<Seen>) -> Result<(), String> {
        let Some((sent, Expected::Execute(name))) = self.expected.pop_front() else {
            return Err("an answer of the server came out of turn".to_owned());
        };
        self.copying = false;
        self.reading.executed();
        let (answer, columns) = self.open.take().unwrap_or_default();
        let Some(portal) = self.portals.get_mut(&name) else {
            // It was said when it was bound, or the portal is a cursor of DECLARE.
            let what = "rows of a portal that no message has bound".to_owned();
            out.push(Seen::Unseen { at: sent, what });
            return Ok(());
        };
        let columns = columns.or_else(|| portal.prepared.columns.clone());
        let recorded = recorded_of(self.session, (sent, at), portal, Answer { tag, ..answer }, columns);
        portal.begun = true;
        self.hold(recorded, out);
        Ok(())
    }

    fn hold(&mut self, recorded: Recorded, out: &mut Vec<Seen>) {
        self.release(None, out);
        self.held = Some(Box::new(recorded));
    }

    /// Passes on the statement that is held.
    fn release(&mut self, status: Option<char>, out: &mut Vec<Seen>) {
        if let Some(mut held) = self.held.take() {
            held.statement.status = status;
            out.push(Seen::Statement(held));
        }
    }

    /// An error: the message at the front has failed.
    fn failed(&mut self, at: u64, error: ErrorAnswer, out: &mut Vec<Seen>) {
        let failed = |answer: Answer| Answer { error: Some(error.clone()), tag: None, ..answer };
        let (answer, columns) = self.open.take().unwrap_or_default();
        match self.expected.front() {
            Some((_, Expected::Query { .. })) => {
                self.answers.push(failed(answer));
                self.columns.push(columns);
                return;
            }
            Some((_, Expected::FunctionCall)) => return,
            // The transaction that Sync ends couldn't be committed.
            Some((_, Expected::Sync)) => {
                if let Some(answer) = self.held.as_mut().and_then(|held| held.statement.answers.last_mut()) {
                    *answer = failed(mem::take(answer));
                }
                return;
            }
            None => {
                self.fatal = Some(error.code);
                return;
            }
            Some(_) => {}
        }
        if let Some((sent, expected)) = self.expected.pop_front()
            && let Some(portal) = self.portal_of(expected)
        {
            let columns = columns.or_else(|| portal.prepared.columns.clone());
            let recorded = recorded_of(self.session, (sent, at), &portal, failed(answer), columns);
            self.hold(recorded, out);
        }
        self.skipping = true;
        self.copying = false;
        while self.expected.front().is_some_and(|(_, expected)| !matches!(expected, Expected::Sync)) {
            self.expected.pop_front();
        }
    }

    /// The portal that a failed message was about, or would have made.
    fn portal_of(&self, expected: Expected) -> Option<Portal> {
        let without = Bound { formats: Vec::new(), parameters: Vec::new(), result_formats: Vec::new() };
        match expected {
            Expected::Parse { sql, types, .. } => Some(self.portal(self.prepared(&sql, types), without)),
            Expected::Bind { statement, bound, .. } => {
                Some(self.portal(self.statements.get(&statement)?.clone(), bound))
            }
            Expected::DescribeStatement(name) => {
                Some(self.portal(self.statements.get(&name)?.clone(), without))
            }
            Expected::DescribePortal(name) | Expected::Execute(name) => self.portals.get(&name).cloned(),
            _ => None,
        }
    }

    fn ready(&mut self, at: u64, status: char, out: &mut Vec<Seen>) -> Result<(), String> {
        self.skipping = false;
        self.copying = false;
        let query = self.query.take();
        // A file of settings was read meanwhile, or the query itself has changed them.
        let doubtful = self.reading.ready();
        if status == 'I' {
            self.portals.clear();
        }
        match self.expected.pop_front() {
            Some((_, Expected::Sync)) => self.release(Some(status), out),
            Some((sent, Expected::Query { sql })) => {
                self.release(None, out);
                // A simple query replaces these.
                self.statements.remove(&b""[..]);
                self.portals.remove(&b""[..]);
                let kept = match query {
                    Some(kept) if !doubtful => kept,
                    _ => self.policy.sql(&sql, Reading::UNKNOWN),
                };
                let statement = Statement {
                    session: self.session,
                    at: sent,
                    took: at.saturating_sub(sent),
                    comment: kept.comment,
                    answers: mem::take(&mut self.answers),
                    status: Some(status),
                    ..Statement::default()
                };
                let columns = mem::take(&mut self.columns);
                let (sql, secret) = (kept.text.into(), kept.secret);
                out.push(Seen::Statement(Box::new(Recorded { statement, sql, columns, secret })));
            }
            Some((sent, Expected::FunctionCall)) => {
                self.release(None, out);
                out.push(Seen::Unseen { at: sent, what: "a function call by a message".to_owned() });
            }
            _ => return Err("ReadyForQuery of the server came out of turn".to_owned()),
        }
        Ok(())
    }
}

mod portal;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod tests;
