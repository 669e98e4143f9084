//! Changes of scripts and tables, with the levels that are enough then.

use std::collections::BTreeSet;
use std::fmt;

use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, Level};
use isobench_program::Templates;
use isobench_result::Tried;
use isobench_robustness::{Change, Promoted, StatementId};
use serde::{Serialize, Serializer};

use crate::makers::one_transaction::Joined;
use crate::patch::{ScriptText, difference, patched};

/// Why an index or a constraint isn't made.
pub(crate) const NOT_MADE: &str =
    "the server doesn't make it, perhaps because rows that are there violate it";

/// Changes of scripts, with the levels that are enough then.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeSet {
    /// A short name: `lock pay.sql:7`.
    pub name: String,
    /// The changes.
    pub changes: Vec<Changed>,
    /// The levels that are enough.
    pub allocation: Allocation,
    /// The changes as a unified diff of the scripts.
    pub diff: String,
    /// SQL that changes the tables; null if only scripts are changed.
    pub setup: Option<String>,
    /// The interleavings in which nothing wrong was shown, if the levels aren't proved; null if they are.
    pub unproved: Option<u64>,
    /// A wrong outcome that was shown in spite of it; null if there was none.
    pub refuted: Option<Tried>,
    /// Transactions that can wait for each other only with it, a sentence each: the server ends one of them with
    /// SQLSTATE 40P01.
    pub deadlocks: Vec<String>,
    /// Why transactions fail with it that run one after another, so that it changes more than isolation;
    /// null if none does.
    pub refused: Option<String>,
    /// The scripts with the changes.
    #[serde(skip)]
    pub scripts: Vec<ScriptText>,
}

/// A changed statement, or one before which another one stands.
#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    /// The statement: `pay.sql:7`.
    #[serde(serialize_with = "as_text")]
    pub at: StatementId,
    /// The table.
    pub table: String,
    /// What is changed.
    #[serde(serialize_with = "as_text")]
    pub to: Edit,
}

/// A change of a statement. It is printed as the SQL that is new.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    /// It locks the rows that it reads: `FOR SHARE` or another lock.
    Lock(String),
    /// It writes the rows back as they are.
    WriteBack,
    /// A statement before it locks a row.
    LockBefore(String),
    /// A statement before it writes a row back as it is.
    WriteBackBefore(String),
    /// A statement before it takes an advisory lock.
    AdvisoryLockBefore(String),
    /// A statement before it locks a table.
    TableLockBefore(String),
    /// What an UPDATE sets: `SET stock = stock - :quantity`.
    Sets(String),
    /// What it requires, too: `AND state = :state`.
    Requires(String),
    /// One transaction begins there.
    OneTransaction,
    /// A unique index or a constraint on the table of an INSERT: `CREATE UNIQUE INDEX …`.
    Index(String),
}

impl Edit {
    /// What is done, before the name of the statement.
    fn verb(&self) -> &'static str {
        match self {
            Edit::Lock(_) | Edit::Index(_) => "lock",
            Edit::WriteBack => "write back",
            Edit::LockBefore(_) | Edit::AdvisoryLockBefore(_) | Edit::TableLockBefore(_) => "lock before",
            Edit::WriteBackBefore(_) => "write back before",
            Edit::Sets(_) => "rewrite",
            Edit::Requires(_) => "test again in",
            Edit::OneTransaction => "one transaction from",
        }
    }

    /// True if it may put lines around the author's.
    pub(crate) fn wraps(&self) -> bool {
        let locks =
            matches!(self, Edit::LockBefore(_) | Edit::AdvisoryLockBefore(_) | Edit::TableLockBefore(_));
        locks || *self == Edit::OneTransaction
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Edit::WriteBack => "UPDATE",
            Edit::OneTransaction => "BEGIN",
            Edit::Lock(sql)
            | Edit::LockBefore(sql)
            | Edit::WriteBackBefore(sql)
            | Edit::AdvisoryLockBefore(sql)
            | Edit::TableLockBefore(sql)
            | Edit::Sets(sql)
            | Edit::Requires(sql)
            | Edit::Index(sql) => sql,
        })
    }
}

fn as_text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

impl ChangeSet {
    /// The scripts with some reads changed; `None` if a statement can't be changed so.
    pub fn of(templates: &Templates, before: &[ScriptText], promoted: &Promoted) -> Option<ChangeSet> {
        let scripts = patched(templates, before, &promoted.promotions)?;
        let changes: Vec<Changed> = promoted
            .promotions
            .iter()
            .map(|one| Changed {
                at: one.at.clone(),
                table: one.table.clone(),
                to: match one.change {
                    Change::Lock(strength) => Edit::Lock(strength.clause().to_owned()),
                    Change::Write => Edit::WriteBack,
                },
            })
            .collect();
        Some(ChangeSet::new(templates, before, scripts, changes, &promoted.levels))
    }

    /// Scripts that were changed, with a level for each.
    pub(crate) fn new(
        templates: &Templates,
        before: &[ScriptText],
        scripts: Vec<ScriptText>,
        changes: Vec<Changed>,
        levels: &[Level],
    ) -> ChangeSet {
        let programs = templates.programs.iter().zip(levels);
        let levels: Vec<(&str, Level)> =
            programs.map(|(program, level)| (program.name.as_str(), *level)).collect();
        ChangeSet {
            name: name(&changes),
            changes,
            allocation: allocation(&levels),
            diff: difference(before, &scripts),
            setup: None,
            unproved: None,
            refuted: None,
            deadlocks: Vec::new(),
            refused: None,
            scripts,
        }
    }

    /// The same set for scripts that became one transaction each first.
    pub(crate) fn after(self, joined: &Joined, before: &[ScriptText]) -> ChangeSet {
        let mut changes = joined.changes.clone();
        changes.extend(
            self.changes.into_iter().map(|change| Changed { at: joined.before(&change.at), ..change }),
        );
        let index = self.setup.as_ref().map(|sql| format!("{sql};\n")).unwrap_or_default();
        let diff = difference(before, &self.scripts) + &index;
        let name = if self.setup.is_some() {
            format!("{} + {}", name(&joined.changes), self.name)
        } else {
            name(&changes)
        };
        ChangeSet { name, changes, diff, ..self }
    }

    /// The same scripts with a unique index, the statement of `change`.
    pub(crate) fn index(
        templates: &Templates,
        scripts: &[ScriptText],
        name: String,
        change: Changed,
        levels: &[Level],
    ) -> ChangeSet {
        let set = ChangeSet::new(templates, scripts, scripts.to_vec(), Vec::new(), levels);
        let sql = change.to.to_string();
        ChangeSet {
            name,
            changes: vec![change],
            diff: format!("{sql};\n"),
            setup: Some(sql),
            unproved: Some(0),
            ..set
        }
    }

    /// What is lower for the better one of two sets: whether a transaction stays serializable; whether it needs advisory
    /// locks, which nobody sees in the tables, or the lock of a table, for which more transactions wait; the highest level; whether it isn't proved; whether transactions can wait
    /// for each other only with it; the number of changes.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        let highest = self.allocation.range().1;
        let coarse = self.coarseness();
        let (is_serializable, is_unproved) = (highest == Level::Serializable, self.unproved.is_some());
        (is_serializable, coarse, highest, is_unproved, !self.deadlocks.is_empty(), self.changes.len())
    }

    /// 2 if it locks a table, 1 if it takes an advisory lock.
    fn coarseness(&self) -> u8 {
        let of = |change: &Changed| match change.to {
            Edit::TableLockBefore(_) => 2,
            Edit::AdvisoryLockBefore(_) => 1,
            _ => 0,
        };
        self.changes.iter().map(of).max().unwrap_or_default()
    }

    /// Whether all transactions can run at read committed with it, without such locks.
    pub(crate) fn is_good(&self) -> bool {
        self.is_proposed() && self.coarseness() == 0 && self.allocation.range().1 <= Level::ReadCommitted
    }

    /// Whether its index or constraint wasn't made.
    pub(crate) fn is_not_made(&self) -> bool {
        self.refused.as_deref() == Some(NOT_MADE)
    }

    /// The tables that it locks as a whole.
    pub(crate) fn locked_tables(&self) -> BTreeSet<&str> {
        let locks = |change: &&Changed| matches!(change.to, Edit::TableLockBefore(_));
        self.changes.iter().filter(locks).map(|change| change.table.as_str()).collect()
    }

    /// Whether nothing was shown that speaks against it.
    pub fn is_proposed(&self) -> bool {
        self.refuted.is_none() && self.refused.is_none()
    }
}

/// A short name for changes.
fn name(changes: &[Changed]) -> String {
    let one = |change: &Changed| format!("{} {}", change.to.verb(), change.at);
    changes.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// The levels of scripts as an allocation: the lowest one is that of all scripts that it doesn't name.
pub fn allocation(levels: &[(&str, Level)]) -> Allocation {
    let rest = levels.iter().map(|(_, level)| *level).min().unwrap_or(Level::ReadCommitted);
    let own = levels.iter().filter(|(_, level)| *level != rest);
    let scripts = own.map(|(script, level)| ((*script).to_owned(), Mode::of(*level))).collect();
    Allocation { rest: Mode::of(rest), scripts }
}
