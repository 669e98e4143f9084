//! COMMITs that fail by the recorder's doing (`--inject`): the transaction is rolled back, and the
//! client gets an error in place of the answer.
//!
//! Only where nothing else is under way, and only two forms: COMMIT as the only statement of a simple
//! query, and Parse (or not), Bind, Describe (or not), Execute, Sync of it. All other COMMITs pass.

use std::collections::HashSet;
use std::fmt;
use std::mem;
use std::str::FromStr;

use isobench_pgwire::server::{self, Describable, FrontendMessage};
use isobench_pgwire::{Frame, FrameBuffer};

/// The name of the recorder's own statement and portal.
const OWN: &[u8] = b"isobench_record\0";

/// Which error, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct Injection {
    /// The SQLSTATE.
    pub code: String,
    /// The probability of a COMMIT to get it, from 0 to 1.
    pub probability: f64,
}

impl FromStr for Injection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (code, probability) =
            text.split_once(':').ok_or("expected SQLSTATE:PROBABILITY, such as 40001:0.01")?;
        if code.len() != 5 || !code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()) {
            return Err(format!("\"{code}\" is no SQLSTATE: five digits or capital letters, such as 40001"));
        }
        match probability.parse() {
            Ok(probability) if (0.0..=1.0).contains(&probability) => {
                Ok(Self { code: code.to_owned(), probability })
            }
            _ => Err(format!("\"{probability}\" is no probability: a number from 0 to 1")),
        }
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.code, self.probability)
    }
}

/// Fails COMMITs of one session.
#[derive(Debug)]
pub(crate) struct Injector {
    injection: Injection,
    random: fastrand::Rng,
    client: FrameBuffer,
    server: FrameBuffer,
    /// The prepared statements that are a COMMIT.
    commits: HashSet<Vec<u8>>,
    /// The ReadyForQuery messages that are still to come.
    outstanding: u32,
    /// The session's transaction is open and healthy.
    in_block: bool,
    active: Option<Active>,
    /// The streams aren't understood; everything passes.
    lost: bool,
}

/// An injection under way: the answers to the client's own messages that are still to come. Further
/// ones are answers to the recorder's.
#[derive(Debug)]
struct Active {
    parses: u32,
    binds: u32,
}

/// What goes on in place of some bytes.
#[derive(Debug, PartialEq)]
pub(crate) struct Replaced {
    pub(crate) bytes: Vec<u8>,
    /// An error of the recorder's is among them.
    pub(crate) injected: bool,
}

/// A message of the client's, as far as it matters.
enum Sent {
    Commit,
    Parse { commit: bool },
    Bind { commit: bool },
    Describe,
    Execute,
    Sync,
    Other,
}

impl Injector {
    pub(crate) fn new(injection: &Injection) -> Self {
        Self {
            injection: injection.clone(),
            random: fastrand::Rng::new(),
            client: FrameBuffer::new(),
            server: FrameBuffer::new(),
            commits: HashSet::new(),
            outstanding: 0,
            in_block: false,
            active: None,
            lost: false,
        }
    }

    /// Bytes of the client: those to send instead, if any.
    pub(crate) fn client(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.lost {
            return None;
        }
        let whole = self.client.is_empty();
        let quiet = whole && self.outstanding == 0 && self.server.is_empty() && self.active.is_none();
        let mut sent = Vec::new();
        let mut before_execute = 0;
        let mut at = 0;
        let mut buffer = mem::take(&mut self.client);
        let mut frames = buffer.feed(bytes);
        loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    let message = self.sent(frame);
                    if matches!(message, Sent::Execute) {
                        before_execute = at;
                    }
                    at += frame.body.len() + 5;
                    sent.push(message);
                }
                Ok(None) => break,
                Err(_) => {
                    self.lost = true;
                    break;
                }
            }
        }
        drop(frames);
        self.client = buffer;
        let form = match sent.as_slice() {
            [Sent::Commit] => Some(Active { parses: 0, binds: 0 }),
            [Sent::Bind { commit: true }, Sent::Execute, Sent::Sync]
            | [Sent::Bind { commit: true }, Sent::Describe, Sent::Execute, Sent::Sync] => {
                Some(Active { parses: 0, binds: 1 })
            }
            [Sent::Parse { commit: true }, Sent::Bind { commit: true }, Sent::Execute, Sent::Sync]
            | [
                Sent::Parse { commit: true },
                Sent::Bind { commit: true },
                Sent::Describe,
                Sent::Execute,
                Sent::Sync,
            ] => Some(Active { parses: 1, binds: 1 }),
            _ => None,
        };
        let possible = quiet && self.in_block && self.client.is_empty() && !self.lost;
        let active = form.filter(|_| possible)?;
        if self.random.f64() >= self.injection.probability {
            return None;
        }
        let simple = active.binds == 0;
        self.active = Some(active);
        let mut out = bytes[..before_execute].to_vec();
        if simple {
            message(&mut out, b'Q', &[b"ROLLBACK\0"]);
        } else {
            message(&mut out, b'P', &[OWN, b"ROLLBACK\0", &[0; 2]]);
            message(&mut out, b'B', &[OWN, OWN, &[0; 6]]);
            message(&mut out, b'E', &[OWN, &[0; 4]]);
            message(&mut out, b'C', &[b"S", OWN]);
            message(&mut out, b'S', &[]);
        }
        Some(out)
    }

    /// Bytes of the server: those to pass on instead, if any.
    pub(crate) fn server(&mut self, bytes: &[u8]) -> Option<Replaced> {
        if self.lost {
            return None;
        }
        let was_active = self.active.is_some();
        let mut replaced = Replaced { bytes: Vec::new(), injected: false };
        let mut buffer = mem::take(&mut self.server);
        let mut frames = buffer.feed(bytes);
        loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    if was_active {
                        self.pass(frame, &mut replaced);
                    }
                    if frame.tag == b'Z' {
                        self.outstanding = self.outstanding.saturating_sub(1);
                        self.in_block = frame.body == b"T";
                        self.active = None;
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    self.lost = true;
                    break;
                }
            }
        }
        drop(frames);
        self.server = buffer;
        if !was_active {
            return None;
        }
        if self.active.is_none() || self.lost {
            // What is left is only watched from here on, so it is passed on as it comes.
            replaced.bytes.extend_from_slice(self.server.pending());
        }
        Some(replaced)
    }

    /// Passes on a message of the server during an injection, unless it answers one of the recorder's.
    fn pass(&mut self, frame: Frame<'_>, replaced: &mut Replaced) {
        if let Some(active) = &mut self.active {
            let own = |left: &mut u32| {
                let own = *left == 0;
                *left = left.saturating_sub(1);
                own
            };
            let is_own = match frame.tag {
                b'1' => own(&mut active.parses),
                b'2' => own(&mut active.binds),
                b'3' => true,
                b'C' => {
                    replaced.injected = true;
                    error(&mut replaced.bytes, &self.injection.code);
                    true
                }
                // The server has an error of its own: that is what the client gets.
                _ => false,
            };
            if is_own {
                return;
            }
        }
        message(&mut replaced.bytes, frame.tag, &[frame.body]);
    }

    fn sent(&mut self, frame: Frame<'_>) -> Sent {
        if frame.tag == b'F' {
            self.outstanding += 1;
            return Sent::Other;
        }
        let Ok(message) = server::parse(frame) else {
            self.lost = true;
            return Sent::Other;
        };
        match message {
            FrontendMessage::Query(sql) => {
                self.outstanding += 1;
                if is_commit(sql) { Sent::Commit } else { Sent::Other }
            }
            FrontendMessage::Parse { statement, sql, .. } => {
                let commit = is_commit(sql);
                if commit {
                    self.commits.insert(statement.to_vec());
                } else {
                    self.commits.remove(statement);
                }
                Sent::Parse { commit }
            }
            FrontendMessage::Bind { statement, .. } => {
                Sent::Bind { commit: self.commits.contains(statement) }
            }
            FrontendMessage::Describe(_) => Sent::Describe,
            FrontendMessage::Execute { .. } => Sent::Execute,
            FrontendMessage::Close(Describable::Statement(name)) => {
                self.commits.remove(name);
                Sent::Other
            }
            FrontendMessage::Sync => {
                self.outstanding += 1;
                Sent::Sync
            }
            _ => Sent::Other,
        }
    }
}

/// True for `COMMIT` and `END`, with `WORK` or `TRANSACTION`.
fn is_commit(sql: &[u8]) -> bool {
    let Ok(sql) = std::str::from_utf8(sql) else { return false };
    let (text, _) = crate::sql::split_comment(sql);
    let text = text.trim().trim_end_matches(';').trim_end();
    let mut words = text.split_ascii_whitespace();
    let is = |word: Option<&str>, known: [&str; 2]| {
        word.is_none_or(|word| known.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    !text.is_empty()
        && is(words.next(), ["commit", "end"])
        && is(words.next(), ["work", "transaction"])
        && words.next().is_none()
}

fn message(out: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.push(tag);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn error(out: &mut Vec<u8>, code: &str) {
    let text = match code {
        "40001" => "could not serialize access due to read/write dependencies among transactions",
        "40P01" => "deadlock detected",
        _ => "the transaction was rolled back",
    };
    server::error_response(
        out,
        &[
            (b'S', "ERROR"),
            (b'V', "ERROR"),
            (b'C', code),
            (b'M', text),
            (b'D', "Reason: isobench record --inject."),
            (b'H', "The transaction might succeed if retried."),
        ],
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_pgwire::TransactionStatus::{Idle, InTransaction};

    fn injector(probability: f64) -> Injector {
        let mut injector = Injector::new(&Injection { code: "40001".to_owned(), probability });
        assert_eq!(injector.client(&query("BEGIN")), None);
        let mut answer = Vec::new();
        server::command_complete(&mut answer, "BEGIN");
        server::ready_for_query(&mut answer, InTransaction);
        assert_eq!(injector.server(&answer), None);
        injector
    }

    fn query(sql: &str) -> Vec<u8> {
        let mut out = Vec::new();
        message(&mut out, b'Q', &[sql.as_bytes(), &[0]]);
        out
    }

    fn extended(named: bool) -> Vec<u8> {
        let mut out = Vec::new();
        if !named {
            message(&mut out, b'P', &[b"\0COMMIT\0", &[0; 2]]);
        }
        let name: &[u8] = if named { b"\0c\0" } else { b"\0\0" };
        message(&mut out, b'B', &[name, &[0; 6]]);
        message(&mut out, b'D', &[b"P\0"]);
        message(&mut out, b'E', &[b"\0", &[0; 4]]);
        message(&mut out, b'S', &[]);
        out
    }

    fn tags(bytes: &[u8]) -> String {
        let mut buffer = FrameBuffer::new();
        let mut frames = buffer.feed(bytes);
        let mut tags = String::new();
        while let Some(frame) = frames.next().expect("messages") {
            tags.push(char::from(frame.tag));
        }
        tags
    }

    #[test]
    fn commits_are_recognised() {
        for sql in ["COMMIT", "commit;", " End work ; ", "COMMIT TRANSACTION", "COMMIT /* trace */"] {
            assert!(is_commit(sql.as_bytes()), "{sql}");
        }
        for sql in ["", "COMMIT AND CHAIN", "COMMIT PREPARED 'a'", "SELECT 1; COMMIT", "ROLLBACK", "WORK"] {
            assert!(!is_commit(sql.as_bytes()), "{sql}");
        }
    }

    #[test]
    fn a_simple_commit_becomes_a_rollback_and_an_error() {
        let mut injector = injector(1.0);
        assert_eq!(injector.client(&query("COMMIT")), Some(query("ROLLBACK")));
        let mut answer = Vec::new();
        server::command_complete(&mut answer, "ROLLBACK");
        server::ready_for_query(&mut answer, Idle);
        // In two pieces, so that a message is split.
        let first = injector.server(&answer[..3]).expect("held");
        assert_eq!(first, Replaced { bytes: Vec::new(), injected: false });
        let second = injector.server(&answer[3..]).expect("replaced");
        assert!(second.injected);
        assert_eq!(tags(&second.bytes), "EZ");
        // Outside of a block nothing is injected.
        assert_eq!(injector.client(&query("COMMIT")), None);
    }

    #[test]
    fn an_extended_commit_keeps_its_other_answers() {
        for named in [false, true] {
            let mut injector = injector(1.0);
            if named {
                let mut parse = Vec::new();
                message(&mut parse, b'P', &[b"c\0COMMIT\0", &[0; 2]]);
                message(&mut parse, b'S', &[]);
                assert_eq!(injector.client(&parse), None);
                let mut answer = Vec::new();
                server::parse_complete(&mut answer);
                server::ready_for_query(&mut answer, InTransaction);
                assert_eq!(injector.server(&answer), None);
            }
            let sent = injector.client(&extended(named)).expect("replaced");
            assert_eq!(tags(&sent), if named { "BDPBECS" } else { "PBDPBECS" });
            let mut answer = Vec::new();
            if !named {
                server::parse_complete(&mut answer);
            }
            server::bind_complete(&mut answer);
            server::no_data(&mut answer);
            server::parse_complete(&mut answer);
            server::bind_complete(&mut answer);
            server::command_complete(&mut answer, "ROLLBACK");
            server::close_complete(&mut answer);
            server::ready_for_query(&mut answer, Idle);
            let replaced = injector.server(&answer).expect("replaced");
            assert_eq!(tags(&replaced.bytes), if named { "2nEZ" } else { "12nEZ" });
        }
    }

    #[test]
    fn what_is_under_way_or_in_pieces_passes() {
        let mut one = injector(1.0);
        assert_eq!(one.client(&query("SELECT 1")), None);
        assert_eq!(one.client(&query("COMMIT")), None, "an answer is outstanding");
        let mut other = injector(1.0);
        let commit = query("COMMIT");
        assert_eq!(other.client(&commit[..4]), None);
        assert_eq!(other.client(&commit[4..]), None, "it came in pieces");
        assert_eq!(injector(0.0).client(&commit), None, "never by chance");
    }

    #[test]
    fn options_are_checked() {
        assert_eq!("40001:0.01".parse::<Injection>().map(|it| it.to_string()), Ok("40001:0.01".to_owned()));
        for wrong in ["40001", "4000:1", "40001:2", "40001:x", "4000a:1"] {
            assert!(wrong.parse::<Injection>().is_err(), "{wrong}");
        }
    }
}
