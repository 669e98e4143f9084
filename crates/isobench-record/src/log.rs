//! Captures from the server's log: csvlog and jsonlog, with `log_statement = all` or
//! `log_min_duration_statement = 0`. They have texts, parameters, times and errors, but no results.
//!
//! Source: PostgreSQL: Error Reporting and Logging; `src/backend/utils/error/{csvlog,jsonlog}.c`.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read};
use std::time::{Duration, SystemTime};

use isobench_capture::{
    Answer, Closed, Datum, End, ErrorAnswer, FORMAT, Header, Opened, Record, Source, Statement, Unseen,
    Writer,
};
use serde_json::Value;

use crate::policy::{Kept, Policy};
use crate::reading::Reading;
use crate::recording::Summary;

/// Why a log can't be converted.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Reading or writing failed.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// The file is no log of these formats, or is damaged.
    #[error("{file}, line {line}: {why}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// There is no statement in the logs.
    #[error("no statement is logged; set log_statement = all, or log_min_duration_statement = 0")]
    Nothing,
}

/// An entry of a log.
#[derive(Debug, Default, PartialEq)]
struct Entry {
    /// Microseconds since 1970, in the log's own time zone.
    at: u64,
    user: String,
    database: String,
    application: String,
    session: String,
    severity: String,
    code: String,
    message: String,
    detail: String,
    query: String,
}

/// A session of the log.
struct Session {
    number: u64,
    /// The last statement, which later entries may complete.
    open: Option<Open>,
}

/// A statement that later entries may complete.
struct Open {
    sql: String,
    text: String,
    /// It may hold a password.
    secret: bool,
    statement: Statement,
}

/// The capture that is being made.
struct Conversion<W: io::Write> {
    writer: Writer<W>,
    policy: Policy,
    /// When the first entry was logged.
    began: u64,
    sessions: HashMap<String, Session>,
    last: u64,
    summary: Summary,
}

/// Makes a capture from logs, in the order given; each has a name for messages.
///
/// # Errors
/// A log can't be read or isn't one, nothing is in it, or the capture can't be written.
pub fn from_logs(
    logs: Vec<(String, File)>,
    capture: File,
    redact: bool,
    version: &str,
) -> Result<Summary, LogError> {
    let unwritable = |error| LogError::Io("the capture".to_owned(), error);
    let policy = Policy::new(redact)
        .ok_or_else(|| unwritable(io::Error::other("the system has no random numbers")))?;
    let mut conversion = None;
    let mut output = Some((capture, policy));
    for (name, file) in logs {
        entries(&name, file, &mut |entry| {
            if conversion.is_none()
                && let Some((capture, policy)) = output.take()
            {
                let began = SystemTime::UNIX_EPOCH + Duration::from_micros(entry.at);
                let header = Header {
                    isobench_capture: FORMAT,
                    isobench: version.to_owned(),
                    began: humantime::format_rfc3339_micros(began).to_string(),
                    source: Source::ServerLog,
                    redacted: redact,
                };
                let writer = Writer::begin(BufWriter::new(capture), &header).map_err(unwritable)?;
                conversion = Some(Conversion {
                    writer,
                    policy,
                    began: entry.at,
                    sessions: HashMap::new(),
                    last: 0,
                    summary: Summary::default(),
                });
            }
            match &mut conversion {
                Some(conversion) => conversion.entry(&entry).map_err(unwritable),
                None => Ok(()),
            }
        })?;
    }
    let mut conversion = conversion.ok_or(LogError::Nothing)?;
    conversion.end().map_err(unwritable)?;
    if conversion.summary.statements == 0 { Err(LogError::Nothing) } else { Ok(conversion.summary) }
}

/// Takes what is done with an entry.
type Take<'a> = &'a mut dyn FnMut(Entry) -> Result<(), LogError>;

/// Reads the entries of a log, in either format.
fn entries(name: &str, file: impl Read, take: Take<'_>) -> Result<(), LogError> {
    let mut input = BufReader::new(file);
    let unreadable = |error| LogError::Io(name.to_owned(), error);
    let start = input.fill_buf().map_err(unreadable)?;
    if start.first() == Some(&b'{') {
        json_entries(name, input, take)
    } else {
        csv_entries(name, input, take)
    }
}

fn json_entries(name: &str, input: impl io::BufRead, take: Take<'_>) -> Result<(), LogError> {
    for (number, line) in (1..).zip(input.split(b'\n')) {
        let line = line.map_err(|error| LogError::Io(name.to_owned(), error))?;
        if line.is_empty() {
            continue;
        }
        let wrong = |why: String| LogError::Line { file: name.to_owned(), line: number, why };
        let value: Value = match serde_json::from_slice(&line) {
            Ok(value) => value,
            // The server is still writing it.
            Err(error) if error.is_eof() => return Ok(()),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let at = time(&text("timestamp"))
            .ok_or_else(|| wrong("no member \"timestamp\" with a time".to_owned()))?;
        take(Entry {
            at,
            user: text("user"),
            database: text("dbname"),
            application: text("application_name"),
            session: text("session_id"),
            severity: text("error_severity"),
            code: text("state_code"),
            message: text("message"),
            detail: text("detail"),
            query: text("statement"),
        })?;
    }
    Ok(())
}

fn csv_entries(name: &str, input: impl Read, take: Take<'_>) -> Result<(), LogError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut row = csv::ByteRecord::new();
    loop {
        let line = reader.position().line();
        let wrong = |why: String| LogError::Line { file: name.to_owned(), line, why };
        match reader.read_byte_record(&mut row) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return Err(wrong(error.to_string())),
        }
        let text = |index: usize| String::from_utf8_lossy(row.get(index).unwrap_or_default()).into_owned();
        if row.len() < 23 {
            if reader.is_done() {
                // The server is still writing it.
                return Ok(());
            }
            return Err(wrong(format!("{} columns; csvlog has at least 23", row.len())));
        }
        let at = time(&text(0)).ok_or_else(|| wrong(format!("\"{}\" is no time", text(0))))?;
        take(Entry {
            at,
            user: text(1),
            database: text(2),
            application: text(22),
            session: text(5),
            severity: text(11),
            code: text(12),
            message: text(13),
            detail: text(14),
            query: text(19),
        })?;
    }
}

/// The time of an entry, such as `2026-11-26 10:00:00.123 UTC`, in microseconds; the zone is ignored.
fn time(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(' ')?;
    let clock = rest.split(' ').next()?;
    let at = humantime::parse_rfc3339_weak(&format!("{date} {clock}")).ok()?;
    u64::try_from(at.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_micros()).ok()
}

/// What a message logs.
#[derive(Debug, PartialEq)]
enum Logged<'a> {
    /// A statement, and its duration in microseconds, if known.
    Statement { sql: &'a str, took: Option<u64>, continued: bool },
    /// The duration of the statement before, in microseconds.
    Duration(u64),
    /// The session has ended.
    Disconnection,
    /// A step of the extended protocol other than the execution.
    Other,
}

fn logged(message: &str) -> Logged<'_> {
    let mut rest = message;
    let mut took = None;
    if let Some(after) = message.strip_prefix("duration: ")
        && let Some((milliseconds, after)) = after.split_once(" ms")
        && let Ok(milliseconds) = milliseconds.parse::<f64>()
    {
        let microseconds = Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default().as_micros();
        let microseconds = u64::try_from(microseconds).unwrap_or(u64::MAX);
        if after.is_empty() {
            return Logged::Duration(microseconds);
        }
        took = Some(microseconds);
        rest = after.trim_start();
    }
    if let Some(sql) = rest.strip_prefix("statement: ") {
        return Logged::Statement { sql, took, continued: false };
    }
    if let Some(execute) = rest.strip_prefix("execute ") {
        let (fetch, execute) = match execute.strip_prefix("fetch from ") {
            Some(execute) => (true, execute),
            None => (false, execute),
        };
        if let Some((_, sql)) = execute.split_once(": ") {
            return Logged::Statement { sql, took, continued: fetch };
        }
    }
    if rest.starts_with("disconnection: ") { Logged::Disconnection } else { Logged::Other }
}

/// The parameters in a detail: `parameters: $1 = 'it''s', $2 = NULL`.
fn parameters(detail: &str) -> Vec<Option<String>> {
    let Some(list) = detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "))
    else {
        return Vec::new();
    };
    let mut parameters = Vec::new();
    let mut rest = list;
    while let Some((_, value)) = rest.split_once(" = ") {
        let Some(quoted) = value.strip_prefix('\'') else {
            parameters.push(None);
            rest = value.strip_prefix("NULL").unwrap_or_default();
            continue;
        };
        let mut text = String::new();
        let mut left = quoted;
        while let Some((part, after)) = left.split_once('\'') {
            text += part;
            left = after;
            match left.strip_prefix('\'') {
                Some(after) => {
                    text.push('\'');
                    left = after;
                }
                None => break,
            }
        }
        parameters.push(Some(text));
        rest = left;
    }
    parameters
}

impl<W: io::Write> Conversion<W> {
    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        if entry.session.is_empty() || entry.database.is_empty() {
            return Ok(());
        }
        let at = entry.at.saturating_sub(self.began);
        self.last = self.last.max(at);
        if !self.sessions.contains_key(&entry.session) {
            self.open(entry, at)?;
        }
        match (entry.severity.as_str(), logged(&entry.message)) {
            ("LOG", Logged::Statement { sql, took, continued }) => {
                self.finish(&entry.session)?;
                let Kept { text, comment, secret } = self.policy.sql(sql.as_bytes(), Reading::LOGGED);
                let parameters = self.parameters(&entry.detail, secret);
                let statement = Statement {
                    at: at.saturating_sub(took.unwrap_or(0)),
                    took: took.unwrap_or(0),
                    comment,
                    parameters,
                    continued,
                    ..Statement::default()
                };
                self.keep(&entry.session, Open { sql: sql.to_owned(), text, secret, statement });
            }
            ("LOG", Logged::Duration(took)) => {
                if let Some(open) = self.sessions.get_mut(&entry.session).and_then(|one| one.open.as_mut()) {
                    open.statement.took = took;
                }
            }
            ("LOG", Logged::Disconnection) => self.close(&entry.session, at, None)?,
            ("ERROR", _) => self.error(entry, at)?,
            ("FATAL" | "PANIC", _) => {
                let why = format!("the server ended it with {}", entry.code);
                self.close(&entry.session, at, Some(why))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn parameters(&self, detail: &str, secret: bool) -> Vec<Option<Datum>> {
        let value = |value: Option<String>| Some(self.policy.value(0, 0, value?.as_bytes(), secret));
        parameters(detail).into_iter().map(value).collect()
    }

    fn open(&mut self, entry: &Entry, at: u64) -> io::Result<()> {
        let number = self.summary.sessions + 1;
        self.summary.sessions = number;
        let parameters =
            [("user", &entry.user), ("database", &entry.database), ("application_name", &entry.application)];
        let parameters: BTreeMap<String, String> = parameters
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect();
        self.sessions.insert(entry.session.clone(), Session { number, open: None });
        self.writer.record(&Record::Opened(Opened { session: number, at, parameters, ..Opened::default() }))
    }

    fn keep(&mut self, session: &str, open: Open) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.open = Some(open);
        }
    }

    /// An error, of the statement before or of one that isn't logged otherwise.
    fn error(&mut self, entry: &Entry, at: u64) -> io::Result<()> {
        let answer = |conversion: &Self, secret: bool| {
            let message = conversion.policy.message(entry.message.as_bytes(), secret);
            let error = ErrorAnswer { code: entry.code.clone(), message, injected: false };
            Answer { error: Some(error), ..Answer::default() }
        };
        let open = self.sessions.get(&entry.session).and_then(|session| session.open.as_ref());
        let fails = open.filter(|open| {
            open.statement.answers.is_empty()
                && open.statement.took == 0
                && (entry.query.is_empty() || open.sql == entry.query)
        });
        if let Some(secret) = fails.map(|open| open.secret) {
            let answer = answer(self, secret);
            if let Some(open) =
                self.sessions.get_mut(&entry.session).and_then(|session| session.open.as_mut())
            {
                open.statement.took = at.saturating_sub(open.statement.at);
                open.statement.answers.push(answer);
            }
            return Ok(());
        }
        self.finish(&entry.session)?;
        if entry.query.is_empty() {
            let Some(session) = self.sessions.get(&entry.session) else { return Ok(()) };
            let what = format!("an error of a statement that isn't logged ({})", entry.code);
            self.summary.unseen += 1;
            return self.writer.record(&Record::Unseen(Unseen { session: session.number, at, what }));
        }
        let Kept { text, comment, secret } = self.policy.sql(entry.query.as_bytes(), Reading::LOGGED);
        let answers = vec![answer(self, secret)];
        let statement = Statement { at, comment, answers, ..Statement::default() };
        self.keep(&entry.session, Open { sql: entry.query.clone(), text, secret, statement });
        Ok(())
    }

    /// Writes the statement that is open in a session.
    fn finish(&mut self, session: &str) -> io::Result<()> {
        let Some(session) = self.sessions.get_mut(session) else { return Ok(()) };
        let Some(Open { text, mut statement, .. }) = session.open.take() else { return Ok(()) };
        statement.session = session.number;
        statement.text = self.writer.text(&text)?;
        self.summary.statements += 1;
        self.writer.record(&Record::Statement(statement))
    }

    fn close(&mut self, session: &str, at: u64, why: Option<String>) -> io::Result<()> {
        self.finish(session)?;
        let Some(session) = self.sessions.remove(session) else { return Ok(()) };
        self.writer.record(&Record::Closed(Closed { session: session.number, at, why }))
    }

    fn end(&mut self) -> io::Result<()> {
        let mut sessions: Vec<(u64, String)> =
            self.sessions.iter().map(|(name, session)| (session.number, name.clone())).collect();
        sessions.sort();
        for (_, session) in sessions {
            self.close(&session, self.last, Some("the log ends".to_owned()))?;
        }
        self.writer.record(&Record::Ended(End { at: self.last, why: None }))?;
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_capture::Reader;

    /// As PostgreSQL 15 wrote them.
    const CSV: &str = r#"2026-11-26 10:00:00.000 UTC,"ada","shop",7,"[local]",65a.7,1,"idle",2026-11-26 09:59:59 UTC,3/2,0,LOG,00000,"statement: BEGIN",,,,,,,,,"psql","client backend",,0
2026-11-26 10:00:00.010 UTC,"ada","shop",7,"[local]",65a.7,2,"BEGIN",2026-11-26 09:59:59 UTC,3/2,0,LOG,00000,"execute <unnamed>: SELECT ""a""
FROM t WHERE b = $1 AND c = $2","parameters: $1 = 'it''s, $2 = x', $2 = NULL",,,,,,,,"psql","client backend",,0
2026-11-26 10:00:00.020 UTC,"ada","shop",7,"[local]",65a.7,3,"SELECT",2026-11-26 09:59:59 UTC,3/2,0,LOG,00000,"duration: 1.500 ms",,,,,,,,,"psql","client backend",,0
2026-11-26 10:00:00.030 UTC,"ada","shop",7,"[local]",65a.7,4,"UPDATE",2026-11-26 09:59:59 UTC,3/2,9,ERROR,40001,"could not serialize access",,,,,,"UPDATE t SET b = 'x'",1,,"psql","client backend",,0
2026-11-26 10:00:01.000 UTC,"ada","shop",7,"[local]",65a.7,5,"idle",2026-11-26 09:59:59 UTC,3/2,0,LOG,00000,"disconnection: session time: 0:00:02",,,,,,,,,"psql","client backend",,0
"#;

    const JSON: &str = r#"{"timestamp":"2026-11-26 10:00:00.000 UTC","user":"ada","dbname":"shop","session_id":"1.2","error_severity":"LOG","message":"duration: 2.000 ms  execute s1: SELECT $1","detail":"Parameters: $1 = '7'"}
{"timestamp":"2026-11-26 10:00:00.001 UTC","user":"ada","dbname":"shop","session_id":"1.2","error_severity":"LOG","message":"duration: 0.100 ms  bind s1: SELECT $1"}
{"timestamp":"2026-11-26 10:00:00.002 UTC","us"#;

    fn converted(log: &str, redact: bool) -> Result<(Summary, Vec<Record>, Vec<String>), LogError> {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("log"), folder.path().join("capture"));
        std::fs::write(&from, log).expect("a file");
        let file = File::open(&from).expect("a file");
        let capture = File::create(&to).expect("a file");
        let summary = from_logs(vec![("log".to_owned(), file)], capture, redact, "1")?;
        let mut reader = Reader::begin(BufReader::new(File::open(&to).expect("a file"))).expect("a capture");
        assert_eq!(
            (reader.header().source, reader.header().began.as_str()),
            (Source::ServerLog, "2026-11-26T10:00:00.000000Z")
        );
        let (mut records, mut texts) = (Vec::new(), Vec::new());
        while let Some(record) = reader.next_record().expect("a record") {
            if let Record::Statement(statement) = &record {
                texts.push(reader.text(statement.text).to_owned());
            }
            records.push(record);
        }
        assert!(reader.ended());
        Ok((summary, records, texts))
    }

    #[test]
    fn a_csvlog_becomes_a_capture() {
        let (summary, records, texts) = converted(CSV, false).expect("a capture");
        assert_eq!((summary.sessions, summary.statements, summary.unseen), (1, 3, 0));
        assert_eq!(texts, ["BEGIN", "SELECT \"a\"\nFROM t WHERE b = $1 AND c = $2", "UPDATE t SET b = 'x'"]);
        let statements: Vec<&Statement> = records
            .iter()
            .filter_map(
                |record| if let Record::Statement(statement) = record { Some(statement) } else { None },
            )
            .collect();
        let value = Datum::Text("it's, $2 = x".to_owned());
        assert_eq!(statements[1].parameters, [Some(value), None]);
        assert_eq!((statements[1].at, statements[1].took), (10_000, 1_500));
        assert_eq!(statements[2].answers[0].error.as_ref().map(|error| error.code.as_str()), Some("40001"));
        assert!(matches!(&records[4], Record::Closed(Closed { at: 1_000_000, why: None, .. })));
        let Record::Opened(opened) = &records[0] else { panic!("opened") };
        assert_eq!(
            (opened.parameters["user"].as_str(), opened.parameters["database"].as_str()),
            ("ada", "shop")
        );
    }

    #[test]
    fn a_jsonlog_is_read_up_to_its_end() {
        let (summary, records, texts) = converted(JSON, true).expect("a capture");
        assert_eq!((summary.statements, texts.as_slice()), (1, &["SELECT $1".to_owned()][..]));
        let Record::Statement(statement) = &records[1] else { panic!("a statement") };
        assert_eq!(
            (statement.took, &statement.parameters),
            (2_000, &vec![Some(Datum::Text("7".to_owned()))])
        );
    }

    #[test]
    fn a_redacted_log_has_no_text() {
        let (_, records, texts) = converted(CSV, true).expect("a capture");
        let all = format!("{records:?}{texts:?}");
        assert!(!all.contains("it's") && !all.contains("could not") && all.contains("40001"), "{all}");
    }

    /// A statement with a password that fails, and one whose parameter is one.
    #[test]
    fn passwords_of_a_log_are_never_kept() {
        let log = r#"2026-11-26 10:00:00.000 UTC,"ada","shop",7,"[local]",65a.7,1,"ALTER",2026-11-26 09:59:59 UTC,3/2,0,ERROR,42601,"unterminated at or near ""'TOPSECRET""",,,,,,"ALTER /* x */ USER a PASSWORD 'TOPSECRET",1,,"psql","client backend",,0
2026-11-26 10:00:00.010 UTC,"ada","shop",7,"[local]",65a.7,2,"SELECT",2026-11-26 09:59:59 UTC,3/2,0,LOG,00000,"execute <unnamed>: SELECT dblink_exec($1)","parameters: $1 = 'TOPSECRET'",,,,,,,,"psql","client backend",,0
2026-11-26 10:00:00.030 UTC,"ada","shop",7,"[local]",65a.7,3,"SELECT",2026-11-26 09:59:59 UTC,3/2,0,ERROR,08001,"could not connect: TOPSECRET",,,,,,"SELECT dblink_exec($1)",1,,"psql","client backend",,0
2026-11-26 10:00:00.040 UTC,"ada","shop",7,"[local]",65a.7,4,"DO",2026-11-26 09:59:59 UTC,3/2,0,ERROR,P0001,"bad: TOPSECRET","TOPSECRET",,,,"TOPSECRET","DO $$ TOPSECRET $$",1,,"psql","client backend",,0
"#;
        for redact in [false, true] {
            let (summary, records, texts) = converted(log, redact).expect("a capture");
            let all = format!("{records:?}{texts:?}");
            assert!(summary.statements == 3 && all.contains("08001") && !all.contains("TOPSECRET"), "{all}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        for (log, why) in [
            ("", "no statement is logged"),
            ("2026-11-26 10:00:00.000 UTC [7] LOG:  statement: BEGIN\nmore\n", "csvlog has at least 23"),
            ("{\"a\":1}\n", "timestamp"),
        ] {
            let error = converted(log, false).expect_err("refused").to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn messages_are_understood() {
        for (message, expected) in [
            ("statement: A", Logged::Statement { sql: "A", took: None, continued: false }),
            ("execute fetch from c/s: A", Logged::Statement { sql: "A", took: None, continued: true }),
            (
                "duration: 0.25 ms  statement: A",
                Logged::Statement { sql: "A", took: Some(250), continued: false },
            ),
            ("duration: 3 ms", Logged::Duration(3_000)),
            ("duration: 3 ms  parse s: A", Logged::Other),
            ("connection authorized", Logged::Other),
        ] {
            assert_eq!(logged(message), expected);
        }
    }
}
