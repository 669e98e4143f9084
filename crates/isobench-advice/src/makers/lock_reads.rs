//! Locks of rows that scripts read before they write rows of the same table, for where theory proves nothing with them:
//! in scripts with statements that isobench can't analyse, and where a row may be gone or not there yet.

use std::collections::BTreeSet;

use isobench_program::Templates;
use isobench_result::{OrderOutcome, Tried};
use isobench_robustness::{Change, Kind, Operation, Promoted, Promotion, Strength};

use super::{Ground, Made, ReadAgain};
use crate::change_set::ChangeSet;
use crate::shown::Executed;

/// Where something was shown of a script that isobench can't analyse: each read alone, with read committed for all. Of
/// other scripts, if nothing proves read committed for all: all such reads together.
pub(super) fn make(ground: &Ground<'_>, _: &mut ReadAgain<'_>) -> Vec<Made> {
    let templates = ground.templates();
    let meeting = ground.meeting();
    if !meeting.iter().any(|script| ground.has_unknown(*script)) {
        if ground.has_lowest() {
            return Vec::new();
        }
        let all: Vec<Promotion> = meeting.iter().flat_map(|script| reads(templates, *script)).collect();
        return together(ground, all).into_iter().collect();
    }
    let shown = ground.decision.reasons.iter().filter(|reason| ground.has_unknown(reason.program));
    let of_shown = shown.flat_map(|reason| match &reason.executed {
        Executed::Shown(tried) => locks(templates, reason.program, tried),
        _ => Vec::new(),
    });
    of_shown.filter_map(|lock| together(ground, vec![lock])).collect()
}

/// The scripts with these locks, to be tried at read committed.
fn together(ground: &Ground<'_>, locks: Vec<Promotion>) -> Option<Made> {
    let promoted = Promoted { promotions: locks, levels: ground.lowest() };
    let set = ChangeSet::of(ground.templates(), ground.before, &promoted);
    set.filter(|set| !set.changes.is_empty()).map(Made::to_try)
}

/// The reads of a script whose rows it writes afterwards, as far as they can lock them; for each write the
/// last one before it.
fn reads(templates: &Templates, program: usize) -> Vec<Promotion> {
    let mut found: Vec<Promotion> = Vec::new();
    for branch in &templates.programs[program].branches {
        for (place, write) in branch.operations.iter().enumerate() {
            if !matches!(write.kind, Kind::Update | Kind::Delete) {
                continue;
            }
            let lockable = |read: &&Operation| {
                let statement = templates.statements.iter().find(|statement| statement.at == read.at);
                let fix = statement.and_then(|statement| statement.fixes.get(&read.table));
                // A transaction that waits for the first row of a queue gets none, although others are left.
                let is_queue =
                    statement.is_some_and(|one| one.locks_within.iter().any(|lock| lock.skips_locked));
                !is_queue
                    && read.kind.takes_stronger_lock()
                    && read.table == write.table
                    && read.statement < write.statement
                    && fix.is_some_and(|fix| fix.lock.is_some())
            };
            let read = branch.operations[..place].iter().rev().find(lockable);
            let promotion = read.map(|read| Promotion {
                program,
                at: read.at.clone(),
                table: read.table.clone(),
                change: Change::Lock(Strength::NoKeyUpdate),
            });
            found.extend(promotion.filter(|one| !found.contains(one)).into_iter().collect::<Vec<_>>());
        }
    }
    found
}

/// The same, first those of tables in which the wrong outcome differs from a right one.
fn locks(templates: &Templates, program: usize, shown: &Tried) -> Vec<Promotion> {
    let mut found = reads(templates, program);
    let wrong = |table: &str| {
        let name = table.rsplit('.').next().unwrap_or(table);
        let of = |line: &&String| line.split_whitespace().nth(1) == Some(name);
        shown.found.iter().any(|wrong| {
            let rows =
                |order: &OrderOutcome| order.changes.iter().filter(of).cloned().collect::<BTreeSet<_>>();
            wrong.serial_orders.iter().all(|order| rows(order) != rows(&wrong.outcome))
        })
    };
    found.sort_by_key(|one| !wrong(&one.table));
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use isobench_program::{Fix, TemplateStatement};
    use isobench_result::WrongOutcome;
    use isobench_robustness::{Branch, Columns, Program};

    use super::*;

    fn statement(at: &str, table: &str) -> TemplateStatement {
        let fix = Fix { lock: Some(String::new()), ..Fix::default() };
        let fixes = BTreeMap::from([(table.to_owned(), fix)]);
        TemplateStatement { line: 1, at: at.into(), fixes, ..TemplateStatement::default() }
    }

    #[test]
    fn reads_whose_rows_are_written_can_lock_them_first_those_of_what_is_wrong() {
        let read =
            |table: &str, at: &str| Operation::read(table, [("id", ":i")], ["id", "n"]).in_statement(at);
        let write = |table: &str, at: &str| {
            Operation::update(table, [("id", ":i")], Columns::from(["n"]), ["n"]).in_statement(at)
        };
        let operations = vec![
            read("s.stock", "p:1"),
            read("s.offer", "p:2"),
            read("s.offer", "p:3"),
            read("s.other", "p:4"),
            write("s.stock", "p:5"),
            write("s.offer", "p:6"),
        ];
        let templates = Templates {
            programs: vec![
                Program::new("p", vec![Branch::new("", operations)]),
                Program::new("q", vec![Branch::new("", vec![read("s.stock", "q:1")])]),
            ],
            statements: [("p:1", "s.stock"), ("p:2", "s.offer"), ("p:3", "s.offer"), ("p:4", "s.other")]
                .map(|(at, table)| statement(at, table))
                .to_vec(),
            ..Templates::default()
        };
        let order = |changes: &[&str]| OrderOutcome {
            order: vec![1, 2],
            changes: changes.iter().map(|line| (*line).to_owned()).collect(),
            ..OrderOutcome::default()
        };
        let wrong = WrongOutcome {
            damage: true,
            scripts: vec!["p".to_owned(); 2],
            before: String::new(),
            no_level_prevents: false,
            broken: Vec::new(),
            steps: Vec::new(),
            outcome: order(&["+ stock (1, 5)", "+ offer (1, 1)"]),
            serial_orders: vec![order(&["+ stock (1, 5)", "+ offer (1, 2)"])],
        };
        let shown = Tried { found: vec![wrong], ..Tried::default() };
        let found = locks(&templates, 0, &shown);
        let at: Vec<String> = found.iter().map(|one| one.at.to_string()).collect();
        assert_eq!(at, ["p:3", "p:1"]);
    }
}
