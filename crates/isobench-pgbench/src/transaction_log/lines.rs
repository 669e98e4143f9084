//! The line of a transaction, and how numbers get into lines.
//!
//! Source: PostgreSQL: pgbench, Per-Transaction Logging.

use isobench_runner::{Ended, How};

/// What the lines have beyond what they always have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own")]
pub(super) struct Columns {
    /// How far behind the schedule (`-R`).
    pub(super) lag: bool,
    /// Retries (`--max-tries`).
    pub(super) retries: bool,
    /// Failures by kind (`--failures-detailed`).
    pub(super) failures_detailed: bool,
    /// Failures that are no conflicts, in lines of intervals (`--continue-on-error` exists).
    pub(super) other_failures: bool,
}

/// Appends a number and a character.
pub(super) fn number(line: &mut Vec<u8>, number: impl itoa::Integer, then: u8) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    line.push(then);
}

/// Appends the line of a transaction that ended at this time, in µs since 1970.
pub(super) fn transaction(line: &mut Vec<u8>, ended: &Ended, at: u64, columns: Columns) {
    number(line, ended.client, b' ');
    number(line, ended.number, b' ');
    let detailed = columns.failures_detailed;
    match ended.how {
        How::Committed | How::Swallowed => number(line, ended.latency / 1000, b' '),
        How::Skipped => line.extend_from_slice(b"skipped "),
        How::Serialization if detailed => line.extend_from_slice(b"serialization "),
        How::Deadlock if detailed => line.extend_from_slice(b"deadlock "),
        How::OtherError if detailed => line.extend_from_slice(b"other "),
        How::Serialization | How::Deadlock | How::OtherError => line.extend_from_slice(b"failed "),
    }
    number(line, ended.script, b' ');
    number(line, at / 1_000_000, b' ');
    number(line, at % 1_000_000, b' ');
    if columns.lag {
        // To pgbench only a transaction that commits has a lag.
        number(
            line,
            if matches!(ended.how, How::Committed | How::Swallowed) { ended.lag / 1000 } else { 0 },
            b' ',
        );
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
    use isobench_runner::Nanos;

    const PLAIN: Columns =
        Columns { lag: false, retries: false, failures_detailed: false, other_failures: false };

    fn line(how: How, columns: Columns) -> String {
        let tries = if how == How::Skipped { 0 } else { 2 };
        let (latency, lag) = (1_234_999, 56_999);
        let ended = Ended { client: 3, number: 12, script: 1, how, tries, latency, lag, at: Nanos(0) };
        let mut line = Vec::new();
        transaction(&mut line, &ended, 1_700_000_000_000_078, columns);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn the_lines_are_those_of_pgbench() {
        assert_eq!(line(How::Committed, PLAIN), "3 12 1234 1 1700000000 78\n");
        for how in [How::Serialization, How::Deadlock, How::OtherError] {
            assert_eq!(line(how, PLAIN), "3 12 failed 1 1700000000 78\n");
        }
        assert_eq!(line(How::Skipped, PLAIN), "3 12 skipped 1 1700000000 78\n");
    }

    #[test]
    fn options_add_columns() {
        let all = Columns { lag: true, retries: true, failures_detailed: true, ..PLAIN };
        let rows = [
            (How::Committed, "3 12 1234 1 1700000000 78 56 1\n"),
            (How::Serialization, "3 12 serialization 1 1700000000 78 0 1\n"),
            (How::Deadlock, "3 12 deadlock 1 1700000000 78 0 1\n"),
            (How::OtherError, "3 12 other 1 1700000000 78 0 1\n"),
            (How::Skipped, "3 12 skipped 1 1700000000 78 0 0\n"),
        ];
        for (how, expected) in rows {
            assert_eq!(line(how, all), expected);
        }
        assert_eq!(line(How::Committed, Columns { lag: true, ..PLAIN }), "3 12 1234 1 1700000000 78 56\n");
        assert_eq!(line(How::Committed, Columns { retries: true, ..PLAIN }), "3 12 1234 1 1700000000 78 1\n");
    }
}
