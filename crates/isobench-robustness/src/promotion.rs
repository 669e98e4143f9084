//! Reads that could lock their rows, or write them, so that lower levels are safe.
//!
//! A lock makes a reader of the newest version that others wait for; it stops being the read after
//! which a transaction can be split. It doesn't protect what others read: once the reader has committed
//! its row can be changed by those whose snapshots are older. A write of what is there already does
//! both ("You must actually update the row, even if no values need to be changed": PostgreSQL manual,
//! 13.4.2).

use std::collections::BTreeSet;
use std::thread;

use isobench_isolation::Level;

use crate::StatementId;
use crate::allocation::lowest_of;
use crate::columns::Columns;
use crate::model::{Branch, Kind, Operation, Program, Strength, Term};
use crate::struck::Struck;
use crate::symbolic::Analysis;

/// The most sets of reads that are tried, and the fewest.
const MOST_SETS: usize = 4096;
const LEAST_SETS: usize = 32;

/// The most reads in a set that has some of tables that nothing changes.
const MOST_OF_UNCHANGED: usize = 2;

/// What limits the sets in between: their number times the third power of that of the branches, with
/// which the time for a set grows. A few seconds.
const MOST_WORK: usize = 2_000_000;

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
    /// The statement, in all branches that have it.
    pub at: StatementId,
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
}

/// Which changes are looked for.
pub struct Promoting<'a> {
    /// The most reads that are changed.
    pub most: usize,
    /// What was struck.
    pub struck: &'a Struck,
    /// Whether a read can be changed in this way.
    pub may: &'a (dyn Fn(&Promotion) -> bool + Sync),
    /// Asked before each set of reads; if it returns true, no further set is looked at.
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Finds changes of few reads that make lower levels safe: those of which no other set has at most as
/// many changes and no higher level of any program, the fewest changes first. Of those that are as good,
/// the one whose locks make others wait less. Not among them: the levels that need no change. Locks are
/// `FOR SHARE` where that does, so that readers don't wait for each other, unless the transaction changes
/// rows of the table itself: two of them would deadlock. Others are `FOR NO KEY UPDATE`, which don't
/// disturb foreign keys, either. Of programs with many branches fewer sets are
/// looked at, those of reads after which transactions can be split first. If it is stopped, the changes are
/// those that were found before.
pub fn promote(programs: &[Program], promoting: &Promoting<'_>) -> Vec<Promoted> {
    let Promoting { most, struck, may, stopped } = *promoting;
    if stopped() {
        return Vec::new();
    }
    let analysis = Analysis::of(programs, struck);
    let splitting = analysis.reads(programs);
    let reads = candidates(programs);
    let unchanged = lowest_of(&analysis, programs.len()).0;
    let mut known = vec![Promoted { promotions: Vec::new(), levels: unchanged }];
    let branches: usize = programs.iter().map(|program| program.branches.len()).sum();
    let mut left = (MOST_WORK / branches.pow(3).max(1)).clamp(LEAST_SETS, MOST_SETS);
    for size in 1..=reads.len().min(most) {
        for change in [Change::Lock(Strength::NoKeyUpdate), Change::Write] {
            let of_read = |index: &usize| Promotion { change, ..reads[*index].read.clone() };
            let is_one =
                |index: &usize| (reads[*index].written || size <= MOST_OF_UNCHANGED) && may(&of_read(index));
            let possible: Vec<usize> = (0..reads.len()).filter(is_one).collect();
            let mut sets: Vec<Vec<usize>> = subsets(possible.len(), size)
                .take(MOST_SETS)
                .map(|set| set.into_iter().map(|place| possible[place]).collect())
                .collect();
            sets.sort_by_key(|set: &Vec<usize>| {
                let splits = |read: &&usize| splitting.contains(&reads[**read].read.at);
                let others = set.len() - set.iter().filter(splits).count();
                (others, set.iter().map(|read| reads[*read].wait).sum::<u32>())
            });
            sets.truncate(left);
            left -= sets.len();
            let shared = |index: &usize| {
                let may = matches!(change, Change::Lock(_)) && !reads[*index].goes_on_to_write;
                let change = if may { Change::Lock(Strength::Share) } else { change };
                Promotion { change, ..of_read(index) }
            };
            let sets: Vec<[Vec<Promotion>; 2]> = sets
                .iter()
                .map(|set| [set.iter().map(of_read).collect(), set.iter().map(shared).collect()])
                .collect();
            let found = side_by_side(&sets, |[promotions, _]| {
                let analysis = (!stopped()).then(|| Analysis::of(&promoted(programs, promotions), struck))?;
                Some(lowest_of(&analysis, programs.len()).0)
            });
            for ([promotions, shared], levels) in sets.into_iter().zip(found) {
                let Some(levels) = levels else { break };
                if known.iter().any(|known| no_higher(&known.levels, &levels)) {
                    continue;
                }
                let share = shared != promotions
                    && Analysis::of(&promoted(programs, &shared), struck).is_safe(&levels);
                known.push(Promoted { promotions: if share { shared } else { promotions }, levels });
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

/// Computes something of each element, on all processors, in order.
fn side_by_side<T: Sync, R: Send>(all: &[T], compute: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let each = all.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = all
            .chunks(each)
            .map(|part| scope.spawn(|| part.iter().map(&compute).collect::<Vec<R>>()))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
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
        let branches = &mut programs[promotion.program].branches;
        *branches = branches.iter().flat_map(|branch| changed(branch, promotion)).collect();
    }
    programs
}

/// A branch with a read changed; and, if the read may find no row, one in which it finds none and locks
/// nothing.
fn changed(branch: &Branch, promotion: &Promotion) -> Vec<Branch> {
    let meant = |(place, operation): (usize, &Operation)| {
        is_read(operation)
            && operation.table == promotion.table
            && place_of(&branch.name, place, operation) == promotion.at
    };
    let places: Vec<bool> = branch.operations.iter().enumerate().map(meant).collect();
    let of = |finds: bool| {
        let each = branch.operations.iter().zip(&places).flat_map(|(operation, meant)| {
            let changes = *meant && (finds || operation.found || operation.kind == Kind::Search);
            if changes { change(operation.clone(), promotion.change) } else { vec![operation.clone()] }
        });
        each.collect::<Vec<Operation>>()
    };
    let (found, missed) = (of(true), of(false));
    let mut branches = vec![Branch { operations: found.clone(), ..branch.clone() }];
    if missed != found {
        let name = format!("{}, row of {} isn't there", branch.name, promotion.at);
        branches.push(Branch { name, operations: missed, ..branch.clone() });
    }
    branches
}

/// What a read becomes. A search still finds its rows by the snapshot, in their state of then; their
/// values are read under the lock.
fn change(read: Operation, change: Change) -> Vec<Operation> {
    let kind = match change {
        Change::Lock(strength) => Kind::Lock(strength),
        Change::Write => Kind::Update,
    };
    let writes = if change == Change::Write { read.reads.clone() } else { Columns::NONE };
    if read.kind != Kind::Search {
        return vec![Operation { kind, writes, ..read }];
    }
    let tested = Columns::These(read.known.iter().map(|(column, _)| column.clone()).collect());
    let known = read.known.iter().filter(|(_, term)| *term != Term::Unknown).cloned().collect();
    let found = Operation { kind, known, writes, ..read.clone() };
    vec![Operation { reads: tested, ..read }, found]
}

/// True for what can be changed: a read of rows that are there.
fn is_read(operation: &Operation) -> bool {
    match operation.kind {
        Kind::Read => !operation.key.is_empty(),
        Kind::Search => operation.reads != Columns::All,
        kind => kind.takes_stronger_lock(),
    }
}

/// The place of an operation's statement; one that has no name is on its own.
fn place_of(branch: &str, place: usize, operation: &Operation) -> StatementId {
    if operation.at.is_unnamed() {
        return StatementId::new(branch, u32::try_from(place + 1).unwrap_or(u32::MAX));
    }
    operation.at.clone()
}

/// A read that could be changed.
struct Candidate {
    read: Promotion,
    /// How much it may make others wait: nothing for rows that the transaction changes in any case, much
    /// for rows that all transactions have in common.
    wait: u32,
    /// Some program changes its table.
    written: bool,
    /// The transaction itself changes rows of its table.
    goes_on_to_write: bool,
}

/// The reads of tables that some program changes, and those of one row by its key: who locks the row of a
/// course first is alone with its bookings, though nothing changes the course.
fn candidates(programs: &[Program]) -> Vec<Candidate> {
    let branches = || programs.iter().flat_map(|program| &program.branches);
    let written: BTreeSet<&str> = branches()
        .flat_map(|branch| &branch.operations)
        .filter(|operation| matches!(operation.kind, Kind::Update | Kind::Insert | Kind::Delete))
        .map(|operation| operation.table.as_str())
        .collect();
    let mut found: Vec<Candidate> = Vec::new();
    for (program, of) in programs.iter().enumerate() {
        for branch in &of.branches {
            for (place, operation) in branch.operations.iter().enumerate() {
                let at = place_of(&branch.name, place, operation);
                let (table, change) = (operation.table.clone(), Change::Write);
                let read = Promotion { program, at, table, change };
                let wait = wait(branch, operation);
                let written = written.contains(operation.table.as_str());
                if !is_read(operation) || !(written || wait <= OF_ITS_OWN) {
                    continue;
                }
                let writes = |later: &Operation| {
                    later.table == operation.table && matches!(later.kind, Kind::Update | Kind::Delete)
                };
                let goes_on_to_write = branch.operations[place..].iter().any(writes);
                match found.iter_mut().find(|known| known.read == read) {
                    Some(known) => {
                        known.wait = wait.min(known.wait);
                        known.goes_on_to_write |= goes_on_to_write;
                    }
                    None => found.push(Candidate { read, wait, written, goes_on_to_write }),
                }
            }
        }
    }
    found
}

/// How much others may wait for a lock of the row with a key that the transaction chooses.
const OF_ITS_OWN: u32 = 1;

/// How much a lock of a row that is read may make others wait.
fn wait(branch: &Branch, read: &Operation) -> u32 {
    let is_changed = |other: &Operation| {
        other.table == read.table
            && other.key == read.key
            && matches!(other.kind, Kind::Update | Kind::Delete)
    };
    if read.kind == Kind::Search {
        return 10;
    }
    let in_common = !read.key.iter().any(|(_, term)| matches!(term, Term::Variable(_)));
    match () {
        () if branch.operations.iter().any(is_changed) => 0,
        () if in_common => 1000,
        () => OF_ITS_OWN,
    }
}

/// The sets of `size` of the first numbers, in order.
pub fn subsets(count: usize, size: usize) -> impl Iterator<Item = Vec<usize>> {
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
