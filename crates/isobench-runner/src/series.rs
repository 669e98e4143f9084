//! Exact counts over time, in bins; each worker counts for itself.
//!
//! Not here: the counts of the whole run (`recorder.rs`), and the progress shown while it goes on
//! (`control.rs`).

use std::time::Duration;

use crate::time::{Nanos, nanos};

/// The most bins that are kept. Beyond that, neighbours are merged and all bins become twice as
/// long.
const MOST_BINS: usize = 1_200;

/// Counts over time, of all workers together.
///
/// The clock starts when all clients can start, as that of [`crate::RunOutcome::elapsed`] does. Bin
/// *n*, from 0, holds the events later than *n* × `bin` and not later than (*n* + 1) × `bin`; the
/// first one includes the start. The bins cover the whole elapsed time, including those without
/// events; the last one may be shorter. Merged by addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Length of a bin: that of [`crate::RunSpec::series`], doubled as often as needed to keep at
    /// most 1,200 bins. If a run has turns, each is one bin, which lasts from the turn's start until
    /// its last client has finished, so a little longer than this.
    pub bin: Duration,
    /// The bins in chronological order.
    pub bins: Vec<Bin>,
}

/// The events in one interval of a run, over all clients and scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bin {
    /// Transactions whose commit was acknowledged. Over all bins: the ledger's committed
    /// transactions.
    pub committed: u64,
    /// Attempts that ended in a conflict, at the time when their block was rolled back. Over all
    /// bins: the ledger's conflicts.
    pub conflicts: u64,
    /// Attempts started. Over all bins: the ledger's attempts started.
    pub attempts: u64,
    /// Sum of the latencies of the transactions that committed, in nanoseconds. The whole latency
    /// belongs to the bin of its end.
    pub latency_ns: u64,
}

impl Bin {
    fn merge(&mut self, other: &Bin) {
        self.committed += other.committed;
        self.conflicts += other.conflicts;
        self.attempts += other.attempts;
        self.latency_ns = self.latency_ns.saturating_add(other.latency_ns);
    }
}

impl Series {
    /// Adds counts to the last bin.
    pub(crate) fn add_to_last(&mut self, more: &Bin) {
        if let Some(last) = self.bins.last_mut() {
            last.merge(more);
        }
    }

    /// The counts of this series and those of another machine, over the time of both together. The longer bins
    /// are kept; `turns`: each bin is a turn, whatever its length.
    pub(crate) fn beside(mut self, mut other: Series, elapsed: Duration, turns: bool) -> Series {
        while !turns && self.bin != other.bin {
            if self.bin < other.bin { self.coarsen() } else { other.coarsen() }
        }
        let covering = elapsed.as_nanos().div_ceil(self.bin.as_nanos().max(1)).max(1);
        let covering = if turns { 0 } else { usize::try_from(covering).unwrap_or(MOST_BINS) };
        let bins = self.bins.len().max(other.bins.len()).max(covering);
        self.bins.resize(bins, Bin::default());
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            bin.merge(more);
        }
        self
    }

    /// Doubles the length of the bins.
    fn coarsen(&mut self) {
        self.bins = self.bins.chunks(2).map(sum).collect();
        self.bin *= 2;
    }

    /// The sum of all bins.
    pub fn total(&self) -> Bin {
        sum(&self.bins)
    }
}

fn sum(bins: &[Bin]) -> Bin {
    bins.iter().fold(Bin::default(), |mut sum, bin| {
        sum.merge(bin);
        sum
    })
}

/// Counts the events of one worker, which come in chronological order.
#[derive(Debug, Clone)]
pub(crate) struct SeriesCounter {
    began: Nanos,
    /// Length of a bin in nanoseconds.
    width: u64,
    /// The finished bins.
    past: Vec<Bin>,
    present: Bin,
    /// The last instant of the current bin.
    until: Nanos,
}

impl SeriesCounter {
    /// Counts from `began` on, in bins of this length (at least a nanosecond).
    pub(crate) fn new(began: Nanos, bin: Duration) -> SeriesCounter {
        let width = nanos(bin).max(1);
        SeriesCounter { began, width, past: Vec::new(), present: Bin::default(), until: began.plus(width) }
    }

    /// The bin of an instant, which must not be earlier than any before.
    #[inline]
    pub(crate) fn at(&mut self, now: Nanos) -> &mut Bin {
        if now > self.until {
            self.advance(now);
        }
        &mut self.present
    }

    /// Makes the bin of `now` the current one.
    #[cold]
    fn advance(&mut self, now: Nanos) {
        let since = now.since(self.began);
        while index(since, self.width) >= MOST_BINS as u64 {
            self.coarsen();
        }
        let index = index(since, self.width);
        let number = usize::try_from(index).unwrap_or(MOST_BINS);
        if number > self.past.len() {
            self.past.push(std::mem::take(&mut self.present));
            self.past.resize(number, Bin::default());
        }
        self.until = self.began.plus((index + 1).saturating_mul(self.width));
    }

    /// Doubles the length of the bins.
    fn coarsen(&mut self) {
        self.past.push(std::mem::take(&mut self.present));
        self.past = self.past.chunks(2).map(sum).collect();
        self.present = self.past.pop().unwrap_or_default();
        self.width = self.width.saturating_mul(2);
    }

    /// Adds the counts of another worker of the same run. The longer bins are kept.
    pub(crate) fn merge(&mut self, other: &SeriesCounter) {
        let mut other = other.clone();
        while self.width < other.width {
            self.coarsen();
        }
        while other.width < self.width {
            other.coarsen();
        }
        let mine = std::mem::take(&mut self.past).into_iter().chain([self.present]);
        let theirs: Vec<Bin> = other.past.into_iter().chain([other.present]).collect();
        self.past = mine.collect();
        self.past.resize(self.past.len().max(theirs.len()), Bin::default());
        for (bin, more) in self.past.iter_mut().zip(&theirs) {
            bin.merge(more);
        }
        self.present = self.past.pop().unwrap_or_default();
        self.until = self.began.plus((self.past.len() as u64 + 1).saturating_mul(self.width));
    }

    /// Returns the counts up to the end of the run.
    pub(crate) fn finish(mut self, ended: Nanos) -> Series {
        self.at(ended);
        self.past.push(self.present);
        Series { bin: Duration::from_nanos(self.width), bins: self.past }
    }
}

/// The index of the bin of an instant this long after the start.
fn index(since: u64, width: u64) -> u64 {
    since.div_ceil(width).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEGAN: Nanos = Nanos(1_000);

    fn counted(width: u64, events: &[u64]) -> SeriesCounter {
        let mut counter = SeriesCounter::new(BEGAN, Duration::from_nanos(width));
        for event in events {
            counter.at(Nanos(BEGAN.0 + event)).committed += 1;
        }
        counter
    }

    fn bins(counter: SeriesCounter, ended: u64) -> (u64, Vec<u64>) {
        let series = counter.finish(Nanos(BEGAN.0 + ended));
        (nanos(series.bin), series.bins.iter().map(|bin| bin.committed).collect())
    }

    #[test]
    fn a_bin_ends_with_its_last_instant() {
        assert_eq!(bins(counted(10, &[0, 1, 10, 11, 20, 35]), 35), (10, vec![3, 2, 0, 1]));
    }

    #[test]
    fn the_bins_cover_the_whole_run() {
        assert_eq!(bins(counted(10, &[]), 0), (10, vec![0]));
        assert_eq!(bins(counted(10, &[4]), 40), (10, vec![1, 0, 0, 0]));
        assert_eq!(bins(counted(10, &[4]), 41), (10, vec![1, 0, 0, 0, 0]));
    }

    #[test]
    fn a_long_run_has_longer_bins() {
        let events: Vec<u64> = (1..=3_000).collect();
        assert_eq!(bins(counted(1, &events[..1_200]), 1_200), (1, vec![1; 1_200]));
        assert_eq!(bins(counted(1, &events[..1_201]), 1_201), (2, [vec![2; 600], vec![1]].concat()));
        assert_eq!(bins(counted(1, &events), 3_000), (4, vec![4; 750]));
    }

    #[test]
    fn no_instant_is_too_far() {
        let (width, bins) = bins(counted(1, &[1, u64::MAX - 2_000]), u64::MAX - 2_000);
        assert!(bins.len() <= MOST_BINS && bins.len() as u64 * (width / 1_000) > u64::MAX / 1_001, "{width}");
        assert_eq!(bins.iter().sum::<u64>(), 2);
        assert_eq!(SeriesCounter::new(BEGAN, Duration::MAX).at(Nanos::NEVER).committed, 0);
        assert_eq!(SeriesCounter::new(BEGAN, Duration::ZERO).width, 1);
    }

    proptest! {
        #[test]
        fn two_workers_count_as_one(
            width in 1_u64..50,
            mut left in prop::collection::vec(0_u64..200_000, 0..60),
            mut right in prop::collection::vec(0_u64..3_000, 0..60),
        ) {
            let end = 200_000;
            left.sort_unstable();
            right.sort_unstable();
            let mut all = [&left[..], &right].concat();
            all.sort_unstable();
            let alone = bins(counted(width, &all), end);
            for (one, other) in [(&left, &right), (&right, &left)] {
                let mut merged = counted(width, one);
                merged.merge(&counted(width, other));
                prop_assert_eq!(bins(merged, end), alone.clone());
            }
            let (width, bins) = alone;
            for (number, count) in bins.iter().enumerate() {
                let number = number as u64;
                let inside = |at: &&u64| index(**at, width) == number;
                prop_assert_eq!(*count, all.iter().filter(inside).count() as u64);
            }
            prop_assert_eq!(bins.len() as u64, end.div_ceil(width));
        }
    }
}
