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
    /// A command seemed to have finished before it had done the steps of its turn.
    Early(usize),
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

    /// True if a command had more to do when its turn seemed to be over. `known` are the steps that each does
    /// when it runs alone.
    pub(crate) fn is_early(&self, known: &[usize]) -> bool {
        let more = |command: usize| {
            let turn = self.schedule.0.first().filter(|turn| turn.command == command);
            let steps = turn.and_then(|turn| usize::try_from(turn.steps?).ok());
            steps.is_some_and(|steps| known.get(command).is_some_and(|known| steps < *known))
        };
        self.troubles.iter().any(|trouble| matches!(trouble, Trouble::Early(command) if more(*command)))
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.troubles.iter().any(|trouble| matches!(trouble, Trouble::Stuck(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_ends_before_its_steps_are_done_is_early() {
        let of = |text: &str, trouble: Trouble| Outcome {
            schedule: Schedule::read(text, 2).expect("a schedule"),
            steps: Vec::new(),
            answers: BTreeMap::new(),
            changes: Vec::new(),
            violated: Vec::new(),
            troubles: vec![trouble],
            pauses: BTreeMap::new(),
            took: Duration::ZERO,
            late: None,
        };
        assert!(of("A1,B", Trouble::Early(0)).is_early(&[2, 2]));
        assert!(!of("A2,B", Trouble::Early(0)).is_early(&[2, 2]), "it has no more to do");
        assert!(!of("A,B", Trouble::Early(0)).is_early(&[2, 2]), "it may run to its end");
        assert!(!of("A1,B", Trouble::Blocked(0)).is_early(&[2, 2]));
    }
}
