//! Runs the part of a script for one connection over a socket.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};

use isobench_pgwire::server::{self, Describable, FrontendMessage};
use isobench_pgwire::{FrameBuffer, Socket, TransactionStatus};

use super::script::{Answer, ConnectionScript, Exchange, one_blank};

/// The type `text` of PostgreSQL, which every column has.
const TEXT: u32 = 25;

/// Runs the script; the error describes a deviation from it.
pub(super) fn run(mut socket: Socket, script: ConnectionScript) -> Result<(), String> {
    let rest = start_up(&mut socket, &script)?;
    let mut connection = ScriptedConnection {
        exchanges: script.exchanges.into(),
        out: Vec::new(),
        status: TransactionStatus::Idle,
        statements: HashMap::new(),
        bound: String::new(),
        waiting: Waiting::Nothing,
        closed: false,
    };
    let mut frames = FrameBuffer::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut bytes = rest;
    loop {
        let mut arrived = frames.feed(&bytes);
        while let Some(frame) = arrived.next().map_err(|error| error.to_string())? {
            let message = server::parse(frame).map_err(|error| error.to_string())?;
            let result = connection.take(&message);
            let written = socket.write_all(&connection.out);
            connection.out.clear();
            result?;
            if connection.closed || message == FrontendMessage::Terminate {
                return connection.finish();
            }
            written.map_err(|error| format!("the answer can't be sent: {error}"))?;
        }
        drop(arrived);
        bytes.clear();
        match socket.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return connection.finish(),
        }
    }
}

/// Reads the start-up packet, accepts any user, and returns the bytes that follow.
fn start_up(socket: &mut Socket, script: &ConnectionScript) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = socket.read(&mut buffer).map_err(|error| error.to_string())?;
        if read == 0 {
            return Err("the connection ended before its start-up packet".to_owned());
        }
        bytes.extend_from_slice(&buffer[..read]);
        let Some((message, size)) = server::parse_initial(&bytes).map_err(|error| error.to_string())? else {
            continue;
        };
        if message == FrontendMessage::SslRequest {
            bytes.drain(..size);
            socket.write_all(b"N").map_err(|error| error.to_string())?;
            continue;
        }
        let FrontendMessage::Startup { parameters } = message else {
            return Err(format!("expected a start-up packet, got {message:?}"));
        };
        for (name, value) in &script.parameters {
            let sent = parameters.iter().find(|(sent, _)| *sent == name.as_bytes());
            let sent = sent.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
            if sent.as_ref() != Some(value) {
                return Err(format!("line {}: expected {name}={value}, got {sent:?}", script.line));
            }
        }
        let mut out = Vec::new();
        server::authentication_ok(&mut out);
        server::parameter_status(&mut out, "client_encoding", "UTF8");
        for (name, value) in &script.reported {
            server::parameter_status(&mut out, name, value);
        }
        if !script.keyless {
            server::backend_key_data(&mut out, 1, &[0; 4]);
        }
        server::ready_for_query(&mut out, TransactionStatus::Idle);
        socket.write_all(&out).map_err(|error| error.to_string())?;
        return Ok(bytes.split_off(size));
    }
}

/// The state of a connection.
#[derive(Debug)]
enum Waiting {
    /// It waits for the next query.
    Nothing,
    /// It waits for the end of COPY data; then these answers follow, to this query.
    CopyEnd(String, VecDeque<Answer>),
    /// It waits for a Sync, after an error in the extended protocol.
    Sync,
}

/// A connection that follows the script.
struct ScriptedConnection {
    exchanges: VecDeque<Exchange>,
    out: Vec<u8>,
    status: TransactionStatus,
    /// The prepared statements by name.
    statements: HashMap<Vec<u8>, String>,
    /// The statement of the unnamed portal, with its values.
    bound: String,
    waiting: Waiting,
    closed: bool,
}

impl ScriptedConnection {
    /// Processes a message and appends the answer to `out`.
    fn take(&mut self, message: &FrontendMessage<'_>) -> Result<(), String> {
        match message {
            FrontendMessage::Sync => {
                self.waiting = Waiting::Nothing;
                server::ready_for_query(&mut self.out, self.status);
            }
            _ if matches!(self.waiting, Waiting::Sync) => {}
            FrontendMessage::Query(sql) => self.query(&String::from_utf8_lossy(sql), true)?,
            FrontendMessage::Parse { statement, sql, .. } => {
                self.statements.insert(statement.to_vec(), String::from_utf8_lossy(sql).into_owned());
                server::parse_complete(&mut self.out);
            }
            FrontendMessage::Bind { statement, parameters, .. } => {
                let sql = self.statements.get(*statement).ok_or("Bind of an unknown statement")?;
                let values: Vec<_> = parameters
                    .iter()
                    .map(|value| value.map_or("NULL".into(), String::from_utf8_lossy))
                    .collect();
                self.bound =
                    if values.is_empty() { sql.clone() } else { format!("{sql} [{}]", values.join(", ")) };
                server::bind_complete(&mut self.out);
            }
            FrontendMessage::Describe(what) => self.describe(*what),
            FrontendMessage::Execute { .. } => {
                let sql = self.bound.clone();
                self.query(&sql, false)?;
            }
            FrontendMessage::Close(_) => server::close_complete(&mut self.out),
            FrontendMessage::CopyDone | FrontendMessage::CopyFail(_) => {
                if let Waiting::CopyEnd(sql, answers) = std::mem::replace(&mut self.waiting, Waiting::Nothing)
                {
                    self.answer(&sql, answers, true);
                }
            }
            FrontendMessage::Flush | FrontendMessage::CopyData(_) | FrontendMessage::Terminate => {}
            other => return Err(format!("expected a query, got {other:?}")),
        }
        Ok(())
    }

    /// Describes the next result in the script, as far as it has columns.
    fn describe(&mut self, what: Describable<'_>) {
        if matches!(what, Describable::Statement(_)) {
            server::parameter_description(&mut self.out, &[]);
        }
        let answers = self.exchanges.front().map_or(&[][..], |exchange| &exchange.answers);
        match columns(answers) {
            Some(names) => row_description(&mut self.out, &names),
            None => server::no_data(&mut self.out),
        }
    }

    /// Compares a query with the script and answers it.
    fn query(&mut self, sql: &str, simple: bool) -> Result<(), String> {
        let sql = one_blank(sql);
        let Some(exchange) = self.exchanges.pop_front() else {
            return self.refuse(format!("expected no more queries, got \"{sql}\""));
        };
        let matches = match exchange.query.strip_suffix('*') {
            Some(start) => sql.starts_with(start.trim_end()),
            None => sql == exchange.query,
        };
        if !matches {
            return self
                .refuse(format!("line {}: expected \"{}\", got \"{sql}\"", exchange.line, exchange.query));
        }
        self.answer(&sql, exchange.answers.into(), simple);
        Ok(())
    }

    fn refuse(&mut self, complaint: String) -> Result<(), String> {
        let text = format!("scripted server: {complaint}");
        server::error_response(&mut self.out, &[(b'S', "FATAL"), (b'C', "XX000"), (b'M', &text)]);
        self.exchanges.clear();
        Err(complaint)
    }

    /// Appends answers, and `ReadyForQuery` in the simple protocol, unless COPY data has to arrive
    /// first.
    fn answer(&mut self, sql: &str, answers: VecDeque<Answer>, simple: bool) {
        let mut answers = answers;
        let mut rows = 0;
        let mut finished = false;
        if simple && let Some(names) = columns(answers.make_contiguous()) {
            row_description(&mut self.out, &names);
        }
        while let Some(answer) = answers.pop_front() {
            match answer {
                Answer::Columns(_) => {}
                Answer::Row(values) => {
                    let values: Vec<_> =
                        values.iter().map(|value| value.as_ref().map(String::as_bytes)).collect();
                    server::data_row(&mut self.out, &values);
                    rows += 1;
                }
                Answer::Tag(tag) => {
                    self.ended(sql, &tag);
                    server::command_complete(&mut self.out, &tag);
                    finished = true;
                }
                Answer::Error(fields) => {
                    self.failed(sql);
                    server::error_response(&mut self.out, &borrowed(&fields));
                    finished = true;
                    if !simple {
                        self.waiting = Waiting::Sync;
                    }
                }
                Answer::Notice(fields) => server::notice_response(&mut self.out, &borrowed(&fields)),
                Answer::Copy => {
                    server::copy_in_response(&mut self.out, 1);
                    self.waiting = Waiting::CopyEnd(sql.to_owned(), answers);
                    return;
                }
                Answer::Close => {
                    self.closed = true;
                    return;
                }
            }
        }
        if !finished {
            server::command_complete(&mut self.out, &format!("SELECT {rows}"));
        }
        if simple {
            server::ready_for_query(&mut self.out, self.status);
        }
    }

    /// Tracks the transaction by command tags. With a savepoint the block continues, whatever the
    /// tag: `CockroachDB` returns COMMIT for RELEASE, and all products return ROLLBACK for ROLLBACK
    /// TO.
    fn ended(&mut self, sql: &str, tag: &str) {
        let mut words = sql.split([' ', ';']).map(str::to_uppercase);
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match (first.as_str(), second.as_str(), tag) {
            ("RELEASE", ..) => {}
            (_, _, "BEGIN") | ("ROLLBACK", "TO", _) => self.status = TransactionStatus::InTransaction,
            (_, _, "COMMIT" | "ROLLBACK") => self.status = TransactionStatus::Idle,
            _ => {}
        }
    }

    /// An error aborts its block; at COMMIT, it ends the block.
    fn failed(&mut self, sql: &str) {
        let word = sql.split([' ', ';']).next().unwrap_or("").to_uppercase();
        if matches!(word.as_str(), "COMMIT" | "END") {
            self.status = TransactionStatus::Idle;
        } else if self.status == TransactionStatus::InTransaction {
            self.status = TransactionStatus::Failed;
        }
    }

    /// Reports queries that weren't sent.
    fn finish(self) -> Result<(), String> {
        match self.exchanges.front() {
            None => Ok(()),
            Some(exchange) => Err(format!(
                "line {}: expected \"{}\", but the connection ended",
                exchange.line, exchange.query
            )),
        }
    }
}

fn borrowed(fields: &[(u8, String)]) -> Vec<(u8, &str)> {
    fields.iter().map(|(key, value)| (*key, value.as_str())).collect()
}

/// The names of the columns: as written, or one name for each value of the first row.
fn columns(answers: &[Answer]) -> Option<Vec<String>> {
    answers.iter().find_map(|answer| match answer {
        Answer::Columns(names) => Some(names.clone()),
        Answer::Row(values) => Some(vec!["?column?".to_owned(); values.len()]),
        _ => None,
    })
}

fn row_description(out: &mut Vec<u8>, names: &[String]) {
    let columns: Vec<_> = names.iter().map(|name| (name.as_str(), TEXT)).collect();
    server::row_description(out, &columns);
}
