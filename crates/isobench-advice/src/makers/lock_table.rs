//! Locks of whole tables, for where transactions count rows of a table and add some, and there is no row to lock.
//!
//! A lock in SHARE ROW EXCLUSIVE mode makes all who write the table wait, whether their scripts are changed or not.
//! Queries go on (PostgreSQL manual, "Table-Level Locks").

use std::collections::BTreeMap;

use isobench_program::{FirstLock, FirstLockKind};

use super::{Ground, Made, ReadAgain, lock_first};

/// Of each table, in all scripts that meet where a level is too low and that look for rows of it.
pub(super) fn make(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    let meeting = ground.meeting();
    let of_tables = |lock: &&FirstLock| lock.kind == FirstLockKind::Table && meeting.contains(&lock.script);
    let mut tables: BTreeMap<&str, Vec<&FirstLock>> = BTreeMap::new();
    for lock in ground.templates().first_locks.iter().filter(of_tables) {
        tables.entry(&lock.table).or_default().push(lock);
    }
    let all: Vec<&Vec<&FirstLock>> = tables.values().collect();
    ground.fewest(&all, read_again, |set| {
        lock_first::with(ground, &set.iter().copied().flatten().copied().collect::<Vec<_>>())
    })
}
