//! Retries that start after a savepoint, in the same transaction block.
//!
//! Only for the policy [`Restart::Savepoint`]. Not here: whether there is a retry at all
//! (`ending.rs`).

use isobench_pgwire::{TransactionStatus, frontend};

use super::state::{Client, ClientAction, ClientState, Context, RetryPoint, SavepointStage};
use crate::program::ErrorClass;
use crate::retry::Restart;

impl Client {
    fn stage(&self) -> SavepointStage {
        self.point.as_ref().map_or(SavepointStage::Absent, |point| point.stage)
    }

    fn set_stage(&mut self, stage: SavepointStage) {
        if let Some(point) = &mut self.point {
            point.stage = stage;
        }
    }

    /// Returns the command at which the attempt starts.
    pub(super) fn first_command(&mut self) -> usize {
        match &mut self.point {
            Some(point) if point.stage == SavepointStage::Returned => {
                point.stage = SavepointStage::Set;
                point.command + 1
            }
            Some(point) => {
                point.stage = SavepointStage::Absent;
                0
            }
            None => 0,
        }
    }

    /// Called when the whole reply to the current command has come without an error. If the command
    /// set the block's first savepoint, saves everything that a retry from it needs.
    pub(super) fn keep_savepoint(&mut self, ctx: &Context<'_>) {
        if ctx.job.spec.retry.restart == Restart::Transaction {
            return;
        }
        let request = ctx.job.program.request(self.script, self.command);
        let Some(name) = request.and_then(|request| request.savepoint.as_ref()) else { return };
        if self.stage() != SavepointStage::Absent || self.status != TransactionStatus::InTransaction {
            return;
        }
        let (command, name) = (self.command, name.clone());
        if let Some(point) = &mut self.point {
            (point.stage, point.command, point.name) = (SavepointStage::Set, command, name);
            point.saved.0.clone_from(&self.variables);
            point.saved.1.clone_from(&self.functions);
        } else {
            let saved = (self.variables.clone(), self.functions.clone());
            self.point = Some(Box::new(RetryPoint { stage: SavepointStage::Set, command, name, saved }));
        }
    }

    /// Called when a statement of this command has succeeded, which may have released the savepoint
    /// or ended its block.
    #[inline]
    pub(super) fn follow_savepoint(&mut self, ctx: &Context<'_>, command: usize) {
        let Some(point) = &mut self.point else { return };
        let Some(request) = ctx.job.program.request(self.script, command) else { return };
        match (point.stage, &request.releases) {
            (SavepointStage::Set, Some(name)) if *name == point.name => {
                point.stage = SavepointStage::Released;
            }
            (SavepointStage::Set | SavepointStage::Released, None)
                if request.is_commit() || request.rolls_back =>
            {
                point.stage = SavepointStage::Absent;
            }
            _ => {}
        }
    }

    /// After an error that will be retried: sends ROLLBACK TO. Returns false if there is no
    /// savepoint.
    pub(super) fn roll_back_to_savepoint(&mut self, ctx: &mut Context<'_>) -> bool {
        let retryable = |class| matches!(class, ErrorClass::Conflict { .. } | ErrorClass::Retried { .. });
        let failure = self.failure.as_ref();
        let retryable = failure.is_some_and(|failure| retryable((ctx.job.classify)(&failure.error)));
        if self.stage() != SavepointStage::Set || !retryable || !self.will_retry(ctx) {
            return false;
        }
        if let Some(point) = &mut self.point {
            frontend::query(ctx.out, format!("ROLLBACK TO SAVEPOINT {}", point.name).as_bytes());
            point.stage = SavepointStage::Returning;
        }
        true
    }

    /// True if ROLLBACK TO has succeeded and the retry is still to happen.
    pub(super) fn is_at_savepoint(&mut self, ctx: &Context<'_>) -> bool {
        let back = self.stage() == SavepointStage::Returning
            && self.status == TransactionStatus::InTransaction
            && self.will_retry(ctx);
        if back {
            self.set_stage(SavepointStage::Returned);
        }
        back
    }

    /// Gives up the savepoint after ROLLBACK TO has failed. Returns false if it wasn't sent.
    pub(super) fn leave_savepoint(&mut self) -> bool {
        let asked = self.stage() == SavepointStage::Returning;
        if asked {
            self.set_stage(SavepointStage::Absent);
        }
        asked
    }

    /// True if the savepoint has been released. RELEASE may have been the commit (CockroachDB), so
    /// the outcome of a later error is unknown, unless it is a conflict, which says that nothing
    /// was committed.
    pub(super) fn has_released(&self) -> bool {
        self.stage() == SavepointStage::Released
    }

    /// Leaves a transaction that is accounted for and will not be retried after all, and its block
    /// if that is open.
    pub(super) fn leave_block(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.set_stage(SavepointStage::Absent);
        if self.status == TransactionStatus::Idle {
            return self.leave_transaction(ctx);
        }
        frontend::query(ctx.out, b"ROLLBACK");
        self.outstanding = 1;
        self.state = ClientState::LeavingBlock;
        ClientAction::Receive
    }

    /// Called when the server has answered the ROLLBACK that leaves the block.
    pub(super) fn on_block_left(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.status == TransactionStatus::Idle {
            return self.leave_transaction(ctx);
        }
        self.on_lost(ctx, "ROLLBACK failed, the session is unusable")
    }
}
