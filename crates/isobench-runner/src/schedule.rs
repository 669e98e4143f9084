//! The schedule of a paced run: the instants at which one worker's transactions are due (pgbench:
//! `-R`).

use std::time::Duration;

use isobench_script::Prng;

use crate::time::Nanos;

/// One worker's share of the rate: due times with exponentially distributed gaps, taken by
/// whichever of its clients asks next.
pub(crate) struct Schedule {
    mean_gap: Duration,
    /// Gaps are drawn in whole microseconds, as in pgbench, so above a million per second they
    /// would be 0. The minimum is 1 then; otherwise a client that skips late transactions would
    /// never stop skipping.
    least_gap: u64,
    due: Nanos,
    rng: Prng,
}

impl Schedule {
    /// A schedule that starts at `start`, for a worker with this `share` (0 to 1) of `rate`
    /// transactions per second.
    pub(crate) fn new(rate: f64, share: f64, start: Nanos, rng: Prng) -> Schedule {
        let mean_gap = Duration::try_from_secs_f64(1.0 / (rate * share)).unwrap_or(Duration::MAX);
        let least_gap = u64::from(mean_gap < Duration::from_micros(1));
        Schedule { mean_gap, least_gap, due: start, rng }
    }

    /// Returns the instant at which the next transaction is due.
    pub(crate) fn next(&mut self) -> Nanos {
        let gap = self.rng.poisson(self.mean_gap.as_secs_f64() * 1e6);
        self.due = self.due.after(Duration::from_micros(u64::try_from(gap).unwrap_or(0).max(self.least_gap)));
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_kept() {
        let mut schedule = Schedule::new(1000.0, 0.5, Nanos(0), Prng::seed(7));
        let last = (0..10_000).map(|_| schedule.next()).last().unwrap();
        let seconds = last.since(Nanos(0)) as f64 / 1e9;
        assert!((19.0..21.0).contains(&seconds), "10,000 transactions at 500 per second took {seconds} s");
    }
}
