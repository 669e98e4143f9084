//! The result of a check: what was examined, the findings with their witnesses, and the verdict.

use serde::{Deserialize, Serialize};

use super::doubt::{Doubt, DoubtKind};
use crate::anomaly::Anomaly;
use crate::level::Level;
use crate::model::{Guarantee, Model, Order};
use crate::promise::LevelPromises;

/// The reason that one transaction must precede another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// True for an anti-dependency.
    pub const fn is_anti(self) -> bool {
        matches!(self, Dependency::ReadWrite | Dependency::PredicateReadWrite)
    }

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessStep {
    /// The preceding transaction, as an index into [`crate::History::transactions`].
    pub from: usize,
    /// The following transaction; the same one if the fact concerns only one transaction.
    pub to: usize,
    /// The dependency; `None` if the anomaly isn't a cycle.
    pub dependency: Option<Dependency>,
    /// The proof as a sentence, with the values: "T7 read version 5 of registers 12, T9 wrote
    /// version 6".
    pub why: String,
    /// The SQL statements of both sides, first that of the preceding transaction, each with file and
    /// line; empty unless the history was observed.
    pub statements: Vec<String>,
}

/// The proof of an anomaly. The steps of a cycle are in order, and the last one leads back to the
/// start of the first.
///
/// If the order of versions had to be inferred, the orders come first, as facts. They hold if any
/// order of the versions fits the weakest guarantee that is contradicted, and the cycle shows that
/// none does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The steps; never empty.
    pub steps: Vec<WitnessStep>,
    /// True if the history is known to have no smaller cycle of this kind; false if the search
    /// ended before that was known.
    pub smallest: bool,
}

impl Witness {
    /// True if it rests on an inferred order of versions.
    pub fn is_inferred(&self) -> bool {
        let dependencies = self.steps.iter().filter(|step| step.dependency.is_some()).count();
        0 < dependencies && dependencies < self.steps.len()
    }
}

/// The number of times an anomaly was found. `docs/reference/metrics.md` defines what is counted
/// for each anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The number found.
    pub found: u64,
    /// False if the search was cut short, so that there may be more.
    pub complete: bool,
}

/// An anomaly that the history shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Rows whose version order a second source confirmed.
    pub confirmed_orders: u64,
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
    /// Rows of this many transactions weren't seen, for this reason.
    Incomplete {
        /// The number of transactions.
        attempts: u64,
        /// The reason, of the first.
        why: String,
    },
    /// The order of this many pairs of versions of the same row is unknown, even if the strongest
    /// guarantees that aren't contradicted are assumed.
    UndecidedOrder(u64),
    /// What this many searches missed is unknown, because rows of their tables may have been written
    /// unseen, or because there were too many.
    Searches(u64),
    /// Two sources tell different orders of the versions of this many rows, of which nothing is
    /// claimed.
    OrdersDiffer(u64),
    /// This many reads were of versions whose writers weren't seen. They were left out.
    UnseenWriters(u64),
    /// For this many guarantees, the search for the order of versions was cut short.
    OrderNotInferred(u64),
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
    /// False if an anomaly contradicts the promise, or that to one of the transactions
    /// ([`Report::mixed`]); `None` if there was no promise, if it includes an order that was not
    /// checked, or if the verdict is withheld.
    pub kept: Option<bool>,
    /// The reasons for withholding the verdict; empty if there is one.
    pub withheld: Vec<Doubt>,
}

/// Anomalies that show only if values that were read in one transaction and written in another are
/// taken to be of one transaction. No level promises to prevent them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostBetween {
    /// The number of transactions that wrote what had changed since it was read.
    pub count: u64,
    /// The gravest kind, with a proof.
    pub example: Finding,
}

/// Statements that write back columns as their transactions read them, as object-relational mappers do
/// that save whole rows, and what the history would show without that: transactions that change
/// different columns of a row would then not depend on each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenBack {
    /// The statements that write them; never empty.
    pub statements: Vec<WritingBack>,
    /// The number of transactions that show an anomaly only because of this; see
    /// [`Report::anomalous`].
    pub transactions: u64,
    /// The anomalies that the history shows only because of this, in the order of [`Anomaly::ALL`].
    pub anomalies: Vec<Anomaly>,
}

/// A statement that writes back columns as its transaction read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritingBack {
    /// The statement, with file and line.
    pub statement: String,
    /// The names of the columns; never empty.
    pub columns: Vec<String>,
}

/// A history of transactions at several levels: what each is promised, and whether it got it.
///
/// Whether the history is serializable as a whole is a question of [`Report::findings`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixedReport {
    /// The promises of the server's manual.
    pub promises: LevelPromises,
    /// The number of committed transactions at each level.
    pub levels: Vec<LevelCount>,
    /// The broken promises, at most one for each anomaly; in the order of [`Anomaly::ALL`]. The
    /// counts are those of what breaks a promise.
    pub broken: Vec<Broken>,
    /// The transactions that lie on cycles of the data, and only on those that nothing promised to
    /// prevent, at each level.
    pub permitted: Vec<LevelCount>,
}

/// A number of transactions at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelCount {
    /// The level; `None` for those whose level isn't known.
    pub level: Option<Level>,
    /// The number of transactions.
    pub transactions: u64,
}

/// A broken promise to some transactions of a mixed history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// What breaks it.
    pub finding: Finding,
    /// The promise and to which transactions it was made, a sentence without its full stop.
    pub why: String,
}

impl MixedReport {
    /// The number of transactions that lie only on cycles that nothing promised to prevent.
    pub fn permitted(&self) -> u64 {
        self.permitted.iter().map(|count| count.transactions).sum()
    }
}

/// The dependencies of transactions on others by two SQL statements, counted by row as in
/// [`Examined::write_write`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementDependencies {
    /// The statement of the transaction that comes first, with file and line.
    pub first: String,
    /// That of the transaction that follows.
    pub then: String,
    /// The kind.
    pub dependency: Dependency,
    /// Their number.
    pub count: u64,
}

/// What snapshots say of transactions that may have read more than they showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// The number of such transactions that were committed.
    pub dark: u64,
    /// The number of those that no cycle of the data leads through, whatever they read.
    pub cleared: u64,
    /// The reason why none is cleared, a clause, if it isn't what the transactions did.
    pub why_not: Option<String>,
}

impl Cleared {
    /// The number of transactions that aren't cleared. They aren't accused of anything either.
    pub fn open(&self) -> u64 {
        self.dark.saturating_sub(self.cleared)
    }

    /// The same, if the order of so many pairs of versions isn't known.
    pub(super) fn if_decided(self, undecided: u64) -> Cleared {
        if undecided == 0 {
            return self;
        }
        let why = || format!("the order of {undecided} pairs of versions of the same row is unknown");
        Cleared { cleared: 0, why_not: Some(self.why_not.unwrap_or_else(why)), ..self }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The extent of the check.
    pub examined: Examined,
    /// The findings, at most one for each anomaly, with the fewest orders that show it; in the
    /// order of [`Anomaly::ALL`].
    pub findings: Vec<Finding>,
    /// The number of transactions that show an anomaly by the data alone: that did or read what the
    /// anomaly consists of, that wrote over an update which they hadn't read (lost update), or that
    /// read, in a cycle that was counted, what another transaction of the cycle replaced (of cycles
    /// without anti-dependencies, all transactions). A lower bound if a count isn't complete.
    pub anomalous: u64,
    /// The number of further transactions that show an anomaly only through rows that they read and
    /// didn't use, where that is known ([`super::by_use`]).
    pub harmless: u64,
    /// What was lost because values were carried from one transaction to another.
    pub lost_between: Option<LostBetween>,
    /// The anomalies that show only because columns are written back as they were read, where that is
    /// known ([`super::by_use`]).
    pub written_back: Option<WrittenBack>,
    /// What the history's levels promise, if they promise different things.
    pub mixed: Option<MixedReport>,
    /// What snapshots say of transactions that may have read more than they showed; `None` if they
    /// weren't asked for.
    pub cleared: Option<Cleared>,
    /// The dependencies between different transactions by the statements of both, in the order of these,
    /// if they were asked for ([`super::Options::between`]) and the history was observed.
    pub between: Vec<StatementDependencies>,
    /// The conclusion.
    pub verdict: Verdict,
    /// The limits of the check.
    pub blind: Vec<Blind>,
}

/// True if the promise was kept, after checking orders up to `most`.
pub(super) fn kept(findings: &[Finding], most: Order, promised: Guarantee) -> Option<bool> {
    let contradicted = findings.iter().any(|finding| finding.contradicts(promised));
    if contradicted { Some(false) } else { (promised.order <= most).then_some(true) }
}

/// The doubt about a history in which nothing happened.
pub(super) fn nothing_checked(examined: &Examined) -> Option<Doubt> {
    let nothing = examined.committed + examined.proved_committed == 0 || examined.operations == 0;
    nothing.then(|| Doubt { kind: DoubtKind::NothingChecked, count: 1, example: String::new() })
}

impl Report {
    /// True if the data alone don't contradict that the history is serializable as a whole.
    pub fn is_serializable(&self) -> bool {
        !self.findings.iter().any(|finding| finding.contradicts(Guarantee::of(Model::Serializable)))
    }

    /// Withholds the verdict because transactions are missing, for this reason. A broken promise
    /// shown by the others remains valid.
    pub fn cut(&mut self, why: String) {
        if self.verdict.kept == Some(false) {
            return;
        }
        let doubts = &mut self.verdict.withheld;
        match doubts.iter_mut().find(|doubt| doubt.kind == DoubtKind::NothingChecked) {
            Some(nothing) => nothing.example = why,
            None => doubts.insert(0, Doubt { kind: DoubtKind::Cut, count: 1, example: why }),
        }
        let doubts = std::mem::take(doubts);
        self.verdict = self.verdict.clone().withheld(doubts);
    }
}

impl Verdict {
    /// Withholds the verdict for these reasons.
    pub(super) fn withheld(self, doubts: Vec<Doubt>) -> Verdict {
        if doubts.is_empty() {
            return self;
        }
        Verdict { not_contradicted: Vec::new(), kept: None, withheld: doubts, ..self }
    }
}
