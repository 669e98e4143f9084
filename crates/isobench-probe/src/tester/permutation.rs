//! Runs a permutation: launches its steps in order, and reports when each completes or waits.
//!
//! A step is launched as soon as the previous step of its session has completed and the previous
//! step of the permutation has completed or waits. After each launch all waiting steps are checked
//! again. Source: PostgreSQL's `src/test/isolation/README`, "Support for blocking commands" and
//! "Dealing with race conditions".

use std::thread::sleep;
use std::time::Duration;

use super::error::RunError;
use super::options::Options;
use super::session::{Patience, Reply, Stopped, TestSession};
use super::waiting::Waits;
use crate::event::Event;
use crate::spec::{Marker, PermutationStep, Spec, StepId};

/// The time limit for setup and teardown, as a multiple of a step's limit, because specifications
/// load tables there.
const SETUP_PATIENCE: u32 = 10;

/// A launched step that has not completed.
#[derive(Debug, Clone)]
struct Active {
    step: StepId,
    markers: Vec<Hold>,
}

/// A condition that delays reporting the completion of a step.
#[derive(Debug, Clone, Copy)]
enum Hold {
    /// None, but it is reported as waiting once.
    Once,
    /// Another step, as long as it is active.
    Step(StepId),
    /// Another session, until it has sent this many notices in all.
    Notices { session: usize, target: u64 },
}

/// The kind of check of an active step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// It was just launched, and may wait.
    First,
    /// It was reported as waiting, and may still wait.
    Again,
    /// It was reported as waiting, and has to complete now.
    Last,
}

/// The state of a run.
pub struct Run<'a> {
    spec: &'a Spec,
    options: Options,
    stopped: &'a dyn Fn() -> bool,
    control: TestSession,
    sessions: Vec<TestSession>,
    waits: Waits,
    /// For each session, its active step.
    active: Vec<Option<Active>>,
    /// The sessions whose step was reported as waiting, in launch order.
    waiting: Vec<usize>,
    emit: &'a mut dyn FnMut(Event),
}

impl<'a> Run<'a> {
    pub fn new(
        spec: &'a Spec,
        options: Options,
        stopped: &'a dyn Fn() -> bool,
        control: TestSession,
        sessions: Vec<TestSession>,
        waits: Waits,
        emit: &'a mut dyn FnMut(Event),
    ) -> Run<'a> {
        let active = sessions.iter().map(|_| None).collect();
        Run { spec, options, stopped, control, sessions, waits, active, waiting: Vec::new(), emit }
    }

    /// Runs a permutation from setup to teardown.
    ///
    /// # Errors
    /// If the permutation can't be completed, which ends the run.
    pub fn permutation(&mut self, launches: &[PermutationStep]) -> Result<(), RunError> {
        // The number of permutations can be astronomical.
        if (self.stopped)() {
            return Err(RunError::Stopped);
        }
        let name = |launch: &PermutationStep| self.spec.step(launch.step).name.clone();
        (self.emit)(Event::Permutation(launches.iter().map(name).collect()));
        self.set_up()?;
        let outcome = self.steps(launches);
        if matches!(outcome, Err(RunError::Timeout { .. } | RunError::Stopped)) {
            self.end_active();
        }
        outcome?;
        (self.emit)(Event::End);
        self.tear_down()?;
        Ok(())
    }

    fn set_up(&mut self) -> Result<(), RunError> {
        let spec = self.spec;
        for sql in &spec.setup {
            let replies = self.control.execute(sql, self.setup_patience(), &mut |_| {})?;
            show_last(sql, replies, self.emit).map_err(RunError::Setup)?;
        }
        for (index, session) in spec.sessions.iter().enumerate() {
            let Some(sql) = &session.setup else { continue };
            self.execute_in(index, sql)?
                .map_err(|why| RunError::SessionSetup { session: session.name.clone(), why })?;
        }
        Ok(())
    }

    /// Failures are reported, but have no other effect.
    fn tear_down(&mut self) -> Result<(), Stopped> {
        let spec = self.spec;
        for (index, session) in spec.sessions.iter().enumerate() {
            let Some(sql) = &session.teardown else { continue };
            if let Err(why) = self.execute_in(index, sql)? {
                (self.emit)(Event::Warning(format!("teardown of session {} failed: {why}", session.name)));
            }
        }
        if let Some(sql) = &spec.teardown {
            let replies = self.control.execute(sql, self.setup_patience(), &mut |_| {})?;
            if let Err(why) = show_last(sql, replies, self.emit) {
                (self.emit)(Event::Warning(format!("teardown failed: {why}")));
            }
        }
        Ok(())
    }

    fn setup_patience(&self) -> Patience<'a> {
        Patience {
            limit: self.options.step_timeout * SETUP_PATIENCE,
            stopped: self.stopped,
            now: self.options.now,
        }
    }

    /// Runs a session's setup or teardown.
    fn execute_in(&mut self, index: usize, sql: &str) -> Result<Result<(), String>, Stopped> {
        let patience = self.setup_patience();
        let (session, emit) = (&mut self.sessions[index], &mut *self.emit);
        let name = session.name().to_owned();
        let replies = session.execute(sql, patience, &mut |notice| {
            emit(Event::Notice { session: name.clone(), notice });
        })?;
        Ok(show_last(sql, replies, emit))
    }

    fn steps(&mut self, launches: &[PermutationStep]) -> Result<(), RunError> {
        self.waiting.clear();
        for launch in launches {
            let session = launch.step.session;
            self.complete_previous(session)?;
            self.launch(launch)?;
            let waits = self.check(session, Check::First)?;
            self.check_waiting(Check::Again)?;
            if waits {
                self.waiting.push(session);
            }
        }
        self.check_waiting(Check::Last)?;
        if self.waiting.is_empty() { Ok(()) } else { Err(RunError::MutuallyBlocking) }
    }

    /// Waits until the session's previous step has completed, which may depend on other steps.
    fn complete_previous(&mut self, session: usize) -> Result<(), RunError> {
        let began = (self.options.now)();
        while self.active[session].is_some() {
            let others = self.waiting.len();
            if !self.check(session, Check::Last)? {
                self.waiting.retain(|waiting| *waiting != session);
            }
            self.check_waiting(Check::Again)?;
            if let Some(active) = &self.active[session] {
                if (self.stopped)() {
                    return Err(RunError::Stopped);
                }
                if self.options.elapsed(began) > self.options.step_timeout * 2 {
                    return Err(self.timeout(active.step));
                }
                if self.waiting.len() == others {
                    // Only a marker delays it, so there is nothing to read.
                    sleep(Duration::from_millis(1));
                }
            }
        }
        Ok(())
    }

    fn launch(&mut self, launch: &PermutationStep) -> Result<(), RunError> {
        let markers = launch.markers.iter().map(|marker| match *marker {
            Marker::Waiting => Hold::Once,
            Marker::Step(step) => Hold::Step(step),
            Marker::Notices(StepId { session, .. }, count) => {
                Hold::Notices { session, target: self.sessions[session].notices() + u64::from(count) }
            }
        });
        let markers = markers.collect();
        let step = self.spec.step(launch.step);
        let session = &mut self.sessions[launch.step.session];
        let patience =
            Patience { limit: self.options.step_timeout, stopped: self.stopped, now: self.options.now };
        if let Err(why) = session.send(&step.sql, patience) {
            if (self.stopped)() {
                return Err(RunError::Stopped);
            }
            let error = RunError::Send { step: step.name.clone(), why };
            (self.emit)(Event::Lost(error.to_string()));
            return Err(error);
        }
        self.active[launch.step.session] = Some(Active { step: launch.step, markers });
        Ok(())
    }

    /// Checks all waiting steps in order. If some complete while others are delayed by markers,
    /// checks again, because a marker's condition may now be satisfied.
    fn check_waiting(&mut self, how: Check) -> Result<(), RunError> {
        loop {
            let before = self.waiting.clone();
            let mut held = false;
            self.waiting.clear();
            for (place, &session) in before.iter().enumerate() {
                // By now a step may have completed, as the previous step of a session.
                if self.active[session].is_none() {
                    continue;
                }
                match self.check(session, how) {
                    Ok(true) => {
                        held |= self.active[session].as_ref().is_some_and(|step| !step.markers.is_empty());
                        self.waiting.push(session);
                    }
                    Ok(false) => {}
                    Err(error) => {
                        self.waiting.extend_from_slice(&before[place..]);
                        return Err(error);
                    }
                }
            }
            if !held || self.waiting.len() == before.len() {
                return Ok(());
            }
        }
    }

    /// Checks a session's step until it completes or waits, and reports that. Returns true if it
    /// waits.
    fn check(&mut self, session: usize, how: Check) -> Result<bool, RunError> {
        let Some(active) = self.active[session].clone() else { return Ok(false) };
        if how == Check::First && active.markers.iter().any(|hold| matches!(hold, Hold::Once)) {
            self.emit_waiting(active.step);
            return Ok(true);
        }
        if self.await_answer(session, active.step, how != Check::Last)? || self.is_held(&active) {
            if how == Check::First {
                self.emit_waiting(active.step);
            }
            return Ok(true);
        }
        let step = self.spec.step(active.step);
        (self.emit)(if how == Check::First {
            Event::Step { name: step.name.clone(), sql: step.sql.clone() }
        } else {
            Event::Completed { name: step.name.clone() }
        });
        self.report(session, active.step)?;
        self.active[session] = None;
        Ok(false)
    }

    /// Waits for the reply to the next statement of a step. Returns true if `may_wait` is true and
    /// the session waits for another one.
    fn await_answer(&mut self, session: usize, step: StepId, may_wait: bool) -> Result<bool, RunError> {
        let (began, limit) = ((self.options.now)(), self.options.step_timeout);
        let mut cancelled = false;
        while self.is_busy(session) {
            let arrived = self.sessions[session].wait();
            if (self.stopped)() {
                return Err(RunError::Stopped);
            }
            let elapsed = self.options.elapsed(began);
            if !arrived && may_wait && self.waits.waits(&mut self.control, session, elapsed, self.stopped)? {
                return Ok(true);
            }
            if !cancelled && elapsed > limit {
                (self.emit)(Event::Cancelling { name: self.spec.step(step).name.clone(), limit });
                self.sessions[session].cancel();
                cancelled = true;
            }
            if elapsed > limit * 2 {
                return Err(self.timeout(step));
            }
        }
        Ok(false)
    }

    fn is_busy(&mut self, session: usize) -> bool {
        let (session, emit) = (&mut self.sessions[session], &mut *self.emit);
        let name = session.name().to_owned();
        session.busy(&mut |notice| emit(Event::Notice { session: name.clone(), notice }))
    }

    fn is_held(&self, active: &Active) -> bool {
        active.markers.iter().any(|hold| match *hold {
            Hold::Once => false,
            Hold::Step(step) => self.active[step.session].as_ref().is_some_and(|other| other.step == step),
            Hold::Notices { session, target } => self.sessions[session].notices() < target,
        })
    }

    /// Reports the replies to all statements of a step, and the notifications.
    fn report(&mut self, session: usize, step: StepId) -> Result<(), RunError> {
        loop {
            self.await_answer(session, step, false)?;
            let Some(reply) = self.sessions[session].reply() else { break };
            (self.emit)(event(reply));
        }
        let (sessions, emit) = (&mut self.sessions, &mut *self.emit);
        let name = sessions[session].name().to_owned();
        let arrived = sessions[session]
            .notifications(&mut |notice| emit(Event::Notice { session: name.clone(), notice }));
        for notification in arrived {
            let sender = sessions.iter().find(|other| other.pid() == notification.pid);
            let from =
                sender.map_or_else(|| format!("PID {}", notification.pid), |sender| sender.name().to_owned());
            let (channel, payload) = (notification.channel, notification.payload);
            emit(Event::Notification { session: name.clone(), channel, payload, from });
        }
        Ok(())
    }

    fn emit_waiting(&mut self, step: StepId) {
        let step = self.spec.step(step);
        (self.emit)(Event::Waiting { name: step.name.clone(), sql: step.sql.clone() });
    }

    fn timeout(&self, step: StepId) -> RunError {
        let name = |step| self.spec.step(step).name.clone();
        RunError::Timeout {
            step: name(step),
            after: self.options.step_timeout * 2,
            active: self.active.iter().flatten().map(|active| name(active.step)).collect(),
        }
    }

    /// Cancels active steps, so that other sessions don't have to wait for them.
    fn end_active(&mut self) {
        for (session, _) in self.sessions.iter().zip(&self.active).filter(|(_, active)| active.is_some()) {
            if !session.cancel() {
                // If the server doesn't respond to one request, it won't respond to the next one.
                return;
            }
        }
    }
}

fn event(reply: Reply) -> Event {
    match reply {
        Reply::Rows(table) => Event::Rows(table),
        Reply::Command(tag) => Event::Command(tag),
        Reply::Error(error) => Event::Error(*error),
        Reply::Lost(why) => Event::Lost(why),
        Reply::Copy(state) => Event::Unexpected(state),
    }
}

/// Reports only the last reply of a setup or teardown.
fn show_last(sql: &str, replies: Vec<Reply>, emit: &mut dyn FnMut(Event)) -> Result<(), String> {
    match replies.into_iter().next_back() {
        Some(Reply::Error(error)) => Err(error.report(Some(sql))),
        Some(Reply::Lost(why)) => Err(why),
        Some(reply) => {
            emit(event(reply));
            Ok(())
        }
        None => Ok(()),
    }
}
