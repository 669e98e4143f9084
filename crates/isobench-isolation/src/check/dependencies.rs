//! The graph of dependencies between transactions, as compact arrays.
//!
//! Nodes are the transactions of the history, by index, followed by auxiliary nodes that let one
//! edge represent many: the chain of real time (`precedence.rs`) and the trees of a [`Fan`].
//! Deriving dependencies and finding cycles is done elsewhere.

use std::ops::Range;

use super::report::Dependency;

/// A transaction's index, or the number of an auxiliary node, which follow the transactions.
pub(super) type Node = u32;

/// The maximum number of nodes; the label takes the remaining bits of an edge.
pub(super) const MOST_NODES: usize = 1 << NODE_BITS;

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

/// A graph under construction.
#[derive(Debug)]
pub(super) struct Edges {
    list: Vec<(Node, u32)>,
    transactions: u32,
    nodes: u32,
    /// The end of the nodes of fans.
    fans_end: Option<u32>,
    counts: [u64; 8],
}

/// Targets of many edges, as the leaves of a tree whose inner nodes represent ranges. The tree is
/// built when it pays off.
#[derive(Debug)]
pub(super) struct Fan {
    targets: Vec<OperationRef>,
    /// The number of the tree's node 0; its nodes are numbered from 1 to the number of targets.
    tree: Option<u32>,
}

/// Ranges up to this length are linked individually.
const SHORT: usize = 32;

impl Edges {
    pub(super) fn new(transactions: u32, expected: usize) -> Edges {
        Edges {
            list: Vec::with_capacity(expected),
            transactions,
            nodes: transactions,
            fans_end: None,
            counts: [0; 8],
        }
    }

    pub(super) fn add(&mut self, from: Node, to: Node, label: Label) {
        debug_assert!(from < self.nodes && to < self.nodes, "an edge joins nodes that exist");
        self.list.push((from, to | (label as u32) << NODE_BITS));
    }

    /// Creates an auxiliary node that doesn't belong to a fan; `None` if there are too many. After
    /// that, fans can't be created.
    pub(super) fn node(&mut self) -> Option<Node> {
        self.fans_end.get_or_insert(self.nodes);
        self.nodes_in_a_row(1)
    }

    fn nodes_in_a_row(&mut self, count: usize) -> Option<Node> {
        let first = self.nodes;
        let after = (first as usize).checked_add(count).filter(|after| *after <= MOST_NODES)?;
        self.nodes = u32::try_from(after).ok()?;
        Some(first)
    }

    /// The number of dependencies of a kind derived from rows.
    pub(super) fn count(&self, label: Label) -> u64 {
        self.counts[label as usize]
    }

    fn plant(&mut self, fan: &mut Fan) -> Option<u32> {
        if fan.tree.is_none() {
            let size = u32::try_from(fan.targets.len()).ok()?;
            let tree = self.nodes_in_a_row(fan.targets.len())?;
            fan.tree = Some(tree);
            for node in 1..size {
                for child in [2 * node, 2 * node + 1] {
                    let to = fan.node(tree, child);
                    self.add(tree + node, to, Label::Through);
                }
            }
        }
        fan.tree
    }
}

impl Fan {
    /// The graph node for a tree node; leaves are the transactions themselves.
    fn node(&self, tree: u32, node: u32) -> Node {
        let size = self.targets.len();
        (node as usize).checked_sub(size).map_or(tree + node, |leaf| self.targets[leaf].transaction)
    }
}

impl Sink for Edges {
    type Fan = Fan;

    fn edge(&mut self, from: OperationRef, to: OperationRef, label: Label) {
        if from.transaction != to.transaction {
            self.counts[label as usize] += 1;
            self.add(from.transaction, to.transaction, label);
        }
    }

    fn fan(&mut self, targets: Vec<OperationRef>) -> Fan {
        Fan { targets, tree: None }
    }

    /// The range must be short, or not contain the transaction itself.
    fn link(&mut self, from: OperationRef, fan: &mut Fan, range: Range<usize>, label: Label) {
        let tree = if range.len() <= SHORT { None } else { self.plant(fan) };
        let Some(tree) = tree else {
            for target in &fan.targets[range] {
                if target.transaction != from.transaction {
                    self.counts[label as usize] += 1;
                    self.add(from.transaction, target.transaction, label);
                }
            }
            return;
        };
        self.counts[label as usize] += range.len() as u64;
        let size = u32::try_from(fan.targets.len()).unwrap_or(u32::MAX);
        let (mut low, mut high) = (tree_index(range.start, size), tree_index(range.end, size));
        while low < high {
            if low % 2 == 1 {
                self.add(from.transaction, fan.node(tree, low), label);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                self.add(from.transaction, fan.node(tree, high), label);
            }
            (low, high) = (low / 2, high / 2);
        }
    }
}

fn tree_index(target: usize, size: u32) -> u32 {
    u32::try_from(target).unwrap_or(u32::MAX).saturating_add(size)
}

/// The finished graph, with each node's edges stored consecutively.
#[derive(Debug)]
pub(super) struct Graph {
    starts: Vec<usize>,
    edges: Vec<u32>,
    transactions: u32,
    /// The end of the nodes of fans; the nodes of real time follow.
    fans_end: u32,
    /// For a part of another graph, the original number of each node.
    origin: Option<Vec<Node>>,
    /// For each node, true if only reads prove that it was committed; empty if there are none.
    doubtful: Vec<bool>,
}

impl Graph {
    pub(super) fn new(edges: Edges) -> Graph {
        let Edges { list, transactions, nodes, fans_end, .. } = edges;
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

    /// The part of the graph with these nodes, and the edges accepted by `keep`.
    pub(super) fn part(
        &self,
        nodes: Vec<Node>,
        keep: impl Fn(Node, Node) -> bool,
        doubtful: impl Fn(Node) -> bool,
    ) -> Graph {
        let mut number = vec![0; self.nodes() as usize];
        for (new, node) in (0..).zip(&nodes) {
            number[*node as usize] = new;
        }
        let below =
            |bound: u32| u32::try_from(nodes.partition_point(|node| *node < bound)).unwrap_or(u32::MAX);
        let (transactions, fans_end) = (below(self.transactions), below(self.fans_end));
        let (mut starts, mut edges) = (Vec::with_capacity(nodes.len() + 1), Vec::new());
        for &node in &nodes {
            starts.push(edges.len());
            let kept = self.range(node).filter(|edge| keep(node, self.target(*edge)));
            edges.extend(kept.map(|edge| number[self.target(edge) as usize] | self.edges[edge] & !NODE_MASK));
        }
        starts.push(edges.len());
        let mut doubtful: Vec<bool> =
            nodes.iter().map(|node| *node < self.transactions && doubtful(*node)).collect();
        if !doubtful.contains(&true) {
            doubtful.clear();
        }
        Graph { starts, edges, transactions, fans_end, origin: Some(nodes), doubtful }
    }

    /// True if only reads prove that a transaction was committed. (Stored only in parts.)
    pub(super) fn doubtful(&self, node: Node) -> bool {
        self.doubtful.get(node as usize).copied().unwrap_or(false)
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

    fn place(transaction: u32) -> OperationRef {
        OperationRef { transaction, record: 0 }
    }

    /// All transactions reachable from a node, including those through auxiliary nodes.
    fn reached(graph: &Graph, from: Node) -> Vec<Node> {
        let (mut open, mut found) = (vec![from], Vec::new());
        while let Some(node) = open.pop() {
            for edge in graph.range(node) {
                let to = graph.target(edge);
                if graph.is_transaction(to) { found.push(to) } else { open.push(to) }
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn a_fan_leads_to_exactly_the_range() {
        for size in 1..40_u32 {
            for start in 0..=size {
                for end in start..=size {
                    let mut edges = Edges::new(size + 1, 0);
                    let mut fan = edges.fan((0..size).map(place).collect());
                    edges.link(place(size), &mut fan, start as usize..end as usize, Label::ReadWrite);
                    let graph = Graph::new(edges);
                    assert_eq!(reached(&graph, size), (start..end).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn edges_keep_their_labels() {
        let mut edges = Edges::new(3, 0);
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
