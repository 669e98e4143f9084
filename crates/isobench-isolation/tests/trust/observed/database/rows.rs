//! Which versions of rows a transaction sees, and which it may write.

use super::super::defect::Defect;
use super::{Database, Level, State, Sub, Tuple};

/// What a write finds.
pub(super) enum Found {
    Free(usize),
    Gone,
    Wait(usize),
    Failed,
}

impl Database {
    /// True if a subtransaction belongs to this transaction and wasn't rolled back.
    pub(super) fn mine(&self, tx: usize, sub: usize) -> bool {
        self.subs[sub].tx == tx && !self.subs[sub].rolled_back
    }

    /// True if the work of a subtransaction is visible.
    pub(super) fn sees(&self, tx: usize, sub: usize, snapshot: u64) -> bool {
        let Sub { tx: writer, rolled_back, .. } = self.subs[sub];
        let committed = matches!(self.txs[writer].state, State::Committed(at) if at <= snapshot);
        !rolled_back && (writer == tx || committed)
    }

    pub(super) fn visible(&self, tx: usize, tuple: &Tuple, snapshot: u64, select: bool) -> bool {
        let created = tuple.writer.is_none_or(|sub| self.sees(tx, sub, snapshot));
        let gone = tuple.ended_by.is_some_and(|sub| self.sees(tx, sub, snapshot));
        let dirty = |sub: usize| self.txs[self.subs[sub].tx].state == State::Running;
        if select && self.defect == Some(Defect::DirtyRead) && !self.subs.is_empty() {
            let seen = |sub: usize| dirty(sub) && !self.subs[sub].rolled_back;
            let (created_too, gone_too) = (tuple.writer.is_some_and(seen), tuple.ended_by.is_some_and(seen));
            return (created || created_too) && !(gone || gone_too);
        }
        created && !gone
    }

    /// The transaction that holds a row by this subtransaction.
    pub(super) fn holder(&self, tx: usize, sub: Option<usize>) -> Option<usize> {
        let Sub { tx: holder, rolled_back, .. } = self.subs[sub?];
        let running = self.txs[holder].state == State::Running;
        (!rolled_back && holder != tx && running).then_some(holder)
    }

    /// True if a subtransaction's work lasts.
    pub(super) fn lasts(&self, sub: usize) -> bool {
        let Sub { tx, rolled_back, .. } = self.subs[sub];
        !rolled_back && self.txs[tx].state != State::Aborted
    }

    /// The newest version of a row for a write, which begins at a visible version.
    pub(super) fn newest(&mut self, tx: usize, target: usize) -> Found {
        let mut at = target;
        loop {
            let Tuple { ended_by, next, locker, .. } = self.tuples[at];
            let Some(sub) = ended_by.filter(|sub| self.lasts(*sub)) else {
                return self.holder(tx, locker).map_or(Found::Free(at), Found::Wait);
            };
            if let Some(holder) = self.holder(tx, Some(sub)) {
                if !self.errs(Defect::LockNotHeld) {
                    return Found::Wait(holder);
                }
                self.affected.push(tx);
                return Found::Free(at);
            }
            if self.subs[sub].tx == tx {
                return Found::Gone;
            }
            if self.level != Level::ReadCommitted {
                if self.defect != Some(Defect::LastUpdaterWins) {
                    return Found::Failed;
                }
                self.affected.push(tx);
            }
            let Some(next) = next else { return Found::Gone };
            at = next;
        }
    }
}
