//! The interval between samples, adapted to their cost to the server.
//!
//! Not here: the samples.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of samples whose cost is remembered.
const REMEMBERED: usize = 8;

/// The interval between the starts of two samples.
///
/// The cost of a sample is estimated by the shortest of the last ones: waiting for a processor on a
/// busy server only makes a sample longer.
#[derive(Debug)]
pub struct SamplingInterval {
    every: Duration,
    most: Duration,
    share: u32,
    recent: VecDeque<Duration>,
}

impl SamplingInterval {
    /// Samples take at most one part in `share` of the time, as long as the interval doesn't exceed
    /// `most`.
    pub fn new(every: Duration, most: Duration, share: u32) -> Self {
        SamplingInterval { every, most: most.max(every), share, recent: VecDeque::new() }
    }

    /// Records the duration of a sample.
    pub fn took(&mut self, time: Duration) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(time);
    }

    /// The interval to the next sample.
    pub fn gap(&self) -> Duration {
        let cost = self.recent.iter().min().copied().unwrap_or_default();
        (cost * self.share).clamp(self.every, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn cheap_samples_keep_the_pace() {
        let mut interval = SamplingInterval::new(100 * MS, 1000 * MS, 20);
        assert_eq!(interval.gap(), 100 * MS);
        interval.took(MS);
        assert_eq!(interval.gap(), 100 * MS);
    }

    #[test]
    fn dear_samples_come_less_often_and_one_slow_one_doesnt_count() {
        let mut interval = SamplingInterval::new(100 * MS, 1000 * MS, 20);
        interval.took(20 * MS);
        assert_eq!(interval.gap(), 400 * MS);
        interval.took(300 * MS);
        assert_eq!(interval.gap(), 400 * MS);
        for _ in 0..REMEMBERED {
            interval.took(300 * MS);
        }
        assert_eq!(interval.gap(), 1000 * MS, "never further apart than that");
        interval.took(MS);
        assert_eq!(interval.gap(), 100 * MS, "it may become quicker again");
    }
}
