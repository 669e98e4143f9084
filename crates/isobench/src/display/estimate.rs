//! How long the rest of a comparison takes, as far as anybody knows: measuring, and the tables
//! before it.
//!
//! Pure; times come in.

use std::time::Duration;

/// What is known of the cells.
#[derive(Debug, Clone, Default)]
pub struct Estimate {
    /// How long a cell should take once its tables are ready.
    expected: Duration,
    /// How long the cells took so far with their tables, without loads that aren't repeated, and
    /// how many there were.
    cells: (Duration, u32),
    /// How long the tables took that are made or put back before each cell, and how often that was.
    tables: (Duration, u32),
    /// What the tables of the running cell took, if it isn't repeated.
    once: Duration,
    /// What they took, if it is.
    ready: Duration,
    /// Whether tables were made at all.
    begun: bool,
}

impl Estimate {
    /// Before anything was measured: each cell should take this long, without its tables.
    pub fn new(expected: Duration) -> Estimate {
        Estimate { expected, ..Estimate::default() }
    }

    /// The tables of the running cell took so long, and take it `again` before each further cell,
    /// or don't. Returns whether they are the first.
    pub fn prepared(&mut self, took: Duration, again: bool) -> bool {
        if again {
            self.tables = (self.tables.0 + took, self.tables.1 + 1);
        }
        (self.once, self.ready) = if again { (Duration::ZERO, took) } else { (took, Duration::ZERO) };
        !std::mem::replace(&mut self.begun, true)
    }

    /// The running cell took so long, with its tables.
    pub fn measured(&mut self, took: Duration) {
        self.ready = Duration::ZERO;
        self.cells = (self.cells.0 + took.saturating_sub(self.once), self.cells.1 + 1);
    }

    /// How long so many further cells take, the running one included.
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
