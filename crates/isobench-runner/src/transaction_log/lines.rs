//! The line of a transaction, and formatting of numbers.
//!
//! Source: PostgreSQL: pgbench, Per-Transaction Logging.

use crate::observer::{EndedTransaction, TransactionEnd};

/// The optional columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own")]
pub(super) struct LogColumns {
    /// Schedule lag (`-R`).
    pub(super) lag: bool,
    /// Retries (`--max-tries`).
    pub(super) retries: bool,
    /// Failures by kind (`--failures-detailed`).
    pub(super) failures_detailed: bool,
    /// Failures other than conflicts, in lines of intervals (versions with `--continue-on-error`).
    pub(super) other_failures: bool,
}

/// Appends a number and a character.
pub(super) fn number(line: &mut Vec<u8>, number: impl itoa::Integer, then: u8) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    line.push(then);
}

/// Appends the line of a transaction that ended at this time, in µs since 1970.
pub(super) fn transaction(line: &mut Vec<u8>, ended: &EndedTransaction, at: u64, columns: LogColumns) {
    number(line, ended.client, b' ');
    number(line, ended.number, b' ');
    let detailed = columns.failures_detailed;
    match ended.end {
        TransactionEnd::Committed | TransactionEnd::Swallowed | TransactionEnd::RolledBack => {
            number(line, ended.latency / 1000, b' ');
        }
        TransactionEnd::Skipped => line.extend_from_slice(b"skipped "),
        TransactionEnd::Serialization if detailed => line.extend_from_slice(b"serialization "),
        TransactionEnd::Deadlock if detailed => line.extend_from_slice(b"deadlock "),
        TransactionEnd::OtherError if detailed => line.extend_from_slice(b"other "),
        TransactionEnd::Serialization | TransactionEnd::Deadlock | TransactionEnd::OtherError => {
            line.extend_from_slice(b"failed ");
        }
    }
    number(line, ended.script, b' ');
    number(line, at / 1_000_000, b' ');
    number(line, at % 1_000_000, b' ');
    if columns.lag {
        // In pgbench only committed transactions have a lag.
        let committed = matches!(
            ended.end,
            TransactionEnd::Committed | TransactionEnd::Swallowed | TransactionEnd::RolledBack
        );
        number(line, if committed { ended.lag / 1000 } else { 0 }, b' ');
    }
    if columns.retries {
        number(line, ended.tries.saturating_sub(1), b' ');
    }
    if let Some(last) = line.last_mut() {
        *last = b'\n';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    const PLAIN: LogColumns =
        LogColumns { lag: false, retries: false, failures_detailed: false, other_failures: false };

    fn line(end: TransactionEnd, columns: LogColumns) -> String {
        let tries = if end == TransactionEnd::Skipped { 0 } else { 2 };
        let (latency, lag) = (1_234_999, 56_999);
        let ended =
            EndedTransaction { client: 3, number: 12, script: 1, end, tries, latency, lag, at: Nanos(0) };
        let mut line = Vec::new();
        transaction(&mut line, &ended, 1_700_000_000_000_078, columns);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn the_lines_are_those_of_pgbench() {
        assert_eq!(line(TransactionEnd::Committed, PLAIN), "3 12 1234 1 1700000000 78\n");
        for end in [TransactionEnd::Serialization, TransactionEnd::Deadlock, TransactionEnd::OtherError] {
            assert_eq!(line(end, PLAIN), "3 12 failed 1 1700000000 78\n");
        }
        assert_eq!(line(TransactionEnd::Skipped, PLAIN), "3 12 skipped 1 1700000000 78\n");
    }

    #[test]
    fn options_add_columns() {
        let all = LogColumns { lag: true, retries: true, failures_detailed: true, ..PLAIN };
        let rows = [
            (TransactionEnd::Committed, "3 12 1234 1 1700000000 78 56 1\n"),
            (TransactionEnd::Serialization, "3 12 serialization 1 1700000000 78 0 1\n"),
            (TransactionEnd::Deadlock, "3 12 deadlock 1 1700000000 78 0 1\n"),
            (TransactionEnd::OtherError, "3 12 other 1 1700000000 78 0 1\n"),
            (TransactionEnd::Skipped, "3 12 skipped 1 1700000000 78 0 0\n"),
        ];
        for (end, expected) in rows {
            assert_eq!(line(end, all), expected);
        }
        assert_eq!(
            line(TransactionEnd::Committed, LogColumns { lag: true, ..PLAIN }),
            "3 12 1234 1 1700000000 78 56\n"
        );
        assert_eq!(
            line(TransactionEnd::Committed, LogColumns { retries: true, ..PLAIN }),
            "3 12 1234 1 1700000000 78 1\n"
        );
    }
}
