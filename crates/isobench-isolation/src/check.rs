//! Checks a history: dependencies, anomalies with witnesses, and the verdict.
//!
//! [`Options`] go in, a [`Report`] comes out; `check/…` has the parts.

mod components;
mod context;
mod cycles;
mod dependencies;
mod doubt;
mod examine;
mod explain;
mod findings;
pub mod graph;
mod grouped;
mod groups;
mod infer;
mod lists;
mod pairs;
mod precedence;
mod registers;
mod render;
mod report;
mod rows;
mod search;
mod status;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;

use crate::history::{History, Operation};
use crate::model::{Guarantee, Model, Order};

use context::Context;
use cycles::Callbacks;
use dependencies::{Edges, Graph, Label};
pub(crate) use doubt::Doubts;
use examine::{examine_row, open_row};
use findings::Findings;
use infer::Inference;
pub(crate) use report::{kept, nothing_checked};
use rows::Rows;
use status::{CommitStatus, CommitStatuses};

pub use doubt::{Doubt, DoubtKind};
pub use render::{render, summary};
pub use report::{Blind, Count, Dependency, Examined, Finding, Report, Verdict, Witness, WitnessStep};

/// The options of a check.
#[derive(Debug, Clone)]
pub struct Options {
    /// The guarantee that was promised; the verdict says whether it was kept.
    pub promised: Option<Guarantee>,
    /// The orders to search for contradictions; [`Order::RealTime`] includes all of them.
    pub order: Order,
    /// True if the history is known to contain every write as it happened, so that a read that no
    /// write explains is an anomaly of the database. Otherwise such a read is a doubt, which
    /// withholds the verdict, and a value read before the first write of its row is taken for the
    /// initial one.
    pub vouched: bool,
    /// The number of search steps per anomaly for counting cycles, and per guarantee for inferring
    /// the order of versions; the report says if they didn't suffice.
    pub effort: u64,
}

impl Default for Options {
    /// All orders, no promise, and a history that is vouched for.
    fn default() -> Options {
        Options { promised: None, order: Order::RealTime, vouched: true, effort: 100_000_000 }
    }
}

/// Checks a history.
///
/// Time and memory are linear in the history, except for counting cycles, and for inferring the
/// order of versions without counters, which [`Options::effort`] limits. The check covers the first 2^27 transactions with at most 2^32 operations; the others
/// are counted as dropped.
pub fn check(history: &History, options: &Options) -> Report {
    let (mut report, mut doubts, suspicions) = examine(history, options, true);
    if report.verdict.kept == Some(false) && doubts.is_empty() {
        doubts = suspicions;
        doubts.join(rests_on_assumptions(history, options, &report).into_iter().collect());
    }
    doubts.join(nothing_checked(&report.examined).into_iter().collect());
    report.verdict = report.verdict.withheld(doubts.into_vec());
    report
}

/// The doubt about a contradiction that vanishes if unwritten values aren't taken for initial ones.
fn rests_on_assumptions(history: &History, options: &Options, report: &Report) -> Option<Doubt> {
    let assumed = report.blind.iter().find_map(|blind| match blind {
        Blind::AssumedInitial { rows, example } => Some((*rows, example)),
        _ => None,
    });
    let (rows, example) = assumed?;
    let (without, ..) = examine(history, options, false);
    let rests = without.verdict.kept != Some(false);
    rests.then(|| Doubt { kind: DoubtKind::Assumed, count: rows, example: example.clone() })
}

/// Examines a history. Returns the report, with its verdict not yet withheld; the doubts that
/// withhold it; and the doubts that withhold it if it is negative. With `assume`, unwritten values
/// are taken for initial ones.
fn examine(history: &History, options: &Options, assume: bool) -> (Report, Doubts, Doubts) {
    let transactions = within_limits(history);
    let rows = Rows::new(history, transactions);
    let left = history.transactions().len() as u64 - u64::from(transactions);
    let dropped = history.dropped().saturating_add(left);
    let complete = dropped == 0;
    let whole = complete && options.vouched;
    let CommitStatuses { status, proved, only_read } =
        status::commit_statuses(history, &rows, transactions, whole);
    let inserts = OnceCell::new();
    let context = Context { history, status: &status, complete, whole, assume, inserts: &inserts };
    let mut found = Findings::default();
    let mut edges = Edges::new(transactions, 2 * history.operation_count());
    let (mut undecided, mut open) = (0_u64, Vec::new());
    for row in 0..rows.len() {
        let pairs = examine_row(context, &rows, row, &mut found, &mut edges);
        undecided = undecided.saturating_add(pairs);
        open.extend((pairs > 0).then_some((row, pairs)));
    }
    let examined = examined(context, &edges, proved);
    let wanted = options.promised.map_or(options.order, |promised| promised.order.max(options.order));
    let timeless = precedence::without_instants(history);
    let order = if timeless { wanted.min(Order::Session) } else { wanted };
    let committed: Vec<bool> = status.iter().map(|status| *status == CommitStatus::Committed).collect();
    if order >= Order::Session {
        precedence::sessions(history, &committed, &mut edges);
    }
    if order >= Order::RealTime {
        precedence::real_time(history, &committed, &mut edges);
    }
    let graph = Graph::new(edges);
    if !components::acyclic(&graph) {
        let explain = |link| explain::step(context, &rows, link);
        let doubtful = |node| only_read.contains(&node);
        cycles::find(
            history,
            &graph,
            order,
            options.effort,
            &mut found,
            Callbacks { explain: &explain, doubtful: &doubtful },
        );
    }
    let (open, left) = open_rows(context, &rows, open);
    let inference =
        Inference { context, rows: &rows, graph: &graph, open, most: order, effort: options.effort };
    let inferred = inference.run(&mut found);
    let (mut doubts, suspicions) =
        (found.take_doubts(options.vouched), std::mem::take(&mut found.suspicions));
    if let Some(odd) = history.provenance().map(|provenance| provenance.reads_odd).filter(|odd| *odd > 0) {
        doubts.note(DoubtKind::Unexplained, odd, || {
            "a row bears the number of a transaction of this run that did not write it".to_owned()
        });
    }
    let assumed = found.assumed.take();
    let anomalous = found.anomalous();
    let findings = found.into_findings();
    let verdict = verdict(&findings, order, options.promised);
    let inferred_pairs = inferred.pairs(&verdict.not_contradicted);
    let undecided = inferred_pairs.map_or(undecided, |pairs| pairs.saturating_add(left));
    let left_out = examined.unknown - proved;
    let seen = history.provenance().cloned().unwrap_or_default();
    let sights = [
        (predicates(context) == 0, Blind::NoPredicates),
        (seen.searches_left > 0, Blind::Searches(seen.searches_left)),
        (seen.reads_left > 0, Blind::UnseenWriters(seen.reads_left)),
        (seen.orders_differ > 0, Blind::OrdersDiffer(seen.orders_differ)),
        (left_out > 0, Blind::UnknownOutcomes(left_out)),
        (dropped > 0, Blind::Dropped(dropped)),
        (undecided > 0, Blind::UndecidedOrder(undecided)),
        (inferred.cut > 0, Blind::OrderNotInferred(inferred.cut)),
        (timeless && wanted == Order::RealTime, Blind::NoInstants),
        (examined.dependencies() == 0, Blind::NothingShared),
    ];
    let blind = sights.into_iter().filter(|(is, _)| *is).map(|(_, blind)| blind);
    let assumed = assumed.map(|(rows, example)| Blind::AssumedInitial { rows, example });
    let blind = blind.chain(assumed).collect();
    (Report { examined, findings, anomalous, verdict, blind }, doubts, suspicions)
}

/// The rows, given with their numbers of pairs of versions in unknown order, in which the inference
/// can look for it, and the number of pairs in the others.
fn open_rows(context: Context<'_>, rows: &Rows, open: Vec<(u32, u64)>) -> (Vec<infer::OpenRow>, u64) {
    let mut left = 0_u64;
    let inferable = open.into_iter().filter_map(|(row, pairs)| {
        let open = open_row(context, rows, row);
        left = left.saturating_add(if open.is_none() { pairs } else { 0 });
        open
    });
    (inferable.collect(), left)
}

/// The number of transactions that fit into the graph.
fn within_limits(history: &History) -> u32 {
    const MOST: usize = dependencies::MOST_NODES / 4;
    let mut count = history.transactions().len().min(MOST);
    while count > 0 && u32::try_from(history.range(count - 1).end).is_err() {
        count -= 1;
    }
    u32::try_from(count).unwrap_or(0)
}

fn examined(context: Context<'_>, edges: &Edges, proved: u64) -> Examined {
    let mut examined = Examined {
        proved_committed: proved,
        operations: context.history.operation_count() as u64,
        write_write: edges.count(Label::WriteWrite),
        write_read: edges.count(Label::WriteRead),
        read_write: edges.count(Label::ReadWrite) + edges.count(Label::Lost),
        predicate: edges.count(Label::PredicateReadWrite),
        confirmed_orders: context.history.provenance().map_or(0, |provenance| provenance.orders_agreed),
        ..Examined::default()
    };
    for status in context.status {
        *match status {
            CommitStatus::Committed => &mut examined.committed,
            CommitStatus::Aborted => &mut examined.aborted,
            CommitStatus::Unsure => &mut examined.unknown,
        } += 1;
    }
    examined.committed -= proved;
    examined.unknown += proved;
    examined
}

/// The number of predicate reads in committed transactions.
fn predicates(context: Context<'_>) -> u64 {
    if let Some(provenance) = context.history.provenance() {
        return provenance.searches;
    }
    let committed = (0..).zip(context.status).filter(|(_, status)| **status == CommitStatus::Committed);
    committed
        .flat_map(|(transaction, _)| context.history.operations(transaction))
        .filter(|operation| matches!(operation, Operation::ReadGroup { .. }))
        .count() as u64
}

fn verdict(findings: &[Finding], most: Order, promised: Option<Guarantee>) -> Verdict {
    let contradicted = |guarantee: Guarantee| findings.iter().any(|finding| finding.contradicts(guarantee));
    let candidates: Vec<Guarantee> = Order::ALL
        .into_iter()
        .filter(|order| *order <= most)
        .flat_map(|order| Model::ALL.map(|model| Guarantee { model, order }))
        .filter(|guarantee| !contradicted(*guarantee))
        .collect();
    let strongest = |one: &Guarantee| !candidates.iter().any(|other| other != one && other.implies(*one));
    let not_contradicted = candidates.iter().copied().filter(strongest).collect();
    let kept = promised.and_then(|promised| kept(findings, most, promised));
    Verdict { not_contradicted, promised, kept, withheld: Vec::new() }
}
