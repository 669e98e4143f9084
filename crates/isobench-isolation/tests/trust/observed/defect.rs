//! Defects of the simulated database that are planted, and their effects.

use super::database::{Database, Level, State};
use super::scripts::Style;

/// A defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// A SELECT sees an older snapshot than it should.
    StaleRead,
    /// An UPDATE is answered but not done.
    DroppedWrite,
    /// After a commit, a row's new version and the one before change places.
    SwappedVersions,
    /// A SELECT sees what hasn't been committed.
    DirtyRead,
    /// A SELECT leaves out a row.
    MissedRow,
    /// A row is written although another transaction holds it.
    LockNotHeld,
    /// A transaction overwrites what isn't in its snapshot.
    LastUpdaterWins,
}

impl Database {
    /// True at random, if this is the planted defect.
    pub fn errs(&mut self, defect: Defect) -> bool {
        self.defect == Some(defect) && self.random.u8(0..100) < 30
    }

    /// The snapshot that a SELECT sees.
    pub fn stale(&mut self, tx: usize, snapshot: u64) -> u64 {
        if snapshot == 0 || !self.errs(Defect::StaleRead) {
            return snapshot;
        }
        self.affected.push(tx);
        snapshot - self.random.u64(1..=snapshot.min(3))
    }

    /// Swaps the versions of a row that a transaction has just written and committed.
    pub fn swap(&mut self, tx: usize) {
        if !self.errs(Defect::SwappedVersions) {
            return;
        }
        let mine = |sub: Option<usize>| sub.is_some_and(|sub| self.subs[sub].tx == tx);
        let replaced = (0..self.tuples.len()).find(|index| {
            let tuple = &self.tuples[*index];
            tuple.next.is_some_and(|next| self.tuples[next].next.is_none())
                && mine(tuple.ended_by)
                && !mine(tuple.writer)
        });
        if let Some(index) = replaced
            && let Some(next) = self.tuples[index].next
            && self.tuples[next].ended_by.is_none()
        {
            self.affected.push(tx);
            self.tuples[next].ended_by = self.tuples[index].ended_by.take();
            self.tuples[index].next = None;
        }
    }

    /// True if the defect took effect in a transaction that was committed.
    pub fn shows_defect(&self) -> bool {
        let committed = |tx: usize| matches!(self.txs[tx].state, State::Committed(_));
        if self.defect == Some(Defect::DirtyRead) {
            let undone = |sub: usize| !committed(self.subs[sub].tx);
            let of_undone = |read: &usize| self.tuples[*read].writer.is_some_and(undone);
            return (0..self.txs.len()).any(|tx| committed(tx) && self.txs[tx].reads.iter().any(of_undone));
        }
        self.affected.iter().any(|tx| committed(*tx))
    }
}

/// A defect at the level whose promise it breaks, the scripts that notice it, and the least
/// percentage of the runs in which it took effect that must be accused.
pub struct PlantedCase {
    pub defect: Defect,
    pub level: Level,
    pub style: Style,
    pub least: u64,
    pub runs: u64,
}

const fn case(defect: Defect, level: Level, style: Style, least: u64, runs: u64) -> PlantedCase {
    PlantedCase { defect, level, style, least, runs }
}

pub const CASES: [PlantedCase; 7] = [
    case(Defect::StaleRead, Level::RepeatableRead, Style::OneRow, 40, 600),
    case(Defect::DroppedWrite, Level::RepeatableRead, Style::ReadThenWrite, 38, 600),
    case(Defect::SwappedVersions, Level::RepeatableRead, Style::ReadThenWrite, 38, 600),
    case(Defect::DirtyRead, Level::ReadCommitted, Style::OneRow, 55, 1500),
    case(Defect::MissedRow, Level::Serializable, Style::SearchThenWrite, 10, 600),
    case(Defect::LockNotHeld, Level::RepeatableRead, Style::ReadThenWrite, 55, 600),
    case(Defect::LastUpdaterWins, Level::RepeatableRead, Style::TwoRows, 85, 600),
];
