//! What clients say while they run: shown to the user, and kept for the result document.

use std::sync::{Mutex, PoisonError};

use isobench_runner::Event;

use crate::sessions::advice;

/// The most messages of a round that are kept: a thousand clients lose their server in the same words.
const MOST_ERRORS: usize = 20;

/// Collects why clients ended before their time. Takes events from any thread.
pub struct Messages {
    aloud: bool,
    errors: Mutex<Vec<String>>,
}

impl Messages {
    /// Keeps errors silently, for a result that shows them; shows only what a script asks for with `debug()`. Notices of a
    /// benchmark script are the user's own doing and would drown the rest.
    pub fn kept() -> Messages {
        Messages { aloud: false, errors: Mutex::default() }
    }

    /// Shows everything at once, as pgbench does.
    pub fn aloud() -> Messages {
        Messages { aloud: true, errors: Mutex::default() }
    }

    /// Takes one event.
    pub fn take(&self, event: Event) {
        match event {
            Event::Aborted(text, code) => {
                let text = format!("{text}{}", advice(code));
                if self.aloud {
                    eprintln!("isobench: error: {text}");
                }
                let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
                if errors.len() < MOST_ERRORS {
                    errors.push(text);
                }
            }
            Event::Notice(text) if self.aloud => eprintln!("{text}"),
            Event::Notice(_) => {}
            Event::Debug(text) => eprintln!("{text}"),
        }
    }

    /// The errors, the first ones first.
    pub fn into_errors(self) -> Vec<String> {
        self.errors.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
