//! The warm-up before a cell is measured, in steps, until the rate is steady.
//!
//! Not here: the test for steadiness (`isobench_stats`).

use std::collections::BTreeMap;
use std::time::Duration;

use isobench_result::Warmup;
use isobench_runner::{ConflictCount, Control, EventHandler, Job, RunOutcome, StopCondition, Urgency, Watch};
use isobench_stats::is_warm;

use crate::crew::{Crew, Purpose};
use crate::evidence;
use crate::failure::Outcome;
use crate::onlooker::{Onlooker, Phase, SoFar};
use crate::server_side::OwnWork;

/// Minimum number of bins for a test of steadiness.
const FEWEST_BINS: usize = 20;

/// A warm-up that is over.
pub struct Warmed {
    /// Its figures in the result document.
    pub figures: Warmup,
    /// Every client ran to the end of the warm-up.
    pub complete: bool,
    /// Levels that transactions reported when asked, with the number of transactions.
    pub levels: BTreeMap<String, u64>,
    /// The errors that ended attempts, by step.
    pub errors: Vec<ConflictCount>,
    /// The time for which clients had finished and waited for the last one, on average over
    /// clients, summed over the steps.
    idle: Duration,
}

impl Warmed {
    /// Warms up in steps of the given length until the transient found in all of them ends before
    /// the last one, or another step would exceed the limit.
    ///
    /// # Errors
    /// There are no threads for the workers, or a machine is gone.
    pub fn up(
        (step, longest): (Duration, Duration),
        crew: &mut Crew<'_>,
        job: &Job,
        (control, report): (&Control, &EventHandler<'_>),
        onlooker: &mut Onlooker<'_>,
        own: &mut OwnWork,
    ) -> Outcome<Warmed> {
        let mut warmed = Warmed {
            figures: Warmup::default(),
            complete: true,
            levels: BTreeMap::new(),
            errors: Vec::new(),
            idle: Duration::ZERO,
        };
        let mut bins: Vec<f64> = Vec::new();
        let mut planned = Duration::ZERO;
        let mut so_far = SoFar { phase: Phase::WarmUp, ..SoFar::default() };
        loop {
            let Onlooker { every, latencies, show } = &mut *onlooker;
            let watch = Watch {
                every: *every,
                latencies: *latencies,
                show: &mut |elapsed, progress| show(&so_far.and(elapsed, &progress)),
            };
            let stop = StopCondition::Time(step);
            let run = crew.run(job, stop, control, report, watch, None, Purpose::WarmUp)?.outcome;
            so_far = so_far.and(run.elapsed, &run.progress());
            (onlooker.show)(&so_far);
            own.clients(&run);
            planned += step;
            let whole = whole_bins(&run, step);
            let last = whole.len();
            bins.extend(whole);
            warmed.add(&run);
            warmed.figures.steady = (last >= FEWEST_BINS).then(|| is_warm(&bins, last));
            let goes_on = warmed.complete && control.urgency() == Urgency::None;
            if warmed.figures.steady != Some(false) || !goes_on || planned + step > longest {
                return Ok(warmed);
            }
        }
    }

    /// The time for which clients had finished and waited for the last one, on average over clients
    /// and steps.
    pub fn idle(&self) -> Duration {
        self.idle / self.figures.steps.max(1)
    }

    fn add(&mut self, run: &RunOutcome) {
        let ledger = run.ledger();
        self.figures.seconds += run.elapsed.as_secs_f64();
        self.figures.steps += 1;
        self.idle += run.idle;
        self.figures.attempts += ledger.attempts.started;
        self.figures.committed += ledger.transactions.committed;
        self.figures.ambiguous += ledger.transactions.ambiguous;
        self.complete &= run.is_complete();
        self.errors.extend(run.conflicts.iter().chain(&run.further_errors).cloned());
        evidence::add(&mut self.levels, &run.levels());
    }
}

/// Committed transactions in each bin within the time of the step. (After that no transaction
/// starts.)
fn whole_bins(run: &RunOutcome, step: Duration) -> Vec<f64> {
    let Some(series) = &run.series else { return Vec::new() };
    let whole = step.as_nanos() / series.bin.as_nanos().max(1);
    let whole = usize::try_from(whole).unwrap_or(usize::MAX);
    series.bins.iter().take(whole).map(|bin| bin.committed as f64).collect()
}
