//! Reasons for withholding a verdict: signs that the history is more likely wrong than the
//! database.
//!
//! A history annotated by hand can be incomplete: a statement without its line `--@ write`, a
//! counter that one script forgets to increment, values shared by two transactions. The resulting
//! reads of unwritten versions prove nothing about the database. So a doubt withholds the verdict,
//! but findings are still shown. Doubts arise in `registers.rs`, `lists.rs` and `groups.rs`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::grouped::grouped;

/// A kind of doubt about a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DoubtKind {
    /// No committed transaction did anything, so nothing was checked.
    NothingChecked,
    /// Transactions are missing, because the history couldn't be kept, but others are present.
    Cut,
    /// Several transactions wrote the same value to a row, or appended the same element, so a read
    /// can't be attributed to one of them.
    NotUnique,
    /// A read doesn't match any write, in a history that isn't vouched for: a write may have been
    /// left out.
    Unexplained,
    /// A version counter that doesn't increase with every write.
    Counter,
    /// The promise is contradicted only if an unwritten value was the initial one.
    Assumed,
}

/// A reason for withholding a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// The kind.
    pub kind: DoubtKind,
    /// The number of occurrences.
    pub count: u64,
    /// The first occurrence, with transactions and row; empty if there is none to show.
    pub example: String,
}

impl Doubt {
    /// True if the history contradicts itself, so that it isn't evidence of anything; false if
    /// there was nothing to check.
    pub fn is_contradiction(&self) -> bool {
        !matches!(self.kind, DoubtKind::NothingChecked | DoubtKind::Cut)
    }
}

impl fmt::Display for Doubt {
    /// Writes a sentence without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DoubtKind::NothingChecked if !self.example.is_empty() => "nothing was checked",
            DoubtKind::NothingChecked => {
                return f.write_str(
                    "nothing was checked: the history has no committed transaction that read or wrote anything",
                );
            }
            DoubtKind::Cut => "the history is not complete",
            DoubtKind::NotUnique => "the values that identify the writers of versions are not unique",
            DoubtKind::Unexplained => "the history does not account for what was read, so a write \
                                       is probably missing from it",
            DoubtKind::Counter => "a version counter does not seem to rise with every write",
            DoubtKind::Assumed => {
                "the contradiction depends on taking unwritten values for initial ones; state the initial values"
            }
        })?;
        write!(f, ": {}", self.example)?;
        if self.count > 1 { write!(f, " ({} such cases)", grouped(self.count)) } else { Ok(()) }
    }
}

/// The doubts so far, at most one of each kind.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Doubts {
    /// Each with the place where it was first noted.
    all: Vec<(u32, Doubt)>,
    /// The place of what is noted.
    pub(super) place: u32,
}

impl Doubts {
    /// Counts a doubt; the first one of its kind becomes the example.
    pub(super) fn note(&mut self, kind: DoubtKind, count: u64, example: impl FnOnce() -> String) {
        match self.all.iter_mut().find(|(_, doubt)| doubt.kind == kind) {
            Some((_, doubt)) => doubt.count = doubt.count.saturating_add(count),
            None => self.all.push((self.place, Doubt { kind, count, example: example() })),
        }
    }

    /// Adds doubts; of each kind the one with the first place is the example.
    pub(super) fn join(&mut self, doubts: Doubts) {
        for (place, doubt) in doubts.all {
            match self.all.iter_mut().find(|(_, known)| known.kind == doubt.kind) {
                Some((first, known)) => {
                    let count = known.count.saturating_add(doubt.count);
                    if place < *first {
                        (*first, *known) = (place, doubt);
                    }
                    known.count = count;
                }
                None => self.all.push((place, doubt)),
            }
        }
    }

    /// Adds a doubt.
    pub(super) fn add(&mut self, doubt: Doubt) {
        self.note(doubt.kind, doubt.count, || doubt.example);
    }

    /// True if there is a doubt of this kind.
    pub(super) fn has(&self, kind: DoubtKind) -> bool {
        self.all.iter().any(|(_, doubt)| doubt.kind == kind)
    }

    /// True if there are no doubts.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All doubts, in the order of their kinds.
    pub(super) fn into_vec(self) -> Vec<Doubt> {
        let mut all: Vec<Doubt> = self.all.into_iter().map(|(_, doubt)| doubt).collect();
        all.sort_by_key(|doubt| doubt.kind);
        all
    }
}
