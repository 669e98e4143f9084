//! How attempts and transactions end: each in exactly one bucket of the ledger, and what the client does next.

use std::time::Duration;

use isobench_pgwire::{ServerError, SqlState};

use super::{Action, Client, Context, State};
use crate::job::Event;
use crate::program::ErrorClass;
use crate::spec::OnError;

/// The bucket of an attempt that ends its transaction too, without a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bucket {
    GivenUp,
    Ambiguous,
    CutOff,
    Errored,
}

impl Client {
    /// The script has run to its end and no block is open.
    pub(super) fn committed(&mut self, ctx: &mut Context<'_>) -> Action {
        let (now, began, since, tries) = (ctx.now, self.attempt_began, self.since, self.tries);
        let late = self.exceeds_limit(ctx.job.spec.latency_limit, now);
        let record = self.record(ctx);
        record.ledger.attempts.committed += 1;
        record.ledger.transactions.committed += 1;
        record.ledger.time.useful += now.since(began);
        record.ledger.late += u64::from(late);
        record.latency.record(now.since(since));
        record.retried_transactions += u64::from(tries > 1);
        self.after_transaction(ctx)
    }

    /// The attempt met an error, and no block is open any more.
    pub(super) fn attempt_failed(&mut self, ctx: &mut Context<'_>) -> Action {
        let Some(failure) = self.failure.take() else {
            return self.committed(ctx);
        };
        let (error, command) = *failure;
        match (ctx.job.classify)(&error) {
            ErrorClass::Conflict(reason) => {
                ctx.recorder.conflict((self.script, command), error.code, reason);
                self.after_conflict(ctx, command, error.code)
            }
            ErrorClass::Ambiguous => {
                self.end_attempt(ctx, Bucket::Ambiguous);
                self.after_transaction(ctx)
            }
            ErrorClass::Other if ctx.cancelling && error.code == SqlState::QUERY_CANCELED => {
                self.end_attempt(ctx, Bucket::CutOff);
                self.after_transaction(ctx)
            }
            ErrorClass::Other => self.errored(ctx, &error, command),
        }
    }

    fn after_conflict(&mut self, ctx: &mut Context<'_>, command: usize, code: SqlState) -> Action {
        let spec = &ctx.job.spec;
        let exhausted =
            !spec.retry.allows_another(self.tries) || self.exceeds_limit(spec.latency_limit, ctx.now);
        if exhausted || ctx.stopping {
            self.count_command(ctx, command, false);
            if exhausted {
                let retried = u64::from(self.tries > 1);
                let record = self.record(ctx);
                record.retried_transactions += retried;
                record.deadlock_failures += u64::from(code == SqlState::DEADLOCK_DETECTED);
            }
            self.end_attempt(ctx, if exhausted { Bucket::GivenUp } else { Bucket::CutOff });
            return self.after_transaction(ctx);
        }
        self.count_command(ctx, command, true);
        let (now, began) = (ctx.now, self.attempt_began);
        let ledger = &mut self.record(ctx).ledger;
        ledger.attempts.retried += 1;
        ledger.time.wasted += now.since(began);
        // The same transaction again: same script, same values of the variables, same random numbers.
        self.variables.clone_from(&self.saved.0);
        self.functions.clone_from(&self.saved.1);
        let delay = ctx.job.spec.retry.backoff.delay(self.tries - 1, &mut self.backoffs);
        if delay == Duration::ZERO {
            return self.begin_attempt(ctx);
        }
        self.state = State::BackingOff { since: now };
        Action::Wake(now.after(delay))
    }

    fn errored(&mut self, ctx: &mut Context<'_>, error: &ServerError, command: usize) -> Action {
        self.count_command(ctx, command, false);
        self.end_attempt(ctx, Bucket::Errored);
        let message = self.server_error_message(ctx, error, command);
        match ctx.job.spec.on_error {
            OnError::Abort => self.abort(ctx, message, Some(error.code)),
            OnError::Continue => {
                (ctx.report)(Event::Notice(message));
                self.after_transaction(ctx)
            }
        }
    }

    /// The connection is of no use any more, for the reason given in `why`.
    pub(crate) fn on_lost(&mut self, ctx: &mut Context<'_>, why: &str) -> Action {
        let place = format!("client {} aborted", self.id);
        let fatal = self.failure.as_ref().map(|failure| &failure.0).filter(|error| error.is_fatal());
        let message = match fatal.or(self.farewell.as_deref()) {
            Some(error) => format!("{place}: {error}; {why}"),
            None => format!("{place}: {why}"),
        };
        self.end_abruptly(ctx, Bucket::Errored);
        self.abort(ctx, message, None)
    }

    /// The run can't wait for the client any longer.
    pub(crate) fn on_kill(&mut self, ctx: &mut Context<'_>) -> Action {
        self.end_abruptly(ctx, Bucket::CutOff);
        self.state = State::Aborted;
        self.outstanding = 0;
        Action::Close
    }

    /// Accounts for what was under way when the session ended. If the server may have been committing and hasn't said
    /// that it failed, nobody knows.
    fn end_abruptly(&mut self, ctx: &mut Context<'_>, otherwise: Bucket) {
        match self.state {
            State::Replying | State::Sleeping | State::RollingBack => {
                let failed = self.failure.as_ref().filter(|failure| !failure.0.is_fatal());
                let class = failed.map(|failure| (ctx.job.classify)(&failure.0));
                let unanswered = matches!(class, None | Some(ErrorClass::Ambiguous));
                if let Some((failure, ErrorClass::Conflict(reason))) = failed.zip(class) {
                    ctx.recorder.conflict((self.script, failure.1), failure.0.code, reason);
                }
                // The server executes what a pipeline holds before it is asked to synchronise.
                let under_way = self.outstanding > 0 || self.pipeline.is_some();
                let unknown = under_way && self.may_commit && unanswered;
                self.end_attempt(ctx, if unknown { Bucket::Ambiguous } else { otherwise });
            }
            State::BackingOff { since } => {
                let now = ctx.now;
                let ledger = &mut self.record(ctx).ledger;
                ledger.time.backoff += now.since(since);
                ledger.transactions.cut_off += 1;
            }
            State::Waiting { since } => {
                let now = ctx.now;
                self.record(ctx).ledger.time.waiting += now.since(since);
            }
            State::Idle | State::Finished | State::Aborted => {}
        }
    }

    /// A meta-command failed: pgbench's message, and the client ends.
    pub(super) fn command_failed(&mut self, ctx: &mut Context<'_>, problem: &str) -> Action {
        let (command, script) = (self.command, self.script);
        let kind = ctx.job.command_kind(script, command);
        let at = ctx.job.place(script, command);
        let message = format!(
            "client {} aborted in command {command} ({kind}) of script {script}; {problem}{at}",
            self.id
        );
        self.count_command(ctx, command, false);
        self.end_attempt(ctx, Bucket::Errored);
        self.abort(ctx, message, None)
    }

    /// The result of a query can't be stored.
    pub(super) fn result_refused(&mut self, ctx: &mut Context<'_>, problem: &str) -> Action {
        let query = self.answered.saturating_sub(1);
        let message = format!(
            "client {} script {} command {} query {query}: {problem}{}",
            self.id,
            self.script,
            self.command,
            ctx.job.place(self.script, self.command)
        );
        self.count_command(ctx, self.command, false);
        self.end_attempt(ctx, Bucket::Errored);
        self.abort(ctx, message, None)
    }

    /// The script ended where no script may end.
    pub(super) fn script_left_open(&mut self, ctx: &mut Context<'_>, problem: &str) -> Action {
        let last = ctx.job.place(self.script, self.command.saturating_sub(1));
        let message = format!("client {} aborted: {problem}{last}", self.id);
        self.end_attempt(ctx, Bucket::Errored);
        self.abort(ctx, message, None)
    }

    fn server_error_message(&self, ctx: &Context<'_>, error: &ServerError, command: usize) -> String {
        let at = ctx.job.place(self.script, command);
        format!(
            "client {} script {} aborted in command {command} query {}: {error}{at}",
            self.id, self.script, self.answered
        )
    }

    /// Puts the attempt, and with it the transaction, into its bucket.
    fn end_attempt(&mut self, ctx: &mut Context<'_>, bucket: Bucket) {
        let (now, began) = (ctx.now, self.attempt_began);
        let ledger = &mut self.record(ctx).ledger;
        ledger.time.wasted += now.since(began);
        let (attempts, transactions) = (&mut ledger.attempts, &mut ledger.transactions);
        let (attempt, transaction) = match bucket {
            Bucket::GivenUp => (&mut attempts.given_up, &mut transactions.given_up),
            Bucket::Ambiguous => (&mut attempts.ambiguous, &mut transactions.ambiguous),
            Bucket::CutOff => (&mut attempts.cut_off, &mut transactions.cut_off),
            Bucket::Errored => (&mut attempts.errored, &mut transactions.errored),
        };
        *attempt += 1;
        *transaction += 1;
    }

    fn count_command(&self, ctx: &mut Context<'_>, command: usize, retried: bool) {
        if let Some(record) = self.record(ctx).commands.get_mut(command) {
            let count = if retried { &mut record.retries } else { &mut record.failures };
            *count += 1;
        }
    }

    /// Goes on with the next transaction; a script that never waited lets other clients, and the clock, have a turn.
    fn after_transaction(&mut self, ctx: &mut Context<'_>) -> Action {
        if self.yielded {
            return self.next_transaction(ctx);
        }
        self.state = State::Idle;
        Action::Wake(ctx.now)
    }
}
