//! The part of `isobench run`'s summary below pgbench's: level, percentiles, the account of
//! attempts and time, conflicts by reason, invariants.
//!
//! Not here: pgbench's own lines (`isobench_pgbench::summary`).

use std::fmt::Write as _;

use isobench_isolation::{EffectiveLevel, Level};
use isobench_result::Invariant;
use isobench_runner::{Job, RunOutcome};

/// The data of the summary.
pub struct Account<'a> {
    /// The workload and its settings.
    pub job: &'a Job,
    /// The outcome of the run.
    pub run: &'a RunOutcome,
    /// The requested level, and the effective one.
    pub level: (Option<Level>, &'a EffectiveLevel),
    /// True if pgbench's lines show average and deviation as measured.
    pub measured_above: bool,
    /// The invariants checked after the run.
    pub invariants: &'a [Invariant],
}

impl Account<'_> {
    /// Returns the whole text.
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String can't fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let ledger = self.run.ledger();
        let (attempts, transactions, time) = (&ledger.attempts, &ledger.transactions, &ledger.time);
        writeln!(out, "isolation level: {}", self.level_line())?;
        let latency = self.run.latency();
        let percentiles = [50.0, 90.0, 95.0, 99.0, 99.9].map(|percentile| {
            let value = latency.percentile(percentile);
            let value = value.map_or("-".to_owned(), |ms| format!("{ms:.3}"));
            format!("p{percentile} {value}")
        });
        write!(out, "latency percentiles (ms): {}", percentiles.join(", "))?;
        if let (false, Some(mean), Some(stddev)) =
            (self.measured_above, latency.mean_ms(), latency.stddev_ms())
        {
            write!(out, "; average {mean:.3}, stddev {stddev:.3}")?;
        }
        writeln!(out)?;
        // Only scripts that catch errors or roll back by themselves have such attempts.
        let own = |swallowed: u64, rolled_back: u64| {
            let parts = [(swallowed, "swallowed"), (rolled_back, "rolled back")];
            let parts = parts.iter().filter(|(count, _)| *count > 0);
            parts.fold(String::new(), |text, (count, name)| format!("{text} + {count} {name}"))
        };
        writeln!(
            out,
            "attempts: {} started = {} committed + {} retried + {} given up{} + {} ambiguous + {} cut off + {} errored",
            attempts.started,
            attempts.committed,
            attempts.retried,
            attempts.given_up,
            own(attempts.swallowed, attempts.rolled_back),
            attempts.ambiguous,
            attempts.cut_off,
            attempts.errored
        )?;
        writeln!(
            out,
            "transactions: {} = {} committed + {} given up{} + {} ambiguous + {} cut off + {} errored + {} skipped",
            transactions.total,
            transactions.committed,
            transactions.given_up,
            own(transactions.swallowed, transactions.rolled_back),
            transactions.ambiguous,
            transactions.cut_off,
            transactions.errored,
            transactions.skipped
        )?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        writeln!(
            out,
            "client time (s): {:.3} useful, {:.3} wasted ({:.1} %), {:.3} backoff, {:.3} waiting",
            seconds(time.useful),
            seconds(time.wasted),
            ledger.wasted_share() * 100.0,
            seconds(time.backoff),
            seconds(time.waiting)
        )?;
        writeln!(
            out,
            "conflicts: {} ({:.1} % of attempts)",
            ledger.conflicts,
            ledger.conflict_ratio() * 100.0
        )?;
        for conflict in &self.run.conflicts {
            let at = self.job.place(conflict.script, conflict.command);
            let object = conflict.object.as_ref().map_or_else(String::new, |object| format!(" on {object}"));
            writeln!(
                out,
                "  {:>8}  {} {}{object}, at {at}",
                conflict.count, conflict.sqlstate, conflict.reason
            )?;
        }
        if ledger.further_errors > 0 {
            writeln!(out, "further errors that are retried: {}", ledger.further_errors)?;
        }
        for error in &self.run.further_errors {
            let at = self.job.place(error.script, error.command);
            writeln!(out, "  {:>8}  {}, at {at}", error.count, error.sqlstate)?;
        }
        for invariant in self.invariants {
            let held = match invariant.held {
                Some(true) => "held",
                Some(false) if invariant.promised => "VIOLATED",
                Some(false) => "violated, which the level permits",
                None => "not checked",
            };
            writeln!(out, "invariant {}: {held} ({})", invariant.name, invariant.detail)?;
        }
        Ok(())
    }

    fn level_line(&self) -> String {
        let (requested, effective) = self.level;
        match requested {
            Some(level) if effective.differs_from(level) => {
                format!("{level} was asked for, but the server runs {effective}")
            }
            Some(_) => effective.to_string(),
            None => format!("{effective} (the server's default)"),
        }
    }
}
