//! The graphs of dependencies within classes of transactions.
//!
//! Of the dependencies only those between transactions of the same class are wanted: of the same
//! piece of the history, then of the same strongly connected component, or of all transactions. The
//! graph is the same as if it had been made of all dependencies and reduced afterwards.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::dependencies::{
    Edges, Graph, Label, MOST_TRANSACTIONS, NONE, Node, OperationRef, SHORT, Sink, packed, unpacked,
};
use super::examine::examine_row;
use super::findings::Findings;
use super::numbers::{take_node, take_number};
use super::parts::{Part, Setting, Source, each_part};
use super::precedence;
use crate::history::History;
use crate::history::binary::encode::number;
use crate::model::Order;

/// A node of a fan rather than a transaction, in what is emitted.
const OF_FAN: u32 = MOST_TRANSACTIONS;

/// The dependencies emitted for some rows.
#[derive(Debug, Default)]
pub(super) struct Emitted {
    edges: Vec<(u32, u32)>,
    rows: Vec<RowEdges>,
}

/// Those of one row.
#[derive(Debug, Clone)]
struct RowEdges {
    /// The position of the row's first operation in the history.
    place: u32,
    edges: Range<usize>,
    /// The number of nodes of its fans.
    fan_nodes: u32,
}

impl Emitted {
    /// All of these together.
    pub(super) fn joined(all: Vec<Emitted>) -> Emitted {
        let mut joined = Emitted::default();
        for Emitted { edges, rows } in all {
            let shift = joined.edges.len();
            joined.edges.extend(edges);
            joined.rows.extend(
                rows.into_iter()
                    .map(|row| RowEdges { edges: row.edges.start + shift..row.edges.end + shift, ..row }),
            );
        }
        joined
    }

    /// Those between these transactions. (Nodes of fans that nothing leads to any more do no harm.)
    pub(super) fn within(&self, is_in: &dyn Fn(Node) -> bool) -> Emitted {
        let mut within = Emitted::default();
        let ends = |node: Node| node & OF_FAN != 0 || is_in(node);
        for row in &self.rows {
            let (start, mut any) = (within.edges.len(), false);
            for (from, edge) in &self.edges[row.edges.clone()] {
                if ends(*from) && ends(unpacked(*edge).0) {
                    any |= from & OF_FAN == 0;
                    within.edges.push((*from, *edge));
                }
            }
            if !any {
                within.edges.truncate(start);
                continue;
            }
            within.rows.push(RowEdges { edges: start..within.edges.len(), ..row.clone() });
        }
        within
    }

    /// Appends them to a message.
    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        number(bytes, self.rows.len() as u64);
        for RowEdges { place, edges, fan_nodes } in &self.rows {
            number(bytes, u64::from(*place));
            number(bytes, u64::from(*fan_nodes));
            put_edges(bytes, &self.edges[edges.clone()]);
        }
    }

    /// Takes what [`Emitted::put`] appended.
    pub(super) fn take(bytes: &mut &[u8]) -> Emitted {
        let mut all = Emitted::default();
        for _ in 0..take_number(bytes) {
            let (place, fan_nodes) = (take_node(bytes), take_node(bytes));
            let start = all.edges.len();
            all.edges.extend(take_edges(bytes));
            all.rows.push(RowEdges { place, edges: start..all.edges.len(), fan_nodes });
        }
        all
    }
}

/// Appends edges to a message, eight bytes each.
pub(super) fn put_edges(bytes: &mut Vec<u8>, edges: &[(Node, u32)]) {
    number(bytes, edges.len() as u64);
    for (from, edge) in edges {
        bytes.extend_from_slice(&from.to_le_bytes());
        bytes.extend_from_slice(&edge.to_le_bytes());
    }
}

/// Takes what [`put_edges`] appended.
pub(super) fn take_edges(bytes: &mut &[u8]) -> Vec<(Node, u32)> {
    let count = usize::try_from(take_number(bytes)).unwrap_or(usize::MAX);
    let (own, rest) = bytes.split_at(count.saturating_mul(8).min(bytes.len()));
    *bytes = rest;
    let half = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    own.chunks_exact(8).map(|edge| (half(&edge[..4]), half(&edge[4..]))).collect()
}

/// The rows to be examined.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which<'r> {
    All,
    /// Those with these numbers, by part.
    Some(&'r FxHashMap<u32, Vec<u32>>),
}

/// Examines rows for the dependencies within classes: `class` has the number of each transaction's
/// class, or [`NONE`].
pub(super) fn emit<S: Source>(
    source: &S,
    setting: Setting<'_>,
    class: &[u32],
    which: Which<'_>,
) -> Result<Vec<Emitted>, S::Error> {
    let parts: Vec<u32> = match which {
        Which::All => source.filled(),
        Which::Some(rows) => {
            let mut parts: Vec<u32> = rows.keys().copied().collect();
            parts.sort_unstable();
            parts
        }
    };
    each_part(source, &parts, Emitted::default, |emitted, number, part| {
        setting.within(part, |context, rows| {
            let own: Vec<u32> = part.nodes.iter().map(|node| class[*node as usize]).collect();
            let wanted: Vec<u32> = match which {
                Which::All => (0..rows.len()).collect(),
                Which::Some(rows) => rows.get(&number).cloned().unwrap_or_default(),
            };
            let mut seen = Vec::new();
            for row in wanted {
                let places = rows.places(row);
                if let Some(first) = places.first().filter(|_| shared(places, &own, &mut seen)) {
                    let place = part.records[first.record as usize];
                    let start = emitted.edges.len();
                    let mut emitter = Emitter { part, class: &own, edges: &mut emitted.edges, fan_nodes: 0 };
                    examine_row(context, rows, row, &mut Findings::default(), &mut emitter);
                    let fan_nodes = emitter.fan_nodes;
                    let edges = start..emitted.edges.len();
                    if !edges.is_empty() {
                        emitted.rows.push(RowEdges { place, edges, fan_nodes });
                    }
                }
            }
        });
    })
}

/// True if two transactions of one class used the row.
fn shared(places: &[OperationRef], class: &[u32], seen: &mut Vec<(u32, Node)>) -> bool {
    seen.clear();
    let classes = places.iter().map(|place| (class[place.transaction as usize], place.transaction));
    seen.extend(classes.filter(|(class, _)| *class != NONE));
    seen.dedup();
    if !seen.is_sorted() {
        seen.sort_unstable();
    }
    seen.windows(2).any(|two| two[0].0 == two[1].0)
}

/// A sink for dependencies within classes.
struct Emitter<'a> {
    part: &'a Part,
    /// The class of each transaction of the part.
    class: &'a [u32],
    edges: &'a mut Vec<(u32, u32)>,
    fan_nodes: u32,
}

/// Targets of many edges. Those of a class are the leaves of a tree whose inner nodes represent
/// ranges.
struct Fan {
    targets: Vec<OperationRef>,
    /// By class, if ranges are long.
    members: FxHashMap<u32, Members>,
}

/// The targets of one class.
#[derive(Default)]
struct Members {
    /// Their positions among all.
    positions: Vec<usize>,
    targets: Vec<Node>,
    /// The number of the tree's node 0; its nodes are numbered from 1 to the number of members.
    tree: Option<u32>,
}

impl Fan {
    /// The targets of a class.
    fn members(&mut self, class: &[u32], own: u32) -> Option<&mut Members> {
        if self.members.is_empty() {
            for (position, target) in self.targets.iter().enumerate() {
                let class = class[target.transaction as usize];
                if class != NONE {
                    let members = self.members.entry(class).or_default();
                    members.positions.push(position);
                    members.targets.push(target.transaction);
                }
            }
        }
        self.members.get_mut(&own)
    }
}

impl Emitter<'_> {
    fn node(&self, local: Node) -> Node {
        self.part.nodes[local as usize]
    }

    fn add(&mut self, from: Node, to: Node, label: Label) {
        let class = self.class[from as usize];
        if from != to && class != NONE && class == self.class[to as usize] {
            let edge = (self.node(from), packed(self.node(to), label));
            self.edges.push(edge);
        }
    }
}

impl Sink for Emitter<'_> {
    type Fan = Fan;

    fn edge(&mut self, from: OperationRef, to: OperationRef, label: Label) {
        self.add(from.transaction, to.transaction, label);
    }

    fn fan(&mut self, targets: Vec<OperationRef>) -> Fan {
        Fan { targets, members: FxHashMap::default() }
    }

    /// The range must be short, or not contain the transaction itself.
    fn link(&mut self, from: OperationRef, fan: &mut Fan, range: Range<usize>, label: Label) {
        let own = self.class[from.transaction as usize];
        if own == NONE {
            return;
        }
        if range.len() <= SHORT {
            let targets = fan.targets[range].iter();
            targets.for_each(|target| self.add(from.transaction, target.transaction, label));
            return;
        }
        let Some(members) = fan.members(self.class, own) else { return };
        let below = |bound: usize| members.positions.partition_point(|position| *position < bound);
        let range = below(range.start)..below(range.end);
        if range.len() <= SHORT {
            members.targets[range].iter().for_each(|target| self.add(from.transaction, *target, label));
            return;
        }
        let size = node_number(members.positions.len());
        let new = members.tree.is_none();
        let tree = *members.tree.get_or_insert(self.fan_nodes);
        let leaf = |leaf: u32| self.part.nodes[members.targets[leaf as usize] as usize];
        let node = |node: u32| node.checked_sub(size).map_or((tree + node) | OF_FAN, leaf);
        if new {
            self.fan_nodes += size;
            for parent in 1..size {
                let children = [2 * parent, 2 * parent + 1];
                self.edges.extend(children.map(|child| (node(parent), packed(node(child), Label::Through))));
            }
        }
        let from = self.part.nodes[from.transaction as usize];
        let (mut low, mut high) = (node_number(range.start) + size, node_number(range.end) + size);
        while low < high {
            if low % 2 == 1 {
                self.edges.push((from, packed(node(low), label)));
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                self.edges.push((from, packed(node(high), label)));
            }
            (low, high) = (low / 2, high / 2);
        }
    }
}

fn node_number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// A graph to be made of dependencies that were emitted.
pub(super) struct Blueprint<'b> {
    pub(super) history: &'b History,
    /// The transactions, by index.
    pub(super) members: Vec<Node>,
    /// The class of each transaction of the history.
    pub(super) class: &'b [u32],
    /// The orders outside the data.
    pub(super) order: Order,
    /// True if only reads prove that a transaction was committed.
    pub(super) doubtful: &'b dyn Fn(Node) -> bool,
}

impl Blueprint<'_> {
    /// The graph of the members with these dependencies: those of rows in the order of the rows, and
    /// further ones. `None` if it would be too large.
    pub(super) fn graph(self, emitted: &[Emitted], further: &[(Node, u32)]) -> Option<Graph> {
        self.graph_with(emitted, further, &|_| Some(()))
    }

    /// The same with further edges and nodes, which `add` makes.
    pub(super) fn graph_with(
        self,
        emitted: &[Emitted],
        further: &[(Node, u32)],
        add: &dyn Fn(&mut Edges) -> Option<()>,
    ) -> Option<Graph> {
        let Blueprint { history, members, class, order, doubtful } = self;
        let count = u32::try_from(members.len()).ok()?;
        let all = members.len() == class.len();
        let mut number = vec![0; if all { 0 } else { class.len() }];
        if !all {
            (0..).zip(&members).for_each(|(new, node)| number[*node as usize] = new);
        }
        let number = |node: Node| number.get(node as usize).copied().unwrap_or(node);
        let mut edges = Edges::new(count);
        let mut rows: Vec<(&Emitted, &RowEdges)> =
            emitted.iter().flat_map(|emitted| emitted.rows.iter().map(move |row| (emitted, row))).collect();
        rows.sort_by_key(|(_, row)| row.place);
        for (emitted, row) in rows {
            let first = edges.fan_nodes(row.fan_nodes)?;
            let new = |node: Node| match node & OF_FAN {
                0 => number(node),
                _ => first + (node & !OF_FAN),
            };
            for (from, edge) in &emitted.edges[row.edges.clone()] {
                let (to, label) = unpacked(*edge);
                edges.push(new(*from), new(to) | label);
            }
        }
        for (from, edge) in further.iter().filter(|(from, _)| class[*from as usize] != NONE) {
            let (to, label) = unpacked(*edge);
            edges.push(number(*from), number(to) | label);
        }
        precedence::add(history, &members, class, order, &mut edges)?;
        add(&mut edges)?;
        Some(Graph::new(edges).with_origin(members, doubtful))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(transaction: Node) -> OperationRef {
        OperationRef { transaction, record: 0 }
    }

    /// All transactions reachable from a node, including those through nodes of fans.
    fn reached(edges: &[(u32, u32)], from: Node) -> Vec<Node> {
        let (mut open, mut found) = (vec![from], Vec::new());
        while let Some(node) = open.pop() {
            for (_, edge) in edges.iter().filter(|(from, _)| *from == node) {
                let (to, _) = unpacked(*edge);
                if to & OF_FAN == 0 { found.push(to) } else { open.push(to) }
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn a_fan_leads_to_exactly_the_members_of_the_class_in_the_range() {
        let size = 75;
        let part = Part { history: History::default(), nodes: (0..=size).collect(), records: Vec::new() };
        for classes in [1, 2, 40] {
            let class: Vec<u32> = (0..=size).map(|node| node % classes).collect();
            for (start, end) in (0..=size).flat_map(|start| (start..=size).map(move |end| (start, end))) {
                let mut edges = Vec::new();
                let mut emitter = Emitter { part: &part, class: &class, edges: &mut edges, fan_nodes: 0 };
                let mut fan = emitter.fan((0..size).map(place).collect());
                let range = start as usize..end as usize;
                emitter.link(place(size), &mut fan, range.clone(), Label::ReadWrite);
                // A second range uses the same tree.
                let mut other = Vec::new();
                let nodes = emitter.fan_nodes;
                let mut again = Emitter { edges: &mut other, fan_nodes: nodes, ..emitter };
                again.link(place(size), &mut fan, range, Label::ReadWrite);
                assert_eq!(again.fan_nodes, nodes);
                let expected: Vec<Node> =
                    (start..end).filter(|node| class[*node as usize] == class[size as usize]).collect();
                assert_eq!(reached(&edges, size), expected);
                assert!(other.iter().all(|edge| edges.contains(edge)));
            }
        }
    }
}
