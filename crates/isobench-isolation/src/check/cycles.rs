//! Finds cycles in the graph: for each model and order, decides whether a cycle contradicts it, and
//! counts cycles.
//!
//! The decision doesn't depend on the effort: it is made by strongly connected components for all
//! models except consistent view, and by a sweep over the graph for that one. The cycles counted
//! are the shortest ones through each dependency: for each anti-dependency the most severe anomaly
//! that it closes, and of those cycles a shortest one. Cycles with the same dependencies are
//! counted once.

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::components::{Components, View};
use super::context::{MOST_EXPLAINED, brief};
use super::dependencies::{Graph, Label, Labels, Link, Node};
use super::findings::Findings;
use super::pairs::Pairs;
use super::report::{Count, Finding, Witness};
use super::search::{Search, SearchResult, links};
use crate::anomaly::Anomaly;
use crate::history::History;
use crate::model::{Guarantee, Model, Order};

const WRITES: Labels = Labels::of(&[Label::WriteWrite, Label::Through]);
pub(super) const READS: Labels = WRITES.and(Labels::of(&[Label::WriteRead]));
const ROW_ANTI: Labels = Labels::of(&[Label::ReadWrite, Label::Lost]);
const ANTI: Labels = ROW_ANTI.and(Labels::of(&[Label::PredicateReadWrite]));
/// The anti-dependencies in cycles that are counted here. Those of lost updates are counted as lost
/// updates: a further cycle through one of them is its echo. No proof needs them, since a lost update
/// contradicts every model that a cycle with an anti-dependency contradicts.
const COUNTED: Labels = Labels::of(&[Label::ReadWrite, Label::PredicateReadWrite]);

/// The labels of orders other than the data.
fn outside(order: Order) -> Labels {
    match order {
        Order::Data => Labels::of(&[]),
        Order::Session => Labels::of(&[Label::Session]),
        Order::RealTime => Labels::of(&[Label::Session, Label::RealTime]),
    }
}

/// All dependencies, with these orders.
pub(super) fn everything(order: Order) -> Labels {
    READS.and(ANTI).and(outside(order))
}

/// All dependencies except those of predicates, with these orders.
pub(super) fn rows_only(order: Order) -> Labels {
    READS.and(ROW_ANTI).and(outside(order))
}

/// The anomaly of a cycle.
///
/// At read uncommitted a read doesn't prove that the version read was committed, so transactions
/// proved only by reads don't form a G0.
pub(super) fn class(cycle: &[Link], doubtful: &FxHashSet<Node>) -> Anomaly {
    let sure = |link: &Link| !doubtful.contains(&link.from);
    let anti = |link: &Link| link.label.is_anti();
    let predicate = cycle.iter().any(|link| link.label == Label::PredicateReadWrite);
    let several = cycle.iter().filter(|link| anti(link)).count();
    let adjacent = cycle.iter().zip(cycle.iter().cycle().skip(1)).any(|(a, b)| anti(a) && anti(b));
    match (several, adjacent, predicate) {
        (0, ..) if !cycle.iter().any(|link| link.label == Label::WriteRead) && cycle.iter().all(sure) => {
            Anomaly::G0
        }
        (0, ..) => Anomaly::G1c,
        (1, _, false) => Anomaly::GSingle,
        (1, _, true) => Anomaly::GSinglePredicate,
        (_, false, false) => Anomaly::GNonadjacent,
        (_, false, true) => Anomaly::GNonadjacentPredicate,
        (_, true, false) => Anomaly::G2Item,
        (_, true, true) => Anomaly::G2,
    }
}

/// The number of dependencies in the smallest cycle of this kind.
fn least(anomaly: Anomaly) -> usize {
    match anomaly {
        Anomaly::GNonadjacent | Anomaly::GNonadjacentPredicate => 4,
        _ => 2,
    }
}

/// Finds all anomalies that the graph shows with the orders up to `most`. All of its transactions
/// are on cycles, and its edges are within their strongly connected components.
pub(super) fn find(history: &History, graph: &Graph, most: Order, effort: u64, found: &mut Findings) {
    let levels = &levels_of(graph, outside(most));
    let mut pairs = Pairs::new(graph);
    for order in Order::ALL.into_iter().filter(|order| *order <= most) {
        let everything = View::plain(graph, everything(order));
        let components = &Components::of_view(everything);
        if components.cyclic() {
            let taken = vec![false; graph.edge_count()];
            let pairs = &mut pairs;
            CycleSearch {
                history,
                graph,
                order,
                effort,
                found,
                doubtful: graph.doubtful_transactions(),
                everything,
                components,
                levels,
                pairs,
                taken,
            }
            .all();
        }
    }
}

/// The search with one set of orders.
struct CycleSearch<'a> {
    history: &'a History,
    graph: &'a Graph,
    order: Order,
    effort: u64,
    found: &'a mut Findings,
    /// The transactions of which only reads prove that they were committed.
    doubtful: FxHashSet<Node>,
    everything: View<'a>,
    /// The components of the view with all labels.
    components: &'a Components,
    /// For each node, a number that doesn't decrease along dependencies other than
    /// anti-dependencies; for a fan, the lowest number below it.
    levels: &'a [u32],
    pairs: &'a mut Pairs,
    /// For each edge, true if it has been counted with these orders.
    taken: Vec<bool>,
}

/// A way to search for cycles: through each of the edges with certain labels, and back along the
/// edges of a view.
struct Pass<'v> {
    view: View<'v>,
    /// The components of the view; without them, the levels limit the search.
    components: Option<&'v Components>,
    through: Labels,
}

/// The cycles of one anomaly found by a pass.
#[derive(Default)]
struct Tally {
    seen: FxHashSet<u64>,
    anomalous: FxHashSet<Node>,
    smallest: Option<Vec<Link>>,
}

impl CycleSearch<'_> {
    fn all(&mut self) {
        let outside = outside(self.order);
        if self.wanted(Anomaly::G0) {
            self.without_anti(WRITES.and(outside), Labels::of(&[Label::WriteWrite]), Model::ReadUncommitted);
        }
        if self.wanted(Anomaly::G1c) {
            self.without_anti(READS.and(outside), Labels::of(&[Label::WriteRead]), Model::ReadCommitted);
        }
        let nonadjacent = [Anomaly::GNonadjacent, Anomaly::GNonadjacentPredicate];
        let single = [Anomaly::GSingle, Anomaly::GSinglePredicate];
        if nonadjacent.into_iter().chain(single).any(|anomaly| self.wanted(anomaly)) {
            self.without_adjacent(READS.and(COUNTED).and(outside));
        }
        if self.wanted(Anomaly::G2Item) || self.wanted(Anomaly::G2) {
            let view = View::plain(self.graph, READS.and(COUNTED).and(outside));
            self.count(&Pass { view, components: Some(self.components), through: COUNTED });
        }
        let rows = View::plain(self.graph, rows_only(self.order));
        if self.open(Model::RepeatableRead) {
            let components = Components::of_view(rows);
            self.prove(Model::RepeatableRead, rows, &components);
        }
        if self.open(Model::Serializable) {
            self.prove(Model::Serializable, self.everything, self.components);
        }
    }

    /// True if nothing contradicts the model yet.
    fn open(&self, model: Model) -> bool {
        !self.found.contradicts(Guarantee { model, order: self.order })
    }

    /// True if the anomaly has not been found and would add information, which is always the case
    /// with the data alone.
    fn wanted(&self, anomaly: Anomaly) -> bool {
        !self.found.has(anomaly)
            && (self.order == Order::Data
                || Model::ALL.into_iter().any(|model| anomaly.contradicts(model) && self.open(model)))
    }

    /// Counts cycles without anti-dependencies.
    fn without_anti(&mut self, labels: Labels, through: Labels, model: Model) {
        let sure = model == Model::ReadUncommitted;
        let view = View { sure, ..View::plain(self.graph, labels) };
        let components = Components::of_view(view);
        if components.cyclic() {
            self.count(&Pass { view, components: Some(&components), through });
            if self.open(model) {
                self.prove(model, view, &components);
            }
        }
    }

    /// Counts cycles with one anti-dependency, or with several that aren't adjacent.
    fn without_adjacent(&mut self, labels: Labels) {
        let doubled = View::doubled(self.graph, labels);
        let components = Components::of_view(doubled);
        if !components.cyclic() {
            return;
        }
        let reads = READS.and(outside(self.order));
        self.count(&Pass { view: View::plain(self.graph, reads), components: None, through: COUNTED });
        if self.open(Model::ConsistentView) {
            self.prove_single(reads);
        }
        self.count(&Pass { view: doubled, components: Some(&components), through: COUNTED });
        if self.open(Model::SnapshotIsolation) {
            self.prove(Model::SnapshotIsolation, doubled, &components);
        }
    }

    /// Counts the cycles of a pass, by anomaly.
    fn count(&mut self, pass: &Pass<'_>) {
        let mut search = Search::new(pass.view.states());
        let mut tallies: [Tally; Anomaly::ALL.len()] = std::array::from_fn(|_| Tally::default());
        let mut left = self.effort;
        // Edges to fans come last, because usually their cycles have then been found from the other
        // side.
        let direct = self.count_round(pass, false, &mut search, &mut left, &mut tallies);
        let complete = self.count_round(pass, true, &mut search, &mut left, &mut tallies) && direct;
        // Consecutive session steps are searched separately but reported as one, and lost updates
        // aren't counted again.
        let exact = self.order == Order::Data && complete && !self.found.has(Anomaly::LostUpdate);
        let passed_over = self.taken.contains(&true);
        for (anomaly, tally) in Anomaly::ALL.into_iter().zip(tallies) {
            let Some(cycle) = tally.smallest else { continue };
            if !self.wanted(anomaly) {
                continue;
            }
            let first = matches!(anomaly, Anomaly::G0 | Anomaly::G1c | Anomaly::GSingle);
            let smallest = cycle.len() <= least(anomaly) || exact && (first || !passed_over);
            let count = Count { found: tally.seen.len() as u64, complete };
            if self.order == Order::Data {
                self.found.add_anomalous(tally.anomalous);
            }
            self.report(anomaly, count, &cycle, smallest);
        }
    }

    /// Counts cycles through edges that lead to transactions, or to fans. Returns false if the
    /// effort didn't suffice.
    fn count_round(
        &mut self,
        pass: &Pass<'_>,
        fans: bool,
        search: &mut Search,
        left: &mut u64,
        tallies: &mut [Tally],
    ) -> bool {
        let most = (self.effort / 1000).max(10_000);
        let mut complete = true;
        for from in 0..self.graph.transactions() {
            let mut aimed = false;
            for edge in self.graph.range(from) {
                if fans == self.graph.is_transaction(self.graph.target(edge))
                    || !pass.through.contains(self.graph.label(edge))
                    || self.taken[edge]
                    || !self.may_return(pass, from, edge)
                {
                    continue;
                }
                if *left == 0 {
                    return false;
                }
                if !aimed {
                    self.pairs.aim(from);
                    aimed = true;
                }
                let mut steps = most.min(*left);
                *left -= steps;
                let path = self.back(pass, search, from, edge, &mut steps);
                *left += steps;
                match path {
                    SearchResult::None => {}
                    SearchResult::GaveUp => complete = false,
                    SearchResult::Found(edges) => {
                        // Recording a cycle costs more than one step per edge.
                        *left = left.saturating_sub(8 * edges.len() as u64);
                        self.counted(pass, from, edge, edges, tallies);
                    }
                }
            }
        }
        complete
    }

    /// Records a cycle: an edge, and the path back.
    fn counted(&mut self, pass: &Pass<'_>, from: Node, edge: usize, back: Vec<usize>, tallies: &mut [Tally]) {
        let mut edges = back;
        edges.insert(0, edge);
        let walk = links(pass.view, from, &edges);
        let steps = walk.len();
        let cycle = simple(walk);
        if cycle.len() == steps {
            // In a cycle of two edges, neither edge has a smaller cycle.
            let known = if steps == 2 { edges.len() } else { 1 };
            for edge in &edges[..known] {
                self.taken[*edge] = self.graph.label(*edge).is_anti();
            }
        }
        let cycle = joined(self.history, cycle);
        tallies[class(&cycle, &self.doubtful) as usize].add(cycle);
    }

    /// False if no cycle of the pass can contain the edge.
    fn may_return(&self, pass: &Pass<'_>, from: Node, edge: usize) -> bool {
        let to = self.graph.target(edge);
        if !self.components.same(from, to) {
            return false;
        }
        let Some(components) = pass.components else {
            return self.levels[to as usize] <= self.levels[from as usize];
        };
        let start = pass.view.state(from);
        pass.view.follow(start, edge).is_some_and(|to| components.same(start, to))
    }

    /// A path back from the edge's target to its source.
    fn back(
        &self,
        pass: &Pass<'_>,
        search: &mut Search,
        from: Node,
        edge: usize,
        steps: &mut u64,
    ) -> SearchResult {
        let view = pass.view;
        let goal = view.state(from);
        let to = self.graph.target(edge);
        if let Some(components) = pass.components {
            let Some(start) = view.follow(goal, edge) else { return SearchResult::None };
            let range = self.graph.range(to);
            if !self.graph.is_transaction(to) {
                *steps = steps.saturating_sub(32);
                return self.pairs.back_from_fan(view, start).map_or(SearchResult::None, SearchResult::Found);
            }
            let Some(left) = steps.checked_sub(range.len() as u64) else {
                *steps = 0;
                return SearchResult::GaveUp;
            };
            *steps = left;
            if let Some(edges) = self.pairs.back(view, start) {
                return SearchResult::Found(edges);
            }
            return search.path(view, start, |to| to == goal, |state| components.same(state, goal), steps);
        }
        let level = self.levels[from as usize];
        search.path(
            view,
            view.state(to),
            |to| to == goal,
            |state| self.levels[view.node(state) as usize] <= level,
            steps,
        )
    }

    /// Finds one cycle in the components, if any, as a proof that the model is contradicted.
    fn prove(&mut self, model: Model, view: View<'_>, components: &Components) {
        let mut search = Search::new(view.states());
        for state in (0..view.states()).filter(|state| components.on_cycle(*state)) {
            let node = view.node(state);
            if !self.graph.is_transaction(node) {
                continue;
            }
            for edge in self.graph.range(node) {
                let Some(next) = view.follow(state, edge).filter(|next| components.same(state, *next)) else {
                    continue;
                };
                let mut steps = u64::MAX;
                let inside = |at| components.same(at, state);
                if let SearchResult::Found(mut edges) =
                    search.path(view, next, |to| to == state, inside, &mut steps)
                {
                    edges.insert(0, edge);
                    let cycle = joined(self.history, simple(links(view, node, &edges)));
                    self.report(
                        class(&cycle, &self.doubtful),
                        Count { found: 1, complete: false },
                        &cycle,
                        false,
                    );
                    if !self.open(model) {
                        return;
                    }
                }
            }
        }
    }

    /// Finds one cycle with a single anti-dependency, if any, at any cost.
    fn prove_single(&mut self, labels: Labels) {
        let view = View::plain(self.graph, labels);
        let mut search = Search::new(view.states());
        for from in 0..self.graph.transactions() {
            let level = self.levels[from as usize];
            for edge in self.graph.range(from) {
                let to = self.graph.target(edge);
                let may = ANTI.contains(self.graph.label(edge))
                    && self.levels[to as usize] <= level
                    && self.components.same(from, to);
                if !may {
                    continue;
                }
                let mut steps = u64::MAX;
                let below = |state: u32| self.levels[state as usize] <= level;
                if let SearchResult::Found(mut edges) =
                    search.path(view, to, |state| state == from, below, &mut steps)
                {
                    edges.insert(0, edge);
                    let cycle = joined(self.history, links(view, from, &edges));
                    self.report(
                        class(&cycle, &self.doubtful),
                        Count { found: 1, complete: false },
                        &cycle,
                        false,
                    );
                    return;
                }
            }
        }
    }

    fn report(&mut self, anomaly: Anomaly, count: Count, cycle: &[Link], smallest: bool) {
        if self.order == Order::Data {
            self.found.add_anomalous(anomalous(cycle));
        }
        let steps = cycle.iter().map(|link| brief(self.history, *link)).collect();
        let witness = Witness { steps, smallest };
        let links = cycle.iter().copied().enumerate().take(MOST_EXPLAINED).collect();
        self.found.add(Finding { anomaly, order: self.order, count, witness }, links);
    }
}

/// The transactions of a cycle that show the anomaly: those from which an anti-dependency starts,
/// since they read what another one replaced; all of a cycle without any.
pub(super) fn anomalous(cycle: &[Link]) -> impl Iterator<Item = Node> + '_ {
    let any = cycle.iter().any(|link| link.label.is_anti());
    cycle.iter().filter(move |link| link.label.is_anti() || !any).map(|link| link.from)
}

impl Tally {
    fn add(&mut self, cycle: Vec<Link>) {
        use std::hash::BuildHasher as _;
        // A sum doesn't depend on the start of the cycle.
        let hash = cycle.iter().map(|link| FxBuildHasher.hash_one(link)).fold(0, u64::wrapping_add);
        self.seen.insert(hash);
        self.anomalous.extend(anomalous(&cycle));
        if self.smallest.as_ref().is_none_or(|smallest| cycle.len() < smallest.len()) {
            self.smallest = Some(cycle);
        }
    }
}

/// Turns a cycle that may visit transactions repeatedly into a simple one, by cutting out the part
/// between two visits.
///
/// When a closed walk without adjacent anti-dependencies is cut in two, one of the parts has none
/// either.
pub(super) fn simple(cycle: Vec<Link>) -> Vec<Link> {
    simple_by(cycle, |cycle| {
        !cycle.iter().zip(cycle.iter().cycle().skip(1)).any(|(a, b)| a.label.is_anti() && b.label.is_anti())
    })
}

/// The same for walks that are `clean` in another way. If a clean one is cut in two, one of the parts
/// has to be clean.
pub(super) fn simple_by(mut cycle: Vec<Link>, clean: impl Fn(&[Link]) -> bool) -> Vec<Link> {
    'again: loop {
        let mut first: FxHashMap<Node, usize> = FxHashMap::default();
        for (index, link) in cycle.iter().enumerate() {
            if let Some(before) = first.insert(link.from, index) {
                let inner: Vec<Link> = cycle.drain(before..index).collect();
                if clean(&inner) && (inner.len() < cycle.len() || !clean(&cycle)) {
                    cycle = inner;
                }
                continue 'again;
            }
        }
        return cycle;
    }
}

/// Merges consecutive steps of an outside order into one, where the order is transitive.
pub(super) fn joined(history: &History, cycle: Vec<Link>) -> Vec<Link> {
    let outside = |link: &Link| matches!(link.label, Label::Session | Label::RealTime);
    let Some(first) = cycle.iter().position(|link| !outside(link)) else { return cycle };
    let mut joined: Vec<Link> = Vec::new();
    for link in cycle.iter().cycle().skip(first).take(cycle.len()).copied() {
        let Some(last) = joined.last_mut().filter(|last| outside(last) && outside(&link)) else {
            joined.push(link);
            continue;
        };
        let instants = |node: Node| history.transactions()[node as usize];
        if last.label == Label::Session && link.label == Label::Session {
            last.to = link.to;
        } else if instants(last.from).end < instants(link.to).begin {
            *last = Link { from: last.from, to: link.to, label: Label::RealTime };
        } else {
            joined.push(link);
        }
    }
    joined
}

/// For each node, the length of the longest path to it without anti-dependencies, counted in
/// components; for a fan, the lowest number below it.
fn levels_of(graph: &Graph, outside: Labels) -> Vec<u32> {
    let view = View::plain(graph, READS.and(outside));
    let components = Components::of_view(view);
    let mut levels = vec![0_u32; components.count()];
    // Edges lead to components with smaller numbers.
    let mut order: Vec<Node> = (0..graph.nodes()).collect();
    order.sort_unstable_by_key(|node| u32::MAX - components.of(*node));
    // Only anti-dependencies lead to fans, so the edges out of fans aren't other dependencies.
    for node in order.into_iter().filter(|node| !graph.fans().contains(node)) {
        let component = components.of(node);
        let level = levels[component as usize];
        for edge in graph.range(node) {
            if let Some(to) = view.follow(node, edge).map(|to| components.of(to))
                && to != component
            {
                let other = &mut levels[to as usize];
                *other = (*other).max(level + 1);
            }
        }
    }
    let mut levels: Vec<u32> = (0..graph.nodes()).map(|node| levels[components.of(node) as usize]).collect();
    for fan in graph.fans().rev() {
        let below = graph.range(fan).map(|edge| levels[graph.target(edge) as usize]);
        levels[fan as usize] = below.min().unwrap_or(u32::MAX);
    }
    levels
}
