//! What can go wrong, and between which templates.

use std::collections::BTreeSet;

use isobench_isolation::Level;

/// What can go wrong, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A row is changed by what was read of it before, and another change in between is lost.
    LostUpdate,
    /// Rows are looked for, and one is inserted because of what was found.
    Duplicate,
    /// What is written depends on other rows that change.
    WriteSkew,
    /// Two reads see data of different moments.
    StaleRead,
}

/// A pair that can race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// What can go wrong.
    pub kind: Kind,
    /// The number of the template that reads, and goes on when the other one has committed.
    pub split: usize,
    /// The number of the other one.
    pub within: usize,
    /// The table that is read, and changed by the other one.
    pub read_table: String,
    /// The columns of it that are read and changed; empty if rows come or go.
    pub columns: BTreeSet<String>,
    /// The table by which the first one goes wrong: that it writes, or reads later.
    pub back_table: String,
    /// Its statements, by number: the read, and the one by which it goes wrong.
    pub steps: [usize; 2],
    /// True if the second one of them ran before the read.
    pub earlier: bool,
    /// The statements of the other one: that changes what was read, and the one on which the first one depends.
    pub within_steps: [usize; 2],
    /// The lowest level of both at which no such schedule is found; `None` if there is none.
    pub needed: Option<Level>,
}

/// What is known of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is in a suspect.
    Suspect,
    /// Theory names no schedule of it with any templates that share its tables.
    Excluded,
    /// No suspect, but not excluded either, because of this.
    Undecided(String),
    /// A statement of it isn't analysed, because of this.
    NotAnalysed(String),
}
