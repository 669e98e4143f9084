//! Checks a history: dependencies, anomalies with witnesses, and the verdict.
//!
//! Here are the question ([`Options`]) and the answer ([`Report`]); how the one comes from the other stands in `check/…`.

use crate::anomaly::Anomaly;
use crate::history::History;
use crate::model::{Guarantee, Order};

/// What a check is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// What was promised; the verdict says whether it was kept.
    pub promised: Option<Guarantee>,
    /// Up to which order to look for contradictions: [`Order::RealTime`] looks at everything.
    pub order: Order,
    /// Up to how many steps of the search for cycles are made for counting, per anomaly; what isn't counted then is said.
    pub effort: u64,
}

impl Default for Options {
    /// Everything, nothing promised.
    fn default() -> Options {
        Options { promised: None, order: Order::RealTime, effort: 200_000_000 }
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
    /// Anti-dependency by a predicate: the second made a row that the first's predicate read would have found.
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
pub struct Step {
    /// The transaction that comes first, as an index into [`History::transactions`].
    pub from: usize,
    /// The one that must come later; the same one if the fact concerns one transaction only.
    pub to: usize,
    /// Why; `None` if the anomaly is no cycle.
    pub dependency: Option<Dependency>,
    /// The proof in words, with the values: "T7 read version 5 of registers 12, T9 wrote version 6".
    pub why: String,
}

/// What proves an anomaly: of a cycle the steps in order, the last one leading back to where the first one began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// The steps; never empty.
    pub steps: Vec<Step>,
    /// True if no smaller cycle of this kind exists in the history; false if the search ended before that was known.
    pub smallest: bool,
}

/// How often an anomaly was found. What one of them is, is said by the anomaly's row in `docs/reference/metrics.md`.
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
    /// Of those of unknown outcome, how many a committed transaction's reads, or the version order, prove to be committed.
    pub proved_committed: u64,
    /// Operations of all transactions.
    pub operations: u64,
    /// Distinct write-write dependencies between different transactions.
    pub write_write: u64,
    /// Write-read dependencies.
    pub write_read: u64,
    /// Anti-dependencies of rows.
    pub read_write: u64,
    /// Anti-dependencies of predicates.
    pub predicate: u64,
}

/// Something that the check could not see, so that it may have missed anomalies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blind {
    /// No transaction read by a predicate, so phantoms can't show.
    NoPredicates,
    /// So many transactions have an unknown outcome, and nothing proves that they committed: their writes were left out.
    UnknownOutcomes(u64),
    /// So many transactions were carried out and are not in the history.
    Dropped(u64),
    /// So many pairs of versions of a row whose order nothing tells.
    UndecidedOrder(u64),
    /// No instants, so real time was not looked at.
    NoInstants,
    /// No transaction wrote something that another read or overwrote: nothing could have shown.
    NothingShared,
}

/// What follows for the level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The strongest guarantees that the history doesn't contradict, none of which implies another; empty if it contradicts
    /// even read uncommitted. This is no proof that the server gives them.
    pub not_contradicted: Vec<Guarantee>,
    /// What was promised.
    pub promised: Option<Guarantee>,
    /// False if an anomaly contradicts what was promised; `None` if nothing was.
    pub kept: Option<bool>,
}

/// Checks a history.
pub fn check(history: &History, options: &Options) -> Report {
    let _ = history;
    Report {
        examined: Examined::default(),
        findings: Vec::new(),
        verdict: Verdict { not_contradicted: Vec::new(), promised: options.promised, kept: None },
        blind: Vec::new(),
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How much was looked at.
    pub examined: Examined,
    /// What was found, each anomaly at most once, with the fewest orders that show it; in the order of [`Anomaly::ALL`].
    pub findings: Vec<Finding>,
    /// What follows.
    pub verdict: Verdict,
    /// What couldn't be seen.
    pub blind: Vec<Blind>,
}
