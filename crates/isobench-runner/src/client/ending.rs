//! How attempts and transactions end: each in exactly one bucket of the ledger, and what the client
//! does next.

use std::borrow::Cow;
use std::time::Duration;

use isobench_isolation::history::{Outcome, Transaction};
use isobench_pgwire::{ServerError, SqlState, TransactionStatus};

use super::state::{AttemptError, Client, ClientAction, ClientState, Context};
use super::store::StoreError;
use crate::event::{Cause, Event};
use crate::observer::TransactionEnd;
use crate::program::ErrorClass;
use crate::recorder::ConflictCount;
use crate::spec::OnError;

/// The reason of conflicts that a script's own SQL caught and didn't raise again.
const CAUGHT: &str = "caught by the script's own SQL";

/// The bucket of an attempt that ends its transaction too, without a commit that keeps its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bucket {
    GivenUp,
    Ambiguous,
    CutOff,
    Errored,
}

impl Client {
    /// The script has run to its end.
    pub(super) fn count_committed(&mut self, ctx: &mut Context<'_>) {
        let mut wasted = 0;
        if let Some(inside) = &self.inside {
            if let Some((code, command)) = inside.swallowed {
                return self.count_swallowed(ctx, code, command);
            }
            wasted = inside.wasted.min(ctx.now.since(self.attempt_began));
        }
        let (now, began, since, tries) = (ctx.now, self.attempt_began, self.since, self.tries);
        let late = self.exceeds_limit(ctx.job.spec.latency_limit, now);
        let record = self.record(ctx);
        record.ledger.attempts.committed += 1;
        record.ledger.transactions.committed += 1;
        record.ledger.time.useful += now.since(began) - wasted;
        record.ledger.time.wasted += wasted;
        record.ledger.late += u64::from(late);
        record.latency.record(now.since(since));
        record.count_tries(tries);
        if let Some(series) = &mut ctx.recorder.series {
            let bin = series.at(now);
            bin.committed += 1;
            bin.latency_ns = bin.latency_ns.saturating_add(now.since(since));
        }
        self.write_down_end(ctx);
        self.observe(ctx, TransactionEnd::Committed);
    }

    /// The script has run to its end, and this command's own SQL has caught an error: committed,
    /// and its work is lost.
    fn count_swallowed(&mut self, ctx: &mut Context<'_>, code: SqlState, command: usize) {
        // Only its code is known of the error.
        if let ErrorClass::Conflict { .. } = (ctx.job.classify)(&ServerError::new(code, "")) {
            self.count_conflict(ctx, command, code, (Cow::Borrowed(CAUGHT), None));
        }
        let (now, began, tries) = (ctx.now, self.attempt_began, self.tries);
        let record = self.record(ctx);
        record.ledger.attempts.swallowed += 1;
        record.ledger.transactions.swallowed += 1;
        record.ledger.time.wasted += now.since(began);
        record.count_tries(tries);
        self.write_down_end(ctx);
        self.observe(ctx, TransactionEnd::Swallowed);
    }

    /// Writes down an attempt whose script has run to its end. What was swallowed isn't among what
    /// it did; the rest was done.
    fn write_down_end(&mut self, ctx: &mut Context<'_>) {
        if self.operations.is_some() {
            // A block that the script leaves open is undone with its session.
            let open = self.status != TransactionStatus::Idle;
            self.write_down(ctx, if open { Outcome::Aborted } else { Outcome::Committed });
        }
    }

    /// The attempt met an error, and no block is open any more, or the client ends with it.
    pub(super) fn attempt_failed(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        let Some(failure) = self.failure.take() else {
            self.count_committed(ctx);
            return self.leave_transaction(ctx);
        };
        let (code, command) = (failure.error.code, failure.command);
        match (ctx.job.classify)(&failure.error) {
            ErrorClass::Conflict { reason, object } => {
                self.count_conflict(ctx, command, code, (reason, object));
                self.after_conflict(ctx, command, code)
            }
            ErrorClass::Ambiguous => self.leave_unknown(ctx),
            ErrorClass::Other if ctx.cancelling && code == SqlState::QUERY_CANCELED => {
                if self.has_released() {
                    return self.leave_unknown(ctx);
                }
                self.end_attempt(ctx, Bucket::CutOff);
                self.leave_transaction(ctx)
            }
            ErrorClass::Other => self.errored(ctx, &failure),
        }
    }

    /// Nobody knows whether the attempt has committed.
    fn leave_unknown(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.end_attempt(ctx, Bucket::Ambiguous);
        self.observe(ctx, TransactionEnd::OtherError);
        self.leave_transaction(ctx)
    }

    /// Counts an attempt that ended in a conflict, for this reason and about this object.
    fn count_conflict(
        &self,
        ctx: &mut Context<'_>,
        command: usize,
        sqlstate: SqlState,
        (reason, object): (Cow<'static, str>, Option<Cow<'static, str>>),
    ) {
        let conflict = ConflictCount { sqlstate, script: self.script, command, reason, object, count: 1 };
        ctx.recorder.conflict(ctx.now, conflict);
    }

    /// True if a conflict now is followed by a further attempt.
    pub(super) fn will_retry(&self, ctx: &Context<'_>) -> bool {
        !ctx.stopping && !self.is_exhausted(ctx)
    }

    fn is_exhausted(&self, ctx: &Context<'_>) -> bool {
        let spec = &ctx.job.spec;
        !spec.retry.allows_another(self.tries) || self.exceeds_limit(spec.latency_limit, ctx.now)
    }

    fn after_conflict(&mut self, ctx: &mut Context<'_>, command: usize, code: SqlState) -> ClientAction {
        let spec = &ctx.job.spec;
        let exhausted = self.is_exhausted(ctx);
        let forgotten = ctx.stopping && spec.rules.forgets_failures_at_the_end();
        if exhausted && !forgotten {
            self.tell_what_follows(ctx, false);
            self.count_command(ctx, command, false);
            let (tries, deadlock) = (self.tries, code == SqlState::DEADLOCK_DETECTED);
            let record = self.record(ctx);
            record.count_tries(tries);
            record.deadlock_failures += u64::from(deadlock);
            self.end_attempt(ctx, Bucket::GivenUp);
            self.observe(
                ctx,
                if deadlock { TransactionEnd::Deadlock } else { TransactionEnd::Serialization },
            );
            return self.leave_transaction(ctx);
        }
        if ctx.stopping {
            self.end_attempt(ctx, Bucket::CutOff);
            return self.leave_transaction(ctx);
        }
        self.tell_what_follows(ctx, true);
        self.count_command(ctx, command, true);
        let (now, began) = (ctx.now, self.attempt_began);
        let ledger = &mut self.record(ctx).ledger;
        ledger.attempts.retried += 1;
        ledger.time.wasted += now.since(began);
        if self.operations.is_some() {
            self.write_down(ctx, Outcome::Aborted);
        }
        // The same transaction again: same script, same values of the variables, same random
        // numbers.
        let saved = match &self.point {
            Some(point) if point.is_next() => &point.saved,
            _ => &self.saved,
        };
        if ctx.job.spec.rules.restores_variables() {
            self.variables.clone_from(&saved.0);
        }
        self.functions.clone_from(&saved.1);
        let delay = ctx.job.spec.retry.backoff.delay(self.tries - 1, &mut self.backoffs);
        if delay == Duration::ZERO {
            return self.begin_attempt(ctx);
        }
        self.state = ClientState::BackingOff { since: now };
        ClientAction::Wake(now.after(delay))
    }

    fn errored(&mut self, ctx: &mut Context<'_>, failure: &AttemptError) -> ClientAction {
        let command = failure.command;
        let failed = self.failed(ctx, failure);
        let unknown = self.has_released();
        self.end_attempt(ctx, if unknown { Bucket::Ambiguous } else { Bucket::Errored });
        if ctx.job.spec.on_error != OnError::Continue {
            self.count_last_command(ctx, command);
            return self.abort(ctx, command, Cause::Server(failed));
        }
        self.count_command(ctx, command, false);
        let tries = self.tries;
        let record = self.record(ctx);
        record.count_tries(tries);
        record.abandoned += 1;
        self.tell_what_follows(ctx, false);
        (ctx.report)(Event::Abandoned(self.place(command), failed));
        self.observe(ctx, TransactionEnd::OtherError);
        self.leave_transaction(ctx)
    }

    fn tell_what_follows(&self, ctx: &Context<'_>, retry: bool) {
        if ctx.job.spec.detail.errors {
            let taken = ctx.now.since(self.since) as f64 / 1e9;
            let used = ctx.job.spec.latency_limit.map(|limit| taken / limit.as_secs_f64());
            (ctx.report)(Event::Follows { client: self.id, retry, tries: self.tries, used });
        }
    }

    /// The connection is of no use any more, for the reason given in `why`.
    pub(crate) fn on_lost(&mut self, ctx: &mut Context<'_>, why: &str) -> ClientAction {
        let at_once = ctx.job.spec.rules.notices_loss_at_once();
        let idle = matches!(
            self.state,
            ClientState::Sleeping | ClientState::Waiting { .. } | ClientState::BackingOff { .. }
        );
        if idle && !at_once && self.pipeline.is_none() {
            self.lost = Some(why.into());
            return ClientAction::Receive;
        }
        let command = match self.pipeline {
            Some(_) if !ctx.job.spec.rules.blames_command_in_pipeline() => self.end_of_pipeline(ctx),
            _ => self.command,
        };
        self.end_abruptly(ctx, Bucket::Errored);
        let failure = self.failure.take().map(|failure| Box::new(failure.error));
        let last = failure.filter(|error| error.is_fatal()).or(self.unsolicited.take());
        self.abort(ctx, command, Cause::Lost(why.to_owned(), last))
    }

    /// The run can't wait for the client any longer.
    pub(crate) fn on_kill(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.end_abruptly(ctx, Bucket::CutOff);
        self.leave_for_good();
        ClientAction::Close
    }

    /// Accounts for what was under way when the session ended. If the server may have been
    /// committing and hasn't said that it failed, nobody knows: a fatal error says only that the
    /// session has ended. Its reason is counted if it is a conflict (of a standby's recovery).
    fn end_abruptly(&mut self, ctx: &mut Context<'_>, otherwise: Bucket) {
        match self.state {
            ClientState::Preparing(_)
            | ClientState::AskingLevel
            | ClientState::Replying
            | ClientState::Sleeping
            | ClientState::RollingBack => {
                let failed = self.failure.as_ref();
                let class = failed.map(|failure| (ctx.job.classify)(&failure.error));
                let unanswered = matches!(class, None | Some(ErrorClass::Ambiguous))
                    || failed.is_some_and(|failure| failure.error.is_fatal());
                // The server executes what a pipeline holds before it is asked to synchronise.
                let under_way = self.outstanding > 0 || self.pipeline.is_some();
                let unknown = (under_way && self.may_commit || self.has_released()) && unanswered;
                if let (false, Some((failure, ErrorClass::Conflict { reason, object }))) =
                    (unknown, failed.zip(class))
                {
                    self.count_conflict(ctx, failure.command, failure.error.code, (reason, object));
                }
                self.end_attempt(ctx, if unknown { Bucket::Ambiguous } else { otherwise });
            }
            ClientState::BackingOff { since } => {
                let now = ctx.now;
                let ledger = &mut self.record(ctx).ledger;
                ledger.time.backoff += now.since(since);
                ledger.transactions.cut_off += 1;
            }
            ClientState::Waiting { since } => {
                let now = ctx.now;
                self.record(ctx).ledger.time.waiting += now.since(since);
            }
            ClientState::Idle
            | ClientState::Connecting
            | ClientState::LeavingBlock
            | ClientState::Finished
            | ClientState::Aborted => {}
        }
    }

    /// Something in the script, other than an error of the server, ends the client.
    pub(super) fn end_client(&mut self, ctx: &mut Context<'_>, cause: Cause) -> ClientAction {
        self.count_last_command(ctx, self.command);
        self.end_attempt(ctx, Bucket::Errored);
        self.abort(ctx, self.command, cause)
    }

    /// The result of a query can't be stored.
    pub(super) fn result_refused(&mut self, ctx: &mut Context<'_>, refused: StoreError) -> ClientAction {
        let query = self.answered.saturating_sub(1);
        self.end_client(ctx, Cause::Result { query, problem: refused.problem, name: refused.name })
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
        if self.operations.is_some() {
            let under_way = self.outstanding > 0 || self.pipeline.is_some();
            let unanswered = under_way && self.may_commit && self.failure.is_none();
            let unknown = bucket == Bucket::Ambiguous || unanswered;
            self.write_down(ctx, if unknown { Outcome::Unknown } else { Outcome::Aborted });
        }
    }

    /// Writes down what the attempt has read and written, of which this is known besides what the
    /// server has said.
    fn write_down(&mut self, ctx: &mut Context<'_>, outcome: Outcome) {
        let id = self.attempt_id(ctx);
        let (Some(operations), Some(recording)) = (&self.operations, &ctx.job.recording) else { return };
        let outcome = operations.outcome(outcome);
        let swallowed = self.inside.as_ref().is_some_and(|inside| inside.swallowed.is_some());
        if outcome == Outcome::Committed && !swallowed {
            operations.count(&mut ctx.recorder.scripts[self.script].assertions);
        }
        if operations.is_torn(outcome) {
            recording.drop_one();
        }
        if operations.draft().is_empty() {
            return;
        }
        // What is unknown may be done later.
        let end = if outcome == Outcome::Unknown { u64::MAX } else { ctx.now.0 };
        let client = u32::try_from(self.id).unwrap_or(u32::MAX);
        let transaction = Transaction { id, client, begin: self.attempt_began.0, end, outcome };
        if let Some(problem) = ctx.chunk.write(recording, &transaction, operations.draft()) {
            (ctx.report)(Event::Unrecorded(problem));
        }
    }

    /// Counts the failure of the command that ends the client.
    fn count_last_command(&self, ctx: &mut Context<'_>, command: usize) {
        if ctx.job.spec.rules.counts_failures_of_aborted_clients() {
            self.count_command(ctx, command, false);
        }
    }

    fn count_command(&self, ctx: &mut Context<'_>, command: usize, retried: bool) {
        if let Some(record) = self.record(ctx).commands.get_mut(command) {
            let count = if retried { &mut record.retries } else { &mut record.failures };
            *count += 1;
        }
    }

    /// The transaction has ended; a session that was only for it ends too.
    pub(super) fn leave_transaction(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if ctx.job.spec.connect_each {
            return ClientAction::Disconnect;
        }
        self.after_transaction(ctx)
    }

    /// Goes on with the next transaction; a script that never waited lets other clients, and the
    /// clock, have a turn.
    pub(super) fn after_transaction(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.yielded {
            return self.next_transaction(ctx);
        }
        self.state = ClientState::Idle;
        ClientAction::Wake(ctx.now)
    }
}
