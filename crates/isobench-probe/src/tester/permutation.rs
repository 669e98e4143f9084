//! One permutation: launches its steps in order, and tells when each completes or waits.
//!
//! A step is launched as soon as the earlier step of its session has completed and the step before
//! it in the permutation has completed or waits. After each launch all steps that wait are looked
//! at again. Source: PostgreSQL's `src/test/isolation/README`, "Support for blocking commands" and
//! "Dealing with race conditions".

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::error::RunError;
use super::session::{Patience, Reply, Session, Stopped};
use super::waiting::Waits;
use super::{Options, Tester};
use crate::event::Event;
use crate::spec::{Launch, Marker, Spec, StepId};

/// How long setup and teardown may take, as a multiple of a step's limit: specifications load
/// tables there.
const SETUP_PATIENCE: u32 = 10;

/// A step under way.
#[derive(Debug, Clone)]
struct Active {
    step: StepId,
    markers: Vec<Hold>,
}

/// What holds back the report of a step's completion.
#[derive(Debug, Clone, Copy)]
enum Hold {
    /// Nothing, but it is told to be waiting once.
    Once,
    /// Another step, as long as it is under way.
    Step(StepId),
    /// Another session, until it has been sent so many notices in all.
    Notices { session: usize, target: u64 },
}

/// How a step is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It was launched just now, and may wait.
    First,
    /// It was told to be waiting, and may still do so.
    Again,
    /// It was told to be waiting, and has to complete now.
    Last,
}

/// The state of a run.
pub struct Run<'a> {
    spec: &'a Spec,
    options: Options,
    stopped: &'a dyn Fn() -> bool,
    control: Session,
    sessions: Vec<Session>,
    waits: Waits,
    /// For each session the step that is under way.
    active: Vec<Option<Active>>,
    /// The sessions whose step was told to be waiting, in the order of their launches.
    waiting: Vec<usize>,
    tell: &'a mut dyn FnMut(Event),
}

impl<'a> Run<'a> {
    pub fn new(
        spec: &'a Spec,
        tester: &'a Tester<'_>,
        control: Session,
        sessions: Vec<Session>,
        waits: Waits,
        tell: &'a mut dyn FnMut(Event),
    ) -> Run<'a> {
        let active = sessions.iter().map(|_| None).collect();
        let (options, stopped) = (tester.options, tester.stopped);
        Run { spec, options, stopped, control, sessions, waits, active, waiting: Vec::new(), tell }
    }

    /// Runs one permutation from setup to teardown.
    ///
    /// # Errors
    /// It can't go on, nor can the run.
    pub fn permutation(&mut self, launches: &[Launch]) -> Result<(), RunError> {
        // There may be more of them than anybody lives to see.
        if (self.stopped)() {
            return Err(RunError::Stopped);
        }
        let name = |launch: &Launch| self.spec.step(launch.step).name.clone();
        (self.tell)(Event::Permutation(launches.iter().map(name).collect()));
        self.set_up()?;
        let outcome = self.steps(launches);
        if matches!(outcome, Err(RunError::Timeout { .. } | RunError::Stopped)) {
            self.end_active();
        }
        outcome?;
        (self.tell)(Event::End);
        self.tear_down()?;
        Ok(())
    }

    fn set_up(&mut self) -> Result<(), RunError> {
        let spec = self.spec;
        for sql in &spec.setup {
            let replies = self.control.execute(sql, self.setup_patience(), &mut |_| {})?;
            show_last(sql, replies, self.tell).map_err(RunError::Setup)?;
        }
        for (index, session) in spec.sessions.iter().enumerate() {
            let Some(sql) = &session.setup else { continue };
            self.execute_in(index, sql)?
                .map_err(|why| RunError::SessionSetup { session: session.name.clone(), why })?;
        }
        Ok(())
    }

    /// What fails here is told and changes nothing.
    fn tear_down(&mut self) -> Result<(), Stopped> {
        let spec = self.spec;
        for (index, session) in spec.sessions.iter().enumerate() {
            let Some(sql) = &session.teardown else { continue };
            if let Err(why) = self.execute_in(index, sql)? {
                (self.tell)(Event::Warning(format!("teardown of session {} failed: {why}", session.name)));
            }
        }
        if let Some(sql) = &spec.teardown {
            let replies = self.control.execute(sql, self.setup_patience(), &mut |_| {})?;
            if let Err(why) = show_last(sql, replies, self.tell) {
                (self.tell)(Event::Warning(format!("teardown failed: {why}")));
            }
        }
        Ok(())
    }

    fn setup_patience(&self) -> Patience<'a> {
        Patience { limit: self.options.step_timeout * SETUP_PATIENCE, stopped: self.stopped }
    }

    /// A session's setup or teardown.
    fn execute_in(&mut self, index: usize, sql: &str) -> Result<Result<(), String>, Stopped> {
        let patience = self.setup_patience();
        let (session, tell) = (&mut self.sessions[index], &mut *self.tell);
        let name = session.name().to_owned();
        let replies = session.execute(sql, patience, &mut |notice| {
            tell(Event::Notice { session: name.clone(), notice });
        })?;
        Ok(show_last(sql, replies, tell))
    }

    fn steps(&mut self, launches: &[Launch]) -> Result<(), RunError> {
        self.waiting.clear();
        for launch in launches {
            let session = launch.step.session;
            self.complete_earlier(session)?;
            self.launch(launch)?;
            let waits = self.look(session, Look::First)?;
            self.look_at_waiting(Look::Again)?;
            if waits {
                self.waiting.push(session);
            }
        }
        self.look_at_waiting(Look::Last)?;
        if self.waiting.is_empty() { Ok(()) } else { Err(RunError::MutuallyBlocking) }
    }

    /// Waits until the session's earlier step has completed, which another one may have to release
    /// first.
    fn complete_earlier(&mut self, session: usize) -> Result<(), RunError> {
        let began = Instant::now();
        while self.active[session].is_some() {
            let others = self.waiting.len();
            if !self.look(session, Look::Last)? {
                self.waiting.retain(|waiting| *waiting != session);
            }
            self.look_at_waiting(Look::Again)?;
            if let Some(active) = &self.active[session] {
                if (self.stopped)() {
                    return Err(RunError::Stopped);
                }
                if began.elapsed() > self.options.step_timeout * 2 {
                    return Err(self.timeout(active.step));
                }
                if self.waiting.len() == others {
                    // Only a marker holds it: there is nothing to read.
                    sleep(Duration::from_millis(1));
                }
            }
        }
        Ok(())
    }

    fn launch(&mut self, launch: &Launch) -> Result<(), RunError> {
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
        let patience = Patience { limit: self.options.step_timeout, stopped: self.stopped };
        if let Err(why) = session.send(&step.sql, patience) {
            if (self.stopped)() {
                return Err(RunError::Stopped);
            }
            let error = RunError::Send { step: step.name.clone(), why };
            (self.tell)(Event::Lost(error.to_string()));
            return Err(error);
        }
        self.active[launch.step.session] = Some(Active { step: launch.step, markers });
        Ok(())
    }

    /// Looks at all waiting steps in order. If some complete and others are held back by markers,
    /// looks at those again, because a marker may have been lifted.
    fn look_at_waiting(&mut self, how: Look) -> Result<(), RunError> {
        loop {
            let before = self.waiting.clone();
            let mut held = false;
            self.waiting.clear();
            for (place, &session) in before.iter().enumerate() {
                // A step may have completed on the way, as the earlier step of a session.
                if self.active[session].is_none() {
                    continue;
                }
                match self.look(session, how) {
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

    /// Looks at a session's step until it completes or waits; tells which, and returns whether it
    /// waits.
    fn look(&mut self, session: usize, how: Look) -> Result<bool, RunError> {
        let Some(active) = self.active[session].clone() else { return Ok(false) };
        if how == Look::First && active.markers.iter().any(|hold| matches!(hold, Hold::Once)) {
            self.tell_waiting(active.step);
            return Ok(true);
        }
        if self.await_answer(session, active.step, how != Look::Last)? || self.is_held(&active) {
            if how == Look::First {
                self.tell_waiting(active.step);
            }
            return Ok(true);
        }
        let step = self.spec.step(active.step);
        (self.tell)(if how == Look::First {
            Event::Step { name: step.name.clone(), sql: step.sql.clone() }
        } else {
            Event::Completed { name: step.name.clone() }
        });
        self.report(session, active.step)?;
        self.active[session] = None;
        Ok(false)
    }

    /// Waits for the answer to the next statement of a step; true if the session waits for another
    /// one, and may.
    fn await_answer(&mut self, session: usize, step: StepId, may_wait: bool) -> Result<bool, RunError> {
        let (began, limit) = (Instant::now(), self.options.step_timeout);
        let mut cancelled = false;
        while self.is_busy(session) {
            let arrived = self.sessions[session].wait();
            if (self.stopped)() {
                return Err(RunError::Stopped);
            }
            if !arrived && may_wait && self.waits.waits(&mut self.control, session, began, self.stopped)? {
                return Ok(true);
            }
            if !cancelled && began.elapsed() > limit {
                (self.tell)(Event::Cancelling { name: self.spec.step(step).name.clone(), limit });
                self.sessions[session].cancel();
                cancelled = true;
            }
            if began.elapsed() > limit * 2 {
                return Err(self.timeout(step));
            }
        }
        Ok(false)
    }

    fn is_busy(&mut self, session: usize) -> bool {
        let (session, tell) = (&mut self.sessions[session], &mut *self.tell);
        let name = session.name().to_owned();
        session.busy(&mut |notice| tell(Event::Notice { session: name.clone(), notice }))
    }

    fn is_held(&self, active: &Active) -> bool {
        active.markers.iter().any(|hold| match *hold {
            Hold::Once => false,
            Hold::Step(step) => self.active[step.session].as_ref().is_some_and(|other| other.step == step),
            Hold::Notices { session, target } => self.sessions[session].notices() < target,
        })
    }

    /// Tells the answers to all statements of a step, and the notifications.
    fn report(&mut self, session: usize, step: StepId) -> Result<(), RunError> {
        loop {
            self.await_answer(session, step, false)?;
            let Some(reply) = self.sessions[session].reply() else { break };
            (self.tell)(event(reply));
        }
        let (sessions, tell) = (&mut self.sessions, &mut *self.tell);
        let name = sessions[session].name().to_owned();
        let arrived = sessions[session]
            .notifications(&mut |notice| tell(Event::Notice { session: name.clone(), notice }));
        for notification in arrived {
            let sender = sessions.iter().find(|other| other.pid() == notification.pid);
            let from =
                sender.map_or_else(|| format!("PID {}", notification.pid), |sender| sender.name().to_owned());
            let (channel, payload) = (notification.channel, notification.payload);
            tell(Event::Notification { session: name.clone(), channel, payload, from });
        }
        Ok(())
    }

    fn tell_waiting(&mut self, step: StepId) {
        let step = self.spec.step(step);
        (self.tell)(Event::Waiting { name: step.name.clone(), sql: step.sql.clone() });
    }

    fn timeout(&self, step: StepId) -> RunError {
        let name = |step| self.spec.step(step).name.clone();
        RunError::Timeout {
            step: name(step),
            after: self.options.step_timeout * 2,
            active: self.active.iter().flatten().map(|active| name(active.step)).collect(),
        }
    }

    /// Leaves no statement behind that somebody else would have to wait for.
    fn end_active(&mut self) {
        for (session, _) in self.sessions.iter().zip(&self.active).filter(|(_, active)| active.is_some()) {
            if !session.cancel() {
                // A server that doesn't answer one request won't answer the next.
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

/// Of setup and teardown only the last answer is told.
fn show_last(sql: &str, replies: Vec<Reply>, tell: &mut dyn FnMut(Event)) -> Result<(), String> {
    match replies.into_iter().next_back() {
        Some(Reply::Error(error)) => Err(error.report(Some(sql))),
        Some(Reply::Lost(why)) => Err(why),
        Some(reply) => {
            tell(event(reply));
            Ok(())
        }
        None => Ok(()),
    }
}
