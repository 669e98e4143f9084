//! Changes of scripts and tables, with the levels that are enough then.

use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, Level};
use isobench_program::Templates;
use isobench_result::Tried;
use isobench_robustness::{Change, Promoted};
use serde::Serialize;

use crate::makers::one_transaction::Joined;
use crate::patch::{ScriptText, difference, patched};

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
    pub at: String,
    /// The table.
    pub table: String,
    /// `FOR SHARE` or another lock; a statement before it that locks a row, or writes it back; `UPDATE` for writing
    /// the row back as it is; what an UPDATE sets then: `SET stock = stock - :quantity`; what it requires then: `AND
    /// state = :state`; `BEGIN` for one transaction from there; or for an insert `CREATE UNIQUE INDEX …`.
    pub to: String,
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
                    Change::Lock(strength) => strength.clause().to_owned(),
                    Change::Write => "UPDATE".to_owned(),
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
        let sql = change.to.clone();
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
    /// locks, which nobody sees in the tables; the highest level; whether it isn't proved; whether transactions can wait
    /// for each other only with it; the number of changes.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        let highest = self.allocation.range().1;
        let advisory = self.changes.iter().any(|change| change.to.contains("pg_advisory_xact_lock"));
        let (is_serializable, is_unproved) = (highest == Level::Serializable, self.unproved.is_some());
        (is_serializable, advisory, highest, is_unproved, !self.deadlocks.is_empty(), self.changes.len())
    }

    /// Whether nothing was shown that speaks against it.
    pub fn is_proposed(&self) -> bool {
        self.refuted.is_none() && self.refused.is_none()
    }
}

/// A short name for changes.
fn name(changes: &[Changed]) -> String {
    let one = |change: &Changed| {
        let how = match change.to.as_str() {
            "UPDATE" => "write back",
            "BEGIN" => "one transaction from",
            sets if sets.starts_with("SET ") => "rewrite",
            condition if condition.starts_with("AND ") => "test again in",
            first if first.starts_with("UPDATE ") => "write back before",
            first if first.starts_with("SELECT ") => "lock before",
            _ => "lock",
        };
        format!("{how} {}", change.at)
    };
    changes.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// The levels of scripts as an allocation: the lowest one is that of all scripts that it doesn't name.
pub fn allocation(levels: &[(&str, Level)]) -> Allocation {
    let rest = levels.iter().map(|(_, level)| *level).min().unwrap_or(Level::ReadCommitted);
    let own = levels.iter().filter(|(_, level)| *level != rest);
    let scripts = own.map(|(script, level)| ((*script).to_owned(), Mode::of(*level))).collect();
    Allocation { rest: Mode::of(rest), scripts }
}
