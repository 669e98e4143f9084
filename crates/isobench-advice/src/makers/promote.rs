//! Reads that lock their rows, or write them back.

use isobench_robustness::{Change, Promoted, Promoting, Promotion, Struck, promote, promoted};

use super::{Ground, MOST_CHANGES, Made, ReadAgain, added};
use crate::change_set::ChangeSet;

pub(super) fn make(ground: &Ground<'_>, _: &mut ReadAgain<'_>) -> Vec<Made> {
    let templates = ground.templates();
    // No lock protects a value that a later transaction writes.
    if !templates.carried.is_empty() {
        return Vec::new();
    }
    let may = |promotion: &Promotion| {
        let statement = templates.statements.iter().find(|statement| statement.at == promotion.at);
        let fix = statement.and_then(|statement| statement.fixes.get(&promotion.table));
        fix.is_some_and(|fix| match promotion.change {
            Change::Lock(_) => fix.lock.is_some(),
            Change::Write => fix.write.is_some(),
        })
    };
    let stopped = ground.question.stopped;
    let promoting = Promoting { most: MOST_CHANGES, struck: &Struck::new(), may: &may, stopped };
    let found = promote(&templates.programs, &promoting);
    let made = |one: Promoted| {
        let set = ChangeSet::of(templates, ground.before, &one)?;
        let deadlocks = added(templates, &promoted(&templates.programs, &one.promotions));
        Some(Made::proved(ChangeSet { deadlocks, ..set }, one.levels))
    };
    found.into_iter().filter_map(made).collect()
}
