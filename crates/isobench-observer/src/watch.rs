//! The thread: it does what the handle commands, and takes samples in between.
//!
//! Not here: what is asked of the server (`activity`, `locks`, `counters`).

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use isobench_database::Database;

use crate::activity;
use crate::compare::ServerCounts;
use crate::counters::{Reading, Unreadable};
use crate::locks::Locks;
use crate::observed::{Observed, Sample, ServerProcesses};
use crate::observer::{Connect, Settings};
use crate::pace::Pace;
use crate::processes::{LocalServer, Processes};
use crate::server::{Server, Sight};
use crate::session::{Refusal, Session};

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

/// Sessions may be sampled this seldom if they must.
const SELDOM: Duration = Duration::from_secs(1);

/// Locks are sampled this often in the end, and this seldom if they must.
const LOCKS_EVERY: Duration = Duration::from_secs(1);
const LOCKS_SELDOM: Duration = Duration::from_secs(10);

/// A thread with nothing to do waits for commands only; so long at a time.
const IDLE: Duration = Duration::from_hours(1);

/// The first gaps between samples of the locks, so that short parts have some, too: 0.2, 0.4, 0.8 seconds.
const LOCKS_FIRST: Duration = Duration::from_millis(200);

/// One part in so many of the time may be spent on samples of the sessions, and of the locks.
const SESSIONS_SHARE: u32 = 20;
const LOCKS_SHARE: u32 = 100;

/// How long sessions may take to end, and how often it is looked.
const LEAVING: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Sessions that have said goodbye are gone when two looks in a row show the same; so many looks at most.
const SETTLING: u32 = 20;

/// The thread's state.
pub struct Watcher {
    connect: Connect,
    database: Database,
    local: Option<LocalServer>,
    settings: Settings,
    latest: Arc<Mutex<Option<Sample>>>,
    session: Session,
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
    /// The clients, as far as they were connected at the end.
    clients: Vec<u32>,
    since: Option<Instant>,
    before: Reading,
    own_before: (u64, u64),
    begin: Reading,
    end: Reading,
    /// Set between begin and end.
    began: Option<Instant>,
    cpu: Option<f64>,
    used: Option<ServerProcesses>,
    samples: Vec<Sample>,
    sessions_due: Option<Instant>,
    sessions_pace: Option<Pace>,
    locks: Locks,
    locks_due: Option<Instant>,
    locks_pace: Option<Pace>,
    sampling: Duration,
    notes: Vec<String>,
}

impl Watcher {
    /// A thread's state before it has connected.
    pub fn new(
        connect: Connect,
        database: Database,
        local: Option<LocalServer>,
        settings: Settings,
        latest: Arc<Mutex<Option<Sample>>>,
    ) -> Self {
        Watcher {
            connect,
            database,
            local,
            settings,
            latest,
            session: Session::none(""),
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
            let wait = match self.part.sessions_due {
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
            self.session = Session::none(why);
            return;
        }
        self.session = match (self.connect)() {
            Ok(connection) => Session::new(
                connection,
                &Server::session_settings(&self.database, &self.settings.application_name),
            ),
            Err(error) => {
                let text = error.to_string();
                Session::none(text.split_whitespace().collect::<Vec<_>>().join(" "))
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
        self.part.others = self.settled();
        self.flush();
        self.part.own_before = (self.session.committed, self.session.rolled_back);
        self.part.since = Some(Instant::now());
        self.part.before = self.read();
        self.start_looking();
    }

    /// The sessions that are there now and stay, if they can be seen: one that has just said goodbye takes a moment to leave.
    fn settled(&mut self) -> Vec<u32> {
        if !self.server.sees_sessions {
            return Vec::new();
        }
        let mut last = activity::pids(&mut self.session).unwrap_or_default();
        for _ in 0..SETTLING {
            if last.is_empty() {
                break;
            }
            thread::sleep(LOOK_AGAIN);
            let Ok(now) = activity::pids(&mut self.session) else { break };
            if now == last {
                break;
            }
            last = now;
        }
        last
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

    fn start_looking(&mut self) {
        let part = &mut self.part;
        let every = self.settings.every;
        if self.session.is_open() && self.server.sees_sessions {
            part.sessions_pace.get_or_insert_with(|| Pace::new(every, SELDOM, SESSIONS_SHARE));
            part.sessions_due = Some(Instant::now() + every);
        }
    }

    fn begin(&mut self) {
        if !self.part.open {
            // Nobody said who was here before: everybody counts as a client.
            self.part = Part { open: true, ..Part::default() };
        }
        self.part.begin = self.read();
        self.part.samples.clear();
        self.part.locks = Locks::default();
        self.part.sampling = Duration::ZERO;
        self.start_looking();
        if self.session.is_open() && self.server.sees_locks {
            self.part.locks_pace = Some(Pace::new(LOCKS_FIRST, LOCKS_SELDOM, LOCKS_SHARE));
            self.part.locks_due = Some(Instant::now() + LOCKS_FIRST);
        }
        self.part.cpu = self.processes.and_then(Processes::cpu);
        self.part.began = Some(Instant::now());
    }

    fn end(&mut self) {
        let cpu = self.processes.and_then(Processes::cpu);
        self.part.began = None;
        self.part.sessions_due = None;
        self.part.locks_due = None;
        self.part.end = self.read();
        if self.server.sees_sessions {
            let clients = activity::pids(&mut self.session).unwrap_or_default();
            self.part.clients = clients.into_iter().filter(|pid| !self.part.others.contains(pid)).collect();
        }
        if let (Some(processes), Some(begin), Some(end)) = (self.processes, self.part.cpu, cpu) {
            // A child whose end the main process hasn't taken note of yet may be missing for a moment.
            let cpu_s = (end - begin).max(0.0);
            self.part.used = Some(ServerProcesses { cpu_s, memory_bytes: processes.memory() });
        }
    }

    /// Looks at the sessions, and now and then at the locks.
    fn sample(&mut self) {
        let began = Instant::now();
        match activity::look(&mut self.session, &self.part.others) {
            Ok(sessions) => {
                let at = began + began.elapsed() / 2;
                let at_s = self.part.began.map(|begin| at.saturating_duration_since(begin).as_secs_f64());
                let sample = Sample { at_s, sessions };
                *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(sample.clone());
                if at_s.is_some() {
                    self.part.samples.push(sample);
                }
            }
            Err(Refusal::Lost) => {
                self.part.sessions_due = None;
                return;
            }
            Err(Refusal::Never(why) | Refusal::Now(why)) => self.note_once(format!("a sample failed: {why}")),
        }
        let pace = &mut self.part.sessions_pace;
        let gap = settle_pace(pace, began.elapsed(), self.session.round_trip, &mut self.part.sampling);
        self.part.sessions_due = Some(began + gap);
        self.sample_locks();
    }

    fn sample_locks(&mut self) {
        let (Some(begin), Some(due)) = (self.part.began, self.part.locks_due) else { return };
        let began = Instant::now();
        if began < due {
            return;
        }
        let at_s = (began - begin).as_secs_f64();
        if let Err(Refusal::Never(why) | Refusal::Now(why)) = self.part.locks.look(&mut self.session, at_s) {
            self.note_once(format!("a sample of the locks failed: {why}"));
        }
        let pace = &mut self.part.locks_pace;
        let gap = settle_pace(pace, began.elapsed(), self.session.round_trip, &mut self.part.sampling);
        // 0.2, 0.4, 0.8 and then every second.
        let usual = (began - begin).clamp(LOCKS_FIRST, LOCKS_EVERY);
        self.part.locks_due = Some(began + gap.max(usual));
    }

    fn note_once(&mut self, note: String) {
        if !self.part.notes.contains(&note) {
            self.part.notes.push(note);
        }
    }

    fn after_sessions(&mut self) -> Observed {
        self.part.sessions_due = None;
        let incomplete = !self.left();
        self.flush();
        let (committed, rolled_back) = (self.session.committed, self.session.rolled_back);
        let after = self.read();
        let part = std::mem::take(&mut self.part);
        let counters = &self.server.counters;
        let whole = counters.difference(&part.before, &after);
        let others = part.others.len() as u64;
        let counts = part.since.filter(|_| self.session.is_open()).map(|since| ServerCounts {
            own_committed: committed.saturating_sub(part.own_before.0),
            own_rolled_back: rolled_back.saturating_sub(part.own_before.1),
            others,
            autovacuum_visits: self.server.autovacuum_visits(since.elapsed()),
            incomplete,
            inexact: self.server.inexact,
        });
        let (at_s, waits) = activity::rows(&part.samples);
        let lock_samples = part.locks.samples();
        let (predicate_locks, lock_waits) = part.locks.into_parts();
        let mut notes = self.standing.clone();
        notes.extend(part.notes);
        if let Some(why) = &self.session.lost {
            notes.push(format!("the server wasn't observed, or not to the end: {why}"));
        }
        if incomplete && self.session.is_open() {
            notes.push("some sessions of the clients hadn't ended when the counters were read".to_owned());
        }
        Observed {
            at_s,
            waits,
            predicate_locks,
            lock_waits,
            lock_samples,
            counters: counters.difference(&part.begin, &part.end),
            whole,
            processes: part.used,
            sampling_s: part.sampling.as_secs_f64(),
            notes,
            counts,
        }
    }

    /// Waits until the clients' sessions have left; whether they have.
    fn left(&mut self) -> bool {
        let until = Instant::now() + LEAVING;
        while !self.part.clients.is_empty() {
            let Ok(present) = activity::pids(&mut self.session) else { return false };
            if !self.part.clients.iter().any(|pid| present.contains(pid)) {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            thread::sleep(LOOK_AGAIN);
        }
        true
    }
}

/// Takes note of what a sample took beyond the way there and back, and returns the gap to the next one.
fn settle_pace(pace: &mut Option<Pace>, took: Duration, way: Duration, sum: &mut Duration) -> Duration {
    let cost = took.saturating_sub(way);
    *sum += cost;
    pace.as_mut().map_or(SELDOM, |pace| {
        pace.took(cost);
        pace.gap()
    })
}
