//! The report at the end of a run: settings, results, statistics of scripts and commands.
//!
//! Not here: additions of `isobench run`, and messages about an incomplete run.

use std::fmt::{self, Write as _};
use std::num::NonZeroU32;
use std::time::Duration;

use isobench_database::PartitionMethod;
use isobench_runner::{Job, Pacing, RunOutcome, ScriptRecord, StopCondition};
use isobench_script::{Command, CommandKind};
use isobench_stats::{LatencyHistogram, Ledger, Moments};

use crate::version::Version;

/// The data of the report.
#[derive(Clone, Copy)]
pub struct Summary<'a> {
    /// The version whose layout it has.
    pub version: Version,
    /// The workload and its settings.
    pub job: &'a Job,
    /// The results.
    pub run: &'a RunOutcome,
    /// The stop condition of the run.
    pub stop: StopCondition,
    /// Scale of the tables.
    pub scale: i64,
    /// Partitioning method of the accounts and number of partitions, if they are partitioned.
    pub partitions: Option<(PartitionMethod, u64)>,
    /// Time spent connecting before the run.
    pub connecting: Duration,
    /// Failures by kind (`--failures-detailed`).
    pub failures_detailed: bool,
    /// Latencies, failures and retries for each command (`-r`).
    pub per_command: bool,
    /// Progress was shown (`-P`), so latencies are reported as measured.
    pub progress: bool,
}

impl Summary<'_> {
    /// The whole text.
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String can't fail, so neither can these.
        let _ = self.settings(&mut out);
        let _ = self.results(&mut out);
        out
    }

    /// True if latencies are reported as measured, because an option needs that. Otherwise the
    /// average is computed from the run's time.
    pub fn reports_measured_latency(&self) -> bool {
        self.progress || self.is_paced() || self.job.spec().latency_limit.is_some()
    }

    fn settings(&self, out: &mut String) -> fmt::Result {
        let spec = self.job.spec();
        let scripts = self.job.workload().mix.scripts();
        let kind = if let [only] = scripts { only.script.name.as_str() } else { "multiple scripts" };
        writeln!(out, "transaction type: {kind}")?;
        writeln!(out, "scaling factor: {}", self.scale)?;
        if let Some((method, count)) = self.partitions {
            let method = match method {
                PartitionMethod::Range => "range",
                PartitionMethod::Hash => "hash",
            };
            writeln!(out, "partition method: {method}\npartitions: {count}")?;
        }
        writeln!(out, "query mode: {}", spec.protocol.name())?;
        writeln!(out, "number of clients: {}", spec.clients)?;
        writeln!(out, "number of threads: {}", spec.workers)?;
        if let Some(tries) = spec.retry.max_tries {
            writeln!(out, "maximum number of tries: {tries}")?;
        }
        let processed = self.run.ledger().transactions.committed;
        match self.stop {
            StopCondition::Transactions(each) => {
                let planned = each.saturating_mul(spec.clients as u64);
                writeln!(out, "number of transactions per client: {each}")?;
                writeln!(out, "number of transactions actually processed: {processed}/{planned}")
            }
            StopCondition::Time(time) | StopCondition::Turn(time) => {
                writeln!(out, "duration: {} s", time.as_secs_f64())?;
                writeln!(out, "number of transactions actually processed: {processed}")
            }
        }
    }

    /// Everything after the settings, as far as there is something to report.
    fn results(&self, out: &mut String) -> fmt::Result {
        let all = EndCounts::of(&self.run.scripts);
        if self.version.reports_scripts_by_ends() {
            if all.total() == 0 {
                return Ok(());
            }
            self.failures(out, "", &all)?;
        } else {
            self.failures(out, "", &all)?;
            if all.committed + all.skipped == 0 {
                return Ok(());
            }
        }
        self.skipped(out, "", &all)?;
        self.late(out, &all)?;
        self.latency(out, &all)?;
        self.lag(out, &all)?;
        self.rate(out, &all)?;
        self.scripts(out, &all)
    }

    /// The lines about failed and retried transactions, of the run or of one script.
    fn failures(&self, out: &mut String, indent: &str, ends: &EndCounts) -> fmt::Result {
        let total = ends.total();
        let failed = ends.failed();
        writeln!(out, "{indent}number of failed transactions: {failed} ({:.3}%)", percent(failed, total))?;
        if self.failures_detailed {
            let other = self.version.continue_on_error().then_some(("other", ends.other));
            let kinds = [("serialization", ends.serialization), ("deadlock", ends.deadlock)];
            for (kind, count) in kinds.into_iter().chain(other) {
                writeln!(out, "{indent}number of {kind} failures: {count} ({:.3}%)", percent(count, total))?;
            }
        }
        if self.retries() {
            let retried = ends.retried;
            writeln!(
                out,
                "{indent}number of transactions retried: {retried} ({:.3}%)",
                percent(retried, total)
            )?;
            writeln!(out, "{indent}total number of retries: {}", ends.retries)?;
        }
        Ok(())
    }

    /// The line about skipped transactions, which only a rate together with a latency limit can
    /// cause.
    fn skipped(&self, out: &mut String, indent: &str, ends: &EndCounts) -> fmt::Result {
        if !self.is_paced() || self.job.spec().latency_limit.is_none() {
            return Ok(());
        }
        let share = percent(ends.skipped, ends.total());
        writeln!(out, "{indent}number of transactions skipped: {} ({share:.3}%)", ends.skipped)
    }

    fn late(&self, out: &mut String, ends: &EndCounts) -> fmt::Result {
        let Some(limit) = self.job.spec().latency_limit else { return Ok(()) };
        writeln!(
            out,
            "number of transactions above the {:.1} ms latency limit: {}/{} ({:.3}%)",
            limit.as_secs_f64() * 1e3,
            ends.late,
            ends.committed,
            if ends.committed == 0 { 0.0 } else { percent(ends.late, ends.committed) }
        )
    }

    fn latency(&self, out: &mut String, ends: &EndCounts) -> fmt::Result {
        let spec = self.job.spec();
        if self.reports_measured_latency() {
            return latency_lines(out, "", &self.run.latency());
        }
        let share = self.run.elapsed.as_secs_f64() * 1e3 * spec.clients as f64 / ends.total() as f64;
        let including = if ends.failed() > 0 { " (including failures)" } else { "" };
        writeln!(out, "latency average = {share:.3} ms{including}")
    }

    fn lag(&self, out: &mut String, ends: &EndCounts) -> fmt::Result {
        if !self.is_paced() {
            return Ok(());
        }
        let mut lag = Moments::default();
        // In pgbench only committed transactions have a lag.
        if ends.committed > 0 {
            self.run.scripts.iter().for_each(|script| lag.merge(&script.lag));
        }
        let (mean, max) = (lag.mean_ms().unwrap_or(f64::NAN), lag.max_ns().unwrap_or(0) as f64 / 1e6);
        writeln!(out, "rate limit schedule lag: avg {mean:.3} (max {max:.3}) ms")
    }

    fn rate(&self, out: &mut String, ends: &EndCounts) -> fmt::Result {
        let tps = rate(ends.committed, self.run.elapsed);
        if self.job.spec().connect_each {
            let each = self.run.reconnecting.as_secs_f64() * 1e3 / ends.total() as f64;
            writeln!(out, "average connection time = {each:.3} ms")?;
            writeln!(out, "tps = {tps:.6} (including reconnection times)")
        } else {
            writeln!(out, "initial connection time = {:.3} ms", self.connecting.as_secs_f64() * 1e3)?;
            writeln!(out, "tps = {tps:.6} (without initial connection time)")
        }
    }

    fn scripts(&self, out: &mut String, all: &EndCounts) -> fmt::Result {
        let several = self.run.scripts.len() > 1;
        for (index, record) in self.run.scripts.iter().enumerate() {
            if several {
                self.script(out, index, record, all)?;
            }
            if self.per_command {
                self.commands(out, if several { " - " } else { "" }, index, record)?;
            }
        }
        Ok(())
    }

    /// The statistics of one of several scripts.
    fn script(&self, out: &mut String, index: usize, record: &ScriptRecord, all: &EndCounts) -> fmt::Result {
        let mix = &self.job.workload().mix;
        let weighted = &mix.scripts()[index];
        let ends = EndCounts::of([record]);
        let tps = rate(ends.committed, self.run.elapsed);
        writeln!(out, "SQL script {}: {}", index + 1, weighted.script.name)?;
        let target = percent(weighted.weight, mix.total_weight());
        writeln!(out, " - weight: {} (targets {target:.1}% of total)", weighted.weight)?;
        if self.version.reports_scripts_by_ends() {
            let total = ends.total();
            writeln!(out, " - {total} transactions ({:.1}% of total)", percent(total, all.total()))?;
            if total == 0 {
                return Ok(());
            }
            writeln!(
                out,
                " - number of transactions actually processed: {} (tps = {tps:.6})",
                ends.committed
            )?;
        } else {
            let share = percent(ends.committed, all.committed);
            writeln!(out, " - {} transactions ({share:.1}% of total, tps = {tps:.6})", ends.committed)?;
        }
        self.failures(out, " - ", &ends)?;
        if ends.total() == 0 {
            return Ok(());
        }
        self.skipped(out, " - ", &ends)?;
        latency_lines(out, " - ", &record.latency)
    }

    fn commands(&self, out: &mut String, indent: &str, script: usize, record: &ScriptRecord) -> fmt::Result {
        let retries = self.retries();
        let title = if retries { ", failures and retries" } else { " and failures" };
        writeln!(out, "{indent}statement latencies in milliseconds{title}:")?;
        let gap = if self.version.narrow_command_report() { "" } else { " " };
        let commands = &self.job.workload().mix.scripts()[script].script.commands;
        for (command, record) in commands.iter().zip(&record.commands) {
            let mean = record.latency.mean_ms().unwrap_or(0.0);
            write!(out, "   {mean:11.3}  {:10}", record.failures)?;
            if retries {
                write!(out, "{gap} {:10}", record.retries)?;
            }
            writeln!(out, "{gap} {}", shown(command))?;
        }
        Ok(())
    }

    fn is_paced(&self) -> bool {
        matches!(self.job.spec().pacing, Pacing::Rate(_))
    }

    /// True if retries are reported, because they are possible.
    fn retries(&self) -> bool {
        self.job.spec().retry.max_tries != Some(NonZeroU32::MIN)
    }
}

/// Transactions of a run, or of one script, by their end, as pgbench counts them: without those
/// left unfinished by a lost or aborted client or by the end of the run.
#[derive(Debug, Default)]
struct EndCounts {
    committed: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
    skipped: u64,
    retried: u64,
    retries: u64,
    late: u64,
}

impl EndCounts {
    fn of<'r>(scripts: impl IntoIterator<Item = &'r ScriptRecord>) -> EndCounts {
        let mut sum = EndCounts::default();
        for record in scripts {
            let Ledger { transactions, late, .. } = &record.ledger;
            sum.committed += transactions.committed;
            let of_other_kinds = record.deadlock_failures + record.further_failures;
            sum.serialization += transactions.given_up.saturating_sub(of_other_kinds);
            sum.deadlock += record.deadlock_failures;
            sum.other += record.abandoned + record.further_failures;
            sum.skipped += transactions.skipped;
            sum.retried += record.retried_transactions;
            sum.retries += record.retries;
            sum.late += late;
        }
        sum
    }

    fn failed(&self) -> u64 {
        self.serialization + self.deadlock + self.other
    }

    fn total(&self) -> u64 {
        self.committed + self.failed() + self.skipped
    }
}

/// Average and standard deviation as measured; nothing without measurements.
fn latency_lines(out: &mut String, indent: &str, latency: &LatencyHistogram) -> fmt::Result {
    let (Some(mean), Some(deviation)) = (latency.mean_ms(), latency.stddev_ms()) else { return Ok(()) };
    writeln!(out, "{indent}latency average = {mean:.3} ms")?;
    writeln!(out, "{indent}latency stddev = {deviation:.3} ms")
}

/// A share in percent; NaN of nothing, as in pgbench.
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// Transactions per second; 0 if no time passed.
fn rate(transactions: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { transactions as f64 / elapsed.as_secs_f64() }
}
/// The text of a command in the report; that of a statement is cut.
fn shown(command: &Command) -> &str {
    const LONGEST: usize = 127;
    match command.kind {
        CommandKind::Sql(_) => &command.text[..command.text.floor_char_boundary(LONGEST)],
        _ => &command.text,
    }
}
