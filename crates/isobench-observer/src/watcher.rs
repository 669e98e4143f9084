//! The thread: executes the handle's commands, and takes samples in between.
//!
//! Not here: the samples (`sampler`), and the queries (`activity`, `locks`, `counters`).

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use isobench_database::Database;

use crate::activity;
use crate::capabilities::{Capabilities, Explored};
use crate::compare::ServerCounts;
use crate::counters::{CounterReading, Unreadable};
use crate::leaving;
use crate::observed::{Observed, Sample, ServerProcesses};
use crate::options::{ObserverOptions, OpenSession};
use crate::processes::{LocalServer, Processes};
use crate::sampler::Sampler;
use crate::scans::{self, ScanReading};
use crate::session::{ObserverSession, Refusal};

/// A command of the handle, with the channel for the answer.
#[derive(Debug)]
pub enum WatchCommand {
    /// [`crate::Observer::before_sessions`].
    BeforeSessions(Sender<()>),
    /// [`crate::Observer::begin`].
    Begin(Sender<()>),
    /// [`crate::Observer::end`].
    End(Sender<()>),
    /// [`crate::Observer::after_sessions`].
    AfterSessions(Sender<Observed>),
}

/// The longest wait for commands of a thread with nothing else to do.
const IDLE: Duration = Duration::from_hours(1);

/// The thread's state.
pub struct Watcher {
    connect: OpenSession,
    database: Database,
    local: Option<LocalServer>,
    options: ObserverOptions,
    latest: Arc<Mutex<Option<Sample>>>,
    session: ObserverSession,
    capabilities: Capabilities,
    processes: Option<Processes>,
    /// Notes that remain true.
    standing: Vec<String>,
    part: MeasuredPart,
}

/// The state of one measured part and its sessions.
#[derive(Default)]
struct MeasuredPart {
    /// Sessions have been opened that can be sampled.
    open: bool,
    /// Sessions that were connected before the clients.
    others: Vec<u32>,
    /// The clients that were connected at the end; `None` if they couldn't be seen.
    clients: Option<Vec<u32>>,
    since: Option<Instant>,
    before: CounterReading,
    tables_before: Option<ScanReading>,
    own_before: (u64, u64),
    begin: CounterReading,
    end: CounterReading,
    cpu: Option<f64>,
    used: Option<ServerProcesses>,
    sampler: Sampler,
    notes: Vec<String>,
}

impl Watcher {
    /// A thread's state before it has connected.
    pub fn new(
        connect: OpenSession,
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
            capabilities: Capabilities::default(),
            processes: None,
            standing: Vec::new(),
            part: MeasuredPart::default(),
        }
    }

    /// Works until the handle is dropped.
    pub fn run(mut self, commands: &Receiver<WatchCommand>) {
        self.open();
        loop {
            let wait = match self.part.sampler.due() {
                Some(due) => due.saturating_duration_since(Instant::now()),
                None => IDLE,
            };
            match commands.recv_timeout(wait) {
                Ok(command) => self.execute(command),
                Err(RecvTimeoutError::Timeout) => self.sample(),
                Err(RecvTimeoutError::Disconnected) => return self.session.close(),
            }
        }
    }

    fn execute(&mut self, command: WatchCommand) {
        // If the handle has given up, nobody receives the answer.
        match command {
            WatchCommand::BeforeSessions(reply) => {
                self.before_sessions();
                let _ = reply.send(());
            }
            WatchCommand::Begin(reply) => {
                self.begin();
                let _ = reply.send(());
            }
            WatchCommand::End(reply) => {
                self.end();
                let _ = reply.send(());
            }
            WatchCommand::AfterSessions(reply) => {
                let observed = self.after_sessions();
                let _ = reply.send(observed);
            }
        }
    }

    /// Connects, and finds out what can be observed.
    fn open(&mut self) {
        self.standing.clear();
        self.capabilities = Capabilities::default();
        self.processes = None;
        if let Some(why) = Capabilities::unknown(&self.database) {
            self.session = ObserverSession::none(why);
            return;
        }
        self.session = match (self.connect)() {
            Ok(connection) => ObserverSession::new(
                connection,
                &Capabilities::session_settings(&self.database, &self.options.application_name),
            ),
            Err(error) => {
                let text = error.to_string();
                ObserverSession::none(text.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        };
        if !self.session.is_open() {
            return;
        }
        let Explored { capabilities, notes } = Capabilities::explore(&mut self.session, &self.database);
        self.capabilities = capabilities;
        self.standing = notes;
        if let Some(local) = self.local {
            match Processes::find(local, self.capabilities.own_process) {
                Ok(processes) => self.processes = Some(processes),
                Err(why) => self.standing.push(format!("no CPU and memory of the server: {why}")),
            }
        }
        // A first reading shows the views that may not be read.
        self.read();
    }

    fn read(&mut self) -> CounterReading {
        let (standing, passing) = (&mut self.standing, &mut self.part.notes);
        let mut note = |unreadable: Unreadable| {
            let Unreadable { what, why, for_good } = unreadable;
            let (notes, once) = if for_good { (&mut *standing, "") } else { (&mut *passing, " this time") };
            let text = format!("{what} can't be read{once}: {why}");
            if !notes.contains(&text) {
                notes.push(text);
            }
        };
        self.capabilities.counters.read(&mut self.session, &mut note)
    }

    fn before_sessions(&mut self) {
        if !self.session.is_open() {
            self.open();
        }
        self.part = MeasuredPart { open: true, ..MeasuredPart::default() };
        if self.capabilities.sees_sessions {
            self.part.others = leaving::settled(&mut self.session);
        }
        self.flush();
        self.part.own_before = (self.session.committed, self.session.rolled_back);
        self.part.since = Some(Instant::now());
        self.part.before = self.read();
        self.part.tables_before = self.tables();
        self.part.sampler.look(&self.capabilities, &self.options);
    }

    /// Reads how each table was used so far.
    fn tables(&mut self) -> Option<ScanReading> {
        if !self.capabilities.sees_tables {
            return None;
        }
        match scans::read(&mut self.session) {
            Ok(reading) => Some(reading),
            Err(Refusal::Never(why) | Refusal::Now(why)) => {
                self.part.notes.push(format!("pg_stat_user_tables can't be read this time: {why}"));
                None
            }
            // Reported once, with its reason, at the end.
            Err(Refusal::Lost) => None,
        }
    }

    /// Makes the server count our own transactions so far, including the one that does it.
    fn flush(&mut self) {
        if let Some(flush) = &self.capabilities.flush {
            let (wait, sql, after) = flush.steps();
            thread::sleep(wait);
            let _ = self.session.query(sql);
            thread::sleep(after);
        }
    }

    fn begin(&mut self) {
        if !self.part.open {
            // Without a call of `before_sessions` every session is taken for a client's.
            self.part = MeasuredPart { open: true, ..MeasuredPart::default() };
        }
        self.part.begin = self.read();
        self.part.sampler.begin(&self.capabilities, &self.options);
        self.part.cpu = self.processes.and_then(Processes::cpu);
    }

    fn end(&mut self) {
        let cpu = self.processes.and_then(Processes::cpu);
        self.part.sampler.end();
        self.part.end = self.read();
        let clients =
            if self.capabilities.sees_sessions { activity::pids(&mut self.session).ok() } else { None };
        let others = &self.part.others;
        self.part.clients =
            clients.map(|pids| pids.into_iter().filter(|pid| !others.contains(pid)).collect());
        if let (Some(processes), Some(begin), Some(end)) = (self.processes, self.part.cpu, cpu) {
            // A child whose end the main process hasn't noticed yet may be missing for a moment.
            let cpu_s = (end - begin).max(0.0);
            self.part.used = Some(ServerProcesses { cpu_s, memory_bytes: processes.memory() });
        }
    }

    fn sample(&mut self) {
        let part = &mut self.part;
        let sample = part.sampler.sample(&mut self.session, &mut self.capabilities, &part.others);
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
        let tables_after = self.tables();
        self.part.sampler.name_relations(&mut self.session);
        let part = std::mem::take(&mut self.part);
        let counts = part.since.filter(|_| self.session.is_open()).map(|since| ServerCounts {
            own_committed: committed.saturating_sub(part.own_before.0),
            own_rolled_back: rolled_back.saturating_sub(part.own_before.1),
            others: part.others.len() as u64,
            autovacuum_visits: self.capabilities.autovacuum_visits(since.elapsed()),
            incomplete: !left,
            inexact: self.capabilities.inexact,
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
        let counters = &self.capabilities.counters;
        Observed {
            counters: counters.difference(&part.begin, &part.end),
            whole: counters.difference(&part.before, &after),
            tables: part
                .tables_before
                .zip(tables_after)
                .map(|(before, after)| scans::difference(&before, &after))
                .unwrap_or_default(),
            processes: part.used,
            notes,
            counts,
            ..observed
        }
    }
}
