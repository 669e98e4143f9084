//! The protocol of one connection, without I/O: bytes in, bytes out.
//!
//! It implements start-up without a password, simple and extended queries, pipelines, transaction
//! status, and the isolation level. A session waits for the start-up packet, for a message, or for
//! the `Sync` after an error (everything before it is skipped). Source: PostgreSQL: Protocol,
//! Message Flow.

use super::answers::{Answer, Level, REPORTED, SETTINGS, Shown, answer, lower};
use super::sql::{parameter_count, split_statement};
use super::wire::{self, Column, Fields, Malformed, SqlError, oid};

/// The maximum length of a message, in bytes: far above those of benchmarks, and a limit on memory.
const LONGEST_MESSAGE: usize = 1 << 20;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;
const PROTOCOL_MAJOR: u32 = 3;

/// The next action of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the appended bytes and wait for more.
    Continue,
    /// Send the appended bytes, then close.
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    StartUp,
    Ready,
    SkipToSync,
}

/// The transaction status, as in `ReadyForQuery`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Status {
    Idle = b'I',
    Block = b'T',
    Failed = b'E',
}

#[derive(Clone, Copy, Debug)]
struct Statement {
    answer: Answer,
    parameters: u16,
}

/// Statements or portals by name. A benchmark has only a few, for which a list is faster than a
/// hash table.
#[derive(Debug)]
struct Names<T>(Vec<(Box<[u8]>, T)>);

impl<T: Copy> Names<T> {
    fn get(&self, name: &[u8]) -> Option<T> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| *value)
    }

    fn set(&mut self, name: &[u8], value: T) {
        match self.0.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.into(), value)),
        }
    }

    fn remove(&mut self, name: &[u8]) {
        self.0.retain(|(known, _)| **known != *name);
    }
}

/// The state of one connection.
#[derive(Debug)]
pub struct NullSession {
    number: u32,
    phase: Phase,
    status: Status,
    level: Level,
    block_level: Option<Level>,
    statements: Names<Statement>,
    portals: Names<Answer>,
    /// The incomplete message at the end of the last read.
    partial: Vec<u8>,
}

impl NullSession {
    /// A session that waits for its start-up packet; `number` is reported as its process id.
    pub fn new(number: u32) -> NullSession {
        NullSession {
            number,
            phase: Phase::StartUp,
            status: Status::Idle,
            level: Level::default(),
            block_level: None,
            statements: Names(Vec::new()),
            portals: Names(Vec::new()),
            partial: Vec::new(),
        }
    }

    /// Processes received bytes, in any chunks, and appends the replies to `out`.
    pub fn on_bytes(&mut self, input: &[u8], out: &mut Vec<u8>) -> Next {
        if self.partial.is_empty() {
            let (used, next) = self.messages(input, out);
            self.partial.extend_from_slice(&input[used..]);
            return next;
        }
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(input);
        let (used, next) = self.messages(&bytes, out);
        bytes.drain(..used);
        // An empty buffer is dropped, because ten thousand idle ones would waste memory.
        if !bytes.is_empty() {
            self.partial = bytes;
        }
        next
    }

    /// Processes the complete messages in `input`; returns their size in bytes.
    fn messages(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Next) {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let kind_length = usize::from(self.phase != Phase::StartUp);
            let Some(header) = rest.get(kind_length..kind_length + 4) else { return (used, Next::Continue) };
            let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
            if !(4..=LONGEST_MESSAGE).contains(&length) {
                return (input.len(), fatal(out, "a message has an impossible length"));
            }
            let end = kind_length + length;
            let Some(body) = rest.get(kind_length + 4..end) else { return (used, Next::Continue) };
            used += end;
            let next = match self.phase {
                Phase::StartUp => self.start_up(body, out),
                Phase::Ready | Phase::SkipToSync => self.message(rest[0], body, out),
            };
            match next {
                Ok(Next::Continue) => {}
                Ok(Next::Close) => return (input.len(), Next::Close),
                Err(Malformed) => return (input.len(), fatal(out, "a message is malformed")),
            }
        }
    }

    fn start_up(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<Next, Malformed> {
        let mut fields = Fields(body);
        let code = fields.bytes(4)?;
        match u32::from_be_bytes([code[0], code[1], code[2], code[3]]) {
            SSL_REQUEST | GSS_REQUEST => {
                out.push(b'N');
                return Ok(Next::Continue);
            }
            CANCEL_REQUEST => return Ok(Next::Close),
            version if version >> 16 != PROTOCOL_MAJOR => {
                return Ok(fatal(out, "protocol version 3 is required"));
            }
            _ => {}
        }
        loop {
            let name = fields.string()?;
            if name.is_empty() {
                break;
            }
            let value = lower(fields.string()?);
            if name == b"default_transaction_isolation" {
                self.level = Level::find_in(&value).unwrap_or(self.level);
            } else if name == b"options" && value.contains("default_transaction_isolation") {
                // Blanks in a value are escaped in the start-up packet.
                self.level = Level::find_in(&value.replace('\\', "")).unwrap_or(self.level);
            }
        }
        wire::authentication_ok(out);
        for (name, value) in &SETTINGS[..REPORTED] {
            wire::parameter_status(out, name, value);
        }
        wire::backend_key_data(out, self.number);
        self.phase = Phase::Ready;
        wire::ready_for_query(out, self.status as u8);
        Ok(Next::Continue)
    }

    fn message(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<Next, Malformed> {
        let done = match kind {
            b'X' => return Ok(Next::Close),
            b'S' => {
                self.phase = Phase::Ready;
                wire::ready_for_query(out, self.status as u8);
                Ok(())
            }
            _ if self.phase == Phase::SkipToSync => Ok(()),
            b'Q' => {
                self.query(Fields(body).string()?, out);
                Ok(())
            }
            b'P' => self.parse(Fields(body), out)?,
            b'B' => self.bind(Fields(body), out)?,
            b'D' => self.describe(Fields(body), out)?,
            b'E' => {
                let name = Fields(body).string()?;
                self.portals.get(name).ok_or(NO_PORTAL).and_then(|answer| self.execute(answer, false, out))
            }
            b'C' => {
                let mut fields = Fields(body);
                match fields.byte()? {
                    b'S' => self.statements.remove(fields.string()?),
                    _ => self.portals.remove(fields.string()?),
                }
                wire::bare(out, b'3');
                Ok(())
            }
            // Flush: replies are always sent immediately. CopyData, CopyDone and CopyFail are
            // ignored outside COPY.
            b'H' | b'd' | b'c' | b'f' => Ok(()),
            _ => return Ok(fatal(out, "a message has an unknown kind")),
        };
        if let Err(error) = done {
            self.fail(error, out);
            self.phase = Phase::SkipToSync;
        }
        Ok(Next::Continue)
    }

    fn query(&mut self, sql: &[u8], out: &mut Vec<u8>) {
        let mut rest = Some(sql);
        let mut empty = true;
        while let Some(text) = rest {
            let (statement, next) = split_statement(text);
            rest = next;
            let answer = answer(statement);
            if answer == Answer::Empty {
                continue;
            }
            empty = false;
            if let Err(error) = self.execute(answer, true, out) {
                self.fail(error, out);
                break;
            }
        }
        if empty {
            wire::bare(out, b'I');
        }
        wire::ready_for_query(out, self.status as u8);
    }

    fn parse(
        &mut self,
        mut fields: Fields<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Result<(), SqlError>, Malformed> {
        let name = fields.string()?;
        let (statement, next) = split_statement(fields.string()?);
        if next.is_some_and(|next| answer(next) != Answer::Empty) {
            return Ok(Err(SqlError {
                sqlstate: "42601",
                message: "cannot insert multiple commands into a prepared statement",
            }));
        }
        let answer = answer(statement);
        if let Answer::Refused(error) = answer {
            return Ok(Err(error));
        }
        self.statements.set(name, Statement { answer, parameters: parameter_count(statement) });
        wire::bare(out, b'1');
        Ok(Ok(()))
    }

    fn bind(&mut self, mut fields: Fields<'_>, out: &mut Vec<u8>) -> Result<Result<(), SqlError>, Malformed> {
        let portal = fields.string()?;
        let Some(statement) = self.statements.get(fields.string()?) else { return Ok(Err(NO_STATEMENT)) };
        let formats = fields.count16()?;
        fields.bytes(2 * usize::from(formats))?;
        let values = fields.count16()?;
        for _ in 0..values {
            fields.skip_value()?;
        }
        if values != statement.parameters {
            return Ok(Err(SqlError {
                sqlstate: "08P01",
                message: "bind message does not supply as many parameters as the statement has",
            }));
        }
        for _ in 0..fields.count16()? {
            if fields.count16()? != 0 {
                return Ok(Err(SqlError {
                    sqlstate: "0A000",
                    message: "the null server answers in text format only",
                }));
            }
        }
        self.portals.set(portal, statement.answer);
        wire::bare(out, b'2');
        Ok(Ok(()))
    }

    fn describe(
        &mut self,
        mut fields: Fields<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Result<(), SqlError>, Malformed> {
        let of_statement = fields.byte()? == b'S';
        let name = fields.string()?;
        let answer = if of_statement {
            let Some(statement) = self.statements.get(name) else { return Ok(Err(NO_STATEMENT)) };
            wire::parameter_description(out, statement.parameters);
            statement.answer
        } else {
            let Some(answer) = self.portals.get(name) else { return Ok(Err(NO_PORTAL)) };
            answer
        };
        match answer {
            Answer::Row(columns) | Answer::Updated(columns) => wire::row_description(out, columns),
            Answer::Show(name, _) => {
                wire::row_description(out, &[Column { name, type_oid: oid::TEXT, value: None }]);
            }
            _ => wire::bare(out, b'n'),
        }
        Ok(Ok(()))
    }

    /// Executes a statement; with `describe`, as for simple queries, the row description precedes
    /// the rows.
    fn execute(&mut self, answer: Answer, describe: bool, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if self.status == Status::Failed && !matches!(answer, Answer::Commit | Answer::Rollback) {
            return Err(SqlError {
                sqlstate: "25P02",
                message: "current transaction is aborted, commands ignored until end of transaction block",
            });
        }
        match answer {
            Answer::Empty => wire::bare(out, b'I'),
            Answer::Row(columns) => row(out, columns, describe, "SELECT 1"),
            Answer::Updated(columns) => row(out, columns, describe, "UPDATE 1"),
            Answer::Show(name, shown) => {
                let value = match shown {
                    Shown::Text(text) => text,
                    Shown::SessionLevel => self.level.name(),
                    Shown::Level => self.block_level.unwrap_or(self.level).name(),
                };
                row(out, &[Column { name, type_oid: oid::TEXT, value: Some(value) }], describe, "SHOW");
            }
            Answer::Tag(tag) => wire::command_complete(out, tag),
            Answer::Begin(tag, level) => {
                if self.status == Status::Idle {
                    self.block_level = level;
                }
                self.status = Status::Block;
                wire::command_complete(out, tag);
            }
            Answer::Commit if self.status != Status::Failed => self.end_block("COMMIT", out),
            Answer::Commit | Answer::Rollback => self.end_block("ROLLBACK", out),
            Answer::SetSession(level) => {
                self.level = level;
                wire::command_complete(out, "SET");
            }
            Answer::SetBlock(level) => {
                if self.status == Status::Block {
                    self.block_level = Some(level);
                }
                wire::command_complete(out, "SET");
            }
            Answer::Refused(error) => return Err(error),
        }
        Ok(())
    }

    fn end_block(&mut self, tag: &str, out: &mut Vec<u8>) {
        self.status = Status::Idle;
        self.block_level = None;
        wire::command_complete(out, tag);
    }

    fn fail(&mut self, error: SqlError, out: &mut Vec<u8>) {
        if self.status == Status::Block {
            self.status = Status::Failed;
        }
        wire::error_response(out, "ERROR", error);
    }
}

const NO_STATEMENT: SqlError = SqlError { sqlstate: "26000", message: "prepared statement does not exist" };
const NO_PORTAL: SqlError = SqlError { sqlstate: "34000", message: "portal does not exist" };

fn row(out: &mut Vec<u8>, columns: &[Column<'_>], describe: bool, tag: &str) {
    if describe {
        wire::row_description(out, columns);
    }
    wire::data_row(out, columns);
    wire::command_complete(out, tag);
}

fn fatal(out: &mut Vec<u8>, message: &'static str) -> Next {
    wire::error_response(out, "FATAL", SqlError { sqlstate: "08P01", message });
    Next::Close
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: &[u8], body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [kind, &length.to_be_bytes(), body].concat()
    }

    fn start_up(options: &str) -> Vec<u8> {
        packet(b"", format!("\0\x03\0\0user\0x\0options\0{options}\0\0").as_bytes())
    }

    fn query(sql: &str) -> Vec<u8> {
        packet(b"Q", format!("{sql}\0").as_bytes())
    }

    /// The replies as `kind`, or `kind(text)` for tags, values, codes and the transaction status.
    fn replies(bytes: &[u8]) -> String {
        let mut shown = Vec::new();
        let mut rest = bytes;
        while let [kind, a, b, c, d, ..] = *rest {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let body = &rest[5..=length];
            let kind = char::from(kind);
            shown.push(match kind {
                'C' | 'Z' => format!("{kind}({})", String::from_utf8_lossy(body).trim_end_matches('\0')),
                'D' => format!("D({})", String::from_utf8_lossy(body.get(6..).unwrap_or_default())),
                'E' => {
                    let code = body.split(|&byte| byte == 0).find(|field| field.first() == Some(&b'C'));
                    format!("E({})", String::from_utf8_lossy(&code.unwrap()[1..]))
                }
                _ => kind.to_string(),
            });
            rest = &rest[length + 1..];
        }
        shown.join(" ")
    }

    fn ready(options: &str) -> NullSession {
        let mut session = NullSession::new(1);
        let mut out = Vec::new();
        assert_eq!(session.on_bytes(&start_up(options), &mut out), Next::Continue);
        assert_eq!(replies(&out), "R S S S S S S S K Z(I)");
        session
    }

    fn talk(session: &mut NullSession, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        session.on_bytes(bytes, &mut out);
        replies(&out)
    }

    #[test]
    fn encryption_is_declined_and_the_start_goes_on() {
        let mut session = NullSession::new(1);
        let mut out = Vec::new();
        session.on_bytes(&packet(b"", &SSL_REQUEST.to_be_bytes()), &mut out);
        session.on_bytes(&packet(b"", &GSS_REQUEST.to_be_bytes()), &mut out);
        assert_eq!(out, b"NN");
        assert!(talk(&mut session, &start_up("")).ends_with("Z(I)"));
    }

    #[test]
    fn simple_queries_of_several_statements() {
        let mut session = ready("");
        let sql = "begin; update t set a=1; select abalance FROM t; insert into t values(1);";
        assert_eq!(
            talk(&mut session, &query(sql)),
            "C(BEGIN) C(UPDATE 1) T D(0) C(SELECT 1) C(INSERT 0 1) Z(T)"
        );
        assert_eq!(talk(&mut session, &query("END")), "C(COMMIT) Z(I)");
        assert_eq!(talk(&mut session, &query(" ; ")), "I Z(I)");
    }

    #[test]
    fn a_failed_block_refuses_until_it_ends() {
        let mut session = ready("");
        assert_eq!(talk(&mut session, &query("begin; nonsense; select 1")), "C(BEGIN) E(42601) Z(E)");
        assert_eq!(talk(&mut session, &query("select 1")), "E(25P02) Z(E)");
        assert_eq!(talk(&mut session, &query("commit")), "C(ROLLBACK) Z(I)");
        assert_eq!(talk(&mut session, &query("nonsense")), "E(42601) Z(I)");
    }

    #[test]
    fn extended_protocol_and_skipping_to_sync() {
        let mut session = ready("");
        let parse = packet(b"P", b"s\0select abalance from t where aid = $1\0\0\0");
        let bind = packet(b"B", b"\0s\0\0\0\0\x01\0\0\0\x0212\0\0");
        let describe = packet(b"D", b"P\0");
        let describe_statement = packet(b"D", b"Ss\0");
        let execute = packet(b"E", b"\0\0\0\0\0");
        let sync = packet(b"S", b"");
        let close = packet(b"C", b"Ss\0");
        let all = [&parse[..], &bind, &describe, &execute, &sync].concat();
        assert_eq!(talk(&mut session, &all), "1 2 T D(0) C(SELECT 1) Z(I)");
        assert_eq!(talk(&mut session, &[&describe_statement[..], &sync].concat()), "t T Z(I)");
        let closed = [&close[..], &bind, &execute, &sync, &query("select 1")].concat();
        assert_eq!(talk(&mut session, &closed), "3 E(26000) Z(I) T D(0) C(SELECT 1) Z(I)");
    }

    #[test]
    fn a_statement_that_breaks_the_rules_is_refused() {
        let mut session = ready("");
        let sync = packet(b"S", b"");
        for (messages, expected) in [
            (packet(b"P", b"\0select 1; select 2\0\0\0"), "E(42601) Z(I)"),
            (
                [packet(b"P", b"\0select $1\0\0\0"), packet(b"B", b"\0\0\0\0\0\0\0\0")].concat(),
                "1 E(08P01) Z(I)",
            ),
            (
                [packet(b"P", b"\0select 1\0\0\0"), packet(b"B", b"\0\0\0\0\0\0\0\x01\0\x01")].concat(),
                "1 E(0A000) Z(I)",
            ),
            (packet(b"E", b"none\0\0\0\0\0"), "E(34000) Z(I)"),
        ] {
            assert_eq!(talk(&mut session, &[&messages[..], &sync].concat()), expected);
        }
    }

    #[test]
    fn the_level_follows_session_block_and_start_up() {
        let show = query("SHOW transaction_isolation");
        let mut session = ready("-c default_transaction_isolation=repeatable\\ read");
        assert_eq!(talk(&mut session, &show), "T D(repeatable read) C(SHOW) Z(I)");
        talk(&mut session, &query("set session characteristics as transaction isolation level serializable"));
        assert_eq!(talk(&mut session, &show), "T D(serializable) C(SHOW) Z(I)");
        talk(&mut session, &query("begin isolation level read committed"));
        assert_eq!(talk(&mut session, &show), "T D(read committed) C(SHOW) Z(T)");
        talk(&mut session, &query("set transaction isolation level read uncommitted"));
        assert_eq!(talk(&mut session, &show), "T D(read uncommitted) C(SHOW) Z(T)");
        talk(&mut session, &query("rollback"));
        assert_eq!(talk(&mut session, &show), "T D(serializable) C(SHOW) Z(I)");
    }

    #[test]
    fn any_chunking_gives_the_same_replies() {
        let parse = packet(b"P", b"\0select abalance from t where aid = $1\0\0\0");
        let bind = packet(b"B", b"\0\0\0\0\0\x01\0\0\0\x0212\0\0");
        let stream =
            [start_up(""), query("begin; end"), parse, bind, packet(b"E", b"\0\0\0\0\0"), packet(b"S", b"")]
                .concat();
        let mut whole = Vec::new();
        NullSession::new(1).on_bytes(&stream, &mut whole);
        for size in 1..stream.len() {
            let mut session = NullSession::new(1);
            let mut out = Vec::new();
            for chunk in stream.chunks(size) {
                assert_eq!(session.on_bytes(chunk, &mut out), Next::Continue);
            }
            assert_eq!(out, whole, "in chunks of {size}");
            assert!(session.partial.is_empty());
        }
    }

    #[test]
    fn nonsense_closes_the_connection_and_never_panics() {
        for bytes in
            [&b"\0\0\0\0"[..], b"\xff\xff\xff\xff", b"\0\0\0\x08\0\x02\0\0", b"GET / HTTP/1.1\r\n\r\n"]
        {
            let mut out = Vec::new();
            assert_eq!(NullSession::new(1).on_bytes(bytes, &mut out), Next::Close);
        }
        for kind in 0..=u8::MAX {
            for body in [&b""[..], b"\0", b"S", b"\0\0\xff\xff", b"\0\0\0\0\xff\xff\xff"] {
                let mut session = ready("");
                session.on_bytes(&packet(&[kind], body), &mut Vec::new());
            }
        }
    }
}
