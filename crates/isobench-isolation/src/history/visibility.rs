//! Whose commits each transaction's snapshot had, and what a transaction may have read without showing it.

use std::collections::BTreeSet;

/// The tables that statements may read without showing it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MayRead {
    /// None: all that is read is seen.
    #[default]
    Nothing,
    /// These, by number; not empty.
    Tables(BTreeSet<u16>),
    /// Any.
    Anything,
}

impl MayRead {
    /// Adds a table.
    pub fn add(&mut self, table: u16) {
        match self {
            MayRead::Nothing => *self = MayRead::Tables(BTreeSet::from([table])),
            MayRead::Tables(tables) => drop(tables.insert(table)),
            MayRead::Anything => {}
        }
    }
}

/// What snapshots say of the transactions of a history, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visibility {
    pub(crate) seen: Vec<Seen>,
    /// What transactions may have read unseen, by the number in [`Seen::may_read`].
    pub(crate) may_read: Vec<MayRead>,
    /// The reason why nothing follows from it, if there is one.
    pub(crate) why_not: Option<String>,
}

/// What snapshots say of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The place of its snapshot among all, in their order.
    pub(crate) snapshot: Option<u32>,
    /// The place of the first snapshot that has its writes, if it committed; `u32::MAX` if its number
    /// isn't known.
    pub(crate) appears: u32,
    /// The number of what it may have read unseen.
    pub(crate) may_read: u32,
}
