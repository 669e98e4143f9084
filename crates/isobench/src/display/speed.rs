//! The speed of the running cell: current, mean, and over the last seconds.
//!
//! Pure; snapshots of counts are passed in. Not here: the display.

use std::collections::VecDeque;
use std::time::Duration;

use isobench_runner::RunProgress;

/// Length of a bin: shorter ones would show the scatter of single transactions.
const BIN: Duration = Duration::from_millis(250);

/// Number of bins.
const BINS: usize = 40;

/// The figures of a run so far.
#[derive(Debug, Clone, Default)]
pub struct Speed {
    /// Committed transactions per second in each of the last bins, the current one last.
    pub recent: VecDeque<f64>,
    /// Committed transactions per second since the clock started.
    pub mean: f64,
    /// Conflicts per second since then.
    pub conflicts: f64,
    /// Attempts that ended in a conflict ÷ attempts, since then; 0 to 1.
    pub conflict_ratio: f64,
    /// Attempts after the first, since then.
    pub retries: u64,
    /// Mean latency of the committed transactions in milliseconds; `None` if there are none.
    pub latency_ms: Option<f64>,
    /// Start of the current bin: time and committed transactions.
    pub(super) bin: (Duration, u64),
    /// The last snapshot: time and committed transactions.
    pub(super) last: (Duration, u64),
}

impl Speed {
    /// Takes a snapshot. If the clock or a count is lower than before, another run has started (the
    /// measurement after its warm-up).
    pub fn see(&mut self, elapsed: Duration, progress: &RunProgress) {
        let (ledger, committed) = (&progress.ledger, progress.ledger.transactions.committed);
        if elapsed < self.last.0 || committed < self.last.1 {
            *self = Speed { recent: std::mem::take(&mut self.recent), ..Speed::default() };
        }
        self.last = (elapsed, committed);
        let seconds = elapsed.as_secs_f64().max(1e-3);
        self.mean = committed as f64 / seconds;
        self.conflicts = ledger.conflicts as f64 / seconds;
        self.conflict_ratio = ledger.conflict_ratio();
        self.retries = progress.retries;
        self.latency_ms = (committed > 0).then(|| progress.latency_sum_ms / committed as f64);
        let width = elapsed.saturating_sub(self.bin.0);
        if width < BIN {
            return;
        }
        let committed = committed.saturating_sub(self.bin.1);
        self.recent.push_back(committed as f64 / width.as_secs_f64());
        self.bin = self.last;
        if self.recent.len() > BINS {
            self.recent.pop_front();
        }
    }

    /// Committed transactions per second at present.
    pub fn now(&self) -> f64 {
        self.recent.back().copied().unwrap_or(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(speed: &mut Speed, millis: u64, committed: u64) {
        let mut progress = RunProgress { latency_sum_ms: committed as f64 * 7.0, ..RunProgress::default() };
        progress.ledger.attempts.started = committed * 2;
        progress.ledger.transactions.committed = committed;
        progress.ledger.conflicts = committed;
        speed.see(Duration::from_millis(millis), &progress);
    }

    #[test]
    fn bins_are_as_long_as_they_are() {
        let mut speed = Speed::default();
        for (millis, committed) in [(100, 10), (200, 20), (300, 30), (400, 30), (800, 80)] {
            seen(&mut speed, millis, committed);
        }
        assert_eq!(speed.recent, [100.0, 100.0]);
        assert!((speed.mean - 100.0).abs() < 1e-9 && (speed.conflict_ratio - 0.5).abs() < 1e-9);
        assert_eq!(speed.latency_ms, Some(7.0));
        seen(&mut speed, 1800, 80);
        assert!(speed.now() < 1e-9 && speed.mean > 40.0);
    }

    #[test]
    fn another_run_begins_anew_and_keeps_the_picture() {
        let mut speed = Speed::default();
        seen(&mut speed, 300, 30);
        seen(&mut speed, 100, 1);
        assert_eq!((speed.recent.len(), speed.retries), (1, 0));
        assert!((speed.mean - 10.0).abs() < 1e-9);
        seen(&mut speed, 300, 60);
        assert!((speed.now() - 200.0).abs() < 1e-9, "{speed:?}");
    }

    #[test]
    fn no_time_and_no_transaction_are_no_numbers_to_divide_by() {
        let mut speed = Speed::default();
        seen(&mut speed, 0, 0);
        assert!(speed.now().abs() < 1e-9 && speed.conflicts.abs() < 1e-9);
        assert_eq!(speed.latency_ms, None);
        for _ in 0..1000 {
            let next = speed.last.0 + BIN;
            seen(&mut speed, u64::try_from(next.as_millis()).unwrap(), 5);
        }
        assert_eq!(speed.recent.len(), BINS);
    }
}
