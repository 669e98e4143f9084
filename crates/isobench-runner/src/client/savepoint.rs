//! Where a further attempt may begin besides the script's first command: after a savepoint, in the
//! block that is open.
//!
//! Only for the policy [`Restart::Savepoint`]. Not here: whether there is a further attempt
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

    /// An attempt begins: at which command?
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

    /// The whole reply to the present command has come, without an error: keeps what it takes to
    /// begin after it, if it has set the block's first savepoint.
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

    /// A statement of this command has been answered without an error: the savepoint may be gone by
    /// it.
    #[inline]
    pub(super) fn follow_savepoint(&mut self, ctx: &Context<'_>, command: usize) {
        let Some(point) = &mut self.point else { return };
        let Some(request) = ctx.job.program.request(self.script, command) else { return };
        match (point.stage, &request.releases) {
            (SavepointStage::Set, Some(name)) if *name == point.name => {
                point.stage = SavepointStage::Released
            }
            (SavepointStage::Set | SavepointStage::Released, None)
                if request.is_commit() || request.rolls_back =>
            {
                point.stage = SavepointStage::Absent;
            }
            _ => {}
        }
    }

    /// After an error that is a conflict and is to be followed by a further attempt: asks the
    /// server to go back to the savepoint. False if there is none.
    pub(super) fn roll_back_to_savepoint(&mut self, ctx: &mut Context<'_>) -> bool {
        let conflict = self
            .failure
            .as_ref()
            .is_some_and(|failure| matches!((ctx.job.classify)(&failure.error), ErrorClass::Conflict { .. }));
        if self.stage() != SavepointStage::Set || !conflict || !self.will_retry(ctx) {
            return false;
        }
        if let Some(point) = &mut self.point {
            frontend::query(ctx.out, format!("ROLLBACK TO SAVEPOINT {}", point.name).as_bytes());
            point.stage = SavepointStage::Returning;
        }
        true
    }

    /// The server has answered: true if it has gone back, and the next attempt is still to come.
    pub(super) fn is_at_savepoint(&mut self, ctx: &Context<'_>) -> bool {
        let back = self.stage() == SavepointStage::Returning
            && self.status == TransactionStatus::InTransaction
            && self.will_retry(ctx);
        if back {
            self.set_stage(SavepointStage::Returned);
        }
        back
    }

    /// Gives up a savepoint that the server was asked to go back to; false if it wasn't.
    pub(super) fn leave_savepoint(&mut self) -> bool {
        let asked = self.stage() == SavepointStage::Returning;
        if asked {
            self.set_stage(SavepointStage::Absent);
        }
        asked
    }

    /// True if the savepoint is released: that may have been the commit, so what fails later has an
    /// unknown outcome, unless it is a conflict, which says that there was no commit.
    pub(super) fn has_released(&self) -> bool {
        self.stage() == SavepointStage::Released
    }

    /// The next attempt isn't to come after all, and the transaction is accounted for: leaves it,
    /// and its block, if that is open.
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

    /// The server has answered the ROLLBACK that leaves the block.
    pub(super) fn on_left(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.status == TransactionStatus::Idle {
            return self.leave_transaction(ctx);
        }
        self.on_lost(ctx, "ROLLBACK failed, the session is unusable")
    }
}
