//! Why a verdict is withheld: what makes it likelier that the history is wrong than that the
//! database is.
//!
//! A history that somebody wrote down leaves things out: a statement without its line `--@ write`,
//! a counter that one script forgets to raise, values that two transactions share. What then looks
//! like a read of something that nobody wrote says nothing about the database. So a doubt withholds
//! the verdict; what was found is still shown. Not here: where doubts arise (`registers.rs`,
//! `lists.rs`, `groups.rs`).

use std::fmt;

use super::found::Found;
use super::words::grouped;
use super::{Examined, Finding, Report, Verdict};
use crate::anomaly::Anomaly;

/// What is doubtful about a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DoubtKind {
    /// No committed transaction did anything, so nothing was checked.
    NothingChecked,
    /// Transactions are missing, because the history couldn't be kept; others are there.
    Cut,
    /// Several transactions wrote the same value into one row, or appended the same element, so
    /// that nobody knows whose was read.
    NotUnique,
    /// What was read fits nothing that was written, in a history that nobody vouches for: a write
    /// may have been left out.
    Unexplained,
    /// A version counter that doesn't rise with every write.
    Counter,
    /// The promise is contradicted only if a value that nobody wrote was there from the start.
    Assumed,
}

/// A reason for withholding a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// Which.
    pub kind: DoubtKind,
    /// How often it was met.
    pub count: u64,
    /// The first case, with transactions and row; empty if there is none to show.
    pub example: String,
}

impl Doubt {
    /// True if the history contradicts itself, so that nothing in it counts; false if there was
    /// nothing to look at.
    pub fn is_contradiction(&self) -> bool {
        !matches!(self.kind, DoubtKind::NothingChecked | DoubtKind::Cut)
    }
}

impl fmt::Display for Doubt {
    /// A sentence without its full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DoubtKind::NothingChecked if !self.example.is_empty() => "nothing was checked",
            DoubtKind::NothingChecked => {
                return f.write_str(
                    "nothing was checked: the history has no committed transaction that read or wrote anything",
                );
            }
            DoubtKind::Cut => "the history is not complete",
            DoubtKind::NotUnique => "the values that tell who wrote a version are not unique",
            DoubtKind::Unexplained => "the history does not account for what was read, so a write is probably missing from it",
            DoubtKind::Counter => "a version counter does not seem to rise with every write",
            DoubtKind::Assumed => {
                "the contradiction rests on taking values that nobody wrote for initial ones; state the initial values"
            }
        })?;
        write!(f, ": {}", self.example)?;
        if self.count > 1 { write!(f, " ({} such cases)", grouped(self.count)) } else { Ok(()) }
    }
}

/// The doubts so far, at most one of each kind.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Vec<Doubt>);

impl Doubts {
    /// Counts a doubt; the first one of its kind is the example.
    pub(super) fn note(&mut self, kind: DoubtKind, count: u64, example: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|doubt| doubt.kind == kind) {
            Some(doubt) => doubt.count = doubt.count.saturating_add(count),
            None => self.0.push(Doubt { kind, count, example: example() }),
        }
    }

    /// Joins those of another part of the same history.
    pub(crate) fn join(&mut self, doubts: Vec<Doubt>) {
        for Doubt { kind, count, example } in doubts {
            self.note(kind, count, || example);
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, in the order of their kinds.
    pub(crate) fn into_vec(mut self) -> Vec<Doubt> {
        self.0.sort_by_key(|doubt| doubt.kind);
        self.0
    }
}

/// True if the anomaly is no cycle but a contradiction within the history: no database has a level
/// that permits it, and a history in which something is missing shows it.
fn is_contradiction(anomaly: Anomaly) -> bool {
    matches!(
        anomaly,
        Anomaly::GarbageRead | Anomaly::Internal | Anomaly::IncompatibleOrder | Anomaly::DuplicateWrite
    )
}

/// The doubts about a history, whatever the verdict would be. What can't be explained is a doubt
/// unless somebody vouches for the history.
pub(super) fn doubts(found: &mut Found, vouched: bool) -> Doubts {
    let mut doubts = std::mem::take(&mut found.doubts);
    let unique = !doubts.0.iter().any(|doubt| doubt.kind == DoubtKind::NotUnique);
    for finding in found.findings().filter(|_| !vouched) {
        let explained = finding.anomaly == Anomaly::DuplicateWrite && !unique;
        if is_contradiction(finding.anomaly) && !explained {
            doubts.note(DoubtKind::Unexplained, finding.count.found, || example(finding));
        }
    }
    doubts
}

fn example(finding: &Finding) -> String {
    finding.witness.steps.first().map(|step| step.why.clone()).unwrap_or_default()
}

/// The doubt about a history in which nothing happened.
pub(crate) fn nothing_checked(examined: &Examined) -> Option<Doubt> {
    let nothing = examined.committed + examined.proved_committed == 0 || examined.operations == 0;
    nothing.then(|| Doubt { kind: DoubtKind::NothingChecked, count: 1, example: String::new() })
}

impl Report {
    /// Withholds the verdict because transactions are missing, for this reason. What the rest shows
    /// of a broken promise stands.
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
    /// No verdict, for these reasons.
    pub(crate) fn withheld(self, doubts: Vec<Doubt>) -> Verdict {
        if doubts.is_empty() {
            return self;
        }
        Verdict { not_contradicted: Vec::new(), kept: None, withheld: doubts, ..self }
    }
}
