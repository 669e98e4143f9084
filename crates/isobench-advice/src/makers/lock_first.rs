//! Statements before the first one of a transaction: locks of rows, also by writing them back.

use std::collections::BTreeMap;

use isobench_program::{FirstLock, FirstLockKind};
use isobench_robustness::{Kind, Operation, StatementId, Strength, Term};

use super::unique_index::operation;
use super::{Ground, Made, ReadAgain};
use crate::change_set::{ChangeSet, Changed, Edit};
use crate::patch::{ScriptText, preceded};

/// In scripts that meet where a level is too low. Where isobench can't analyse a statement of such a script, each lock
/// alone, which is tried at read committed.
pub(super) fn make(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    let meeting = ground.meeting();
    let is_of_rows = |kind| matches!(kind, FirstLockKind::Lock | FirstLockKind::WriteBack);
    let of_rows = |lock: &&FirstLock| is_of_rows(lock.kind) && meeting.contains(&lock.script);
    let mut locks: Vec<&FirstLock> = ground.templates().first_locks.iter().filter(of_rows).collect();
    locks.sort_by_key(|lock| lock.kind);
    let found = ground.fewest(&locks, read_again, |set| with(ground, set));
    if found.is_empty() && meeting.iter().any(|script| ground.has_unknown(*script)) {
        let mut locks: Vec<&&FirstLock> =
            locks.iter().filter(|lock| lock.kind == FirstLockKind::Lock).collect();
        if locks.iter().any(|lock| is_of_read(ground, lock)) {
            locks.retain(|lock| is_of_read(ground, lock));
        }
        return locks.into_iter().filter_map(|lock| to_try(ground, &[lock])).collect();
    }
    let proved = ground.has_lowest() || found.iter().any(|one| one.levels.as_ref() == Some(&ground.lowest()));
    let tried = if proved { Vec::new() } else { of_tables(ground) };
    found.into_iter().chain(tried).collect()
}

/// True if a lock's row is named by a variable with which a script reads what others overwrite: transactions that meet
/// there take the same lock.
fn is_of_read(ground: &Ground<'_>, lock: &FirstLock) -> bool {
    let names = |name: &str| {
        let variable = format!(":{}", name.split('\'').next().unwrap_or(name));
        let is_end =
            |rest: &str| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        lock.text.match_indices(&variable).any(|(at, _)| is_end(&lock.text[at + variable.len()..]))
    };
    ground.decision.reasons.iter().any(|reason| {
        let place = reason.objection.read;
        let read = operation(&ground.templates().programs, place);
        let mut terms = read.key.iter().chain(&read.known);
        place.role.program == lock.script
            && terms.any(|(_, term)| matches!(term, Term::Variable(name) if names(name)))
    })
}

/// Where theory proves nothing: the locks of rows of a table in all scripts that have some, which are tried at read
/// committed. If all of them would share the locks, they take the stronger one.
fn of_tables(ground: &Ground<'_>) -> Vec<Made> {
    let meeting = ground.meeting();
    let mut tables: BTreeMap<&str, Vec<FirstLock>> = BTreeMap::new();
    for lock in ground.templates().first_locks.iter().filter(|lock| lock.kind == FirstLockKind::Lock) {
        if meeting.contains(&lock.script) && !is_searched_whole(ground, &lock.table) {
            tables.entry(&lock.table).or_default().push(lock.clone());
        }
    }
    let made = |mut locks: Vec<FirstLock>| {
        let (shared, stronger) = (Strength::Share.clause(), Strength::NoKeyUpdate.clause());
        if locks.iter().all(|lock| lock.text.ends_with(shared)) {
            for lock in &mut locks {
                lock.text = lock.text.replace(shared, stronger);
            }
        }
        to_try(ground, &locks.iter().collect::<Vec<_>>())
    };
    tables.into_values().filter_map(made).collect()
}

/// True if a script that meets looks for any rows of a table, as in a walk through a tree: locks of some of them, which
/// few transactions share, don't protect what it finds.
fn is_searched_whole(ground: &Ground<'_>, table: &str) -> bool {
    let meeting = ground.meeting();
    let branches = meeting.iter().flat_map(|script| &ground.templates().programs[*script].branches);
    let any = |one: &Operation| {
        let known = one.known.iter().any(|(_, term)| *term != Term::Unknown);
        one.kind == Kind::Search && one.table == table && !known && !one.reads.is_empty()
    };
    branches.flat_map(|branch| &branch.operations).any(any)
}

/// The scripts with these statements, to be tried at read committed.
fn to_try(ground: &Ground<'_>, locks: &[&FirstLock]) -> Option<Made> {
    let (scripts, changes) = with(ground, locks)?;
    let set = ChangeSet::new(ground.templates(), ground.before, scripts, changes, &ground.lowest());
    Some(Made::to_try(set))
}

/// Locks of all rows that a statement counts or sums up, in the order of their key: as the first statement of the
/// transaction, or else before it.
pub(super) fn make_sets(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    let meeting = ground.meeting();
    let mut locks: Vec<FirstLock> = Vec::new();
    let statements = || ground.templates().statements.iter().filter(|one| meeting.contains(&one.script));
    let first = statements().filter_map(|one| Some((one, one.begins.filter(|begins| *begins < one.line)?)));
    for (statement, line) in first.chain(statements().map(|one| (one, one.line))) {
        let of = |(table, text): &(String, String)| FirstLock {
            script: statement.script,
            line,
            alone: None,
            table: table.clone(),
            text: text.clone(),
            kind: FirstLockKind::Lock,
        };
        locks.extend(statement.set_locks.iter().map(of));
    }
    let mut made = ground.fewest(&locks.iter().collect::<Vec<_>>(), read_again, |set| with(ground, set));
    for one in &mut made {
        let late: Vec<String> =
            one.set.changes.iter().filter_map(|change| locked_before(ground, change)).collect();
        one.set.deadlocks.extend(late);
    }
    made
}

/// A sentence if a transaction locks rows of a table before a lock of a set of them.
fn locked_before(ground: &Ground<'_>, lock: &Changed) -> Option<String> {
    let program = ground.templates().programs.iter().find(|program| program.name == lock.at.script)?;
    let before = |one: &&Operation| {
        let locks = matches!(one.kind, Kind::Update | Kind::Delete | Kind::Lock(_));
        locks && one.table == lock.table && one.at.line < lock.at.line
    };
    let first = program.branches.iter().flat_map(|branch| &branch.operations).find(before)?;
    Some(format!(
        "{} locks rows of {}, and the lock before line {} others of them: two transactions may do that with each other's \
         rows",
        first.at, lock.table, lock.at.line
    ))
}

/// Locks of the rows to which those refer that the scripts use, in all scripts that meet; a script that names the row
/// itself locks that. Theory doesn't know that two rows refer to the same one, so they are tried at read committed.
pub(super) fn make_parents(ground: &Ground<'_>, _: &mut ReadAgain<'_>) -> Vec<Made> {
    let meeting = ground.meeting();
    let mut parents: BTreeMap<&str, BTreeMap<usize, &FirstLock>> = BTreeMap::new();
    let all = &ground.templates().first_locks;
    for kind in [FirstLockKind::Lock, FirstLockKind::Parent] {
        for lock in all.iter().filter(|lock| lock.kind == kind && meeting.contains(&lock.script)) {
            parents.entry(&lock.table).or_default().entry(lock.script).or_insert(lock);
        }
    }
    let made = |locks: BTreeMap<usize, &FirstLock>| to_try(ground, &locks.into_values().collect::<Vec<_>>());
    let complete = |locks: &BTreeMap<usize, &FirstLock>| {
        locks.len() == meeting.len() && locks.values().any(|lock| lock.kind == FirstLockKind::Parent)
    };
    parents.into_values().filter(complete).filter_map(made).collect()
}

/// The scripts with these statements, and the changes.
pub(super) fn with(ground: &Ground<'_>, locks: &[&FirstLock]) -> Option<(Vec<ScriptText>, Vec<Changed>)> {
    let changed = |lock: &&FirstLock| Changed {
        at: StatementId::new(&ground.templates().programs[lock.script].name, lock.line),
        table: lock.table.clone(),
        to: edit(lock),
    };
    Some((preceded(ground.before, locks)?, locks.iter().map(changed).collect()))
}

/// The edit of a statement before the first one.
fn edit(lock: &FirstLock) -> Edit {
    match lock.kind {
        FirstLockKind::Advisory => Edit::AdvisoryLockBefore(lock.text.clone()),
        FirstLockKind::Table => Edit::TableLockBefore(lock.text.clone()),
        FirstLockKind::WriteBack => Edit::WriteBackBefore(lock.text.clone()),
        _ => Edit::LockBefore(lock.text.clone()),
    }
}
