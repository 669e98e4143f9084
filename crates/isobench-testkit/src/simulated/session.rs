//! The server side of a connection: receives messages in order, executes statements, and replies.
//!
//! Source: PostgreSQL: Protocol, Message Flow. Time and transport are in `network.rs`.

mod reply;
mod request;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::time::Duration;

use isobench_pgwire::{FrameBuffer, SqlState, server};
use isobench_runner::Nanos;

use super::block::{Block, TransactionWork};
use super::faults::{Fault, Loss, On};
use super::registers::{Access, Registers, Written};
use super::rng::Rng;
use super::settings::{Answer, COMMITTED_ROWS, LEVEL, PROCESS, SCHEMA, SimulationSettings};
use super::statement::{Kind, savepoint, split, with_values};
use super::truth::{End, Executed, Truth};
pub(super) use request::Request;

const DUPLICATE_STATEMENT: SqlState = SqlState(*b"42P05");
const UNKNOWN_STATEMENT: SqlState = SqlState(*b"26000");

/// The OID of `text`.
const TEXT: u32 = 25;
const NO_BLOCK: SqlState = SqlState(*b"25P01");
const UNKNOWN_SAVEPOINT: SqlState = SqlState(*b"3B001");
const UNKNOWN_PORTAL: SqlState = SqlState(*b"34000");

/// The end of the query for isobench's mark on a schema, before its name.
const MARK_OF: &str = "pg_namespace WHERE nspname = '";

/// True if a schema exists: an earlier run's, or one that has been created.
fn has_schema(context: &SessionContext<'_>, name: &str) -> bool {
    let count = |words: &str| {
        let sql = format!("{words} {name}");
        let all = context.truth.statements.iter().flatten();
        all.filter(|executed| executed.sql.strip_prefix(&sql).is_some_and(|rest| !rest.starts_with('_')))
            .count()
    };
    let left = usize::from(name == "isobench");
    left + count("CREATE schema") > count("DROP schema IF EXISTS")
}

/// The statement that sets a session's level, up to the level.
const SET_LEVEL: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL ";

/// The parts of the simulation that a session uses.
pub(super) struct SessionContext<'a> {
    pub(super) now: Nanos,
    pub(super) rng: &'a mut Rng,
    pub(super) settings: &'a SimulationSettings,
    pub(super) truth: &'a mut Truth,
    pub(super) registers: &'a mut Registers,
    /// The fault of the next statement; comes before those of the settings.
    pub(super) next_fault: Option<Fault>,
    /// The connection's occasions of each rule of faults.
    pub(super) seen: &'a mut Vec<u64>,
}

impl SessionContext<'_> {
    /// Records the work of a transaction as committed.
    fn commit(&mut self, work: TransactionWork) {
        self.truth.committed_rows += work.rows;
        self.registers.commit(&work.writes);
        self.truth.writes.extend(work.writes);
    }
}

/// An action of the network on behalf of a session.
#[derive(Debug)]
pub(super) enum NetworkAction {
    /// Sends these bytes to the client.
    Send(Vec<u8>),
    /// Calls [`SimulatedSession::on_wake`] at this instant, with this number.
    Wake(Nanos, u64),
    /// Closes the connection after this time.
    Lose(Duration, Loss),
}

/// The server side of a connection.
#[derive(Default)]
pub(super) struct SimulatedSession {
    /// The connection's number.
    number: usize,
    /// The session's number within the connection.
    turn: u64,
    frames: FrameBuffer,
    requests: VecDeque<Request>,
    block: Block,
    /// The isolation level that was set, in lower case.
    level: String,
    /// The schema that it works in.
    schema: String,
    prepared: HashMap<String, String>,
    /// The unnamed portal: its statement with the values substituted.
    portal: Option<String>,
    /// The statements of a simple query that haven't been executed yet.
    query: Option<VecDeque<String>>,
    running: Option<Running>,
    /// True after an error: everything up to Sync is skipped.
    skipping: bool,
    /// True while COPY FROM STDIN waits for data.
    copying: bool,
    /// The number of the expected wake-up; a cancelled statement leaves a stale one behind.
    wake: u64,
    /// The end of the connection after the next reply.
    pending_end: Option<PendingEnd>,
    out: Vec<u8>,
    actions: Vec<NetworkAction>,
    gone: bool,
}

/// A statement being executed.
struct Running {
    kind: Kind,
    sql: String,
    fault: Option<Fault>,
    /// Its index in the truth.
    index: usize,
}

enum PendingEnd {
    Terminated,
    Lost(Duration, Loss),
}

impl SimulatedSession {
    pub(super) fn new(number: usize, turn: u64) -> SimulatedSession {
        SimulatedSession {
            number,
            turn,
            level: "read committed".to_owned(),
            schema: "public".to_owned(),
            ..SimulatedSession::default()
        }
    }

    /// True if the server's side of the connection is closed.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Takes the accumulated actions.
    pub(super) fn take_actions(&mut self) -> Vec<NetworkAction> {
        mem::take(&mut self.actions)
    }

    /// Processes bytes from the client.
    pub(super) fn on_bytes(&mut self, context: &mut SessionContext<'_>, bytes: &[u8]) {
        let mut frames = self.frames.feed(bytes);
        loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    self.requests.push_back(server::parse(frame).map_or(Request::Nonsense, Request::of));
                }
                Ok(None) => break,
                Err(_) => {
                    self.requests.push_back(Request::Nonsense);
                    break;
                }
            }
        }
        drop(frames);
        self.advance(context);
    }

    /// Handles a message from the client.
    pub(super) fn on_request(&mut self, context: &mut SessionContext<'_>, request: Request) {
        self.requests.push_back(request);
        self.advance(context);
    }

    /// The statement that a message executes, if it executes one.
    pub(super) fn statement<'a>(&'a self, request: &'a Request) -> Option<&'a str> {
        match request {
            Request::Query(sql) => Some(sql),
            Request::Execute => self.portal.as_deref(),
            _ => None,
        }
    }

    /// The process id of the session.
    pub(super) fn process(&self) -> i32 {
        1000 + i32::try_from(self.number).unwrap_or(0)
    }

    /// The isolation level that was set, in lower case.
    pub(super) fn level(&self) -> &str {
        &self.level
    }

    /// Ends a statement whose time has passed.
    pub(super) fn on_wake(&mut self, context: &mut SessionContext<'_>, wake: u64) {
        if wake != self.wake {
            return;
        }
        if let Some(running) = self.running.take() {
            self.complete(context, &running);
            self.advance(context);
        }
    }

    /// A notice, if the running statement sends endless ones.
    pub(super) fn flood(&self) -> Option<Vec<u8>> {
        let floods =
            self.running.as_ref().is_some_and(|running| matches!(running.fault, Some(Fault::Flood { .. })));
        (floods && !self.gone).then(reply::long_notice)
    }

    /// Processes a cancel request.
    pub(super) fn on_cancel(&mut self, context: &mut SessionContext<'_>) {
        let obeys = |running: &mut Running| {
            let deaf = matches!(
                running.fault,
                Some(Fault::Hang { cancellable: false } | Fault::Flood { cancellable: false })
            );
            running.kind != Kind::Rollback && !deaf
        };
        if let Some(running) = self.running.take_if(obeys) {
            self.wake += 1;
            self.end(context, &running, End::Failed(SqlState::QUERY_CANCELED));
            self.fail(running.kind, SqlState::QUERY_CANCELED);
            self.advance(context);
        }
    }

    /// Continues until there is nothing to do, or a statement takes time.
    fn advance(&mut self, context: &mut SessionContext<'_>) {
        while !self.gone && self.running.is_none() {
            if let Some(query) = self.query.as_mut().filter(|_| !self.copying) {
                if let Some(sql) = query.pop_front() {
                    self.begin(context, sql);
                } else {
                    self.query = None;
                    self.synchronise(context);
                }
            } else if let Some(request) = self.requests.pop_front() {
                self.handle(context, request);
            } else {
                return;
            }
        }
    }

    fn handle(&mut self, context: &mut SessionContext<'_>, request: Request) {
        if self.copying {
            return self.copy(&request);
        }
        match request {
            Request::Query(sql) => self.query = Some(split(&sql).into()),
            Request::Sync => {
                self.skipping = false;
                self.synchronise(context);
            }
            Request::Terminate => self.vanish(),
            Request::Nonsense => self.terminate(SqlState::PROTOCOL_VIOLATION),
            _ if self.skipping => {}
            Request::Parse { name, sql } => self.parse(context, name, &sql),
            Request::Bind { name, values } => self.bind(&name, &values),
            Request::DescribePortal => {
                let sql = self.portal.clone().unwrap_or_default();
                self.describe(context.settings, &sql);
            }
            Request::DescribeStatement(name) => match self.prepared.get(&name).cloned() {
                Some(sql) => {
                    // All parameters are texts.
                    let count = (1..=99).take_while(|number| sql.contains(&format!("${number}"))).count();
                    server::parameter_description(&mut self.out, &vec![TEXT; count]);
                    self.describe(context.settings, &sql);
                }
                None => self.fail(Kind::Unknown, UNKNOWN_STATEMENT),
            },
            Request::Execute => match self.portal.clone() {
                Some(sql) => self.begin(context, sql),
                None => self.fail(Kind::Unknown, UNKNOWN_PORTAL),
            },
            Request::Close(name) => {
                self.prepared.remove(&name);
                server::close_complete(&mut self.out);
            }
            Request::Flush => self.flush(),
            Request::CopyData | Request::CopyDone | Request::CopyFail => {}
        }
    }

    /// Processes a message while COPY waits for data. Sync and Flush are ignored then.
    fn copy(&mut self, request: &Request) {
        match request {
            Request::CopyData | Request::Sync | Request::Flush => {}
            Request::CopyDone => {
                self.copying = false;
                server::command_complete(&mut self.out, "COPY 0");
            }
            Request::Terminate => self.vanish(),
            Request::CopyFail => {
                self.copying = false;
                self.fail(Kind::CopyIn, SqlState::QUERY_CANCELED);
            }
            _ => {
                self.copying = false;
                self.fail(Kind::CopyIn, SqlState::PROTOCOL_VIOLATION);
            }
        }
    }

    fn parse(&mut self, context: &mut SessionContext<'_>, name: String, sql: &str) {
        context.truth.parses[self.number] += 1;
        let fault =
            context.settings.faults.strike(self.number, |on| on == On::Parse, context.seen, context.rng);
        let fault = self.possible(fault);
        let mut statements = split(sql);
        let kind = Kind::of(&statements[0]);
        let problem = match fault {
            Some(Fault::Lost(loss)) => return self.lose(loss),
            Some(Fault::Error(code)) => Some(code),
            _ if self.block.is_failed() && !kind.leaves_failed_block() => {
                Some(SqlState::IN_FAILED_SQL_TRANSACTION)
            }
            _ if statements.len() > 1 || kind == Kind::Unknown => Some(SqlState::SYNTAX_ERROR),
            _ if !name.is_empty() && self.prepared.contains_key(&name) => Some(DUPLICATE_STATEMENT),
            _ => None,
        };
        if let Some(code) = problem {
            return self.fail(Kind::Unknown, code);
        }
        self.prepared.insert(name, statements.swap_remove(0));
        server::parse_complete(&mut self.out);
    }

    /// The faults that are possible: committed work can't fail any more, but the connection can.
    fn possible(&self, fault: Option<Fault>) -> Option<Fault> {
        fault.filter(|fault| !(self.block.is_committed() && fault.is_error()))
    }

    fn bind(&mut self, name: &str, values: &[Option<String>]) {
        let Some(sql) = self.prepared.get(name) else { return self.fail(Kind::Unknown, UNKNOWN_STATEMENT) };
        if self.block.is_failed() && !Kind::of(sql).leaves_failed_block() {
            return self.fail(Kind::Unknown, SqlState::IN_FAILED_SQL_TRANSACTION);
        }
        self.portal = Some(with_values(sql, values));
        server::bind_complete(&mut self.out);
    }

    /// Starts executing a statement.
    fn begin(&mut self, context: &mut SessionContext<'_>, sql: String) {
        let kind = Kind::of(&sql);
        if kind == Kind::Empty {
            server::empty_query_response(&mut self.out);
            return;
        }
        let open = self.block.is_open();
        let fault = if self.block.is_failed() && !matches!(kind, Kind::Rollback | Kind::RollbackTo) {
            None
        } else {
            let applies = |on: On| on.is_statement(kind, open);
            let fault = context.settings.faults.strike(self.number, applies, context.seen, context.rng);
            context.next_fault.take().or(fault)
        };
        let fault = self.possible(fault);
        let statements = &mut context.truth.statements[self.number];
        let index = statements.len();
        statements.push(Executed {
            sql: sql.clone(),
            session: self.turn,
            began: context.now,
            ended: context.now,
            end: End::Lost,
        });
        self.wake += 1;
        if !matches!(fault, Some(Fault::Hang { .. } | Fault::Flood { .. })) {
            let takes = Duration::from_nanos(context.rng.between(&context.settings.latency));
            self.actions.push(NetworkAction::Wake(context.now.after(takes), self.wake));
        }
        self.running = Some(Running { kind, sql, fault, index });
    }

    /// Ends the execution of a statement, according to its fault.
    fn complete(&mut self, context: &mut SessionContext<'_>, running: &Running) {
        let open = self.block.is_open();
        match running.fault {
            Some(Fault::Error(code)) => return self.fail_running(context, running, code),
            Some(Fault::Unknown { committed }) => return self.fail_unknown(context, running, committed),
            Some(Fault::ErrorThenLost(code)) => {
                self.fail_running(context, running, code);
                self.flush();
                return self.lose(Loss::Closed);
            }
            Some(Fault::UnknownThenLost { committed }) => {
                self.fail_unknown(context, running, committed);
                self.flush();
                return self.lose(Loss::Closed);
            }
            Some(Fault::AnsweredWithRollback) if running.kind == Kind::Commit && open => {
                self.block.roll_back();
                self.end(context, running, End::Done);
                return server::command_complete(&mut self.out, "ROLLBACK");
            }
            Some(Fault::TerminatedBy(code)) => {
                self.end(context, running, End::Failed(code));
                return self.terminate(code);
            }
            Some(Fault::Lost(loss)) => return self.lose(loss),
            Some(Fault::Notice) => reply::notice(&mut self.out),
            Some(Fault::ParameterStatus) => server::parameter_status(&mut self.out, "application_name", "x"),
            Some(Fault::TerminatedAfterReply) => self.pending_end = Some(PendingEnd::Terminated),
            Some(Fault::LostWhenIdle(after, loss)) => self.pending_end = Some(PendingEnd::Lost(after, loss)),
            _ => {}
        }
        match self.execute(context, running) {
            Ok(()) => self.end(context, running, End::Done),
            Err(code) => return self.fail_running(context, running, code),
        }
        if let Some(Fault::LostAfter(loss)) = running.fault {
            let last = match &self.query {
                Some(rest) => rest.is_empty(),
                None => self.requests.front() == Some(&Request::Sync),
            };
            if last {
                context.commit(self.block.synchronise());
            }
            self.lose(loss);
        }
    }

    /// Executes a statement and appends its reply.
    fn execute(&mut self, context: &mut SessionContext<'_>, running: &Running) -> Result<(), SqlState> {
        let kind = running.kind;
        if self.block.is_failed() && !kind.leaves_failed_block() {
            return Err(SqlState::IN_FAILED_SQL_TRANSACTION);
        }
        if matches!(kind, Kind::Savepoint | Kind::RollbackTo | Kind::Release) {
            return self.savepoint(context, running);
        }
        if !matches!(kind, Kind::Begin | Kind::Commit | Kind::Rollback) {
            self.block.work(u64::from(kind == Kind::Insert));
        }
        if let Some(access) = Access::of(kind, &running.sql) {
            self.access(context, &access);
            return Ok(());
        }
        let tag = match kind {
            Kind::Begin => {
                context.truth.blocks += u64::from(self.block.begin());
                "BEGIN"
            }
            Kind::Commit => {
                let undone = self.block.is_failed();
                context.commit(self.block.commit());
                if undone { "ROLLBACK" } else { "COMMIT" }
            }
            Kind::Rollback => {
                self.block.roll_back();
                "ROLLBACK"
            }
            Kind::Insert | Kind::Update if running.sql.contains(" RETURNING ") => {
                let tag = if kind == Kind::Insert { "INSERT 0" } else { "UPDATE" };
                self.answer(context, &running.sql, tag);
                return Ok(());
            }
            Kind::Insert => "INSERT 0 1",
            Kind::Update => "UPDATE 1",
            Kind::Set => {
                if let Some((_, level)) = running.sql.split_once(SET_LEVEL) {
                    self.level = level.to_ascii_lowercase();
                } else if let Some((_, schema)) = running.sql.split_once("SET search_path = ") {
                    schema.trim_matches('"').clone_into(&mut self.schema);
                }
                "SET"
            }
            Kind::Utility(tag) => tag,
            Kind::Select | Kind::Show => {
                self.answer(context, &running.sql, "SELECT");
                return Ok(());
            }
            Kind::CopyIn => {
                self.copying = true;
                server::copy_in_response(&mut self.out, 1);
                self.flush();
                return Ok(());
            }
            Kind::CopyOut => {
                server::copy_out_response(&mut self.out, 1);
                server::copy_data(&mut self.out, b"1\n");
                server::copy_done(&mut self.out);
                "COPY 1"
            }
            Kind::Savepoint | Kind::RollbackTo | Kind::Release | Kind::Empty | Kind::Unknown => {
                return Err(SqlState::SYNTAX_ERROR);
            }
        };
        server::command_complete(&mut self.out, tag);
        Ok(())
    }

    /// Replies with the rows that the settings contain for a statement.
    fn answer(&mut self, context: &SessionContext<'_>, sql: &str, tag: &str) {
        let (level, process) = (self.level.as_str(), self.process());
        if let Some(schema) = sql.split_once(MARK_OF).and_then(|(_, name)| name.split('\'').next())
            && !has_schema(context, schema)
        {
            let none = Answer { columns: vec!["v"], rows: Vec::new() };
            return reply::result(&mut self.out, &none, Cow::Borrowed, self.query.is_some(), tag);
        }
        let fill = |value: &'static str| match value {
            SCHEMA => Cow::Owned(self.schema.clone()),
            LEVEL => Cow::Owned(level.to_owned()),
            PROCESS => Cow::Owned(process.to_string()),
            COMMITTED_ROWS => Cow::Owned(context.truth.committed_rows.to_string()),
            _ => Cow::Borrowed(value),
        };
        let with_columns = self.query.is_some();
        reply::result(&mut self.out, &reply::answer(context.settings, sql), fill, with_columns, tag);
    }

    /// Sets or releases a savepoint or rolls back to it, and replies.
    fn savepoint(&mut self, context: &mut SessionContext<'_>, running: &Running) -> Result<(), SqlState> {
        let name = savepoint(&running.sql);
        let tag = match running.kind {
            Kind::Savepoint if self.block.savepoint(name.clone()) => "SAVEPOINT",
            Kind::Savepoint => return Err(NO_BLOCK),
            Kind::RollbackTo if self.block.roll_back_to(&name) => "ROLLBACK",
            Kind::Release if self.block.release(&name) => {
                if context.settings.release_commits {
                    context.commit(self.block.commit_early());
                }
                "RELEASE"
            }
            _ => return Err(UNKNOWN_SAVEPOINT),
        };
        server::command_complete(&mut self.out, tag);
        Ok(())
    }

    /// Reads or writes a register, and replies.
    fn access(&mut self, context: &mut SessionContext<'_>, access: &Access) {
        let (Access::Select(id) | Access::Update { id, .. }) = *access;
        let seen = context.registers.see(id, self.block.writes());
        let (columns, values, tag): (&[&str], _, _) = match (access, seen) {
            (Access::Select(_), row) => {
                let values = row.map(|row| vec![row.version.to_string(), row.writer.to_string()]);
                (&["version", "writer"], values, "SELECT")
            }
            (Access::Update { .. }, None) => (&["version"], None, "UPDATE"),
            (Access::Update { writer, returning, .. }, Some(row)) => {
                let written = Written { id, version: row.version + 1, writer: *writer };
                self.block.write(written);
                if !returning {
                    return server::command_complete(&mut self.out, "UPDATE 1");
                }
                (&["version"], Some(vec![written.version.to_string()]), "UPDATE")
            }
        };
        let with_columns = self.query.is_some();
        reply::row(&mut self.out, columns, values.as_deref(), with_columns, tag);
    }

    fn end(&self, context: &mut SessionContext<'_>, running: &Running, end: End) {
        let record = &mut context.truth.statements[self.number][running.index];
        record.ended = context.now;
        record.end = end;
    }

    /// Reports an unknown outcome if the statement is COMMIT.
    fn fail_unknown(&mut self, context: &mut SessionContext<'_>, running: &Running, committed: bool) {
        if committed && running.kind == Kind::Commit {
            context.commit(self.block.commit());
        }
        self.fail_running(context, running, SqlState::STATEMENT_COMPLETION_UNKNOWN);
    }

    fn fail_running(&mut self, context: &mut SessionContext<'_>, running: &Running, code: SqlState) {
        self.end(context, running, End::Failed(code));
        self.fail(running.kind, code);
    }

    /// Reports an error. A failed COMMIT ends the block.
    fn fail(&mut self, kind: Kind, code: SqlState) {
        if kind == Kind::Commit {
            self.block.roll_back();
        } else {
            self.block.fail();
        }
        reply::error(&mut self.out, "ERROR", code);
        match &mut self.query {
            Some(rest) => rest.clear(),
            None => self.skipping = true,
        }
    }

    fn describe(&mut self, settings: &SimulationSettings, sql: &str) {
        let kind = Kind::of(sql);
        match Access::of(kind, sql) {
            Some(Access::Select(_)) => reply::columns(&mut self.out, &["version", "writer"]),
            Some(Access::Update { returning: true, .. }) => reply::columns(&mut self.out, &["version"]),
            None if kind.has_columns() || sql.contains(" RETURNING ") => {
                reply::columns(&mut self.out, &reply::answer(settings, sql).columns);
            }
            _ => server::no_data(&mut self.out),
        }
    }

    /// Processes the end of a simple query, or Sync.
    fn synchronise(&mut self, context: &mut SessionContext<'_>) {
        context.commit(self.block.synchronise());
        server::ready_for_query(&mut self.out, self.block.status());
        match self.pending_end.take() {
            None => self.flush(),
            Some(PendingEnd::Terminated) => self.terminate(SqlState::ADMIN_SHUTDOWN),
            Some(PendingEnd::Lost(after, loss)) => {
                self.flush();
                self.actions.push(NetworkAction::Lose(after, loss));
            }
        }
    }

    fn flush(&mut self) {
        if !self.out.is_empty() {
            self.actions.push(NetworkAction::Send(mem::take(&mut self.out)));
        }
    }

    fn terminate(&mut self, code: SqlState) {
        reply::error(&mut self.out, "FATAL", code);
        self.flush();
        self.lose(Loss::Closed);
    }

    fn lose(&mut self, loss: Loss) {
        self.vanish();
        self.actions.push(NetworkAction::Lose(Duration::ZERO, loss));
    }

    /// Ends the session and its open block.
    pub(super) fn vanish(&mut self) {
        self.gone = true;
        self.running = None;
        self.block = Block::default();
        self.out.clear();
        self.requests.clear();
    }
}
