//! The graph of dependencies between transactions, as compact arrays.
//!
//! Nodes are the transactions of the history, by index, followed by auxiliary nodes that let one
//! edge represent many: the chain of real time (`precedence.rs`) and the trees of a [`Fan`].
//! Deriving dependencies and finding cycles is done elsewhere.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::report::Dependency;

/// A transaction's index, or the number of an auxiliary node, which follow the transactions.
pub(super) type Node = u32;

/// The maximum number of nodes; the label takes the remaining bits of an edge.
pub(super) const MOST_NODES: usize = 1 << NODE_BITS;

/// The maximum number of transactions of a history: half of the nodes, so that others can be
/// distinguished from them.
pub(super) const MOST_TRANSACTIONS: u32 = 1 << (NODE_BITS - 1);

/// The number of a transaction that is in no class.
pub(super) const NONE: u32 = u32::MAX;

const NODE_BITS: u32 = 29;
const NODE_MASK: u32 = (1 << NODE_BITS) - 1;

/// The kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Label {
    WriteWrite,
    WriteRead,
    ReadWrite,
    /// An anti-dependency that belongs to a lost update, and is counted as such.
    Lost,
    PredicateReadWrite,
    Session,
    RealTime,
    /// An edge out of an auxiliary node, with the dependency of the edge that led into it.
    Through,
}

impl Label {
    /// The number of labels.
    pub(super) const COUNT: usize = Label::ALL.len();

    const ALL: [Label; 8] = [
        Label::WriteWrite,
        Label::WriteRead,
        Label::ReadWrite,
        Label::Lost,
        Label::PredicateReadWrite,
        Label::Session,
        Label::RealTime,
        Label::Through,
    ];

    pub(super) const fn is_anti(self) -> bool {
        matches!(self, Label::ReadWrite | Label::Lost | Label::PredicateReadWrite)
    }

    /// The dependency; `None` if the edge continues another one.
    pub(super) const fn dependency(self) -> Option<Dependency> {
        Some(match self {
            Label::WriteWrite => Dependency::WriteWrite,
            Label::WriteRead => Dependency::WriteRead,
            Label::ReadWrite | Label::Lost => Dependency::ReadWrite,
            Label::PredicateReadWrite => Dependency::PredicateReadWrite,
            Label::Session => Dependency::Session,
            Label::RealTime => Dependency::RealTime,
            Label::Through => return None,
        })
    }
}

/// A dependency of a cycle, without the auxiliary nodes in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Link {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) label: Label,
}

/// A set of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Labels(u8);

impl Labels {
    pub(super) const fn of(labels: &[Label]) -> Labels {
        let (mut set, mut next) = (0, 0);
        while next < labels.len() {
            set |= 1 << labels[next] as u8;
            next += 1;
        }
        Labels(set)
    }

    pub(super) const fn and(self, other: Labels) -> Labels {
        Labels(self.0 | other.0)
    }

    pub(super) const fn contains(self, label: Label) -> bool {
        self.0 & (1 << label as u8) != 0
    }
}

/// Receives the dependencies derived from rows. The records are the positions of the operations in
/// the history that prove them.
pub(super) trait Sink {
    /// A set of operations to which many others may point.
    type Fan;

    /// Adds an edge from one transaction to another, unless they are the same.
    fn edge(&mut self, from: OperationRef, to: OperationRef, label: Label);

    /// Creates a set of targets.
    fn fan(&mut self, targets: Vec<OperationRef>) -> Self::Fan;

    /// Adds edges from a transaction to a range of the targets in a set.
    fn link(&mut self, from: OperationRef, fan: &mut Self::Fan, range: Range<usize>, label: Label);
}

/// An operation and its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperationRef {
    pub(super) transaction: Node,
    pub(super) record: u32,
}

/// Ranges up to this length are linked individually.
pub(super) const SHORT: usize = 32;

/// A target and a label in one number.
pub(super) fn packed(to: Node, label: Label) -> u32 {
    debug_assert!((to as usize) < MOST_NODES, "the label has bits of its own");
    to | (label as u32) << NODE_BITS
}

/// The target and the bits of the label of a number that [`packed`] made.
pub(super) fn unpacked(edge: u32) -> (Node, u32) {
    (edge & NODE_MASK, edge & !NODE_MASK)
}

/// The edges of a graph under construction, and its nodes.
#[derive(Debug)]
pub(super) struct Edges {
    list: Vec<(Node, u32)>,
    transactions: u32,
    nodes: u32,
    /// The end of the nodes of fans.
    fans_end: Option<u32>,
}

impl Edges {
    /// No edges between these transactions and the nodes of fans that follow them.
    pub(super) fn new(transactions: u32) -> Edges {
        Edges { list: Vec::new(), transactions, nodes: transactions, fans_end: None }
    }

    pub(super) fn add(&mut self, from: Node, to: Node, label: Label) {
        self.push(from, packed(to, label));
    }

    /// Adds an edge with a packed target.
    pub(super) fn push(&mut self, from: Node, edge: u32) {
        debug_assert!(from.max(edge & NODE_MASK) < self.nodes, "an edge joins nodes that exist");
        self.list.push((from, edge));
    }

    /// Creates nodes for a fan. Returns the first of them; `None` if there are too many.
    pub(super) fn fan_nodes(&mut self, count: u32) -> Option<Node> {
        debug_assert!(self.fans_end.is_none(), "the nodes of fans come first");
        self.nodes_in_a_row(count)
    }

    /// Creates an auxiliary node that doesn't belong to a fan; `None` if there are too many. After
    /// that, fans can't be created.
    pub(super) fn node(&mut self) -> Option<Node> {
        self.fans_end.get_or_insert(self.nodes);
        self.nodes_in_a_row(1)
    }

    fn nodes_in_a_row(&mut self, count: u32) -> Option<Node> {
        let first = self.nodes;
        self.nodes = first.checked_add(count).filter(|after| *after as usize <= MOST_NODES)?;
        Some(first)
    }
}

/// The finished graph, with each node's edges stored consecutively.
#[derive(Debug)]
pub(super) struct Graph {
    starts: Vec<usize>,
    edges: Vec<u32>,
    transactions: u32,
    /// The end of the nodes of fans; the nodes of real time follow.
    fans_end: u32,
    /// The index of each transaction in the history, if it isn't its number.
    origin: Option<Vec<Node>>,
    /// For each node, true if only reads prove that it was committed; empty if there are none.
    doubtful: Vec<bool>,
}

impl Graph {
    pub(super) fn new(edges: Edges) -> Graph {
        let Edges { list, transactions, nodes, fans_end } = edges;
        let mut starts = vec![0; nodes as usize + 2];
        for &(from, _) in &list {
            starts[from as usize + 2] += 1;
        }
        for node in 2..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut packed = vec![0; list.len()];
        for (from, edge) in list {
            let at = &mut starts[from as usize + 1];
            packed[*at] = edge;
            *at += 1;
        }
        starts.pop();
        Graph {
            starts,
            edges: packed,
            transactions,
            fans_end: fans_end.unwrap_or(nodes),
            origin: None,
            doubtful: Vec::new(),
        }
    }

    /// The graph of some transactions of a history, given their indices; `doubtful` tells of which
    /// only reads prove that they were committed.
    pub(super) fn with_origin(self, origin: Vec<Node>, doubtful: impl Fn(Node) -> bool) -> Graph {
        let mut doubtful: Vec<bool> = origin.iter().map(|node| doubtful(*node)).collect();
        if !doubtful.contains(&true) {
            doubtful.clear();
        }
        Graph { origin: Some(origin), doubtful, ..self }
    }

    /// True if only reads prove that a transaction was committed. (Stored only with the origin.)
    pub(super) fn doubtful(&self, node: Node) -> bool {
        self.doubtful.get(node as usize).copied().unwrap_or(false)
    }

    /// The indices in the history of the transactions of which only reads prove that they were
    /// committed.
    pub(super) fn doubtful_transactions(&self) -> FxHashSet<Node> {
        let doubtful = (0..).zip(&self.doubtful).filter(|(_, doubtful)| **doubtful);
        doubtful.map(|(node, _)| self.origin(node)).collect()
    }

    /// The index of a transaction in the history.
    pub(super) fn origin(&self, node: Node) -> Node {
        self.origin.as_ref().map_or(node, |origin| origin[node as usize])
    }

    pub(super) fn nodes(&self) -> u32 {
        u32::try_from(self.starts.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn edge_count(&self) -> usize {
        self.edges.len()
    }

    pub(super) fn is_transaction(&self, node: Node) -> bool {
        node < self.transactions
    }

    /// The nodes of fans.
    pub(super) fn fans(&self) -> Range<Node> {
        self.transactions..self.fans_end
    }

    pub(super) fn transactions(&self) -> u32 {
        self.transactions
    }

    /// The positions of a node's edges.
    pub(super) fn range(&self, node: Node) -> Range<usize> {
        self.starts[node as usize]..self.starts[node as usize + 1]
    }

    pub(super) fn target(&self, edge: usize) -> Node {
        self.edges[edge] & NODE_MASK
    }

    pub(super) fn label(&self, edge: usize) -> Label {
        Label::ALL[(self.edges[edge] >> NODE_BITS) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_keep_their_labels() {
        let mut edges = Edges::new(3);
        for (index, label) in Label::ALL.into_iter().enumerate() {
            edges.add(2 - u32::try_from(index).unwrap() % 2, 0, label);
        }
        let graph = Graph::new(edges);
        assert_eq!(graph.edge_count(), 8);
        let labels = graph.range(1).chain(graph.range(2)).map(|edge| graph.label(edge));
        assert_eq!(labels.filter(|label| label.is_anti()).count(), 3);
        assert!(graph.range(0).is_empty());
    }
}
