//! The snapshot that a transaction read from, asked for in front of its COMMIT.
//!
//! The question goes with the COMMIT: in the simple protocol in the same message, otherwise before it
//! and without a Sync of its own. So it takes no round trip. Its answer comes first, and isn't the
//! script's.

use isobench_pgwire::backend::{self, Message};
use isobench_pgwire::{Frame, TransactionStatus};

use super::rows::Snapshot;
use super::state::{Client, Context};
use crate::program::SqlRequest;

impl Client {
    /// The question to send in front of a request, if that only commits the open block.
    pub(super) fn snapshot_question<'j>(&self, ctx: &Context<'j>, request: &SqlRequest) -> Option<&'j str> {
        let asked = self.rows.is_some()
            && self.pipeline.is_none()
            && self.status == TransactionStatus::InTransaction
            && request.only_commits();
        ctx.job.snapshot_question.as_deref().filter(|_| asked)
    }

    /// Takes a message that answers the question. Returns false if it is the script's.
    ///
    /// # Errors
    /// The message can't be read.
    pub(super) fn on_snapshot(&mut self, frame: Frame<'_>) -> Result<bool, String> {
        if !self.asking_snapshot {
            return Ok(false);
        }
        match frame.tag {
            backend::tag::DATA_ROW => {
                let parsed = backend::parse(frame).map_err(|error| error.to_string())?;
                if let (Message::DataRow(row), Some(rows)) = (parsed, &mut self.rows) {
                    rows.take_snapshot(Snapshot::of(row));
                }
            }
            backend::tag::ROW_DESCRIPTION => {}
            backend::tag::COMMAND_COMPLETE => self.asking_snapshot = false,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
