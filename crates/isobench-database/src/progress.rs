//! What an initialisation tells while it runs, and what it took, with pgbench's lines for both.

use std::fmt::{self, Write as _};
use std::time::Duration;

use isobench_pgwire::ServerError;

use crate::steps::Step;

/// Something that happened while tables are made. `Display` gives pgbench's line, without a line end.
#[derive(Debug, Clone)]
pub enum Progress {
    /// A step starts.
    Step(Step),
    /// The partitions of the accounts are made now: this many.
    Partitions(u32),
    /// Rows were sent; told every 100,000 rows of a table.
    Rows {
        /// The table's name.
        table: &'static str,
        /// Rows sent so far.
        done: u64,
        /// Rows in all.
        total: u64,
        /// Time since the first row.
        elapsed: Duration,
    },
    /// The server sent a notice.
    Notice(Box<ServerError>),
    /// Something worth knowing that pgbench has no line for, for example a step this product doesn't need.
    Note(String),
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Step(step) => f.write_str(step.announcement()),
            Progress::Partitions(count) => write!(f, "creating {count} partitions..."),
            Progress::Rows { table, done, total, elapsed } => {
                let elapsed = elapsed.as_secs_f64();
                let share = *done as f64 / (*total).max(1) as f64;
                let remaining = if *done == 0 { 0.0 } else { elapsed * (1.0 - share) / share };
                write!(
                    f,
                    "{done} of {total} tuples ({:.0}%) of {table} done (elapsed {elapsed:.2} s, remaining \
                     {remaining:.2} s)",
                    (share * 100.0).floor()
                )
            }
            Progress::Notice(notice) => notice.fmt(f),
            Progress::Note(note) => f.write_str(note),
        }
    }
}

/// How long an initialisation and each of its steps took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timings {
    /// The steps in the order they ran.
    pub steps: Vec<(Step, Duration)>,
    /// From the start of the first to the end of the last.
    pub total: Duration,
}

impl Timings {
    /// pgbench's last line: `done in 0.31 s (drop tables 0.00 s, …).`
    pub fn summary(&self) -> String {
        let mut line = format!("done in {:.2} s (", self.total.as_secs_f64());
        for (index, (step, took)) in self.steps.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            // Writing to a String can't fail.
            let _ = write!(line, "{comma}{} {:.2} s", step.name(), took.as_secs_f64());
        }
        line.push_str(").");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_pgbench() {
        let rows = |done| Progress::Rows {
            table: "pgbench_accounts",
            done,
            total: 500_000,
            elapsed: Duration::from_millis(190),
        };
        assert_eq!(
            rows(200_000).to_string(),
            "200000 of 500000 tuples (40%) of pgbench_accounts done (elapsed 0.19 s, remaining 0.28 s)"
        );
        assert!(rows(0).to_string().ends_with("remaining 0.00 s)"));
        assert_eq!(Progress::Partitions(3).to_string(), "creating 3 partitions...");
        let timings = Timings {
            steps: vec![
                (Step::DropTables, Duration::from_millis(4)),
                (Step::ServerGenerate, Duration::from_millis(160)),
            ],
            total: Duration::from_millis(310),
        };
        assert_eq!(timings.summary(), "done in 0.31 s (drop tables 0.00 s, server-side generate 0.16 s).");
    }
}
