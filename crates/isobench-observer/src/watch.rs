//! The thread: it does what the handle commands, and takes samples in between.
//!
//! Not here: the samples (`sampler`), and what is asked of the server (`activity`, `locks`,
//! `counters`).

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use isobench_database::Database;

use crate::activity;
use crate::compare::ServerCounts;
use crate::counters::{Reading, Unreadable};
use crate::leaving;
use crate::observed::{Observed, Sample, ServerProcesses};
use crate::options::{Connect, ObserverOptions};
use crate::processes::{LocalServer, Processes};
use crate::sampler::Sampler;
use crate::server::{Server, Sight};
use crate::session::ObserverSession;

/// What the handle asks for, and where the answer goes.
#[derive(Debug)]
pub enum Command {
    /// [`crate::Observer::before_sessions`].
    BeforeSessions(Sender<()>),
    /// [`crate::Observer::begin`].
    Begin(Sender<()>),
    /// [`crate::Observer::end`].
    End(Sender<()>),
    /// [`crate::Observer::after_sessions`].
    AfterSessions(Sender<Observed>),
}

/// A thread with nothing to do waits for commands only; so long at a time.
const IDLE: Duration = Duration::from_hours(1);

/// The thread's state.
pub struct Watcher {
    connect: Connect,
    database: Database,
    local: Option<LocalServer>,
    options: ObserverOptions,
    latest: Arc<Mutex<Option<Sample>>>,
    session: ObserverSession,
    server: Server,
    processes: Option<Processes>,
    /// Notes that stay true.
    standing: Vec<String>,
    part: Part,
}

/// What belongs to one measured part and its sessions.
#[derive(Default)]
struct Part {
    /// Sessions are there to be looked at.
    open: bool,
    /// Who was connected before the clients.
    others: Vec<u32>,
    /// The clients that were connected at the end; `None` if that couldn't be seen.
    clients: Option<Vec<u32>>,
    since: Option<Instant>,
    before: Reading,
    own_before: (u64, u64),
    begin: Reading,
    end: Reading,
    cpu: Option<f64>,
    used: Option<ServerProcesses>,
    sampler: Sampler,
    notes: Vec<String>,
}

impl Watcher {
    /// A thread's state before it has connected.
    pub fn new(
        connect: Connect,
        database: Database,
        local: Option<LocalServer>,
        options: ObserverOptions,
        latest: Arc<Mutex<Option<Sample>>>,
    ) -> Self {
        Watcher {
            connect,
            database,
            local,
            options,
            latest,
            session: ObserverSession::none(""),
            server: Server::default(),
            processes: None,
            standing: Vec::new(),
            part: Part::default(),
        }
    }

    /// Works until the handle is dropped.
    pub fn run(mut self, orders: &Receiver<Command>) {
        self.open();
        loop {
            let wait = match self.part.sampler.due() {
                Some(due) => due.saturating_duration_since(Instant::now()),
                None => IDLE,
            };
            match orders.recv_timeout(wait) {
                Ok(command) => self.obey(command),
                Err(RecvTimeoutError::Timeout) => self.sample(),
                Err(RecvTimeoutError::Disconnected) => return self.session.close(),
            }
        }
    }

    fn obey(&mut self, command: Command) {
        // Nobody may be waiting any more for an answer that comes late.
        match command {
            Command::BeforeSessions(reply) => {
                self.before_sessions();
                let _ = reply.send(());
            }
            Command::Begin(reply) => {
                self.begin();
                let _ = reply.send(());
            }
            Command::End(reply) => {
                self.end();
                let _ = reply.send(());
            }
            Command::AfterSessions(reply) => {
                let observed = self.after_sessions();
                let _ = reply.send(observed);
            }
        }
    }

    /// Connects, and finds out what can be seen.
    fn open(&mut self) {
        self.standing.clear();
        self.server = Server::default();
        self.processes = None;
        if let Some(why) = Server::unknown(&self.database) {
            self.session = ObserverSession::none(why);
            return;
        }
        self.session = match (self.connect)() {
            Ok(connection) => ObserverSession::new(
                connection,
                &Server::session_settings(&self.database, &self.options.application_name),
            ),
            Err(error) => {
                let text = error.to_string();
                ObserverSession::none(text.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        };
        if !self.session.is_open() {
            return;
        }
        let Sight { server, notes } = Server::explore(&mut self.session, &self.database);
        self.server = server;
        self.standing = notes;
        if let Some(local) = self.local {
            match Processes::find(local, self.server.own_process) {
                Ok(processes) => self.processes = Some(processes),
                Err(why) => self.standing.push(format!("no CPU and memory of the server: {why}")),
            }
        }
        // A first reading shows which views may not be read.
        self.read();
    }

    fn read(&mut self) -> Reading {
        let (standing, passing) = (&mut self.standing, &mut self.part.notes);
        let mut note = |unreadable: Unreadable| {
            let Unreadable { what, why, for_good } = unreadable;
            let (notes, once) = if for_good { (&mut *standing, "") } else { (&mut *passing, " this time") };
            let text = format!("{what} can't be read{once}: {why}");
            if !notes.contains(&text) {
                notes.push(text);
            }
        };
        self.server.counters.read(&mut self.session, &mut note)
    }

    fn before_sessions(&mut self) {
        if !self.session.is_open() {
            self.open();
        }
        self.part = Part { open: true, ..Part::default() };
        if self.server.sees_sessions {
            self.part.others = leaving::settled(&mut self.session);
        }
        self.flush();
        self.part.own_before = (self.session.committed, self.session.rolled_back);
        self.part.since = Some(Instant::now());
        self.part.before = self.read();
        self.part.sampler.look(&self.server, &self.options);
    }

    /// Makes the server count our own transactions so far, the one that does it included.
    fn flush(&mut self) {
        if let Some(flush) = &self.server.flush {
            let (wait, sql, after) = flush.steps();
            thread::sleep(wait);
            let _ = self.session.query(sql);
            thread::sleep(after);
        }
    }

    fn begin(&mut self) {
        if !self.part.open {
            // Nobody said who was here before: everybody counts as a client.
            self.part = Part { open: true, ..Part::default() };
        }
        self.part.begin = self.read();
        self.part.sampler.begin(&self.server, &self.options);
        self.part.cpu = self.processes.and_then(Processes::cpu);
    }

    fn end(&mut self) {
        let cpu = self.processes.and_then(Processes::cpu);
        self.part.sampler.end();
        self.part.end = self.read();
        let clients = if self.server.sees_sessions { activity::pids(&mut self.session).ok() } else { None };
        let others = &self.part.others;
        self.part.clients =
            clients.map(|pids| pids.into_iter().filter(|pid| !others.contains(pid)).collect());
        if let (Some(processes), Some(begin), Some(end)) = (self.processes, self.part.cpu, cpu) {
            // A child whose end the main process hasn't taken note of yet may be missing for a
            // moment.
            let cpu_s = (end - begin).max(0.0);
            self.part.used = Some(ServerProcesses { cpu_s, memory_bytes: processes.memory() });
        }
    }

    fn sample(&mut self) {
        let part = &mut self.part;
        let sample = part.sampler.sample(&mut self.session, &mut self.server, &part.others);
        if sample.is_some() {
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = sample;
        }
    }

    fn after_sessions(&mut self) -> Observed {
        self.part.sampler.end();
        let left = leaving::left(&mut self.session, self.part.clients.as_deref());
        self.flush();
        let (committed, rolled_back) = (self.session.committed, self.session.rolled_back);
        let after = self.read();
        let part = std::mem::take(&mut self.part);
        let counts = part.since.filter(|_| self.session.is_open()).map(|since| ServerCounts {
            own_committed: committed.saturating_sub(part.own_before.0),
            own_rolled_back: rolled_back.saturating_sub(part.own_before.1),
            others: part.others.len() as u64,
            autovacuum_visits: self.server.autovacuum_visits(since.elapsed()),
            incomplete: !left,
            inexact: self.server.inexact,
        });
        let mut observed = part.sampler.into_observed();
        let mut notes = self.standing.clone();
        notes.extend(part.notes);
        notes.append(&mut observed.notes);
        if let Some(why) = &self.session.lost {
            let what = if self.session.opened { "wasn't observed to the end" } else { "isn't observed" };
            notes.push(format!("the server {what}: {why}"));
        } else if !left && part.clients.is_some() {
            notes.push("some sessions of the clients hadn't ended when the counters were read".to_owned());
        }
        let counters = &self.server.counters;
        Observed {
            counters: counters.difference(&part.begin, &part.end),
            whole: counters.difference(&part.before, &after),
            processes: part.used,
            notes,
            counts,
            ..observed
        }
    }
}
