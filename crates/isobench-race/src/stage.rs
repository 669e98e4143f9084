//! Performs schedules: commands are started, and their statements pass in the order of the schedule.
//!
//! One command runs at a time. If it waits for a lock of another one, that one goes on, transaction by
//! transaction, until the lock is free. If it waits within the application, the other one goes on to its
//! end, and the schedule isn't an interleaving.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::RaceError;
use crate::answer::Answer;
use crate::gate::{Actor, Gate, State};
use crate::ground::Ground;
use crate::outcome::{Outcome, Trouble};
use crate::process::{self, Environment};
use crate::schedule::{Schedule, Turn, name};
use crate::statement::traceparent;

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(8);

/// The shortest pause between two looks.
const MOMENT: Duration = Duration::from_micros(200);

/// The time without an answer after which a lock is looked for; then after twice that time, and so on.
const UNANSWERED: Duration = Duration::from_millis(2);

/// The pause of a command that counts as waiting within the application, until its own pauses are known.
const STUCK: Duration = Duration::from_secs(9);

/// The least such pause.
const LEAST_STUCK: Duration = Duration::from_secs(2);

/// The same where commands connect themselves: on a busy machine processes start slowly, and only a lock of
/// files or the like lets them wait for each other.
const LEAST_STUCK_ALONE: Duration = Duration::from_secs(5);

/// The least silence while statements are missing that a command sends after its answer when it runs alone.
const MISSING: Duration = Duration::from_secs(2);

/// The time that a transaction may stay open after its command's end.
const LEFT_OPEN: Duration = Duration::from_millis(500);

/// The time that statements have to end after a schedule.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The silence that is waited for after a schedule that took too long.
const AFTER_TIMEOUT: Duration = Duration::from_secs(1);

/// The time that a killed command has to end.
const KILLED: Duration = Duration::from_secs(2);

/// The pause after which a deadlock is looked at again, which the server ends.
const DEADLOCKED: Duration = Duration::from_millis(20);

/// What ends a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Finished,
    /// It has done its steps.
    Held,
    /// It waits for a lock.
    Blocked,
    /// It waits within the application.
    Stuck,
    /// The other command may go on.
    Free,
    TimedOut,
}

/// The commands, and what is known of them.
pub(crate) struct Stage<'a> {
    pub(crate) gate: Arc<Gate>,
    pub(crate) commands: &'a [String],
    pub(crate) environment: Environment,
    /// True once the user asks to stop.
    pub(crate) stopped: &'a dyn Fn() -> bool,
    /// The longest time of a turn.
    pub(crate) patience: Duration,
    /// Nothing comes of a command after this time of silence.
    pub(crate) settle: Duration,
    /// The longest pauses of commands.
    pub(crate) pauses: BTreeMap<usize, Duration>,
    /// The most statements of commands in serial orders.
    pub(crate) statements: BTreeMap<usize, usize>,
    /// Some of these come after the command's answer.
    pub(crate) works_late: bool,
    /// Every session belongs to a process of a command, so all are started at once.
    pub(crate) at_once: bool,
    pub(crate) conditions: &'a [(String, String)],
}

impl Stage<'_> {
    /// Runs a schedule; then every command to its end. Afterwards it waits for `rest` whether more comes of
    /// them, unless they connect themselves.
    ///
    /// # Errors
    /// The user asks to stop, a command can't be started, or the server is lost.
    pub(crate) fn perform(
        &self,
        schedule: &Schedule,
        ground: &mut Ground,
        rest: Duration,
    ) -> Result<Outcome, RaceError> {
        let began = Instant::now();
        let answers = Arc::new(std::sync::Mutex::new(BTreeMap::new()));
        {
            let mut state = self.gate.lock();
            state.actors = (0..self.commands.len()).map(|_| Actor::new()).collect();
            state.steps.clear();
            state.helper = None;
            (state.resting, state.late) = (None, None);
        }
        let mut run = Run { stage: self, ground, schedule, answers, troubles: BTreeSet::new() };
        let performed = run.turns();
        let (answers, troubles) = (Arc::clone(&run.answers), run.troubles.clone());
        let is_over = performed.is_ok() && !troubles.contains(&Trouble::TimedOut);
        let late = if is_over { self.rest(rest, None)? } else { None };
        // While what the commands left behind still runs.
        let relayed = self.require_relayed(ground);
        self.clear();
        if is_over {
            self.gate.lock().resting = Some(Instant::now());
        } else if performed.is_ok() {
            // The application goes on with what was held. The next schedule mustn't see any of it.
            self.rest(AFTER_TIMEOUT, Some(Instant::now()))?;
        }
        performed?;
        relayed?;
        let answers = answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let took = began.elapsed();
        let changes = ground.changes()?;
        let violated = ground.violated(self.conditions)?;
        let state = self.gate.lock();
        let pauses = state.actors.iter().enumerate().map(|(command, actor)| (command, actor.pause)).collect();
        Ok(Outcome {
            schedule: schedule.clone(),
            steps: state.steps.clone(),
            answers,
            changes,
            violated,
            troubles: troubles.into_iter().collect(),
            pauses,
            took,
            late,
        })
    }

    /// Waits until nothing has come for this time since then, or since the last command did something. Returns the
    /// longest pause before what came.
    fn rest(&self, quiet: Duration, since: Option<Instant>) -> Result<Option<Duration>, RaceError> {
        let mut state = self.gate.lock();
        if quiet.is_zero() || (!state.steps.is_empty() && state.steps.iter().all(|step| step.by_process)) {
            return Ok(None);
        }
        let last = state.actors.iter().map(|actor| actor.last).max();
        state.runner = None;
        state.resting = since.or(last);
        let began = Instant::now();
        while state.resting.is_some_and(|since| since.elapsed() < quiet) && began.elapsed() < quiet * 4 {
            if (self.stopped)() {
                return Err(RaceError::Interrupted);
            }
            state = self.gate.wait(state, LOOK);
        }
        state.resting = None;
        Ok(state.late.take())
    }

    /// Ends what is left of the commands: processes are killed, and statements that are held pass.
    fn clear(&self) {
        for (group, _) in self.gate.groups() {
            process::signal(group, Signal::KILL);
        }
        let groups: Vec<u32> = self.gate.lock().actors.iter().filter_map(|actor| actor.group).collect();
        process::end_left_behind(&groups);
        self.gate.lock().release();
        let wait = |limit: Duration, over: &dyn Fn(&State) -> bool| {
            let end = Instant::now() + limit;
            let mut state = self.gate.lock();
            while !over(&state) && Instant::now() < end {
                state = self.gate.wait(state, LOOK);
            }
        };
        wait(KILLED, &|state| state.actors.iter().all(|actor| actor.group.is_none() || actor.exited));
        wait(AFTERMATH, &|state| !state.seats.values().any(|seat| seat.owner.is_some() && seat.is_open()));
        let mut state = self.gate.lock();
        for seat in state.seats.values_mut() {
            // Its locks would be in the way of putting rows back.
            seat.doomed |= seat.owner.is_some() && seat.is_open();
            (seat.owner, seat.last, seat.held, seat.step) = (None, None, None, None);
        }
        state.wake();
    }

    /// Makes sure that every session of the database came through the relay. One that has just begun or
    /// ended isn't known for a moment.
    pub(crate) fn require_relayed(&self, ground: &mut Ground) -> Result<(), RaceError> {
        let mut found = None;
        for _ in 0..20 {
            let known: Vec<i32> = self.gate.lock().pids.iter().copied().collect();
            found = ground.strangers(&known)?;
            if found.is_none() {
                return Ok(());
            }
            std::thread::sleep(DEADLOCKED);
        }
        found.map_or(Ok(()), |who| Err(RaceError::Direct { who }))
    }
}

type Answers = Arc<std::sync::Mutex<BTreeMap<usize, Answer>>>;

/// One schedule on its way.
struct Run<'s, 'a> {
    stage: &'s Stage<'a>,
    ground: &'s mut Ground,
    schedule: &'s Schedule,
    answers: Answers,
    troubles: BTreeSet<Trouble>,
}

impl Run<'_, '_> {
    fn turns(&mut self) -> Result<(), RaceError> {
        let began = Instant::now();
        let commands = self.schedule.commands();
        let rest = commands.iter().map(|command| Turn { command: *command, steps: None });
        let mut turns: Vec<Turn> = self.schedule.0.iter().copied().chain(rest).rev().collect();
        while let Some(turn) = turns.last_mut() {
            let Turn { command, steps } = *turn;
            {
                let mut state = self.stage.gate.lock();
                let actor = &state.actors[command];
                if actor.finished || (steps == Some(0) && actor.group.is_some()) {
                    drop(state);
                    turns.pop();
                    continue;
                }
                state.helper = None;
                state.run(command, steps);
            }
            self.start(command, &commands)?;
            let end = self.until(command, None)?;
            if end == End::Finished && steps.is_some() {
                self.troubles.insert(Trouble::Early(command));
            }
            if matches!(end, End::Finished | End::Held) {
                turns.pop();
                continue;
            }
            if end == End::TimedOut {
                self.troubles.insert(Trouble::TimedOut);
                return Ok(());
            }
            turn.steps = self.stage.gate.lock().quota;
            if !self.help(command, end)? || began.elapsed() > self.stage.patience {
                self.troubles.insert(Trouble::TimedOut);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Starts a command, and the others if their statements can be told apart.
    fn start(&self, command: usize, all: &[usize]) -> Result<(), RaceError> {
        let wanted: Vec<usize> = if self.stage.at_once { all.to_vec() } else { vec![command] };
        for command in wanted {
            if self.stage.gate.lock().actors[command].group.is_some() {
                continue;
            }
            let mut environment = self.stage.environment.clone();
            environment.set.push((process::MARK.to_owned(), name(command).to_string()));
            environment.set.push(("TRACEPARENT".to_owned(), traceparent(command)));
            let (gate, answers) = (Arc::clone(&self.stage.gate), Arc::clone(&self.answers));
            let ended = move |answer: Answer| {
                answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(command, answer);
                if let Some(actor) = gate.lock().actors.get_mut(command) {
                    actor.exited = true;
                    actor.act();
                }
                gate.pulse();
            };
            // The group has to be known before the first connection comes.
            let mut state = self.stage.gate.lock();
            state.actors[command].last = Instant::now();
            let group = process::start(&self.stage.commands[command], &environment, ended)?;
            state.actors[command].group = Some(group);
        }
        Ok(())
    }

    /// Lets another command go on for one that waits. False if that took too long.
    fn help(&mut self, waiting: usize, end: End) -> Result<bool, RaceError> {
        let others: Vec<usize> = {
            let state = self.stage.gate.lock();
            let runs = |(command, actor): (usize, &Actor)| {
                (command != waiting && actor.group.is_some() && !actor.finished).then_some(command)
            };
            state.actors.iter().enumerate().filter_map(runs).collect()
        };
        let blockers = self.blockers(waiting)?;
        let helper = others.iter().find(|other| blockers.contains(other)).or(others.first()).copied();
        let Some(helper) = helper.filter(|helper| self.blockers(*helper).is_ok_and(|of| of.is_empty()))
        else {
            // A deadlock, which the server ends, or a pause of the command.
            std::thread::sleep(DEADLOCKED);
            return Ok(true);
        };
        self.troubles.insert(match end {
            End::Stuck => Trouble::Stuck(waiting),
            _ => Trouble::Blocked(waiting),
        });
        {
            let mut state = self.stage.gate.lock();
            for step in &mut state.steps {
                step.waited |= step.command == waiting && step.tag.is_empty() && step.error.is_none();
            }
            state.helper = Some(helper);
            state.run(helper, None);
        }
        Ok(self.until(helper, Some(waiting))? != End::TimedOut)
    }

    /// The commands for whose locks a command waits.
    fn blockers(&mut self, command: usize) -> Result<BTreeSet<usize>, RaceError> {
        let flying: Vec<i32> = {
            let state = self.stage.gate.lock();
            state.of(command).filter(|seat| seat.flying).map(|seat| seat.pid).collect()
        };
        if flying.is_empty() {
            return Ok(BTreeSet::new());
        }
        let pids = self.ground.blockers(&flying)?;
        let mut owners = self.stage.gate.lock().owners(&pids.into_iter().collect());
        owners.remove(&command);
        Ok(owners)
    }

    /// Waits for what ends a command's turn. `favourite` waits for its lock.
    fn until(&mut self, command: usize, favourite: Option<usize>) -> Result<End, RaceError> {
        let began = Instant::now();
        let mut patience = UNANSWERED;
        loop {
            if (self.stage.stopped)() {
                return Err(RaceError::Interrupted);
            }
            let (end, flying, ask, seen) = {
                let mut state = self.stage.gate.lock();
                let end = self.end_of(&mut state, command, favourite, began);
                let flying =
                    state.of(command).filter(|seat| seat.flying).map(|seat| seat.sent.elapsed()).min();
                (end, flying, state.recheck, state.pulses)
            };
            if let Some(end) = end {
                return Ok(end);
            }
            if let Some(favourite) = favourite.filter(|_| ask) {
                // The server gives a lock on before it answers to the end of the transaction.
                if self.blockers(favourite)?.is_empty() {
                    return Ok(End::Free);
                }
                self.stage.gate.lock().run(command, None);
            }
            match flying {
                None => patience = UNANSWERED,
                Some(time) if time < UNANSWERED => patience = UNANSWERED,
                Some(time) if time >= patience => {
                    if !self.blockers(command)?.is_empty() {
                        return Ok(End::Blocked);
                    }
                    // A long statement isn't disturbed by many looks.
                    patience = (time * 2).min(time + LOOK);
                }
                Some(_) => {}
            }
            if began.elapsed() > self.stage.patience {
                return Ok(End::TimedOut);
            }
            let state = self.stage.gate.lock();
            let look = flying.map(|time| patience.saturating_sub(time) + MOMENT);
            let left = self.silence_left(&state, command);
            let limit = [look, left].into_iter().flatten().fold(LOOK, Duration::min);
            if state.pulses == seen {
                drop(self.stage.gate.wait(state, limit));
            }
        }
    }

    /// The time until a command that has exited will have been silent for long enough.
    fn silence_left(&self, state: &State, command: usize) -> Option<Duration> {
        let actor = state.actors.get(command).filter(|actor| actor.exited)?;
        let left = self.settle(state, command).checked_sub(actor.last.elapsed())?;
        Some(left + MOMENT)
    }

    /// The silence after which nothing more comes of a command.
    fn settle(&self, state: &State, command: usize) -> Duration {
        if self.is_over(state, command) {
            return Duration::ZERO;
        }
        let wanted = self.stage.statements.get(&command).filter(|_| self.stage.works_late);
        let sent = || state.steps.iter().filter(|step| step.command == command).count();
        match wanted {
            Some(wanted) if sent() < *wanted => self.stage.settle.max(MISSING),
            _ => self.stage.settle,
        }
    }

    /// True if nothing more can come of a command that connects itself: its processes and sessions have ended.
    fn is_over(&self, state: &State, command: usize) -> bool {
        let actor = &state.actors[command];
        let has_session = || state.seats.values().any(|seat| seat.process == Some(command));
        self.stage.at_once && actor.exited && !has_session() && actor.group.is_some_and(process::is_gone)
    }

    /// What ends the turn, as far as that is known without the server.
    fn end_of(
        &self,
        state: &mut State,
        command: usize,
        favourite: Option<usize>,
        began: Instant,
    ) -> Option<End> {
        let actor = &state.actors[command];
        let (exited, silent) = (actor.exited, actor.last.elapsed());
        let holds = state.holds(command);
        let open = state.of(command).any(crate::gate::Seat::is_open);
        if exited && !holds && silent >= self.settle(state, command) && (!open || silent > LEFT_OPEN) {
            state.actors[command].finished = true;
            return Some(End::Finished);
        }
        if state.quota == Some(0) && holds {
            return Some(End::Held);
        }
        if favourite.is_some_and(|favourite| state.holds(favourite)) {
            return Some(End::Free);
        }
        let flying = state.of(command).any(|seat| seat.flying);
        let least = if self.stage.at_once { LEAST_STUCK_ALONE } else { LEAST_STUCK };
        let pause = self.stage.pauses.get(&command).map_or(STUCK, |pause| least.max(*pause * 3));
        let stuck = !exited && !holds && !flying && silent.min(began.elapsed()) > pause;
        stuck.then_some(End::Stuck)
    }
}
