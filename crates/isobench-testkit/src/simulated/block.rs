//! The transaction block of one session, and the rows that wait in it for their commit.
//!
//! Source: PostgreSQL: Protocol, Multiple Statements in a Simple Query, and Pipelining.

use isobench_pgwire::TransactionStatus;

/// The state of a session's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Block {
    state: State,
    /// Rows inserted and not yet committed.
    rows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No transaction.
    #[default]
    None,
    /// A transaction that the end of the query, or Sync, commits.
    Implicit,
    /// Between BEGIN and COMMIT.
    Explicit,
    /// Between an error and ROLLBACK.
    Failed,
}

impl Block {
    pub(super) fn status(self) -> TransactionStatus {
        match self.state {
            State::None | State::Implicit => TransactionStatus::Idle,
            State::Explicit => TransactionStatus::InTransaction,
            State::Failed => TransactionStatus::Failed,
        }
    }

    /// True between BEGIN and COMMIT, before any error.
    pub(super) fn is_open(self) -> bool {
        self.state == State::Explicit
    }

    pub(super) fn is_failed(self) -> bool {
        self.state == State::Failed
    }

    /// BEGIN; true if it opened a block, which takes over an implicit transaction.
    pub(super) fn begin(&mut self) -> bool {
        let opens = self.state != State::Explicit;
        self.state = State::Explicit;
        opens
    }

    /// A statement that isn't about transactions, and the rows it inserts.
    pub(super) fn work(&mut self, rows: u64) {
        self.rows += rows;
        if self.state == State::None {
            self.state = State::Implicit;
        }
    }

    /// COMMIT: the rows that are committed by it.
    pub(super) fn commit(&mut self) -> u64 {
        let rows = if self.state == State::Failed { 0 } else { self.rows };
        *self = Block::default();
        rows
    }

    /// ROLLBACK.
    pub(super) fn roll_back(&mut self) {
        *self = Block::default();
    }

    /// The end of a simple query, or Sync: the rows of an implicit transaction, which is committed by it.
    pub(super) fn synchronise(&mut self) -> u64 {
        if self.state == State::Implicit { self.commit() } else { 0 }
    }

    /// An error: undoes everything; a block that was opened stays until ROLLBACK.
    pub(super) fn fail(&mut self) {
        self.rows = 0;
        self.state = match self.state {
            State::None | State::Implicit => State::None,
            State::Explicit | State::Failed => State::Failed,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_takes_over_what_came_before_it() {
        let mut block = Block::default();
        block.work(1);
        assert!(block.begin());
        assert_eq!(block.synchronise(), 0);
        block.work(1);
        assert_eq!(block.commit(), 2);
        assert_eq!(block, Block::default());
    }

    #[test]
    fn an_error_undoes_the_block_and_keeps_it_open() {
        let mut block = Block::default();
        block.begin();
        block.work(1);
        block.fail();
        assert_eq!(block.status(), TransactionStatus::Failed);
        assert_eq!(block.commit(), 0);
        assert_eq!(block.status(), TransactionStatus::Idle);
    }

    #[test]
    fn an_error_outside_of_a_block_leaves_none() {
        let mut block = Block::default();
        block.work(1);
        block.fail();
        assert_eq!((block.status(), block.synchronise()), (TransactionStatus::Idle, 0));
    }
}
