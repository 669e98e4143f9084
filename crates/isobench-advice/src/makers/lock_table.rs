//! Locks of whole tables, for where transactions count rows of a table and add some, and there is no row to lock.
//!
//! A lock in SHARE ROW EXCLUSIVE mode makes all writers of the table wait, whether their scripts are changed or not.
//! Queries go on (PostgreSQL manual, "Table-Level Locks").

use std::collections::BTreeMap;

use isobench_program::{FirstLock, FirstLockKind, Templates};
use isobench_robustness::Kind;

use super::{Ground, Made, ReadAgain, lock_first};

/// Of each table in which a script looks for rows: in one script that meets another where a level is too low, in some
/// of them, or in all.
pub(super) fn make(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    if ground.has_lowest() {
        return Vec::new();
    }
    let meeting = ground.meeting();
    let of_tables = |lock: &&FirstLock| lock.kind == FirstLockKind::Table && meeting.contains(&lock.script);
    let mut tables: BTreeMap<&str, Vec<&FirstLock>> = BTreeMap::new();
    for lock in ground.templates().first_locks.iter().filter(of_tables) {
        tables.entry(&lock.table).or_default().push(lock);
    }
    let searched: Vec<Vec<&FirstLock>> = tables
        .into_iter()
        .filter(|(table, _)| is_searched(ground.templates(), table))
        .map(|(_, locks)| locks)
        .collect();
    let each = searched.iter().flatten().map(|lock| vec![*lock]);
    let together = searched.iter().filter(|locks| locks.len() > 1).cloned();
    let all: Vec<Vec<&FirstLock>> = each.chain(together).collect();
    ground.fewest(&all.iter().collect::<Vec<_>>(), read_again, |set| {
        let locks: Vec<&FirstLock> = set.iter().copied().flatten().copied().collect();
        let is_twice = (1..locks.len()).any(|at| locks[..at].contains(&locks[at]));
        if is_twice { None } else { lock_first::with(ground, &locks) }
    })
}

/// True if a script looks for rows of a table otherwise than by a key.
fn is_searched(templates: &Templates, table: &str) -> bool {
    let branches = templates.programs.iter().flat_map(|program| &program.branches);
    branches.flat_map(|branch| &branch.operations).any(|one| one.kind == Kind::Search && one.table == table)
}
