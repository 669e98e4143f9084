//! What readers send before each attempt, so that the standby on which they read has caught up.
//!
//! It is a part of the attempt: its time is in the transaction's latency, and an error ends the attempt
//! like one of its first statement.

use isobench_pgwire::{TransactionStatus, frontend};

use super::state::{Client, ClientAction, ClientState, Context};

impl Client {
    /// Sends the statement that comes before a reader's transaction; `None` if there is none.
    pub(super) fn catch_up(&mut self, ctx: &mut Context<'_>) -> Option<ClientAction> {
        let readers = ctx.job.readers.as_ref().filter(|readers| self.id >= readers.first)?;
        // Inside a block there may be a snapshot, which is as old as it is.
        let before = readers.before.as_ref().filter(|_| self.status == TransactionStatus::Idle)?;
        let statement = before()?;
        frontend::query(ctx.out, statement.as_bytes());
        self.answered = 0;
        self.outstanding += 1;
        self.state = ClientState::CatchingUp;
        Some(ClientAction::Receive)
    }

    /// Called when it is answered, or failed.
    pub(super) fn on_caught_up(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.failure.is_some() {
            return self.roll_back(ctx);
        }
        self.run_commands(ctx)
    }
}
