//! An estimate of the time left in a comparison: for the measurements, and the tables before them.
//!
//! Pure: times are passed in.

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
        let mean = |(total, count): (Duration, u32)| total.checked_div(count);
        let each = mean(self.cells).unwrap_or_else(|| self.expected + mean(self.tables).unwrap_or_default());
        each.saturating_mul(cells).saturating_sub(self.ready)
    }
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
}
