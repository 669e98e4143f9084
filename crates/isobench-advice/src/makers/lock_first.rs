//! Locks at the beginning of transactions: of rows, also by writing them back, and of numbers that stand for them.

use std::collections::{BTreeMap, BTreeSet};

use isobench_observation::{FirstLock, FirstLockKind};

use super::{Ground, Made, ReadAgain};
use crate::change_set::{ChangeSet, Changed};
use crate::patch::preceded;
use crate::shown::Shown;

/// In scripts that meet where a level is too low. Where isobench can't analyse a statement of such a script, each lock
/// alone, which is tried at read committed.
pub(super) fn make(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    let templates = ground.templates();
    let meeting: BTreeSet<usize> = ground.decision.reasons.iter().flat_map(Shown::casts).flatten().collect();
    let of_meeting = || templates.first_locks.iter().filter(|lock| meeting.contains(&lock.script));
    // Sets of locks; those of rows first.
    let mut sets: Vec<Vec<&FirstLock>> =
        of_meeting().filter(|lock| lock.kind != FirstLockKind::Advisory).map(|lock| vec![lock]).collect();
    sets.sort_by_key(|set| set[0].kind);
    sets.extend(advisory(of_meeting()));
    let changed = |lock: &&FirstLock| Changed {
        at: format!("{}:{}", templates.programs[lock.script].name, lock.line),
        table: lock.table.clone(),
        to: lock.text.clone(),
    };
    let change = |sets: &[&Vec<&FirstLock>]| {
        let locks: Vec<&FirstLock> = sets.iter().copied().flatten().copied().collect();
        Some((preceded(ground.before, &locks)?, locks.iter().map(changed).collect()))
    };
    let found = ground.fewest(&sets.iter().collect::<Vec<_>>(), read_again, change);
    if found.is_empty() && meeting.iter().any(|script| ground.has_unknown(*script)) {
        let tried = |set: &Vec<&FirstLock>| {
            let (scripts, changes) = change(&[set])?;
            let set = ChangeSet::new(templates, ground.before, scripts, changes, &ground.lowest());
            Some(Made::to_try(set))
        };
        let locks_rows = |set: &&Vec<&FirstLock>| set[0].kind == FirstLockKind::Lock;
        return sets.iter().filter(locks_rows).filter_map(tried).collect();
    }
    found
}

/// The advisory locks, together where several scripts take one of the same column.
fn advisory<'l>(locks: impl Iterator<Item = &'l FirstLock>) -> Vec<Vec<&'l FirstLock>> {
    let mut sets: BTreeMap<&str, Vec<&FirstLock>> = BTreeMap::new();
    for lock in locks.filter(|lock| lock.kind == FirstLockKind::Advisory) {
        // The same text but for the variable.
        let column = lock.text.rsplit_once(':').map_or(lock.text.as_str(), |(column, _)| column);
        sets.entry(column).or_default().push(lock);
    }
    sets.into_values().collect()
}
