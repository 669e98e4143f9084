//! What the search found.

use std::collections::BTreeSet;
use std::time::Duration;

use isobench_isolation::Allocation;

use super::execution::Answer;
use super::outcome::Outcome;
use super::step::Step;
use super::tables::{Row, WatchedTable};
use crate::event::Table;

/// What trying scripts against each other has shown.
#[derive(Debug, Default)]
pub struct Found {
    /// Each level, in the order asked for.
    pub levels: Vec<LevelFound>,
    /// The index of the weakest one, which goes ahead.
    pub weakest: usize,
    /// Scripts that weren't tried, each with the reason.
    pub refused: Vec<(String, String)>,
    /// The first time that a unique index refused what a script did by itself or after another one: why
    /// it failed, with line and SQLSTATE.
    pub violated: Option<String>,
    /// Columns whose values an order doesn't determine (from sequences, the clock, random numbers),
    /// as `table.column`. They aren't judged by themselves.
    pub masked: BTreeSet<String>,
    /// Combinations that take different ways when the same order is run twice, and so weren't judged.
    pub undetermined: u64,
    /// Outcomes that no order gives because a statement asks for them.
    pub by_design: Vec<ByDesign>,
    /// True if everything that was planned was tried.
    pub complete: bool,
    /// Combinations of scripts that the budget didn't reach at the weakest level, in the starting
    /// state of the tables.
    pub untried: Vec<String>,
    /// The same at the other levels.
    pub untried_above: Vec<String>,
    /// The time it took, from opening the sessions to the last trial.
    pub elapsed: Duration,
}

/// What was found at a level.
#[derive(Debug)]
pub struct LevelFound {
    /// The levels of the scripts.
    pub allocation: Allocation,
    /// The number of interleavings that were run and compared.
    pub trials: u64,
    /// Those in which a transaction failed, so that only the others were compared.
    pub with_failures: u64,
    /// Those that came to no end, or ended with half a script, so that nothing was compared.
    pub inconclusive: u64,
    /// Why a transaction failed first, with line and SQLSTATE.
    pub failure: Option<String>,
    /// The first interleaving that leaves the tables as no order does.
    pub damage: Option<Witness>,
    /// The first interleaving in which a transaction that committed got an answer that no order gives.
    pub wrong_answer: Option<Witness>,
}

/// An outcome that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByDesign {
    /// The levels of the scripts.
    pub allocation: Allocation,
    /// What asks for it: `SKIP LOCKED`.
    pub how: &'static str,
    /// The scripts.
    pub scripts: String,
}

/// An interleaving whose outcome no serial order gives.
#[derive(Debug)]
pub struct Witness {
    /// True if the tables end as no order leaves them; false if only an answer is wrong.
    pub damage: bool,
    /// The scripts: T1, T2, …
    pub scripts: Vec<String>,
    /// The state of the tables in words; empty for that after the setup.
    pub before: String,
    /// The statements that were sent before.
    pub prefix_sql: Vec<String>,
    /// True if T1 was split between two of its transactions, which no level prevents.
    pub no_level_prevents: bool,
    /// What happened.
    pub steps: Vec<Step>,
    /// What came of it.
    pub outcome: Order,
    /// The conditions that it breaks, but no serial order does.
    pub broken: Vec<String>,
    /// What each serial order gives.
    pub orders: Vec<Order>,
}

/// An order of transactions and its outcome.
#[derive(Debug)]
pub struct Order {
    /// The transactions, from 0.
    pub transactions: Vec<usize>,
    /// The changes of the tables: `-`/`+`, table and row.
    pub changes: Vec<String>,
    /// The same, by table.
    pub tables: Vec<ChangedTable>,
    /// The rows that each transaction got, in order.
    pub answers: Vec<(usize, String)>,
    /// The same as tables.
    pub rows: Vec<(usize, Table)>,
}

/// What changed in a table.
#[derive(Debug)]
pub struct ChangedTable {
    /// Its name.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The rows that are gone; `None` is NULL.
    pub removed: Vec<Vec<Option<String>>>,
    /// The new rows.
    pub added: Vec<Vec<Option<String>>>,
}

impl LevelFound {
    pub(super) fn new(allocation: Allocation) -> LevelFound {
        LevelFound {
            allocation,
            trials: 0,
            with_failures: 0,
            inconclusive: 0,
            failure: None,
            damage: None,
            wrong_answer: None,
        }
    }

    /// The gravest finding.
    pub fn gravest(&self) -> Option<&Witness> {
        self.damage.as_ref().or(self.wrong_answer.as_ref())
    }
}

impl Found {
    pub(super) fn note_by_design(&mut self, found: ByDesign) {
        let known = |other: &ByDesign| other.allocation == found.allocation && other.how == found.how;
        if !self.by_design.iter().any(known) {
            self.by_design.push(found);
        }
    }

    /// Combinations of scripts that the budget didn't reach at a level, in the starting state of the
    /// tables.
    pub fn untried_at(&self, allocation: &Allocation) -> &[String] {
        let weakest = self.levels.get(self.weakest).map(|found| &found.allocation);
        if weakest == Some(allocation) { &self.untried } else { &self.untried_above }
    }

    /// The number of interleavings at all levels.
    pub fn trials(&self) -> u64 {
        self.levels.iter().map(|level| level.trials).sum()
    }
}

impl Order {
    pub(super) fn new(order: &[usize], outcome: &Outcome, tables: &[WatchedTable]) -> Order {
        let (mut changes, mut changed_tables) = (Vec::new(), Vec::new());
        for (table, changed) in &outcome.delta.tables {
            let WatchedTable { name, columns, .. } = &tables[*table];
            changes.extend(changed.removed.iter().map(|row| format!("- {name} {}", shown(row))));
            changes.extend(changed.added.iter().map(|row| format!("+ {name} {}", shown(row))));
            changed_tables.push(ChangedTable {
                name: name.clone(),
                columns: columns.clone(),
                removed: changed.removed.clone(),
                added: changed.added.clone(),
            });
        }
        let (mut answers, mut answered) = (Vec::new(), Vec::new());
        for number in order {
            for (_, answer) in &outcome.views[*number].answers {
                if let Answer::Rows { table, .. } = answer {
                    let rows: Vec<String> = table.rows.iter().map(shown).collect();
                    answers.push((*number, rows.join(" ")));
                    answered.push((*number, table.clone()));
                }
            }
        }
        Order { transactions: order.to_vec(), changes, tables: changed_tables, answers, rows: answered }
    }
}

/// A row in parentheses.
fn shown(row: &Row) -> String {
    let values: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
    format!("({})", values.join(", "))
}
