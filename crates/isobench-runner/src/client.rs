//! One simulated user: the state machine that walks through transactions, attempts and commands.
//!
//! It has no socket and no clock: it is called with the bytes that arrived, or because its timer
//! fired, and leaves bytes to send and one [`Action`]. `commands.rs` executes a script's commands,
//! `replies.rs` understands what the server sends, `tape.rs` keeps what was read and written,
//! `inside.rs` what the server says of attempts, `savepoint.rs` where an attempt may begin besides
//! the first command, `ending.rs` decides which bucket an attempt lands in.

mod commands;
mod ending;
mod inside;
mod level;
mod pipeline;
mod replies;
mod savepoint;
mod store;
mod tape;

use std::time::Duration;

use isobench_pgwire::{FrameBuffer, ServerError, TransactionStatus, frontend};
use isobench_script::{Prng, Value, Variables};

use crate::event::{Cause, ClientStep, Event, Failed, Place, Report};
use crate::job::Job;
use crate::observer::{Ended, How, Observer};
use crate::program::Program;
use crate::recorder::{Recorder, ScriptRecord};
use crate::recording::Pen;
use crate::schedule::Schedule;
use crate::spec::{Pacing, Stop};
use crate::time::{Clock, Nanos, nanos};
use inside::Inside;
pub use inside::RETRIED_INSIDE;
use level::Question;
use pipeline::Pipeline;
use savepoint::Point;
use tape::Tape;

/// Why a session ended of which nothing else is known; libpq's words.
pub(crate) const CLOSED: &str = "server closed the connection unexpectedly";

/// What a client is doing.
///
/// ```text
///          ┌────────────────────────────────────────────────────────────────────┐
///          ▼                                                                    │ committed, given up,
///        Idle ──► Waiting ──► (attempt begins) ──► Replying ◄─► Sleeping ───────┤ ambiguous, cut off
///          │         │            ▲                   │                         │
///          │         │            │                   ▼ conflict or error       │
///          │         │        BackingOff ◄──── RollingBack ─────────────────────┘
///          ▼         ▼            ▼                   │
///       Finished  Finished    Finished                └──► Aborted (also from anywhere when the connection is lost)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Between two transactions; never left standing, except before the start.
    Idle,
    /// Waits for the instant at which its next transaction is due. Then begins it; at the end of
    /// the run: `Finished`.
    Waiting {
        /// When the waiting began.
        since: Nanos,
    },
    /// Has no session, and is to get one for the transaction that is due. Then begins it.
    Connecting,
    /// Waits for the server to prepare the statement of this command. Then executes the command
    /// again that needs it.
    Preparing(usize),
    /// Waits for the level of the transaction, for which the server was asked before this command,
    /// its COMMIT. Then executes the command.
    Asking,
    /// Waits for the server's reply to the last request. Then goes on with the script, or rolls
    /// back.
    Replying,
    /// Waits in a `\sleep`, or lets other clients have a turn. Then goes on with the script.
    Sleeping,
    /// Waits for the reply to ROLLBACK after a failed attempt. Then retries, gives up, or aborts.
    RollingBack,
    /// Waits for the reply to ROLLBACK of a block that was left open for the next attempt, which
    /// isn't to come. Then the transaction, which has been accounted for, is left.
    Leaving,
    /// Waits before the next attempt. Then begins it; at the end of the run the transaction is cut
    /// off: `Finished`.
    BackingOff {
        /// When the failed attempt ended.
        since: Nanos,
    },
    /// Has done its work; may be started again with the same session.
    Finished,
    /// Ended by an error or a lost connection, for good.
    Aborted,
}

/// What the client needs next. Bytes that it left in [`Context::out`] are to be sent in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// To be called when the server has sent something.
    Receive,
    /// To be called at this instant (and when the server has sent something).
    Wake(Nanos),
    /// A session, opened at once; then [`Client::on_connected`] or [`Client::on_refused`] is
    /// called.
    Connect,
    /// To be called after its session has been closed: [`Client::on_disconnected`].
    Disconnect,
    /// Nothing: it has finished.
    Finish,
    /// The connection is to be closed: it has aborted.
    Close,
}

/// What a client may use while it is called.
pub(crate) struct Context<'a> {
    pub(crate) job: &'a Job,
    pub(crate) stop: Stop,
    pub(crate) recorder: &'a mut Recorder,
    pub(crate) pen: &'a mut Pen,
    pub(crate) schedule: Option<&'a mut Schedule>,
    /// The stream that the worker's clients choose their scripts from, if they share one.
    pub(crate) choice: Option<&'a mut Prng>,
    pub(crate) observer: Option<&'a mut (dyn Observer + 'static)>,
    /// Bytes to send, appended.
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) clock: &'a dyn Clock,
    /// The instant of this call.
    pub(crate) now: Nanos,
    /// No transaction and no attempt begins from this instant on.
    pub(crate) deadline: Nanos,
    /// The run is over: begin nothing new.
    pub(crate) stopping: bool,
    /// What is under way is being cancelled.
    pub(crate) cancelling: bool,
    pub(crate) report: &'a Report<'a>,
}

impl Context<'_> {
    /// Tells a step, if anybody wants to know.
    fn trace(&self, client: usize, step: impl FnOnce() -> ClientStep) {
        if self.job.spec.detail.steps {
            (self.report)(Event::Trace { client, step: step() });
        }
    }
}

/// Which way the rows of a COPY go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyDirection {
    In,
    Out,
}

/// The first error of an attempt.
#[derive(Debug)]
struct Failure {
    error: ServerError,
    /// The command that it is counted and told for.
    command: usize,
    /// The command whose statement met it.
    statement: usize,
    /// Statements of the request that had been answered before.
    query: u32,
}

/// One simulated user and its session with the server.
pub(crate) struct Client {
    id: usize,
    state: State,

    // The session.
    connected: bool,
    status: TransactionStatus,
    frames: FrameBuffer,
    /// The most bytes of the server's words that are kept: of a message, and of an attempt's
    /// results.
    most_kept: usize,
    /// Bytes of results that are kept since the attempt began, roughly.
    kept: usize,
    /// Which statements the session knows, one bit each.
    prepared: Box<[u64]>,

    // The transaction.
    script: usize,
    /// The command that is being executed.
    command: usize,
    tries: u32,
    /// Attempts in all runs.
    attempts: u64,
    /// Latency counts from here: the scheduled start, or the begin of the first attempt.
    since: Nanos,
    /// When the first attempt began.
    began: Nanos,
    attempt_began: Nanos,
    variables: Variables,
    functions: Prng,
    /// Variables and random state at the begin of the transaction, for a retry.
    saved: (Variables, Prng),
    /// The same at a savepoint, if retries begin there.
    point: Option<Box<Point>>,
    /// Whether the attempt is to be asked for its level.
    question: Question,
    /// Transactions begun or skipped in this run.
    done: u64,
    /// A request was sent or a pause made since the transaction began.
    yielded: bool,

    // The outstanding request.
    /// `ReadyForQuery` messages that are still to come.
    outstanding: u32,
    /// Statements of the request that have been answered.
    answered: u32,
    command_began: Nanos,
    /// The server may commit while it works on what is outstanding.
    may_commit: bool,
    /// The first error of the attempt.
    failure: Option<Box<Failure>>,
    /// With what the server ended the session while it owed no reply, so that it is no failure of
    /// the attempt.
    farewell: Option<Box<ServerError>>,
    /// Why the connection was lost, which is to be noticed when it is needed.
    lost: Option<Box<str>>,
    pipeline: Option<Box<Pipeline>>,
    stored: Option<Box<store::Rows>>,
    /// The server wants, or sends, the rows of a COPY.
    copy: Option<CopyDirection>,

    /// What the attempt has read and written, if that is recorded.
    tape: Option<Box<Tape>>,
    /// What the server has said of the attempt, if a script's commands disclose such things.
    inside: Option<Box<Inside>>,

    choices: Option<Prng>,
    backoffs: Prng,
}

impl Client {
    /// A client that isn't started, with its streams for expressions, choice of scripts and
    /// backoff; `recorded` says whether what it reads and writes is kept, `most_kept` how many
    /// bytes of the server's words at most.
    pub(crate) fn new(
        id: usize,
        variables: Variables,
        streams: (Prng, Option<Prng>, Prng),
        (program, recorded, most_kept): (&Program, bool, usize),
    ) -> Client {
        let (functions, choices, backoffs) = streams;
        Client {
            id,
            state: State::Idle,
            connected: false,
            status: TransactionStatus::Idle,
            frames: FrameBuffer::with_limit(most_kept),
            most_kept,
            kept: 0,
            prepared: vec![0; program.statements.div_ceil(64)].into_boxed_slice(),
            script: 0,
            command: 0,
            tries: 0,
            attempts: 0,
            since: Nanos(0),
            began: Nanos(0),
            attempt_began: Nanos(0),
            saved: (variables.clone(), functions.clone()),
            point: None,
            question: Question::Settled,
            variables,
            functions,
            done: 0,
            yielded: false,
            outstanding: 0,
            answered: 0,
            command_began: Nanos(0),
            may_commit: false,
            failure: None,
            farewell: None,
            lost: None,
            pipeline: None,
            stored: None,
            copy: None,
            tape: recorded.then(Box::default),
            inside: program.discloses.then(Box::default),
            choices,
            backoffs,
        }
    }

    /// Its number, from 0.
    pub(crate) fn id(&self) -> usize {
        self.id
    }

    /// Takes over a session of which these bytes have been received and not yet understood.
    pub(crate) fn take_over(&mut self, received: &[u8]) {
        self.connected = true;
        // What isn't asked for stays in the buffer until the next bytes come.
        drop(self.frames.feed(received));
    }

    /// True if its session is of use to others: there, outside a transaction, and owed no reply.
    pub(crate) fn is_at_rest(&self) -> bool {
        let free = self.outstanding == 0 && self.status == TransactionStatus::Idle;
        self.connected
            && self.state == State::Finished
            && free
            && self.lost.is_none()
            && self.farewell.is_none()
    }

    /// What it has received and not understood yet.
    pub(crate) fn received(&self) -> &[u8] {
        self.frames.pending()
    }

    /// True while the client still wants to be called.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.state, State::Finished | State::Aborted)
    }

    /// True if the client can never run again.
    pub(crate) fn is_aborted(&self) -> bool {
        self.state == State::Aborted
    }

    /// True if it has a session, so that news of one concerns it.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// True if the server owes it a reply.
    pub(crate) fn awaits_reply(&self) -> bool {
        self.outstanding > 0
    }

    /// Makes the client ready for a run, in which its first call is [`Client::on_timer`]; false if
    /// it has aborted.
    pub(crate) fn ready(&mut self) -> bool {
        self.done = 0;
        if self.state == State::Finished {
            self.state = State::Idle;
        }
        self.is_live()
    }

    /// The instant asked for has come.
    pub(crate) fn on_timer(&mut self, ctx: &mut Context<'_>) -> Action {
        match self.state {
            State::Waiting { .. } | State::BackingOff { .. } if ctx.stopping => self.on_stop(ctx),
            State::Idle => self.next_transaction(ctx),
            State::Waiting { since } => {
                let waited = ctx.now.since(since);
                self.record(ctx).ledger.time.waiting += waited;
                self.begin_transaction(ctx)
            }
            State::Sleeping => {
                self.end_command(ctx);
                self.command += 1;
                self.run_commands(ctx)
            }
            State::BackingOff { since } => {
                let paused = ctx.now.since(since);
                self.record(ctx).ledger.time.backoff += paused;
                self.begin_attempt(ctx)
            }
            State::Preparing(_) | State::Asking | State::Replying | State::RollingBack | State::Leaving => {
                Action::Receive
            }
            State::Connecting => Action::Connect,
            State::Finished => Action::Finish,
            State::Aborted => Action::Close,
        }
    }

    /// The run is over: what hasn't begun doesn't begin, and what is under way goes on to its end.
    pub(crate) fn on_stop(&mut self, ctx: &mut Context<'_>) -> Action {
        match self.state {
            State::Idle => self.finish(),
            State::Waiting { since } => {
                let waited = ctx.now.since(since);
                self.record(ctx).ledger.time.waiting += waited;
                self.finish()
            }
            State::BackingOff { since } => {
                let paused = ctx.now.since(since);
                let ledger = &mut self.record(ctx).ledger;
                ledger.time.backoff += paused;
                ledger.transactions.cut_off += 1;
                self.leave_block(ctx)
            }
            State::Preparing(_)
            | State::Asking
            | State::Replying
            | State::Sleeping
            | State::RollingBack
            | State::Leaving => Action::Receive,
            State::Connecting => Action::Connect,
            State::Finished => Action::Finish,
            State::Aborted => Action::Close,
        }
    }

    fn finish(&mut self) -> Action {
        self.state = State::Finished;
        Action::Finish
    }

    fn record<'c>(&self, ctx: &'c mut Context<'_>) -> &'c mut ScriptRecord {
        &mut ctx.recorder.scripts[self.script]
    }

    /// Decides what comes after the end of a transaction.
    fn next_transaction(&mut self, ctx: &mut Context<'_>) -> Action {
        let first = self.done == 0;
        self.state = State::Idle;
        if self.is_over(ctx) {
            return self.finish();
        }
        if self.farewell.is_some() && ctx.job.spec.rules.notices_loss_at_once() {
            return self.on_lost(ctx, CLOSED);
        }
        let mix = &ctx.job.workload.mix;
        self.script = match (&mut self.choices, ctx.choice.as_deref_mut()) {
            (Some(own), _) => mix.choose(own),
            (None, Some(shared)) => mix.choose(shared),
            (None, None) => 0,
        };
        ctx.trace(self.id, || ClientStep::Script(self.script));
        match ctx.job.spec.pacing {
            Pacing::ThinkTime(pause) if !first => {
                self.since = ctx.now.after(pause);
                self.wait(ctx)
            }
            Pacing::Unpaced | Pacing::ThinkTime(_) => {
                self.since = ctx.now;
                self.begin_transaction(ctx)
            }
            Pacing::Rate(_) => self.next_scheduled(ctx),
        }
    }

    /// True if the client is to begin no further transaction.
    fn is_over(&self, ctx: &Context<'_>) -> bool {
        ctx.stopping || matches!(ctx.stop, Stop::Transactions(most) if self.done >= most)
    }

    /// Takes the next due time from the schedule, past those that are too late already.
    fn next_scheduled(&mut self, ctx: &mut Context<'_>) -> Action {
        loop {
            let Some(schedule) = ctx.schedule.as_deref_mut() else {
                return self.finish();
            };
            self.since = schedule.next();
            let late =
                ctx.job.spec.latency_limit.is_some_and(|limit| ctx.now.since(self.since) > nanos(limit));
            if self.since > ctx.deadline && ctx.job.spec.rules.leaves_before_the_end() {
                return self.finish();
            }
            if !late {
                return if self.since > ctx.now { self.wait(ctx) } else { self.begin_transaction(ctx) };
            }
            self.done += 1;
            self.tries = 0;
            let transactions = &mut self.record(ctx).ledger.transactions;
            transactions.total += 1;
            transactions.skipped += 1;
            self.began = ctx.now;
            self.observe(ctx, How::Skipped);
            if self.is_over(ctx) {
                return self.finish();
            }
        }
    }

    fn wait(&mut self, ctx: &Context<'_>) -> Action {
        self.state = State::Waiting { since: ctx.now };
        Action::Wake(self.since)
    }

    fn begin_transaction(&mut self, ctx: &mut Context<'_>) -> Action {
        if ctx.job.spec.connect_each && !self.connected {
            self.state = State::Connecting;
            return Action::Connect;
        }
        self.done += 1;
        self.tries = 0;
        self.yielded = false;
        self.began = ctx.now;
        if matches!(ctx.job.spec.pacing, Pacing::Rate(_)) {
            let lag = ctx.now.since(self.since);
            self.record(ctx).lag.record(lag);
        } else {
            self.since = ctx.now;
        }
        if ctx.job.spec.retry.allows_another(1) {
            if ctx.job.spec.rules.restores_variables() {
                self.saved.0.clone_from(&self.variables);
            }
            self.saved.1.clone_from(&self.functions);
        }
        self.record(ctx).ledger.transactions.total += 1;
        self.begin_attempt(ctx)
    }

    fn begin_attempt(&mut self, ctx: &mut Context<'_>) -> Action {
        self.tries += 1;
        self.command = self.first_command();
        self.attempt_began = ctx.now;
        self.failure = None;
        self.question = self.question(ctx);
        self.kept = 0;
        self.attempts += 1;
        if let Some(slot) = ctx.job.attempt_id {
            let number = i64::try_from(self.attempt_id(ctx)).unwrap_or(i64::MAX);
            self.variables.set(slot, Value::Int(number));
        }
        if let Some(slot) = ctx.job.attempt {
            self.variables.set(slot, Value::Int(i64::from(self.tries)));
        }
        if let Some(tape) = &mut self.tape {
            tape.rewind(ctx.job.program.assertions[self.script].len());
        }
        if let Some(inside) = &mut self.inside {
            inside.rewind();
        }
        let ledger = &mut self.record(ctx).ledger;
        ledger.attempts.started += 1;
        ledger.retries += u64::from(self.tries > 1);
        if let Some(series) = &mut ctx.recorder.series {
            series.at(ctx.now).attempts += 1;
        }
        self.run_commands(ctx)
    }

    /// A number that no other attempt has, in all runs: attempts of this client, this one included,
    /// times clients, plus the client's number, plus what the run begins from. So it is never 0.
    fn attempt_id(&self, ctx: &Context<'_>) -> u64 {
        let spec = &ctx.job.spec;
        spec.attempts_from + self.attempts * spec.clients as u64 + self.id as u64
    }

    /// The session asked for is there; these bytes came with it.
    pub(crate) fn on_connected(&mut self, ctx: &mut Context<'_>, received: &[u8]) -> Action {
        self.connected = true;
        self.status = TransactionStatus::Idle;
        self.prepared.fill(0);
        self.frames = FrameBuffer::with_limit(self.most_kept);
        self.take_over(received);
        self.begin_transaction(ctx)
    }

    /// The session asked for can't be had.
    pub(crate) fn on_refused(&mut self, ctx: &mut Context<'_>, why: String) -> Action {
        self.abort(ctx, self.command, Cause::Connect(why))
    }

    /// The session that was only for one transaction is closed.
    pub(crate) fn on_disconnected(&mut self, ctx: &mut Context<'_>) -> Action {
        self.connected = false;
        self.farewell = None;
        self.lost = None;
        self.after_transaction(ctx)
    }

    /// Ends the client for good, and says why.
    fn abort(&mut self, ctx: &mut Context<'_>, command: usize, cause: Cause) -> Action {
        if !ctx.job.spec.rules.sends_what_is_queued() {
            ctx.out.clear();
        }
        if self.copy == Some(CopyDirection::In) {
            // The server listens to nothing else before; that the session ends is what it hears
            // next.
            frontend::copy_done(ctx.out);
        }
        self.leave_for_good();
        (ctx.report)(Event::Aborted(self.place(command), cause));
        Action::Close
    }

    /// Nothing concerns the client any more.
    fn leave_for_good(&mut self) {
        self.state = State::Aborted;
        self.connected = false;
        self.outstanding = 0;
    }

    fn place(&self, command: usize) -> Place {
        Place { client: self.id, script: self.script, command }
    }

    /// What the server said, with the text it refers to.
    fn failed(&self, ctx: &Context<'_>, failure: &Failure) -> Failed {
        let request = ctx.job.program.request(self.script, failure.statement);
        // A statement that was to be prepared for later, and isn't, was sent as text.
        let text = request.and_then(|request| {
            let as_text = request.stays_prepared() && !self.is_prepared(request.number);
            if as_text { request.prepared_text() } else { request.text(&self.variables) }
        });
        Failed { error: Box::new(failure.error.clone()), query: failure.query, text }
    }

    /// Tells whoever watches the worker's transactions how this one ended.
    fn observe(&self, ctx: &mut Context<'_>, how: How) {
        let Some(observer) = ctx.observer.as_deref_mut() else { return };
        let lag =
            if matches!(ctx.job.spec.pacing, Pacing::Rate(_)) { self.began.since(self.since) } else { 0 };
        observer.ended(&Ended {
            client: self.id,
            number: self.done,
            script: self.script,
            how,
            tries: self.tries,
            latency: ctx.now.since(self.since),
            lag,
            at: ctx.now,
        });
    }

    /// True if the transaction has taken longer than the latency limit.
    fn exceeds_limit(&self, limit: Option<Duration>, now: Nanos) -> bool {
        limit.is_some_and(|limit| now.since(self.since) > nanos(limit))
    }

    fn is_prepared(&self, statement: usize) -> bool {
        self.prepared[statement / 64] >> (statement % 64) & 1 == 1
    }

    fn set_prepared(&mut self, statement: usize) {
        self.prepared[statement / 64] |= 1 << (statement % 64);
    }
}
