//! Statements before the first one of a transaction: locks of rows, also by writing them back.

use isobench_observation::{FirstLock, FirstLockKind};

use super::{Ground, Made, ReadAgain};
use crate::change_set::{ChangeSet, Changed};
use crate::patch::{ScriptText, preceded};

/// In scripts that meet where a level is too low. Where isobench can't analyse a statement of such a script, each lock
/// alone, which is tried at read committed.
pub(super) fn make(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    let meeting = ground.meeting();
    let of_rows = |lock: &&FirstLock| lock.kind != FirstLockKind::Advisory && meeting.contains(&lock.script);
    let mut locks: Vec<&FirstLock> = ground.templates().first_locks.iter().filter(of_rows).collect();
    locks.sort_by_key(|lock| lock.kind);
    let found = ground.fewest(&locks, read_again, |set| with(ground, set));
    if found.is_empty() && meeting.iter().any(|script| ground.has_unknown(*script)) {
        let tried = |lock: &&FirstLock| {
            let (scripts, changes) = with(ground, &[lock])?;
            let set = ChangeSet::new(ground.templates(), ground.before, scripts, changes, &ground.lowest());
            Some(Made::to_try(set))
        };
        let locks = locks.iter().filter(|lock| lock.kind == FirstLockKind::Lock);
        return locks.filter_map(tried).collect();
    }
    found
}

/// The scripts with these statements, and the changes.
pub(super) fn with(ground: &Ground<'_>, locks: &[&FirstLock]) -> Option<(Vec<ScriptText>, Vec<Changed>)> {
    let changed = |lock: &&FirstLock| Changed {
        at: format!("{}:{}", ground.templates().programs[lock.script].name, lock.line),
        table: lock.table.clone(),
        to: lock.text.clone(),
    };
    Some((preceded(ground.before, locks)?, locks.iter().map(changed).collect()))
}
