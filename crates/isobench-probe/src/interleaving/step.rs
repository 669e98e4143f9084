//! The steps of transactions that run against each other, as they are shown.

use crate::event::Table;

/// A step as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The number of the transaction.
    pub transaction: usize,
    /// What it sent.
    pub sql: String,
    /// The line of the script on which the statement starts, from 1; `None` for one that isobench adds.
    pub line: Option<u32>,
    /// True if a BEGIN was sent before it, because it stands outside of a block of its own.
    pub enclosed: bool,
    /// What became of it.
    pub result: StepResult,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepResult {
    /// It waits for another transaction.
    Waits,
    /// It returned rows.
    Rows(Table),
    /// It ended; the command tag.
    Tag(String),
    /// It failed.
    Failed(String),
}

/// The longest line of an answer that is shown whole, in characters.
const WIDEST: usize = 60;

/// The most rows of an answer that are shown.
const MOST_ROWS: usize = 4;

impl Step {
    /// True if it waits for another transaction.
    pub fn waits(&self) -> bool {
        self.result == StepResult::Waits
    }

    /// The answer as psql would show it, a line each; long ones are cut.
    pub fn answer(&self) -> Vec<String> {
        let cut = |text: String| {
            let long = text.chars().count() > WIDEST;
            if long { text.chars().take(WIDEST - 1).chain(['…']).collect() } else { text }
        };
        match &self.result {
            StepResult::Waits => vec!["waits".to_owned()],
            StepResult::Tag(tag) => vec![tag.clone()],
            StepResult::Failed(why) => vec![why.clone()],
            StepResult::Rows(table) => {
                let shown = table.rows.iter().take(MOST_ROWS).map(|row| {
                    let values: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("")).collect();
                    cut(values.join(" | "))
                });
                let count = match table.rows.len() {
                    1 => "(1 row)".to_owned(),
                    many => format!("({many} rows)"),
                };
                std::iter::once(cut(table.columns.join(" | "))).chain(shown).chain([count]).collect()
            }
        }
    }
}
