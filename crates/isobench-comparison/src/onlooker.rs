//! What the clients of a measurement have done so far, for whoever looks on.
//!
//! Not here: what else a comparison reports (`comparison/listener.rs`).

use std::time::Duration;

use isobench_runner::{RunOutcome, RunProgress};

/// The part of a measurement that clients are in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The warm-up, which no result contains.
    WarmUp,
    /// What is measured.
    #[default]
    Measurement,
}

/// What the clients of a measurement have done so far in a phase.
#[derive(Debug, Clone, Copy, Default)]
pub struct SoFar {
    /// The phase.
    pub phase: Phase,
    /// The time for which they have worked in it: that of all steps or turns, without pauses.
    pub elapsed: Duration,
    /// What they have done in it. At the end of a phase exactly that; until then, a moment old.
    pub progress: RunProgress,
}

/// Looks on while clients work. It has no influence on what is measured.
pub struct Onlooker<'a> {
    /// Time between two calls; [`Duration::MAX`]: only at the ends of the phases.
    pub every: Duration,
    /// Wants latencies ([`isobench_runner::Watch::latencies`]).
    pub latencies: bool,
    /// Called with what was done so far, and at the end of each phase with all of it.
    pub show: &'a mut dyn FnMut(&SoFar),
}

impl SoFar {
    /// The same after a further run in this phase.
    pub(crate) fn and(self, elapsed: Duration, progress: &RunProgress) -> SoFar {
        SoFar { elapsed: self.elapsed + elapsed, progress: self.progress + *progress, ..self }
    }

    /// What was measured.
    pub(crate) fn measured(run: Option<&RunOutcome>) -> SoFar {
        let none = SoFar { phase: Phase::Measurement, ..SoFar::default() };
        run.map_or(none, |run| none.and(run.elapsed, &run.progress()))
    }
}
