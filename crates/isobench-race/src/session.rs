//! One session: bytes pass unchanged, but a batch of the client's waits until the gate lets it pass. A
//! batch is a simple Query, or everything up to Sync or Flush.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::mem;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use isobench_pgwire::backend::{self, Message};
use isobench_pgwire::server::{FrontendMessage, parse};
use isobench_pgwire::{Frame, FrameBuffer, Socket, TransactionStatus};
use isobench_record::OpenSession;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::gate::Gate;
use crate::statement::{Batch, filled};

/// What is read at once, in bytes.
const BUFFER: usize = 64 << 10;

/// The bytes of a message before its body.
const HEADER: usize = 5;

/// The most bytes of a binary value that are shown.
const SHOWN_BYTES: usize = 32;

/// A batch that is complete.
#[derive(Debug)]
struct Ready {
    bytes: Vec<u8>,
    texts: Option<Batch>,
    /// ReadyForQuery will come.
    synchronises: bool,
}

/// The reason why the client isn't read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// It is read.
    No,
    /// The answer to its last request isn't complete.
    Unanswered,
    /// The gate holds its batch.
    Held,
}

/// A session that is relayed.
pub(crate) struct Session {
    gate: Arc<Gate>,
    number: u64,
    client: Socket,
    server: Socket,
    wake: Arc<OwnedFd>,
    /// Bytes of the client's that no batch has.
    incoming: Vec<u8>,
    batch: Vec<u8>,
    texts: Vec<String>,
    ready: Option<Ready>,
    rest: Rest,
    pending: u32,
    /// The last batch ended with Flush.
    flushed: bool,
    statements: HashMap<Vec<u8>, String>,
    portals: HashMap<Vec<u8>, String>,
    answers: FrameBuffer,
    /// Its messages aren't understood, so everything passes.
    blind: bool,
}

impl Session {
    /// A session that has begun.
    pub(crate) fn new(gate: Arc<Gate>, number: u64, open: OpenSession, wake: Arc<OwnedFd>) -> Self {
        Self {
            gate,
            number,
            client: open.client,
            server: open.server,
            wake,
            incoming: open.from_client,
            batch: Vec::new(),
            texts: Vec::new(),
            ready: None,
            rest: Rest::No,
            pending: 0,
            flushed: false,
            statements: HashMap::new(),
            portals: HashMap::new(),
            answers: FrameBuffer::new(),
            blind: !open.understood,
        }
    }

    /// Relays until one end closes the connection. The problem of an end that breaks off is the other
    /// end's to see.
    pub(crate) fn run(mut self) {
        let _ = self.relay();
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn relay(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        // Bytes may wait in the decrypted stream, of which the system knows nothing.
        if !self.hear_server(&mut buffer)? || !self.hear_client(&mut buffer)? {
            return Ok(());
        }
        self.pass()?;
        loop {
            let wanted = if self.rest == Rest::No { PollFlags::IN } else { PollFlags::RDHUP };
            let mut ends = [
                PollFd::new(&self.client, wanted),
                PollFd::new(&self.server, PollFlags::IN),
                PollFd::new(&*self.wake, PollFlags::IN),
            ];
            match poll(&mut ends, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [client, server, wake] = ends.map(|end| end.revents());
            if !server.is_empty() && !self.hear_server(&mut buffer)? {
                return Ok(());
            }
            if !wake.is_empty() {
                // What it counts doesn't matter.
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                if self.gate.is_over(self.number) {
                    return Ok(());
                }
            }
            let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::RDHUP;
            if self.rest != Rest::No && client.intersects(gone) {
                return Ok(());
            }
            if self.rest == Rest::No && !client.is_empty() && !self.hear_client(&mut buffer)? {
                return Ok(());
            }
            self.pass()?;
        }
    }

    /// Takes what the client has sent. False if it sends nothing more.
    fn hear_client(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        loop {
            match self.client.receive_now(buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.incoming.extend_from_slice(&buffer[..count]);
                    // More may wait in the decrypted stream. Of a plain one the system tells it.
                    if count < buffer.len() || !matches!(self.client, Socket::Tls(_)) {
                        return Ok(true);
                    }
                }
                Err(error) if is_nothing(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends what may pass of what the client has sent.
    fn pass(&mut self) -> io::Result<()> {
        self.rest = Rest::No;
        loop {
            if let Some(ready) = self.ready.take() {
                if self.pending > 0 {
                    self.rest = Rest::Unanswered;
                } else if ready.texts.as_ref().is_some_and(|batch| !self.gate.admit(self.number, batch)) {
                    self.rest = Rest::Held;
                }
                if self.rest != Rest::No {
                    self.ready = Some(ready);
                    return Ok(());
                }
                self.flushed = !ready.synchronises;
                if ready.synchronises {
                    self.pending += 1;
                    self.gate.sent(self.number);
                }
                self.server.write_all(&ready.bytes)?;
            }
            if self.blind {
                let all = mem::take(&mut self.incoming);
                return self.server.write_all(&all);
            }
            let Some(size) = size_of(&self.incoming) else { return Ok(()) };
            if self.incoming.len() < size {
                return Ok(());
            }
            let rest = self.incoming.split_off(size);
            let message = mem::replace(&mut self.incoming, rest);
            self.take(&message)?;
        }
    }

    /// Adds a message to the batch, or sends it.
    fn take(&mut self, message: &[u8]) -> io::Result<()> {
        let tag = message[0];
        self.note(Frame { tag, body: &message[HEADER..] });
        self.batch.extend_from_slice(message);
        let synchronises = match tag {
            b'P' | b'B' | b'D' | b'E' | b'C' => return Ok(()),
            b'Q' | b'S' | b'F' => true,
            b'H' => false,
            _ => {
                let bytes = mem::take(&mut self.batch);
                return self.server.write_all(&bytes);
            }
        };
        let texts = mem::take(&mut self.texts);
        let texts = (!texts.is_empty()).then(|| Batch::of(&texts));
        self.ready = Some(Ready { bytes: mem::take(&mut self.batch), texts, synchronises });
        Ok(())
    }

    /// Notes the statements of a message.
    fn note(&mut self, frame: Frame<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match parse(frame) {
            Ok(FrontendMessage::Query(sql)) => self.texts.push(text(sql)),
            Ok(FrontendMessage::Parse { statement, sql, .. }) => {
                self.statements.insert(statement.to_vec(), text(sql));
            }
            Ok(FrontendMessage::Bind { portal, statement, formats, parameters, .. }) => {
                let sql = self.statements.get(statement).cloned().unwrap_or_default();
                let values: Vec<String> = parameters
                    .iter()
                    .enumerate()
                    .map(|(at, value)| shown(*value, formats.get(at).or(formats.first()) == Some(&1)))
                    .collect();
                self.portals.insert(portal.to_vec(), filled(&sql, &values));
            }
            Ok(FrontendMessage::Execute { portal, .. }) => {
                let sql = self.portals.get(portal).cloned();
                self.texts.push(sql.unwrap_or_else(|| "a portal that SQL declared".to_owned()));
            }
            // A function call by a message (PostgreSQL manual, "Function Call").
            _ if frame.tag == b'F' => self.texts.push("a function call".to_owned()),
            _ => {}
        }
    }

    /// Passes on what the server has sent. False if it sends nothing more.
    fn hear_server(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        loop {
            match self.server.receive_now(buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.client.write_all(&buffer[..count])?;
                    self.watch(&buffer[..count]);
                    if count < buffer.len() {
                        return Ok(true);
                    }
                }
                Err(error) if is_nothing(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Notes what the server answers.
    fn watch(&mut self, bytes: &[u8]) {
        if self.blind {
            return;
        }
        let mut frames = self.answers.feed(bytes);
        loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    let over = Answered { gate: &self.gate, number: self.number, flushed: self.flushed };
                    over.note(frame, &mut self.pending);
                }
                Ok(None) => return,
                Err(error) => {
                    let note = format!("a session of the application isn't understood any more: {error}");
                    self.gate.note(note);
                    self.blind = true;
                    return;
                }
            }
        }
    }
}

/// A session's answers.
struct Answered<'a> {
    gate: &'a Gate,
    number: u64,
    flushed: bool,
}

impl Answered<'_> {
    fn note(&self, frame: Frame<'_>, pending: &mut u32) {
        match frame.tag {
            backend::tag::READY_FOR_QUERY => {
                let status = TransactionStatus::from_body(frame.body).unwrap_or(TransactionStatus::Idle);
                *pending = pending.saturating_sub(1);
                self.gate.ready(self.number, status, *pending);
            }
            // The server ignores a Sync that came before the rows (PostgreSQL manual, "COPY Operations"); that
            // of a simple Query is still to come, and nothing more is sent until then.
            backend::tag::COPY_IN_RESPONSE => *pending = 0,
            b'T' | b'D' | b'C' | b'E' | b's' | b'I' => self.note_result(frame),
            _ => {}
        }
    }

    fn note_result(&self, frame: Frame<'_>) {
        let Ok(message) = backend::parse(frame) else { return };
        let is_end = !matches!(message, Message::RowDescription(_) | Message::DataRow(_));
        self.gate.seen(self.number, |step| match &message {
            Message::RowDescription(description) if step.row.is_none() => {
                step.columns = description.names().map(std::borrow::Cow::into_owned).collect();
            }
            Message::DataRow(row) if step.row.is_none() => {
                step.row = Some(row.columns().map(|value| value.map(value_of)).collect());
            }
            Message::CommandComplete { tag } => (*tag).clone_into(&mut step.tag),
            Message::ErrorResponse(error) => {
                let error = error.to_error();
                step.error.get_or_insert(format!("{} {}", error.code.as_str(), error.message));
            }
            _ => {}
        });
        if self.flushed && is_end {
            self.gate.landed(self.number);
        }
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The size of the message at the start; `None` before it has arrived.
fn size_of(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(1..HEADER)?;
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    Some(usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1).max(HEADER))
}

/// A value that isn't text, for people: 16 bytes are taken for a UUID, others are written as bytea is.
fn unreadable(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value);
    if text.is_ok_and(|text| !text.chars().any(|c| c.is_control() && !c.is_whitespace())) {
        return None;
    }
    let hexadecimal = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    let halves = value.iter().take(SHOWN_BYTES).flat_map(|byte| [byte >> 4, byte & 15]);
    let mut digits: String = halves.map(hexadecimal).collect();
    if value.len() == 16 {
        for at in [20, 16, 12, 8] {
            digits.insert(at, '-');
        }
        return Some(digits);
    }
    let more = if value.len() > SHOWN_BYTES { "…" } else { "" };
    Some(format!("\\x{digits}{more}"))
}

/// A binary value of the length of an integer is taken for one: only people read it.
fn integer(value: &[u8]) -> Option<String> {
    match value.len() {
        2 => Some(i16::from_be_bytes(value.try_into().ok()?).to_string()),
        4 => Some(i32::from_be_bytes(value.try_into().ok()?).to_string()),
        8 => Some(i64::from_be_bytes(value.try_into().ok()?).to_string()),
        _ => None,
    }
}

/// A parameter, as a literal for people.
fn shown(value: Option<&[u8]>, binary: bool) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    if let Some(number) = integer(value).filter(|_| binary) {
        return number;
    }
    let text = unreadable(value).unwrap_or_else(|| String::from_utf8_lossy(value).into_owned());
    if text.parse::<f64>().is_ok() { text } else { format!("'{}'", text.replace('\'', "''")) }
}

/// A value of a row, which is binary if it has a byte of zero.
fn value_of(value: &[u8]) -> String {
    match integer(value).filter(|_| value.contains(&0)) {
        Some(number) => number,
        None => unreadable(value).unwrap_or_else(|| String::from_utf8_lossy(value).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_people_write_them() {
        assert_eq!(shown(Some(b"7"), false), "7");
        assert_eq!(shown(Some(&7_i64.to_be_bytes()), true), "7");
        assert_eq!((shown(Some(b"bob"), true), shown(None, false)), ("'bob'".to_owned(), "NULL".to_owned()));
        assert_eq!((value_of(b"abcd"), value_of(&5_i32.to_be_bytes())), ("abcd".to_owned(), "5".to_owned()));
        assert_eq!(shown(Some(b"O'Hara\n"), false), "'O''Hara\n'");
    }

    #[test]
    fn binary_values_are_shown_as_uuids_and_bytes() {
        let uuid: [u8; 16] = *b"\x5f\x0c\x7f\x1e\x9d\x3b\x4a\x57\x8f\x7e\x0d\x1f\x2a\x3b\x4c\x5d";
        assert_eq!(shown(Some(&uuid), true), "'5f0c7f1e-9d3b-4a57-8f7e-0d1f2a3b4c5d'");
        assert_eq!(value_of(&[0, 1, 255]), "\\x0001ff");
        assert!(value_of(&[1; 100]).ends_with('…'), "a long one is cut");
    }

    #[test]
    fn messages_are_as_long_as_they_say() {
        assert_eq!(size_of(b"Q\0\0\0\x05\0"), Some(6));
        assert_eq!(size_of(b"Q\0\0"), None);
        assert_eq!(size_of(b"Q\0\0\0\0"), Some(5), "a wrong length is the server's to refuse");
    }
}
