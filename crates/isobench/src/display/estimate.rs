//! An estimate of the time left in a comparison: for the measurements, and the tables before them.
//!
//! Pure: times are passed in.

use std::fmt;
use std::time::Duration;

/// The times of the cells so far.
#[derive(Debug, Clone, Default)]
pub struct Estimate {
    /// Expected duration of a cell once its tables are ready.
    expected: Duration,
    /// Total time and number of the measured cells with their tables, without loads that aren't
    /// repeated.
    cells: (Duration, u32),
    /// Total time and number of resets of the tables that are repeated before each cell.
    tables: (Duration, u32),
    /// Time that the tables of the running cell took, if it isn't repeated.
    once: Duration,
    /// Time that they took, if it is repeated.
    ready: Duration,
    /// Set once the first tables have been prepared.
    begun: bool,
}

impl Estimate {
    /// Creates an estimate before the first measurement, with the expected duration of a cell
    /// without its tables.
    pub fn new(expected: Duration) -> Estimate {
        Estimate { expected, ..Estimate::default() }
    }

    /// Records the time that the tables of the running cell took, and whether it is repeated
    /// (`again`) before each further cell. Returns whether they are the first.
    pub fn prepared(&mut self, took: Duration, again: bool) -> bool {
        if again {
            self.tables = (self.tables.0 + took, self.tables.1 + 1);
        }
        (self.once, self.ready) = if again { (Duration::ZERO, took) } else { (took, Duration::ZERO) };
        !std::mem::replace(&mut self.begun, true)
    }

    /// Records the time that the running cell took, with its tables.
    pub fn measured(&mut self, took: Duration) {
        self.ready = Duration::ZERO;
        self.cells = (self.cells.0 + took.saturating_sub(self.once), self.cells.1 + 1);
    }

    /// Returns the time for this many further cells, including the running one.
    pub fn left(&self, cells: u32) -> Duration {
        self.each().saturating_mul(cells).saturating_sub(self.ready)
    }

    /// Returns the time for this many further cells, of which a round has `of_round`, if no round is
    /// begun that would end after `limit`. The running one isn't cut short.
    pub fn left_within(&self, cells: u32, of_round: u32, limit: Duration) -> Duration {
        let of_round = of_round.max(1);
        let running = match cells % of_round {
            0 => of_round.min(cells),
            rest => rest,
        };
        let (now, round) = (self.left(running), self.each().saturating_mul(of_round));
        let fitting = limit.saturating_sub(now).as_nanos() / round.as_nanos().max(1);
        let rounds = (cells - running) / of_round;
        now.saturating_add(round.saturating_mul(rounds.min(u32::try_from(fitting).unwrap_or(u32::MAX))))
    }

    /// The duration of a cell with its tables.
    fn each(&self) -> Duration {
        let mean = |(total, count): (Duration, u32)| total.checked_div(count);
        mean(self.cells).unwrap_or_else(|| self.expected + mean(self.tables).unwrap_or_default())
    }
}

/// The time left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// The time for what is known to be measured.
    pub least: Duration,
    /// The time that it may take, if more may have to be measured.
    pub most: Option<Duration>,
}

impl Left {
    /// Returns the time left after some more time.
    pub fn after(self, time: Duration) -> Left {
        Left { least: self.least.saturating_sub(time), most: self.most.map(|most| most.saturating_sub(time)) }
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.most.filter(|most| most.as_secs() > self.least.as_secs()) {
            Some(most) => write!(f, "{} to {} left", spell(self.least), spell(most)),
            None => write!(f, "{} left", spell(self.least)),
        }
    }
}

/// Returns a duration in words, to the second.
pub fn spell(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn tables_that_are_made_anew_count_for_every_cell() {
        let mut estimate = Estimate::new(seconds(3));
        assert_eq!(estimate.left(10), seconds(30));
        assert!(estimate.prepared(seconds(60), true));
        assert_eq!(estimate.left(10), seconds(10 * 63 - 60), "as soon as the first load is known");
        estimate.measured(seconds(64));
        assert_eq!(estimate.left(9), seconds(9 * 64));
    }

    #[test]
    fn a_load_that_is_not_repeated_counts_once() {
        let mut estimate = Estimate::new(seconds(3));
        estimate.prepared(seconds(600), false);
        assert_eq!(estimate.left(10), seconds(30));
        estimate.measured(seconds(604));
        assert_eq!(estimate.left(9), seconds(36));
        assert!(!estimate.prepared(seconds(2), true));
        estimate.measured(seconds(6));
        assert_eq!(estimate.left(8), seconds(40));
    }

    #[test]
    fn a_limit_begins_no_round_that_would_end_after_it() {
        let estimate = Estimate::new(seconds(3));
        // 5 rounds of 4 cells, 12 s each.
        let left = |cells, limit| estimate.left_within(cells, 4, seconds(limit));
        assert_eq!(left(20, 600), seconds(60));
        assert_eq!(left(20, 40), seconds(36), "three rounds");
        assert_eq!(left(20, 1), seconds(12), "the running one is measured to its end");
        assert_eq!(left(18, 40), seconds(6 + 24), "half of the running one, and two more");
        assert_eq!(left(0, 40), seconds(0));
        assert_eq!(estimate.left_within(3, 0, seconds(1)), seconds(3));
    }

    #[test]
    fn the_time_left_is_a_range_if_more_may_follow() {
        let left = Left { least: seconds(64), most: Some(seconds(552)) };
        assert_eq!(left.to_string(), "1m 4s to 9m 12s left");
        assert_eq!(left.after(seconds(60)).to_string(), "4s to 8m 12s left");
        assert_eq!(Left { least: seconds(64), most: Some(seconds(64)) }.to_string(), "1m 4s left");
        assert_eq!(Left { least: seconds(64), most: None }.to_string(), "1m 4s left");
    }
}
