//! The first examination of all rows: what they show by themselves, and where the history can be cut.
//!
//! The transactions are put in an order, that of their ends. A cycle of dependencies that extends
//! over some place in this order must come back over it, with a dependency of a later transaction on
//! an earlier one. So places over which no dependency leads back separate *pieces*, and every cycle
//! is within a piece. That holds whatever the order is; with the order of the ends, nearly all
//! dependencies lead forward, and pieces are about as long as transactions are concurrent.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Pieces;
use super::dependencies::{Label, NONE, Node, OperationRef, SHORT, Sink, packed, unpacked};
use super::examine::examine_row;
use super::findings::Findings;
use super::numbers::take_node;
use super::parts::{Part, Setting, Source, each_part};
use super::rows::Class;
use super::status::CommitStatus;
use crate::history::binary::encode::number;
use crate::history::{History, Operation, Transaction, TransactionOutcome};

/// Dependencies of transactions at most this far from each other are kept, because they may be
/// within a piece.
const NEAR: u32 = 1 << 12;

/// The most of them that a thread keeps. If there are more, rows are examined again.
const MOST_NEAR: usize = 1 << 22;

/// A row with versions in unknown order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Undecided {
    /// The position of the row's first operation in the history.
    pub(super) place: u32,
    pub(super) part: u32,
    /// The row's number in the part.
    pub(super) row: u32,
    /// The number of pairs of versions.
    pub(super) pairs: u64,
}

/// What the examination of all rows shows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Survey {
    pub(super) found: Findings,
    /// The dependencies, by label.
    pub(super) counts: [u64; Label::COUNT],
    /// The number of reads of groups.
    pub(super) predicates: u64,
    pub(super) undecided: Vec<Undecided>,
    /// Dependencies of transactions that are near each other; `None` if there were too many.
    #[serde(skip)]
    near: Option<Vec<(Node, u32)>>,
    /// The rows with dependencies that aren't kept one by one, by part and number.
    #[serde(skip)]
    wide: FxHashMap<u32, Vec<u32>>,
}

/// The order of the transactions, in which the history is cut.
#[derive(Debug)]
pub(super) struct Positions {
    /// The position of each transaction; empty if it is its index.
    of: Vec<u32>,
    /// For each position, the highest one from which a dependency leads back to it.
    reach: Vec<AtomicU32>,
}

impl Positions {
    /// The first `count` transactions, in the order of their ends. One whose end isn't known counts
    /// from its start: all that ended before are before it.
    pub(super) fn new(history: &History, count: u32) -> Positions {
        let transactions = &history.transactions()[..count as usize];
        let key = |transaction: &Transaction| match transaction.end {
            u64::MAX => transaction.begin,
            end => end.max(transaction.begin),
        };
        let mut reach = Vec::new();
        reach.resize_with(transactions.len(), AtomicU32::default);
        if transactions.is_sorted_by_key(key) {
            return Positions { of: Vec::new(), reach };
        }
        let mut order: Vec<u32> = (0..count).collect();
        // A stable sort takes advantage of each worker's order.
        order.sort_by_key(|node| key(&transactions[*node as usize]));
        let mut of = vec![0; order.len()];
        for (position, node) in (0..).zip(order) {
            of[node as usize] = position;
        }
        Positions { of, reach }
    }

    fn of(&self, node: Node) -> u32 {
        self.of.get(node as usize).copied().unwrap_or(node)
    }

    /// Notes a dependency of one position on another.
    fn lead(&self, from: u32, to: u32) {
        if to < from {
            self.reach[to as usize].fetch_max(from, Ordering::Relaxed);
        }
    }

    /// Notes the dependencies of sessions whose transactions are all among these.
    pub(super) fn sessions(&self, history: &History, status: &[CommitStatus], nodes: Range<Node>) {
        let mut last: FxHashMap<u32, u32> = FxHashMap::default();
        let transactions = &history.transactions()[nodes.start as usize..nodes.end as usize];
        for (node, transaction) in nodes.zip(transactions) {
            if status[node as usize] != CommitStatus::Committed {
                continue;
            }
            let position = self.of(node);
            if let Some(before) = last.get(&transaction.client) {
                self.lead(*before, position);
            }
            if transaction.outcome == TransactionOutcome::Committed {
                last.insert(transaction.client, position);
            }
        }
    }

    /// What leads back, as a message.
    pub(super) fn put(&self) -> Vec<u8> {
        let (mut bytes, mut last) = (Vec::new(), 0);
        for (to, reach) in (0_u32..).zip(&self.reach) {
            let from = reach.load(Ordering::Relaxed);
            if from > to {
                number(&mut bytes, u64::from(to - last));
                number(&mut bytes, u64::from(from - to));
                last = to;
            }
        }
        bytes
    }

    /// Adds what leads back by the rows of another machine.
    pub(super) fn add(&self, mut bytes: &[u8]) {
        let mut to = 0;
        while !bytes.is_empty() {
            to += take_node(&mut bytes);
            self.lead(to + take_node(&mut bytes), to);
        }
    }

    /// Cuts the history. Gives each committed transaction the number of its piece, or [`NONE`] if
    /// that has no other; and returns the length of the longest piece.
    pub(super) fn cut(self, status: &[CommitStatus]) -> (Vec<u32>, u32) {
        let mut starts = vec![NONE; status.len()];
        let (mut start, mut reached, mut longest) = (0_u32, 0_u32, 1);
        for (position, reach) in (0_u32..).zip(&self.reach) {
            reached = reached.max(reach.load(Ordering::Relaxed));
            if reached > position {
                continue;
            }
            if position > start {
                starts[start as usize..=position as usize].fill(start);
                longest = longest.max(position + 1 - start);
            }
            start = position + 1;
        }
        drop(self.reach);
        // In place, since each of these has four bytes for every transaction.
        let mut class = if self.of.is_empty() {
            starts
        } else {
            let mut class = self.of;
            for position in &mut class {
                *position = starts[*position as usize];
            }
            class
        };
        for (class, status) in class.iter_mut().zip(status) {
            if *status != CommitStatus::Committed {
                *class = NONE;
            }
        }
        (class, longest)
    }
}

impl Survey {
    /// Examines all rows.
    pub(super) fn of<S: Source>(
        source: &S,
        setting: Setting<'_>,
        positions: &Positions,
    ) -> Result<Survey, S::Error> {
        let parts = source.filled();
        let keep = source.pieces() == Pieces::Usual;
        let start = || Survey { near: keep.then(Vec::new), ..Survey::default() };
        let surveys = each_part(source, &parts, start, |survey, number, part| {
            survey.examine(setting, positions, number, part);
        })?;
        let mut all = start();
        for survey in surveys {
            all.join(survey);
        }
        all.undecided.sort_unstable();
        Ok(all)
    }

    fn examine(&mut self, setting: Setting<'_>, positions: &Positions, number: u32, part: &Part) {
        let models = setting.each.map(|each| each.models(&part.nodes));
        let mut found = Findings::with_promises(models);
        let own: Vec<u32> = part.nodes.iter().map(|node| positions.of(*node)).collect();
        setting.within(part, |context, rows| {
            for row in 0..rows.len() {
                let places = rows.places(row);
                let Some(first) = places.first() else { continue };
                let place = part.records[first.record as usize];
                found.set_place(place);
                let mut sink =
                    Surveyor { survey: self, positions, nodes: &part.nodes, own: &own, wide: false };
                let pairs = examine_row(context, rows, row, &mut found, &mut sink);
                if sink.wide {
                    self.wide.entry(number).or_default().push(row);
                }
                if pairs > 0 {
                    self.undecided.push(Undecided { place, part: number, row, pairs });
                }
                if rows.row(row).class == Class::Group {
                    let committed = places.iter().filter(|place| context.counts(place.transaction));
                    let reads = committed
                        .filter(|place| matches!(context.operation(**place), Operation::ReadGroup { .. }));
                    self.predicates += reads.count() as u64;
                }
            }
        });
        found.renumber(&part.nodes);
        self.found.join(found);
    }

    /// Adds what another machine's rows show; the dependencies that it keeps stay there.
    pub(super) fn join_others(&mut self, other: Survey) {
        let near = self.near.take();
        self.join(other);
        self.near = near;
        self.undecided.sort_unstable();
    }

    fn join(&mut self, other: Survey) {
        self.found.join(other.found);
        self.counts.iter_mut().zip(other.counts).for_each(|(all, more)| *all += more);
        self.predicates += other.predicates;
        self.undecided.extend(other.undecided);
        self.wide.extend(other.wide);
        self.near = match (self.near.take(), other.near) {
            (Some(mut all), Some(more)) if all.is_empty() => {
                all = more;
                Some(all)
            }
            (Some(mut all), Some(more)) => {
                all.extend(more);
                Some(all)
            }
            _ => None,
        };
    }

    /// The dependencies between transactions at most this far from each other; `None` if they weren't
    /// kept.
    pub(super) fn take_near(&mut self, most: u32) -> Option<Near> {
        let edges = self.near.take().filter(|_| most <= NEAR)?;
        Some(Near { edges, wide: std::mem::take(&mut self.wide) })
    }
}

/// Dependencies that were kept.
#[derive(Debug)]
pub(super) struct Near {
    pub(super) edges: Vec<(Node, u32)>,
    /// The rows that have others, by part.
    pub(super) wide: FxHashMap<u32, Vec<u32>>,
}

impl Near {
    /// Those within classes.
    pub(super) fn within(mut self, class: &[u32]) -> Near {
        self.edges.retain(|(from, edge)| {
            let own = class[*from as usize];
            own != NONE && own == class[unpacked(*edge).0 as usize]
        });
        self
    }
}

/// A sink that counts dependencies, and notes those that lead back.
struct Surveyor<'a> {
    survey: &'a mut Survey,
    positions: &'a Positions,
    nodes: &'a [Node],
    /// The position of each transaction of the part.
    own: &'a [u32],
    /// True if there are dependencies that aren't kept.
    wide: bool,
}

impl Surveyor<'_> {
    fn add(&mut self, from: Node, to: Node, label: Label) {
        if from == to {
            return;
        }
        self.survey.counts[label as usize] += 1;
        let (start, end) = (self.own[from as usize], self.own[to as usize]);
        self.positions.lead(start, end);
        if start.abs_diff(end) < NEAR
            && let Some(near) = &mut self.survey.near
        {
            if near.len() < MOST_NEAR {
                near.push((self.nodes[from as usize], packed(self.nodes[to as usize], label)));
            } else {
                self.survey.near = None;
            }
        }
    }
}

/// Targets of dependencies, and for ranges of them the lowest position.
struct Targets {
    targets: Vec<OperationRef>,
    /// A tree of which the leaves are the targets; made when it is needed.
    lowest: Vec<u32>,
}

impl Targets {
    /// The lowest position in a range.
    fn lowest(&mut self, range: Range<usize>, position: impl Fn(Node) -> u32) -> u32 {
        let size = self.targets.len();
        if self.lowest.is_empty() {
            self.lowest = vec![NONE; size];
            self.lowest.extend(self.targets.iter().map(|target| position(target.transaction)));
            for node in (1..size).rev() {
                self.lowest[node] = self.lowest[2 * node].min(self.lowest[2 * node + 1]);
            }
        }
        let (mut low, mut high, mut lowest) = (range.start + size, range.end + size, NONE);
        while low < high {
            if low % 2 == 1 {
                lowest = lowest.min(self.lowest[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                lowest = lowest.min(self.lowest[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        lowest
    }
}

impl Sink for Surveyor<'_> {
    type Fan = Targets;

    fn edge(&mut self, from: OperationRef, to: OperationRef, label: Label) {
        self.add(from.transaction, to.transaction, label);
    }

    fn fan(&mut self, targets: Vec<OperationRef>) -> Targets {
        Targets { targets, lowest: Vec::new() }
    }

    fn link(&mut self, from: OperationRef, fan: &mut Targets, range: Range<usize>, label: Label) {
        if range.len() <= SHORT {
            let targets = fan.targets[range].iter();
            targets.for_each(|target| self.add(from.transaction, target.transaction, label));
            return;
        }
        self.wide = true;
        self.survey.counts[label as usize] += range.len() as u64;
        let position = |node: Node| self.own[node as usize];
        let lowest = fan.lowest(range, position);
        self.positions.lead(position(from.transaction), lowest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::text;

    /// The pieces of transactions that end at these instants, with these dependencies.
    fn pieces(ends: &[u64], dependencies: &[(Node, Node)]) -> (Vec<u32>, u32) {
        let lines =
            ends.iter().zip(0..).map(|(end, client)| format!("T{client} client={client} 1..{end}:\n"));
        let history = text::parse(&lines.collect::<String>()).expect("parses");
        let count = u32::try_from(ends.len()).expect("few");
        let positions = Positions::new(&history, count);
        for (from, to) in dependencies {
            positions.lead(positions.of(*from), positions.of(*to));
        }
        let status = vec![CommitStatus::Committed; ends.len()];
        positions.cut(&status)
    }

    #[test]
    fn the_history_is_cut_where_nothing_leads_back() {
        let alone = |count: usize| (vec![NONE; count], 1);
        assert_eq!(pieces(&[], &[]), alone(0));
        assert_eq!(pieces(&[2, 3, 4], &[]), alone(3));
        assert_eq!(pieces(&[2, 3, 4], &[(0, 1), (0, 2), (1, 2)]), alone(3));
        assert_eq!(pieces(&[2, 3, 4, 5], &[(2, 1)]), (vec![NONE, 1, 1, NONE], 2));
        // Adjacent pieces remain apart, and overlapping ones don't.
        assert_eq!(pieces(&[2, 3, 4, 5], &[(1, 0), (3, 2)]), (vec![0, 0, 2, 2], 2));
        assert_eq!(pieces(&[2, 3, 4, 5], &[(2, 0), (3, 1)]), (vec![0; 4], 4));
        assert_eq!(pieces(&[2, 3, 4, 5], &[(3, 0), (2, 1)]), (vec![0; 4], 4));
        // The order is that of the ends.
        assert_eq!(pieces(&[5, 2, 4, 3], &[(2, 3)]), (vec![NONE, NONE, 1, 1], 2));
        assert_eq!(pieces(&[5, 2, 4, 3], &[(3, 2)]), alone(4));
    }
}
