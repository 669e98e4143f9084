//! The handle of the observing thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use isobench_database::Database;

use crate::observed::{Observed, Sample};
use crate::options::{ObserverOptions, OpenSession};
use crate::part::Part;
use crate::processes::LocalServer;
use crate::watcher::{Step, WatchCommand, Watcher};

/// Observes the server from a thread of its own. Dropping it ends the thread and closes its
/// session.
///
/// One observer can serve any number of measured parts, one after the other, or in turns: a part is
/// made of windows, during which only its sessions act. At most one window is open at a time; if
/// another part's still is, it is closed first. No method fails or panics, and none waits longer
/// than [`ObserverOptions::patience`], whatever the server does: anything that couldn't be seen is
/// missing in the result ([`Observed`]) and has a note there.
#[derive(Debug)]
pub struct Observer {
    /// `None` only while it is dropped.
    commands: Option<Sender<WatchCommand>>,
    /// Disconnected when the thread ends.
    ended: Mutex<Receiver<()>>,
    latest: Arc<Mutex<Option<Sample>>>,
    /// The thread didn't answer in time, so a later answer would belong to a part that is over.
    given_up: AtomicBool,
    patience: Duration,
}

impl Observer {
    /// Starts the thread, which connects and finds out what it can read. Doesn't wait for it.
    pub fn start(
        connect: OpenSession,
        database: &Database,
        local: Option<LocalServer>,
        options: &ObserverOptions,
    ) -> Observer {
        let latest = Arc::new(Mutex::new(None));
        let (commands, received) = channel();
        let (end, ended) = channel::<()>();
        let watcher = Watcher::new(connect, database.clone(), local, options.clone(), Arc::clone(&latest));
        let thread = thread::Builder::new().name("observer".to_owned()).spawn(move || {
            watcher.run(&received);
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

    /// Starts a part, anew if there was one of that number: opens its first window, in which its
    /// clients connect and warm up. Must be called after all preparations, with their sessions
    /// closed, right before the clients connect: sessions connected now aren't the part's clients.
    /// Returns when the counters are read.
    pub fn before_sessions(&self, part: Part) {
        self.step(Step::BeforeSessions, part);
    }

    /// Begins a slice of the measured part, and opens a window if the part rests. Must be called
    /// right before it, with idle clients. Returns when the counters are read; samples are kept from
    /// then on.
    pub fn begin(&self, part: Part) {
        self.step(Step::Begin, part);
    }

    /// Ends the slice; the window stays open. Must be called right after it. Returns when the
    /// counters are read.
    pub fn end(&self, part: Part) {
        self.step(Step::End, part);
    }

    /// Closes the window: the part's sessions stay connected and idle, outside a transaction, until
    /// it is woken, so that others can act. Ends the slice if one is running, with the same readings,
    /// which costs half of [`end`](Self::end) and then this. Returns when the counters are read.
    pub fn rest(&self, part: Part) {
        self.step(Step::Rest, part);
    }

    /// Opens a window without a slice: the part's sessions may act, and end. Must be called before
    /// they are closed if the part rests. Returns when the counters are read, and, after the last
    /// slice of several parts, the memory of the server's processes, once for all parts.
    pub fn wake(&self, part: Part) {
        self.step(Step::Wake, part);
    }

    /// Waits until the server has ended the part's sessions, so that their counters are complete,
    /// and returns all observations of its slices and windows. Must be called after these sessions
    /// are closed. The part is over then.
    pub fn after_sessions(&self, part: Part) -> Observed {
        self.ask(|reply| WatchCommand::AfterSessions(part, reply)).unwrap_or_else(|| Observed {
            notes: vec![
                "the server wasn't observed to the end: its statistics didn't answer in time".to_owned(),
            ],
            ..Observed::default()
        })
    }

    /// The latest sample of the clients' sessions, for a live display; `None` before the first.
    pub fn latest(&self) -> Option<Sample> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn step(&self, step: Step, part: Part) {
        self.ask(|reply| WatchCommand::Step(step, part, reply));
    }

    /// Sends a command and waits for the answer; `None` if there is none in time.
    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> WatchCommand) -> Option<T> {
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
        // A thread that was given up may be hanging.
        let patience = if self.given_up.load(Ordering::Relaxed) { Duration::ZERO } else { self.patience };
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A thread that hangs in the network ends with the program.
        let (Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout)) =
            ended.recv_timeout(patience);
    }
}
