//! Scripts that run twice at once: what happens at each level, and the locks with which the lowest level
//! does.
//!
//! Of many scripts theory names more schedules than can be executed. What most often goes wrong is that a
//! transaction meets another one like it, so this is executed for each script that writes.

use std::collections::BTreeSet;

use isobench_isolation::{Allocation, Level};
use isobench_observation::Templates;
use isobench_result::{OrderOutcome, Tried};
use isobench_robustness::{Change, Kind, Operation, Promoted, Promotion, Strength};
use serde::Serialize;

use crate::change_set::ChangeSet;
use crate::patch::ScriptText;
use crate::reason::Reason;

/// A script that runs twice at once.
#[derive(Debug, Clone, Serialize)]
pub struct Twice {
    /// The script.
    pub script: String,
    /// What happens at each level, the lowest first.
    pub levels: Vec<AtLevel>,
    /// Changes with which nothing wrong was shown at the lowest level any more.
    pub changes: Vec<ChangeSet>,
}

/// What happens at a level.
#[derive(Debug, Clone, Serialize)]
pub struct AtLevel {
    /// The level.
    pub level: Level,
    /// The interleavings that were executed.
    pub interleavings: u64,
    /// Those in which a transaction failed, or that came to no end.
    pub with_failures: u64,
    /// Why a transaction failed first, with line and SQLSTATE; null if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// A wrong outcome; null if there was none.
    pub shown: Option<Reason>,
    /// Why it couldn't be executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untried: Option<String>,
}

impl AtLevel {
    /// What happens, in a few words; a wrong outcome with the number of its evidence.
    pub(crate) fn said(&self, evidence: Option<usize>) -> String {
        match (evidence, &self.untried) {
            (Some(number), _) => format!("shown unsafe [{number}]"),
            (None, Some(_)) if self.interleavings > 0 => "undecided".to_owned(),
            (None, Some(_)) => "not tried".to_owned(),
            (None, None) if self.interleavings == 0 => "not tried".to_owned(),
            (None, None) if self.with_failures > 0 => {
                format!("errors in {} of {}", self.with_failures, self.interleavings)
            }
            (None, None) => format!("nothing wrong in {}", self.interleavings),
        }
    }
}

/// The scripts that write, by their numbers.
pub fn writing(templates: &Templates) -> Vec<usize> {
    let writes = |operation: &Operation| matches!(operation.kind, Kind::Update | Kind::Insert | Kind::Delete);
    let programs = templates.programs.iter().enumerate();
    let writing = programs
        .filter(|(_, program)| program.branches.iter().any(|branch| branch.operations.iter().any(writes)));
    writing.map(|(number, _)| number).collect()
}

/// The reads of a script whose rows it writes afterwards, as far as they can lock them; for each write the
/// last one before it. First those of tables in which the wrong outcome differs from a right one.
pub fn locks(templates: &Templates, program: usize, shown: &Tried) -> Vec<Promotion> {
    let mut found: Vec<Promotion> = Vec::new();
    for branch in &templates.programs[program].branches {
        for (place, write) in branch.operations.iter().enumerate() {
            if !matches!(write.kind, Kind::Update | Kind::Delete) {
                continue;
            }
            let lockable = |read: &&Operation| {
                let statement = templates.statements.iter().find(|statement| statement.at == read.at);
                let fix = statement.and_then(|statement| statement.fixes.get(&read.table));
                read.kind.takes_stronger_lock()
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

/// The scripts with these reads locked, all at the lowest level.
pub fn locked(templates: &Templates, before: &[ScriptText], promotions: Vec<Promotion>) -> Option<ChangeSet> {
    let levels = vec![Level::ReadCommitted; templates.programs.len()];
    let set = ChangeSet::of(templates, before, &Promoted { promotions, levels })?;
    debug_assert_eq!(set.allocation, Allocation::uniform(Level::ReadCommitted));
    Some(set)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use isobench_observation::{Fix, TemplateStatement};
    use isobench_result::WrongOutcome;
    use isobench_robustness::{Branch, Columns, Program};

    use super::*;

    fn statement(at: &str, table: &str) -> TemplateStatement {
        let fix = Fix { lock: Some(String::new()), ..Fix::default() };
        let fixes = BTreeMap::from([(table.to_owned(), fix)]);
        TemplateStatement { line: 1, at: at.to_owned(), fixes, ..TemplateStatement::default() }
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
        assert_eq!(writing(&templates), [0]);
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
        let at: Vec<&str> = found.iter().map(|one| one.at.as_str()).collect();
        assert_eq!(at, ["p:3", "p:1"]);
    }

    #[test]
    fn a_level_is_said_in_few_words() {
        let at = |interleavings, with_failures, untried: Option<&str>| AtLevel {
            level: Level::ReadCommitted,
            interleavings,
            with_failures,
            failure: None,
            shown: None,
            untried: untried.map(str::to_owned),
        };
        assert_eq!(at(20, 0, None).said(None), "nothing wrong in 20");
        assert_eq!(at(20, 3, None).said(None), "errors in 3 of 20");
        assert_eq!(at(20, 3, None).said(Some(2)), "shown unsafe [2]");
        assert_eq!(at(0, 0, None).said(None), "not tried");
        assert_eq!(at(0, 0, Some("COPY")).said(None), "not tried");
        assert_eq!(at(9, 0, Some("it isn't known")).said(None), "undecided");
    }
}
