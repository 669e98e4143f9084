//! Which variables of a few transactions are equal.

use std::collections::BTreeMap;

use crate::compiled::{Compiled, CompiledBranch, Known, Value};

/// The most transactions whose variables are of interest at once: the one that is split, the first and
/// the last one within.
const TRANSACTIONS: usize = 3;

/// Classes of equal variables and constants.
#[derive(Clone)]
pub(crate) struct Unification {
    parents: Vec<usize>,
    /// The number of variables of each transaction.
    width: usize,
}

/// Values that are equal.
pub(crate) struct Class {
    /// Variables, by transaction and number.
    pub(crate) variables: Vec<(Transaction, usize)>,
    /// The number of the constant among them, if any.
    pub(crate) constant: Option<usize>,
}

/// A transaction, 0 to 2.
pub(crate) type Transaction = usize;

/// A transaction of a branch.
#[derive(Clone, Copy)]
pub(crate) struct Instance<'c> {
    pub(crate) number: Transaction,
    pub(crate) branch: &'c CompiledBranch,
}

impl Unification {
    /// Nothing is known to be equal.
    pub(crate) fn new(compiled: &Compiled) -> Unification {
        let width = compiled.most_variables();
        let all = TRANSACTIONS * width + compiled.constants.len();
        Unification { parents: (0..all).collect(), width }
    }

    fn place(&self, transaction: Transaction, value: Value) -> Option<usize> {
        match value {
            Value::Variable(number) => Some(transaction * self.width + number),
            Value::Constant(number) => Some(TRANSACTIONS * self.width + number),
            Value::Unknown => None,
        }
    }

    fn root(&self, mut place: usize) -> usize {
        while self.parents[place] != place {
            place = self.parents[place];
        }
        place
    }

    /// Makes two values equal. Returns false if they are different constants.
    fn unite(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        let (lower, upper) = (one.min(other), one.max(other));
        if lower == upper {
            return true;
        }
        // Constants come last, so that the root of a class with one is a constant.
        self.parents[lower] = upper;
        lower < TRANSACTIONS * self.width
    }

    /// Makes two operations concern the same row. Returns false if they can't.
    pub(crate) fn unify(
        &mut self,
        (transaction, known): (Transaction, &[Known]),
        (other, others): (Transaction, &[Known]),
    ) -> bool {
        for (column, value) in known {
            let Ok(place) = others.binary_search_by_key(column, |(column, _)| *column) else { continue };
            let both = self.place(transaction, *value).zip(self.place(other, others[place].1));
            if both.is_some_and(|(one, other)| !self.unite(one, other)) {
                return false;
            }
        }
        true
    }

    /// True if two values are equal.
    pub(crate) fn equal(&self, one: (Transaction, Value), other: (Transaction, Value)) -> bool {
        let both = self.place(one.0, one.1).zip(self.place(other.0, other.1));
        both.is_some_and(|(one, other)| self.root(one) == self.root(other))
    }

    /// True if a transaction's variables that differ have become equal.
    pub(crate) fn contradicts(&self, transaction: Transaction, branch: &CompiledBranch) -> bool {
        let same = |(one, other): &(usize, usize)| {
            self.equal((transaction, Value::Variable(*one)), (transaction, Value::Variable(*other)))
        };
        branch.distinct.iter().any(same)
    }

    /// True if a lower variable of one transaction has become equal to a higher one of the other, and the
    /// other way round.
    pub(crate) fn crosses(&self, one: Instance<'_>, other: Instance<'_>) -> bool {
        let same = |own: usize, others: usize| {
            self.equal((one.number, Value::Variable(own)), (other.number, Value::Variable(others)))
        };
        let crossed = |(low, high): (usize, usize), (lower, higher): (usize, usize)| {
            same(low, higher) && same(high, lower)
        };
        let others = &other.branch.ascending;
        one.branch.ascending.iter().any(|own| others.iter().any(|others| crossed(*own, *others)))
    }

    /// True if values have become equal of which the ranges of these transactions' variables have none in common.
    pub(crate) fn is_out_of_range(&self, compiled: &Compiled, all: &[Instance<'_>]) -> bool {
        let mut ranges: BTreeMap<usize, [i64; 2]> = BTreeMap::new();
        for instance in all {
            for (variable, [lowest, highest]) in &instance.branch.ranges {
                let Some(place) = self.place(instance.number, Value::Variable(*variable)) else { continue };
                let root = self.root(place);
                let range = ranges.entry(root).or_insert_with(|| self.range_of(compiled, root));
                *range = [range[0].max(*lowest), range[1].min(*highest)];
            }
        }
        ranges.values().any(|[lowest, highest]| lowest > highest)
    }

    /// The range of the values of a class, as far as a constant in it says.
    fn range_of(&self, compiled: &Compiled, root: usize) -> [i64; 2] {
        let constant = root.checked_sub(TRANSACTIONS * self.width);
        let integer = constant.and_then(|number| compiled.integers.get(number).copied().flatten());
        integer.map_or([i64::MIN, i64::MAX], |integer| [integer; 2])
    }

    /// The classes of several values.
    pub(crate) fn classes(&self) -> Vec<Class> {
        let all = TRANSACTIONS * self.width;
        let mut classes = Vec::new();
        for root in (0..self.parents.len()).filter(|place| self.parents[*place] == *place) {
            let members = (0..all).filter(|place| self.root(*place) == root);
            let variables: Vec<(Transaction, usize)> =
                members.map(|place| (place / self.width.max(1), place % self.width.max(1))).collect();
            let constant = root.checked_sub(all);
            if variables.len() + usize::from(constant.is_some()) > 1 {
                classes.push(Class { variables, constant });
            }
        }
        classes
    }
}
