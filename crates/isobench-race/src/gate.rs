//! Which statements may pass: one command runs at a time, so a statement's command is known by
//! elimination where neither its process nor a `traceparent` tells it.
//!
//! The sessions' threads ask here before they send a batch, and sleep while it is held; the stage
//! (`stage`) says whose turn it is. Not here: bytes (`session`).

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use isobench_isolation::Level;
use isobench_pgwire::TransactionStatus;

use crate::statement::Batch;

/// The longest text of a statement that is kept.
const LONGEST: usize = 4000;

/// A batch that was sent, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The number of the command.
    pub command: usize,
    /// The number of the session.
    pub session: u64,
    /// Its statements, with values.
    pub sql: String,
    /// The tag of the last statement that has ended, such as `UPDATE 1`.
    pub tag: String,
    /// The names of the first row's columns.
    pub columns: Vec<String>,
    /// The first row.
    pub row: Option<Vec<Option<String>>>,
    /// The error: SQLSTATE and message.
    pub error: Option<String>,
    /// It waited for a lock of another command.
    pub waited: bool,
    /// It ends its transaction.
    pub ends: bool,
    /// The session belongs to a process of the command.
    pub by_process: bool,
}

/// The statements so far of a session's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// None that others can see.
    Nothing,
    /// Such that belong to no command.
    Noise,
    /// Others.
    Work,
}

/// A session of the server.
#[derive(Debug)]
pub(crate) struct Seat {
    /// The number of the server's process.
    pub(crate) pid: i32,
    /// The command one of whose processes has opened it.
    pub(crate) process: Option<usize>,
    /// The command that it works for.
    pub(crate) owner: Option<usize>,
    /// The last command that it worked for: a lock of the session outlives the transaction.
    pub(crate) last: Option<usize>,
    pub(crate) status: TransactionStatus,
    /// Requests whose ReadyForQuery hasn't come.
    pub(crate) pending: u32,
    /// Its last step, until the answer is complete.
    pub(crate) step: Option<usize>,
    /// The step isn't answered.
    pub(crate) flying: bool,
    pub(crate) sent: Instant,
    /// The command for which a batch of it is held.
    pub(crate) held: Option<usize>,
    contents: Contents,
    /// It is to be closed, since it doesn't end what it began.
    pub(crate) doomed: bool,
    wake: Arc<OwnedFd>,
}

impl Seat {
    /// A session that is ready.
    pub(crate) fn new(pid: i32, process: Option<usize>, wake: Arc<OwnedFd>) -> Self {
        Self {
            pid,
            process,
            owner: None,
            last: None,
            status: TransactionStatus::Idle,
            pending: 0,
            step: None,
            flying: false,
            sent: Instant::now(),
            held: None,
            contents: Contents::Nothing,
            doomed: false,
            wake,
        }
    }

    fn is_idle(&self) -> bool {
        self.status == TransactionStatus::Idle
    }

    /// True if it is in the middle of something.
    pub(crate) fn is_open(&self) -> bool {
        self.pending > 0 || !self.is_idle()
    }
}

/// A command while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Actor {
    /// The process group, once it has been started.
    pub(crate) group: Option<u32>,
    pub(crate) exited: bool,
    /// Nothing more comes of it.
    pub(crate) finished: bool,
    /// When it last did something.
    pub(crate) last: Instant,
    /// Its longest pause.
    pub(crate) pause: Duration,
}

impl Actor {
    pub(crate) fn new() -> Self {
        let last = Instant::now();
        Self { group: None, exited: false, finished: false, last, pause: Duration::ZERO }
    }

    /// It does something.
    pub(crate) fn act(&mut self) {
        let now = Instant::now();
        self.pause = self.pause.max(now.saturating_duration_since(self.last));
        self.last = now;
    }
}

/// Everything that sessions and the stage share.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) seats: BTreeMap<u64, Seat>,
    pub(crate) actors: Vec<Actor>,
    /// The command whose turn it is; none while no schedule runs.
    pub(crate) runner: Option<usize>,
    /// The steps that are left of its turn.
    pub(crate) quota: Option<u32>,
    /// The command that runs so that another one gets its lock.
    pub(crate) helper: Option<usize>,
    /// A transaction of the helper has ended: the other one is asked again.
    pub(crate) recheck: bool,
    pub(crate) steps: Vec<Step>,
    /// What comes now belongs to no command.
    pub(crate) watching: bool,
    /// Shapes of statements that come while no command runs.
    pub(crate) noise: BTreeSet<String>,
    /// Levels that statements asked for.
    pub(crate) asked: BTreeSet<Level>,
    /// The settings with which sessions begin.
    pub(crate) defaults: String,
    /// Processes of the server that are known.
    pub(crate) pids: BTreeSet<i32>,
    /// Notes on connections, each once.
    pub(crate) notes: BTreeSet<String>,
    /// Sessions are closed instead of being served.
    pub(crate) closing: bool,
    /// All commands have finished, and no schedule has begun since: what comes now comes too late.
    pub(crate) resting: Option<Instant>,
    /// The longest pause before a statement that came too late.
    pub(crate) late: Option<Duration>,
    /// The last such statement.
    pub(crate) late_text: String,
    /// The number of changes so far: a change between a look and a wait isn't missed.
    pub(crate) pulses: u64,
}

impl State {
    fn owner(&self, seat: &Seat, batch: &Batch) -> Option<usize> {
        if let Some(traced) = batch.traced.filter(|command| *command < self.actors.len()) {
            return Some(traced);
        }
        let runs = |owner: &usize| self.actors.get(*owner).is_some_and(|actor| !actor.finished);
        // A statement that is held was its command's when it came, in a transaction or not.
        let kept = seat.held.or(seat.owner.filter(|_| !seat.is_idle())).filter(runs);
        seat.process.or(kept).or(self.runner)
    }

    /// Decides about a batch: true if it may pass now.
    fn admit(&mut self, session: u64, batch: &Batch) -> bool {
        self.asked.extend(batch.level);
        let Some(seat) = self.seats.get(&session) else { return true };
        let (was_held, idle, is_process) = (seat.held.is_some(), seat.is_idle(), seat.process.is_some());
        let in_noise = seat.contents == Contents::Noise;
        // The end of a transaction in which nothing was done isn't seen either.
        let nothing = batch.only_ends && seat.contents == Contents::Nothing;
        let owner = self.owner(seat, batch);
        if !(batch.apart || batch.only_ends) {
            self.change(session, |seat| seat.contents = Contents::Work);
        }
        if batch.apart || nothing {
            // BEGIN shows whose transaction it is, so that noise within it is told apart.
            let owner = owner.filter(|_| self.runner.is_some() && idle);
            self.change(session, |seat| seat.owner = owner.or(seat.owner));
            return true;
        }
        if self.watching && !batch.only_ends {
            self.noise.insert(batch.shape.clone());
        }
        let is_noise =
            !is_process && if batch.only_ends { in_noise } else { self.noise.contains(&batch.shape) };
        if !(is_noise || batch.only_ends) {
            self.come_late(&batch.text);
        }
        let (Some(runner), Some(mut owner), false) = (self.runner, owner, is_noise) else {
            self.change(session, |seat| {
                seat.held = None;
                if is_noise {
                    seat.contents = Contents::Noise;
                }
                if !batch.only_ends || is_noise {
                    seat.owner = None;
                }
            });
            return true;
        };
        // What comes of a command that has finished isn't its own.
        if owner != runner && !is_process && self.actors.get(owner).is_none_or(|actor| actor.finished) {
            owner = runner;
        }
        let Some(actor) = self.actors.get_mut(owner) else { return true };
        if was_held {
            actor.last = Instant::now();
        } else {
            actor.act();
        }
        if owner != runner || self.quota == Some(0) || self.recheck {
            self.change(session, |seat| (seat.owner, seat.held) = (Some(owner), Some(owner)));
            return false;
        }
        self.quota = self.quota.map(|left| left - 1);
        let step = self.steps.len();
        self.steps.push(Step {
            command: owner,
            session,
            sql: batch.text.chars().take(LONGEST).collect(),
            tag: String::new(),
            columns: Vec::new(),
            row: None,
            error: None,
            waited: false,
            ends: batch.ends,
            by_process: is_process,
        });
        self.change(session, |seat| {
            (seat.owner, seat.held, seat.step, seat.flying) = (Some(owner), None, Some(step), true);
            seat.last = seat.owner;
            seat.sent = Instant::now();
        });
        true
    }

    /// A statement comes. While all commands have finished, it's too late.
    fn come_late(&mut self, text: &str) {
        if let Some(since) = &mut self.resting {
            let now = Instant::now();
            self.late = self.late.max(Some(now.saturating_duration_since(*since)));
            *since = now;
            self.late_text = text.chars().take(LONGEST).collect();
        }
    }

    fn change(&mut self, session: u64, change: impl FnOnce(&mut Seat)) {
        if let Some(seat) = self.seats.get_mut(&session) {
            change(seat);
        }
    }

    /// The commands whose sessions these processes of the server serve, or served last.
    pub(crate) fn owners(&self, pids: &BTreeSet<i32>) -> BTreeSet<usize> {
        let own = self.seats.values().filter(|seat| pids.contains(&seat.pid));
        own.filter_map(|seat| seat.owner.or(seat.last)).collect()
    }

    /// Sessions that work for a command.
    pub(crate) fn of(&self, command: usize) -> impl Iterator<Item = &Seat> {
        self.seats.values().filter(move |seat| seat.owner == Some(command))
    }

    /// True if a batch of the command is held.
    pub(crate) fn holds(&self, command: usize) -> bool {
        self.seats.values().any(|seat| seat.held == Some(command))
    }

    /// Lets a command run for some steps, or to its end.
    pub(crate) fn run(&mut self, command: usize, steps: Option<u32>) {
        (self.runner, self.quota, self.recheck) = (Some(command), steps, false);
        self.wake();
    }

    /// Nobody runs any more; all that is held passes.
    pub(crate) fn release(&mut self) {
        (self.runner, self.quota, self.recheck, self.helper) = (None, None, false, None);
        self.wake();
    }

    /// Wakes the sessions that have something held, or that are to be closed.
    pub(crate) fn wake(&self) {
        for seat in self.seats.values().filter(|seat| seat.held.is_some() || seat.doomed || self.closing) {
            // It fails only if it is signalled already.
            let _ = rustix::io::write(&seat.wake, &1_u64.to_ne_bytes());
        }
    }
}

/// The gate that all statements pass.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, but not long: pauses and locks aren't reported by anybody.
    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn pulse(&self) {
        self.lock().pulses += 1;
        self.changed.notify_all();
    }

    pub(crate) fn enter(&self, session: u64, seat: Seat) {
        let mut state = self.lock();
        state.pids.insert(seat.pid);
        state.seats.insert(session, seat);
    }

    pub(crate) fn leave(&self, session: u64) {
        self.lock().seats.remove(&session);
        self.pulse();
    }

    /// True if a batch may pass now; otherwise the session is woken later to ask again.
    pub(crate) fn admit(&self, session: u64, batch: &Batch) -> bool {
        let admitted = self.lock().admit(session, batch);
        self.pulse();
        admitted
    }

    /// A request was sent whose ReadyForQuery will come.
    pub(crate) fn sent(&self, session: u64) {
        self.lock().change(session, |seat| seat.pending += 1);
    }

    /// Part of the answer to a step has come.
    pub(crate) fn seen(&self, session: u64, note: impl FnOnce(&mut Step)) {
        let mut state = self.lock();
        let step = state.seats.get(&session).and_then(|seat| seat.step);
        if let Some(step) = step.and_then(|step| state.steps.get_mut(step)) {
            note(step);
        }
    }

    /// The answer to what was sent up to Flush has come.
    pub(crate) fn landed(&self, session: u64) {
        self.lock().change(session, |seat| seat.flying = false);
        self.pulse();
    }

    /// The server is ready for the next request.
    pub(crate) fn ready(&self, session: u64, status: TransactionStatus, pending: u32) {
        let mut state = self.lock();
        let helper = state.helper;
        let Some(seat) = state.seats.get_mut(&session) else { return };
        (seat.status, seat.pending, seat.flying) = (status, pending, false);
        let (owner, was_step) = (seat.owner, seat.step.take().is_some());
        let idle = seat.is_idle();
        if idle && pending == 0 {
            (seat.owner, seat.contents) = (None, Contents::Nothing);
        }
        if let Some(owner) = owner {
            state.recheck |= was_step && idle && helper == Some(owner);
            if let Some(actor) = state.actors.get_mut(owner) {
                actor.act();
            }
        }
        drop(state);
        self.pulse();
    }

    /// True if a session is to be closed.
    pub(crate) fn is_over(&self, session: u64) -> bool {
        let state = self.lock();
        state.closing || state.seats.get(&session).is_none_or(|seat| seat.doomed)
    }

    /// The process groups of the commands that run.
    pub(crate) fn groups(&self) -> Vec<(u32, usize)> {
        let state = self.lock();
        let running = state.actors.iter().enumerate().filter(|(_, actor)| !actor.exited);
        running.filter_map(|(command, actor)| Some((actor.group?, command))).collect()
    }

    /// Adds a note for the user.
    pub(crate) fn note(&self, note: String) {
        self.lock().notes.insert(note);
        self.pulse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn gate(sessions: &[Option<usize>]) -> Gate {
        let gate = Gate::default();
        gate.lock().actors = vec![Actor::new(), Actor::new()];
        for (number, process) in sessions.iter().enumerate() {
            let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("an event"));
            let number = u64::try_from(number).expect("few");
            gate.enter(number, Seat::new(i32::try_from(number).expect("few"), *process, wake));
        }
        gate
    }

    fn batch(sql: &str) -> Batch {
        Batch::of(&[sql.to_owned()])
    }

    const WORK: &str = "UPDATE item SET stock = 1";

    #[test]
    fn a_command_runs_for_its_number_of_steps() {
        let gate = gate(&[None]);
        gate.lock().run(0, Some(1));
        assert!(gate.admit(0, &batch("BEGIN")), "no other session sees it");
        assert!(gate.admit(0, &batch(WORK)));
        gate.ready(0, TransactionStatus::InTransaction, 0);
        assert!(!gate.admit(0, &batch(WORK)) && gate.lock().holds(0));
        gate.lock().run(0, None);
        assert!(gate.admit(0, &batch(WORK)));
        assert_eq!(gate.lock().steps.len(), 2);
    }

    #[test]
    fn while_one_is_held_what_becomes_active_is_the_others() {
        let gate = gate(&[None, None]);
        gate.lock().run(0, Some(1));
        assert!(gate.admit(0, &batch("BEGIN")) && gate.admit(0, &batch(WORK)));
        gate.ready(0, TransactionStatus::InTransaction, 0);
        assert!(!gate.admit(0, &batch("COMMIT")));
        gate.lock().run(1, None);
        assert!(gate.admit(1, &batch(WORK)));
        let state = gate.lock();
        assert_eq!(state.steps.iter().map(|step| step.command).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn the_end_of_an_empty_transaction_is_no_step() {
        let gate = gate(&[None]);
        gate.lock().run(0, Some(0));
        for sql in ["BEGIN", "SELECT pg_catalog.version()"] {
            assert!(gate.admit(0, &batch(sql)), "{sql}");
            gate.ready(0, TransactionStatus::InTransaction, 0);
        }
        assert!(gate.admit(0, &batch("ROLLBACK")) && gate.lock().steps.is_empty());
    }

    #[test]
    fn a_process_and_a_traceparent_tell_the_command() {
        let gate = gate(&[Some(1), None]);
        gate.lock().run(0, None);
        assert!(!gate.admit(0, &batch(WORK)), "a session of the other command's process");
        let traced = format!("{WORK} /*traceparent='{}'*/", crate::statement::traceparent(1));
        assert!(!gate.admit(1, &batch(&traced)));
    }

    #[test]
    fn a_session_that_went_back_to_its_pool_belongs_to_the_next() {
        let gate = gate(&[None]);
        gate.lock().run(0, None);
        assert!(gate.admit(0, &batch(WORK)));
        gate.ready(0, TransactionStatus::Idle, 0);
        gate.lock().run(1, None);
        assert!(gate.admit(0, &batch(WORK)));
        assert_eq!(gate.lock().steps[1].command, 1);
    }

    #[test]
    fn a_lock_of_a_session_that_went_back_to_its_pool_is_its_last_commands() {
        let gate = gate(&[None, None]);
        gate.lock().run(0, None);
        assert!(gate.admit(0, &batch("SELECT pg_advisory_lock(7)")));
        gate.ready(0, TransactionStatus::Idle, 0);
        let owners = |pid: i32| gate.lock().owners(&BTreeSet::from([pid]));
        assert_eq!((owners(0), owners(1)), (BTreeSet::from([0]), BTreeSet::new()));
        gate.lock().run(1, None);
        assert!(gate.admit(0, &batch(WORK)));
        assert_eq!(owners(0), BTreeSet::from([1]));
    }

    #[test]
    fn a_statement_outside_of_transactions_stays_its_commands_while_it_is_held() {
        let gate = gate(&[None, None]);
        gate.lock().run(0, Some(1));
        assert!(gate.admit(0, &batch(WORK)));
        gate.ready(0, TransactionStatus::Idle, 0);
        assert!(!gate.admit(0, &batch(WORK)));
        gate.lock().run(1, None);
        assert!(!gate.admit(0, &batch(WORK)), "asked again, it is held for the other one");
        assert!(gate.admit(1, &batch(WORK)));
        gate.lock().run(0, None);
        assert!(gate.admit(0, &batch(WORK)));
        let state = gate.lock();
        assert_eq!(state.steps.iter().map(|step| step.command).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn what_comes_at_rest_is_never_held() {
        let gate = gate(&[None]);
        gate.lock().watching = true;
        assert!(gate.admit(0, &batch("INSERT INTO heartbeat VALUES (1)")));
        gate.lock().watching = false;
        gate.lock().run(0, Some(0));
        assert!(gate.admit(0, &batch("INSERT INTO heartbeat VALUES (2)")), "the same with another value");
        assert!(gate.lock().steps.is_empty() && !gate.admit(0, &batch(WORK)));
    }

    #[test]
    fn what_comes_after_all_commands_have_finished_is_late() {
        let gate = gate(&[None]);
        gate.lock().noise.insert(batch("INSERT INTO heartbeat VALUES (1)").shape);
        let ago = Instant::now().checked_sub(Duration::from_millis(70)).expect("a time");
        gate.lock().resting = Some(ago);
        for sql in ["INSERT INTO heartbeat VALUES (2)", "BEGIN", "ROLLBACK"] {
            assert!(gate.admit(0, &batch(sql)) && gate.lock().late.is_none(), "{sql}");
        }
        assert!(gate.admit(0, &batch(WORK)) && gate.admit(0, &batch(WORK)));
        assert!(gate.lock().late >= Some(Duration::from_millis(70)), "the longest pause");
        gate.lock().resting = None;
        gate.lock().late = None;
        assert!(gate.admit(0, &batch(WORK)) && gate.lock().late.is_none());
    }

    #[test]
    fn a_transaction_of_what_comes_at_rest_ends_unheld() {
        let gate = gate(&[None]);
        gate.lock().watching = true;
        assert!(gate.admit(0, &batch("INSERT INTO heartbeat VALUES (1)")));
        gate.lock().watching = false;
        gate.ready(0, TransactionStatus::Idle, 0);
        gate.lock().run(1, Some(0));
        assert!(gate.admit(0, &batch("BEGIN")));
        gate.ready(0, TransactionStatus::InTransaction, 0);
        assert!(gate.admit(0, &batch("INSERT INTO heartbeat VALUES (2)")));
        gate.ready(0, TransactionStatus::InTransaction, 0);
        assert!(gate.admit(0, &batch("COMMIT")) && gate.lock().steps.is_empty());
        gate.ready(0, TransactionStatus::Idle, 0);
        assert!(gate.admit(0, &batch("BEGIN")));
        gate.ready(0, TransactionStatus::InTransaction, 0);
        assert!(!gate.admit(0, &batch(WORK)), "the next one may be a command's");
    }
}
