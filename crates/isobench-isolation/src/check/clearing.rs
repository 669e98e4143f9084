//! Transactions that no cycle leads through, whatever they read without showing it.
//!
//! A statement whose rows aren't seen may have read any version that its transaction's snapshot had,
//! of any row of the tables that it may read. So the dependencies that it may have are known, if the
//! snapshot and all committed writes are ([`Visibility`]):
//!
//! - it may precede each writer of such a table whose writes the snapshot didn't have;
//! - it may follow each writer whose writes it had.
//!
//! These *possible* dependencies are added to those that the history proves. The true graph is a part
//! of the result, so a transaction that lies on no cycle of it lies on no cycle at all: it is
//! *cleared*. The others aren't accused of anything.
//!
//! Possible dependencies that follow come before their transaction's snapshot, so alone they make no
//! cycle. It takes a transaction that precedes one that ran at the same time, and for a cycle two in
//! a row (Fekete et al. 2005). Where no such writer wrote what a transaction may have read, it is
//! cleared.

use super::components::{Components, View};
use super::cycles::everything;
use super::dependencies::{Edges, Label, NONE, Node};
use super::emit::{Blueprint, Which, emit};
use super::parts::Source;
use super::report::Cleared;
use super::scope::Scope;
use super::status::CommitStatus;
use crate::history::{History, Operation};
use crate::model::Order;
use crate::observed::{MayRead, Visibility};

impl<S: Source> Scope<'_, S> {
    /// Counts the committed transactions that may have read more than they showed, and those of them
    /// that are cleared. `None` if the transactions weren't asked for their snapshots.
    pub(super) fn cleared(&self) -> Result<Option<Cleared>, S::Error> {
        let provenance = self.source.frame().provenance();
        let Some(visibility) = provenance.and_then(|provenance| provenance.visibility.as_deref()) else {
            return Ok(None);
        };
        let history = self.source.whole()?;
        let committed = |node: &Node| self.setting.status[*node as usize] == CommitStatus::Committed;
        let dark = |node: &Node| {
            let seen = visibility.seen.get(*node as usize);
            seen.is_none_or(|seen| visibility.may_read[seen.may_read as usize] != MayRead::Nothing)
        };
        let transactions = 0..self.source.transactions();
        let dark: Vec<Node> = transactions.clone().filter(committed).filter(dark).collect();
        let mut result = Cleared { dark: dark.len() as u64, cleared: 0, why_not: visibility.why_not.clone() };
        if result.why_not.is_some() || dark.is_empty() {
            return Ok(Some(result));
        }
        let class: Vec<u32> =
            transactions.clone().map(|node| if committed(&node) { 0 } else { NONE }).collect();
        let emitted = emit(self.source, self.setting, &class, Which::All)?;
        let add = |edges: &mut Edges| possible(history, visibility, &dark, &committed, edges);
        let doubtful = |_| false;
        let blueprint = Blueprint {
            history,
            members: transactions.collect(),
            class: &class,
            order: Order::Data,
            doubtful: &doubtful,
        };
        let Some(graph) = blueprint.graph_with(&emitted, &[], &add) else {
            result.why_not = Some("there are too many transactions".to_owned());
            return Ok(Some(result));
        };
        let components = Components::of_view(View::plain(&graph, everything(Order::Data)));
        let mut members = vec![0_u32; components.count()];
        for node in 0..graph.transactions() {
            members[components.of(node) as usize] += 1;
        }
        result.cleared =
            dark.iter().filter(|node| members[components.of(**node) as usize] == 1).count() as u64;
        Ok(Some(result))
    }
}

/// The writers of a table, in the order in which snapshots have them: each with the place of the first
/// that does.
type Writers = Vec<(u32, Node)>;

/// Adds the possible dependencies of these transactions. `None` if there would be too many nodes.
fn possible(
    history: &History,
    visibility: &Visibility,
    dark: &[Node],
    committed: &dyn Fn(&Node) -> bool,
    edges: &mut Edges,
) -> Option<()> {
    let tables = history.tables().len();
    // The last place is for writers of any table.
    let mut writers: Vec<Writers> = vec![Writers::new(); tables + 1];
    for (node, seen) in (0..).zip(&visibility.seen).filter(|(node, _)| committed(node)) {
        let written = history.range(node as usize).filter_map(|record| match history.operation(record) {
            Operation::Write { key, .. } => Some(usize::from(key.table)),
            _ => None,
        });
        let mut written: Vec<usize> = written.collect();
        written.sort_unstable();
        written.dedup();
        let any = (!written.is_empty()).then_some(tables);
        for table in written.into_iter().chain(any) {
            writers.get_mut(table)?.push((seen.appears, node));
        }
    }
    let mut read = vec![false; tables + 1];
    for set in &visibility.may_read {
        for place in places(set, tables) {
            read[place] = true;
        }
    }
    let mut chains: Vec<Option<Chain>> = Vec::with_capacity(tables + 1);
    for (writers, read) in writers.into_iter().zip(read) {
        chains.push(if read { Some(Chain::new(writers, edges)?) } else { None });
    }
    for node in dark {
        let seen = visibility.seen.get(*node as usize)?;
        let snapshot = seen.snapshot?;
        for place in places(&visibility.may_read[seen.may_read as usize], tables) {
            if let Some(chain) = chains[place].as_ref() {
                chain.join(*node, snapshot, edges);
            }
        }
    }
    Some(())
}

fn places(set: &MayRead, tables: usize) -> Vec<usize> {
    match set {
        MayRead::Nothing => Vec::new(),
        MayRead::Tables(tables) => tables.iter().map(|table| usize::from(*table)).collect(),
        MayRead::Anything => vec![tables],
    }
}

/// Nodes through which one edge leads to all writers that a snapshot doesn't have, and one from all
/// that it has: for each writer a node that leads to it and to the next such node, and one that it and
/// the one before lead to.
struct Chain {
    writers: Writers,
    /// The nodes that lead on to this writer and the later ones.
    later: Vec<Node>,
    /// The nodes that this writer and the earlier ones lead to.
    earlier: Vec<Node>,
}

impl Chain {
    fn new(mut writers: Writers, edges: &mut Edges) -> Option<Chain> {
        writers.sort_unstable();
        let (mut later, mut earlier): (Vec<Node>, Vec<Node>) = (Vec::new(), Vec::new());
        for (_, writer) in &writers {
            let (to, from) = (edges.node()?, edges.node()?);
            edges.add(to, *writer, Label::Through);
            edges.add(*writer, from, Label::Through);
            if let (Some(before), Some(known)) = (later.last(), earlier.last()) {
                edges.add(*before, to, Label::Through);
                edges.add(*known, from, Label::Through);
            }
            later.push(to);
            earlier.push(from);
        }
        Some(Chain { writers, later, earlier })
    }

    /// Adds the possible dependencies of a reader with the snapshot of this place.
    fn join(&self, reader: Node, snapshot: u32, edges: &mut Edges) {
        let seen = self.writers.partition_point(|(appears, _)| *appears <= snapshot);
        if let Some(first) = self.later.get(seen) {
            edges.add(reader, *first, Label::Through);
        }
        if let Some(last) = seen.checked_sub(1).and_then(|last| self.earlier.get(last)) {
            edges.add(*last, reader, Label::Through);
        }
    }
}
