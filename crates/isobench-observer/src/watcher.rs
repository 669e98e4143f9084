//! The thread: executes the handle's commands, and takes samples in between. At most one part's
//! window is open at any time.
//!
//! Not here: the samples (`sampler`), the queries (`activity`, `locks`, `counters`, `edge`), and
//! the sums of a part (`part`).

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use isobench_database::Database;

use crate::activity;
use crate::capabilities::{Capabilities, Explored};
use crate::counters::Unreadable;
use crate::edge::{self, Edge};
use crate::leaving;
use crate::locks;
use crate::observed::{Observed, Sample};
use crate::options::{ObserverOptions, OpenSession};
use crate::part::{MeasuredPart, Part, Turn};
use crate::processes::{LocalServer, Processes};
use crate::session::ObserverSession;

/// A command of the handle for a part, with the channel for the answer.
#[derive(Debug)]
pub enum WatchCommand {
    /// A step.
    Step(Step, Part, Sender<()>),
    /// [`crate::Observer::after_sessions`].
    AfterSessions(Part, Sender<Observed>),
}

/// A method of [`crate::Observer`] without a result.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    BeforeSessions,
    Begin,
    End,
    Rest,
    Wake,
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
    /// The number of sessions that were opened.
    opened: u64,
    capabilities: Capabilities,
    processes: Option<Processes>,
    /// Notes that remain true.
    standing: Vec<String>,
    parts: BTreeMap<Part, MeasuredPart>,
    /// The part whose sessions may act.
    acting: Option<Part>,
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
            opened: 0,
            capabilities: Capabilities::default(),
            processes: None,
            standing: Vec::new(),
            parts: BTreeMap::new(),
            acting: None,
        }
    }

    /// Works until the handle is dropped.
    pub fn run(mut self, commands: &Receiver<WatchCommand>) {
        self.open();
        loop {
            let due = self.acting.and_then(|part| self.parts.get(&part)?.sampler.due());
            let wait = due.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()));
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
            WatchCommand::Step(step, part, reply) => {
                match step {
                    Step::BeforeSessions => self.before_sessions(part),
                    Step::Begin => self.begin(part),
                    Step::End => self.end(part),
                    Step::Rest => self.rest(part),
                    Step::Wake => self.wake(part),
                }
                let _ = reply.send(());
            }
            WatchCommand::AfterSessions(part, reply) => {
                let observed = self.after_sessions(part);
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
        self.opened += 1;
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
        self.read(None);
        edge::prepare(&mut self.session, &mut self.capabilities);
    }

    /// Reads everything; what can't be read this time is noted for the part.
    fn read(&mut self, part: Option<Part>) -> Edge {
        let own = (self.session.committed, self.session.rolled_back);
        let mut unused = Vec::new();
        let passing =
            part.and_then(|part| self.parts.get_mut(&part)).map_or(&mut unused, |part| &mut part.notes);
        let standing = &mut self.standing;
        let mut note = |unreadable: Unreadable| {
            let Unreadable { what, why, for_good } = unreadable;
            let (notes, once) = if for_good { (&mut *standing, "") } else { (&mut *passing, " this time") };
            let text = format!("{what} can't be read{once}: {why}");
            if !notes.contains(&text) {
                notes.push(text);
            }
        };
        Edge { own, ..edge::read(&mut self.session, &mut self.capabilities, &mut note) }
    }

    /// Reads everything after the server has counted our own transactions.
    fn read_edge(&mut self, part: Part) -> Edge {
        self.flush();
        self.read(Some(part))
    }

    /// Reads everything before a window opens, when sessions that belong to no part have ended: they
    /// would report in it. Those that stay aren't the part's clients.
    fn read_opening(&mut self, part: Part) -> Edge {
        let edge = self.read_edge(part);
        let state = self.part(part);
        let known: Vec<u32> = state.others.iter().chain(state.clients.iter().flatten()).copied().collect();
        let known = [known, self.of_other_parts(part)].concat();
        if edge.present.iter().flatten().all(|pid| known.contains(pid)) {
            return edge;
        }
        let staying = leaving::settled(&mut self.session, &known);
        self.part(part).others.extend(staying);
        self.read_edge(part)
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

    /// The state of a part. Without a call of `before_sessions` every session is taken for a
    /// client's.
    fn part(&mut self, part: Part) -> &mut MeasuredPart {
        self.parts.entry(part).or_default()
    }

    /// The sessions that belong to other parts.
    fn of_other_parts(&self, part: Part) -> Vec<u32> {
        let others = self.parts.iter().filter(|(other, _)| **other != part);
        others.flat_map(|(_, state)| state.clients.iter().flatten().copied()).collect()
    }

    /// The CPU time of the server's processes so far, without those that rest.
    fn cpu(&self, part: Part) -> Option<f64> {
        self.processes?.cpu_except(&self.of_other_parts(part))
    }

    /// True if what the part's sessions do is counted: always, unless they take turns with others'
    /// on a server whose counters can't tell them apart.
    fn counts(&self, part: Part) -> bool {
        let takes_turns = self.parts.get(&part).is_some_and(|part| part.takes_turns);
        !(takes_turns && self.capabilities.mixes_turns().is_some())
    }

    fn before_sessions(&mut self, part: Part) {
        if !self.session.is_open() {
            self.open();
        }
        self.parts.remove(&part);
        self.displace(part);
        let mut state = MeasuredPart { session: self.opened, ..MeasuredPart::default() };
        if self.capabilities.sees_sessions {
            let known = self.of_other_parts(part);
            state.others = leaving::settled(&mut self.session, &known);
        }
        if self.capabilities.sees_locks {
            // Without an answer none are left out.
            state.holders = locks::holders(&mut self.session).unwrap_or_default();
        }
        state.since = Some(Instant::now());
        state.sampler.look(&self.capabilities, &self.options);
        self.parts.insert(part, state);
        let edge = self.read_edge(part);
        self.part(part).open(Some(edge));
        self.acting = Some(part);
    }

    /// Lets the part rest whose window is still open, if it is another one. Its sessions may just be
    /// ending.
    fn displace(&mut self, part: Part) {
        let Some(other) = self.acting.take().filter(|other| *other != part) else { return };
        let Some(state) = self.parts.get(&other) else { return };
        if self.capabilities.sees_sessions {
            let known = [&state.others[..], &self.of_other_parts(other)].concat();
            leaving::settled(&mut self.session, &known);
        }
        self.rest(other);
    }

    fn begin(&mut self, part: Part) {
        self.displace(part);
        let rests = matches!(self.part(part).turn, Turn::Resting(_));
        let edge = match self.counts(part) {
            false => Edge::default(),
            true if rests => self.read_opening(part),
            true => self.read(Some(part)),
        };
        let counters = edge.counters.clone();
        self.open_window(part, edge);
        let cpu = self.cpu(part);
        let (capabilities, options) = (&self.capabilities, &self.options);
        let state = self.parts.entry(part).or_default();
        state.slices.begin(counters, cpu);
        state.sampler.begin(capabilities, options);
    }

    /// Opens a window with this reading, unless it is open already.
    fn open_window(&mut self, part: Part, edge: Edge) {
        self.acting = Some(part);
        if matches!(self.part(part).turn, Turn::Acting(_)) {
            return;
        }
        // Sessions of the others that have ended by now don't report in this window.
        self.others(part).for_each(|state| _ = state.forget_ended(&edge));
        let counts = self.counts(part);
        self.part(part).open(counts.then_some(edge));
    }

    fn others(&mut self, part: Part) -> impl Iterator<Item = &mut MeasuredPart> {
        self.parts.iter_mut().filter(move |(other, _)| **other != part).map(|(_, state)| state)
    }

    fn end(&mut self, part: Part) {
        let cpu = self.cpu(part);
        self.part(part).sampler.end();
        let edge = self.read_if_counted(part, false);
        self.end_slice(part, &edge, cpu);
        if !self.part(part).takes_turns {
            self.read_memory(part);
        }
    }

    /// Reads everything, or only which sessions there are if nothing is counted.
    fn read_if_counted(&mut self, part: Part, flush: bool) -> Edge {
        if self.counts(part) {
            return if flush { self.read_edge(part) } else { self.read(Some(part)) };
        }
        let sees = self.capabilities.sees_sessions;
        Edge { present: if sees { activity::pids(&mut self.session).ok() } else { None }, ..Edge::default() }
    }

    fn end_slice(&mut self, part: Part, edge: &Edge, cpu: Option<f64>) {
        let of_other_parts = self.of_other_parts(part);
        let state = self.part(part);
        state.slices.end(&edge.counters, cpu);
        state.see(edge.present.as_deref(), &of_other_parts);
    }

    /// Reads the memory of the server's processes if a slice has ended since the last time. If parts
    /// take turns, it is the same for all of them.
    fn read_memory(&mut self, part: Part) {
        let Some(processes) = self.processes else { return };
        if self.part(part).slices.memory_is_due() {
            let memory = processes.memory();
            let resting = |state: &&mut MeasuredPart| matches!(state.turn, Turn::Resting(_));
            self.parts.values_mut().filter(resting).for_each(|state| state.slices.set_memory(memory));
            self.part(part).slices.set_memory(memory);
        }
    }

    fn rest(&mut self, part: Part) {
        if matches!(self.part(part).turn, Turn::Resting(_)) {
            return;
        }
        let cpu = if self.part(part).slices.is_open() { self.cpu(part) } else { None };
        let state = self.part(part);
        state.sampler.end();
        let first = !std::mem::replace(&mut state.takes_turns, true);
        if first && self.capabilities.sees_sessions && self.counts(part) {
            // Besides the clients' there may have been others in the first window.
            leaving::calm(&mut self.session);
        }
        let edge = self.read_if_counted(part, true);
        self.end_slice(part, &edge, cpu);
        self.close_window(part, &edge);
        if !self.counts(part) {
            self.part(part).uncount();
        }
    }

    /// Closes the window with this reading. Sessions of other parts may have reported in it.
    fn close_window(&mut self, part: Part, edge: &Edge) {
        self.acting = self.acting.filter(|acting| *acting != part);
        self.part(part).close(edge);
        let disturbed = self.others(part).filter_map(|state| state.disturbs(edge)).last();
        if let Some(why) = disturbed {
            self.part(part).is_disturbed(why);
        }
    }

    fn wake(&mut self, part: Part) {
        self.displace(part);
        self.read_memory(part);
        if matches!(self.part(part).turn, Turn::Resting(_)) {
            let edge = if self.counts(part) { self.read_opening(part) } else { Edge::default() };
            self.open_window(part, edge);
        }
        self.acting = Some(part);
    }

    fn sample(&mut self) {
        let Some(part) = self.acting else { return };
        let mut others = self.of_other_parts(part);
        let Some(state) = self.parts.get_mut(&part) else { return };
        others.extend(&state.others);
        let sample = state.sampler.sample(&mut self.session, &mut self.capabilities, &others, &state.holders);
        if sample.is_some() {
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = sample;
        }
    }

    fn after_sessions(&mut self, part: Part) -> Observed {
        self.wake(part);
        self.part(part).sampler.end();
        let clients = self.part(part).clients.clone();
        let left = leaving::left(&mut self.session, clients.as_deref());
        let counts = self.counts(part);
        if counts {
            let edge = self.read_edge(part);
            self.close_window(part, &edge);
        }
        self.acting = None;
        let mut state = self.parts.remove(&part).unwrap_or_default();
        state.sampler.name_relations(&mut self.session);
        self.observed(state, left, counts)
    }

    fn observed(&self, state: MeasuredPart, left: bool, counts: bool) -> Observed {
        // A session that was opened later doesn't know what the one before has done.
        let whole = self.session.is_open() && state.session == self.opened;
        let compared = state.since.filter(|_| whole).map(|since| {
            state.counts(
                self.capabilities.autovacuum_visits(since.elapsed()),
                !left,
                self.capabilities.inexact,
            )
        });
        let unseen = state.clients.is_none();
        let mut observed = state.sampler.into_observed();
        let mut notes = self.standing.clone();
        notes.extend(state.notes);
        notes.append(&mut observed.notes);
        if let Some(why) = self.capabilities.mixes_turns().filter(|_| !counts) {
            notes.push(format!(
                "no counters, as the cells took turns and {why}; cells that are measured as a whole have them"
            ));
        }
        if let Some(why) = &self.session.lost {
            let what = if self.session.opened { "wasn't observed to the end" } else { "isn't observed" };
            notes.push(format!("the server {what}: {why}"));
        } else if !left && !unseen {
            notes.push("some sessions of the clients hadn't ended when the counters were read".to_owned());
        }
        let counters = &self.capabilities.counters;
        Observed {
            counters: counters.named(&state.slices.counters),
            whole: counters.named(&state.windows.counters),
            tables: state.windows.tables.into_uses(),
            processes: state.slices.processes(),
            notes,
            counts: compared,
            ..observed
        }
    }
}
