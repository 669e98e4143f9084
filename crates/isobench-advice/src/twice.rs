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

use crate::advice::{ChangeSet, Reason};
use crate::patch::ScriptText;

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
    /// Those in which a transaction failed.
    pub with_failures: u64,
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
            (None, Some(_)) => "not tried".to_owned(),
            (None, None) if self.interleavings == 0 => "not tried".to_owned(),
            (None, None) if self.with_failures > 0 => {
                format!("errors in {} of {}", self.with_failures, self.interleavings)
            }
            (None, None) => format!("safe in {}", self.interleavings),
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
                matches!(read.kind, Kind::Read | Kind::Search)
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
    let set = ChangeSet::of(templates, before, &Promoted { promotions, levels, share: false })?;
    debug_assert_eq!(set.allocation, Allocation::uniform(Level::ReadCommitted));
    Some(set)
}
