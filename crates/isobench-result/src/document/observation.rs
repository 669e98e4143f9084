//! What was seen of the transactions, statement by statement: the fields.

use isobench_isolation::Level;
use serde::{Deserialize, Serialize};

/// How the transactions of a workload's scripts were observed, and what stayed dark.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Observation {
    /// The workload's name.
    pub workload: String,
    /// The strategy, if the plan has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The statements of the scripts, in order.
    pub statements: Vec<ObservedStatement>,
    /// The reason why rows weren't observed although they could have been; missing if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prevented: Option<String>,
    /// Values that are read in one transaction and written in another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<CarriedValue>,
    /// The levels at which these scripts are proved to be safe together, if nothing else writes their
    /// tables: what isn't seen of their statements can't matter there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proved: Vec<Level>,
}

/// A value that a statement reads in one transaction, and another one writes in a later transaction of
/// the same script, so that no level protects it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CarriedValue {
    /// The place of the statement that reads it, for example "edit.sql:3".
    pub read: String,
    /// The place of the statement that writes it.
    pub written: String,
}

/// What was seen of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObservedStatement {
    /// The script's name.
    pub script: String,
    /// The line on which its command starts, from 1.
    pub line: u32,
    /// Its text as written.
    pub text: String,
    /// True if it was sent with more output columns than written.
    pub sent_differently: bool,
    /// The tables whose rows were seen.
    pub tables: Vec<ObservedRows>,
    /// The tables that it scans as a whole, as the planner said before the measurement; empty if none, or if
    /// its plan wasn't looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scans: Vec<String>,
    /// What wasn't seen, a sentence each.
    pub dark: Vec<String>,
    /// What has to be so when it is sent for all of it to be seen: "its OFFSET is 0"; missing if all of
    /// it was seen anyway, or can't be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wholly_if: Option<String>,
    /// How what wasn't seen of it can matter, for example "decides an INSERT"; missing if everything
    /// was seen, or nothing else can matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matters: Option<String>,
    /// How it can matter what it missed in a transaction for whose values that isn't known
    /// ([`Verdict::unsearched`](super::Verdict::unsearched)); missing if it can't, or `matters` says so of
    /// every transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matters_if_unsearched: Option<String>,
}

/// The rows of a table that a statement showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObservedRows {
    /// The table.
    pub table: String,
    /// The columns of its key, for example `(w_id, d_id)`.
    pub key: String,
    /// "reads" or "writes".
    pub access: String,
    /// How the order of the versions is known: "row lock", "OLD and NEW", or "-".
    pub order: String,
    /// True if the rows that the statement didn't find are known as well.
    pub searched: bool,
}

impl Observation {
    /// The number of statements that were sent with more output columns than written.
    pub fn sent_differently(&self) -> usize {
        self.statements.iter().filter(|statement| statement.sent_differently).count()
    }

    /// How many of the statements that touch rows, or may do so, are seen wholly.
    pub fn tracked(&self) -> Tracked {
        let of = |statement: &&ObservedStatement| !statement.tables.is_empty() || !statement.dark.is_empty();
        let on_rows = self.statements.iter().filter(of);
        Tracked {
            wholly: on_rows.clone().filter(|statement| statement.dark.is_empty()).count(),
            on_condition: on_rows.clone().filter(|statement| statement.wholly_if.is_some()).count(),
            on_rows: on_rows.count(),
        }
    }
}

/// Numbers of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracked {
    /// Those of which all is seen.
    pub wholly: usize,
    /// Those of which all is seen if a value that isn't known before is 0, the OFFSET.
    pub on_condition: usize,
    /// Those that touch rows, or may do so.
    pub on_rows: usize,
}
