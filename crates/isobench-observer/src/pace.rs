//! How often samples are taken, so that they cost the server little.
//!
//! Not here: the samples.

use std::collections::VecDeque;
use std::time::Duration;

/// How many samples decide.
const REMEMBERED: usize = 8;

/// The gap between the begins of two samples.
///
/// What a sample costs is estimated by the shortest of the last ones: waiting for a processor,
/// which a busy server makes it do, only adds.
#[derive(Debug)]
pub struct Pace {
    every: Duration,
    most: Duration,
    share: u32,
    recent: VecDeque<Duration>,
}

impl Pace {
    /// Samples take at most one part in `share` of the time, as long as they needn't come further
    /// apart than `most`.
    pub fn new(every: Duration, most: Duration, share: u32) -> Self {
        Pace { every, most: most.max(every), share, recent: VecDeque::new() }
    }

    /// A sample took so long.
    pub fn took(&mut self, time: Duration) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(time);
    }

    /// The gap to the next sample.
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
        let mut pace = Pace::new(100 * MS, 1000 * MS, 20);
        assert_eq!(pace.gap(), 100 * MS);
        pace.took(MS);
        assert_eq!(pace.gap(), 100 * MS);
    }

    #[test]
    fn dear_samples_come_less_often_and_one_slow_one_doesnt_count() {
        let mut pace = Pace::new(100 * MS, 1000 * MS, 20);
        pace.took(20 * MS);
        assert_eq!(pace.gap(), 400 * MS);
        pace.took(300 * MS);
        assert_eq!(pace.gap(), 400 * MS);
        for _ in 0..REMEMBERED {
            pace.took(300 * MS);
        }
        assert_eq!(pace.gap(), 1000 * MS, "never further apart than that");
        pace.took(MS);
        assert_eq!(pace.gap(), 100 * MS, "it may become quicker again");
    }
}
