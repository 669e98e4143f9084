//! The orders from outside the data: each client's session, and real time.

use rustc_hash::FxHashMap;

use super::dependencies::{Edges, Label, NONE, Node};
use crate::history::{History, Transaction, TransactionOutcome};
use crate::model::Order;

/// Adds the orders outside the data among the transactions of each class: `members` are their
/// indices in the history, and their positions the nodes. `None` if there are too many nodes.
pub(super) fn add(
    history: &History,
    members: &[Node],
    class: &[u32],
    order: Order,
    edges: &mut Edges,
) -> Option<()> {
    let class = |node: &Node| class[members[*node as usize] as usize];
    let mut nodes: Vec<Node> = (0..).take(members.len()).filter(|node| class(node) != NONE).collect();
    if !nodes.is_sorted_by_key(class) {
        nodes.sort_by_key(class);
    }
    let transaction = |node: Node| &history.transactions()[members[node as usize] as usize];
    for nodes in nodes.chunk_by(|a, b| class(a) == class(b)) {
        if order >= Order::Session {
            sessions(nodes, transaction, edges);
        }
    }
    for nodes in nodes.chunk_by(|a, b| class(a) == class(b)) {
        if order >= Order::RealTime {
            real_time(nodes, transaction, edges)?;
        }
    }
    Some(())
}

/// Adds an edge between a client's consecutive transactions.
///
/// Only acknowledged transactions lead on: the server may commit one of unknown outcome when its
/// client has already started the next one.
fn sessions<'h>(nodes: &[Node], transaction: impl Fn(Node) -> &'h Transaction, edges: &mut Edges) {
    let mut last: FxHashMap<u32, Node> = FxHashMap::default();
    for &node in nodes {
        let Transaction { client, outcome, .. } = *transaction(node);
        if let Some(&before) = last.get(&client) {
            edges.add(before, node, Label::Session);
        }
        if outcome == TransactionOutcome::Committed {
            last.insert(client, node);
        }
    }
}

/// Adds real time: a transaction that ended before another one started precedes it.
///
/// Linear in the number of transactions: a chain of nodes represents instants. A transaction leads
/// to the first node after its end, and the last node before its start leads to it. A transaction
/// of unknown outcome has no end, since the time of its commit is unknown.
fn real_time<'h>(
    nodes: &[Node],
    transaction: impl Fn(Node) -> &'h Transaction,
    edges: &mut Edges,
) -> Option<()> {
    let mut begins: Vec<(u64, Node)> = nodes.iter().map(|node| (transaction(*node).begin, *node)).collect();
    let ended = |node: &&Node| {
        let Transaction { outcome, end, .. } = *transaction(**node);
        outcome == TransactionOutcome::Committed && end < u64::MAX
    };
    let end = |node: &Node| {
        let transaction = transaction(*node);
        (transaction.end.max(transaction.begin), *node)
    };
    let mut ends: Vec<(u64, Node)> = nodes.iter().filter(ended).map(end).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let mut ended = 0;
    let mut now: Option<Node> = None;
    for (begin, node) in begins {
        if ended < ends.len() && ends[ended].0 < begin {
            let next = edges.node()?;
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
    Some(())
}

/// True if the history has no instants at all.
pub(super) fn without_instants(history: &History) -> bool {
    history.transactions().iter().all(|t| t.begin == 0 && (t.end == 0 || t.end == u64::MAX))
}
