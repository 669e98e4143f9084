//! Understands what the server sends, as far as it concerns the client.
//!
//! On the hot path a reply is told by its tag alone; only stored results and errors are looked into.

use std::mem;

use isobench_pgwire::backend::{self, Message, tag};
use isobench_pgwire::{Frame, ServerError, SqlState, TransactionStatus, frontend};

use super::{Action, Client, Context, State};
use crate::job::Event;

impl Client {
    /// Bytes have arrived.
    pub(crate) fn on_bytes(&mut self, ctx: &mut Context<'_>, bytes: &[u8]) -> Action {
        let mut buffer = mem::take(&mut self.frames);
        let mut frames = buffer.feed(bytes);
        let problem = loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    if let Err(problem) = self.on_frame(ctx, frame) {
                        break Some(problem);
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
        match self.state {
            State::Replying if self.outstanding == 0 => self.on_reply(ctx),
            State::RollingBack if self.outstanding == 0 => self.on_rolled_back(ctx),
            _ => Action::Receive,
        }
    }

    fn on_frame(&mut self, ctx: &mut Context<'_>, frame: Frame<'_>) -> Result<(), String> {
        match frame.tag {
            tag::BIND_COMPLETE
            | tag::NO_DATA
            | tag::PARAMETER_DESCRIPTION
            | tag::CLOSE_COMPLETE
            | tag::PORTAL_SUSPENDED
            | tag::PARAMETER_STATUS
            | tag::NOTIFICATION_RESPONSE
            | tag::COPY_DATA
            | tag::COPY_DONE => {}
            tag::DATA_ROW | tag::ROW_DESCRIPTION => self.on_row(frame)?,
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY_RESPONSE => self.on_completed(ctx, frame.body),
            tag::READY_FOR_QUERY => {
                self.status = TransactionStatus::from_body(frame.body)
                    .ok_or("the server sent a ReadyForQuery message without a transaction status")?;
                self.outstanding = self.outstanding.saturating_sub(1);
                self.synchronised(ctx);
            }
            tag::PARSE_COMPLETE => {
                if !self.parsing.is_empty() {
                    self.parsing.remove(0);
                }
            }
            tag::ERROR_RESPONSE => match backend::parse(frame) {
                Ok(Message::ErrorResponse(message)) => self.on_error(message.to_error()),
                _ => return Err("the server sent an error that can't be read".to_owned()),
            },
            tag::NOTICE_RESPONSE => {
                if let Ok(Message::NoticeResponse(message)) = backend::parse(frame) {
                    (ctx.report)(Event::Notice(message.to_error().to_string()));
                }
            }
            // Which of the pipeline's synchronisation points the server will ignore depends on what follows the COPY.
            tag::COPY_IN_RESPONSE if self.pipeline.is_some() => {
                return Err("COPY is not supported in a pipeline".to_owned());
            }
            tag::COPY_IN_RESPONSE => {
                frontend::copy_fail(ctx.out, "COPY is not supported in scripts");
                if ctx.job.spec.protocol != crate::spec::Protocol::Simple {
                    // The server ignored the Sync that came while it was waiting for rows.
                    frontend::sync(ctx.out);
                }
                self.refuse_copy();
            }
            tag::COPY_OUT_RESPONSE => self.refuse_copy(),
            other => {
                return Err(format!(
                    "the server sent an unexpected message of type \"{}\"",
                    other.escape_ascii()
                ));
            }
        }
        Ok(())
    }

    /// The server has answered, or after an error skipped, everything up to a synchronisation point.
    fn synchronised(&mut self, ctx: &Context<'_>) {
        let Some(pipeline) = &mut self.pipeline else { return };
        for skipped in pipeline.synchronised() {
            let number = ctx.job.program.request(self.script, skipped).map(|request| request.number);
            if let Some(place) = self.parsing.iter().position(|parsing| Some(*parsing) == number) {
                let statement = self.parsing.remove(place);
                self.set_prepared(statement, false);
            }
        }
    }

    fn on_error(&mut self, error: ServerError) {
        let owes =
            self.outstanding > 0 || self.pipeline.as_ref().is_some_and(|pipeline| !pipeline.is_empty());
        if error.is_fatal() && !owes {
            self.farewell = Some(Box::new(error));
        } else {
            self.fail(error);
        }
    }

    /// Keeps the first error of the attempt; what follows it is a consequence.
    fn fail(&mut self, error: ServerError) {
        let command = self.pipeline.as_ref().and_then(|pipeline| pipeline.current()).unwrap_or(self.command);
        self.failure.get_or_insert_with(|| Box::new((error, command)));
    }

    fn refuse_copy(&mut self) {
        let code = SqlState::FEATURE_NOT_SUPPORTED;
        self.fail(ServerError::new(
            code,
            "COPY is not supported in scripts; load tables with init, or with psql",
        ));
    }

    fn on_row(&mut self, frame: Frame<'_>) -> Result<(), String> {
        let Some(rows) = &mut self.stored else {
            return Ok(());
        };
        match backend::parse(frame).map_err(|error| error.to_string())? {
            Message::RowDescription(description) => rows.describe(description),
            Message::DataRow(row) => rows.add(row),
            _ => {}
        }
        Ok(())
    }

    fn on_completed(&mut self, ctx: &Context<'_>, body: &[u8]) {
        let current = match &mut self.pipeline {
            Some(pipeline) => {
                let current = pipeline.current();
                pipeline.completed();
                current
            }
            None => Some(self.command),
        };
        if self.pipeline.is_none() && self.state != State::RollingBack {
            if self.state == State::RollingBack {
                return;
            }
            self.answered += 1;
        }
        if let Some(rows) = &mut self.stored {
            rows.complete();
        }
        // A server that undid the transaction answers COMMIT with ROLLBACK, and with no error.
        let commit = current
            .and_then(|command| ctx.job.program.request(self.script, command))
            .is_some_and(crate::program::Request::is_commit);
        if commit && body.starts_with(b"ROLLBACK\0") {
            let code = SqlState::IN_FAILED_SQL_TRANSACTION;
            self.fail(ServerError::new(
                code,
                "COMMIT was answered with ROLLBACK: the server undid the transaction",
            ));
        }
    }

    /// The whole reply to a request, or to a pipeline, has come.
    fn on_reply(&mut self, ctx: &mut Context<'_>) -> Action {
        self.may_commit = false;
        self.pipeline = None;
        while let Some(statement) = self.parsing.pop() {
            self.set_prepared(statement, false);
        }
        let stored = self.stored.take();
        if self.failure.is_some() {
            return self.roll_back(ctx);
        }
        if let Some(rows) = stored
            && let Err(problem) = rows.store(ctx.job, &mut self.variables)
        {
            return self.result_refused(ctx, &problem);
        }
        if ctx.job.spec.per_command {
            self.end_command(ctx);
        }
        self.command += 1;
        self.run_commands(ctx)
    }

    /// Leaves a block that an error has left open.
    fn roll_back(&mut self, ctx: &mut Context<'_>) -> Action {
        if self.status == TransactionStatus::Idle {
            return self.attempt_failed(ctx);
        }
        frontend::query(ctx.out, b"ROLLBACK");
        self.outstanding = 1;
        self.state = State::RollingBack;
        Action::Receive
    }

    fn on_rolled_back(&mut self, ctx: &mut Context<'_>) -> Action {
        if self.status == TransactionStatus::Idle {
            return self.attempt_failed(ctx);
        }
        self.on_lost(ctx, "ROLLBACK failed, the session is unusable")
    }
}
