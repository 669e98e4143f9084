//! A split schedule as an answer: who is split, where, who runs within, and why that is a cycle.

use std::fmt::{self, Write as _};

use crate::StatementId;
use crate::compiled::Compiled;
use crate::model::{Kind, Operation, Program};
use crate::struck::Strike;
use crate::unification::{Class, Instance, Unification};

impl Objection {
    /// What is struck if it can't be shown.
    pub fn strike(&self, programs: &[Program]) -> Strike {
        let at = |place: Place| {
            programs[place.role.program].branches[place.role.branch].operations[place.operation].at.clone()
        };
        Strike {
            read: at(self.read),
            overwritten_by: at(self.overwrites),
            by: at(self.by),
            back: at(self.back),
            snapshot: self.snapshot,
        }
    }
}

/// A transaction's program and branch, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role {
    /// The index of the program.
    pub program: usize,
    /// The index of its branch.
    pub branch: usize,
}

/// An operation of a transaction, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The transaction's program and branch.
    pub role: Role,
    /// The index of the operation in the branch.
    pub operation: usize,
}

/// Values that are equal in an objection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Equal {
    /// Variables, each with the number of its transaction: 0 for the one that is split, 1 for the
    /// first one within, and 2 for the last one.
    pub variables: Vec<(usize, String)>,
    /// The constant that they are equal to, if any.
    pub constant: Option<String>,
}

/// A schedule that commits and isn't serializable: a transaction runs up to a read, others run within
/// it one after another, and it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The read after which a transaction is split.
    pub read: Place,
    /// The write of the first transaction within that changes what was read.
    pub overwrites: Place,
    /// The transactions after the first one, and before the last one, each of which depends on the one
    /// before it.
    pub between: Vec<Role>,
    /// The operation of the last transaction within on which the one that is split depends.
    pub by: Place,
    /// The operation by which it does. With a snapshot it may stand before the split.
    pub back: Place,
    /// True if the first transaction within is also the last one.
    pub alone: bool,
    /// True if the one that is split has one snapshot: it runs at repeatable read or serializable.
    pub snapshot: bool,
    /// Values that must be equal; those of the transactions between are free.
    pub equal: Vec<Equal>,
}

/// A transaction depends on another one: where both exist, the other one comes first in any serial order
/// that gives the same outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The index of the program of the transaction that comes first.
    pub first: usize,
    /// The index of the program of the one that depends on it.
    pub then: usize,
    /// How it depends; `None` if it may be in any way.
    pub how: Option<How>,
    /// The statements of both by which it does; empty if they may be any.
    pub at: [StatementId; 2],
}

/// How a transaction depends on another one (Adya, "Weak Consistency", 1999, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// It reads what the other one wrote.
    WriteRead,
    /// It overwrites what the other one wrote.
    WriteWrite,
    /// It overwrites what the other one read: an antidependency.
    ReadWrite,
}

impl How {
    /// `wr`, `ww` or `rw`, as the literature has it.
    pub const fn short(self) -> &'static str {
        match self {
            How::WriteRead => "wr",
            How::WriteWrite => "ww",
            How::ReadWrite => "rw",
        }
    }
}

/// The parts of an objection.
pub(crate) struct Parts<'p> {
    pub(crate) split: Instance<'p>,
    pub(crate) read: usize,
    pub(crate) back: usize,
    pub(crate) first: Instance<'p>,
    pub(crate) overwrites: usize,
    /// `None` if the first transaction is the last one.
    pub(crate) last: Option<Instance<'p>>,
    pub(crate) by: usize,
    /// Branches.
    pub(crate) between: &'p [usize],
    pub(crate) equal: &'p Unification,
    pub(crate) snapshot: bool,
}

impl Objection {
    pub(crate) fn of(compiled: &Compiled, parts: &Parts<'_>) -> Objection {
        let role = |instance: Instance<'_>| Role {
            program: instance.branch.program,
            branch: instance.branch.branch,
        };
        let place = |instance, operation| Place { role: role(instance), operation };
        let last = parts.last.unwrap_or(parts.first);
        let instances = [Some(parts.split), Some(parts.first), parts.last];
        let name = |(transaction, variable): &(usize, usize)| {
            Some((*transaction, instances[*transaction]?.branch.variables.get(*variable)?.clone()))
        };
        let classes = parts.equal.classes().into_iter().map(|Class { variables, constant }| Equal {
            variables: variables.iter().filter_map(name).collect(),
            constant: constant.map(|constant| compiled.constants[constant].clone()),
        });
        let matters = |equal: &Equal| {
            equal.variables.len() + usize::from(equal.constant.is_some()) > 1 && !equal.variables.is_empty()
        };
        let between = parts.between.iter().map(|branch| {
            let branch = &compiled.branches[*branch];
            Role { program: branch.program, branch: branch.branch }
        });
        Objection {
            read: place(parts.split, parts.read),
            overwrites: place(parts.first, parts.overwrites),
            between: between.collect(),
            by: place(last, parts.by),
            back: place(parts.split, parts.back),
            alone: parts.last.is_none(),
            snapshot: parts.snapshot,
            equal: classes.filter(matters).collect(),
        }
    }

    /// The number of transactions within.
    pub fn within(&self) -> usize {
        if self.alone { 1 } else { self.between.len() + 2 }
    }

    /// The number of transactions.
    pub fn transactions(&self) -> usize {
        self.within() + 1
    }

    /// The cycle of dependencies, from the transaction that is split back to it.
    pub fn cycle(&self, programs: &[Program]) -> Vec<Dependency> {
        let operation = |place: Place| {
            &programs[place.role.program].branches[place.role.branch].operations[place.operation]
        };
        let writes = |place: Place| match operation(place).kind {
            Kind::Insert | Kind::Delete => true,
            Kind::Read | Kind::Search | Kind::Lock(_) | Kind::Vacant => false,
            Kind::Update => !operation(place).writes.is_empty(),
        };
        let depends = |first: Place, then: Place, how| Dependency {
            first: first.role.program,
            then: then.role.program,
            how: Some(how),
            at: [operation(first).at.clone(), operation(then).at.clone()],
        };
        let mut cycle = vec![depends(self.read, self.overwrites, How::ReadWrite)];
        if !self.alone {
            let within = [self.overwrites.role].into_iter().chain(self.between.iter().copied());
            let within: Vec<Role> = within.chain([self.by.role]).collect();
            cycle.extend(within.windows(2).map(|pair| Dependency {
                first: pair[0].program,
                then: pair[1].program,
                how: None,
                at: [StatementId::default(), StatementId::default()],
            }));
        }
        let how = match (writes(self.by), writes(self.back)) {
            (true, false) => How::WriteRead,
            (true, true) => How::WriteWrite,
            (false, _) => How::ReadWrite,
        };
        cycle.push(depends(self.by, self.back, how));
        cycle
    }

    /// The steps as sentences without full stops.
    pub fn steps<'o>(&'o self, programs: &'o [Program]) -> Steps<'o> {
        Steps { objection: self, programs }
    }
}

/// An objection as text, a step on each line.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'o> {
    objection: &'o Objection,
    programs: &'o [Program],
}

impl Steps<'_> {
    fn name(&self, role: Role) -> String {
        let program = &self.programs[role.program];
        match &program.branches[role.branch].name {
            branch if program.branches.len() > 1 && !branch.is_empty() => {
                format!("{}/{branch}", program.name)
            }
            _ => program.name.clone(),
        }
    }

    fn operation(&self, place: Place) -> &Operation {
        &self.programs[place.role.program].branches[place.role.branch].operations[place.operation]
    }

    /// "its read of saving at check.sql:4".
    fn deed(&self, place: Place) -> String {
        let operation = self.operation(place);
        let mut deed = format!("{} of {}", operation.kind, operation.table);
        if !operation.at.is_unnamed() {
            let _ = write!(deed, " at {}", operation.at);
        }
        deed
    }
}

impl fmt::Display for Steps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objection = self.objection;
        let split = self.name(objection.read.role);
        writeln!(f, "T1 {split} runs up to its {}", self.deed(objection.read))?;
        let first = self.name(objection.overwrites.role);
        writeln!(f, "T2 {first} runs: its {} changes what T1 read", self.deed(objection.overwrites))?;
        for (number, role) in (3..).zip(&objection.between) {
            writeln!(f, "T{number} {} runs and depends on T{}", self.name(*role), number - 1)?;
        }
        let number = objection.transactions();
        if !objection.alone {
            writeln!(f, "T{number} {} runs and depends on T{}", self.name(objection.by.role), number - 1)?;
        }
        writeln!(
            f,
            "T1 depends on T{number} by its {}, because of the {}",
            self.deed(objection.back),
            self.deed(objection.by)
        )?;
        for equal in &objection.equal {
            let name = |(transaction, variable): &(usize, String)| {
                let number = if *transaction == 2 { number } else { transaction + 1 };
                format!("T{number}'s :{variable}")
            };
            let names = equal.variables.iter().map(name).chain(equal.constant.clone());
            writeln!(f, "{} are the same", names.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}
