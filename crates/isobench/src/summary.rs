//! The summary of `isobench run`: pgbench's lines, then what pgbench doesn't tell.
//!
//! Layout of pgbench 15 to 18, matched by running it. Not here: the strict drop-in.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use isobench_isolation::{EffectiveLevel, Level};
use isobench_report::Invariant;
use isobench_runner::{Job, Outcome as Run, Pacing, ScriptRecord, Stop};
use isobench_stats::{LatencyHistogram, Ledger};

/// What the summary is made of.
pub struct Summary<'a> {
    /// The workload and its settings.
    pub job: &'a Job,
    /// What came out.
    pub run: &'a Run,
    /// When it was to stop.
    pub stop: Stop,
    /// Scale of the tables.
    pub scale: u32,
    /// How long connecting took.
    pub connecting: Duration,
    /// The level asked for, and the one in effect.
    pub level: (Option<Level>, &'a EffectiveLevel),
    /// Failures by kind (pgbench: `--failures-detailed`).
    pub failures_detailed: bool,
    /// Latencies, failures and retries for each command (pgbench: `-r`).
    pub per_command: bool,
    /// The standard deviation among pgbench's own lines, where it has it only with `-P`, `-R` or `-L`.
    pub stddev: bool,
    /// What was checked in the tables afterwards.
    pub invariants: &'a [Invariant],
}

impl Summary<'_> {
    /// The whole text.
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String can't fail, so neither can these.
        let _ = self.settings(&mut out);
        let _ = self.results(&mut out);
        let _ = self.scripts(&mut out);
        let _ = self.account(&mut out);
        out
    }

    fn settings(&self, out: &mut String) -> std::fmt::Result {
        let spec = self.job.spec();
        let scripts = self.job.workload().mix.scripts();
        let kind = if let [only] = scripts { only.script.name.as_str() } else { "multiple scripts" };
        writeln!(out, "transaction type: {kind}")?;
        writeln!(out, "scaling factor: {}", self.scale)?;
        writeln!(out, "query mode: {}", spec.protocol.name())?;
        writeln!(out, "number of clients: {}", spec.clients)?;
        writeln!(out, "number of threads: {}", spec.workers)?;
        if let Some(tries) = spec.retry.max_tries {
            writeln!(out, "maximum number of tries: {tries}")?;
        }
        let processed = self.ledger().transactions.committed;
        match self.stop {
            Stop::Transactions(each) => {
                let planned = each.saturating_mul(spec.clients as u64);
                writeln!(out, "number of transactions per client: {each}")?;
                writeln!(out, "number of transactions actually processed: {processed}/{planned}")
            }
            Stop::Time(time) => {
                writeln!(out, "duration: {} s", time.as_secs_f64())?;
                writeln!(out, "number of transactions actually processed: {processed}")
            }
        }
    }

    fn results(&self, out: &mut String) -> std::fmt::Result {
        let spec = self.job.spec();
        let ledger = self.ledger();
        let retried = self.run.scripts.iter().map(|script| script.retried_transactions).sum();
        let deadlocks = self.deadlocks(None);
        self.failures(out, "", &ledger, retried, deadlocks)?;
        if ended(&ledger) == 0 {
            return Ok(());
        }
        self.skipped(out, "", &ledger)?;
        if let Some(limit) = spec.latency_limit {
            let processed = ledger.transactions.committed;
            writeln!(
                out,
                "number of transactions above the {:.1} ms latency limit: {}/{processed} ({:.3}%)",
                limit.as_secs_f64() * 1e3,
                ledger.late,
                if processed == 0 { 0.0 } else { percent(ledger.late, processed) }
            )?;
        }
        latency_lines(out, "", &self.run.latency(), self.stddev)?;
        if matches!(spec.pacing, Pacing::Rate(_)) {
            let mut lag = isobench_stats::Moments::default();
            for script in &self.run.scripts {
                lag.merge(&script.lag);
            }
            let max = lag.max_ns().unwrap_or(0) as f64 / 1e6;
            writeln!(
                out,
                "rate limit schedule lag: avg {:.3} (max {max:.3}) ms",
                lag.mean_ms().unwrap_or(f64::NAN)
            )?;
        }
        writeln!(out, "initial connection time = {:.3} ms", self.connecting.as_secs_f64() * 1e3)?;
        writeln!(
            out,
            "tps = {:.6} (without initial connection time)",
            rate(ledger.transactions.committed, self.run.elapsed)
        )
    }

    /// The lines on failed and retried transactions, of the run or of one script.
    fn failures(
        &self,
        out: &mut String,
        indent: &str,
        ledger: &Ledger,
        retried: u64,
        deadlocks: u64,
    ) -> std::fmt::Result {
        let transactions = &ledger.transactions;
        let ran = ended(ledger);
        let failed = transactions.given_up;
        writeln!(out, "{indent}number of failed transactions: {failed} ({:.3}%)", percent(failed, ran))?;
        if self.failures_detailed {
            let serialization = failed - deadlocks.min(failed);
            let kinds = [("serialization", serialization), ("deadlock", deadlocks.min(failed))];
            for (kind, count) in kinds {
                writeln!(out, "{indent}number of {kind} failures: {count} ({:.3}%)", percent(count, ran))?;
            }
        }
        if self.job.spec().retry.max_tries != Some(NonZeroU32::MIN) {
            writeln!(
                out,
                "{indent}number of transactions retried: {retried} ({:.3}%)",
                percent(retried, ran)
            )?;
            writeln!(out, "{indent}total number of retries: {}", ledger.retries)?;
        }
        Ok(())
    }

    /// The line on skipped transactions, which only a rate and a latency limit together make.
    fn skipped(&self, out: &mut String, indent: &str, ledger: &Ledger) -> std::fmt::Result {
        let spec = self.job.spec();
        if !matches!(spec.pacing, Pacing::Rate(_)) || spec.latency_limit.is_none() {
            return Ok(());
        }
        let skipped = ledger.transactions.skipped;
        let share = percent(skipped, ended(ledger));
        writeln!(out, "{indent}number of transactions skipped: {skipped} ({share:.3}%)")
    }

    /// Transactions given up after a deadlock.
    fn deadlocks(&self, script: Option<usize>) -> u64 {
        let wanted = |index: &usize| script.is_none_or(|script| script == *index);
        let scripts = self.run.scripts.iter().enumerate().filter(|(index, _)| wanted(index));
        scripts.map(|(_, record)| record.deadlock_failures).sum()
    }

    fn scripts(&self, out: &mut String) -> std::fmt::Result {
        let mix = &self.job.workload().mix;
        if ended(&self.ledger()) == 0 {
            return Ok(());
        }
        let several = mix.scripts().len() > 1;
        let total = self.ledger().transactions.committed;
        for (index, (weighted, record)) in mix.scripts().iter().zip(&self.run.scripts).enumerate() {
            if several {
                let processed = record.ledger.transactions.committed;
                writeln!(out, "SQL script {}: {}", index + 1, weighted.script.name)?;
                writeln!(
                    out,
                    " - weight: {} (targets {:.1}% of total)",
                    weighted.weight,
                    percent(weighted.weight, mix.total_weight())
                )?;
                writeln!(
                    out,
                    " - {processed} transactions ({:.1}% of total, tps = {:.6})",
                    percent(processed, total),
                    rate(processed, self.run.elapsed)
                )?;
                self.failures(
                    out,
                    " - ",
                    &record.ledger,
                    record.retried_transactions,
                    self.deadlocks(Some(index)),
                )?;
                if ended(&record.ledger) > 0 {
                    self.skipped(out, " - ", &record.ledger)?;
                    latency_lines(out, " - ", &record.latency, true)?;
                }
            }
            if self.per_command {
                self.commands(out, if several { " - " } else { "" }, index, record)?;
            }
        }
        Ok(())
    }

    fn commands(
        &self,
        out: &mut String,
        indent: &str,
        script: usize,
        record: &ScriptRecord,
    ) -> std::fmt::Result {
        let retries = self.job.spec().retry.max_tries != Some(NonZeroU32::MIN);
        let title = if retries { ", failures and retries" } else { " and failures" };
        writeln!(out, "{indent}statement latencies in milliseconds{title}:")?;
        let commands = &self.job.workload().mix.scripts()[script].script.commands;
        for (command, record) in commands.iter().zip(&record.commands) {
            let mean = record.latency.mean_ms().unwrap_or(0.0);
            write!(out, "   {mean:11.3}  {:10}", record.failures)?;
            if retries {
                write!(out, "  {:10}", record.retries)?;
            }
            writeln!(out, "  {}", command.text)?;
        }
        Ok(())
    }

    /// What pgbench doesn't tell: percentiles, the account of attempts and time, conflicts by reason, invariants.
    fn account(&self, out: &mut String) -> std::fmt::Result {
        let ledger = self.ledger();
        let (attempts, transactions, time) = (&ledger.attempts, &ledger.transactions, &ledger.time);
        writeln!(out, "isolation level: {}", self.level_line())?;
        let latency = self.run.latency();
        let percentiles = [50.0, 90.0, 95.0, 99.0, 99.9].map(|percentile| {
            let value = latency.percentile(percentile);
            let value = value.map_or("-".to_owned(), |ms| format!("{ms:.3}"));
            format!("p{percentile} {value}")
        });
        write!(out, "latency percentiles (ms): {}", percentiles.join(", "))?;
        if let (false, Some(stddev)) = (self.stddev, latency.stddev_ms()) {
            write!(out, "; stddev {stddev:.3}")?;
        }
        writeln!(out)?;
        writeln!(
            out,
            "attempts: {} started = {} committed + {} retried + {} given up + {} ambiguous + {} cut off + {} errored",
            attempts.started,
            attempts.committed,
            attempts.retried,
            attempts.given_up,
            attempts.ambiguous,
            attempts.cut_off,
            attempts.errored
        )?;
        writeln!(
            out,
            "transactions: {} = {} committed + {} given up + {} ambiguous + {} cut off + {} errored + {} skipped",
            transactions.total,
            transactions.committed,
            transactions.given_up,
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
            let at = self.job.command_label(conflict.script, conflict.command);
            writeln!(
                out,
                "  {:>8}  {} {}, at command {at}",
                conflict.count, conflict.sqlstate, conflict.reason
            )?;
        }
        for invariant in self.invariants {
            let held = match invariant.held {
                Some(true) => "held",
                Some(false) => "VIOLATED",
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

    fn ledger(&self) -> Ledger {
        self.run.ledger()
    }
}

fn latency_lines(
    out: &mut String,
    indent: &str,
    latency: &LatencyHistogram,
    stddev: bool,
) -> std::fmt::Result {
    let (Some(mean), Some(deviation)) = (latency.mean_ms(), latency.stddev_ms()) else { return Ok(()) };
    writeln!(out, "{indent}latency average = {mean:.3} ms")?;
    if stddev { writeln!(out, "{indent}latency stddev = {deviation:.3} ms") } else { Ok(()) }
}

/// Transactions that came to an end that pgbench counts; if there is none, it has nothing more to say.
fn ended(ledger: &Ledger) -> u64 {
    let transactions = &ledger.transactions;
    transactions.committed + transactions.given_up + transactions.skipped
}

/// A share in percent; of nothing it is NaN, as in pgbench.
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// Transactions per second; 0 in no time.
fn rate(transactions: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { transactions as f64 / elapsed.as_secs_f64() }
}
