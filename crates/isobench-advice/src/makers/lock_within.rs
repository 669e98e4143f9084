//! Locks of rows in subqueries.

use std::collections::BTreeSet;

use isobench_program::{LockWithin, TemplateStatement, Templates};
use isobench_robustness::{Kind, Strength};

use super::{Ground, Made, ReadAgain};
use crate::change_set::{ChangeSet, Changed, Edit};
use crate::patch::{ScriptText, rewritten};

/// A place for a lock.
struct Place<'t> {
    statement: &'t TemplateStatement,
    /// Its number among those of the statement.
    number: usize,
    clause: &'static str,
}

impl Place<'_> {
    /// These scripts with this lock. `None` if the statement isn't found in its text.
    fn scripts(&self, ground: &Ground<'_>, before: &[ScriptText]) -> Option<Vec<ScriptText>> {
        rewritten(ground.templates(), before, &[self.statement], |other| {
            Some(other.locks_within.get(self.number)?.with(self.clause))
        })
    }

    fn changed(&self) -> Changed {
        Changed {
            at: self.statement.at.clone(),
            table: String::new(),
            to: Edit::Lock(self.clause.to_owned()),
        }
    }
}

/// Of statements of the scripts for which a level is too low. Where theory proves nothing with them, each alone is
/// tried at read committed: the first rows of a queue, where the script changes rows, too, and those that a statement
/// counts.
pub(super) fn make<'g>(ground: &Ground<'g>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    let templates = ground.templates();
    let raised: BTreeSet<usize> = ground.decision.reasons.iter().map(|reason| reason.program).collect();
    let of_raised = templates.statements.iter().filter(|one| raised.contains(&one.script));
    let places = |clauses: &dyn Fn(&LockWithin) -> Vec<&'static str>| -> Vec<Place<'g>> {
        let of_statement = |statement: &'g TemplateStatement| {
            let locks = statement.locks_within.iter().enumerate();
            let place = move |(number, clause)| Place { statement, number, clause };
            locks
                .flat_map(move |(number, lock)| clauses(lock).into_iter().map(move |one| (number, one)))
                .map(place)
        };
        of_raised.clone().flat_map(of_statement).collect()
    };
    let both = [Strength::Share.clause(), Strength::NoKeyUpdate.clause()];
    let waiting = |lock: &LockWithin| if lock.skips_locked { Vec::new() } else { both.to_vec() };
    let waiting = places(&waiting);
    let waiting: Vec<&Place<'_>> = waiting.iter().collect();
    let proved = ground.fewest(&waiting, read_again, |set| {
        let mut scripts = ground.before.to_vec();
        for place in set {
            // A second lock of the same statement doesn't find its text.
            scripts = place.scripts(ground, &scripts)?;
        }
        Some((scripts, set.iter().map(|place| place.changed()).collect()))
    });
    let tried = places(&|lock| vec![lock.clause()]).into_iter().filter(|place| {
        let lock = &place.statement.locks_within[place.number];
        if lock.skips_locked { changes_rows(templates, place.statement.script) } else { proved.is_empty() }
    });
    let set = |place: Place<'_>| {
        let (scripts, changes) = (place.scripts(ground, ground.before)?, vec![place.changed()]);
        Some(Made::to_try(ChangeSet::new(templates, ground.before, scripts, changes, &ground.lowest())))
    };
    let tried: Vec<Made> = tried.filter_map(set).collect();
    proved.into_iter().chain(tried).collect()
}

fn changes_rows(templates: &Templates, program: usize) -> bool {
    let branches = &templates.programs[program].branches;
    let mut operations = branches.iter().flat_map(|branch| &branch.operations);
    operations.any(|one| matches!(one.kind, Kind::Update | Kind::Delete))
}
