//! The server's messages, as far as they concern the client.
//!
//! On the hot path a message is identified by its tag alone; only stored results and errors are
//! parsed.

use std::mem;

use isobench_isolation::history::TransactionOutcome;
use isobench_pgwire::backend::{self, Message, tag};
use isobench_pgwire::{Frame, ServerError, SqlState, TransactionStatus, frontend};
use isobench_script::CommandKind;

use super::state::{AttemptError, BlockEnds, Client, ClientAction, ClientState, Context, CopyDirection};
use crate::annotated::{AnnotatedCommand, InsideColumns};
use crate::event::{AbortCause, ClientEvent, ClientStep, FailedStatement};
use crate::program::{ErrorClass, SqlRequest};
use crate::seen::SeenStatement;
use crate::spec::OnError;

/// Memory that a recorded row takes besides its bytes, approximately.
const ROW_KEPT: usize = 64;

impl Client {
    /// Called with bytes received from the server.
    pub(crate) fn on_bytes(&mut self, ctx: &mut Context<'_>, bytes: &[u8]) -> ClientAction {
        let mut buffer = mem::take(&mut self.frames);
        let mut frames = buffer.feed(bytes);
        let problem = loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    if let Err(problem) = self.on_frame(ctx, frame) {
                        break Some(problem);
                    }
                    if self.is_at_copy(ctx) {
                        break None;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        drop(frames);
        self.frames = buffer;
        if let Some(problem) = problem {
            return self.on_lost(ctx, &problem);
        }
        if self.is_at_copy(ctx) {
            let action = self.end_client(ctx, AbortCause::Copy);
            if let Some(complaint) = self.unsolicited.take() {
                (ctx.report)(ClientEvent::Notice(complaint));
            }
            return action;
        }
        match self.state {
            ClientState::Replying if self.outstanding == 0 => self.on_reply(ctx),
            ClientState::Preparing(command) if self.outstanding == 0 => self.on_prepared(ctx, command),
            ClientState::AskingLevel if self.outstanding == 0 => self.on_level(ctx),
            ClientState::CatchingUp if self.outstanding == 0 => self.on_caught_up(ctx),
            ClientState::RollingBack if self.outstanding == 0 => self.on_rolled_back(ctx),
            ClientState::LeavingBlock if self.outstanding == 0 => self.on_block_left(ctx),
            _ => ClientAction::Receive,
        }
    }

    fn on_frame(&mut self, ctx: &mut Context<'_>, frame: Frame<'_>) -> Result<(), String> {
        if self.on_snapshot(frame)? {
            return Ok(());
        }
        match frame.tag {
            tag::BIND_COMPLETE
            | tag::PARSE_COMPLETE
            | tag::NO_DATA
            | tag::PARAMETER_DESCRIPTION
            | tag::CLOSE_COMPLETE
            | tag::PORTAL_SUSPENDED
            | tag::PARAMETER_STATUS
            | tag::NOTIFICATION_RESPONSE
            | tag::COPY_DATA
            | tag::COPY_DONE => {}
            tag::DATA_ROW if self.state == ClientState::AskingLevel => self.note_level(ctx, frame)?,
            tag::ROW_DESCRIPTION | tag::COMMAND_COMPLETE if self.state == ClientState::AskingLevel => {}
            tag::ROW_DESCRIPTION | tag::DATA_ROW | tag::COMMAND_COMPLETE
                if self.state == ClientState::CatchingUp => {}
            tag::DATA_ROW | tag::ROW_DESCRIPTION => {
                if self.stored.is_some() || self.operations.is_some() || self.inside.is_some() {
                    self.on_row(ctx, frame)?;
                }
            }
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY_RESPONSE => {
                if self.pipeline.as_ref().is_some_and(|pipeline| !pipeline.at_synchronisation()) {
                    ctx.trace(self.id, || ClientStep::Receiving);
                }
                self.on_completed(ctx, frame.body);
                self.check_kept()?;
            }
            tag::READY_FOR_QUERY => {
                self.status = TransactionStatus::from_body(frame.body)
                    .ok_or("the server sent a ReadyForQuery message without a transaction status")?;
                if !matches!(self.state, ClientState::Preparing(_)) {
                    ctx.trace(self.id, || ClientStep::Receiving);
                }
                if let Some(pipeline) = &mut self.pipeline {
                    if self.failure.is_none() {
                        ctx.trace(self.id, || ClientStep::EndingPipeline(self.outstanding));
                    }
                    pipeline.synchronised();
                    if !ctx.job.spec.rules.blames_command_in_pipeline() && self.failure.is_none() {
                        // pgbench counts on after the synchronisation point, as if it answered a
                        // further query.
                        self.answered += 1;
                    }
                }
                if self.operations.is_some() && self.failure.is_none() {
                    self.on_ready(ctx);
                }
                self.outstanding = self.outstanding.saturating_sub(1);
            }
            tag::ERROR_RESPONSE => match backend::parse(frame) {
                Ok(Message::ErrorResponse(message)) => self.on_error(ctx, message.to_error()),
                _ => return Err("the server sent an error that can't be read".to_owned()),
            },
            tag::NOTICE_RESPONSE => {
                if let Ok(Message::NoticeResponse(message)) = backend::parse(frame) {
                    (ctx.report)(ClientEvent::Notice(Box::new(message.to_error())));
                }
            }
            tag::COPY_IN_RESPONSE | tag::COPY_OUT_RESPONSE => {
                ctx.trace(self.id, || ClientStep::Receiving);
                self.copy = Some(if frame.tag == tag::COPY_IN_RESPONSE {
                    CopyDirection::In
                } else {
                    CopyDirection::Out
                });
            }
            other => {
                return Err(format!(
                    "the server sent an unexpected message of type \"{}\"",
                    other.escape_ascii()
                ));
            }
        }
        Ok(())
    }

    /// True if the server expects, or sends, the rows of a COPY, and no further message is awaited
    /// before the client ends.
    fn is_at_copy(&self, ctx: &Context<'_>) -> bool {
        // In the middle of a pipeline the server will complain about the messages that aren't rows.
        // pgbench shows that, as libpq reports it.
        let complains = self.copy == Some(CopyDirection::In)
            && ctx.job.spec.rules.shows_complaints_of_copy()
            && self.pipeline.as_ref().is_some_and(|pipeline| pipeline.goes_on());
        self.copy.is_some() && (!complains || self.unsolicited.is_some())
    }

    fn on_error(&mut self, ctx: &mut Context<'_>, error: ServerError) {
        // FATAL while no reply is owed (a shutdown, idle_in_transaction_session_timeout) answers no
        // statement. It is kept as the reason for the loss of the connection that follows.
        let owes =
            self.outstanding > 0 || self.pipeline.as_ref().is_some_and(|pipeline| !pipeline.is_empty());
        if self.copy.is_some() || error.is_fatal() && !owes {
            self.unsolicited = Some(Box::new(error));
            return;
        }
        if let ClientState::Preparing(command) = self.state
            && !ctx.job.spec.rules.heeds_failed_prepare()
        {
            let text = ctx.job.program.request(self.script, command).and_then(SqlRequest::prepared_text);
            let failed = FailedStatement { error: Box::new(error), query: 0, text };
            (ctx.report)(ClientEvent::NotPrepared(failed));
            return;
        }
        self.asking_snapshot = false;
        let report = self.failure.is_none() && ctx.job.spec.detail.errors;
        self.fail(ctx, error);
        if report {
            self.report_failure(ctx);
        }
    }

    /// Keeps the first error of the attempt; later ones are consequences of it (25P02 above all).
    fn fail(&mut self, ctx: &Context<'_>, error: ServerError) {
        let exact = ctx.job.spec.rules.blames_command_in_pipeline();
        let statement = match (self.state, &self.pipeline) {
            (ClientState::Preparing(command), _) => command,
            (_, None) => self.command,
            (_, Some(pipeline)) => pipeline.current().unwrap_or(self.command),
        };
        let command = if exact || self.pipeline.is_none() { statement } else { self.end_of_pipeline(ctx) };
        let query = self.answered;
        self.failure.get_or_insert_with(|| Box::new(AttemptError { error, command, statement, query }));
    }

    /// The `\endpipeline` of the current pipeline. Replies may arrive before it is executed.
    pub(super) fn end_of_pipeline(&self, ctx: &Context<'_>) -> usize {
        let rest = ctx.job.commands(self.script).iter().skip(self.command);
        let ahead = rest.take_while(|command| !matches!(command.kind, CommandKind::EndPipeline)).count();
        self.command + ahead
    }

    /// Reports an error that doesn't end the client, unless our own cancel request caused it.
    fn report_failure(&self, ctx: &Context<'_>) {
        if let Some(failure) = &self.failure
            && survives(ctx, &failure.error)
            && !is_cancelled(ctx, &failure.error)
        {
            (ctx.report)(ClientEvent::Failed(self.place(failure.command), self.failed(ctx, failure)));
        }
    }

    fn on_row(&mut self, ctx: &mut Context<'_>, frame: Frame<'_>) -> Result<(), String> {
        let is_row = frame.tag == tag::DATA_ROW;
        let annotated = if is_row { self.annotated(ctx) } else { None };
        let seen = self.seen(ctx);
        let columns = if is_row { self.inside_columns(ctx) } else { None };
        if annotated.is_none() && seen.is_none() && columns.is_none() && self.stored.is_none() {
            return Ok(());
        }
        let message = backend::parse(frame).map_err(|error| error.to_string())?;
        let mut swallowed = false;
        if let (Some((command, columns)), Message::DataRow(row)) = (columns, &message) {
            swallowed = self.count_reported(ctx, command, columns, *row);
        }
        if let (Some(annotated), Some(operations), Message::DataRow(row)) =
            (annotated, &mut self.operations, &message)
        {
            if swallowed {
                operations.skip();
            } else if self.failure.is_some() || operations.is_settled() {
                operations.reject(annotated);
            } else {
                operations.row(annotated, *row);
                self.kept += ROW_KEPT + frame.body.len();
            }
        }
        let appended = seen.map_or(0, |seen| usize::from(seen.what.appended));
        if let (Some(seen), Some(rows), Some(recording), Message::DataRow(row)) =
            (seen, &mut self.rows, &ctx.job.recording, &message)
        {
            rows.row(seen, *row, annotated.is_some(), &mut ctx.chunk.numbers(recording));
            self.kept += ROW_KEPT + frame.body.len();
        }
        match (&mut self.stored, message) {
            (Some(rows), Message::RowDescription(description)) => rows.describe(description, appended),
            (Some(rows), Message::DataRow(row)) => rows.add(row, appended),
            _ => {}
        }
        self.check_kept()
    }

    /// Checks the limit on the results that are kept of an attempt.
    ///
    /// # Errors
    /// They take more memory than one client may use.
    fn check_kept(&self) -> Result<(), String> {
        if self.kept <= self.most_kept {
            return Ok(());
        }
        let limit = self.most_kept >> 10;
        Err(format!(
            "the results of a transaction that are kept take more than {limit} KiB, this client's limit"
        ))
    }

    /// The annotations of the statement whose reply is coming, if the run is recorded and the
    /// statement has any.
    #[inline]
    fn annotated<'j>(&self, ctx: &Context<'j>) -> Option<&'j AnnotatedCommand> {
        self.operations.as_ref()?;
        self.annotated_of(self.request(ctx)?)
    }

    #[inline]
    fn annotated_of<'j>(&self, request: &'j SqlRequest) -> Option<&'j AnnotatedCommand> {
        let annotated = request.annotated.as_deref()?;
        // In a pipeline every statement is a command of its own.
        (self.pipeline.is_some() || annotated.statement == self.answered).then_some(annotated)
    }

    /// The statement whose reply is coming, if its rows are observed.
    #[inline]
    fn seen<'j>(&self, ctx: &Context<'j>) -> Option<&'j SeenStatement> {
        self.rows.as_ref()?;
        self.seen_of(self.request(ctx)?)
    }

    #[inline]
    fn seen_of<'j>(&self, request: &'j SqlRequest) -> Option<&'j SeenStatement> {
        let mut all = request.seen.iter();
        all.find(|seen| self.pipeline.is_some() || seen.what.statement == self.answered)
    }

    /// The command whose reply is coming, and the columns that report retries and errors inside the
    /// server.
    #[inline]
    fn inside_columns<'j>(&self, ctx: &Context<'j>) -> Option<(usize, &'j InsideColumns)> {
        self.inside.as_ref()?;
        let command = self.current()?;
        let columns = ctx.job.program.request(self.script, command)?.inside_columns.as_deref()?;
        let is_it = self.pipeline.is_some() || columns.statement == self.answered;
        is_it.then_some((command, columns))
    }

    /// The request whose reply is coming.
    fn request<'j>(&self, ctx: &Context<'j>) -> Option<&'j SqlRequest> {
        ctx.job.program.request(self.script, self.current()?)
    }

    /// The command whose reply is coming, unless the request isn't one of the script's.
    fn current(&self) -> Option<usize> {
        match (self.state, &self.pipeline) {
            (ClientState::Replying | ClientState::Sleeping, Some(pipeline)) => pipeline.current(),
            (ClientState::Replying, None) => Some(self.command),
            _ => None,
        }
    }

    /// Records that a statement has been answered with this tag.
    fn record_answer(&mut self, ctx: &mut Context<'_>, tag: &[u8]) {
        let Some(request) = self.request(ctx) else { return };
        let (annotated, seen) = (self.annotated_of(request), self.seen_of(request));
        let failed = self.failure.is_some();
        if let (Some(rows), Some(seen)) = (&mut self.rows, seen) {
            rows.answered(seen);
        }
        if let (Some(operations), Some(annotated)) = (&mut self.operations, annotated) {
            if failed || operations.is_settled() {
                operations.reject(annotated);
            } else {
                operations.answered(annotated, tag);
                if let Some(rows) = &mut self.rows {
                    operations.compare(annotated, &request.seen, rows.take_shown());
                }
            }
        }
        if tag.starts_with(b"COMMIT\0") {
            self.settle(ctx, TransactionOutcome::Committed);
        } else if tag.starts_with(b"ROLLBACK\0") && request.rolls_back {
            self.settle(ctx, TransactionOutcome::Aborted);
        } else if tag.starts_with(b"ROLLBACK\0") && !request.is_commit() {
            if let Some(operations) = &mut self.operations {
                operations.reject_partial_rollback();
            }
            if let Some(rows) = &mut self.rows {
                rows.fail("ROLLBACK TO undid a part of what a transaction had done");
            }
        }
    }

    /// Called when the server is ready for the next request, and nothing has failed.
    fn on_ready(&mut self, ctx: &mut Context<'_>) {
        if self.status == TransactionStatus::Idle {
            // A statement outside a block has committed by itself.
            self.settle(ctx, TransactionOutcome::Committed);
        } else if let Some(rows) = self.rows.as_mut().filter(|_| self.pipeline.is_none()) {
            let clock = ctx.clock;
            rows.mark(|| clock.now().0);
        }
    }

    /// Notes the outcome of a transaction that has ended before the script.
    fn settle(&mut self, ctx: &mut Context<'_>, outcome: TransactionOutcome) {
        if let Some(operations) = &mut self.operations {
            operations.settle(outcome);
        }
        self.record_rows(ctx, outcome);
    }

    fn on_completed(&mut self, ctx: &mut Context<'_>, body: &[u8]) {
        if self.operations.is_some() {
            self.record_answer(ctx, body);
        }
        let current = match &mut self.pipeline {
            Some(pipeline) => {
                let current = pipeline.current();
                pipeline.completed();
                current
            }
            None => Some(self.command),
        };
        if self.pipeline.is_some() {
            self.answered = 0;
        } else if self.state != ClientState::RollingBack {
            self.answered += 1;
        }
        if let Some(rows) = &mut self.stored {
            self.kept += rows.complete();
        }
        if let Some(command) = current {
            self.follow_savepoint(ctx, command);
        }
        if body.starts_with(b"COMMIT\0") {
            self.block_ends = BlockEnds::Committed;
        } else if body.starts_with(b"ROLLBACK\0") && self.block_ends == BlockEnds::None {
            let request = current.and_then(|command| ctx.job.program.request(self.script, command));
            if request.is_some_and(|request| request.rolls_back) {
                self.block_ends = BlockEnds::RolledBack;
            }
        }
        // A server that has rolled back a failed block answers COMMIT with the tag ROLLBACK,
        // without an error (PostgreSQL: COMMIT, Outputs). Counted as committed, lost work would be
        // throughput.
        let commit = current
            .and_then(|command| ctx.job.program.request(self.script, command))
            .is_some_and(SqlRequest::is_commit);
        if commit && body.starts_with(b"ROLLBACK\0") {
            let code = SqlState::IN_FAILED_SQL_TRANSACTION;
            let undone = "COMMIT was answered with ROLLBACK: the server undid the transaction";
            self.fail(ctx, ServerError::new(code, undone));
        }
    }

    /// Called when the statement has been prepared, or has failed to be.
    fn on_prepared(&mut self, ctx: &mut Context<'_>, command: usize) -> ClientAction {
        if self.failure.is_some() {
            return self.roll_back(ctx);
        }
        if let Some(request) = ctx.job.program.request(self.script, command) {
            self.set_prepared(request.number);
        }
        self.resume_commands(ctx)
    }

    /// Called when the whole reply to a request, or to a pipeline, has come.
    fn on_reply(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        // Everything has been answered, so the outcome of each statement is known.
        self.may_commit = false;
        self.pipeline = None;
        let stored = self.stored.take();
        let inside = self.inside.as_ref().and_then(|inside| inside.problem.as_deref());
        if let Some(problem) = self.operations.as_ref().and_then(|operations| operations.problem()).or(inside)
        {
            let problem = problem.to_owned();
            return self.end_client(ctx, AbortCause::Annotation(problem));
        }
        if self.failure.is_some() {
            return self.roll_back(ctx);
        }
        if let Some(rows) = stored
            && let Err(refused) = rows.store(&ctx.job.workload.symbols, &mut self.variables)
        {
            return self.result_rejected(ctx, refused);
        }
        if ctx.job.spec.per_command {
            self.end_command(ctx);
        }
        self.keep_savepoint(ctx);
        self.command += 1;
        self.run_commands(ctx)
    }

    /// Rolls back a block that an error has left open, unless the session ends with the client.
    pub(super) fn roll_back(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        let ends = self.failure.as_ref().is_some_and(|failure| !survives(ctx, &failure.error));
        // A client that ends closes its session, and that rolls the block back.
        if self.status == TransactionStatus::Idle || ends {
            return self.attempt_failed(ctx);
        }
        ctx.trace(self.id, || ClientStep::Receiving);
        if !self.roll_back_to_savepoint(ctx) {
            frontend::query(ctx.out, b"ROLLBACK");
        }
        self.outstanding = 1;
        self.state = ClientState::RollingBack;
        ClientAction::Receive
    }

    fn on_rolled_back(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.status == TransactionStatus::Idle || self.is_at_savepoint(ctx) {
            return self.attempt_failed(ctx);
        }
        // ROLLBACK TO failed, so the block itself has to be rolled back.
        if self.leave_savepoint() {
            return self.roll_back(ctx);
        }
        self.on_lost(ctx, "ROLLBACK failed, the session is unusable")
    }
}

/// True if the client continues after this error.
fn survives(ctx: &Context<'_>, error: &ServerError) -> bool {
    match (ctx.job.classify)(error) {
        ErrorClass::Conflict { .. } | ErrorClass::Retried { .. } | ErrorClass::Ambiguous => true,
        ErrorClass::Other => is_cancelled(ctx, error) || ctx.job.spec.on_error == OnError::Continue,
    }
}

/// True if the error is the effect of our own cancel request at the end of the run.
fn is_cancelled(ctx: &Context<'_>, error: &ServerError) -> bool {
    ctx.cancelling && error.code == SqlState::QUERY_CANCELED
}
