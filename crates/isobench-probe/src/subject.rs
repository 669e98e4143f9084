//! A server as it was probed: what it permits, each step, and the user's specifications that ran there.
//!
//! Not here: the page of several servers (`isobench_report::certificate`).

use crate::event::Event;
use crate::judge::Matrix;
use crate::output::text;
use crate::probe::Progress;

/// The steps of an interleaving as they were executed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Witness {
    level: String,
    name: String,
    steps: String,
}

/// Writes down the steps of each interleaving, in the isolation tester's words.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    current: String,
    witnesses: Vec<Witness>,
}

/// A server with tables of one kind, and what it permits.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The server's product and version, and the kind of tables if it isn't the ordinary one.
    pub name: String,
    /// The anomalies that it permits, for each collection of interleavings.
    pub parts: Vec<Part>,
    /// The user's specifications, if they were run there.
    pub specs: Vec<SpecRun>,
}

/// What a server permits of one collection of interleavings.
#[derive(Debug, Clone)]
pub struct Part {
    /// The anomalies that it permits.
    pub matrix: Matrix,
    /// The steps.
    pub transcript: Transcript,
}

/// A specification that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecRun {
    /// The file's name without its ending.
    pub name: String,
    /// The comparison with what is expected.
    pub outcome: SpecOutcome,
    /// What the isolation tester would print.
    pub output: String,
}

/// The comparison of a specification's output with the files of expected ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecOutcome {
    /// One of them is the same.
    AsExpected,
    /// None is.
    Differs,
    /// There is none.
    Unknown,
    /// It couldn't be run to its end; the reason.
    Failed(String),
}

impl SpecRun {
    /// The outcome of output, of which `expected` are the possible ones.
    pub fn compared(name: String, output: String, expected: &[String]) -> SpecRun {
        let outcome = match expected {
            [] => SpecOutcome::Unknown,
            some if some.contains(&output) => SpecOutcome::AsExpected,
            _ => SpecOutcome::Differs,
        };
        SpecRun { name, outcome, output }
    }

    /// The comparison in a word or two.
    pub const fn mark(&self) -> &'static str {
        match self.outcome {
            SpecOutcome::AsExpected => "as expected",
            SpecOutcome::Differs => "differs",
            SpecOutcome::Unknown => "run",
            SpecOutcome::Failed(_) => "failed",
        }
    }
}

impl Transcript {
    /// Takes what happens while a server is probed.
    pub fn take(&mut self, progress: &Progress<'_>) {
        match progress {
            // It may be executed again.
            Progress::Begin(..) | Progress::Event(Event::Begin(_)) => self.current.clear(),
            Progress::Event(Event::Warning(_)) => {}
            Progress::Event(event) => self.current.push_str(&text(event)),
            Progress::End(level, cell) => {
                let (level, name) = (level.name().to_owned(), cell.name.clone());
                let steps = std::mem::take(&mut self.current).trim().to_owned();
                self.witnesses.push(Witness { level, name, steps });
            }
        }
    }

    /// The steps at a level; empty if there are none.
    pub fn of(&self, level: &str, name: &str) -> &str {
        let found = self.witnesses.iter().find(|one| one.level == level && one.name == name);
        found.map_or("", |one| &one.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_compared_with_each_expected_one() {
        let outcome = |expected: &[&str]| {
            let expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
            SpecRun::compared("s".to_owned(), "x".to_owned(), &expected).outcome
        };
        assert_eq!(outcome(&["y", "x"]), SpecOutcome::AsExpected);
        assert_eq!(outcome(&["y"]), SpecOutcome::Differs);
        assert_eq!(outcome(&[]), SpecOutcome::Unknown);
    }
}
