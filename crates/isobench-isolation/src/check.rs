//! Checks a history: dependencies, anomalies with witnesses, and the verdict.
//!
//! This file has the options ([`Options`]) and the result ([`Report`]); `check/…` implements the
//! check.

mod components;
mod context;
mod cycles;
mod dependencies;
mod doubt;
mod explain;
mod findings;
pub mod graph;
mod groups;
mod lists;
mod pairs;
mod precedence;
mod registers;
mod render;
mod rows;
mod search;
mod status;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;

use crate::anomaly::Anomaly;
use crate::history::{History, Operation};
use crate::model::{Guarantee, Model, Order};

use context::Context;
use cycles::Callbacks;
use dependencies::{Edges, Graph, Label, Sink};
use doubt::doubts;
use findings::Findings;
use rows::{Class, Rows};
use status::{CommitStatus, CommitStatuses};

pub use doubt::{Doubt, DoubtKind};
pub(crate) use doubt::{Doubts, nothing_checked};
pub use render::{render, summary};

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
    /// The number of search steps per anomaly for counting cycles; the report says if they didn't
    /// suffice.
    pub effort: u64,
}

impl Default for Options {
    /// All orders, no promise, and a history that is vouched for.
    fn default() -> Options {
        Options { promised: None, order: Order::RealTime, vouched: true, effort: 100_000_000 }
    }
}

/// The reason that one transaction must precede another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependency {
    /// Write after write: the second wrote the version that follows one written by the first.
    WriteWrite,
    /// Read after write: the second read a version written by the first.
    WriteRead,
    /// Anti-dependency: the second wrote the version that follows one that the first read.
    ReadWrite,
    /// Anti-dependency on a predicate: the second inserted a row that the first's predicate read
    /// would have found.
    PredicateReadWrite,
    /// Transactions of the same client, in its order.
    Session,
    /// The second started after the first had ended.
    RealTime,
}

impl Dependency {
    /// The short name.
    pub const fn name(self) -> &'static str {
        match self {
            Dependency::WriteWrite => "ww",
            Dependency::WriteRead => "wr",
            Dependency::ReadWrite => "rw",
            Dependency::PredicateReadWrite => "rw (predicate)",
            Dependency::Session => "session",
            Dependency::RealTime => "real time",
        }
    }
}

/// A step of a witness: an edge of a cycle, or a fact that proves an anomaly other than a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessStep {
    /// The preceding transaction, as an index into [`History::transactions`].
    pub from: usize,
    /// The following transaction; the same one if the fact concerns only one transaction.
    pub to: usize,
    /// The dependency; `None` if the anomaly isn't a cycle.
    pub dependency: Option<Dependency>,
    /// The proof as a sentence, with the values: "T7 read version 5 of registers 12, T9 wrote
    /// version 6".
    pub why: String,
}

/// The proof of an anomaly. The steps of a cycle are in order, and the last one leads back to the
/// start of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// The steps; never empty.
    pub steps: Vec<WitnessStep>,
    /// True if the history is known to have no smaller cycle of this kind; false if the search
    /// ended before that was known.
    pub smallest: bool,
}

/// The number of times an anomaly was found. `docs/reference/metrics.md` defines what is counted
/// for each anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The number found.
    pub found: u64,
    /// False if the search was cut short, so that there may be more.
    pub complete: bool,
}

/// An anomaly that the history shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// The fewest orders needed to show it.
    pub order: Order,
    /// The number of occurrences.
    pub count: Count,
    /// A proof.
    pub witness: Witness,
}

impl Finding {
    /// True if a history that shows this contradicts the guarantee.
    pub fn contradicts(&self, guarantee: Guarantee) -> bool {
        self.anomaly.contradicts(guarantee.model) && self.order <= guarantee.order
    }
}

/// The extent of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Examined {
    /// Committed transactions.
    pub committed: u64,
    /// Aborted transactions.
    pub aborted: u64,
    /// Transactions of unknown outcome.
    pub unknown: u64,
    /// The number of transactions of unknown outcome that were evidently committed, because a
    /// committed transaction read from them, or because of the version order.
    pub proved_committed: u64,
    /// Operations of all transactions.
    pub operations: u64,
    /// Write-write dependencies between different transactions, counted by row: two transactions
    /// that follow each other in two rows have two.
    pub write_write: u64,
    /// Write-read dependencies, counted in the same way, as are the following.
    pub write_read: u64,
    /// Anti-dependencies on rows.
    pub read_write: u64,
    /// Anti-dependencies on predicates.
    pub predicate: u64,
}

impl Examined {
    /// The number of dependencies in the data.
    pub fn dependencies(&self) -> u64 {
        self.write_write + self.write_read + self.read_write + self.predicate
    }
}

/// A limit of the check, because of which it may have missed anomalies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blind {
    /// No transaction read by a predicate, so phantoms could not show.
    NoPredicates,
    /// This many transactions have an unknown outcome without proof that they were committed. Their
    /// writes were left out.
    UnknownOutcomes(u64),
    /// This many transactions were executed but are missing from the history.
    Dropped(u64),
    /// The order of this many pairs of versions of the same row is unknown.
    UndecidedOrder(u64),
    /// Unwritten values were read before the first write of their rows, and taken for the initial
    /// ones.
    AssumedInitial {
        /// The number of rows.
        rows: u64,
        /// The first of them.
        example: String,
    },
    /// The history has no instants, so real time was not checked.
    NoInstants,
    /// No transaction read or overwrote a write of another, so no anomaly could show.
    NothingShared,
    /// The history was checked in this many consecutive windows, so dependencies between windows
    /// were not checked.
    Windows(u64),
}

/// The conclusion about the level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The strongest guarantees that the history doesn't contradict, none of which implies another.
    /// Empty if it contradicts even read uncommitted, or if the verdict is withheld. This doesn't
    /// prove that the server provides them.
    pub not_contradicted: Vec<Guarantee>,
    /// The guarantee that was promised.
    pub promised: Option<Guarantee>,
    /// False if an anomaly contradicts the promise; `None` if there was no promise, if it includes
    /// an order that was not checked, or if the verdict is withheld.
    pub kept: Option<bool>,
    /// The reasons for withholding the verdict; empty if there is one.
    pub withheld: Vec<Doubt>,
}

/// Checks a history.
///
/// Time and memory are linear in the history, except for counting cycles, which [`Options::effort`]
/// limits. The check covers the first 2^27 transactions with at most 2^32 operations; the others
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
    let mut undecided = 0_u64;
    for row in 0..rows.len() {
        undecided = undecided.saturating_add(examine_row(context, &rows, row, &mut found, &mut edges));
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
    let (doubts, suspicions) = (doubts(&mut found, options.vouched), std::mem::take(&mut found.suspicions));
    let assumed = found.assumed.take();
    let findings = found.into_findings();
    let verdict = verdict(&findings, order, options.promised);
    let left_out = examined.unknown - proved;
    let sights = [
        (predicates(context) == 0, Blind::NoPredicates),
        (left_out > 0, Blind::UnknownOutcomes(left_out)),
        (dropped > 0, Blind::Dropped(dropped)),
        (undecided > 0, Blind::UndecidedOrder(undecided)),
        (timeless && wanted == Order::RealTime, Blind::NoInstants),
        (examined.dependencies() == 0, Blind::NothingShared),
    ];
    let blind = sights.into_iter().filter(|(is, _)| *is).map(|(_, blind)| blind);
    let assumed = assumed.map(|(rows, example)| Blind::AssumedInitial { rows, example });
    let blind = blind.chain(assumed).collect();
    (Report { examined, findings, verdict, blind }, doubts, suspicions)
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

/// Examines a row: records its anomalies, and passes its dependencies to the sink. Returns the
/// number of pairs of versions whose order is unknown.
fn examine_row<S: Sink>(
    context: Context<'_>,
    rows: &Rows,
    row: u32,
    found: &mut Findings,
    sink: &mut S,
) -> u64 {
    let places = rows.places(row);
    match rows.row(row).class {
        Class::Register => registers::examine(context, places, found, sink),
        Class::List => lists::examine(context, places, found, sink),
        Class::Group => {
            groups::examine(context, places, found, sink);
            0
        }
    }
}

fn examined(context: Context<'_>, edges: &Edges, proved: u64) -> Examined {
    let mut examined = Examined {
        proved_committed: proved,
        operations: context.history.operation_count() as u64,
        write_write: edges.count(Label::WriteWrite),
        write_read: edges.count(Label::WriteRead),
        read_write: edges.count(Label::ReadWrite) + edges.count(Label::Lost),
        predicate: edges.count(Label::PredicateReadWrite),
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
fn predicates(context: Context<'_>) -> usize {
    let committed = (0..).zip(context.status).filter(|(_, status)| **status == CommitStatus::Committed);
    committed
        .flat_map(|(transaction, _)| context.history.operations(transaction))
        .filter(|operation| matches!(operation, Operation::ReadGroup { .. }))
        .count()
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

/// True if the promise was kept, after checking orders up to `most`.
pub(crate) fn kept(findings: &[Finding], most: Order, promised: Guarantee) -> Option<bool> {
    let contradicted = findings.iter().any(|finding| finding.contradicts(promised));
    if contradicted { Some(false) } else { (promised.order <= most).then_some(true) }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The extent of the check.
    pub examined: Examined,
    /// The findings, at most one for each anomaly, with the fewest orders that show it; in the
    /// order of [`Anomaly::ALL`].
    pub findings: Vec<Finding>,
    /// The conclusion.
    pub verdict: Verdict,
    /// The limits of the check.
    pub blind: Vec<Blind>,
}
