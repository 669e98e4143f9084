//! A history of transactions at several levels: whether each got what its own level promises, and
//! which lie on cycles that nothing promised to prevent.
//!
//! Cycles that the levels exclude are found in a protected view of the graph (`protection.rs`); the
//! decision is by strongly connected components, and exact. Statements of read committed are in
//! `statements.rs`. What is no cycle counts against the level of the transaction that it happened to,
//! which `findings.rs` does while it is noted.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::components::{Components, View};
use super::context::{brief, name};
use super::cycles::{READS, class, everything, rows_only, simple_by};
use super::dependencies::{Graph, Label, Link, Node};
use super::findings::Findings;
use super::promises::ToEach;
use super::protection::Protection;
use super::report::{Broken, Count, Dependency, Finding, LevelCount, MixedReport, Witness, WitnessStep};
use super::search::{Search, SearchResult, links};
use super::statements::Sights;
use super::status::CommitStatus;
use crate::anomaly::Anomaly;
use crate::history::History;
use crate::level::Level;
use crate::model::{Guarantee, Model, Order};
use crate::promise::Mixing;

/// What a snapshot and the rule of the first updater mean.
const ONE_CUT: &str = "reads one snapshot and overwrites nothing newer";

impl ToEach {
    /// Judges the graph of the transactions on cycles: finds those that the levels exclude, and returns
    /// the transactions of the others.
    pub(super) fn judge(
        &self,
        history: &History,
        graph: &Graph,
        sights: &Sights,
        effort: u64,
        found: &mut Findings,
    ) -> FxHashSet<Node> {
        let strengths = (0..graph.transactions()).map(|node| self.strength(graph.origin(node)));
        let protection = Protection::new(self.promises.mixing, strengths.collect());
        let view = View::protected(graph, everything(Order::Data), &protection);
        let components = Components::of_view(view);
        let mut accused = FxHashSet::default();
        if components.cyclic() {
            let transactions = |state: &u32| graph.is_transaction(view.node(*state));
            let on_cycle = |state: &u32| components.on_cycle(*state);
            let states: Vec<u32> = (0..view.states()).filter(on_cycle).filter(transactions).collect();
            accused.extend(states.iter().map(|state| graph.origin(view.node(*state))));
            self.examples(history, view, &components, &states, effort, found);
        }
        for cycle in sights.cycles(view, &protection, effort) {
            accused.extend(cycle.iter().map(|link| link.from));
            ToEach::report(history, &cycle, true, found);
        }
        for view in self.common_views(graph) {
            let components = Components::of_view(view);
            let on_cycle = (0..view.states()).filter(|state| components.on_cycle(*state));
            let transactions =
                on_cycle.map(|state| view.node(state)).filter(|node| graph.is_transaction(*node));
            accused.extend(transactions.map(|node| graph.origin(node)));
        }
        let plain = View::plain(graph, everything(Order::Data));
        let components = Components::of_view(plain);
        let on_cycle = (0..graph.transactions()).filter(|node| components.on_cycle(*node));
        on_cycle.map(|node| graph.origin(node)).filter(|node| !accused.contains(node)).collect()
    }

    /// The views whose cycles contradict the weakest promise, unless a protected view has them all.
    fn common_views<'g>(&self, graph: &'g Graph) -> Vec<View<'g>> {
        if self.promises.mixing != Mixing::AmongEquals || self.weakest == Model::ReadUncommitted {
            return Vec::new();
        }
        let mut views = vec![View::plain(graph, READS)];
        views.extend(match self.weakest {
            Model::SnapshotIsolation => Some(View::doubled(graph, everything(Order::Data))),
            Model::RepeatableRead => Some(View::plain(graph, rows_only(Order::Data))),
            _ => None,
        });
        views
    }

    /// Finds a shortest cycle through each anti-dependency, as far as the effort suffices; one at
    /// least.
    fn examples(
        &self,
        history: &History,
        view: View<'_>,
        components: &Components,
        states: &[u32],
        effort: u64,
        found: &mut Findings,
    ) {
        let mut search = Search::new(view.states());
        let mut known: FxHashSet<Vec<Link>> = FxHashSet::default();
        let mut left = effort;
        'all: for &state in states {
            let node = view.node(state);
            for edge in view.graph.range(node).filter(|edge| view.graph.label(*edge).is_anti()) {
                let inside = |at: u32| components.same(at, state);
                let Some(next) = view.follow(state, edge).filter(|next| inside(*next)) else { continue };
                if left == 0 {
                    break 'all;
                }
                // The first one is found at any cost.
                let mut steps = if known.is_empty() { u64::MAX } else { left };
                let before = steps;
                let path = search.path(view, next, |to| to == state, inside, &mut steps);
                left = left.saturating_sub(before - steps);
                let SearchResult::Found(mut edges) = path else { continue };
                edges.insert(0, edge);
                let cycle = simple_by(links(view, node, &edges), |cycle| self.excludes(cycle));
                let mut sorted = cycle.clone();
                sorted.sort_unstable();
                if known.insert(sorted) {
                    ToEach::report(history, &cycle, left > 0, found);
                }
            }
        }
    }

    fn report(history: &History, cycle: &[Link], complete: bool, found: &mut Findings) {
        let mut anti = cycle.iter().filter(|link| link.label.is_anti());
        let anomaly = match (anti.next(), anti.next()) {
            (Some(only), None) if only.label == Label::Lost => Anomaly::LostUpdate,
            _ => class(cycle, &FxHashSet::default()),
        };
        let steps = cycle.iter().map(|link| brief(history, *link)).collect();
        let count = Count { found: 1, complete };
        let finding =
            Finding { anomaly, order: Order::Data, count, witness: Witness { steps, smallest: false } };
        found.break_by_cycle(finding, cycle);
    }

    /// The result, from what was found.
    pub(super) fn result(
        &self,
        history: &History,
        status: &[CommitStatus],
        findings: &[Finding],
        (mut broken, accused): (Vec<Finding>, &FxHashSet<usize>),
        permitted: &FxHashSet<Node>,
    ) -> MixedReport {
        let all = |finding: &&Finding| finding.contradicts(Guarantee::of(self.weakest));
        for finding in findings.iter().filter(all) {
            if broken.iter().all(|known| known.anomaly != finding.anomaly) {
                broken.push(finding.clone());
            }
        }
        broken.sort_by_key(|finding| finding.anomaly);
        let committed = |node: &usize| status[*node] == CommitStatus::Committed;
        let permitted = permitted.iter().map(|node| *node as usize);
        let permitted = permitted.filter(|node| !accused.contains(node));
        MixedReport {
            promises: self.promises,
            levels: by_level(history, (0..status.len()).filter(committed)),
            broken: broken.into_iter().map(|finding| self.broken(history, finding)).collect(),
            permitted: by_level(history, permitted),
        }
    }

    /// A broken promise, with the reason why it is one.
    fn broken(&self, history: &History, finding: Finding) -> Broken {
        if finding.contradicts(Guarantee::of(self.weakest)) {
            let why = format!("{} is promised to every transaction of this history", self.weakest.name());
            return Broken { finding, why };
        }
        let steps = &finding.witness.steps;
        let is_anti = |step: &&WitnessStep| step.dependency.is_some_and(Dependency::is_anti);
        let pairs: Vec<[&WitnessStep; 2]> = (0..steps.len())
            .map(|place| [&steps[place.checked_sub(1).unwrap_or(steps.len() - 1)], &steps[place]])
            .filter(|pair| pair.iter().all(is_anti))
            .collect();
        let leaving = || steps.iter().filter(is_anti).map(|step| step.from);
        let all = || steps.iter().flat_map(|step| [step.from, step.to]);
        let (promise, who): (_, Vec<usize>) = match finding.anomaly {
            // Of facts and of updates in unknown order, those that are promised not to lose one.
            Anomaly::LostUpdate if leaving().count() == 1 => (ONE_CUT, leaving().collect()),
            Anomaly::LostUpdate => (ONE_CUT, all().filter(|who| self.loses_none(*who)).collect()),
            _ if leaving().any(|who| self.is_weak(who)) => (
                "sees no less in a statement than in an earlier one",
                leaving().filter(|who| self.is_weak(*who)).collect(),
            ),
            _ if leaving().count() == 0 => ("is promised that this does not happen", all().skip(1).collect()),
            _ if pairs.is_empty() => (ONE_CUT, leaving().collect()),
            _ => {
                let around = pairs.iter().flat_map(|[before, after]| [before.from, before.to, after.to]);
                ("is serializable", around.filter(|who| self.is_serializable(*who)).collect())
            }
        };
        let who: BTreeSet<usize> = who.into_iter().collect();
        let names: Vec<String> = who.into_iter().map(|transaction| name(history, transaction)).collect();
        let why = match names.as_slice() {
            [one] => format!("by the promise of its level, {one} {promise}"),
            [one, other] => format!("by the promise of their levels, each of {one} and {other} {promise}"),
            _ => format!("by the promise of their levels, each of {} {promise}", names.join(", ")),
        };
        Broken { finding, why }
    }
}

/// The number of transactions at each level, the weakest first; those of unknown level come last.
fn by_level(history: &History, nodes: impl Iterator<Item = usize>) -> Vec<LevelCount> {
    let mut counts = [0; Level::ALL.len() + 1];
    for node in nodes {
        let mode = history.transactions()[node].mode;
        counts[mode.map_or(Level::ALL.len(), |mode| mode.level as usize)] += 1;
    }
    let levels = Level::ALL.into_iter().map(Some).chain([None]);
    let all = levels.zip(counts).map(|(level, transactions)| LevelCount { level, transactions });
    all.filter(|count| count.transactions > 0).collect()
}
