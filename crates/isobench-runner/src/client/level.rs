//! Which level a transaction of the script's really runs at, by its own word.
//!
//! A session's default says little if the script, or a function that it calls, sets a level of its
//! own. So some transactions are asked just before their COMMIT. What the question takes is a round
//! trip of one transaction in 128, at every level alike.

use isobench_pgwire::backend::{self, Message};
use isobench_pgwire::{Frame, TransactionStatus, frontend};

use super::state::{Client, ClientAction, ClientState, Context, LevelQuestion};
use crate::program::Request;

/// One transaction in this number is asked, of each client.
const ONE_IN: u64 = 128;

/// More different answers than this aren't counted.
const MOST: usize = 8;

/// Longer answers are no names of levels.
const LONGEST: usize = 64;

impl Client {
    /// Whether the attempt that starts is sampled.
    pub(super) fn question(&self, ctx: &Context<'_>) -> LevelQuestion {
        let sampled = self.done % ONE_IN == 1 && ctx.job.level_question.is_some();
        if sampled { LevelQuestion::Open } else { LevelQuestion::Settled }
    }

    /// True if the command that comes next ends the block of an attempt that is to be asked.
    pub(super) fn is_to_be_asked(&self, request: &Request) -> bool {
        self.question == LevelQuestion::Open
            && self.pipeline.is_none()
            && self.status == TransactionStatus::InTransaction
            && request.is_commit()
    }

    /// Asks, in the simple protocol, which needs no preparation.
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
    pub(super) fn note_level(ctx: &mut Context<'_>, frame: Frame<'_>) -> Result<(), String> {
        let Message::DataRow(row) = backend::parse(frame).map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let answer = row.columns().next().flatten().map(String::from_utf8_lossy).unwrap_or_default();
        let levels = &mut ctx.recorder.levels;
        if answer.len() <= LONGEST && (levels.len() < MOST || levels.contains_key(&*answer)) {
            *levels.entry(answer.into_owned()).or_default() += 1;
        }
        Ok(())
    }

    /// The answer has come, or an error, which ends the attempt as any other does.
    pub(super) fn on_level(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.failure.is_some() {
            return self.roll_back(ctx);
        }
        self.resume_commands(ctx)
    }
}
