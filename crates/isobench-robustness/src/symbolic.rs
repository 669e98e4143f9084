//! The split schedules that transactions of programs may have, with their parameters as variables.
//!
//! A set of transactions isn't safe exactly if one of them, T1, can be split so that others, T2 to Tm,
//! run within it one after another, each as a whole: T1 reads something that T2 then changes, each
//! depends on the one before it, and T1 depends on Tm. Which of them exclude each other is a question
//! of rows; that is decided for T1, T2 and Tm, whose variables are made equal as the dependencies
//! require. For those in between it is assumed that nothing excludes them, so that a set may be found
//! unsafe that isn't, and never the other way round.
//!
//! What depends on levels is so little that the rest is decided once: see [`Clause`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use isobench_isolation::Level;

use crate::StatementId;
use crate::compiled::{Compiled, CompiledBranch, CompiledOperation};
use crate::conflict::{Before, bars, excludes, is_taken, is_watched, may_depend, sees_later, surely_reads};
use crate::model::Program;
use crate::objection::{Objection, Parts, Place};
use crate::struck::Struck;
use crate::unification::{Instance, Unification};

/// Looks for a split schedule of any transactions of these programs, at a level for each, but for what was struck. `None` if
/// there is none: then whatever commits is serializable, as far as the programs are all that runs.
///
/// # Panics
/// If there aren't as many levels as programs.
pub fn decide(programs: &[Program], levels: &[Level], struck: &Struck) -> Option<Objection> {
    assert_eq!(programs.len(), levels.len(), "a level for each program");
    Analysis::of(programs, struck).objection(levels).cloned()
}

/// Split schedules of any transactions of these programs at these levels, but for what was struck: for each three
/// programs that can meet so one of the fewest transactions. None if there are none at all.
///
/// # Panics
/// If there aren't as many levels as programs.
pub fn objections(programs: &[Program], levels: &[Level], struck: &Struck) -> Vec<Objection> {
    assert_eq!(programs.len(), levels.len(), "a level for each program");
    let analysis = Analysis::of(programs, struck);
    let possible = analysis.clauses.into_iter().filter(|(clause, _)| clause.holds(levels));
    possible.map(|(_, objection)| objection).collect()
}

/// What of split schedules depends on levels: they exist if T1's program runs at certain levels, and
/// not all that have to are serializable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "independent conditions")]
pub(crate) struct Clause {
    /// The programs of T1, T2 and Tm.
    split: usize,
    first: usize,
    last: usize,
    /// T1 has one snapshot: it runs at repeatable read or serializable.
    snapshot: bool,
    /// T2 certainly reads a row that T1 writes, so that both being serializable exclude it.
    guards_first: bool,
    /// T1 certainly reads a row that Tm writes, likewise.
    guards_last: bool,
    /// T1 depends on Tm by a check of the newest data, which serializable doesn't watch.
    newest: bool,
}

impl Clause {
    /// True if such schedules exist at these levels.
    fn holds(&self, levels: &[Level]) -> bool {
        let serializable = |program: usize| levels[program] == Level::Serializable;
        let (split, first, last) =
            (serializable(self.split), serializable(self.first), serializable(self.last));
        let guarded =
            !self.newest && split && (first && (last || self.guards_first) || last && self.guards_last);
        (levels[self.split] >= Level::RepeatableRead) == self.snapshot && !guarded
    }

    /// The same without what serializable transactions are guarded by.
    fn unguarded(self) -> Clause {
        Clause { guards_first: false, guards_last: false, ..self }
    }
}

/// The split schedules of programs.
pub(crate) struct Analysis {
    /// What decides whether there are any, with an example of the fewest transactions.
    clauses: BTreeMap<Clause, Objection>,
}

impl Analysis {
    pub(crate) fn of(programs: &[Program], struck: &Struck) -> Analysis {
        let compiled = Compiled::of(programs, struck);
        let paths = Paths::of(&compiled);
        let mut analysis = Analysis { clauses: BTreeMap::new() };
        let of_all = |one| compiled.branches.iter().map(move |other| dependent(one, other)).collect();
        let dependent: Vec<Vec<Vec<(usize, usize)>>> = compiled.branches.iter().map(of_all).collect();
        let search = Search { compiled: &compiled, paths: &paths, dependent: &dependent };
        for split in 0..compiled.branches.len() {
            for snapshot in [false, true] {
                search.splits(split, snapshot, &mut analysis.clauses);
            }
        }
        analysis
    }

    /// A split schedule that is possible at these levels, of the fewest transactions.
    pub(crate) fn objection(&self, levels: &[Level]) -> Option<&Objection> {
        let possible = self.clauses.iter().filter(|(clause, _)| clause.holds(levels));
        possible.map(|(_, objection)| objection).min_by_key(|objection| objection.transactions())
    }

    /// The names of the statements after whose reads transactions can be split, of some objection.
    pub(crate) fn reads(&self, programs: &[Program]) -> BTreeSet<StatementId> {
        let name = |objection: &Objection| {
            let Place { role, operation } = objection.read;
            programs[role.program].branches[role.branch].operations[operation].at.clone()
        };
        self.clauses.values().map(name).collect()
    }

    /// The same without the schedules that depend on checks of the newest data.
    pub(crate) fn guarded(&self) -> Analysis {
        let clauses = self.clauses.iter().filter(|(clause, _)| !clause.newest);
        Analysis { clauses: clauses.map(|(clause, objection)| (*clause, objection.clone())).collect() }
    }

    /// A schedule in which a program is split at these levels, and that depends on a check of the newest
    /// data.
    pub(crate) fn unguarded(&self, program: usize, levels: &[Level]) -> Option<&Objection> {
        let mut clauses = self.clauses.iter();
        let fits = |clause: &Clause| clause.newest && clause.split == program && clause.holds(levels);
        clauses.find(|(clause, _)| fits(clause)).map(|(_, objection)| objection)
    }

    /// True if there is no split schedule at these levels.
    pub(crate) fn is_safe(&self, levels: &[Level]) -> bool {
        !self.clauses.keys().any(|clause| clause.holds(levels))
    }
}

/// The shortest ways from one branch to another over branches that may depend on each other.
struct Paths {
    /// By start and end, the branch before the end; of a branch to itself, another transaction is meant.
    before: Vec<Vec<Option<usize>>>,
}

impl Paths {
    fn of(compiled: &Compiled) -> Paths {
        let branches = &compiled.branches;
        let next: Vec<Vec<usize>> = branches
            .iter()
            .map(|one| {
                let depends = |other: &usize| may_depend(compiled, one, &branches[*other]);
                (0..branches.len()).filter(depends).collect()
            })
            .collect();
        let before = (0..branches.len()).map(|start| {
            let mut before = vec![None; branches.len()];
            let mut queue = VecDeque::from([start]);
            while let Some(at) = queue.pop_front() {
                for to in &next[at] {
                    if before[*to].is_none() {
                        before[*to] = Some(at);
                        queue.push_back(*to);
                    }
                }
            }
            before
        });
        Paths { before: before.collect() }
    }

    /// The branches between two transactions that depend on each other through them.
    fn between(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut between = Vec::new();
        let mut at = self.before[from][to]?;
        while at != from {
            between.push(at);
            at = self.before[from][at]?;
        }
        between.reverse();
        Some(between)
    }
}

struct Search<'c> {
    compiled: &'c Compiled,
    paths: &'c Paths,
    /// By two branches, their operations that can depend on each other.
    dependent: &'c [Vec<Vec<(usize, usize)>>],
}

/// A split transaction and the first one within.
struct Opening<'c> {
    split: Instance<'c>,
    /// The index of its branch.
    split_branch: usize,
    /// What T1 has run before.
    before: Before,
    /// The operation after which T1 is split.
    read: usize,
    first: Instance<'c>,
    /// The index of its branch.
    first_branch: usize,
    /// The operation that changes what was read.
    overwrites: usize,
    equal: Unification,
}

impl<'c> Search<'c> {
    fn instance(&self, number: usize, branch: usize) -> Instance<'c> {
        Instance { number, branch: &self.compiled.branches[branch] }
    }

    /// Finds the split schedules of a branch.
    fn splits(&self, branch: usize, snapshot: bool, found: &mut BTreeMap<Clause, Objection>) {
        let split = self.instance(0, branch);
        let reads = split.branch.operations.iter().enumerate().filter(|(_, read)| read.has_reads());
        for (read, own) in reads {
            let before = if snapshot { Before::Snapshot } else { Before::Operation(read) };
            for first_branch in 0..self.compiled.branches.len() {
                let first = self.instance(1, first_branch);
                for (overwrites, other) in first.branch.operations.iter().enumerate() {
                    let mut equal = Unification::new(self.compiled);
                    if own.reads_from(other)
                        && !bars(before, split, read, other)
                        && equal.unify((0, &own.known), (1, &other.known))
                    {
                        let split_branch = branch;
                        let opening = Opening {
                            split,
                            split_branch,
                            before,
                            read,
                            first,
                            first_branch,
                            overwrites,
                            equal,
                        };
                        self.closings(&opening, found);
                    }
                }
            }
        }
    }

    /// Finds the ways back to a split transaction.
    fn closings(&self, opening: &Opening<'_>, found: &mut BTreeMap<Clause, Objection>) {
        let Opening { split, split_branch, before, read, first, first_branch, .. } = opening;
        let is_out = |equal: &Unification| {
            equal.contradicts(0, split.branch)
                || equal.contradicts(1, first.branch)
                || equal.crosses(*split, *first)
                || equal.is_out_of_range(self.compiled, &[*split, *first])
                || excludes(self.compiled, equal, *before, *split, *first)
        };
        if is_out(&opening.equal) {
            return;
        }
        for last_branch in 0..self.compiled.branches.len() {
            let alone = (*first_branch == last_branch).then_some((Some(Vec::new()), 1));
            let others = self.paths.between(*first_branch, last_branch).map(|between| (Some(between), 2));
            for (between, number) in alone.into_iter().chain(others) {
                let last = self.instance(number, last_branch);
                let clause = Clause {
                    split: split.branch.program,
                    first: first.branch.program,
                    last: last.branch.program,
                    snapshot: matches!(before, Before::Snapshot),
                    guards_first: false,
                    guards_last: false,
                    newest: false,
                };
                let between = between.filter(|_| number == 2);
                let length = between.as_ref().map_or(1, |between| between.len() + 2);
                for (back, by) in &self.dependent[*split_branch][last_branch] {
                    let (own, other) = (&split.branch.operations[*back], &last.branch.operations[*by]);
                    let (back, by) = (*back, *by);
                    let newest = clause.snapshot && !is_watched(&split.branch.operations[*read], own, other);
                    let clause = Clause { newest, ..clause };
                    // Nothing can be found that isn't known already.
                    let known = found.get(&clause).is_some_and(|known| known.within() <= length);
                    if known || !closes(self.compiled, opening, (back, own), other) {
                        continue;
                    }
                    let overwrites = &first.branch.operations[opening.overwrites];
                    let statements = [&split.branch.operations[*read], overwrites, other, own];
                    if self.compiled.is_struck(statements, clause.snapshot) {
                        continue;
                    }
                    let mut equal = opening.equal.clone();
                    if !equal.unify((0, &own.known), (number, &other.known))
                        || is_out(&equal)
                        || equal.contradicts(number, last.branch)
                        || equal.crosses(*split, last)
                        || equal.crosses(*first, last)
                        || equal.is_out_of_range(self.compiled, &[*split, *first, last])
                        || excludes(self.compiled, &equal, *before, *split, last)
                    {
                        continue;
                    }
                    let clause = Clause {
                        guards_first: surely_reads(&equal, *first, *split),
                        guards_last: surely_reads(&equal, *split, last),
                        ..clause
                    };
                    let weaker = found.get(&clause.unguarded()).is_some_and(|known| known.within() <= length);
                    if weaker || found.get(&clause).is_some_and(|known| known.within() <= length) {
                        continue;
                    }
                    let parts = Parts {
                        split: *split,
                        read: *read,
                        back,
                        first: *first,
                        overwrites: opening.overwrites,
                        last: (number == 2).then_some(last),
                        by,
                        between: between.as_deref().unwrap_or_default(),
                        equal: &equal,
                        snapshot: clause.snapshot,
                    };
                    found.insert(clause, Objection::of(self.compiled, &parts));
                }
            }
        }
    }
}

/// The operations of two branches that can depend on each other, as far as their columns decide.
fn dependent(one: &CompiledBranch, other: &CompiledBranch) -> Vec<(usize, usize)> {
    let of_one = |(number, own): (usize, &CompiledOperation)| {
        let depends = |(_, its): &(usize, &CompiledOperation)| its.depends(own);
        let others = other.operations.iter().enumerate().filter(depends);
        others.map(|(by, _)| (number, by)).collect::<Vec<_>>()
    };
    one.operations.iter().enumerate().flat_map(of_one).collect()
}

/// True if a transaction that is split depends on the last one within by these operations, as far as
/// columns and locks decide.
fn closes(
    compiled: &Compiled,
    opening: &Opening<'_>,
    (back, own): (usize, &CompiledOperation),
    other: &CompiledOperation,
) -> bool {
    let Opening { split, before, read, .. } = opening;
    let later = match before {
        Before::Snapshot => false,
        Before::Operation(_) => own.step > split.branch.operations[*read].step,
    };
    (other.reads_from(own)
        || later && other.depends(own) && !is_taken(compiled, own, other)
        || matches!(before, Before::Snapshot) && sees_later(&split.branch.operations[*read], own, other))
        && !bars(*before, *split, back, other)
}
