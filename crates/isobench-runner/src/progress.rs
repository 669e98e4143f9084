//! The figures of a run while it goes on: the one view from which displays, `-P` and live metrics
//! are made.
//!
//! Each worker publishes its own every few milliseconds; whoever watches adds them up. So watching
//! costs a worker no lock, and no cache line that another worker writes. Not here: who watches
//! (`fleet.rs`), and what is counted (`recorder.rs`).

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

use isobench_stats::{Attempts, LATENCY_BOUNDS_US, LatencyCounts, Ledger, TimeLedger, Transactions};
use serde::{Deserialize, Serialize};

/// Progress of all workers since the start of the run.
///
/// The identities of the ledger hold only at the end: attempts that are under way have started and
/// are in no bucket, and of what workers publish readers may see some figures a moment before others.
/// No count ever becomes smaller.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RunProgress {
    /// Attempts and transactions by how they have ended, and the clients' time.
    pub ledger: Ledger,
    /// Attempts that ended in a conflict other than a deadlock.
    pub serialization_failures: u64,
    /// Attempts that ended in a deadlock.
    pub deadlocks: u64,
    /// Transactions abandoned after an error that is never retried, whose clients continued.
    pub abandoned: u64,
    /// Transactions that have ended and took more than one attempt.
    pub retried: u64,
    /// Attempts after the first, of transactions that have ended.
    pub retries: u64,
    /// Sum of the latencies of committed transactions, ms.
    pub latency_sum_ms: f64,
    /// Sum of the squared latencies of committed transactions, ms².
    pub latency_squares_ms: f64,
    /// Sum of the lags behind the schedule of transactions that started, ms.
    pub lag_sum_ms: f64,
    /// Latencies of committed transactions; zero in a run that doesn't publish them
    /// ([`crate::Watch::latencies`]), and up to a quarter of a second old in one that does.
    pub latencies: LatencyCounts,
}

/// Number of counts besides those of latencies.
const COUNTS: usize = 31;

/// Number of sums.
const SUMS: usize = 3;

/// Number of figures about latencies: the counts, and their sum.
const LATENCIES: usize = LATENCY_BOUNDS_US.len() + 2;

/// One worker's figures since the start of the run.
///
/// Each worker writes its own; the alignment keeps two workers off the same cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct PublishedProgress {
    counts: [AtomicU64; COUNTS],
    sums: [AtomicU64; SUMS],
    latencies: [AtomicU64; LATENCIES],
}

impl PublishedProgress {
    /// Replaces all figures except for the latencies.
    pub(crate) fn store(&self, mut now: RunProgress) {
        for (cell, count) in self.counts.iter().zip(now.counts()) {
            cell.store(*count, Ordering::Relaxed);
        }
        for (cell, sum) in self.sums.iter().zip(now.sums()) {
            cell.store(sum.to_bits(), Ordering::Relaxed);
        }
    }

    /// Replaces the latencies.
    pub(crate) fn store_latencies(&self, mut now: LatencyCounts) {
        for (cell, figure) in self.latencies.iter().zip(of_latencies(&mut now)) {
            cell.store(*figure, Ordering::Relaxed);
        }
    }

    fn load(&self) -> RunProgress {
        let mut now = RunProgress::default();
        for (cell, count) in self.counts.iter().zip(now.counts()) {
            *count = cell.load(Ordering::Relaxed);
        }
        for (cell, sum) in self.sums.iter().zip(now.sums()) {
            *sum = f64::from_bits(cell.load(Ordering::Relaxed));
        }
        for (cell, figure) in self.latencies.iter().zip(of_latencies(&mut now.latencies)) {
            *figure = cell.load(Ordering::Relaxed);
        }
        now
    }
}

/// Every figure about latencies.
fn of_latencies(latencies: &mut LatencyCounts) -> impl Iterator<Item = &mut u64> {
    latencies.counts.iter_mut().chain([&mut latencies.sum_ns])
}

impl RunProgress {
    /// Adds up the figures of all workers.
    pub(crate) fn read(workers: &[PublishedProgress]) -> RunProgress {
        workers.iter().fold(RunProgress::default(), |sum, worker| sum + worker.load())
    }

    /// Every count besides those of latencies. Names all fields, so that none is forgotten.
    fn counts(&mut self) -> [&mut u64; COUNTS] {
        let RunProgress { ledger, serialization_failures, deadlocks, abandoned, retried, retries, .. } = self;
        let Ledger { attempts, transactions, time, conflicts, further_errors, retries: further, late } =
            ledger;
        let Attempts {
            started,
            committed,
            retried: tried,
            given_up,
            swallowed,
            rolled_back,
            ambiguous,
            cut_off,
            errored,
        } = attempts;
        let Transactions {
            total,
            committed: processed,
            given_up: failed,
            swallowed: undone,
            rolled_back: reverted,
            ambiguous: unknown,
            cut_off: unfinished,
            errored: refused,
            skipped,
        } = transactions;
        let TimeLedger { useful, wasted, backoff, waiting } = time;
        [
            started,
            committed,
            tried,
            given_up,
            swallowed,
            rolled_back,
            ambiguous,
            cut_off,
            errored,
            total,
            processed,
            failed,
            undone,
            reverted,
            unknown,
            unfinished,
            refused,
            skipped,
            useful,
            wasted,
            backoff,
            waiting,
            conflicts,
            further_errors,
            further,
            late,
            serialization_failures,
            deadlocks,
            abandoned,
            retried,
            retries,
        ]
    }

    /// Every sum.
    fn sums(&mut self) -> [&mut f64; SUMS] {
        [&mut self.latency_sum_ms, &mut self.latency_squares_ms, &mut self.lag_sum_ms]
    }
}

impl Add for RunProgress {
    type Output = RunProgress;

    fn add(mut self, mut other: RunProgress) -> RunProgress {
        for (mine, theirs) in self.counts().into_iter().zip(other.counts()) {
            *mine = mine.saturating_add(*theirs);
        }
        for (mine, theirs) in self.sums().into_iter().zip(other.sums()) {
            *mine += *theirs;
        }
        self.latencies.merge(&other.latencies);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Progress in which no two figures are alike.
    fn different(from: u64) -> RunProgress {
        let mut progress = RunProgress::default();
        let mut next = from;
        let mut number = || {
            next += 1;
            next
        };
        progress.counts().into_iter().for_each(|count| *count = number());
        progress.sums().into_iter().for_each(|sum| *sum = number() as f64);
        of_latencies(&mut progress.latencies).for_each(|figure| *figure = number());
        progress
    }

    #[test]
    fn what_is_published_is_read_as_the_sum_of_all_workers() {
        let workers = [PublishedProgress::default(), PublishedProgress::default()];
        for (worker, from) in workers.iter().zip([0, 1000]) {
            worker.store(different(from));
            worker.store_latencies(different(from).latencies);
        }
        let mut sum = RunProgress::read(&workers);
        assert_eq!(sum, different(0) + different(1000));
        assert_eq!((sum.ledger.attempts.started, sum.retries), (1002, 31 + 1031));
        assert_eq!(sum.sums().map(|sum| sum.to_bits()), [1064_f64, 1066.0, 1068.0].map(f64::to_bits));
        assert_eq!((sum.latencies.counts[0], sum.latencies.sum_ns), (35 + 1035, 55 + 1055));
    }

    #[test]
    fn other_machines_are_told_every_figure() {
        let json = serde_json::to_string(&different(7)).expect("JSON");
        assert_eq!(serde_json::from_str::<RunProgress>(&json).expect("progress"), different(7));
    }

    #[test]
    fn two_workers_share_no_cache_line() {
        assert_eq!((align_of::<PublishedProgress>(), size_of::<PublishedProgress>() % 128), (128, 0));
    }
}
