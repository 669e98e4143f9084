//! The orders from outside the data: each client's session, and real time.

use rustc_hash::FxHashMap;

use super::dependencies::{Edges, Label, Node};
use crate::history::{History, TransactionOutcome};

/// Adds an edge between a client's consecutive transactions.
///
/// Only acknowledged transactions lead on: the server may commit one of unknown outcome when its
/// client has already started the next one.
pub(super) fn sessions(history: &History, committed: &[bool], edges: &mut Edges) {
    let mut last: FxHashMap<u32, Node> = FxHashMap::default();
    for (node, transaction) in (0..).zip(history.transactions().iter().take(committed.len())) {
        if !committed[node as usize] {
            continue;
        }
        if let Some(&before) = last.get(&transaction.client) {
            edges.add(before, node, Label::Session);
        }
        if transaction.outcome == TransactionOutcome::Committed {
            last.insert(transaction.client, node);
        }
    }
}

/// Adds real time: a transaction that ended before another one started precedes it.
///
/// Linear in the number of transactions: a chain of nodes represents instants. A transaction leads
/// to the first node after its end, and the last node before its start leads to it. A transaction
/// of unknown outcome has no end, since the time of its commit is unknown.
pub(super) fn real_time(history: &History, committed: &[bool], edges: &mut Edges) {
    let counted = || {
        (0_u32..)
            .zip(history.transactions())
            .take(committed.len())
            .filter(|(node, _)| committed[*node as usize])
    };
    let mut begins: Vec<(u64, Node)> = counted().map(|(node, t)| (t.begin, node)).collect();
    let mut ends: Vec<(u64, Node)> = counted()
        .filter(|(_, t)| t.outcome == TransactionOutcome::Committed && t.end < u64::MAX)
        .map(|(node, t)| (t.end.max(t.begin), node))
        .collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let mut ended = 0;
    let mut now: Option<Node> = None;
    for (begin, node) in begins {
        if ended < ends.len() && ends[ended].0 < begin {
            let Some(next) = edges.node() else { return };
            if let Some(now) = now {
                edges.add(now, next, Label::Through);
            }
            while ended < ends.len() && ends[ended].0 < begin {
                edges.add(ends[ended].1, next, Label::RealTime);
                ended += 1;
            }
            now = Some(next);
        }
        if let Some(now) = now {
            edges.add(now, node, Label::Through);
        }
    }
}

/// True if the history has no instants at all.
pub(super) fn without_instants(history: &History) -> bool {
    history.transactions().iter().all(|t| t.begin == 0 && (t.end == 0 || t.end == u64::MAX))
}
