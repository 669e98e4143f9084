//! Advisory locks of values by which transactions find or insert rows, for where no row could be locked.

use std::collections::BTreeMap;

use isobench_program::{FirstLock, FirstLockKind};

use super::{Ground, Made, ReadAgain, lock_first};

/// Of a column, in all scripts that meet where a level is too low and that use a value of it.
pub(super) fn make(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    let meeting = ground.meeting();
    let of_values =
        |lock: &&FirstLock| lock.kind == FirstLockKind::Advisory && meeting.contains(&lock.script);
    let mut columns: BTreeMap<&str, Vec<&FirstLock>> = BTreeMap::new();
    for lock in ground.templates().first_locks.iter().filter(of_values) {
        // The same text but for the variable.
        let column = lock.text.rsplit_once(':').map_or(lock.text.as_str(), |(column, _)| column);
        columns.entry(column).or_default().push(lock);
    }
    let all: Vec<&Vec<&FirstLock>> = columns.values().collect();
    ground.fewest(&all, read_again, |set| {
        lock_first::with(ground, &set.iter().copied().flatten().copied().collect::<Vec<_>>())
    })
}
