//! The transaction block of a session, and its uncommitted work.
//!
//! Source: PostgreSQL: Protocol, Multiple Statements in a Simple Query, and Pipelining.

use isobench_pgwire::TransactionStatus;

use super::registers::Written;

/// The state of a session's transaction.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Block {
    state: State,
    work: TransactionWork,
    /// The savepoints with the work done before them, in order.
    savepoints: Vec<(String, TransactionWork)>,
    /// True if the block's work is committed, although the block hasn't ended.
    early: bool,
}

/// The work of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TransactionWork {
    /// Rows inserted.
    pub(super) rows: u64,
    /// The writes to the registers, in order.
    pub(super) writes: Vec<Written>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No transaction.
    #[default]
    None,
    /// A transaction that is committed by the end of the query, or by Sync.
    Implicit,
    /// Between BEGIN and COMMIT.
    Explicit,
    /// Between an error and ROLLBACK.
    Failed,
}

impl Block {
    pub(super) fn status(&self) -> TransactionStatus {
        match self.state {
            State::None | State::Implicit => TransactionStatus::Idle,
            State::Explicit => TransactionStatus::InTransaction,
            State::Failed => TransactionStatus::Failed,
        }
    }

    /// True between BEGIN and COMMIT, before any error.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Explicit
    }

    pub(super) fn is_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// BEGIN; returns true if it opened a block, which includes a preceding implicit transaction.
    pub(super) fn begin(&mut self) -> bool {
        let opens = self.state != State::Explicit;
        self.state = State::Explicit;
        opens
    }

    /// A statement other than transaction control, and the number of rows it inserts.
    pub(super) fn work(&mut self, rows: u64) {
        self.work.rows += rows;
        if self.state == State::None {
            self.state = State::Implicit;
        }
    }

    /// A write to the registers, in addition to [`Block::work`].
    pub(super) fn write(&mut self, written: Written) {
        self.work.writes.push(written);
    }

    /// The writes to the registers so far.
    pub(super) fn writes(&self) -> &[Written] {
        &self.work.writes
    }

    /// COMMIT; returns the work that it commits.
    pub(super) fn commit(&mut self) -> TransactionWork {
        let work = std::mem::take(&mut self.work);
        let failed = self.state == State::Failed;
        *self = Block::default();
        if failed { TransactionWork::default() } else { work }
    }

    /// ROLLBACK.
    pub(super) fn roll_back(&mut self) {
        *self = Block::default();
    }

    /// SAVEPOINT; returns false outside a block.
    pub(super) fn savepoint(&mut self, name: String) -> bool {
        let open = self.is_open();
        if open {
            self.savepoints.push((name, self.work.clone()));
        }
        open
    }

    /// ROLLBACK TO: undoes the work since the savepoint; returns false if it doesn't exist.
    pub(super) fn roll_back_to(&mut self, name: &str) -> bool {
        let Some(place) = self.savepoints.iter().rposition(|(known, _)| known == name) else { return false };
        self.savepoints.truncate(place + 1);
        self.work = self.savepoints[place].1.clone();
        self.state = State::Explicit;
        true
    }

    /// RELEASE: removes a savepoint and those after it; returns false if it doesn't exist.
    pub(super) fn release(&mut self, name: &str) -> bool {
        let place = self.savepoints.iter().rposition(|(known, _)| known == name);
        self.savepoints.truncate(place.unwrap_or(self.savepoints.len()));
        place.is_some()
    }

    /// Commits the work done so far, although the block continues.
    pub(super) fn commit_early(&mut self) -> TransactionWork {
        self.early = true;
        std::mem::take(&mut self.work)
    }

    /// True if the work of an open block is committed.
    pub(super) fn is_committed(&self) -> bool {
        self.early
    }

    /// The end of a simple query, or Sync; returns the work of an implicit transaction, which it
    /// commits.
    pub(super) fn synchronise(&mut self) -> TransactionWork {
        if self.state == State::Implicit { self.commit() } else { TransactionWork::default() }
    }

    /// An error: undoes everything; an explicit block remains until ROLLBACK.
    pub(super) fn fail(&mut self) {
        self.work = TransactionWork::default();
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
        assert_eq!(block.synchronise(), TransactionWork::default());
        block.work(1);
        assert_eq!(block.commit().rows, 2);
        assert_eq!(block, Block::default());
    }

    #[test]
    fn an_error_undoes_the_block_and_keeps_it_open() {
        let mut block = Block::default();
        block.begin();
        block.work(1);
        block.fail();
        assert_eq!(block.status(), TransactionStatus::Failed);
        assert_eq!(block.commit(), TransactionWork::default());
        assert_eq!(block.status(), TransactionStatus::Idle);
    }

    #[test]
    fn a_savepoint_keeps_what_was_before_it() {
        let mut block = Block::default();
        assert!(!block.savepoint("s".to_owned()));
        block.begin();
        block.work(1);
        assert!(block.savepoint("s".to_owned()));
        block.work(1);
        block.fail();
        assert!(block.roll_back_to("s") && !block.roll_back_to("t"));
        block.work(4);
        assert!(block.release("s") && !block.roll_back_to("s"));
        assert_eq!(block.commit().rows, 5);
    }

    #[test]
    fn an_error_outside_of_a_block_leaves_none() {
        let mut block = Block::default();
        block.work(1);
        block.fail();
        assert_eq!(
            (block.status(), block.synchronise()),
            (TransactionStatus::Idle, TransactionWork::default())
        );
    }
}
