//! Reads that could lock their rows, or write them, so that lower levels are safe.
//!
//! A lock makes a reader of the newest version that others wait for; it stops being the read after
//! which a transaction can be split. It doesn't protect what others read: once the reader has committed
//! its row can be changed by those whose snapshots are older. A write of what is there already does
//! both ("You must actually update the row, even if no values need to be changed": PostgreSQL manual,
//! 13.4.2).

use std::collections::BTreeSet;

use isobench_isolation::Level;

use crate::allocation::lowest;
use crate::model::{Branch, Kind, Operation, Program, Strength, Term};
use crate::symbolic::Analysis;

/// The most sets of reads that are tried of each kind of change.
const MOST_SETS: usize = 2048;

/// The change of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// It locks its row.
    Lock(Strength),
    /// It writes back what it reads, in an UPDATE.
    Write,
}

/// A read that is changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Promotion {
    /// The index of the program.
    pub program: usize,
    /// The place of the statement, [`Operation::at`]; in all branches that have it.
    pub at: String,
    /// The table that is read.
    pub table: String,
    /// The change.
    pub change: Change,
}

/// Levels that are safe if some reads are changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promoted {
    /// The changes.
    pub promotions: Vec<Promotion>,
    /// A level for each program.
    pub levels: Vec<Level>,
    /// True if locks `FOR SHARE` do as well. Readers then don't wait for each other, but two that go
    /// on to write the row deadlock.
    pub share: bool,
}

/// Finds changes of at most `most` reads that make lower levels safe: those of which no other set has at most
/// as many changes and no higher level of any program, the fewest changes first. Of those that are as
/// good, the one whose locks make others wait less. Not among them: the levels that need no change. Locks are `FOR NO KEY UPDATE`, which don't disturb foreign keys.
pub fn promote(programs: &[Program], most: usize) -> Vec<Promoted> {
    let reads = candidates(programs);
    let unchanged = lowest(&Analysis::of(programs), programs.len()).0;
    let mut known = vec![Promoted { promotions: Vec::new(), levels: unchanged, share: false }];
    for size in 1..=reads.len().min(most) {
        for change in [Change::Lock(Strength::NoKeyUpdate), Change::Write] {
            let mut sets: Vec<Vec<usize>> = subsets(reads.len(), size).take(MOST_SETS).collect();
            sets.sort_by_key(|set| set.iter().map(|read| reads[*read].1).sum::<u32>());
            for set in sets {
                let of_set = |index: usize| Promotion { change, ..reads[index].0.clone() };
                let promotions: Vec<Promotion> = set.into_iter().map(of_set).collect();
                let levels = lowest(&Analysis::of(&promoted(programs, &promotions)), programs.len()).0;
                if known.iter().any(|known| no_higher(&known.levels, &levels)) {
                    continue;
                }
                let share = matches!(change, Change::Lock(_)) && {
                    let shared: Vec<Promotion> = promotions
                        .iter()
                        .map(|one| Promotion { change: Change::Lock(Strength::Share), ..one.clone() })
                        .collect();
                    let analysis = Analysis::of(&promoted(programs, &shared));
                    analysis.is_safe(&levels)
                };
                known.push(Promoted { promotions, levels, share });
            }
        }
        if known.iter().any(|known| known.levels.iter().all(|level| *level == Level::ReadCommitted)) {
            break;
        }
    }
    known.remove(0);
    // A set of the same size that came later may have lower levels.
    let beaten = |one: &Promoted| {
        known.iter().any(|other| {
            other.promotions.len() <= one.promotions.len()
                && other.levels != one.levels
                && no_higher(&other.levels, &one.levels)
        })
    };
    known.iter().filter(|one| !beaten(one)).cloned().collect()
}

/// True if no level is higher than in the other allocation.
fn no_higher(levels: &[Level], than: &[Level]) -> bool {
    levels.iter().zip(than).all(|(level, than)| level <= than)
}

/// The programs with some reads changed.
///
/// # Panics
/// If a change names a program that isn't there.
pub fn promoted(programs: &[Program], promotions: &[Promotion]) -> Vec<Program> {
    let mut programs = programs.to_vec();
    for promotion in promotions {
        for branch in &mut programs[promotion.program].branches {
            let name = branch.name.clone();
            for (place, operation) in branch.operations.iter_mut().enumerate() {
                if is_read(operation)
                    && operation.table == promotion.table
                    && place_of(&name, place, operation) == promotion.at
                {
                    change(operation, promotion.change);
                }
            }
        }
    }
    programs
}

fn change(operation: &mut Operation, change: Change) {
    match change {
        Change::Lock(strength) => operation.kind = Kind::Lock(strength),
        Change::Write => {
            operation.kind = Kind::Update;
            operation.writes = operation.reads.clone();
        }
    }
}

/// True for what can be changed: a read of one row.
fn is_read(operation: &Operation) -> bool {
    operation.kind == Kind::Read && !operation.key.is_empty()
}

/// The place of an operation's statement; one that has no name is on its own.
fn place_of(branch: &str, place: usize, operation: &Operation) -> String {
    if operation.at.is_empty() { format!("{branch}:{}", place + 1) } else { operation.at.clone() }
}

/// The reads of tables that some program changes, each with a number that says how much it may make
/// others wait: nothing for rows that the transaction changes in any case, much for rows that all
/// transactions have in common.
fn candidates(programs: &[Program]) -> Vec<(Promotion, u32)> {
    let branches = || programs.iter().flat_map(|program| &program.branches);
    let written: BTreeSet<&str> = branches()
        .flat_map(|branch| &branch.operations)
        .filter(|operation| matches!(operation.kind, Kind::Update | Kind::Insert | Kind::Delete))
        .map(|operation| operation.table.as_str())
        .collect();
    let mut found: Vec<(Promotion, u32)> = Vec::new();
    for (program, of) in programs.iter().enumerate() {
        for branch in &of.branches {
            for (place, operation) in branch.operations.iter().enumerate() {
                let at = place_of(&branch.name, place, operation);
                let (table, change) = (operation.table.clone(), Change::Write);
                let read = Promotion { program, at, table, change };
                if !is_read(operation) || !written.contains(operation.table.as_str()) {
                    continue;
                }
                let wait = wait(branch, operation);
                match found.iter_mut().find(|(known, _)| *known == read) {
                    Some((_, known)) => *known = wait.min(*known),
                    None => found.push((read, wait)),
                }
            }
        }
    }
    found
}

/// How much a lock of a row that is read may make others wait.
fn wait(branch: &Branch, read: &Operation) -> u32 {
    let is_changed = |other: &Operation| {
        other.table == read.table
            && other.key == read.key
            && matches!(other.kind, Kind::Update | Kind::Delete)
    };
    let in_common = !read.key.iter().any(|(_, term)| matches!(term, Term::Variable(_)));
    match () {
        () if branch.operations.iter().any(is_changed) => 0,
        () if in_common => 1000,
        () => 1,
    }
}

/// The sets of `size` of the first numbers, in order.
fn subsets(count: usize, size: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut next = (size <= count).then(|| (0..size).collect::<Vec<usize>>());
    std::iter::from_fn(move || {
        let this = next.take()?;
        let place = (0..size).rev().find(|place| this[*place] + size - place < count);
        next = place.map(|place| {
            let mut after = this.clone();
            let first = after[place] + 1;
            for (further, number) in after[place..].iter_mut().enumerate() {
                *number = first + further;
            }
            after
        });
        Some(this)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sets_of_a_size_are_tried_once() {
        let all: Vec<Vec<usize>> = subsets(4, 2).collect();
        assert_eq!(all, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(subsets(3, 3).count(), 1);
        assert_eq!(subsets(2, 3).count(), 0);
    }
}
