//! Influence from outside while a run goes on: requests to stop it, and the progress it publishes.

use std::ops::Add;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use isobench_pgwire::Patience;
use serde::{Deserialize, Serialize};

/// A request to end the run early, shared with signal handling.
#[derive(Debug, Default)]
pub struct Control {
    urgency: AtomicU8,
    patience: Patience,
}

/// The urgency of a request to end the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No request: continue.
    None,
    /// Start nothing new, finish transactions under way.
    Soon,
    /// Cancel transactions under way.
    Now,
}

impl Control {
    /// A control without a request.
    pub fn new() -> Self {
        Control::default()
    }

    /// Requests the end of the run on behalf of the user: the first call with [`Urgency::Soon`],
    /// later ones with [`Urgency::Now`]. Blocking calls that share this control's
    /// [`patience`](Control::patience) are cut short, too.
    pub fn interrupt(&self) -> Urgency {
        let urgency = if self.patience.requests() == 0 { Urgency::Soon } else { Urgency::Now };
        self.patience.hurry();
        self.request(urgency);
        urgency
    }

    /// The patience of blocking calls that are to end with the run; belongs in the connection
    /// options.
    pub fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Requests the end of the run. Never makes an earlier request less urgent.
    pub fn request(&self, urgency: Urgency) {
        self.urgency.fetch_max(urgency as u8, Ordering::Relaxed);
    }

    /// The most urgent request so far.
    pub fn urgency(&self) -> Urgency {
        match self.urgency.load(Ordering::Relaxed) {
            0 => Urgency::None,
            1 => Urgency::Soon,
            _ => Urgency::Now,
        }
    }
}

/// One worker's figures since the start of the run, published every few milliseconds for displays.
///
/// Each worker writes its own; the alignment keeps two workers off the same cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct PublishedProgress {
    attempts: AtomicU64,
    committed: AtomicU64,
    given_up: AtomicU64,
    abandoned: AtomicU64,
    skipped: AtomicU64,
    retried: AtomicU64,
    retries: AtomicU64,
    conflicts: AtomicU64,
    latency_sum: AtomicU64,
    latency_squares: AtomicU64,
    lag_sum: AtomicU64,
}

/// Progress of all workers since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RunProgress {
    /// Attempts started.
    pub attempts: u64,
    /// Committed transactions.
    pub committed: u64,
    /// Transactions given up after conflicts.
    pub given_up: u64,
    /// Transactions abandoned after another error, whose clients continued.
    pub abandoned: u64,
    /// Transactions skipped because they were already too late.
    pub skipped: u64,
    /// Transactions that have ended and took more than one attempt.
    pub retried: u64,
    /// Attempts after the first, of transactions that have ended.
    pub retries: u64,
    /// Attempts that ended in a conflict.
    pub conflicts: u64,
    /// Sum of the latencies of committed transactions, ms.
    pub latency_sum_ms: f64,
    /// Sum of the squared latencies of committed transactions, ms².
    pub latency_squares_ms: f64,
    /// Sum of the lags behind the schedule of transactions that started, ms.
    pub lag_sum_ms: f64,
}

impl PublishedProgress {
    /// Replaces the figures. Readers may see some fields a moment before others.
    pub(crate) fn store(&self, now: &RunProgress) {
        let pairs = [
            (&self.attempts, now.attempts),
            (&self.committed, now.committed),
            (&self.given_up, now.given_up),
            (&self.abandoned, now.abandoned),
            (&self.skipped, now.skipped),
            (&self.retried, now.retried),
            (&self.retries, now.retries),
            (&self.conflicts, now.conflicts),
            (&self.latency_sum, now.latency_sum_ms.to_bits()),
            (&self.latency_squares, now.latency_squares_ms.to_bits()),
            (&self.lag_sum, now.lag_sum_ms.to_bits()),
        ];
        for (cell, value) in pairs {
            cell.store(value, Ordering::Relaxed);
        }
    }

    fn add_to(&self, sum: &mut RunProgress) {
        let count = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        let real = |cell: &AtomicU64| f64::from_bits(cell.load(Ordering::Relaxed));
        sum.attempts += count(&self.attempts);
        sum.committed += count(&self.committed);
        sum.given_up += count(&self.given_up);
        sum.abandoned += count(&self.abandoned);
        sum.skipped += count(&self.skipped);
        sum.retried += count(&self.retried);
        sum.retries += count(&self.retries);
        sum.conflicts += count(&self.conflicts);
        sum.latency_sum_ms += real(&self.latency_sum);
        sum.latency_squares_ms += real(&self.latency_squares);
        sum.lag_sum_ms += real(&self.lag_sum);
    }
}

impl Add for RunProgress {
    type Output = RunProgress;

    fn add(self, other: RunProgress) -> RunProgress {
        RunProgress {
            attempts: self.attempts + other.attempts,
            committed: self.committed + other.committed,
            given_up: self.given_up + other.given_up,
            abandoned: self.abandoned + other.abandoned,
            skipped: self.skipped + other.skipped,
            retried: self.retried + other.retried,
            retries: self.retries + other.retries,
            conflicts: self.conflicts + other.conflicts,
            latency_sum_ms: self.latency_sum_ms + other.latency_sum_ms,
            latency_squares_ms: self.latency_squares_ms + other.latency_squares_ms,
            lag_sum_ms: self.lag_sum_ms + other.lag_sum_ms,
        }
    }
}

impl RunProgress {
    /// Adds up the figures of all workers.
    pub fn read(workers: &[PublishedProgress]) -> RunProgress {
        let mut sum = RunProgress::default();
        for worker in workers {
            worker.add_to(&mut sum);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_never_taken_back() {
        let control = Control::new();
        assert_eq!(control.urgency(), Urgency::None);
        control.request(Urgency::Now);
        control.request(Urgency::Soon);
        assert_eq!(control.urgency(), Urgency::Now);
    }

    #[test]
    fn an_interrupt_is_for_waits_too() {
        let control = Control::new();
        // A request by the run itself isn't an interrupt.
        control.request(Urgency::Now);
        assert_eq!(control.patience().requests(), 0);
        let control = Control::new();
        assert_eq!((control.interrupt(), control.urgency()), (Urgency::Soon, Urgency::Soon));
        assert_eq!((control.interrupt(), control.urgency()), (Urgency::Now, Urgency::Now));
        assert_eq!(control.patience().requests(), 2);
    }

    #[test]
    fn progress_adds_up_over_workers() {
        let workers = [PublishedProgress::default(), PublishedProgress::default()];
        workers[0].store(&RunProgress {
            attempts: 5,
            committed: 3,
            latency_sum_ms: 1.5,
            ..RunProgress::default()
        });
        workers[1].store(&RunProgress {
            attempts: 6,
            committed: 4,
            latency_sum_ms: 0.5,
            ..RunProgress::default()
        });
        let sum = RunProgress::read(&workers);
        assert_eq!((sum.attempts, sum.committed, sum.latency_sum_ms), (11, 7, 2.0));
    }
}
