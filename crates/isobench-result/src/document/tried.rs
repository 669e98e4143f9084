//! What trying a workload's scripts against each other showed.

use serde::{Deserialize, Serialize};

use crate::words::enumerated;

/// What trying showed at the level of a cell: interleavings of its scripts on tables of their own, each
/// compared with every serial order of the same transactions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tried {
    /// The number of interleavings that were run and compared.
    pub interleavings: u64,
    /// Those in which a transaction failed, so that only the others were compared.
    pub with_failures: u64,
    /// Those that came to no end, or ended with half a script, so that nothing was compared.
    pub inconclusive: u64,
    /// True if everything that was planned was tried.
    pub complete: bool,
    /// Combinations of scripts that the time didn't reach on the tables as they are made, at any
    /// level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untried: Vec<String>,
    /// Combinations with numbers for which the same order took different ways when it was run twice, so
    /// that they weren't judged, at any level.
    pub undetermined: u64,
    /// The time for all levels together, in seconds, without making the tables.
    pub seconds: f64,
    /// Outcomes that no serial order gives, the gravest first; empty if none was found.
    pub found: Vec<WrongOutcome>,
    /// Scripts that weren't tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_tried: Vec<NotTried>,
    /// Columns (table.column) whose values an order doesn't determine, from sequences, the clock or
    /// random numbers; they aren't judged by themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<String>,
    /// What asks for outcomes that no order gives (SKIP LOCKED and the like), with the scripts; they
    /// don't count against the level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_design: Vec<String>,
}

/// What stands between the names of scripts that are tried against each other.
const BESIDE: &str = " × ";

/// A script that wasn't tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NotTried {
    /// The script's name; empty for all of them.
    pub script: String,
    /// The reason.
    pub reason: String,
}

/// An interleaving whose outcome no serial order gives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WrongOutcome {
    /// True if the tables end as no order leaves them; false if only an answer is one that no order
    /// gives.
    pub damage: bool,
    /// The scripts: transaction 1, 2, …
    pub scripts: Vec<String>,
    /// The state of the tables before, in words; empty for that in which they are made.
    pub before: String,
    /// True if transaction 1 was split between two of its transactions, which no level prevents.
    pub no_level_prevents: bool,
    /// The conditions of the user's (`--invariant`) that it breaks, but no serial order does, by their
    /// names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// What happened, in order.
    pub steps: Vec<TriedStep>,
    /// What came of it.
    pub outcome: OrderOutcome,
    /// What each serial order gives.
    pub serial_orders: Vec<OrderOutcome>,
}

/// A step of an interleaving.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TriedStep {
    /// The transaction, from 1.
    pub transaction: usize,
    /// What it sent.
    pub sql: String,
    /// The line of the script on which the statement starts, from 1; missing for one that isobench adds,
    /// and in older documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The answer, a line each: the columns and rows, the command tag, an error, or "waits".
    pub answer: Vec<String>,
}

/// What an order of transactions leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OrderOutcome {
    /// The transactions, from 1, in order; for an interleaving, all of them.
    pub order: Vec<usize>,
    /// The rows that are gone (-) and new (+), each with its table.
    pub changes: Vec<String>,
    /// The rows that each transaction got: "T1: (5, 7)".
    #[serde(alias = "told")]
    pub answers: Vec<String>,
    /// The same as `changes`, by table and with values apart; missing in older documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<ChangedTable>,
    /// The same as `answers`, with values apart; missing in older documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<AnsweredRows>,
}

/// What changed in a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChangedTable {
    /// Its name.
    pub table: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The rows that are gone: their values as text, null for NULL.
    pub removed: Vec<Vec<Option<String>>>,
    /// The new rows.
    pub added: Vec<Vec<Option<String>>>,
}

/// The rows that a statement of a transaction returned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AnsweredRows {
    /// The transaction, from 1.
    pub transaction: usize,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows: their values as text, null for NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Tried {
    /// True if every script was tried with every other one on the tables as they are made.
    pub fn all_combinations(&self) -> bool {
        self.all_of(&|_| true)
    }

    /// The same of the combinations that matter.
    pub fn all_of(&self, matters: &dyn Fn(&[&str]) -> bool) -> bool {
        let untried = |combination: &String| matters(&combination.split(BESIDE).collect::<Vec<_>>());
        self.interleavings > 0
            && !self.untried.iter().any(untried)
            && self.undetermined == 0
            && self.not_tried.is_empty()
    }
}

impl TriedStep {
    /// True if its statement waited for another transaction.
    pub fn waits(&self) -> bool {
        self.answer.iter().any(|line| line == "waits")
    }
}

impl WrongOutcome {
    /// What is wrong, in a clause.
    pub fn what(&self) -> String {
        let what = if self.damage {
            "the data end as no serial order leaves them"
        } else {
            "a transaction gets an answer that no serial order gives"
        };
        let broken: Vec<String> = self.broken.iter().map(|name| format!("\"{name}\"")).collect();
        match broken.as_slice() {
            [] => what.to_owned(),
            [one] => format!("{what}, and condition {one} is broken"),
            several => format!("{what}, and conditions {} are broken", enumerated(several)),
        }
    }

    /// The scripts as people say it: "visit.sql within move.sql".
    pub fn scripts(&self) -> String {
        let Some((first, others)) = self.scripts.split_first() else { return String::new() };
        format!("{} within {first}", others.join(" and "))
    }
}
