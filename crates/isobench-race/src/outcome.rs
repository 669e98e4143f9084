//! What came of a schedule.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::answer::Answer;
use crate::gate::Step;
use crate::ground::Change;
use crate::schedule::Schedule;

/// Why a schedule isn't what was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Trouble {
    /// A command waited for a lock of another one.
    Blocked(usize),
    /// A command waited for something within the application.
    Stuck(usize),
    /// It took too long.
    TimedOut,
}

/// What came of a schedule.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) schedule: Schedule,
    pub(crate) steps: Vec<Step>,
    /// The answers, by command.
    pub(crate) answers: BTreeMap<usize, Answer>,
    pub(crate) changes: Vec<Change>,
    /// Conditions that don't hold afterwards.
    pub(crate) violated: Vec<String>,
    pub(crate) troubles: Vec<Trouble>,
    /// The longest pause of each command.
    pub(crate) pauses: BTreeMap<usize, Duration>,
    pub(crate) took: Duration,
    /// The longest pause before a statement that came after all commands had finished, if that was waited
    /// for.
    pub(crate) late: Option<Duration>,
}

impl Outcome {
    /// How the commands ended.
    pub(crate) fn endings(&self) -> Vec<(usize, String)> {
        self.answers.iter().map(|(command, answer)| (*command, answer.status())).collect()
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.troubles.iter().any(|trouble| matches!(trouble, Trouble::Stuck(_)))
    }
}
