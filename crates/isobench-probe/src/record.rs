//! The results of each step of a run, collected from its events, as the basis of the evaluation.

use isobench_pgwire::{ServerError, cut};

use crate::event::{Event, Table};

/// The result of one launch of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct StepRecord {
    /// The step's name.
    pub name: String,
    /// True if it waited.
    pub waited: bool,
    /// True if it was cancelled because it took too long.
    pub cancelled: bool,
    /// True if it has completed.
    pub completed: bool,
    /// The rows returned by its statements.
    pub tables: Vec<Table>,
    /// The tags of its statements that returned no rows.
    pub tags: Vec<String>,
    /// Its first error.
    pub error: Option<ServerError>,
    /// True if its connection was lost.
    pub lost: bool,
}

/// The results of the steps, in launch order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The launches.
    pub steps: Vec<StepRecord>,
    /// The step to which the next results belong.
    current: Option<usize>,
}

impl Record {
    /// Processes the next event of a permutation.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Waiting { name, .. } => {
                let index = self.under_way(name);
                self.steps[index].waited = true;
                self.current = None;
            }
            Event::Step { name, .. } | Event::Completed { name } => {
                let index = self.under_way(name);
                self.steps[index].completed = true;
                self.current = Some(index);
            }
            Event::Cancelling { name, .. } => {
                let index = self.under_way(name);
                self.steps[index].cancelled = true;
            }
            Event::End => self.current = None,
            _ => {
                if let Some(step) = self.current.and_then(|index| self.steps.get_mut(index)) {
                    step.take(event);
                }
            }
        }
    }

    /// The first launch of the step with this name.
    pub fn step(&self, name: &str) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// The incomplete launch of this name, added if this is its first event.
    fn under_way(&mut self, name: &str) -> usize {
        let known = self.steps.iter().position(|step| step.name == name && !step.completed);
        known.unwrap_or_else(|| {
            self.steps.push(StepRecord::new(name));
            self.steps.len() - 1
        })
    }
}

impl StepRecord {
    fn new(name: &str) -> StepRecord {
        StepRecord {
            name: name.to_owned(),
            waited: false,
            cancelled: false,
            completed: false,
            tables: Vec::new(),
            tags: Vec::new(),
            error: None,
            lost: false,
        }
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Rows(table) => self.tables.push(table.clone()),
            Event::Command(tag) => self.tags.push(tag.clone()),
            Event::Error(error) => {
                let cut = || ServerError { message: cut(&error.message).into_owned(), ..error.clone() };
                self.error.get_or_insert_with(cut);
            }
            Event::Lost(_) => self.lost = true,
            _ => {}
        }
    }

    /// The results of its queries in one line: values separated by blanks, rows by `; `, queries by
    /// ` / `, and NULL as `null`. `None` if it returned nothing, or failed.
    pub fn rows(&self) -> Option<String> {
        if self.error.is_some() || self.tables.is_empty() {
            return None;
        }
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "null".to_owned());
        let row = |row: &Vec<Option<String>>| row.iter().map(value).collect::<Vec<_>>().join(" ");
        let table = |table: &Table| table.rows.iter().map(row).collect::<Vec<_>>().join("; ");
        Some(self.tables.iter().map(table).collect::<Vec<_>>().join(" / "))
    }

    /// True if it completed without an error.
    pub fn succeeded(&self) -> bool {
        self.completed && self.error.is_none() && !self.lost && !self.cancelled
    }

    /// True if it committed. A failed COMMIT may return the tag `ROLLBACK` instead of an error;
    /// other tags differ between products.
    pub fn committed(&self) -> bool {
        self.succeeded() && self.tags.last().is_some_and(|tag| !tag.eq_ignore_ascii_case("rollback"))
    }
}
