//! Two transactions that each hold a row lock which the other one waits for (PostgreSQL manual,
//! "Deadlocks"). The server ends one of them with SQLSTATE 40P01; nothing is wrong with the data then.

use std::collections::BTreeSet;

use crate::StatementId;
use crate::compiled::{Compiled, CompiledBranch};
use crate::conflict::same_row;
use crate::model::{Kind, Operation, Program};
use crate::struck::Struck;
use crate::unification::{Instance, Unification};

/// Two transactions that can wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadlock {
    /// One transaction; both may be of one program.
    pub one: Waiting,
    /// The other one.
    pub other: Waiting,
}

/// A transaction that holds the lock of a row and waits for another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// The index of its program.
    pub program: usize,
    /// The statement that took the lock which it holds ([`crate::Operation::at`]), and its table.
    pub holds: (StatementId, String),
    /// The statement that waits, and its table.
    pub waits: (StatementId, String),
}

/// Finds the pairs of transactions that can wait for each other for rows that they name by their keys. Rows
/// that are only searched for are left out.
pub fn deadlocks(programs: &[Program]) -> BTreeSet<Deadlock> {
    let compiled = Compiled::of(programs, &Struck::new());
    let mut found = BTreeSet::new();
    for (number, one) in compiled.branches.iter().enumerate() {
        for other in &compiled.branches[number..] {
            let pair = Pair {
                compiled: &compiled,
                one: Instance { number: 0, branch: one },
                other: Instance { number: 1, branch: other },
            };
            for (own, others) in pair.crossings() {
                if pair.can_wait(own, others) {
                    let mut both = [waiting(programs, one, own), waiting(programs, other, others)];
                    both.sort();
                    let [one, other] = both;
                    found.insert(Deadlock { one, other });
                }
            }
        }
    }
    found
}

/// A lock that is held, and a later one: the indices of both operations.
type Locks = (usize, usize);

fn waiting(programs: &[Program], branch: &CompiledBranch, (held, wanted): Locks) -> Waiting {
    let operations = &programs[branch.program].branches[branch.branch].operations;
    let named = |one: &Operation| (one.at.clone(), one.table.clone());
    Waiting { program: branch.program, holds: named(&operations[held]), waits: named(&operations[wanted]) }
}

/// Two transactions.
struct Pair<'c> {
    compiled: &'c Compiled,
    one: Instance<'c>,
    other: Instance<'c>,
}

impl Pair<'_> {
    /// The locks of both of which each one's first is on a table of the other one's second. Few are, so
    /// that is looked at before anything else.
    fn crossings(&self) -> Vec<(Locks, Locks)> {
        let (own, others) = (&self.one.branch.locking, &self.other.branch.locking);
        let mut found = Vec::new();
        for (place, held) in own.iter().enumerate() {
            let wants = |(_, other): &(usize, &usize)| {
                self.other.branch.operations[**other].waits && self.excludes(*held, **other)
            };
            for (end, by_other) in others.iter().enumerate().filter(wants) {
                let waits = |wanted: &&usize| self.one.branch.operations[**wanted].waits;
                for wanted in own[place + 1..].iter().filter(waits) {
                    let crossing = others[..end].iter().filter(|other| self.excludes(*wanted, **other));
                    found.extend(crossing.map(|of_other| ((*held, *wanted), (*of_other, *by_other))));
                }
            }
        }
        found
    }

    /// True if each can hold a lock that the other one wants, where they cross.
    fn can_wait(&self, (held, wanted): Locks, (of_other, by_other): Locks) -> bool {
        let mut equal = Unification::new(self.compiled);
        let known = |instance: Instance<'_>, operation: usize| {
            (instance.number, instance.branch.operations[operation].known.clone())
        };
        let mut meet = |own: usize, other: usize| {
            let ((one, own), (two, other)) = (known(self.one, own), known(self.other, other));
            equal.unify((one, &own), (two, &other))
        };
        meet(held, by_other)
            && meet(wanted, of_other)
            && !equal.contradicts(0, self.one.branch)
            && !equal.contradicts(1, self.other.branch)
            && !equal.crosses(self.one, self.other)
            && !equal.is_out_of_range(self.compiled, &[self.one, self.other])
            && !self.is_barred(&equal, held, of_other)
    }

    /// True if one transaction has to wait for the other, if both operations are on one row. Nobody waits for
    /// a row that isn't committed yet but who inserts the same.
    fn excludes(&self, own: usize, other: usize) -> bool {
        let (own, other) = (&self.one.branch.operations[own], &self.other.branch.operations[other]);
        own.is_on_table_of(other)
            && (own.kind == Kind::Insert) == (other.kind == Kind::Insert)
            && own.may_lock.zip(other.may_lock).is_some_and(|(own, other)| own.conflicts(other))
    }

    /// True if the transactions can't both have come so far, because of a lock that both have taken by then.
    fn is_barred(&self, equal: &Unification, held: usize, of_other: usize) -> bool {
        let so_far = |branch: &CompiledBranch, last: usize| -> Vec<usize> {
            branch.locking.iter().copied().take_while(|operation| *operation <= last).collect()
        };
        let others = so_far(self.other.branch, of_other);
        so_far(self.one.branch, held).into_iter().any(|own| {
            others.iter().any(|other| {
                let (a, b) = (&self.one.branch.operations[own], &self.other.branch.operations[*other]);
                self.excludes(own, *other) && same_row(equal, (0, a), (1, b))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Branch, Strength};

    fn update(table: &str, key: &str, at: &str) -> Operation {
        Operation::update(table, [("id", key)], [], ["n"]).in_statement(at)
    }

    fn found(programs: &[&[Operation]]) -> Vec<[String; 4]> {
        let program =
            |operations: &&[Operation]| Program::new("p", vec![Branch::new("b", operations.to_vec())]);
        let programs: Vec<Program> = programs.iter().map(program).collect();
        let named = |one: Deadlock| {
            [one.one.holds.0, one.one.waits.0, one.other.holds.0, one.other.waits.0].map(|at| at.to_string())
        };
        deadlocks(&programs).into_iter().map(named).collect()
    }

    #[test]
    fn rows_in_an_order_of_parameters() {
        let transfer = [update("account", ":a", "1"), update("account", ":b", "2")];
        assert_eq!(found(&[&transfer]), [["1", "2", "1", "2"]]);
        // Constants have one order.
        assert_eq!(found(&[&[update("account", "1", "1"), update("account", "2", "2")]]), [[""; 4]; 0]);
        // A row that both lock first.
        let gate = update("bank", "1", "0");
        assert_eq!(found(&[&[gate, transfer[0].clone(), transfer[1].clone()]]), [[""; 4]; 0]);
        // The same row twice.
        assert_eq!(found(&[&[update("account", ":a", "1"), update("account", ":a", "2")]]), [[""; 4]; 0]);
    }

    #[test]
    fn rows_in_ascending_order() {
        let transfer = || vec![update("account", ":a", "1"), update("account", ":b", "2")];
        let program = |branch: Branch| Program::new("p", vec![branch]);
        let ascending = program(Branch::new("b", transfer()).with_ascending("a", "b"));
        assert_eq!(deadlocks(std::slice::from_ref(&ascending)).len(), 0);
        let descending = program(Branch::new("b", transfer()).with_ascending("b", "a"));
        assert_eq!(deadlocks(&[ascending, descending]).len(), 1);
    }

    #[test]
    fn tables_in_opposite_orders() {
        let (pay, close) = (
            [update("account", ":a", "1"), update("bill", ":b", "2")],
            [update("bill", ":b", "3"), update("account", ":a", "4")],
        );
        assert_eq!(found(&[&pay, &close]), [["1", "2", "3", "4"]]);
        assert_eq!(found(&[&pay]), [[""; 4]; 0]);
        let read = Operation::read("account", [("id", ":a")], ["n"]).in_statement("4");
        assert_eq!(found(&[&pay, &[close[0].clone(), read]]), [[""; 4]; 0], "who only reads doesn't wait");
        let insert = |table: &str, at: &str| Operation::insert(table, [("id", ":i")]).in_statement(at);
        assert_eq!(
            found(&[&pay, &[insert("bill", "3"), update("account", ":a", "4")]]),
            [[""; 4]; 0],
            "what isn't committed isn't seen"
        );
    }

    #[test]
    fn a_lock_that_is_raised() {
        let share = Operation::lock(Strength::Share, "account", [("id", ":a")], ["n"]).in_statement("1");
        assert_eq!(found(&[&[share, update("account", ":a", "2")]]), [["1", "2", "1", "2"]]);
    }
}
