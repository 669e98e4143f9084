//! A second source: all committed writes in the order of their commits, as the server's log of its
//! own has them (PostgreSQL: logical decoding).
//!
//! Two committed writers of a row are ordered by the row's lock, which each holds until its commit
//! record is written, so the order of the commits is the row's version order. The log also has what
//! functions, triggers and cascades wrote. It is compared with what was proved from the answers
//! ([`super::order`]); where the two differ, nothing is claimed.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::order::Writer;

/// A committed transaction of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedTransaction {
    /// The number of the transaction; of the whole one, not of its subtransactions.
    pub transaction: u32,
    /// Its writes, in order.
    pub writes: Vec<CommittedWrite>,
}

/// A write of a committed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedWrite {
    /// The table.
    pub table: u16,
    /// The key: the column's text, or those of several columns with commas between them, and
    /// backslashes before commas and backslashes in them.
    pub key: String,
    /// What was done with the row.
    pub what: CommittedChange,
}

/// What a committed write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommittedChange {
    /// It inserted the row.
    Inserted,
    /// It updated the row.
    Updated,
    /// It deleted the row.
    Deleted,
}

/// The committed writes of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommittedWrites {
    /// The tables whose writes are all there.
    pub tables: Vec<u16>,
    /// The transactions, in the order of their commits.
    pub transactions: Vec<CommittedTransaction>,
}

/// What the second source tells about rows.
#[derive(Debug, Default)]
pub(super) struct CommitOrder {
    /// The place of a transaction among the writers of a row, by row and attempt.
    pub(super) places: FxHashMap<(u32, u32), u64>,
    /// Rows that weren't seen to be written, by attempt: the writes.
    pub(super) unseen: FxHashMap<u32, Vec<u32>>,
    /// Rows of which both sources tell the order.
    pub(super) agreed: u64,
    /// Rows of which they tell different orders.
    pub(super) differ: u64,
    /// True if there is a second source.
    pub(super) known: bool,
    /// The tables whose writes are all there.
    pub(super) covered: BTreeSet<u16>,
    /// Transactions that aren't of the log.
    pub(super) strangers: u64,
}

impl CommitOrder {
    /// Sorts the writers of a row by their commits, if all of them are known. Returns whether they
    /// are. `proved` has the groups in which another source put them.
    pub(super) fn sort(&mut self, row: u32, writers: &mut [Writer], proved: Option<&[usize]>) -> bool {
        let place = |writer: &Writer| self.places.get(&(row, writer.attempt)).copied();
        if writers.is_empty() || writers.iter().any(|writer| place(writer).is_none()) {
            return false;
        }
        // Each group of the other source comes before the next one.
        let agrees = proved.is_none_or(|starts| {
            starts.windows(2).all(|pair| {
                let last = writers[pair[0]..pair[1]].iter().filter_map(place).max();
                let next = writers[pair[1]..].iter().filter_map(place).min();
                last < next
            })
        });
        if !agrees {
            self.differ += 1;
            return false;
        }
        self.agreed += u64::from(writers.len() > 1);
        writers.sort_by_key(|writer| self.places.get(&(row, writer.attempt)).copied());
        true
    }
}
