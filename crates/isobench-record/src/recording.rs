//! The thread that records: bytes from the queue become records of a capture.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

use isobench_capture::{Closed, End, Header, Record, Unseen, Writer};

use crate::decode::{Decoder, Recorded, Seen};
use crate::policy::{Policy, hide_settings};
use crate::queue::{Batch, Event, Queue, What};
use crate::relay::Note;

/// What was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sessions that began.
    pub sessions: u64,
    /// Statements, and simple queries of several.
    pub statements: u64,
    /// Things that passed and aren't recorded.
    pub unseen: u64,
    /// Why recording ended before the application did, if so.
    pub why: Option<String>,
}

/// The capture that is being written.
struct Capture {
    writer: Writer<BufWriter<File>>,
    policy: Arc<Policy>,
    sessions: HashMap<u64, Decoder>,
    summary: Summary,
    last: u64,
    seen: Vec<Seen>,
}

/// Ends the recording for the relay, however this thread ends.
struct Stop<'a>(&'a Queue);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Records until the queue is closed, or no more can be recorded.
pub(crate) fn record(file: File, header: &Header, policy: Policy, queue: &Queue, note: &Note) -> Summary {
    let stop = Stop(queue);
    let mut summary = Summary::default();
    let began = Writer::begin(BufWriter::with_capacity(1 << 18, file), header);
    let outcome = began.and_then(|writer| {
        let policy = Arc::new(policy);
        let mut capture = Capture {
            writer,
            policy,
            sessions: HashMap::new(),
            summary: Summary::default(),
            last: 0,
            seen: Vec::new(),
        };
        let outcome = capture.run(queue);
        summary = capture.summary.clone();
        let ended = outcome.and_then(|why| {
            summary.why = why.map(str::to_owned);
            capture.end(why)
        });
        if ended.is_err() {
            // What waits in its buffer can't be written either.
            drop(capture.writer.into_inner().into_parts());
        }
        ended
    });
    if let Err(error) = outcome {
        summary.why = Some(format!("the capture couldn't be written: {error}"));
    }
    drop(stop);
    if let Some(why) = &summary.why {
        note(&format!("recording stopped: {why}; the application isn't affected"));
    }
    summary
}

impl Capture {
    /// Records what comes out of the queue. Returns why it ended early, if so.
    fn run(&mut self, queue: &Queue) -> io::Result<Option<&'static str>> {
        let mut batch = Batch::default();
        loop {
            match queue.take(&mut batch) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(why) => return Ok(Some(why)),
            }
            self.take(&batch)?;
            self.writer.flush()?;
            batch.clear();
        }
    }

    fn take(&mut self, batch: &Batch) -> io::Result<()> {
        let mut at = 0;
        for event in &batch.events {
            let length = match event.what {
                What::Client(length) | What::Server(length) => length,
                _ => 0,
            };
            self.event(event, &batch.bytes[at..at + length])?;
            at += length;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, bytes: &[u8]) -> io::Result<()> {
        let Event { session, at, ref what } = *event;
        self.last = at;
        match what {
            What::Opened(opened, reading) => {
                self.summary.sessions += 1;
                let mut opened = (**opened).clone();
                hide_settings(&mut opened.parameters);
                self.writer.record(&Record::Opened(opened))?;
                self.sessions.insert(session, Decoder::new(session, Arc::clone(&self.policy), *reading));
            }
            What::Client(_) => {
                let outcome = self.sessions.get_mut(&session).map(|decoder| decoder.client(at, bytes));
                self.outcome(session, at, outcome.unwrap_or(Ok(())))?;
            }
            What::Server(_) => {
                let seen = &mut self.seen;
                let outcome = self.sessions.get_mut(&session).map(|decoder| decoder.server(at, bytes, seen));
                self.write_seen(session)?;
                self.outcome(session, at, outcome.unwrap_or(Ok(())))?;
            }
            What::Injected => {
                if let Some(decoder) = self.sessions.get_mut(&session) {
                    decoder.inject();
                }
            }
            What::Unseen(what) => {
                self.unseen(session, at, what.clone())?;
                self.sessions.remove(&session);
            }
            What::Closed(why) => self.closed(session, at, why.as_deref())?,
        }
        Ok(())
    }

    /// A session that isn't understood isn't recorded any further.
    fn outcome(&mut self, session: u64, at: u64, outcome: Result<(), String>) -> io::Result<()> {
        let Err(why) = outcome else { return Ok(()) };
        if let Some(mut decoder) = self.sessions.remove(&session) {
            decoder.end(&mut self.seen);
            self.write_seen(session)?;
        }
        self.unseen(session, at, format!("the rest of the session: {why}"))
    }

    fn closed(&mut self, session: u64, at: u64, why: Option<&str>) -> io::Result<()> {
        let mut why = why.map(str::to_owned);
        if let Some(mut decoder) = self.sessions.remove(&session) {
            decoder.end(&mut self.seen);
            self.write_seen(session)?;
            if let Some(code) = &decoder.fatal {
                why = Some(format!("the server ended it with {code}"));
            } else if decoder.terminated {
                why = None;
            } else if why.is_none() {
                why = Some("the client closed the connection".to_owned());
            }
        }
        self.writer.record(&Record::Closed(Closed { session, at, why }))
    }

    fn unseen(&mut self, session: u64, at: u64, what: String) -> io::Result<()> {
        self.summary.unseen += 1;
        self.writer.record(&Record::Unseen(Unseen { session, at, what }))
    }

    fn write_seen(&mut self, session: u64) -> io::Result<()> {
        let mut seen = std::mem::take(&mut self.seen);
        for one in seen.drain(..) {
            match one {
                Seen::Statement(recorded) => self.statement(*recorded)?,
                Seen::Unseen { at, what } => self.unseen(session, at, what)?,
            }
        }
        self.seen = seen;
        Ok(())
    }

    fn statement(&mut self, recorded: Recorded) -> io::Result<()> {
        let Recorded { mut statement, sql, columns, .. } = recorded;
        self.summary.statements += 1;
        statement.text = self.writer.text(&sql)?;
        for (answer, columns) in statement.answers.iter_mut().zip(columns) {
            answer.columns = columns.map(|columns| self.writer.columns(&columns)).transpose()?;
        }
        self.writer.record(&Record::Statement(statement))
    }

    fn end(&mut self, why: Option<&str>) -> io::Result<()> {
        let mut sessions: Vec<u64> = self.sessions.keys().copied().collect();
        sessions.sort_unstable();
        for session in sessions {
            self.closed(session, self.last, Some("recording ended"))?;
        }
        self.writer.record(&Record::Ended(End { at: self.last, why: why.map(str::to_owned) }))?;
        self.writer.flush()
    }
}
