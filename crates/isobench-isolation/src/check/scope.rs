//! The graphs that a check needs: of pieces of the history, to find strongly connected components;
//! of these, to find cycles; and of all transactions, to infer the order of versions.

use std::cell::OnceCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Pieces;
use super::components::{Components, View, acyclic};
use super::context::Context;
use super::cycles::everything;
use super::dependencies::{Graph, NONE, Node, OperationRef};
use super::emit::{Blueprint, Emitted, Which, emit};
use super::examine::open_row;
use super::findings::Findings;
use super::infer::{Inference, Inferred, OpenRow};
use super::numbers::{put_numbers, take_number, take_numbers};
use super::parts::{MemoryParts, Part, Setting, Source, each_part};
use super::spill::Spill;
use super::status::CommitStatus;
use super::survey::{Positions, Survey};
use crate::history::binary::encode::number;
use crate::model::Order;

/// The most transactions in a graph.
const MOST_IN_GRAPH: usize = 1 << 27;

/// The number of transactions from which pieces are put into several graphs.
const BATCH: usize = 1 << 25;

/// The long steps of a check, which several machines take together.
pub(super) trait Steps: Source {
    /// Examines all rows, and notes in `positions` what leads back.
    fn survey(
        &self,
        setting: Setting<'_>,
        order: Order,
        positions: &Positions,
    ) -> Result<Survey, Self::Error> {
        let survey = Survey::of(self, setting, positions)?;
        if order >= Order::Session {
            positions.sessions(self.frame(), setting.status, 0..self.transactions());
        }
        Ok(survey)
    }

    /// Finds the strongly connected components of the dependencies, piece by piece.
    fn components(
        &self,
        scope: &Scope<'_, Self>,
        survey: &mut Survey,
        positions: Positions,
    ) -> Result<Cyclic, Self::Error> {
        scope.components(survey, positions)
    }

    /// The dependencies within classes, of all rows.
    fn emit(&self, setting: Setting<'_>, class: &[u32]) -> Result<Vec<Emitted>, Self::Error> {
        emit(self, setting, class, Which::All)
    }
}

impl Steps for MemoryParts<'_> {}
impl Steps for Spill {}

/// The history to be checked, and what is known of it.
pub(super) struct Scope<'s, S> {
    pub(super) source: &'s S,
    pub(super) setting: Setting<'s>,
    /// The most orders to consider.
    pub(super) order: Order,
    /// The transactions that only reads prove to be committed.
    pub(super) only_read: &'s FxHashSet<Node>,
}

/// The strongly connected components of the dependencies.
#[derive(Debug, Default)]
pub(super) struct Cyclic {
    /// The component of each transaction on a cycle, and [`NONE`] for the others; empty if there are
    /// no cycles.
    class: Vec<u32>,
    /// The number of transactions in pieces that are too large for a graph.
    pub(super) left: u64,
}

impl Cyclic {
    /// The components as a message.
    pub(super) fn put(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        number(&mut bytes, self.left);
        put_numbers(&mut bytes, &self.class);
        bytes
    }

    /// Adds the components of another machine, of a history of so many transactions.
    pub(super) fn add(&mut self, bytes: &mut &[u8], transactions: usize) {
        self.left += take_number(bytes);
        let more = take_numbers(bytes);
        if more.is_empty() {
            return;
        }
        self.class.resize(transactions, NONE);
        let used = self.class.iter().filter(|class| **class != NONE).max();
        let first = used.map_or(0, |last| last + 1);
        for (node, class) in more {
            self.class[node as usize] = first + class;
        }
    }
}

/// The undecided orders of versions.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) inferred: Inferred,
    /// The number of pairs of versions whose order dependencies leave unknown.
    pub(super) undecided: u64,
    /// Those in rows in which the inference can't look for it.
    pub(super) left: u64,
}

impl<S: Steps> Scope<'_, S> {
    /// Finds the components in all transactions at once.
    pub(super) fn components_at_once(&self) -> Result<Cyclic, S::Error> {
        let committed = |status: &CommitStatus| if *status == CommitStatus::Committed { 0 } else { NONE };
        let class: Vec<u32> = self.setting.status.iter().map(committed).collect();
        self.components_within(&class, &[], |class| emit(self.source, self.setting, class, Which::All))
    }

    /// Finds the components piece by piece.
    pub(super) fn components(&self, survey: &mut Survey, positions: Positions) -> Result<Cyclic, S::Error> {
        let (class, longest) = positions.cut(self.setting.status);
        let near = survey.take_near(longest);
        if longest < 2 {
            return Ok(Cyclic::default());
        }
        let near = near.map(|near| near.within(&class));
        let which = near.as_ref().map_or(Which::All, |near| Which::Some(&near.wide));
        let edges = near.as_ref().map_or(&[][..], |near| &near.edges);
        self.components_within(&class, edges, |class| emit(self.source, self.setting, class, which))
    }

    /// Finds the components of the dependencies within classes: of those that are `known`, and those
    /// that are emitted for classes.
    pub(super) fn components_within(
        &self,
        class: &[u32],
        known: &[(Node, u32)],
        emitted: impl Fn(&[u32]) -> Result<Vec<Emitted>, S::Error>,
    ) -> Result<Cyclic, S::Error> {
        let mut cyclic = Cyclic::default();
        let mut number = 0;
        let size = if self.source.pieces() == Pieces::Smallest { 1 } else { BATCH };
        for members in batches(class, size) {
            if members.len() > MOST_IN_GRAPH {
                cyclic.left += members.len() as u64;
                continue;
            }
            let only: Vec<u32>;
            let class = if members.len() == class.iter().filter(|class| **class != NONE).count() {
                class
            } else {
                let mut those = vec![NONE; class.len()];
                for node in &members {
                    those[*node as usize] = class[*node as usize];
                }
                only = those;
                &only
            };
            let emitted = emitted(class)?;
            let count = members.len() as u64;
            match self.graph(members, class, &emitted, known, &|_| false) {
                None => cyclic.left += count,
                Some(graph) if acyclic(&graph) => {}
                Some(graph) => number = self.note(&graph, number, &mut cyclic.class),
            }
        }
        Ok(cyclic)
    }

    /// Notes the components of a graph, numbered from `first`. Returns the next number.
    fn note(&self, graph: &Graph, first: u32, class: &mut Vec<u32>) -> u32 {
        class.resize(self.setting.status.len(), NONE);
        let components = Components::of_view(View::plain(graph, everything(self.order)));
        for node in (0..graph.transactions()).filter(|node| components.on_cycle(*node)) {
            class[graph.origin(node) as usize] = first + components.of(node);
        }
        first + u32::try_from(components.count()).unwrap_or(0)
    }

    fn graph(
        &self,
        members: Vec<Node>,
        class: &[u32],
        emitted: &[Emitted],
        further: &[(Node, u32)],
        doubtful: &dyn Fn(Node) -> bool,
    ) -> Option<Graph> {
        let (history, order) = (self.source.frame(), self.order);
        Blueprint { history, members, class, order, doubtful }.graph(emitted, further)
    }

    /// The graph of the transactions on cycles, with the dependencies within each component.
    pub(super) fn cyclic_graph(&self, cyclic: &mut Cyclic) -> Result<Option<Graph>, S::Error> {
        let class = std::mem::take(&mut cyclic.class);
        let members: Vec<Node> = with_class(&class);
        if members.is_empty() {
            return Ok(None);
        }
        let emitted = self.source.emit(self.setting, &class)?;
        let count = members.len() as u64;
        let graph = self.graph(members, &class, &emitted, &[], &|node| self.only_read.contains(&node));
        if graph.is_none() {
            cyclic.left += count;
        }
        Ok(graph)
    }

    /// Infers the order of versions where dependencies leave it unknown, which needs the whole
    /// history.
    pub(super) fn infer(
        &self,
        survey: &Survey,
        effort: u64,
        found: &mut Findings,
    ) -> Result<Orders, S::Error> {
        let mut orders = Orders::default();
        if survey.undecided.is_empty() {
            return Ok(orders);
        }
        let history = self.source.whole()?;
        orders.undecided = survey.undecided.iter().fold(0, |sum, row| sum.saturating_add(row.pairs));
        let open = self.open_rows(survey, &mut orders.left)?;
        if open.is_empty() {
            return Ok(orders);
        }
        let status = self.setting.status;
        let committed = |status: &CommitStatus| if *status == CommitStatus::Committed { 0 } else { NONE };
        let class: Vec<u32> = status.iter().map(committed).collect();
        let members: Vec<Node> = (0..self.source.transactions()).collect();
        if members.len() > MOST_IN_GRAPH {
            orders.inferred.cut = 1;
            return Ok(orders);
        }
        let emitted = emit(self.source, self.setting, &class, Which::All)?;
        let Some(graph) = self.graph(members, &class, &emitted, &[], &|_| false) else {
            orders.inferred.cut = 1;
            return Ok(orders);
        };
        drop(emitted);
        let inserts = OnceCell::new();
        let Setting { complete, vouched, assume, .. } = self.setting;
        let context = Context { history, status, complete, vouched, assume, inserts: &inserts };
        let inference = Inference { context, graph: &graph, open, most: self.order, effort };
        orders.inferred = inference.run(found);
        Ok(orders)
    }

    /// The rows in which the inference can look for the order of versions. Adds the pairs of
    /// versions in the others to `left`.
    fn open_rows(&self, survey: &Survey, left: &mut u64) -> Result<Vec<OpenRow>, S::Error> {
        let mut by_part: FxHashMap<u32, Vec<(u32, u32, u64)>> = FxHashMap::default();
        for row in &survey.undecided {
            by_part.entry(row.part).or_default().push((row.place, row.row, row.pairs));
        }
        let parts: Vec<u32> = by_part.keys().copied().collect();
        let open = each_part(
            self.source,
            &parts,
            || (Vec::new(), 0_u64),
            |(all, left), number, part| {
                self.setting.within(part, |context, rows| {
                    for &(place, row, pairs) in by_part.get(&number).into_iter().flatten() {
                        match open_row(context, rows, row) {
                            Some(open) => all.push((place, in_whole(part, open))),
                            None => *left = left.saturating_add(pairs),
                        }
                    }
                });
            },
        )?;
        let mut all = Vec::new();
        for (open, pairs) in open {
            all.extend(open);
            *left = left.saturating_add(pairs);
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, open)| open).collect())
    }
}

/// An open row with the numbers of transactions and operations in the whole history.
fn in_whole(part: &Part, mut open: OpenRow) -> OpenRow {
    let renumber = |place: &mut OperationRef| {
        *place = OperationRef {
            transaction: part.nodes[place.transaction as usize],
            record: part.records[place.record as usize],
        };
    };
    open.writers.iter_mut().for_each(renumber);
    open.readers.iter_mut().for_each(|(_, place)| renumber(place));
    open
}

/// The transactions that have a class.
fn with_class(class: &[u32]) -> Vec<Node> {
    (0..).zip(class).filter(|(_, class)| **class != NONE).map(|(node, _)| node).collect()
}

/// The transactions that have a class, in groups of this size that divide no class. (A class has the
/// number of its first position.)
fn batches(class: &[u32], most: usize) -> Vec<Vec<Node>> {
    let all = with_class(class);
    if all.len() <= most {
        return if all.is_empty() { Vec::new() } else { vec![all] };
    }
    let mut sizes = vec![0_u32; class.len()];
    for node in &all {
        sizes[class[*node as usize] as usize] += 1;
    }
    let (mut number, mut size) = (0_u32, 0_usize);
    for own in &mut sizes {
        if size > 0 && size + *own as usize > most {
            (number, size) = (number + 1, 0);
        }
        size += *own as usize;
        *own = number;
    }
    let mut batches = vec![Vec::new(); number as usize + 1];
    for node in all {
        batches[sizes[class[node as usize] as usize] as usize].push(node);
    }
    batches
}
