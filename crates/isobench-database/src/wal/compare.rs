//! Compares an order of writers that another source claims with that of the write-ahead log.

use std::collections::{BTreeMap, BTreeSet};

use super::transaction::WalTransaction;

/// A row: its table's name, with the schema unless that is `public`
/// ([`WalRelation::name`](super::WalRelation::name)), and the text of its key
/// ([`key_text`](super::key_text)).
pub type WalRow = (String, String);

/// A comparison of two sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalComparison {
    /// The number of rows of which both sources have writers.
    pub rows: usize,
    /// The rows of which the sources don't agree, by table and key.
    pub disagreements: Vec<WalDisagreement>,
    /// Claimed writers that the log doesn't have in any row: subtransactions, which it doesn't
    /// name, or transactions that didn't commit.
    pub unknown: BTreeSet<u32>,
}

/// A row of which the sources don't agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalDisagreement {
    /// The row.
    pub row: WalRow,
    /// What they don't agree about.
    pub kind: WalDisagreementKind,
    /// The writers claimed, in the order claimed; unknown ones included.
    pub claimed: Vec<u32>,
    /// The writers in the log, in the order of their commits.
    pub logged: Vec<u32>,
}

/// What two sources don't agree about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WalDisagreementKind {
    /// The writers' order.
    Order,
    /// A writer is claimed that committed, but didn't write this row according to the log.
    NotLogged,
    /// The log has a writer that isn't claimed. Functions, triggers and cascades may have written
    /// the row unseen.
    NotClaimed,
}

/// Returns the committed writers of each row in the order of their commits, each transaction once.
/// An update that changes a key writes two rows. TRUNCATE isn't a writer of any row.
pub fn writers_by_row(transactions: &[WalTransaction]) -> BTreeMap<WalRow, Vec<u32>> {
    let mut rows: BTreeMap<WalRow, Vec<u32>> = BTreeMap::new();
    for transaction in transactions {
        for write in &transaction.writes {
            let table = write.relation.name();
            for key in write.key_texts() {
                let writers = rows.entry((table.clone(), key)).or_default();
                if writers.last() != Some(&transaction.xid) {
                    writers.push(transaction.xid);
                }
            }
        }
    }
    rows
}

/// Compares claimed orders of committed writers with the log, row by row.
///
/// The log's order is that of the versions: a transaction writes a row that another one has written
/// only after that one's commit is in the log, because until then it waits for the row's lock (for
/// a new row, at the primary key). A claimed number that the log doesn't have may be a
/// subtransaction's, so it may stand for any writer of the row at its place; a disagreement is
/// reported only if no choice of writers makes the orders equal. Numbers must not repeat in the
/// transactions, as they would after 2³² of them.
pub fn compare(claimed: &BTreeMap<WalRow, Vec<u32>>, transactions: &[WalTransaction]) -> WalComparison {
    let logged = writers_by_row(transactions);
    let known: BTreeSet<u32> = transactions.iter().map(|transaction| transaction.xid).collect();
    let mut comparison = WalComparison::default();
    let rows: BTreeSet<&WalRow> = claimed.keys().chain(logged.keys()).collect();
    for row in rows {
        let claimed = claimed.get(row).map_or(&[][..], Vec::as_slice);
        let logged = logged.get(row).map_or(&[][..], Vec::as_slice);
        comparison.rows += usize::from(!claimed.is_empty() && !logged.is_empty());
        comparison.unknown.extend(claimed.iter().filter(|xid| !known.contains(xid)));
        if let Some(kind) = disagreement(claimed, logged, &known) {
            let (claimed, logged) = (claimed.to_vec(), logged.to_vec());
            comparison.disagreements.push(WalDisagreement { row: row.clone(), kind, claimed, logged });
        }
    }
    comparison
}

/// Compares the writers of one row.
fn disagreement(claimed: &[u32], logged: &[u32], known: &BTreeSet<u32>) -> Option<WalDisagreementKind> {
    let places: BTreeMap<u32, usize> = logged.iter().enumerate().map(|(place, xid)| (*xid, place)).collect();
    // The number of the log's writers that have been passed, and of unknown writers since the last
    // known one.
    let (mut passed, mut unknown) = (0, 0);
    let mut unclaimed = false;
    for xid in claimed {
        match places.get(xid) {
            None if known.contains(xid) => return Some(WalDisagreementKind::NotLogged),
            None => unknown += 1,
            // A transaction may be claimed several times in a row: it wrote several versions.
            // Unknown ones between are its own subtransactions.
            Some(place) if *place + 1 == passed => unknown = 0,
            Some(place) if *place < passed => return Some(WalDisagreementKind::Order),
            Some(place) => {
                unclaimed |= place - passed > unknown;
                (passed, unknown) = (place + 1, 0);
            }
        }
    }
    unclaimed |= logged.len() - passed > unknown;
    unclaimed.then_some(WalDisagreementKind::NotClaimed)
}

#[cfg(test)]
mod tests;
