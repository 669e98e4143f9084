//! The isolation level at which the script's transactions really run.
//!
//! The session's default says little if the script, or a function that it calls, sets another
//! level. So some transactions are asked for theirs just before COMMIT. The cost is a round trip in
//! one of 128 transactions, the same at every level.

use isobench_pgwire::backend::{self, Message};
use isobench_pgwire::{Frame, TransactionStatus, frontend};

use super::state::{Client, ClientAction, ClientState, Context, LevelQuestion};
use crate::program::SqlRequest;

/// One in this number of a client's transactions is asked.
const ONE_IN: u64 = 128;

/// The most different answers that are counted.
const MOST: usize = 8;

/// The longest answer that can be the name of a level, bytes.
const LONGEST: usize = 64;

impl Client {
    /// Returns whether the attempt that starts is sampled.
    pub(super) fn question(&self, ctx: &Context<'_>) -> LevelQuestion {
        let sampled = self.done % ONE_IN == 1 && ctx.job.level_question.is_some();
        if sampled { LevelQuestion::Open } else { LevelQuestion::Settled }
    }

    /// True if the next command commits the block of a sampled attempt.
    pub(super) fn is_to_be_asked(&self, request: &SqlRequest) -> bool {
        self.question == LevelQuestion::Open
            && self.pipeline.is_none()
            && self.status == TransactionStatus::InTransaction
            && request.is_commit()
    }

    /// Asks in the simple protocol, which needs no prepared statement.
    pub(super) fn ask_level(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.question = LevelQuestion::Settled;
        let question = ctx.job.level_question.as_deref().unwrap_or_default();
        frontend::query(ctx.out, question.as_bytes());
        self.answered = 0;
        self.outstanding += 1;
        self.state = ClientState::AskingLevel;
        ClientAction::Receive
    }

    /// Counts an answer.
    pub(super) fn note_level(&self, ctx: &mut Context<'_>, frame: Frame<'_>) -> Result<(), String> {
        let Message::DataRow(row) = backend::parse(frame).map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let answer = row.columns().next().flatten().map(String::from_utf8_lossy).unwrap_or_default();
        let levels = &mut self.record(ctx).levels;
        if answer.len() <= LONGEST && (levels.len() < MOST || levels.contains_key(&*answer)) {
            *levels.entry(answer.into_owned()).or_default() += 1;
        }
        Ok(())
    }

    /// Called when the answer has come, or an error, which ends the attempt like any other.
    pub(super) fn on_level(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.failure.is_some() {
            return self.roll_back(ctx);
        }
        self.resume_commands(ctx)
    }
}
