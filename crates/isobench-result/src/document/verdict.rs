//! The verdict on the history of a round: the fields. The check is `isobench_isolation`'s.

use std::time::Duration;

use isobench_isolation::check::graph::{self, Graph};
use isobench_isolation::check::{self, Broken, Cleared, Examined, LevelCount, MixedReport, Report};
use isobench_isolation::history::Operation;
use isobench_isolation::{Anomaly, Finding, Guarantee, History, Level, Model, Order};
use serde::{Deserialize, Serialize};

use crate::words::distinct;

/// The evidence of a round's recorded history, warm-up included. "Nothing found" proves nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Verdict {
    /// The promise of the product's manual at the level asked for, as a consistency model; null if
    /// nothing is known.
    pub promised: Option<String>,
    /// False if an anomaly contradicts what is promised; null if nothing is, or if the verdict is
    /// withheld.
    pub kept: Option<bool>,
    /// The reasons why there is no verdict; empty if there is one. What was found then isn't
    /// evidence against the server.
    pub withheld: Vec<Withheld>,
    /// The strongest guarantees that the history doesn't contradict, none of which implies another;
    /// empty if the verdict is withheld.
    pub not_contradicted: Vec<String>,
    /// The anomalies found, the gravest first.
    pub anomalies: Vec<AnomalyFound>,
    /// Committed attempts that show an anomaly by the data alone; a lower bound if the counting of
    /// one was ended. See the reference of metrics for which those are.
    pub anomalous: u64,
    /// Committed attempts that show an anomaly by the data alone only through rows that they read
    /// and didn't use: neither in what they wrote nor in what they decided. The levels that prevent it
    /// buy nothing.
    pub harmless: u64,
    /// What was lost because values were carried from one transaction to another, which no level
    /// protects: the gravest kind, with the number of transactions that wrote what had changed since
    /// it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_between: Option<AnomalyFound>,
    /// What shows only because statements write back columns as their transactions read them, as
    /// object-relational mappers do that save whole rows. Missing unless there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_back: Option<WrittenBack>,
    /// What the transactions' own levels promise and whether they kept it, if the history has
    /// transactions of levels that promise different things. Then `promised` is null, and `kept` is
    /// false if the promise to any of them is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed: Option<MixedVerdict>,
    /// What the snapshots of transactions say of what they read unseen (`--observe snapshot`). Missing
    /// unless there are statements that aren't seen wholly, and transactions were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared: Option<ClearedTransactions>,
    /// The places of statements (`orders.sql:7`) of which it isn't known for some attempt that may have
    /// committed what its search missed, because of the values that were sent: an OFFSET other than 0,
    /// for example. Missing if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsearched: Vec<String>,
    /// The dependencies between committed attempts by the statements of both, if they were asked for, as
    /// `advise` does, and rows were observed. Results don't have them.
    #[serde(skip)]
    pub between: Vec<StatementDependencies>,
    /// The extent of the check.
    pub examined: ExaminedHistory,
    /// The limits of the check, a sentence each.
    pub blind: Vec<String>,
    /// Time that the check took, in seconds.
    pub check_s: f64,
}

/// Dependencies of attempts on others, by two statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementDependencies {
    /// The statement of the attempt that comes first, with file and line.
    pub first: String,
    /// That of the attempt that follows.
    pub then: String,
    /// `ww`, `wr`, `rw` or `rw (predicate)`.
    pub dependency: String,
    /// Their number, counted by row: two attempts that follow each other in two rows have two.
    pub count: u64,
}

impl StatementDependencies {
    fn of(one: &check::StatementDependencies) -> StatementDependencies {
        let check::StatementDependencies { first, then, dependency, count } = one.clone();
        StatementDependencies { first, then, dependency: dependency.name().to_owned(), count }
    }
}

/// Committed attempts that may have read more than they showed, and what their snapshots say of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ClearedTransactions {
    /// The number of such attempts.
    pub dark: u64,
    /// The number of those that show no anomaly by the data, whatever they read unseen: they lie on no
    /// cycle of dependencies. Nothing is claimed of the others.
    pub cleared: u64,
    /// The reason why none is cleared, a clause, if it isn't what the transactions did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

impl ClearedTransactions {
    fn of(cleared: &Cleared) -> ClearedTransactions {
        let Cleared { dark, cleared, why_not } = cleared.clone();
        ClearedTransactions { dark, cleared, why_not }
    }

    /// True if nothing that was read unseen can matter.
    pub fn is_all(&self) -> bool {
        self.why_not.is_none() && self.cleared == self.dark
    }

    /// The sum of several rounds; `None` if one of them has none, or there are no rounds.
    pub fn sum<'v>(verdicts: impl Iterator<Item = &'v Verdict>) -> Option<ClearedTransactions> {
        let mut sum: Option<ClearedTransactions> = None;
        for verdict in verdicts {
            let ClearedTransactions { dark, cleared, why_not } = verdict.cleared.clone()?;
            let sum = sum.get_or_insert_default();
            sum.dark = sum.dark.saturating_add(dark);
            sum.cleared = sum.cleared.saturating_add(cleared);
            sum.why_not = sum.why_not.take().or(why_not);
        }
        sum
    }
}

/// The anomalies that would not show if statements set only the columns that they change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WrittenBack {
    /// The number of committed attempts that show an anomaly only because of this.
    pub transactions: u64,
    /// The names in the literature of the anomalies that the history would not show at all.
    pub anomalies: Vec<String>,
    /// The statements.
    pub statements: Vec<WritingBack>,
}

/// A statement that sets columns to what its transaction read in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WritingBack {
    /// The statement, with file and line.
    pub statement: String,
    /// The names of the columns.
    pub columns: Vec<String>,
}

/// The verdict on a history of transactions at several levels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MixedVerdict {
    /// The committed transactions at each level, the weakest first.
    pub levels: Vec<LevelTransactions>,
    /// False if the data contradict that the history is serializable as a whole; null if the verdict is
    /// withheld.
    pub serializable: Option<bool>,
    /// The broken promises, the gravest first; empty if the verdict is withheld.
    pub broken: Vec<BrokenPromise>,
    /// The transactions that lie on cycles which nothing promised to prevent, and on no others, at each
    /// level.
    pub permitted: Vec<LevelTransactions>,
}

/// A number of transactions at a level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LevelTransactions {
    /// The level; null for those of unknown level.
    pub level: Option<Level>,
    /// The number of transactions.
    pub transactions: u64,
}

/// A broken promise to transactions of a history at several levels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BrokenPromise {
    /// The promise and the transactions of the example to which it was made, a sentence without its
    /// full stop.
    pub promise: String,
    /// What breaks it.
    pub anomaly: AnomalyFound,
}

/// A reason for giving no verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Withheld {
    /// The reason, a sentence without its full stop.
    pub reason: String,
    /// True if the history contradicts itself, so that what it shows isn't evidence in any round;
    /// false if there was nothing, or not everything, to look at.
    pub doubtful: bool,
}

/// An anomaly that a history shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AnomalyFound {
    /// The name in the literature, for example "G2-item".
    pub name: String,
    /// The common name, for example "write skew".
    pub known_as: String,
    /// The orders beside the data that are needed to show it: "data", "session" or "real time".
    pub order: String,
    /// The number that was counted. See the reference of metrics for what one is.
    pub count: u64,
    /// True if counting was ended before its end, so that there may be more.
    pub at_least: bool,
    /// True if it contradicts what is promised.
    pub breaks_promise: bool,
    /// The smallest example, step by step.
    pub witness: Vec<String>,
    /// For each step, the SQL statements of both sides with file and line, first that of the
    /// transaction that comes first; missing unless rows were observed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<Vec<String>>,
    /// The example as a graph: its transactions.
    pub transactions: Vec<WitnessTransaction>,
    /// The example as a graph: an arrow for each step of the witness.
    pub arrows: Vec<WitnessArrow>,
}

/// A transaction of a witness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WitnessTransaction {
    /// Its name, for example "T7".
    pub name: String,
    /// Whose it was, for example "client 3".
    pub client: String,
}

/// A step of a witness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WitnessArrow {
    /// Index of the transaction that comes first.
    pub from: usize,
    /// Index of the one that must come later; the same one if the step concerns one transaction
    /// only.
    pub to: usize,
    /// The dependency: ww, wr, rw, session, real time; empty if it is none.
    pub label: String,
}

/// The extent of a check. One transaction of a history is one attempt of the benchmark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExaminedHistory {
    /// Attempts that committed.
    pub committed: u64,
    /// Attempts that failed.
    pub aborted: u64,
    /// Attempts with an unknown outcome.
    pub unknown: u64,
    /// Reads and writes of all of them.
    pub operations: u64,
    /// Write-write dependencies between committed ones.
    pub write_write: u64,
    /// Write-read dependencies.
    pub write_read: u64,
    /// Anti-dependencies, those of predicates included.
    pub read_write: u64,
}

impl ExaminedHistory {
    /// True if a transaction was seen to read or overwrite what another one wrote.
    pub fn shares(&self) -> bool {
        self.write_write > 0 || self.write_read > 0 || self.read_write > 0
    }
}

impl Verdict {
    /// The verdict that a check's report makes; its witnesses are of this history.
    pub fn new(history: &History, report: &Report, took: Duration) -> Verdict {
        let promised = report.verdict.promised;
        let withheld = report
            .verdict
            .withheld
            .iter()
            .map(|doubt| Withheld { reason: doubt.to_string(), doubtful: doubt.is_contradiction() });
        // What carried values or unused reads leave behind breaks no promise.
        let broken = report.verdict.withheld.is_empty() && report.verdict.kept == Some(false);
        let accused = promised.filter(|_| broken);
        Verdict {
            promised: promised.map(|guarantee| guarantee.to_string()),
            kept: report.verdict.kept,
            withheld: withheld.collect(),
            not_contradicted: report.verdict.not_contradicted.iter().map(Guarantee::to_string).collect(),
            anomalies: report
                .findings
                .iter()
                .map(|found| AnomalyFound::new(history, found, accused))
                .collect(),
            anomalous: report.anomalous,
            harmless: report.harmless,
            lost_between: report.lost_between.as_ref().map(|lost| AnomalyFound {
                count: lost.count,
                ..AnomalyFound::new(history, &lost.example, None)
            }),
            written_back: report.written_back.as_ref().map(WrittenBack::of),
            mixed: report.mixed.as_ref().map(|mixed| MixedVerdict::new(history, report, mixed)),
            cleared: report.cleared.as_ref().map(ClearedTransactions::of),
            unsearched: unsearched(history),
            between: report.between.iter().map(StatementDependencies::of).collect(),
            examined: report.examined.into(),
            blind: report.blind.iter().map(ToString::to_string).collect(),
            check_s: took.as_secs_f64(),
        }
    }

    /// No verdict, because the history isn't there.
    pub fn missing(promised: Option<Guarantee>, reason: String) -> Verdict {
        let promised = promised.map(|guarantee| guarantee.to_string());
        Verdict { promised, withheld: vec![Withheld { reason, doubtful: false }], ..Verdict::default() }
    }

    /// Committed attempts that show an anomaly by the data alone. One at least, if there is any.
    pub(crate) fn anomalous(&self) -> u64 {
        let by_data = self.anomalies.iter().any(|anomaly| anomaly.order == Order::Data.name());
        self.anomalous.max(by_data.into())
    }

    /// True if the history contradicts itself, so that it is evidence of nothing.
    pub fn is_doubtful(&self) -> bool {
        self.withheld.iter().any(|withheld| withheld.doubtful)
    }

    /// True if the history doesn't contradict a model, leaving sessions and real time aside.
    pub fn allows(&self, model: Model) -> bool {
        one_implies(&self.not_contradicted, model)
    }
}

impl WrittenBack {
    fn of(found: &check::WrittenBack) -> WrittenBack {
        let statement = |one: &check::WritingBack| WritingBack {
            statement: one.statement.clone(),
            columns: one.columns.clone(),
        };
        WrittenBack {
            transactions: found.transactions,
            anomalies: found.anomalies.iter().map(|anomaly| anomaly.facts().name.to_owned()).collect(),
            statements: found.statements.iter().map(statement).collect(),
        }
    }
}

impl WritingBack {
    /// Its place, as in "save.sql:4", with the columns in brackets.
    pub fn place(&self) -> String {
        let place = place_of(&self.statement).unwrap_or(&self.statement);
        format!("{place} ({})", self.columns.join(", "))
    }
}

impl MixedVerdict {
    fn new(history: &History, report: &Report, mixed: &MixedReport) -> MixedVerdict {
        let judged = report.verdict.withheld.is_empty();
        let broken = |Broken { finding, why }: &Broken| {
            let mut anomaly = AnomalyFound::new(history, finding, None);
            anomaly.breaks_promise = true;
            BrokenPromise { promise: why.clone(), anomaly }
        };
        MixedVerdict {
            levels: mixed.levels.iter().map(LevelTransactions::of).collect(),
            serializable: judged.then(|| report.is_serializable()),
            broken: mixed.broken.iter().filter(|_| judged).map(broken).collect(),
            permitted: mixed.permitted.iter().map(LevelTransactions::of).collect(),
        }
    }
}

impl LevelTransactions {
    fn of(count: &LevelCount) -> LevelTransactions {
        LevelTransactions { level: count.level, transactions: count.transactions }
    }
}

/// True if one of the guarantees named implies a model, leaving sessions and real time aside.
fn one_implies(guarantees: &[String], model: Model) -> bool {
    let plain = Guarantee::of(model);
    let mut named = guarantees.iter().filter_map(|name| name.parse::<Guarantee>().ok());
    named.any(|guarantee| guarantee.implies(plain))
}

impl AnomalyFound {
    fn new(history: &History, found: &Finding, promised: Option<Guarantee>) -> AnomalyFound {
        let facts = Anomaly::facts(found.anomaly);
        let graph = Graph::of(history, found);
        let transaction = |node: graph::Node| WitnessTransaction { name: node.name, client: node.client };
        let arrow = |arrow: graph::Arrow| WitnessArrow { from: arrow.from, to: arrow.to, label: arrow.label };
        AnomalyFound {
            name: facts.name.to_owned(),
            known_as: known_as(history, found).to_owned(),
            order: found.order.name().to_owned(),
            count: found.count.found,
            at_least: !found.count.complete,
            breaks_promise: promised.is_some_and(|promised| found.contradicts(promised)),
            witness: found.witness.steps.iter().map(|step| step.why.clone()).collect(),
            statements: if found.witness.steps.iter().all(|step| step.statements.is_empty()) {
                Vec::new()
            } else {
                found.witness.steps.iter().map(|step| step.statements.clone()).collect()
            },
            transactions: graph.transactions.into_iter().map(transaction).collect(),
            arrows: graph.arrows.into_iter().map(arrow).collect(),
        }
    }

    /// Where the statements of its example stand, those of the first step that names any:
    /// "reserve.sql:4 → reserve.sql:6". `None` unless rows were observed.
    pub fn place(&self) -> Option<String> {
        let places = |step: &Vec<String>| {
            let places: Vec<&str> = step.iter().filter_map(|statement| place_of(statement)).collect();
            (!places.is_empty()).then(|| places.join(" → "))
        };
        self.statements.iter().find_map(places)
    }

    /// The scripts of the statements of its example, each once; empty unless rows were observed.
    pub fn scripts(&self) -> Vec<&str> {
        let places = self.statements.iter().flatten().filter_map(|statement| place_of(statement));
        distinct(places.filter_map(|place| Some(place.rsplit_once(':')?.0)))
    }

    /// The witness as a graph; without transactions if the document is of a version that had none.
    pub fn graph(&self) -> Graph {
        let why = |index: usize| self.witness.get(index).cloned().unwrap_or_default();
        Graph {
            title: format!("{}, {}", self.name, self.known_as),
            transactions: self
                .transactions
                .iter()
                .map(|transaction| graph::Node {
                    name: transaction.name.clone(),
                    client: transaction.client.clone(),
                })
                .collect(),
            arrows: self
                .arrows
                .iter()
                .enumerate()
                .map(|(index, arrow)| graph::Arrow {
                    from: arrow.from,
                    to: arrow.to,
                    label: arrow.label.clone(),
                    why: why(index),
                })
                .collect(),
        }
    }
}

/// The common name of an anomaly: write skew that only a transaction which writes nothing makes
/// visible has one of its own (Fekete, O'Neil and O'Neil 2004).
fn known_as(history: &History, found: &Finding) -> &'static str {
    let wrote = |transaction: usize| {
        let read = |operation: &Operation<'_>| {
            matches!(
                operation,
                Operation::Read { .. }
                    | Operation::ReadList { .. }
                    | Operation::ReadGroup { .. }
                    | Operation::Missed { .. }
            )
        };
        history.operations(transaction).any(|operation| !read(&operation))
    };
    let steps = &found.witness.steps;
    let skew = matches!(found.anomaly, Anomaly::G2Item | Anomaly::G2) && found.order == Order::Data;
    if skew && steps.iter().any(|step| !wrote(step.from)) {
        "read-only anomaly"
    } else {
        Anomaly::facts(found.anomaly).known_as
    }
}

/// See [`Verdict::unsearched`].
fn unsearched(history: &History) -> Vec<String> {
    let Some(seen) = history.provenance() else { return Vec::new() };
    let statements = seen.unsearched.iter().filter_map(|number| seen.statements.get(usize::from(*number)));
    distinct(statements.filter_map(|statement| place_of(statement)).map(str::to_owned))
}

/// The place of a statement that is named with file and line: "orders:7" of "orders:7: SELECT …".
fn place_of(statement: &str) -> Option<&str> {
    let ends = statement.match_indices(": ").map(|(end, _)| &statement[..end]);
    let numbered = |place: &&str| {
        let line = place.rsplit_once(':').map_or("", |(_, line)| line);
        !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
    };
    ends.into_iter().find(numbered)
}

impl From<Examined> for ExaminedHistory {
    fn from(examined: Examined) -> Self {
        ExaminedHistory {
            committed: examined.committed,
            aborted: examined.aborted,
            unknown: examined.unknown,
            operations: examined.operations,
            write_write: examined.write_write,
            write_read: examined.write_read,
            read_write: examined.read_write + examined.predicate,
        }
    }
}

/// The verdicts of all rounds of a cell taken together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct VerdictSummary {
    /// The strongest models that no round contradicts, leaving sessions and real time aside; empty
    /// if even read uncommitted is contradicted, or if the verdict is withheld.
    pub models: Vec<String>,
    /// The promise.
    pub promised: Option<String>,
    /// False if a round's history contradicts what is promised; null if nothing is, or if the
    /// verdict is withheld.
    pub kept: Option<bool>,
    /// The reasons why verdicts of rounds are withheld, each once. One withheld verdict withholds
    /// that of all rounds, unless the history of a round is incomplete only, and another one shows
    /// a broken promise.
    pub withheld: Vec<String>,
    /// Committed attempts that were looked at, of all rounds, warm-ups included.
    pub committed: u64,
    /// Committed attempts of all rounds that show an anomaly by the data alone; those that show one
    /// only by the order of sessions or real time, which no level of SQL promises, are among
    /// `kinds` only.
    pub anomalies: u64,
    /// True if there may be more.
    pub at_least: bool,
    /// The same per million committed attempts; null if there was none.
    pub anomalies_per_million: Option<f64>,
    /// The kinds with their own counts, the gravest first; an attempt may show several.
    pub kinds: Vec<AnomalyCount>,
    /// Committed attempts of all rounds that show an anomaly only through rows that they read and
    /// didn't use.
    pub harmless: u64,
    /// What could matter and wasn't seen, a clause for each statement: "reserve.sql:4 decides an
    /// INSERT". If there is any, that nothing was found says little. Empty if the snapshots of all rounds
    /// clear everything (`cleared`).
    pub unseen: Vec<String>,
    /// What the snapshots of all rounds say of attempts that read unseen. Missing unless all rounds
    /// have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared: Option<ClearedTransactions>,
    /// Values that were read in one transaction and written in another, which no level protects, a
    /// clause each: "edit.sql:4 writes what edit.sql:3 read in another transaction".
    pub carried: Vec<String>,
    /// True if no transaction of any round was seen to read or overwrite what another one wrote, so
    /// that no anomaly could show.
    pub nothing_shared: bool,
}

/// The anomalies that applications meet, by the level that it takes to prevent them. Those that any
/// level prevents come last: a server that shows them has broken a promise, which is said first.
const GRAVEST_FIRST: [Anomaly; 16] = [
    Anomaly::G2Item,
    Anomaly::G2,
    Anomaly::LostUpdate,
    Anomaly::GNonadjacent,
    Anomaly::GNonadjacentPredicate,
    Anomaly::GSingle,
    Anomaly::GSinglePredicate,
    Anomaly::G1c,
    Anomaly::G1b,
    Anomaly::G1a,
    Anomaly::G0,
    Anomaly::DirtyUpdate,
    Anomaly::DuplicateWrite,
    Anomaly::IncompatibleOrder,
    Anomaly::Internal,
    Anomaly::GarbageRead,
];

/// The number of anomalies of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AnomalyCount {
    /// The common name.
    pub known_as: String,
    /// The name in the literature.
    pub name: String,
    /// The orders that are needed to show it: "data", "session" or "real time".
    pub order: String,
    /// The number.
    pub count: u64,
}

impl AnomalyCount {
    fn of(found: &AnomalyFound) -> AnomalyCount {
        AnomalyCount {
            known_as: found.known_as.clone(),
            name: found.name.clone(),
            order: found.order.clone(),
            count: found.count,
        }
    }

    /// Its place among the kinds, the gravest first: the one that takes the strongest level to
    /// prevent. Those that the data alone show come first.
    fn gravity(&self) -> (usize, usize) {
        let order = [Order::Data, Order::Session, Order::RealTime];
        let order = order.iter().position(|order| order.name() == self.order).unwrap_or(order.len());
        let kind = GRAVEST_FIRST.iter().position(|anomaly| anomaly.facts().name == self.name);
        (order, kind.unwrap_or(GRAVEST_FIRST.len()))
    }

    /// Adds up the counts of each kind, in the order in which the kinds come first.
    pub fn add_up(counts: impl Iterator<Item = AnomalyCount>) -> Vec<AnomalyCount> {
        let mut kinds: Vec<AnomalyCount> = Vec::new();
        for count in counts {
            match kinds.iter_mut().find(|kind| kind.name == count.name && kind.order == count.order) {
                Some(kind) => kind.count = kind.count.saturating_add(count.count),
                None => kinds.push(count),
            }
        }
        kinds
    }
}

impl VerdictSummary {
    /// Takes the verdicts of rounds together; `None` of none.
    pub fn of(verdicts: &[&Verdict]) -> Option<VerdictSummary> {
        let first = verdicts.first()?;
        let withheld = reasons(verdicts);
        let kept = kept(verdicts, !withheld.is_empty());
        let judged = withheld.is_empty() || kept == Some(false);
        let allowed: Vec<Model> = Model::ALL
            .into_iter()
            .filter(|model| judged && verdicts.iter().all(|verdict| verdict.allows(*model)))
            .collect();
        let strongest = Model::strongest(&allowed).into_iter().map(|model| model.name().to_owned());
        let found = || verdicts.iter().flat_map(|verdict| &verdict.anomalies);
        let mut kinds = AnomalyCount::add_up(found().map(AnomalyCount::of));
        kinds.sort_by_key(AnomalyCount::gravity);
        let committed =
            verdicts.iter().map(|verdict| verdict.examined.committed).fold(0, u64::saturating_add);
        let anomalies = verdicts.iter().map(|verdict| verdict.anomalous()).fold(0, u64::saturating_add);
        Some(VerdictSummary {
            models: strongest.collect(),
            promised: first.promised.clone(),
            kept,
            withheld,
            committed,
            anomalies,
            at_least: found().any(|anomaly| anomaly.at_least),
            anomalies_per_million: (committed > 0 && judged)
                .then(|| anomalies as f64 * 1e6 / committed as f64),
            kinds,
            harmless: verdicts.iter().map(|verdict| verdict.harmless).fold(0, u64::saturating_add),
            unseen: Vec::new(),
            cleared: ClearedTransactions::sum(verdicts.iter().copied()),
            carried: Vec::new(),
            nothing_shared: verdicts.iter().all(|verdict| !verdict.examined.shares()),
        })
    }

    /// True if no round contradicts a model, leaving sessions and real time aside.
    pub fn allows(&self, model: Model) -> bool {
        one_implies(&self.models, model)
    }
}

/// The reasons why verdicts of rounds are withheld, each once.
fn reasons(verdicts: &[&Verdict]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for withheld in verdicts.iter().flat_map(|verdict| &verdict.withheld) {
        if !reasons.contains(&withheld.reason) {
            reasons.push(withheld.reason.clone());
        }
    }
    reasons
}

/// True if all rounds together keep the promise.
fn kept(verdicts: &[&Verdict], withheld: bool) -> Option<bool> {
    if verdicts.iter().any(|verdict| verdict.is_doubtful()) {
        return None;
    }
    let kept = verdicts.iter().map(|verdict| verdict.kept).reduce(both)?;
    kept.filter(|kept| !(withheld && *kept))
}

/// Two rounds taken together: broken once is broken.
fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_kind_comes_first() {
        let found = |anomaly: Anomaly, order: Order, count| AnomalyFound {
            name: anomaly.facts().name.to_owned(),
            known_as: anomaly.facts().known_as.to_owned(),
            order: order.name().to_owned(),
            count,
            ..AnomalyFound::default()
        };
        let verdict = Verdict {
            anomalies: vec![
                found(Anomaly::G2, Order::RealTime, 900),
                found(Anomaly::GSingle, Order::Data, 300),
                found(Anomaly::LostUpdate, Order::Data, 121),
                found(Anomaly::G2Item, Order::Data, 102),
            ],
            ..Verdict::default()
        };
        let summary = VerdictSummary::of(&[&verdict]).expect("a verdict");
        let named: Vec<&str> = summary.kinds.iter().map(|kind| kind.known_as.as_str()).collect();
        assert_eq!(named, ["write skew", "lost update", "read skew", "write skew on a predicate"]);
    }

    #[test]
    fn every_anomaly_has_a_gravity() {
        for anomaly in Anomaly::ALL {
            assert!(GRAVEST_FIRST.contains(&anomaly), "{anomaly:?}");
        }
    }

    #[test]
    fn the_place_of_an_example_is_script_and_line() {
        let found = |statements: &[&[&str]]| AnomalyFound {
            statements: statements
                .iter()
                .map(|step| step.iter().map(|&one| one.to_owned()).collect())
                .collect(),
            ..AnomalyFound::default()
        };
        let of_two = found(&[&[], &["orders:7: SELECT 1", "orders:15: UPDATE t"]]);
        assert_eq!(of_two.place().as_deref(), Some("orders:7 → orders:15"));
        let builtin = found(&[&["<builtin: TPC-B (sort of)>:9: UPDATE t SET a = 'x:1: y'"]]);
        assert_eq!(builtin.place().as_deref(), Some("<builtin: TPC-B (sort of)>:9"));
        assert_eq!(found(&[]).place(), None);
        assert_eq!(found(&[&["SELECT 1"]]).place(), None);
    }
}
