//! Exclusion constraints that are missing, where a script looks for rows that overlap before it inserts one.

use std::collections::{BTreeMap, BTreeSet};

use isobench_program::{Overlap, Templates};
use isobench_robustness::{Kind, StatementId};
use isobench_sql::{is_plain, name_in_sql};

use super::{Ground, Made, ReadAgain};
use crate::change_set::{ChangeSet, Changed, Edit};

/// Constraints with which the second of two inserts of overlapping ranges fails. Single values are compared by the
/// extension `btree_gist`; where the tables' database doesn't have it, integers are ranges of one number.
pub(super) fn make(ground: &Ground<'_>, _: &mut ReadAgain<'_>) -> Vec<Made> {
    let (templates, meeting) = (ground.templates(), ground.meeting());
    let mut overlaps: BTreeMap<&Overlap, &StatementId> = BTreeMap::new();
    for statement in templates.statements.iter().filter(|one| meeting.contains(&one.script)) {
        for overlap in &statement.overlaps {
            if inserts(templates, statement.script, &overlap.table) && is_plain(&overlap.table) {
                overlaps.entry(overlap).or_insert(&statement.at);
            }
        }
    }
    let set = |overlap: &Overlap, at: &StatementId, with_extension: bool| {
        let constraint = overlap.constraint(with_extension)?;
        let table = name_in_sql(&overlap.table);
        let sql = format!("ALTER TABLE {table} ADD {constraint}");
        let without = if with_extension { "" } else { ", without the extension btree_gist" };
        let name = format!("exclusion constraint on {}{without}", overlap.table);
        let change = Changed { at: at.clone(), table: overlap.table.clone(), to: Edit::Index(sql) };
        Some(ChangeSet::index(templates, ground.before, name, change, &ground.lowest()))
    };
    let made = overlaps.into_iter().filter_map(|(overlap, at)| {
        let otherwise = set(overlap, at, false).filter(|_| !overlap.equal.is_empty());
        Some(Made { otherwise, ..Made::to_try(set(overlap, at, true)?) })
    });
    made.collect()
}

/// A sentence for each constraint that isn't among the changes.
pub(crate) fn hints(templates: &Templates, changed: &BTreeSet<&StatementId>) -> Vec<String> {
    let mut found = Vec::new();
    for statement in templates.statements.iter().filter(|one| !changed.contains(&one.at)) {
        for overlap in
            statement.overlaps.iter().filter(|one| inserts(templates, statement.script, &one.table))
        {
            let Some(constraint) = overlap.constraint(true) else { continue };
            let needs = if overlap.equal.is_empty() { "" } else { "; it needs the extension btree_gist" };
            found.push(format!(
                "{} looks for rows of {} that overlap: {constraint} makes the second insert fail, at \
                 any level{needs}",
                statement.at, overlap.table
            ));
        }
    }
    found
}

/// True if a script inserts into a table.
fn inserts(templates: &Templates, script: usize, table: &str) -> bool {
    let branches = &templates.programs[script].branches;
    let mut operations = branches.iter().flat_map(|branch| &branch.operations);
    operations.any(|one| one.kind == Kind::Insert && one.table == table)
}
