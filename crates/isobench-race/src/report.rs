//! The findings, for people and programs to read.

use serde::Serialize;

use crate::verdict::Verdict;

/// The findings about some commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The version of the server.
    pub server: String,
    /// The application's own level.
    pub own_level: String,
    /// The commands.
    pub commands: Vec<CommandReport>,
    /// The number of tables that are compared.
    pub tables: usize,
    /// The number of their rows at first.
    pub rows: usize,
    /// Tables that change while no command runs, so they aren't compared.
    pub ignored: Vec<String>,
    /// The number of statements that come while no command runs, so they are never held.
    pub noise: usize,
    /// The levels, in the order in which they were tried.
    pub levels: Vec<LevelReport>,
    /// Notes on the application's connections.
    pub notes: Vec<String>,
}

/// A command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CommandReport {
    /// Its name: A, B or C.
    pub name: String,
    /// Its text.
    pub command: String,
    /// The number of its statements that others can see, alone.
    pub statements: usize,
}

/// One level.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LevelReport {
    /// Its name.
    pub level: String,
    /// It is the one at which the application runs anyway.
    pub own: bool,
    /// Levels that the application asked for itself, which stay.
    pub asked: Vec<String>,
    /// A command sends no statement, so nothing is known of it.
    pub silent: bool,
    /// Commands that fail when they run alone, with their answers, so nothing is known of their work.
    pub failing: Vec<String>,
    /// The number of schedules: those with one switch, and those with two unless one switch shows a race.
    pub planned: usize,
    /// The number of those that were tried.
    pub tried: usize,
    /// The same for each number of switches.
    pub switches: Vec<Switches>,
    /// The number of schedules with each verdict.
    pub verdicts: Vec<Count>,
    /// The findings, the gravest first.
    pub findings: Vec<Finding>,
    /// Columns that differ between two runs of the same order.
    pub not_compared: Vec<String>,
    /// Commands whose outputs differ in length between two runs of the same order.
    pub outputs_not_compared: Vec<String>,
    /// The time of the serial orders.
    pub serial_seconds: f64,
    /// The time of the schedules.
    pub seconds: f64,
}

impl LevelReport {
    /// The number of schedules with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().find(|count| count.verdict == verdict).map_or(0, |count| count.schedules)
    }

    /// True if the commands race.
    pub fn races(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict.is_race() && finding.repeated)
    }

    /// True if a schedule ended wrong, and not again when it was repeated.
    pub fn is_doubtful(&self) -> bool {
        !self.races() && self.findings.iter().any(|finding| finding.verdict.is_race())
    }

    /// True if a command sends no statement or fails alone, or there were schedules, and none says whether the commands race.
    pub fn is_inconclusive(&self) -> bool {
        let conclusive = self.verdicts.iter().any(|count| count.verdict.is_conclusive());
        self.silent || !self.failing.is_empty() || (self.planned > 0 && !conclusive)
    }
}

/// The schedules with the same number of switches: times that a command stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Switches {
    /// The number of switches.
    pub switches: u8,
    /// The number of such schedules that differ.
    pub planned: usize,
    /// The number of those that were tried.
    pub tried: usize,
}

/// A number of schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Their verdict.
    pub verdict: Verdict,
    /// Their number.
    pub schedules: usize,
}

/// Schedules that end wrong in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// What a user needs to know besides it.
    pub why: String,
    /// The schedule that shows it, as `--schedule` takes it.
    pub schedule: String,
    /// The number of schedules tried until the first such one.
    pub first: usize,
    /// The number of such schedules.
    pub times: usize,
    /// The schedule ended in the same way a second time.
    pub repeated: bool,
    /// Its statements, in the order in which the server got them.
    pub steps: Vec<StepReport>,
    /// The answers.
    pub answers: Vec<AnswerReport>,
    /// The serial order whose tables are nearest.
    pub nearest: String,
    /// How the tables differ from it.
    pub differences: Vec<Difference>,
}

/// A statement, or several that were sent together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// The number of the command, from 0.
    #[serde(skip)]
    pub number: usize,
    /// The name of the command.
    pub command: String,
    /// The session.
    pub session: u64,
    /// The text, with values, in one line.
    pub sql: String,
    /// Its tag, such as `UPDATE 1`.
    pub tag: String,
    /// The names of the columns of its first row.
    pub columns: Vec<String>,
    /// Its first row.
    pub row: Option<Vec<Option<String>>>,
    /// Its error.
    pub error: Option<String>,
    /// It waited for a lock of another command.
    pub waited: bool,
    /// It touches a table that ends wrong, or that another command writes.
    pub matters: bool,
    /// It ends its transaction.
    pub ends: bool,
}

/// The answer of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerReport {
    /// The name of the command.
    pub command: String,
    /// Its status: `HTTP 200`, or `exit 0`.
    pub status: String,
    /// Its output in one line.
    pub output: String,
    /// The end of its standard error in one line, if it failed.
    pub errors: String,
    /// A serial order answers so, but for ids, times and the like.
    pub usual: bool,
    /// Its answers in serial orders, each once.
    pub serial: Vec<String>,
}

/// A difference between the tables and those of the nearest serial order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The table.
    pub table: String,
    /// The row, by the first of its columns that is compared.
    pub row: String,
    /// The column; empty if the number of rows differs.
    pub column: String,
    /// The value, or the number of new rows.
    pub here: String,
    /// The same after the serial order.
    pub serial: String,
}

/// What happens meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The application is being started.
    Starting,
    /// Nothing runs for a while, to see what happens then.
    Watching,
    /// A level begins: serial orders first.
    Level(String),
    /// A schedule ended wrong in a way that is new.
    Found {
        /// The level.
        level: String,
        /// The verdict.
        verdict: Verdict,
        /// The schedule.
        schedule: String,
    },
}
