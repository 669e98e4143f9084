//! The counts of the whole command, by cell: the sum of all that its clients have done, which never
//! becomes smaller.
//!
//! Not here: which metrics are made of them (`family`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isobench_runner::RunProgress;

/// Attributes by name, in the order of the catalogue.
pub type Attributes = Vec<(&'static str, String)>;

/// Counts what clients do. Copies count together.
///
/// The thread that watches the clients writes here, a few times a second, and whoever answers
/// scrapes reads; the clients' own threads never come here.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    counted: Arc<Mutex<BTreeMap<Attributes, Counted>>>,
}

/// What a cell that is under way does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Working {
    /// The number of the round.
    pub round: u32,
    /// The number of clients.
    pub clients: usize,
}

/// What was counted with the same attributes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    /// In earlier rounds.
    before: RunProgress,
    /// In the latest one, whose number is `round`.
    latest: RunProgress,
    round: u32,
    /// What goes on, if anything does.
    pub(crate) working: Option<Working>,
}

impl Counted {
    /// Everything.
    pub(crate) fn total(&self) -> RunProgress {
        self.before + self.latest
    }
}

impl Meter {
    /// Takes what clients have done so far in a round, which counts instead of what was taken before
    /// about the same round. They work.
    pub fn see(&self, attributes: &Attributes, working: Working, so_far: &RunProgress) {
        let mut all = self.lock();
        let counted = all.entry(attributes.clone()).or_default();
        if counted.round != working.round {
            counted.before = counted.total();
            counted.round = working.round;
        }
        counted.latest = *so_far;
        counted.working = Some(working);
    }

    /// No cell is under way, except for those with these attributes.
    pub fn only(&self, under_way: &[Attributes]) {
        for (attributes, counted) in self.lock().iter_mut() {
            counted.working = counted.working.filter(|_| under_way.contains(attributes));
        }
    }

    /// A copy of all that was counted.
    pub(crate) fn copy(&self) -> BTreeMap<Attributes, Counted> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Attributes, Counted>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(committed: u64) -> RunProgress {
        let mut progress = RunProgress::default();
        progress.ledger.transactions.committed = committed;
        progress
    }

    #[test]
    fn rounds_add_up_and_never_become_smaller() {
        let meter = Meter::default();
        let (one, other) = (vec![("a", "1".to_owned())], vec![("a", "2".to_owned())]);
        let see = |attributes, round, committed| {
            meter.see(attributes, Working { round, clients: 4 }, &done(committed));
        };
        let totals = || {
            let all = meter.copy();
            [&one, &other]
                .map(|key| all.get(key).map(|counted| counted.total().ledger.transactions.committed))
        };
        see(&one, 1, 3);
        see(&one, 1, 5);
        assert_eq!(totals(), [Some(5), None]);
        see(&other, 1, 7);
        see(&one, 2, 0);
        assert_eq!(totals(), [Some(5), Some(7)]);
        see(&one, 2, 4);
        see(&one, 3, 1);
        assert_eq!(totals(), [Some(10), Some(7)]);
        meter.only(std::slice::from_ref(&other));
        let all = meter.copy();
        assert_eq!((all[&one].working, all[&other].working), (None, Some(Working { round: 1, clients: 4 })));
    }
}
