//! Messages of clients while they run: passed on for display, and kept for the result document.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use isobench_pgwire::SqlState;
use isobench_runner::{AbortCause, ClientEvent, Job, Unfinished, wording};
use isobench_script::Dialect;

use crate::remedy::remedy;

/// Maximum number of messages kept per round: if the server is lost, a thousand clients report it
/// in the same words.
const MOST_ERRORS: usize = 20;

/// Collects the reasons why clients ended early. Takes events from any thread.
pub struct Messages<'a> {
    aloud: bool,
    /// Shows a text to the user.
    say: &'a (dyn Fn(&str) + Sync),
    errors: Mutex<Vec<String>>,
    /// The codes of errors after which clients went on, as far as they are kept.
    passed: Mutex<Vec<SqlState>>,
    /// A client ended because its connection was lost or couldn't be made.
    lost: AtomicBool,
}

impl<'a> Messages<'a> {
    /// Keeps errors for a result that shows them, without printing; prints only the output of
    /// `debug()`. Notices from a benchmark script are the user's own and would hide everything
    /// else.
    pub fn kept(say: &'a (dyn Fn(&str) + Sync)) -> Messages<'a> {
        Messages::new(false, say)
    }

    /// Prints every message at once, as pgbench does.
    pub fn aloud(say: &'a (dyn Fn(&str) + Sync)) -> Messages<'a> {
        Messages::new(true, say)
    }

    fn new(aloud: bool, say: &'a (dyn Fn(&str) + Sync)) -> Messages<'a> {
        let lost = AtomicBool::new(false);
        Messages { aloud, say, errors: Mutex::default(), passed: Mutex::default(), lost }
    }

    /// Takes one event.
    pub fn take(&self, event: &ClientEvent, job: &Job) {
        let text = texts(event, job).join("\n");
        match event {
            ClientEvent::Aborted(place, cause) => {
                if matches!(cause, AbortCause::Lost(..) | AbortCause::Connect(_)) {
                    self.lost.store(true, Ordering::Relaxed);
                }
                let at = job.place(place.script, place.command);
                let at = if at.is_empty() { at } else { format!("\n  at {at}") };
                let text = format!("{text}{at}{}", remedy(cause, job, *place));
                if self.aloud {
                    (self.say)(&format!("isobench: error: {text}"));
                }
                self.keep(text);
            }
            ClientEvent::Abandoned(place, failed) if !self.aloud && self.is_new(failed.error.code) => {
                let report = failed.error.report(failed.text.as_deref());
                let code = failed.error.code;
                self.keep(format!(
                    "{report} (SQLSTATE {code})\n  at {}",
                    job.place(place.script, place.command)
                ));
            }
            ClientEvent::LostSession(place, why) => {
                self.lost.store(true, Ordering::Relaxed);
                // Where something happens to the server, the sessions that it costs are counted.
                if job.spec().keeps_attempts {
                    return;
                }
                let client = place.client;
                self.keep(format!("client {client} lost its session and opens another one ({why})"));
            }
            ClientEvent::Debug(_) => (self.say)(&text),
            // Every error has already been shown.
            ClientEvent::Abandoned(..) if job.spec().detail.errors => {}
            _ if self.aloud => (self.say)(&text),
            _ => {}
        }
    }

    /// Keeps an error of a client on another machine.
    pub fn note_error(&self, text: String) {
        if self.aloud {
            (self.say)(&format!("isobench: error: {text}"));
        }
        self.keep(text);
    }

    /// Notes that a client on another machine has lost its connection.
    pub fn note_loss(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    fn keep(&self, text: String) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() < MOST_ERRORS {
            errors.push(text);
        }
    }

    /// Returns whether no error of this code, after which its client went on, has been kept.
    fn is_new(&self, code: SqlState) -> bool {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let new = !passed.contains(&code);
        if new {
            passed.push(code);
        }
        new
    }

    /// Returns whether a client's connection was lost or couldn't be made.
    pub fn has_lost_connections(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns the errors so far, in chronological order.
    pub fn errors(&self) -> Vec<String> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the messages of an event: pgbench's words, or isobench's own where pgbench has none.
fn texts(event: &ClientEvent, job: &Job) -> Vec<String> {
    let why = match event {
        ClientEvent::Aborted(_, AbortCause::Lost(why, _)) => Some(format!("the connection was lost ({why})")),
        ClientEvent::Aborted(_, AbortCause::Unfinished(Unfinished::Block)) => {
            Some("end the script with COMMIT or ROLLBACK".to_owned())
        }
        ClientEvent::Aborted(_, AbortCause::Copy) => Some("load tables with init, or with psql".to_owned()),
        ClientEvent::Abandoned(place, failed) => Some(wording::failure(*place, failed)),
        _ => None,
    };
    wording::messages(event, job, Dialect::default()).into_iter().map(|(_, text)| text).chain(why).collect()
}
