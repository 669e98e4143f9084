//! Checks a history: dependencies, anomalies with witnesses, and the verdict.
//!
//! Here are the question ([`Options`]) and the answer ([`Report`]); how the one comes from the
//! other stands in `check/…`.

mod components;
mod cycles;
mod dependencies;
mod doubt;
mod explain;
mod found;
pub mod graph;
mod groups;
mod lists;
mod pairs;
mod precedence;
mod registers;
mod rows;
mod scene;
mod search;
mod standing;
#[cfg(test)]
mod tests;
mod words;

use std::cell::OnceCell;

use crate::anomaly::Anomaly;
use crate::history::{History, Operation};
use crate::model::{Guarantee, Model, Order};

use cycles::Told;
use dependencies::{Edges, Graph, Label, Sink};
use doubt::doubts;
use found::Found;
use rows::{Class, Rows};
use scene::Scene;
use standing::{Standing, Standings};

pub use doubt::{Doubt, DoubtKind};
pub(crate) use doubt::{Doubts, nothing_checked};
pub use words::{render, summary};

/// What a check is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// What was promised; the verdict says whether it was kept.
    pub promised: Option<Guarantee>,
    /// Up to which order to look for contradictions: [`Order::RealTime`] looks at everything.
    pub order: Order,
    /// True if somebody vouches that every write is in the history as it was, so that what none of
    /// them explains accuses the database. Otherwise it is a doubt, which withholds the verdict,
    /// and a value that was read before anybody wrote the row is taken for the initial one.
    pub vouched: bool,
    /// Up to how many steps of the search for cycles are made for counting, per anomaly; what isn't
    /// counted then is said.
    pub effort: u64,
}

impl Default for Options {
    /// Everything, nothing promised, of a history that is vouched for.
    fn default() -> Options {
        Options { promised: None, order: Order::RealTime, vouched: true, effort: 100_000_000 }
    }
}

/// Why one transaction must come before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependency {
    /// Write after write: the second made the version that follows one of the first's.
    WriteWrite,
    /// Read after write: the second read a version of the first's.
    WriteRead,
    /// Anti-dependency: the second made the version that follows one that the first read.
    ReadWrite,
    /// Anti-dependency by a predicate: the second made a row that the first's predicate read would
    /// have found.
    PredicateReadWrite,
    /// The same client's transactions, in its order.
    Session,
    /// The second began after the first had ended.
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

/// One step of a witness: an edge of a cycle, or one fact of an anomaly that is no cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessStep {
    /// The transaction that comes first, as an index into [`History::transactions`].
    pub from: usize,
    /// The one that must come later; the same one if the fact concerns one transaction only.
    pub to: usize,
    /// Why; `None` if the anomaly is no cycle.
    pub dependency: Option<Dependency>,
    /// The proof in words, with the values: "T7 read version 5 of registers 12, T9 wrote version
    /// 6".
    pub why: String,
}

/// What proves an anomaly: of a cycle the steps in order, the last one leading back to where the
/// first one began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// The steps; never empty.
    pub steps: Vec<WitnessStep>,
    /// True if no smaller cycle of this kind exists in the history; false if the search ended
    /// before that was known.
    pub smallest: bool,
}

/// How often an anomaly was found. What one of them is, is said by the anomaly's row in
/// `docs/reference/metrics.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// How many were found.
    pub found: u64,
    /// False if the search was ended before its end, so that there may be more.
    pub complete: bool,
}

/// An anomaly that the history shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub anomaly: Anomaly,
    /// The fewest orders that are needed to show it.
    pub order: Order,
    /// How often.
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

/// How much was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Examined {
    /// Transactions by outcome: committed, aborted, unknown.
    pub committed: u64,
    /// Aborted ones.
    pub aborted: u64,
    /// Ones of unknown outcome.
    pub unknown: u64,
    /// Of those of unknown outcome, how many a committed transaction's reads, or the version order,
    /// prove to be committed.
    pub proved_committed: u64,
    /// Operations of all transactions.
    pub operations: u64,
    /// Write-write dependencies between different transactions, by row: two transactions that
    /// follow each other in two rows have two.
    pub write_write: u64,
    /// Write-read dependencies, counted alike, as those below.
    pub write_read: u64,
    /// Anti-dependencies of rows.
    pub read_write: u64,
    /// Anti-dependencies of predicates.
    pub predicate: u64,
}

impl Examined {
    /// All dependencies that the data show.
    pub fn dependencies(&self) -> u64 {
        self.write_write + self.write_read + self.read_write + self.predicate
    }
}

/// Something that the check could not see, so that it may have missed anomalies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blind {
    /// No transaction read by a predicate, so phantoms can't show.
    NoPredicates,
    /// So many transactions have an unknown outcome, and nothing proves that they committed: their
    /// writes were left out.
    UnknownOutcomes(u64),
    /// So many transactions were carried out and are not in the history.
    Dropped(u64),
    /// So many pairs of versions of a row whose order nothing tells.
    UndecidedOrder(u64),
    /// Values that nobody wrote were read before anybody wrote the row, and taken for what was
    /// there initially.
    AssumedInitial {
        /// In how many rows.
        rows: u64,
        /// The first one.
        example: String,
    },
    /// No instants, so real time was not looked at.
    NoInstants,
    /// No transaction wrote something that another read or overwrote: nothing could have shown.
    NothingShared,
    /// The history was checked in so many windows, one after the other, so that dependencies across
    /// windows were not looked at.
    Windows(u64),
}

/// What follows for the level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The strongest guarantees that the history doesn't contradict, none of which implies another;
    /// empty if it contradicts even read uncommitted, or if the verdict is withheld. This is no
    /// proof that the server gives them.
    pub not_contradicted: Vec<Guarantee>,
    /// What was promised.
    pub promised: Option<Guarantee>,
    /// False if an anomaly contradicts what was promised; `None` if nothing was, or something by an
    /// order that was not looked at, or if the verdict is withheld.
    pub kept: Option<bool>,
    /// Why there is no verdict; empty if there is one.
    pub withheld: Vec<Doubt>,
}

/// Checks a history.
///
/// Time and memory are linear in the history, but for counting cycles, which [`Options::effort`]
/// bounds. What is looked at: the first 2^27 transactions with at most 2^32 operations; further
/// ones count as dropped.
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

/// The doubt about a contradiction that isn't there if no value that nobody wrote is taken for the
/// initial one.
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

/// Examines a history. Returns the report with the verdict that nothing withholds, what withholds
/// it, and what withholds it if it is an accusation. `assume` says whether unwritten values are
/// taken for initial ones.
fn examine(history: &History, options: &Options, assume: bool) -> (Report, Doubts, Doubts) {
    let transactions = within_limits(history);
    let rows = Rows::new(history, transactions);
    let left = history.transactions().len() as u64 - u64::from(transactions);
    let dropped = history.dropped().saturating_add(left);
    let complete = dropped == 0;
    let whole = complete && options.vouched;
    let Standings { standing, proved, only_read } = standing::standings(history, &rows, transactions, whole);
    let inserts = OnceCell::new();
    let scene = Scene { history, standing: &standing, complete, whole, assume, inserts: &inserts };
    let mut found = Found::default();
    let mut edges = Edges::new(transactions, 2 * history.operation_count());
    let mut undecided = 0_u64;
    for row in 0..rows.len() {
        undecided = undecided.saturating_add(examine_row(scene, &rows, row, &mut found, &mut edges));
    }
    let examined = examined(scene, &edges, proved);
    let wanted = options.promised.map_or(options.order, |promised| promised.order.max(options.order));
    let timeless = precedence::without_instants(history);
    let order = if timeless { wanted.min(Order::Session) } else { wanted };
    let committed: Vec<bool> = standing.iter().map(|standing| *standing == Standing::Committed).collect();
    if order >= Order::Session {
        precedence::sessions(history, &committed, &mut edges);
    }
    if order >= Order::RealTime {
        precedence::real_time(history, &committed, &mut edges);
    }
    let graph = Graph::new(edges);
    if !components::acyclic(&graph) {
        let tell = |link| explain::step(scene, &rows, link);
        let doubtful = |node| only_read.contains(&node);
        cycles::find(
            history,
            &graph,
            order,
            options.effort,
            &mut found,
            Told { tell: &tell, doubtful: &doubtful },
        );
    }
    let (doubts, suspicions) = (doubts(&mut found, options.vouched), std::mem::take(&mut found.suspicions));
    let assumed = found.assumed.take();
    let findings = found.into_findings();
    let verdict = verdict(&findings, order, options.promised);
    let left_out = examined.unknown - proved;
    let sights = [
        (predicates(scene) == 0, Blind::NoPredicates),
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

/// How many of the transactions the graph's numbers suffice for.
fn within_limits(history: &History) -> u32 {
    const MOST: usize = dependencies::MOST_NODES / 4;
    let mut count = history.transactions().len().min(MOST);
    while count > 0 && u32::try_from(history.range(count - 1).end).is_err() {
        count -= 1;
    }
    u32::try_from(count).unwrap_or(0)
}

/// Examines a row: notes what is wrong with it, and gives its dependencies to the sink. The number
/// of pairs of its versions of which nobody knows the order.
fn examine_row<S: Sink>(scene: Scene<'_>, rows: &Rows, row: u32, found: &mut Found, sink: &mut S) -> u64 {
    let places = rows.places(row);
    match rows.row(row).class {
        Class::Register => registers::examine(scene, places, found, sink),
        Class::List => lists::examine(scene, places, found, sink),
        Class::Group => {
            groups::examine(scene, places, found, sink);
            0
        }
    }
}

fn examined(scene: Scene<'_>, edges: &Edges, proved: u64) -> Examined {
    let mut examined = Examined {
        proved_committed: proved,
        operations: scene.history.operation_count() as u64,
        write_write: edges.count(Label::WriteWrite),
        write_read: edges.count(Label::WriteRead),
        read_write: edges.count(Label::ReadWrite) + edges.count(Label::Lost),
        predicate: edges.count(Label::PredicateReadWrite),
        ..Examined::default()
    };
    for standing in scene.standing {
        *match standing {
            Standing::Committed => &mut examined.committed,
            Standing::Aborted => &mut examined.aborted,
            Standing::Unsure => &mut examined.unknown,
        } += 1;
    }
    examined.committed -= proved;
    examined.unknown += proved;
    examined
}

/// How many committed transactions' operations are reads by a predicate.
fn predicates(scene: Scene<'_>) -> usize {
    let committed = (0..).zip(scene.standing).filter(|(_, standing)| **standing == Standing::Committed);
    committed
        .flat_map(|(transaction, _)| scene.history.operations(transaction))
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

/// Whether what was promised was kept, having looked at orders up to `most`.
pub(crate) fn kept(findings: &[Finding], most: Order, promised: Guarantee) -> Option<bool> {
    let contradicted = findings.iter().any(|finding| finding.contradicts(promised));
    if contradicted { Some(false) } else { (promised.order <= most).then_some(true) }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How much was looked at.
    pub examined: Examined,
    /// What was found, each anomaly at most once, with the fewest orders that show it; in the order
    /// of [`Anomaly::ALL`].
    pub findings: Vec<Finding>,
    /// What follows.
    pub verdict: Verdict,
    /// What couldn't be seen.
    pub blind: Vec<Blind>,
}
