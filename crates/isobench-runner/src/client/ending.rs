//! The ends of attempts and transactions: each is counted in exactly one bucket of the ledger, and
//! decides what the client does next.

use std::borrow::Cow;
use std::time::Duration;

use isobench_isolation::history::{Transaction, TransactionOutcome};
use isobench_pgwire::{ServerError, SqlState, TransactionStatus};

use super::state::{AttemptError, BlockEnds, Client, ClientAction, ClientState, Context};
use super::store::StoreError;
use crate::event::{AbortCause, ClientEvent};
use crate::observer::TransactionEnd;
use crate::program::ErrorClass;
use crate::recorder::{AttemptEnd, ConflictCount, EndedAttempt};
use crate::spec::OnError;

/// The reason of conflicts that a script's own SQL caught and didn't raise again.
const CAUGHT: &str = "caught by the script's own SQL";

/// The bucket of an attempt that ends its transaction too, but not by a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bucket {
    GivenUp,
    Ambiguous,
    CutOff,
    Errored,
}

/// An error after which the transaction may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retryable {
    Serialization,
    Deadlock,
    FurtherError,
}

impl Retryable {
    fn of_conflict(code: SqlState) -> Retryable {
        if code == SqlState::DEADLOCK_DETECTED { Retryable::Deadlock } else { Retryable::Serialization }
    }

    /// The end of a transaction that is given up after it.
    fn end(self) -> TransactionEnd {
        match self {
            Retryable::Serialization => TransactionEnd::Serialization,
            Retryable::Deadlock => TransactionEnd::Deadlock,
            Retryable::FurtherError => TransactionEnd::OtherError,
        }
    }
}

impl Client {
    /// Counts the attempt and the transaction as committed, unless the script has rolled them back by
    /// itself or lost their work: it has run to its end.
    pub(super) fn count_committed(&mut self, ctx: &mut Context<'_>) {
        let mut wasted = 0;
        if let Some(inside) = &self.inside {
            if let Some((code, command)) = inside.swallowed {
                return self.count_swallowed(ctx, code, command);
            }
            // The server measured the wasted time by its own clock, so it may exceed ours. The two
            // parts must add up to the attempt's time.
            wasted = inside.wasted.min(ctx.now.since(self.attempt_began));
        }
        if self.block_ends == BlockEnds::RolledBack && ctx.job.spec.rules.heeds_own_rollback() {
            return self.count_rolled_back(ctx, wasted);
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
        self.record_completed(ctx);
        self.keep(ctx, self.completed());
        self.observe(ctx, TransactionEnd::Committed);
    }

    /// Counts a transaction that committed although `command`'s own SQL caught an error, so that
    /// its work is lost.
    fn count_swallowed(&mut self, ctx: &mut Context<'_>, code: SqlState, command: usize) {
        // Rows report only the error's code, so the reason is classified from that alone.
        if let ErrorClass::Conflict { .. } = (ctx.job.classify)(&ServerError::new(code, "")) {
            self.count_conflict(ctx, command, code, (Cow::Borrowed(CAUGHT), None));
        }
        let (now, began, tries) = (ctx.now, self.attempt_began, self.tries);
        let record = self.record(ctx);
        record.ledger.attempts.swallowed += 1;
        record.ledger.transactions.swallowed += 1;
        record.ledger.time.wasted += now.since(began);
        record.count_tries(tries);
        self.record_completed(ctx);
        self.keep(ctx, self.completed());
        self.observe(ctx, TransactionEnd::Swallowed);
    }

    /// Counts a transaction that its own script rolled back. That was its purpose, so no time of the
    /// client's is wasted.
    fn count_rolled_back(&mut self, ctx: &mut Context<'_>, wasted: u64) {
        let (now, began, tries) = (ctx.now, self.attempt_began, self.tries);
        let record = self.record(ctx);
        record.ledger.attempts.rolled_back += 1;
        record.ledger.transactions.rolled_back += 1;
        record.ledger.time.useful += now.since(began) - wasted;
        record.ledger.time.wasted += wasted;
        record.count_tries(tries);
        self.record_completed(ctx);
        self.keep(ctx, AttemptEnd::Failed);
        self.observe(ctx, TransactionEnd::RolledBack);
    }

    /// The outcome of an attempt whose script has run to its end.
    fn completed(&self) -> AttemptEnd {
        // A block left open by the script is rolled back when its session ends.
        if self.status == TransactionStatus::Idle { AttemptEnd::Acknowledged } else { AttemptEnd::Failed }
    }

    /// Keeps the end of the attempt, if the run keeps them.
    fn keep(&self, ctx: &mut Context<'_>, end: AttemptEnd) {
        if ctx.job.spec.keeps_attempts {
            let (id, at) = (self.attempt_id(ctx), ctx.now.0);
            ctx.recorder.ended.push(EndedAttempt { id, at, end });
        }
    }

    /// Records an attempt whose script has run to its end. Swallowed statements aren't among its
    /// operations.
    fn record_completed(&mut self, ctx: &mut Context<'_>) {
        if self.operations.is_some() {
            let outcome = match self.completed() {
                AttemptEnd::Acknowledged => TransactionOutcome::Committed,
                AttemptEnd::Unknown | AttemptEnd::Failed => TransactionOutcome::Aborted,
            };
            self.record_operations(ctx, outcome);
        }
    }

    /// Called when the attempt has met an error and either its block is closed or its client ends.
    pub(super) fn attempt_failed(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        let Some(failure) = self.failure.take() else {
            self.count_committed(ctx);
            return self.leave_transaction(ctx);
        };
        let (code, command) = (failure.error.code, failure.command);
        match (ctx.job.classify)(&failure.error) {
            ErrorClass::Conflict { reason, object } => {
                self.count_conflict(ctx, command, code, (reason, object));
                self.after_retryable(ctx, command, Retryable::of_conflict(code))
            }
            ErrorClass::Ambiguous => self.end_ambiguous(ctx),
            ErrorClass::Other | ErrorClass::Retried { .. }
                if ctx.cancelling && code == SqlState::QUERY_CANCELED =>
            {
                if self.has_released() {
                    return self.end_ambiguous(ctx);
                }
                self.end_attempt(ctx, Bucket::CutOff);
                self.leave_transaction(ctx)
            }
            // After RELEASE the work may be committed, so a retry could do it twice.
            ErrorClass::Retried { reason } if !self.has_released() => {
                self.count_further_error(ctx, command, code, reason);
                self.after_retryable(ctx, command, Retryable::FurtherError)
            }
            ErrorClass::Retried { .. } | ErrorClass::Other => self.errored(ctx, &failure),
        }
    }

    /// Ends an attempt of which it is unknown whether it committed.
    fn end_ambiguous(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.end_attempt(ctx, Bucket::Ambiguous);
        self.observe(ctx, TransactionEnd::OtherError);
        self.leave_transaction(ctx)
    }

    /// Counts a conflict that ended an attempt, with its reason and the object it was about.
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

    /// Counts an error that ended an attempt and is retried although it is no conflict.
    fn count_further_error(
        &self,
        ctx: &mut Context<'_>,
        command: usize,
        sqlstate: SqlState,
        reason: Cow<'static, str>,
    ) {
        let error = ConflictCount { sqlstate, script: self.script, command, reason, object: None, count: 1 };
        ctx.recorder.further_error(error);
    }

    /// True if a conflict at this instant would be followed by a retry.
    pub(super) fn will_retry(&self, ctx: &Context<'_>) -> bool {
        !ctx.stopping && !self.is_exhausted(ctx)
    }

    fn is_exhausted(&self, ctx: &Context<'_>) -> bool {
        let spec = &ctx.job.spec;
        !spec.retry.allows_another(self.tries) || self.exceeds_limit(spec.latency_limit, ctx.now)
    }

    /// Retries the transaction or gives it up, after an error that may be retried.
    fn after_retryable(&mut self, ctx: &mut Context<'_>, command: usize, error: Retryable) -> ClientAction {
        let spec = &ctx.job.spec;
        let exhausted = self.is_exhausted(ctx);
        let forgotten = ctx.stopping && spec.rules.forgets_failures_at_the_end();
        // Exhausted tries take precedence over the end of the run: the transaction would have been
        // given up in any case.
        if exhausted && !forgotten {
            self.report_follows(ctx, false);
            self.count_command(ctx, command, false);
            let tries = self.tries;
            let record = self.record(ctx);
            record.count_tries(tries);
            record.deadlock_failures += u64::from(error == Retryable::Deadlock);
            record.further_failures += u64::from(error == Retryable::FurtherError);
            self.end_attempt(ctx, Bucket::GivenUp);
            self.observe(ctx, error.end());
            return self.leave_transaction(ctx);
        }
        // A retry would start after the end of the run, and pgbench doesn't start one either.
        if ctx.stopping {
            self.end_attempt(ctx, Bucket::CutOff);
            return self.leave_transaction(ctx);
        }
        self.report_follows(ctx, true);
        self.count_command(ctx, command, true);
        let (now, began) = (ctx.now, self.attempt_began);
        let ledger = &mut self.record(ctx).ledger;
        ledger.attempts.retried += 1;
        ledger.time.wasted += now.since(began);
        self.keep(ctx, AttemptEnd::Failed);
        if self.operations.is_some() {
            self.record_operations(ctx, TransactionOutcome::Aborted);
        }
        // A retry repeats the same transaction: same script, same values of the variables, same
        // random numbers. With new random keys it would likely miss the conflict, and conflict
        // ratios would no longer describe the workload.
        let saved = match &self.point {
            Some(point) if point.is_next() => &point.saved,
            _ => &self.saved,
        };
        if ctx.job.spec.rules.restores_variables() {
            self.variables.clone_from(&saved.0);
        }
        self.functions.clone_from(&saved.1);
        // Backoff draws from its own stream. If it used that of the expressions, the retry policy
        // would change the transactions.
        let delay = ctx.job.spec.retry.backoff.delay(self.tries - 1, &mut self.backoffs);
        // What a block holds isn't held from one turn to the next.
        let pauses = ctx.pausing && self.status == TransactionStatus::Idle;
        if delay == Duration::ZERO && !pauses {
            return self.begin_attempt(ctx);
        }
        let until = now.after(delay);
        self.state = ClientState::BackingOff { since: now, until };
        ClientAction::Wake(until)
    }

    fn errored(&mut self, ctx: &mut Context<'_>, failure: &AttemptError) -> ClientAction {
        let command = failure.command;
        let failed = self.failed(ctx, failure);
        // After RELEASE the work may be committed although a later statement failed.
        let unknown = self.has_released();
        self.end_attempt(ctx, if unknown { Bucket::Ambiguous } else { Bucket::Errored });
        if ctx.job.spec.on_error != OnError::Continue {
            self.count_last_command(ctx, command);
            return self.abort(ctx, command, AbortCause::Server(failed));
        }
        self.count_command(ctx, command, false);
        let tries = self.tries;
        let record = self.record(ctx);
        record.count_tries(tries);
        record.abandoned += 1;
        self.report_follows(ctx, false);
        (ctx.report)(ClientEvent::Abandoned(self.place(command), failed));
        self.observe(ctx, TransactionEnd::OtherError);
        self.leave_transaction(ctx)
    }

    fn report_follows(&self, ctx: &Context<'_>, retry: bool) {
        if ctx.job.spec.detail.errors {
            let taken = ctx.now.since(self.since) as f64 / 1e9;
            let used = ctx.job.spec.latency_limit.map(|limit| taken / limit.as_secs_f64());
            (ctx.report)(ClientEvent::Follows { client: self.id, retry, tries: self.tries, used });
        }
    }

    /// Called when the connection can't be used any more.
    pub(crate) fn on_lost(&mut self, ctx: &mut Context<'_>, why: &str) -> ClientAction {
        if !self.connected && ctx.job.spec.reconnects().is_some() {
            // It has been left already.
            return ClientAction::Receive;
        }
        // pgbench reads from a connection only while it waits for a reply.
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
        if ctx.job.spec.reconnects().is_some() {
            return self.leave_lost(ctx, command, why);
        }
        self.end_abruptly(ctx, Bucket::Errored);
        let failure = self.failure.take().map(|failure| Box::new(failure.error));
        let last = failure.filter(|error| error.is_fatal()).or(self.unsolicited.take());
        self.abort(ctx, command, AbortCause::Lost(why.to_owned(), last))
    }

    /// Leaves a session that is lost, in order to open another one. The attempt under way has failed,
    /// or its outcome is unknown; a transaction that waited for its next attempt goes on.
    fn leave_lost(&mut self, ctx: &mut Context<'_>, command: usize, why: &str) -> ClientAction {
        ctx.recorder.lost_sessions += 1;
        if !self.is_live() {
            // It needs none before the next run.
            self.connected = false;
            return ClientAction::Close;
        }
        (ctx.report)(ClientEvent::LostSession(self.place(command), why.to_owned()));
        let now = ctx.now;
        let before = self.record(ctx).ledger.transactions;
        if let ClientState::BackingOff { since, .. } = self.state {
            self.record(ctx).ledger.time.backoff += now.since(since);
            self.held = true;
        } else {
            self.end_abruptly(ctx, Bucket::Errored);
        }
        let tries = self.tries;
        let record = self.record(ctx);
        let after = record.ledger.transactions;
        let errored = after.errored - before.errored;
        if errored > 0 {
            record.count_tries(tries);
            record.abandoned += errored;
        }
        if errored > 0 || after.ambiguous > before.ambiguous {
            self.observe(ctx, TransactionEnd::OtherError);
        }
        // What was queued must not reach the next session.
        ctx.out.truncate(ctx.out_start);
        (self.connected, self.outstanding, self.may_commit) = (false, 0, false);
        (self.pipeline, self.stored, self.copy) = (None, None, None);
        (self.failure, self.point) = (None, None);
        self.state = ClientState::Idle;
        ClientAction::Disconnect
    }

    /// Called when the run can't wait for the client any longer.
    pub(crate) fn on_kill(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.end_abruptly(ctx, Bucket::CutOff);
        self.retire();
        ClientAction::Close
    }

    /// Accounts for the work under way when the session ended.
    ///
    /// If the server may have been committing and hasn't reported a failure, the outcome is
    /// unknown. A fatal error doesn't settle it: it says only that the session has ended. Its
    /// reason is counted if it is a conflict (with a standby's recovery).
    fn end_abruptly(&mut self, ctx: &mut Context<'_>, otherwise: Bucket) {
        match self.state {
            ClientState::Preparing(_)
            | ClientState::AskingLevel
            | ClientState::CatchingUp
            | ClientState::Replying
            | ClientState::Sleeping
            | ClientState::RollingBack => {
                let failed = self.failure.as_ref();
                let class = failed.map(|failure| (ctx.job.classify)(&failure.error));
                let unanswered = matches!(class, None | Some(ErrorClass::Ambiguous))
                    || failed.is_some_and(|failure| failure.error.is_fatal());
                // The server executes a pipeline's statements as they arrive, even before a Sync.
                let under_way = self.outstanding > 0 || self.pipeline.is_some();
                let unknown = (under_way && self.may_commit || self.has_released()) && unanswered;
                if let (false, Some((failure, ErrorClass::Conflict { reason, object }))) =
                    (unknown, failed.zip(class))
                {
                    self.count_conflict(ctx, failure.command, failure.error.code, (reason, object));
                }
                self.end_attempt(ctx, if unknown { Bucket::Ambiguous } else { otherwise });
            }
            ClientState::BackingOff { since, .. } => {
                let now = ctx.now;
                let ledger = &mut self.record(ctx).ledger;
                ledger.time.backoff += now.since(since);
                ledger.transactions.cut_off += 1;
            }
            ClientState::Waiting { since } => {
                let now = ctx.now;
                self.record(ctx).ledger.time.waiting += now.since(since);
            }
            // No attempt is under way, or it is already in its bucket.
            ClientState::Idle
            | ClientState::Connecting
            | ClientState::Away { .. }
            | ClientState::LeavingBlock
            | ClientState::Finished
            | ClientState::Aborted => {}
        }
    }

    /// Ends the client because of its script rather than an error of the server.
    pub(super) fn end_client(&mut self, ctx: &mut Context<'_>, cause: AbortCause) -> ClientAction {
        self.count_last_command(ctx, self.command);
        self.end_attempt(ctx, Bucket::Errored);
        self.abort(ctx, self.command, cause)
    }

    /// Ends the client because the result of a query can't be stored.
    pub(super) fn result_rejected(&mut self, ctx: &mut Context<'_>, refused: StoreError) -> ClientAction {
        let query = self.answered.saturating_sub(1);
        self.end_client(ctx, AbortCause::Result { query, problem: refused.problem, name: refused.name })
    }

    /// Counts the attempt and its transaction in this bucket.
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
        let under_way = self.outstanding > 0 || self.pipeline.is_some();
        // The bucket says why the client gave up, the history what the database may contain: a
        // COMMIT that was sent and not answered may have succeeded.
        let unanswered = under_way && self.may_commit && self.failure.is_none();
        let unknown = bucket == Bucket::Ambiguous || unanswered;
        self.keep(ctx, if unknown { AttemptEnd::Unknown } else { AttemptEnd::Failed });
        if self.operations.is_some() {
            self.record_operations(
                ctx,
                if unknown { TransactionOutcome::Unknown } else { TransactionOutcome::Aborted },
            );
        }
    }

    /// Records the attempt's reads and writes. `outcome` is what is known besides the server's
    /// replies.
    fn record_operations(&mut self, ctx: &mut Context<'_>, outcome: TransactionOutcome) {
        let id = self.attempt_id(ctx);
        self.record_rows(ctx, outcome);
        let (Some(operations), Some(recording)) = (&self.operations, &ctx.job.recording) else { return };
        let outcome = operations.outcome(outcome);
        let swallowed = self.inside.as_ref().is_some_and(|inside| inside.swallowed.is_some());
        if outcome == TransactionOutcome::Committed && !swallowed {
            operations.count(&mut ctx.recorder.scripts[self.script].assertions);
        }
        if self.rows.is_some() {
            return;
        }
        if operations.is_incomplete(outcome) {
            recording.drop_one();
        }
        if operations.draft().is_empty() {
            return;
        }
        // A commit of unknown outcome may still take effect later, so it has no upper bound in
        // time.
        let end = if outcome == TransactionOutcome::Unknown { u64::MAX } else { ctx.now.0 };
        let client = u32::try_from(self.id).unwrap_or(u32::MAX);
        let mode = ctx.job.mode(self.script);
        let transaction = Transaction { id, client, begin: self.attempt_began.0, end, outcome, mode };
        if let Some(problem) = ctx.chunk.write(recording, &transaction, operations.draft()) {
            (ctx.report)(ClientEvent::Unrecorded(problem));
        }
    }

    /// Records the rows shown to a transaction that has ended, if there are any, and starts the next
    /// one.
    pub(super) fn record_rows(&mut self, ctx: &mut Context<'_>, outcome: TransactionOutcome) {
        let id = self.attempt_id(ctx);
        let (Some(rows), Some(recording)) = (&mut self.rows, &ctx.job.recording) else { return };
        let unknown = outcome == TransactionOutcome::Unknown;
        if outcome != TransactionOutcome::Aborted
            && let Some(why) = rows.incomplete(unknown)
        {
            recording.drop_for(why);
        }
        if outcome != TransactionOutcome::Aborted && ctx.job.snapshot_question.is_some() {
            rows.end_with_snapshot(self.script);
        }
        let now = ctx.clock.now();
        // Writes that were taken back, or couldn't be read, must not be told of as committed ones.
        let misread = outcome != TransactionOutcome::Aborted && rows.is_misread();
        if !rows.draft().is_empty() && !misread {
            let end = if unknown { u64::MAX } else { now.0 };
            let client = u32::try_from(self.id).unwrap_or(u32::MAX);
            let mode = ctx.job.mode(self.script);
            let transaction = Transaction { id, client, begin: self.rows_began.0, end, outcome, mode };
            if let Some(problem) = ctx.chunk.write_observed(recording, &transaction, rows.draft()) {
                (ctx.report)(ClientEvent::Unrecorded(problem));
            }
        }
        rows.reset();
        self.rows_began = now;
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

    /// Leaves the transaction; a session opened for it is closed.
    pub(super) fn leave_transaction(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if ctx.job.spec.connect_each {
            return ClientAction::Disconnect;
        }
        self.after_transaction(ctx)
    }

    /// Continues with the next transaction.
    pub(super) fn after_transaction(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.yielded {
            return self.next_transaction(ctx);
        }
        self.state = ClientState::Idle;
        ClientAction::Wake(ctx.now)
    }
}
