//! Checks a history: dependencies, anomalies with witnesses, and the verdict.
//!
//! [`Options`] go in, a [`Report`] comes out; `check/…` has the parts.

mod between;
mod clearing;
mod committed;
mod components;
mod context;
mod cycles;
mod dependencies;
mod doubt;
mod emit;
mod examine;
mod explain;
mod findings;
pub mod graph;
mod grouped;
mod groups;
mod infer;
mod lists;
mod machines;
mod mixed;
mod numbers;
mod pairs;
mod parts;
mod precedence;
mod promises;
mod protection;
mod recording;
mod registers;
mod render;
mod report;
mod rows;
mod scope;
mod search;
mod spill;
mod spilled;
mod statements;
mod status;
mod survey;
#[cfg(test)]
mod tests;
mod used;

use serde::{Deserialize, Serialize};

use crate::history::History;
use crate::model::{Guarantee, Model, Order};
use crate::promise::LevelPromises;

use rustc_hash::FxHashSet;

use committed::{CommitStatuses, commit_statuses};
use dependencies::{Label, MOST_TRANSACTIONS, Node};
use doubt::Doubts;
use findings::Findings;
use parts::{MemoryParts, Setting};
use promises::{Promised, ToEach};
use report::{kept, nothing_checked};
use scope::{Orders, Scope, Steps};
use statements::Sights;
use status::CommitStatus;
use survey::{Positions, Survey};

pub use doubt::{Doubt, DoubtKind};
pub use machines::{Ways, refuse};

pub use recording::{CheckedRecording, GrowingRecording, check_recording, check_recording_together};
pub use render::{render, summary};
pub use report::{
    Blind, Broken, Cleared, Count, Dependency, Examined, Finding, LevelCount, LostBetween, MixedReport,
    Report, StatementDependencies, Verdict, Witness, WitnessStep, WritingBack, WrittenBack,
};
pub use used::by_use;

/// The options of a check.
#[derive(Debug, Clone)]
pub struct Options {
    /// The guarantee that was promised; the verdict says whether it was kept.
    pub promised: Option<Guarantee>,
    /// The server's promises to each level, if nothing else was promised. If all transactions that may
    /// have been committed are promised the same, it is as if that was [`Options::promised`]; otherwise
    /// each is judged by its own level ([`Report::mixed`]). They apply only if the history has levels.
    pub levels: Option<LevelPromises>,
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
    /// The sizes of what is examined at a time, which don't change the result.
    pub pieces: Pieces,
    /// True to count dependencies by their statements as well ([`Report::between`]), which takes up to
    /// twice the time.
    pub between: bool,
}

/// The sizes of what is examined at a time: of parts of the rows, and of pieces of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Pieces {
    /// Parts that fit into the processor's caches, and a graph for many pieces.
    #[default]
    Usual,
    /// A graph of all transactions, which takes more memory. For comparisons.
    Whole,
    /// The smallest parts and pieces possible, each on its own, which takes more time. For tests.
    Smallest,
}

impl Default for Options {
    /// All orders, no promise, and a history that is vouched for.
    fn default() -> Options {
        Options {
            promised: None,
            levels: None,
            order: Order::RealTime,
            vouched: true,
            effort: 100_000_000,
            pieces: Pieces::Usual,
            between: false,
        }
    }
}

/// Checks a history.
///
/// Time and memory are linear in the history, except for counting cycles, and for inferring the
/// order of versions without counters, which [`Options::effort`] limits. The check covers the first
/// 2^28 transactions with at most 2^32 operations; the others are counted as dropped.
pub fn check(history: &History, options: &Options) -> Report {
    let source = MemoryParts::new(history, within_limits(history), options.pieces);
    let Ok(report) = check_source(&source, options);
    report
}

/// Checks a history in parts.
fn check_source<S: Steps>(source: &S, options: &Options) -> Result<Report, S::Error> {
    let transactions = &source.frame().transactions()[..source.transactions() as usize];
    let (mut options, mut each) = (options.clone(), None);
    match Promised::of(options.levels.filter(|_| options.promised.is_none()), transactions) {
        Promised::Nothing => {}
        Promised::ToAll(guarantee) => options.promised = Some(guarantee),
        Promised::ToEach(promises) => each = Some(promises),
    }
    let (options, each) = (&options, each.as_ref());
    let Examination { mut report, mut doubts, suspicions } = examine(source, options, each, true)?;
    if report.verdict.kept == Some(false) && doubts.is_empty() {
        doubts = suspicions;
        if let Some(doubt) = rests_on_assumptions(source, options, each, &report)? {
            doubts.add(doubt);
        }
    }
    if let Some(doubt) = nothing_checked(&report.examined) {
        doubts.add(doubt);
    }
    report.verdict = report.verdict.withheld(doubts.into_vec());
    Ok(report)
}

/// The doubt about a contradiction that vanishes if unwritten values aren't taken for initial ones.
fn rests_on_assumptions<S: Steps>(
    source: &S,
    options: &Options,
    each: Option<&ToEach>,
    report: &Report,
) -> Result<Option<Doubt>, S::Error> {
    let assumed = report.blind.iter().find_map(|blind| match blind {
        Blind::AssumedInitial { rows, example } => Some((*rows, example)),
        _ => None,
    });
    let Some((rows, example)) = assumed else { return Ok(None) };
    let without = examine(source, options, each, false)?.report;
    let rests = without.verdict.kept != Some(false);
    Ok(rests.then(|| Doubt { kind: DoubtKind::Assumed, count: rows, example: example.clone() }))
}

/// The result of examining a history.
struct Examination {
    /// The report, with its verdict not yet withheld.
    report: Report,
    /// The doubts that withhold the verdict.
    doubts: Doubts,
    /// The doubts that withhold the verdict if it is negative.
    suspicions: Doubts,
}

/// Examines a history. With `assume`, unwritten values are taken for initial ones.
fn examine<S: Steps>(
    source: &S,
    options: &Options,
    each: Option<&ToEach>,
    assume: bool,
) -> Result<Examination, S::Error> {
    let history = source.frame();
    let left = history.transactions().len() as u64 - u64::from(source.transactions());
    let dropped = history.dropped().saturating_add(left);
    let complete = dropped == 0;
    let vouched = options.vouched;
    let statuses = commit_statuses(source, complete && vouched)?;
    let setting = Setting { status: &statuses.status, complete, vouched, assume, each };
    let wanted = options.promised.map_or(options.order, |promised| promised.order.max(options.order));
    let timeless = precedence::without_instants(history);
    let order = if timeless { wanted.min(Order::Session) } else { wanted };

    let positions = Positions::new(history, source.transactions());
    let mut survey = source.survey(setting, order, &positions)?;
    let scope = Scope { source, setting, order, only_read: &statuses.only_read };
    let mut found = std::mem::take(&mut survey.found);
    let mut cyclic = if options.pieces == Pieces::Whole {
        scope.components_at_once()?
    } else {
        source.components(&scope, &mut survey, positions)?
    };
    let mut permitted = FxHashSet::default();
    if let Some(graph) = scope.cyclic_graph(&mut cyclic)? {
        cycles::find(history, &graph, order, options.effort, &mut found);
        if let Some(each) = each {
            let sights = Sights::of(source, setting, &each.weak(&graph))?;
            permitted = each.judge(history, &graph, &sights, options.effort, &mut found);
        }
    }
    let orders = scope.infer(&survey, options.effort, &mut found)?;
    found.explain(&explain::steps(source, setting, found.unexplained())?);

    let operations = source.operations();
    let left = cyclic.left;
    let cleared = scope.cleared()?;
    let between = if options.between { between::between(source, setting)? } else { Vec::new() };
    let outcome = Outcome {
        dropped,
        order,
        wanted,
        timeless,
        orders,
        operations,
        left,
        each,
        permitted,
        cleared,
        between,
    };
    Ok(outcome.report(history, options, &survey, &statuses, found))
}

/// What was found, apart from the findings.
struct Outcome<'o> {
    dropped: u64,
    order: Order,
    wanted: Order,
    timeless: bool,
    orders: Orders,
    operations: u64,
    /// The number of transactions among which cycles couldn't be looked for.
    left: u64,
    /// The promises to the transactions, if they differ.
    each: Option<&'o ToEach>,
    /// The transactions on cycles that no promise excludes.
    permitted: FxHashSet<Node>,
    /// What snapshots say of transactions that may have read more than they showed.
    cleared: Option<Cleared>,
    between: Vec<StatementDependencies>,
}

impl Outcome<'_> {
    fn report(
        self,
        history: &History,
        options: &Options,
        survey: &Survey,
        statuses: &CommitStatuses,
        mut found: Findings,
    ) -> Examination {
        let Outcome {
            dropped,
            order,
            wanted,
            timeless,
            orders,
            operations,
            left,
            each,
            permitted,
            cleared,
            between,
        } = self;
        let Orders { inferred, undecided, left: undecidable } = orders;
        let (mut doubts, suspicions) =
            (found.take_doubts(options.vouched), std::mem::take(&mut found.suspicions));
        let seen = history.provenance().cloned().unwrap_or_default();
        if seen.reads_odd > 0 {
            doubts.note(DoubtKind::Unexplained, seen.reads_odd, || {
                "a row bears the number of a transaction of this run that did not write it".to_owned()
            });
        }
        if left > 0 {
            doubts.note(DoubtKind::Cut, 1, || {
                format!("{left} transactions overlap without a gap, too many to look for cycles among them")
            });
        }
        let examined = Examined { operations, ..examined(history, survey, statuses) };
        let assumed = found.assumed.take();
        let anomalous = found.anomalous();
        let (broken, accused) = found.take_broken();
        let findings = found.into_findings();
        let mut verdict = verdict(&findings, order, options.promised);
        let mixed = each
            .map(|each| each.result(history, &statuses.status, &findings, (broken, &accused), &permitted));
        if let Some(mixed) = &mixed {
            verdict.kept = Some(mixed.broken.is_empty());
        }
        let inferred_pairs = inferred.pairs(&verdict.not_contradicted);
        let undecided = inferred_pairs.map_or(undecided, |pairs| pairs.saturating_add(undecidable));
        let left_out = examined.unknown - statuses.proved;
        let predicates = history.provenance().map_or(survey.predicates, |provenance| provenance.searches);
        let sights = [
            (predicates == 0, Blind::NoPredicates),
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
        let assumed = assumed.map(|(rows, _, example)| Blind::AssumedInitial { rows, example });
        let blind = blind.chain(assumed).collect();
        Examination {
            report: Report {
                examined,
                findings,
                anomalous,
                harmless: 0,
                lost_between: None,
                written_back: None,
                mixed,
                cleared: cleared.map(|cleared| cleared.if_decided(undecided)),
                between,
                verdict,
                blind,
            },
            doubts,
            suspicions,
        }
    }
}

/// The number of transactions that are checked.
fn within_limits(history: &History) -> u32 {
    let mut count = history.transactions().len().min(MOST_TRANSACTIONS as usize);
    while count > 0 && u32::try_from(history.range(count - 1).end).is_err() {
        count -= 1;
    }
    u32::try_from(count).unwrap_or(0)
}

fn examined(history: &History, survey: &Survey, statuses: &CommitStatuses) -> Examined {
    let count = |label: Label| survey.counts[label as usize];
    let mut examined = Examined {
        proved_committed: statuses.proved,
        write_write: count(Label::WriteWrite),
        write_read: count(Label::WriteRead),
        read_write: count(Label::ReadWrite) + count(Label::Lost),
        predicate: count(Label::PredicateReadWrite),
        confirmed_orders: history.provenance().map_or(0, |provenance| provenance.orders_agreed),
        ..Examined::default()
    };
    for status in &statuses.status {
        *match status {
            CommitStatus::Committed => &mut examined.committed,
            CommitStatus::Aborted => &mut examined.aborted,
            CommitStatus::Unsure => &mut examined.unknown,
        } += 1;
    }
    examined.committed -= statuses.proved;
    examined.unknown += statuses.proved;
    examined
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
