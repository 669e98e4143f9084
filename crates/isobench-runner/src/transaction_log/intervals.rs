//! The sums of `--aggregate-interval`: a line for each finished interval, including empty ones.
//!
//! An interval is written when a transaction ends after it. So the last one, in progress at the end
//! of the run, is never written, as in pgbench.
//!
//! Source: PostgreSQL: pgbench, Aggregated Logging.

use crate::observer::{EndedTransaction, TransactionEnd};

use super::lines::{LogColumns, number};
use super::log_file::LogFile;

const MICROS: u64 = 1_000_000;

/// Count, sum, sum of squares, minimum and maximum of a measurement, in µs.
#[derive(Debug, Default)]
struct ValueSums {
    count: u64,
    sum: u64,
    squares: u128,
    min: u64,
    max: u64,
}

impl ValueSums {
    fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += u128::from(value) * u128::from(value);
    }

    /// Appends everything except the count.
    fn write(&self, line: &mut Vec<u8>) {
        number(line, self.sum, b' ');
        number(line, self.squares, b' ');
        number(line, self.min, b' ');
        number(line, self.max, b' ');
    }
}

/// The sums of one interval.
#[derive(Debug, Default)]
struct Sums {
    latency: ValueSums,
    lag: ValueSums,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
}

/// The current interval.
#[derive(Debug)]
pub(super) struct Intervals {
    /// Length in s.
    every: u64,
    /// Start in s since 1970.
    began: u64,
    sums: Sums,
}

impl Intervals {
    /// Intervals of `every` seconds, at least 1. The first one starts with the second of `began`,
    /// in µs since 1970.
    pub(super) fn new(every: u64, began: u64) -> Intervals {
        Intervals { every: every.max(1), began: began / MICROS, sums: Sums::default() }
    }

    /// Takes a transaction that ended at this time, in µs since 1970, and writes the intervals
    /// finished by then.
    pub(super) fn take(
        &mut self,
        ended: &EndedTransaction,
        at: u64,
        columns: LogColumns,
        file: &mut LogFile,
    ) {
        while at / MICROS >= self.began.saturating_add(self.every) {
            self.write(file.buffer(), columns);
            file.write_if_full();
            self.began += self.every;
            self.sums = Sums::default();
        }
        self.sums.add(ended, columns);
    }

    fn write(&self, line: &mut Vec<u8>, columns: LogColumns) {
        let sums = &self.sums;
        number(line, self.began, b' ');
        number(line, sums.latency.count, b' ');
        sums.latency.write(line);
        sums.lag.write(line);
        for count in [sums.skipped, sums.retried, sums.retries, sums.serialization, sums.deadlock] {
            number(line, count, b' ');
        }
        if columns.other_failures {
            number(line, sums.other, b' ');
        }
        if let Some(last) = line.last_mut() {
            *last = b'\n';
        }
    }
}

impl Sums {
    fn add(&mut self, ended: &EndedTransaction, columns: LogColumns) {
        if ended.tries > 1 {
            self.retried += 1;
            self.retries += u64::from(ended.tries - 1);
        }
        // pgbench counts failures here only if they are reported by kind.
        let failure = u64::from(columns.failures_detailed);
        match ended.end {
            TransactionEnd::Committed | TransactionEnd::Swallowed | TransactionEnd::RolledBack => {
                self.latency.add(ended.latency / 1000);
                if columns.lag {
                    self.lag.add(ended.lag / 1000);
                }
            }
            TransactionEnd::Skipped => self.skipped += 1,
            TransactionEnd::Serialization => self.serialization += failure,
            TransactionEnd::Deadlock => self.deadlock += failure,
            TransactionEnd::OtherError => self.other += failure,
        }
    }
}
