//! The handle of the thread that observes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use isobench_database::Database;

use crate::observed::{Observed, Sample};
use crate::options::{Connect, ObserverOptions};
use crate::processes::LocalServer;
use crate::watch::{Command, Watcher};

/// Observes the server from a thread of its own; dropping it ends the thread and closes its
/// session.
///
/// One observer can serve any number of measured parts, one after the other. No method fails or
/// panics, and none waits longer than [`ObserverOptions::patience`], whatever the server does: what
/// couldn't be seen is missing in what was [`Observed`], and has a note there.
#[derive(Debug)]
pub struct Observer {
    /// `None` only while it is dropped.
    commands: Option<Sender<Command>>,
    /// Disconnected when the thread ends.
    ended: Mutex<Receiver<()>>,
    latest: Arc<Mutex<Option<Sample>>>,
    /// The thread didn't answer in time, so what it may still say belongs to something that is
    /// over.
    given_up: AtomicBool,
    patience: Duration,
}

impl Observer {
    /// Starts the thread, which connects and finds out what can be read. Doesn't wait for it.
    pub fn start(
        connect: Connect,
        database: &Database,
        local: Option<LocalServer>,
        options: &ObserverOptions,
    ) -> Observer {
        let latest = Arc::new(Mutex::new(None));
        let (commands, orders) = channel();
        let (end, ended) = channel::<()>();
        let watcher = Watcher::new(connect, database.clone(), local, options.clone(), Arc::clone(&latest));
        let thread = thread::Builder::new().name("observer".to_owned()).spawn(move || {
            watcher.run(&orders);
            drop(end);
        });
        Observer {
            commands: Some(commands),
            ended: Mutex::new(ended),
            latest,
            given_up: AtomicBool::new(thread.is_err()),
            patience: options.patience,
        }
    }

    /// To be called when everything is made ready and the sessions that did it are closed, right
    /// before the clients connect: the comparison of counts begins here. Sessions that are
    /// connected now aren't the clients'. Returns when it is done.
    pub fn before_sessions(&self) {
        self.ask(Command::BeforeSessions);
    }

    /// To be called right before the measured part, with the clients idle. Returns when the
    /// counters are read; samples count from then on.
    pub fn begin(&self) {
        self.ask(Command::Begin);
    }

    /// To be called right after the measured part. Returns when the counters are read.
    pub fn end(&self) {
        self.ask(Command::End);
    }

    /// To be called when the clients' sessions are closed: waits until the server has ended them,
    /// so that their counters are complete, and returns all that was observed since
    /// [`begin`](Self::begin).
    pub fn after_sessions(&self) -> Observed {
        self.ask(Command::AfterSessions).unwrap_or_else(|| Observed {
            notes: vec![
                "the server wasn't observed to the end: its statistics didn't answer in time".to_owned(),
            ],
            ..Observed::default()
        })
    }

    /// The latest look at the clients' sessions, for a live display; `None` before the first.
    pub fn latest(&self) -> Option<Sample> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives a command and waits for the answer; `None` if there is none in time.
    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        if self.given_up.load(Ordering::Relaxed) {
            return None;
        }
        let (reply, answer) = channel();
        let sent = self.commands.as_ref().is_some_and(|commands| commands.send(command(reply)).is_ok());
        let answer = if sent { answer.recv_timeout(self.patience).ok() } else { None };
        if answer.is_none() {
            self.given_up.store(true, Ordering::Relaxed);
        }
        answer
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.commands = None;
        // A thread that was given up may well not end now.
        let patience = if self.given_up.load(Ordering::Relaxed) { Duration::ZERO } else { self.patience };
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A thread that hangs in the network ends with the program.
        let (Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout)) =
            ended.recv_timeout(patience);
    }
}
