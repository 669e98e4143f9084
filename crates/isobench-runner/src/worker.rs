//! One worker: the event loop over its clients. Stop condition, pacing, retries and protocol are
//! values in it.
//!
//! Not here: what a client does when it is called (`client.rs`), and the threads (`fleet.rs`).

use std::io;
use std::mem;
use std::time::Duration;

use isobench_limits::LIMITS;
use isobench_pgwire::{ConnectOptions, Connection};
use isobench_script::Prng;

use crate::client::{CLOSED, Client, ClientAction, Context};
use crate::clients::WorkerStreams;
use crate::control::{Control, Urgency};
use crate::event::{AbortCause, ClientEvent, CommandPlace, EventHandler};
use crate::job::Job;
use crate::load::{LoadMeter, WorkerLoad};
use crate::observer::TransactionObserver;
use crate::progress::PublishedProgress;
use crate::recorder::Recorder;
use crate::recording::{ChunkWriter, Recording};
use crate::schedule::Schedule;
use crate::series::SeriesCounter;
use crate::sockets::Sockets;
use crate::spec::{OnError, Pacing, StopCondition};
use crate::time::{Clock, Nanos};
use crate::timers::Timers;
use crate::transport::{Received, Transport};

/// The longest wait of the loop, so that a request to stop is noticed soon.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// The longest time that a request waits for others to be sent with it, ns.
const MOST_DELAY: u64 = 100_000;

/// Time between two publications of progress.
const PUBLISH_EVERY: Duration = Duration::from_millis(10);

/// The same of latencies, if they are published: adding them up takes some microseconds.
const PUBLISH_LATENCIES_EVERY: Duration = Duration::from_millis(250);

/// Time after which a recording that is followed gets what was recorded, even if it isn't much.
const HAND_OVER_EVERY: Duration = Duration::from_millis(100);

/// The clients of a worker with their connections. Kept from warm-up to measurement.
pub(crate) struct Worker<T> {
    pub(crate) clients: Vec<Client>,
    pub(crate) transport: T,
    /// For each client, bytes that its connection hasn't accepted yet.
    unsent: Vec<Vec<u8>>,
    /// What a turn leaves to the next one.
    carried: Option<Carried>,
}

/// The part of a worker's run that goes on in its next turn.
struct Carried {
    schedule: Option<Schedule>,
    choice: Option<Prng>,
}

/// The phase of a run. Each phase is entered from the one before and never left backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RunPhase {
    /// Transactions start. Then `Stopping`, at the deadline or by request.
    Running,
    /// No transaction starts; those under way continue at most until this instant. Then
    /// `Cancelling`, also by an urgent request.
    Stopping(Nanos),
    /// The server was asked to cancel what is under way. At this instant the remaining connections
    /// are closed.
    Cancelling(Nanos),
}

/// The outcome of one worker's run.
pub(crate) struct WorkerOutcome {
    pub(crate) recorder: Recorder,
    /// The instant at which its last client finished.
    pub(crate) ended: Nanos,
    /// The run was ended by a request from outside.
    pub(crate) interrupted: bool,
    /// Clients without a session, after a loss.
    pub(crate) away: usize,
    /// Clients that can never run again.
    pub(crate) aborted: usize,
    /// Time spent on opening and closing sessions for single transactions.
    pub(crate) reconnecting: Duration,
    pub(crate) load: WorkerLoad,
    /// The clients that took part, and the sum of the times, in ns since the start of the run, at
    /// which they finished.
    pub(crate) finished: (u64, u64),
}

impl<T: Transport> Worker<T> {
    pub(crate) fn new(clients: Vec<Client>, transport: T) -> Worker<T> {
        let unsent = clients.iter().map(|_| Vec::new()).collect();
        Worker { clients, transport, unsent, carried: None }
    }

    /// Runs all clients until they have finished.
    pub(crate) fn run(
        &mut self,
        task: &WorkerTask<'_>,
        observer: Option<&mut (dyn TransactionObserver + 'static)>,
    ) -> WorkerOutcome {
        let began = task.clock.now();
        let spec = &task.job.spec;
        // Each worker draws its own schedule, so that workers share nothing. Together these are
        // again a Poisson process, of the summed rate.
        let share = if spec.rules.shares_rate_by_clients() || spec.share.is_some() {
            self.clients.len() as f64 / spec.clients.max(1) as f64
        } else {
            1.0 / spec.workers.max(1) as f64
        };
        let schedule = match spec.pacing {
            Pacing::Rate(rate) => Some(Schedule::new(rate, share, began, task.streams.schedule.clone())),
            Pacing::Unpaced | Pacing::ThinkTime(_) => None,
        };
        let goes_on = self.carried.is_some();
        let fresh = Carried { schedule, choice: task.streams.choice.clone() };
        let Carried { schedule, choice } = self.carried.take().unwrap_or(fresh);
        let mut recorder = task.job.recorder();
        recorder.series = spec.series.map(|bin| SeriesCounter::new(task.began, bin));
        let mut run = WorkerRun {
            task,
            live: 0,
            goes_on,
            pausing: false,
            finished: (0, 0),
            recorder,
            meter: LoadMeter::new(task.clock, began),
            chunk: ChunkWriter::default(),
            followed: task.job.recording.as_ref().filter(|recording| recording.is_followed()),
            handed_over: began,
            schedule,
            choice,
            observer,
            reconnecting: 0,
            timers: Timers::default(),
            out: Vec::new(),
            to_send: Vec::new(),
            sent: began,
            now: began,
            phase: RunPhase::Running,
            interrupted: false,
            published: Nanos(0),
            published_latencies: Nanos(0),
            deadline: match task.stop {
                StopCondition::Time(time) | StopCondition::Turn(time) => began.after(time),
                StopCondition::Transactions(_) => Nanos::NEVER,
            },
            worker: self,
        };
        run.work();
        let carried = Carried { schedule: run.schedule, choice: run.choice };
        run.worker.carried = matches!(task.stop, StopCondition::Turn(_)).then_some(carried);
        WorkerOutcome {
            finished: run.finished,
            ended: run.now,
            interrupted: run.interrupted,
            reconnecting: Duration::from_nanos(run.reconnecting),
            recorder: run.recorder,
            load: run.meter.finish(task.clock, run.now, self.clients.len()),
            aborted: self.clients.iter().filter(|client| client.is_aborted()).count(),
            away: self.clients.iter().filter(|client| client.is_away()).count(),
        }
    }
}

impl Worker<Sockets> {
    /// Takes out the sessions that can be reused.
    pub(crate) fn release(&mut self, options: &ConnectOptions) -> Vec<Connection> {
        let transport = &mut self.transport;
        let sent = self.unsent.iter().map(Vec::is_empty);
        let resting = self.clients.iter().enumerate().zip(sent);
        let session = |((index, client), sent): ((usize, &Client), bool)| {
            if !sent || !client.is_at_rest() {
                return None;
            }
            let session = transport.release(index, client.received(), options)?;
            Some(Connection::from_established(session))
        };
        resting.filter_map(session).collect()
    }
}

/// The parameters of a worker's run.
pub(crate) struct WorkerTask<'a> {
    pub(crate) job: &'a Job,
    pub(crate) stop: StopCondition,
    pub(crate) clock: &'a dyn Clock,
    /// The start of the run, the same for all workers.
    pub(crate) began: Nanos,
    pub(crate) control: &'a Control,
    pub(crate) published: &'a PublishedProgress,
    /// Latencies are published, too.
    pub(crate) latencies: bool,
    pub(crate) report: &'a EventHandler<'a>,
    pub(crate) streams: &'a WorkerStreams,
}

/// A client's bytes to be sent at the end of the turn.
#[derive(Debug, Clone, Copy)]
struct ToSend {
    client: usize,
    /// The number of the session that they are for.
    session: u32,
    /// Where they start.
    start: usize,
}

/// The state of a worker during one run.
struct WorkerRun<'a, T> {
    task: &'a WorkerTask<'a>,
    worker: &'a mut Worker<T>,
    /// Clients that haven't finished.
    live: usize,
    /// This is the next turn of a longer run.
    goes_on: bool,
    /// The turn is over, and clients are waiting for the next one.
    pausing: bool,
    /// As in [`WorkerOutcome`].
    finished: (u64, u64),
    recorder: Recorder,
    meter: LoadMeter,
    chunk: ChunkWriter,
    /// The recording, if a thread follows it.
    followed: Option<&'a Recording>,
    /// When the last chunk was handed over to it.
    handed_over: Nanos,
    schedule: Option<Schedule>,
    choice: Option<Prng>,
    observer: Option<&'a mut (dyn TransactionObserver + 'static)>,
    /// Time in ns.
    reconnecting: u64,
    timers: Timers,
    /// Bytes to be sent at the end of the turn, of all clients.
    out: Vec<u8>,
    /// The clients with bytes to send, and where these start in `out`.
    to_send: Vec<ToSend>,
    /// When everything had been sent, about.
    sent: Nanos,
    now: Nanos,
    phase: RunPhase,
    interrupted: bool,
    published: Nanos,
    published_latencies: Nanos,
    /// No transaction and no attempt starts from this instant on.
    deadline: Nanos,
}

impl<T: Transport> WorkerRun<'_, T> {
    fn work(&mut self) {
        self.live = {
            let goes_on = self.goes_on;
            self.worker.clients.iter_mut().map(|client| usize::from(client.ready(goes_on))).sum()
        };
        match self.worker.transport.begin() {
            Ok(()) => {
                self.start();
                self.work_passes();
            }
            Err(error) => self.give_up(&error),
        }
        self.worker.transport.end();
        self.publish(true);
        if let Some(recording) = &self.task.job.recording {
            self.hand_over(recording);
        }
    }

    /// Hands over what was recorded.
    fn hand_over(&mut self, recording: &Recording) {
        self.handed_over = self.now;
        if let Some(problem) = self.chunk.flush(recording) {
            (self.task.report)(ClientEvent::Unrecorded(problem));
        }
    }

    /// Starts every client.
    fn start(&mut self) {
        for client in 0..self.worker.clients.len() {
            if self.worker.clients[client].is_live() {
                self.now = self.task.clock.now();
                match self.worker.clients[client].due() {
                    Some(due) if self.takes_turns() => self.wake(client, due),
                    _ => self.call(client, |client, _, ctx| client.on_timer(ctx)),
                }
            }
        }
        self.send_all();
    }

    /// Waits for the clients' connections and timers until all clients have finished.
    fn work_passes(&mut self) {
        let mut due = Vec::new();
        let mut served = self.live;
        while self.live > 0 && !self.is_paused() {
            let until = self.next_instant();
            // What the transport does before it waits belongs to the pass, if it won't wait.
            let goes_on = self.worker.transport.has_news();
            if !goes_on {
                self.meter.end_pass(self.now, served);
            }
            let waited = self.worker.transport.wait(self.now, until);
            self.now = self.task.clock.now();
            if goes_on {
                self.meter.end_pass(self.now, served);
            }
            self.meter.begin_pass(self.now);
            self.sent = self.now;
            served = 0;
            if let Err(error) = waited {
                self.give_up(&error);
                break;
            }
            while let Some(client) = self.worker.transport.next() {
                self.serve(client);
                served += 1;
            }
            served += self.serve_timers(&mut due);
            self.watch_the_end();
            self.send_all();
            self.publish(false);
            if let Some(recording) = self.followed
                && self.now >= self.handed_over.after(HAND_OVER_EVERY)
            {
                self.hand_over(recording);
            }
        }
        self.meter.end_pass(self.now, served);
    }

    /// The instant until which the loop may wait if nothing arrives.
    fn next_instant(&self) -> Nanos {
        let end = if self.phase == RunPhase::Running { self.deadline } else { Nanos::NEVER };
        self.timers.next().unwrap_or(Nanos::NEVER).min(self.now.after(LONGEST_WAIT)).min(end)
    }

    /// Calls a client at an instant, unless it asks for another one before.
    fn wake(&mut self, client: usize, at: Nanos) {
        self.worker.clients[client].set_wake(at);
        self.timers.set(at, client);
    }

    /// Calls the clients whose timers are due. Returns their number.
    fn serve_timers(&mut self, due: &mut Vec<(Nanos, usize)>) -> usize {
        // Taken out first, so that a client that asks to be called again at once waits for its next
        // turn instead of keeping the others from theirs.
        due.extend(std::iter::from_fn(|| self.timers.due(self.now)));
        let (turn, count) = (self.now, due.len());
        for (at, client) in due.drain(..) {
            if !self.worker.clients[client].wants_call(at) {
                continue;
            }
            self.meter.timer(at, turn);
            self.call(client, |client, _, ctx| client.on_timer(ctx));
        }
        if count > 0 {
            self.now = self.task.clock.now();
        }
        count
    }

    /// Calls a client and carries out the action it returns.
    fn call(
        &mut self,
        client: usize,
        step: impl FnOnce(&mut Client, &mut T, &mut Context<'_>) -> ClientAction,
    ) {
        let (was_live, was_active) = (self.worker.clients[client].is_live(), self.is_active(client));
        let over = self.phase != RunPhase::Running || self.now >= self.deadline;
        let pausing = over && self.may_pause();
        let start = self.out.len();
        let mut ctx = Context {
            job: self.task.job,
            stop: self.task.stop,
            recorder: &mut self.recorder,
            chunk: &mut self.chunk,
            schedule: self.schedule.as_mut(),
            choice: self.choice.as_mut(),
            observer: self.observer.as_deref_mut(),
            out: &mut self.out,
            out_start: start,
            clock: self.task.clock,
            now: self.now,
            deadline: self.deadline,
            stopping: over && !pausing,
            pausing,
            cancelling: matches!(self.phase, RunPhase::Cancelling(_)),
            report: self.task.report,
        };
        let Worker { clients, transport, .. } = &mut *self.worker;
        let action = step(&mut clients[client], transport, &mut ctx);
        self.now = ctx.now;
        if was_live && !self.worker.clients[client].is_live() {
            self.live -= 1;
        }
        if was_active && !self.is_active(client) {
            self.note_finished();
        }
        if self.out.len() > start {
            let session = self.worker.clients[client].session();
            self.to_send.push(ToSend { client, session, start });
        }
        match action {
            ClientAction::Receive | ClientAction::Finish => {}
            ClientAction::Wake(at) => self.wake(client, at),
            ClientAction::Connect => self.connect(client),
            ClientAction::Disconnect => self.disconnect(client),
            ClientAction::Close => self.close(client),
        }
        if self.task.job.blocks || self.now.since(self.sent) > MOST_DELAY {
            self.send_at_once();
        }
    }

    fn takes_turns(&self) -> bool {
        matches!(self.task.stop, StopCondition::Turn(_))
    }

    /// True if the end of the time is only that of a turn.
    fn may_pause(&self) -> bool {
        self.takes_turns()
            && !self.interrupted
            && !matches!(self.phase, RunPhase::Cancelling(_))
            && self.task.control.urgency() == Urgency::None
    }

    /// True if a turn is over and every client waits for the next one.
    fn is_paused(&self) -> bool {
        self.pausing && (0..self.worker.clients.len()).all(|client| !self.is_active(client))
    }

    /// True if a client hasn't finished, and doesn't wait for the next turn.
    fn is_active(&self, client: usize) -> bool {
        let client = &self.worker.clients[client];
        client.is_live() && !(self.pausing && client.is_parked())
    }

    fn note_finished(&mut self) {
        self.finished.0 += 1;
        self.finished.1 += self.now.since(self.task.began);
    }

    /// Opens a session for one transaction, or in place of a lost one.
    fn connect(&mut self, client: usize) {
        self.send_at_once();
        let began = self.now;
        let opened = match &self.task.job.reconnect {
            Some(connect) => {
                let limit = match (self.time_to_connect(), self.task.job.spec.reconnects()) {
                    (limit, None) => limit,
                    (limit, Some(_)) => {
                        Some(limit.map_or(LIMITS.new_session, |limit| limit.min(LIMITS.new_session)))
                    }
                };
                let number = self.worker.clients[client].id();
                self.worker.transport.open(client, &|limit| connect(number, limit), limit)
            }
            None => Err("no way to connect was given".to_owned()),
        };
        self.now = self.task.clock.now();
        self.reconnecting += self.now.since(began);
        match opened {
            Ok(received) => self.call(client, |client, _, ctx| client.on_connected(ctx, &received)),
            Err(why) => self.call(client, |client, _, ctx| client.on_refused(ctx, why)),
        }
    }

    /// The time for which opening a session may block: until transactions under way would be
    /// cancelled (`None`: without a limit).
    fn time_to_connect(&self) -> Option<Duration> {
        let end = match self.phase {
            RunPhase::Running => self.deadline.after(self.task.job.spec.grace),
            RunPhase::Stopping(until) | RunPhase::Cancelling(until) => until,
        };
        (end < Nanos::NEVER).then(|| end.duration_since(self.now))
    }

    /// Closes a session that was for one transaction, or is lost.
    fn disconnect(&mut self, client: usize) {
        self.send_all();
        let began = self.now;
        self.worker.transport.close(client);
        self.worker.unsent[client].clear();
        self.now = self.task.clock.now();
        self.reconnecting += self.now.since(began);
        self.call(client, |client, _, ctx| client.on_disconnected(ctx));
    }

    /// Closes the session of a client that has aborted.
    fn close(&mut self, client: usize) {
        // Best effort: the client is gone, and no reply is awaited.
        self.send_all();
        self.worker.transport.close(client);
        self.worker.unsent[client] = Vec::new();
        // At the end of the run the clients that are closed haven't failed.
        let at_the_end = matches!(self.phase, RunPhase::Cancelling(_));
        if self.task.job.spec.on_error == OnError::EndRun && !at_the_end {
            self.task.control.request(Urgency::Now);
        }
    }

    /// Sends what the clients have left to be sent, before a client blocks the worker.
    fn send_at_once(&mut self) {
        self.sent = self.now;
        self.send_all();
        // Best effort: if the system refuses, the next wait reports it.
        let _ = self.worker.transport.flush();
    }

    /// Sends what the clients have left to be sent. All at once at the end of a turn, so that the
    /// server isn't woken for each, and the kernel's work isn't mixed with the clients'.
    fn send_all(&mut self) {
        while !self.to_send.is_empty() {
            let (out, to_send) = (mem::take(&mut self.out), mem::take(&mut self.to_send));
            let ends = to_send.iter().skip(1).map(|next| next.start).chain([out.len()]);
            for (&ToSend { client, session, start }, end) in to_send.iter().zip(ends) {
                // What was for a session that is lost isn't for its successor.
                if self.worker.clients[client].session() == session {
                    self.send(client, &out[start..end]);
                }
            }
            // A client that has lost its connection may have left something meanwhile.
            if self.to_send.is_empty() {
                (self.out, self.to_send) = (out, to_send);
                self.out.clear();
                self.to_send.clear();
            }
        }
    }

    /// Sends a client's bytes, and keeps those that the connection doesn't accept at once.
    fn send(&mut self, client: usize, bytes: &[u8]) {
        let unsent = &mut self.worker.unsent[client];
        let waiting = !unsent.is_empty();
        // Bytes must not overtake those that the connection hasn't accepted yet.
        let sent = if waiting { Ok(0) } else { self.worker.transport.send(client, bytes) };
        let outcome = sent.and_then(|sent| {
            if sent == bytes.len() {
                return Ok(());
            }
            unsent.extend_from_slice(&bytes[sent..]);
            if waiting { Ok(()) } else { self.worker.transport.watch_writable(client, true) }
        });
        if let Err(error) = outcome {
            self.lose(client, &error);
        }
    }

    /// Sends bytes that were kept.
    fn send_rest(&mut self, client: usize) -> io::Result<()> {
        let unsent = &mut self.worker.unsent[client];
        let sent = self.worker.transport.send(client, unsent)?;
        unsent.drain(..sent);
        if unsent.is_empty() {
            *unsent = Vec::new();
            self.worker.transport.watch_writable(client, false)?;
        }
        Ok(())
    }

    /// Receives from a connection that is ready.
    fn serve(&mut self, client: usize) {
        // The event may belong to a session that the client has left since.
        if !self.worker.clients[client].is_connected() {
            return;
        }
        if !self.worker.unsent[client].is_empty()
            && let Err(error) = self.send_rest(client)
        {
            self.lose(client, &error);
            return;
        }
        self.call(client, |client, transport, ctx| {
            let received = transport.receive();
            ctx.now = ctx.clock.now();
            match received {
                Ok(Received::Bytes(bytes)) => client.on_bytes(ctx, bytes),
                Ok(Received::Nothing) => ClientAction::Receive,
                Ok(Received::Closed) => lose(client, ctx, CLOSED),
                Err(error) => lose(client, ctx, &error.to_string()),
            }
        });
    }

    fn lose(&mut self, client: usize, error: &io::Error) {
        self.call(client, |client, _, ctx| lose(client, ctx, &error.to_string()));
    }

    /// Moves the run to its next phase when its time has come or a request asks for it.
    fn watch_the_end(&mut self) {
        let urgency = self.task.control.urgency();
        let grace = self.grace(urgency);
        match self.phase {
            RunPhase::Running if self.now >= self.deadline && self.may_pause() => {
                self.phase = RunPhase::Stopping(self.now.after(grace));
                self.pausing = true;
                for client in 0..self.worker.clients.len() {
                    if self.worker.clients[client].is_live() && !self.is_active(client) {
                        self.note_finished();
                    }
                }
            }
            RunPhase::Stopping(_) if self.pausing && urgency > Urgency::None => {
                self.pausing = false;
                self.interrupted = true;
                self.for_live(Client::on_stop);
            }
            RunPhase::Running if urgency > Urgency::None || self.now >= self.deadline => {
                self.interrupted = urgency > Urgency::None;
                // Idle clients finish now; the others when their transaction ends.
                self.phase = RunPhase::Stopping(self.now.after(grace));
                self.for_live(Client::on_stop);
            }
            RunPhase::Stopping(until) if urgency == Urgency::Soon && until > self.now.after(grace) => {
                self.phase = RunPhase::Stopping(self.now.after(grace));
            }
            RunPhase::Stopping(until) if urgency == Urgency::Now || self.now >= until => {
                self.interrupted |= urgency > Urgency::None;
                self.pausing = false;
                self.phase = RunPhase::Cancelling(self.now.after(LIMITS.cancelled));
                // Only a session with a request outstanding can be cancelled. A request that
                // arrives between two statements would hit the next one (PostgreSQL: Protocol,
                // Canceling Requests in Progress).
                self.send_at_once();
                for client in 0..self.worker.clients.len() {
                    if self.worker.clients[client].is_live() && self.worker.clients[client].awaits_reply() {
                        self.worker.transport.cancel(client);
                    }
                }
            }
            RunPhase::Cancelling(until) if self.now >= until => self.for_live(Client::on_kill),
            _ => {}
        }
    }

    /// The time of transactions in progress at the end of the run, which is shorter on request.
    fn grace(&self, urgency: Urgency) -> Duration {
        let grace = self.task.job.spec.grace;
        if urgency > Urgency::None { grace.min(LIMITS.hurried) } else { grace }
    }

    fn for_live(&mut self, step: impl Fn(&mut Client, &mut Context<'_>) -> ClientAction) {
        for client in 0..self.worker.clients.len() {
            if self.worker.clients[client].is_live() {
                self.call(client, |client, _, ctx| step(client, ctx));
            }
        }
    }

    /// Ends the run because the operating system can't wait for the connections.
    fn give_up(&mut self, error: &io::Error) {
        let why = format!("its worker can't wait for its connections: {error}");
        (self.task.report)(ClientEvent::Aborted(CommandPlace::default(), AbortCause::Lost(why, None)));
        self.interrupted = true;
        self.for_live(Client::on_kill);
    }

    fn publish(&mut self, last: bool) {
        if last || self.now >= self.published.after(PUBLISH_EVERY) {
            self.published = self.now;
            self.task.published.store(self.recorder.progress());
            if self.task.latencies
                && (last || self.now >= self.published_latencies.after(PUBLISH_LATENCIES_EVERY))
            {
                self.published_latencies = self.now;
                self.task.published.store_latencies(self.recorder.latencies());
            }
        }
    }
}

/// Tells a client that its connection is lost.
fn lose(client: &mut Client, ctx: &mut Context<'_>, why: &str) -> ClientAction {
    if client.is_aborted() { ClientAction::Close } else { client.on_lost(ctx, why) }
}
