//! One simulated user: the state machine that walks through transactions, attempts and commands.
//!
//! It has no socket and no clock: it is called with the bytes that arrived, or because its timer
//! fired, and leaves bytes to send and one [`ClientAction`].
//!
//! | file | holds |
//! |---|---|
//! | `state` | the data, the states and the actions |
//! | `catching_up` | what readers on a standby wait for before each attempt |
//! | `commands` | execution of the script's commands |
//! | `replies` | the server's messages |
//! | `operations` | the attempt's reads and writes as annotated, for the recording |
//! | `rows` | the rows that statements show, for the recording |
//! | `inside` | retries and errors inside the server, as rows report them |
//! | `level` | the isolation level that a transaction reports |
//! | `savepoint` | retries from a savepoint |
//! | `store` | results kept in variables |
//! | `pipeline` | which command a pipeline's next reply belongs to |
//! | `ending` | the bucket in which an attempt ends, and what follows |

mod catching_up;
mod commands;
mod ending;
mod inside;
mod integer;
mod level;
mod operations;
mod pipeline;
mod replies;
mod rows;
mod savepoint;
mod snapshot;
mod state;
mod store;

use isobench_pgwire::{FrameBuffer, TransactionStatus, frontend};
use isobench_script::Value;

use crate::event::{AbortCause, ClientEvent, ClientStep, FailedStatement};
use crate::observer::{EndedTransaction, TransactionEnd};
use crate::spec::{Pacing, StopCondition};
use crate::time::nanos;
pub use inside::RETRIED_INSIDE;
use state::{AttemptError, BlockEnds, CopyDirection};
pub(crate) use state::{CLOSED, Client, ClientAction, ClientState, Context};

impl Client {
    /// Makes the client ready for a run, in which its first call is [`Client::on_timer`]. Returns
    /// false if it has aborted. With `goes_on` it is the next turn.
    pub(crate) fn ready(&mut self, goes_on: bool) -> bool {
        if !goes_on {
            self.done = 0;
        }
        if self.state == ClientState::Finished {
            self.state = ClientState::Idle;
        }
        self.is_live()
    }

    /// Called at the instant asked for.
    pub(crate) fn on_timer(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        match self.state {
            // The timer may be due in the same turn in which the run ends; the end takes
            // precedence.
            ClientState::Waiting { .. } | ClientState::BackingOff { .. } | ClientState::Away { .. }
                if ctx.stopping =>
            {
                self.on_stop(ctx)
            }
            ClientState::Waiting { .. } | ClientState::BackingOff { .. } | ClientState::Away { .. }
                if ctx.pausing =>
            {
                ClientAction::Receive
            }
            ClientState::Idle => self.next_transaction(ctx),
            ClientState::Waiting { since } => {
                let waited = ctx.now.since(since);
                self.record(ctx).ledger.time.waiting += waited;
                self.begin_transaction(ctx)
            }
            ClientState::Sleeping => {
                self.end_command(ctx);
                self.command += 1;
                self.run_commands(ctx)
            }
            ClientState::BackingOff { since, .. } => {
                let paused = ctx.now.since(since);
                self.record(ctx).ledger.time.backoff += paused;
                self.begin_attempt(ctx)
            }
            ClientState::Preparing(_)
            | ClientState::AskingLevel
            | ClientState::CatchingUp
            | ClientState::Replying
            | ClientState::RollingBack
            | ClientState::LeavingBlock => ClientAction::Receive,
            ClientState::Connecting => ClientAction::Connect,
            ClientState::Away { .. } => {
                self.state = ClientState::Connecting;
                ClientAction::Connect
            }
            ClientState::Finished => ClientAction::Finish,
            ClientState::Aborted => ClientAction::Close,
        }
    }

    /// Called when the run is over: nothing new starts; transactions under way continue to their
    /// end.
    pub(crate) fn on_stop(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        match self.state {
            ClientState::Idle => self.finish(),
            ClientState::Away { .. } => {
                if std::mem::take(&mut self.held) {
                    self.record(ctx).ledger.transactions.cut_off += 1;
                }
                self.finish()
            }
            ClientState::Waiting { since } => {
                let waited = ctx.now.since(since);
                self.record(ctx).ledger.time.waiting += waited;
                self.finish()
            }
            ClientState::BackingOff { since, .. } => {
                let paused = ctx.now.since(since);
                let ledger = &mut self.record(ctx).ledger;
                ledger.time.backoff += paused;
                // The failed attempt is already in its bucket (retried). Only the transaction is
                // cut off.
                ledger.transactions.cut_off += 1;
                self.leave_block(ctx)
            }
            ClientState::Preparing(_)
            | ClientState::AskingLevel
            | ClientState::CatchingUp
            | ClientState::Replying
            | ClientState::Sleeping
            | ClientState::RollingBack
            | ClientState::LeavingBlock => ClientAction::Receive,
            ClientState::Connecting => ClientAction::Connect,
            ClientState::Finished => ClientAction::Finish,
            ClientState::Aborted => ClientAction::Close,
        }
    }

    fn finish(&mut self) -> ClientAction {
        self.state = ClientState::Finished;
        ClientAction::Finish
    }

    /// Chooses and paces the next transaction, or finishes.
    fn next_transaction(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        let first = self.done == 0;
        self.state = ClientState::Idle;
        if self.is_over(ctx) {
            return self.finish();
        }
        if ctx.pausing {
            return ClientAction::Receive;
        }
        // The server ended the session between two transactions, so neither of them failed.
        if self.unsolicited.is_some() && ctx.job.spec.rules.notices_loss_at_once() {
            return self.on_lost(ctx, CLOSED);
        }
        self.script = self.choose(ctx);
        ctx.trace(self.id, || ClientStep::Script(self.script));
        match ctx.job.spec.pacing {
            // Think time lies between transactions: the first one starts at once.
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

    /// Chooses the script of the next transaction.
    fn choose(&mut self, ctx: &mut Context<'_>) -> usize {
        let stream = self.choices.as_mut().or(ctx.choice.as_deref_mut());
        let (Some(stream), mix) = (stream, &ctx.job.workload.mix) else { return 0 };
        match &ctx.job.readers {
            Some(readers) if self.id >= readers.first => {
                let last = i64::try_from(readers.scripts.len()).unwrap_or(i64::MAX) - 1;
                let place = if last == 0 { 0 } else { stream.int_between(0, last) };
                readers.scripts[usize::try_from(place).unwrap_or_default()]
            }
            _ => mix.choose(stream),
        }
    }

    /// True if the client starts no further transaction.
    fn is_over(&self, ctx: &Context<'_>) -> bool {
        ctx.stopping || matches!(ctx.stop, StopCondition::Transactions(most) if self.done >= most)
    }

    /// Takes the next due time from the schedule, skipping those that are already too late.
    fn next_scheduled(&mut self, ctx: &mut Context<'_>) -> ClientAction {
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
            // Counted although it is never sent: leaving it out would hide that the server was too
            // slow for the rate (coordinated omission).
            self.done += 1;
            self.tries = 0;
            let transactions = &mut self.record(ctx).ledger.transactions;
            transactions.total += 1;
            transactions.skipped += 1;
            self.began = ctx.now;
            self.observe(ctx, TransactionEnd::Skipped);
            if self.is_over(ctx) {
                return self.finish();
            }
        }
    }

    fn wait(&mut self, ctx: &Context<'_>) -> ClientAction {
        self.state = ClientState::Waiting { since: ctx.now };
        ClientAction::Wake(self.since)
    }

    fn begin_transaction(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if !self.connected && (ctx.job.spec.connect_each || ctx.job.spec.reconnects().is_some()) {
            self.state = ClientState::Connecting;
            return ClientAction::Connect;
        }
        self.done += 1;
        self.tries = 0;
        self.yielded = false;
        self.began = ctx.now;
        if matches!(ctx.job.spec.pacing, Pacing::Rate(_)) {
            // Latency is measured from the scheduled start, so it includes this delay.
            let lag = ctx.now.since(self.since);
            self.record(ctx).lag.record(lag);
        } else {
            self.since = ctx.now;
        }
        // A run without retries needn't pay for the copies.
        if ctx.job.spec.retry.allows_another(1) {
            if ctx.job.spec.rules.restores_variables() {
                self.saved.0.clone_from(&self.variables);
            }
            self.saved.1.clone_from(&self.functions);
        }
        self.record(ctx).ledger.transactions.total += 1;
        self.begin_attempt(ctx)
    }

    fn begin_attempt(&mut self, ctx: &mut Context<'_>) -> ClientAction {
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
        if let Some(slot) = ctx.job.transaction {
            self.variables.set(slot, Value::Int(self.done.cast_signed()));
        }
        if let Some(operations) = &mut self.operations {
            operations.reset(ctx.job.program.assertions[self.script].len());
        }
        self.asking_snapshot = false;
        self.asking_snapshot = false;
        if let Some(rows) = &mut self.rows {
            rows.start();
            self.rows_began = ctx.now;
        }
        self.block_ends = BlockEnds::None;
        if let Some(inside) = &mut self.inside {
            inside.reset();
        }
        let ledger = &mut self.record(ctx).ledger;
        // Every attempt is counted here. Every way in which one ends adds it to exactly one bucket,
        // and `Ledger::check` compares the sums.
        ledger.attempts.started += 1;
        ledger.retries += u64::from(self.tries > 1);
        if let Some(series) = &mut ctx.recorder.series {
            series.at(ctx.now).attempts += 1;
        }
        self.catch_up(ctx).unwrap_or_else(|| self.run_commands(ctx))
    }

    /// Returns a number that no other attempt of any run has.
    ///
    /// Every attempt of a client adds the number of clients, so two clients never meet;
    /// `attempts_from` keeps clear of rows that earlier runs left behind. Never 0.
    fn attempt_id(&self, ctx: &Context<'_>) -> u64 {
        let spec = &ctx.job.spec;
        spec.attempts_from + self.attempts * spec.clients as u64 + self.id as u64
    }

    /// Called when the session asked for is open; `received` are the bytes that came with it.
    pub(crate) fn on_connected(&mut self, ctx: &mut Context<'_>, received: &[u8]) -> ClientAction {
        self.connected = true;
        self.sessions = self.sessions.wrapping_add(1);
        self.refused = 0;
        self.status = TransactionStatus::Idle;
        self.prepared.fill(0);
        self.frames = FrameBuffer::with_limit(self.most_kept);
        self.take_over(received);
        if std::mem::take(&mut self.held) { self.begin_attempt(ctx) } else { self.begin_transaction(ctx) }
    }

    /// Called when the session asked for can't be opened.
    pub(crate) fn on_refused(&mut self, ctx: &mut Context<'_>, why: String) -> ClientAction {
        if let Some(backoff) = ctx.job.spec.reconnects() {
            let until = ctx.now.after(backoff.delay(self.refused, &mut self.backoffs));
            self.refused = self.refused.saturating_add(1);
            self.state = ClientState::Away { until };
            return ClientAction::Wake(until);
        }
        self.abort(ctx, self.command, AbortCause::Connect(why))
    }

    /// Called when the session for one transaction, or a lost one, is closed.
    pub(crate) fn on_disconnected(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.connected = false;
        self.unsolicited = None;
        self.lost = None;
        if self.held {
            self.state = ClientState::Away { until: ctx.now };
            return self.on_timer(ctx);
        }
        self.after_transaction(ctx)
    }

    /// Ends the client for good, and reports why.
    fn abort(&mut self, ctx: &mut Context<'_>, command: usize, cause: AbortCause) -> ClientAction {
        // The attempt has been counted as failed; its queued statements must not commit afterwards.
        if !ctx.job.spec.rules.sends_what_is_queued() {
            ctx.out.truncate(ctx.out_start);
        }
        if self.copy == Some(CopyDirection::In) {
            // During COPY FROM the server reads only COPY messages. After CopyDone it reads on, and
            // notices that the session ends.
            frontend::copy_done(ctx.out);
        }
        self.retire();
        (ctx.report)(ClientEvent::Aborted(self.place(command), cause));
        ClientAction::Close
    }

    /// Makes the client ignore everything that still arrives.
    fn retire(&mut self) {
        self.state = ClientState::Aborted;
        self.connected = false;
        self.outstanding = 0;
    }

    /// Returns the server's error with the text that its position refers to.
    fn failed(&self, ctx: &Context<'_>, failure: &AttemptError) -> FailedStatement {
        let request = ctx.job.program.request(self.script, failure.statement);
        // A statement of a pipeline that wasn't prepared before was sent as text.
        let text = request.and_then(|request| {
            let as_text = request.stays_prepared() && !self.is_prepared(request.number);
            if as_text { request.prepared_text() } else { request.text(&self.variables) }
        });
        FailedStatement { error: Box::new(failure.error.clone()), query: failure.query, text }
    }

    /// Reports the end of the transaction to the worker's observer.
    fn observe(&self, ctx: &mut Context<'_>, end: TransactionEnd) {
        let Some(observer) = ctx.observer.as_deref_mut() else { return };
        let lag =
            if matches!(ctx.job.spec.pacing, Pacing::Rate(_)) { self.began.since(self.since) } else { 0 };
        observer.ended(&EndedTransaction {
            client: self.id,
            number: self.done,
            script: self.script,
            end,
            tries: self.tries,
            latency: ctx.now.since(self.since),
            lag,
            at: ctx.now,
        });
    }
}
