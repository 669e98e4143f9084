//! Finds the command to which a pipeline's next reply belongs.

use std::collections::VecDeque;

/// The commands and synchronisation points that a pipeline has sent and that aren't answered yet.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    sent: VecDeque<Sent>,
    /// The last reply was that to a synchronisation point.
    synchronised: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Command(usize),
    Sync,
}

impl Pipeline {
    pub(super) fn new() -> Pipeline {
        Pipeline::default()
    }

    pub(super) fn push(&mut self, command: usize) {
        self.sent.push_back(Sent::Command(command));
    }

    pub(super) fn push_sync(&mut self) {
        self.sent.push_back(Sent::Sync);
    }

    /// True if everything sent has been answered.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// True if the last reply was that to a synchronisation point.
    pub(super) fn at_synchronisation(&self) -> bool {
        self.synchronised
    }

    /// True if a command follows before the next synchronisation point.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self.sent.get(1), Some(Sent::Command(_)))
    }

    /// The command whose reply comes next; `None` before a synchronisation point.
    pub(super) fn current(&self) -> Option<usize> {
        match self.sent.front() {
            Some(Sent::Command(command)) => Some(*command),
            _ => None,
        }
    }

    /// Takes the reply to the current command.
    pub(super) fn completed(&mut self) {
        self.synchronised = false;
        if self.current().is_some() {
            self.sent.pop_front();
        }
    }

    /// Takes `ReadyForQuery`. After an error, the failed command and those that the server skipped
    /// are still queued before the synchronisation point.
    pub(super) fn synchronised(&mut self) {
        self.synchronised = true;
        while let Some(Sent::Command(_)) = self.sent.pop_front() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_skips_to_the_synchronisation_point() {
        let mut pipeline = Pipeline::new();
        pipeline.push(1);
        pipeline.push(2);
        pipeline.push_sync();
        pipeline.push(4);
        pipeline.push_sync();
        pipeline.completed();
        assert_eq!(pipeline.current(), Some(2));
        pipeline.synchronised();
        assert_eq!(pipeline.current(), Some(4));
        pipeline.completed();
        assert_eq!(pipeline.current(), None);
        pipeline.completed();
        pipeline.synchronised();
        assert!(pipeline.is_empty());
        assert_eq!(pipeline.current(), None);
    }
}
