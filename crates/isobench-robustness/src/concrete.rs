//! The same question for given transactions, each of which runs once; and the transactions that
//! programs have if parameters have few values.
//!
//! On small domains an objection of [`crate::decide`] can be confirmed. That nothing is found there
//! proves nothing of the programs.

use std::collections::BTreeSet;

use isobench_isolation::Level;

use crate::compiled::{Compiled, CompiledBranch, CompiledOperation};
use crate::conflict::{
    Before, bars, excludes, is_taken, is_watched, may_depend, may_meet, sees_later, surely_reads,
};
use crate::model::{Branch, Program, Term};
use crate::struck::Struck;
use crate::unification::{Instance, Unification};

/// Given transactions.
pub struct Transactions {
    compiled: Compiled,
    /// For each, those that it may depend on or that may depend on it.
    depend: Vec<Vec<bool>>,
}

/// A split schedule of given transactions, by their indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The transaction that is split.
    pub split: usize,
    /// The index of the operation after which it is.
    pub read: usize,
    /// The transactions that run within, in order.
    pub within: Vec<usize>,
}

impl Transactions {
    /// The transactions of programs whose variables have the values `0` to `values - 1`, each as
    /// often as `copies` says.
    pub fn of(programs: &[Program], values: usize, copies: usize) -> Transactions {
        let instances = |program: &Program| {
            let branches = program.branches.iter().flat_map(|branch| instances(branch, values));
            let copied = branches.flat_map(|branch| std::iter::repeat_n(branch, copies)).collect();
            Program { name: program.name.clone(), branches: copied }
        };
        let programs: Vec<Program> = programs.iter().map(instances).collect();
        let compiled = Compiled::of(&programs, &Struck::new());
        let depend = compiled
            .branches
            .iter()
            .map(|one| compiled.branches.iter().map(|other| may_depend(&compiled, one, other)).collect());
        Transactions { depend: depend.collect(), compiled }
    }

    /// The index of each transaction's program.
    pub fn programs(&self) -> Vec<usize> {
        self.compiled.branches.iter().map(|branch| branch.program).collect()
    }

    /// Looks for a split schedule at a level for each transaction; those without one don't run.
    pub fn split(&self, levels: &[Option<Level>]) -> Option<Split> {
        (0..self.compiled.branches.len()).find_map(|split| {
            let level = levels[split]?;
            let operations = self.compiled.branches[split].operations.iter().enumerate();
            let mut reads = operations.filter(|(_, operation)| operation.has_reads());
            reads.find_map(|(read, _)| self.split_after(split, level, read, levels))
        })
    }

    fn instance(&self, number: usize, transaction: usize) -> Instance<'_> {
        Instance { number, branch: &self.compiled.branches[transaction] }
    }

    fn split_after(
        &self,
        split: usize,
        level: Level,
        read: usize,
        levels: &[Option<Level>],
    ) -> Option<Split> {
        let equal = Unification::new(&self.compiled);
        let own = self.instance(0, split);
        let snapshot = level >= Level::RepeatableRead;
        let before = if snapshot { Before::Snapshot } else { Before::Operation(read) };
        let count = self.compiled.branches.len();
        let fits: Vec<bool> = (0..count)
            .map(|other| {
                other != split
                    && levels[other].is_some()
                    && !excludes(&self.compiled, &equal, before, own, self.instance(1, other))
            })
            .collect();
        let opens = |other: usize| {
            let operations = &self.compiled.branches[other].operations;
            let read_of = &own.branch.operations[read];
            operations.iter().any(|write| {
                read_of.reads_from(write)
                    && may_meet(&self.compiled, read_of, write)
                    && !bars(before, own, read, write)
            })
        };
        let serializable = |transaction: usize| levels[transaction] == Some(Level::Serializable);
        let guarded = |first: usize, last: usize, newest: bool| {
            let (one, other) = (self.instance(1, first), self.instance(2, last));
            !newest
                && serializable(split)
                && (serializable(first) && serializable(last)
                    || serializable(first) && surely_reads(&equal, one, own)
                    || serializable(last) && surely_reads(&equal, own, other))
        };
        let first = (0..count).filter(|other| fits[*other] && opens(*other));
        for first in first {
            let mut before_it: Vec<Option<usize>> = vec![None; count];
            before_it[first] = Some(first);
            let mut queue = std::collections::VecDeque::from([first]);
            while let Some(at) = queue.pop_front() {
                let ways = self.closes(own, before, read, at);
                if ways.into_iter().any(|newest| !guarded(first, at, newest)) {
                    let mut within = vec![at];
                    while let Some(previous) =
                        before_it[within[within.len() - 1]].filter(|_| within[within.len() - 1] != first)
                    {
                        within.push(previous);
                    }
                    within.reverse();
                    return Some(Split { split, read, within });
                }
                // What is in between depends on nothing of the split transaction.
                if at != first && self.depend[split][at] {
                    continue;
                }
                for next in 0..count {
                    if fits[next] && before_it[next].is_none() && self.depend[at][next] {
                        before_it[next] = Some(at);
                        queue.push_back(next);
                    }
                }
            }
        }
        None
    }

    /// The ways in which a transaction that is split depends on the last one within: true if by a check of
    /// the newest data.
    fn closes(&self, own: Instance<'_>, before: Before, read: usize, last: usize) -> BTreeSet<bool> {
        let read = &own.branch.operations[read];
        let last = &self.compiled.branches[last].operations;
        let of = |(back, own_operation): (usize, &CompiledOperation)| {
            let later = matches!(before, Before::Operation(_)) && own_operation.step > read.step;
            let snapshot = matches!(before, Before::Snapshot);
            let ways = last.iter().filter_map(|other| {
                let follows = other.depends(own_operation) && !is_taken(&self.compiled, own_operation, other);
                let plain = other.reads_from(own_operation) || later && follows;
                let newest = snapshot && sees_later(read, own_operation, other);
                ((plain || newest)
                    && may_meet(&self.compiled, own_operation, other)
                    && !bars(before, own, back, other))
                .then_some(snapshot && !is_watched(read, own_operation, other))
            });
            ways.collect::<BTreeSet<bool>>()
        };
        own.branch.operations.iter().enumerate().flat_map(of).collect()
    }
}

/// True if a value is in a range; one that isn't chosen may be.
fn is_in(value: Option<usize>, [lowest, highest]: [i64; 2]) -> bool {
    value.and_then(|value| i64::try_from(value).ok()).is_none_or(|value| (lowest..=highest).contains(&value))
}

/// The branch with each choice of values for its variables.
fn instances(branch: &Branch, values: usize) -> Vec<Branch> {
    let compiled =
        Compiled::of(&[Program { name: String::new(), branches: vec![branch.clone()] }], &Struck::new());
    let variables = compiled.branches.first().map_or(&[][..], |branch: &CompiledBranch| &branch.variables);
    let mut found = Vec::new();
    let mut chosen = vec![0; variables.len()];
    loop {
        let value =
            |name: &String| variables.iter().position(|variable| variable == name).map(|at| chosen[at]);
        if branch.distinct.iter().all(|(one, other)| value(one) != value(other))
            && branch.ascending.iter().all(|(lower, higher)| value(lower) < value(higher))
            && branch.ranges.iter().all(|(name, range)| is_in(value(name), *range))
        {
            let mut instance =
                Branch { distinct: Vec::new(), ascending: Vec::new(), ranges: Vec::new(), ..branch.clone() };
            for operation in &mut instance.operations {
                for (_, term) in operation.key.iter_mut().chain(&mut operation.known) {
                    if let Term::Variable(name) = term
                        && let Some(value) = value(name)
                    {
                        *term = Term::Constant(value.to_string());
                    }
                }
            }
            found.push(instance);
        }
        let Some(place) = chosen.iter().rposition(|value| value + 1 < values) else { return found };
        chosen[place] += 1;
        chosen[place + 1..].fill(0);
    }
}
