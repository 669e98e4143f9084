//! Transactions of read committed of which a statement sees less than an earlier one, in an observed
//! history of several levels.
//!
//! Each statement sees what was committed before it, so a later one sees no less. A transaction whose
//! one statement read what `W` wrote, and whose later one read what `N` replaced without seeing that,
//! breaks this if `N` precedes `W` in a way that the levels of the transactions in between make sure
//! of. Nothing follows from two reads of one statement: PostgreSQL shows it the newest version of rows
//! that it waited for, and the history doesn't distinguish two executions of a statement.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::components::View;
use super::context::Context;
use super::dependencies::{Label, Link, Node, OperationRef, Sink};
use super::examine::examine_row;
use super::findings::Findings;
use super::parts::{Part, Setting, Source, each_part};
use super::protection::Protection;
use super::search::{Search, SearchResult, links};

/// What a statement of a transaction shows of another transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sight {
    /// The position of the operation in the history.
    place: u32,
    statement: u16,
    other: Node,
    label: Label,
}

/// What the statements of each of some transactions show of others: of those whose writes they read,
/// and of those that replaced what they read.
#[derive(Debug, Default)]
pub(super) struct Sights {
    seen: FxHashMap<Node, Vec<Sight>>,
    missed: FxHashMap<Node, Vec<Sight>>,
}

impl Sights {
    /// What statements of these transactions show of others.
    pub(super) fn of<S: Source>(
        source: &S,
        setting: Setting<'_>,
        of: &FxHashSet<Node>,
    ) -> Result<Sights, S::Error> {
        if of.is_empty() || source.frame().provenance().is_none() {
            return Ok(Sights::default());
        }
        let all = each_part(source, &source.filled(), Sights::default, |sights, _, part| {
            if !part.nodes.iter().any(|node| of.contains(node)) {
                return;
            }
            setting.within(part, |context, rows| {
                for row in 0..rows.len() {
                    let mut viewer = Viewer { context, part, of, sights };
                    examine_row(context, rows, row, &mut Findings::default(), &mut viewer);
                }
            });
        })?;
        let mut sights = Sights::default();
        for more in all {
            for (node, list) in more.seen {
                sights.seen.entry(node).or_default().extend(list);
            }
            for (node, list) in more.missed {
                sights.missed.entry(node).or_default().extend(list);
            }
        }
        Ok(sights)
    }

    /// A cycle through each transaction of which a statement saw less than an earlier one.
    pub(super) fn cycles(&self, view: View<'_>, protection: &Protection, effort: u64) -> Vec<Vec<Link>> {
        let nodes: FxHashMap<Node, Node> =
            (0..view.graph.transactions()).map(|node| (view.graph.origin(node), node)).collect();
        let (mut search, mut left) = (Search::new(view.states()), effort);
        let mut transactions: Vec<Node> = self.missed.keys().copied().collect();
        transactions.sort_unstable();
        let mut cycles = Vec::new();
        for transaction in transactions {
            let seen = self.seen.get(&transaction).map_or(&[][..], Vec::as_slice);
            let mut missed = self.missed[&transaction].clone();
            missed.sort_unstable();
            let cycle = missed.iter().find_map(|missed| {
                let before = |seen: &&Sight| seen.place < missed.place && seen.statement != missed.statement;
                let goals: FxHashSet<Node> =
                    seen.iter().filter(before).filter_map(|seen| nodes.get(&seen.other).copied()).collect();
                if goals.is_empty() {
                    return None;
                }
                let start = protection.after_weak(*nodes.get(&missed.other)?);
                let is_goal = |state: u32| goals.contains(&view.node(state));
                let found = search.path(view, start, is_goal, |_| true, &mut left);
                let SearchResult::Found(edges) = found else { return None };
                let mut cycle = links(view, view.node(start), &edges);
                let to = cycle.last().map_or(missed.other, |link| link.to);
                cycle.push(Link { from: to, to: transaction, label: Label::WriteRead });
                cycle.insert(0, Link { from: transaction, to: missed.other, label: missed.label });
                Some(cycle)
            });
            cycles.extend(cycle);
        }
        cycles
    }
}

/// A sink that notes what statements show.
struct Viewer<'a, 'h> {
    context: Context<'h>,
    part: &'a Part,
    of: &'a FxHashSet<Node>,
    sights: &'a mut Sights,
}

impl Sink for Viewer<'_, '_> {
    type Fan = Vec<OperationRef>;

    fn edge(&mut self, from: OperationRef, to: OperationRef, label: Label) {
        let node = |place: OperationRef| self.part.nodes[place.transaction as usize];
        let (reader, other, seen) = match label {
            Label::WriteRead => (to, from, true),
            _ if label.is_anti() => (from, to, false),
            _ => return,
        };
        let (own, other) = (node(reader), node(other));
        let statement = self.context.statement(reader);
        if let Some(statement) = statement.filter(|_| own != other && self.of.contains(&own)) {
            let place = self.part.records[reader.record as usize];
            let list = if seen { &mut self.sights.seen } else { &mut self.sights.missed };
            list.entry(own).or_default().push(Sight { place, statement, other, label });
        }
    }

    fn fan(&mut self, targets: Vec<OperationRef>) -> Vec<OperationRef> {
        targets
    }

    fn link(&mut self, from: OperationRef, fan: &mut Vec<OperationRef>, range: Range<usize>, label: Label) {
        if label.is_anti() {
            fan[range].iter().for_each(|to| self.edge(from, *to, label));
        }
    }
}
