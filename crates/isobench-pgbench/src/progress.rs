//! The lines of `-P` during a run, each about the time since the previous one.
//!
//! Not here: when (`isobench_runner::Watch`) and where they are shown.

use std::fmt::{self, Write as _};
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use isobench_runner::{Pacing, RunProgress, RunSpec};

/// Formats the lines, and remembers the figures of the last one.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own")]
pub struct ProgressLines {
    timestamps: bool,
    paced: bool,
    skips: bool,
    retries: bool,
    last: (Duration, RunProgress),
}

impl ProgressLines {
    /// The lines of a run with these settings. With `timestamps` they have the time of day instead
    /// of the time since the start of the run (pgbench: `--progress-timestamp`).
    pub fn new(spec: &RunSpec, timestamps: bool) -> ProgressLines {
        ProgressLines {
            timestamps,
            paced: matches!(spec.pacing, Pacing::Rate(_)),
            skips: spec.latency_limit.is_some(),
            retries: spec.retry.max_tries != Some(NonZeroU32::MIN),
            last: (Duration::ZERO, RunProgress::default()),
        }
    }

    /// The next line, without its line end, given the time and the progress since the start of the
    /// run.
    pub fn line(&mut self, elapsed: Duration, now: &RunProgress) -> String {
        let mut line = if self.timestamps {
            timestamp(SystemTime::now())
        } else {
            format!("progress: {:.1} s", elapsed.as_secs_f64())
        };
        // Writing to a String can't fail.
        let _ = self.write_figures(&mut line, elapsed, now);
        self.last = (elapsed, *now);
        line
    }

    fn write_figures(&self, line: &mut String, elapsed: Duration, now: &RunProgress) -> fmt::Result {
        let (before, last) = &self.last;
        let seconds = elapsed.saturating_sub(*before).as_secs_f64();
        let (ended, ended_before) = (&now.ledger.transactions, &last.ledger.transactions);
        let committed = ended.committed.saturating_sub(ended_before.committed);
        let failed = (ended.given_up + now.abandoned).saturating_sub(ended_before.given_up + last.abandoned);
        // All figures of an interval without a commit are 0, as in pgbench.
        let mean = |sum: f64| if committed == 0 { 0.0 } else { sum / committed as f64 };
        let latency = mean(now.latency_sum_ms - last.latency_sum_ms);
        let variance = mean(now.latency_squares_ms - last.latency_squares_ms) - latency * latency;
        write!(
            line,
            ", {:.1} tps, lat {latency:.3} ms stddev {:.3}, {failed} failed",
            committed as f64 / seconds,
            variance.max(0.0).sqrt(),
        )?;
        if self.paced {
            write!(line, ", lag {:.3} ms", mean(now.lag_sum_ms - last.lag_sum_ms))?;
            if self.skips {
                write!(line, ", {} skipped", ended.skipped - ended_before.skipped)?;
            }
        }
        if self.retries {
            let (transactions, attempts) = (now.retried - last.retried, now.retries - last.retries);
            write!(line, ", {transactions} retried, {attempts} retries")?;
        }
        Ok(())
    }
}

/// The start of a line with the time of day, in seconds since 1970.
fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("progress: {}.{:03} s", since.as_secs(), since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_runner::RetryPolicy;

    fn paced() -> RunSpec {
        RunSpec {
            pacing: Pacing::Rate(100.0),
            latency_limit: Some(Duration::from_secs(1)),
            retry: RetryPolicy { max_tries: NonZeroU32::new(3), ..RetryPolicy::NEVER },
            ..RunSpec::default()
        }
    }

    #[test]
    fn a_line_covers_the_time_since_the_last_one() {
        let mut lines = ProgressLines::new(&RunSpec::default(), false);
        let mut first =
            RunProgress { latency_sum_ms: 6.0, latency_squares_ms: 20.0, ..RunProgress::default() };
        first.ledger.transactions.committed = 2;
        assert_eq!(
            lines.line(Duration::from_secs(1), &first),
            "progress: 1.0 s, 2.0 tps, lat 3.000 ms stddev 1.000, 0 failed"
        );
        let mut second =
            RunProgress { abandoned: 1, latency_sum_ms: 10.0, latency_squares_ms: 36.0, ..first };
        second.ledger.transactions.committed = 3;
        second.ledger.transactions.given_up = 2;
        assert_eq!(
            lines.line(Duration::from_millis(1500), &second),
            "progress: 1.5 s, 2.0 tps, lat 4.000 ms stddev 0.000, 3 failed"
        );
    }

    #[test]
    fn options_add_columns() {
        let mut now = RunProgress { lag_sum_ms: 1.0, retried: 5, retries: 6, ..RunProgress::default() };
        now.ledger.transactions.committed = 2;
        now.ledger.transactions.skipped = 4;
        let line = |spec: &RunSpec| ProgressLines::new(spec, false).line(Duration::from_secs(2), &now);
        let head = "progress: 2.0 s, 1.0 tps, lat 0.000 ms stddev 0.000, 0 failed";
        assert_eq!(line(&paced()), format!("{head}, lag 0.500 ms, 4 skipped, 5 retried, 6 retries"));
        let unlimited = RunSpec { latency_limit: None, retry: RetryPolicy::NEVER, ..paced() };
        assert_eq!(line(&unlimited), format!("{head}, lag 0.500 ms"));
        // Without a rate nothing is skipped.
        let limited = RunSpec { pacing: Pacing::Unpaced, ..paced() };
        assert_eq!(line(&limited), format!("{head}, 5 retried, 6 retries"));
    }

    #[test]
    fn an_interval_without_a_commit_is_all_zeros() {
        let mut now = RunProgress { retried: 3, retries: 6, lag_sum_ms: 4.0, ..RunProgress::default() };
        now.ledger.transactions.given_up = 3;
        assert_eq!(
            ProgressLines::new(&paced(), false).line(Duration::from_secs(1), &now),
            "progress: 1.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 3 failed, lag 0.000 ms, 0 \
             skipped, 3 retried, 6 retries"
        );
    }

    #[test]
    fn the_time_of_day_has_milliseconds() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_001_041_900);
        assert_eq!(timestamp(time), "progress: 1700000001.041 s");
        let line = ProgressLines::new(&RunSpec::default(), true)
            .line(Duration::from_secs(1), &RunProgress::default());
        assert!(line.ends_with(" s, 0.0 tps, lat 0.000 ms stddev 0.000, 0 failed"), "{line}");
    }
}
