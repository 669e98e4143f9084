//! The counters of one worker: ledgers, latencies and conflicts. No locks; the workers' recorders
//! are merged at the end.
//!
//! Not here: which bucket an attempt ends in (`client/ending.rs`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use isobench_pgwire::SqlState;
use isobench_stats::{LatencyCounts, LatencyHistogram, Ledger, Moments};

use crate::progress::RunProgress;
use crate::series::SeriesCounter;
use crate::time::Nanos;

/// The counts of one script.
#[derive(Debug, Clone, Default)]
pub struct ScriptRecord {
    /// Attempts, transactions and time.
    pub ledger: Ledger,
    /// Latency of the committed transactions, from the scheduled start (unpaced: the start of the
    /// first attempt) to the last reply, including all attempts and backoff.
    pub latency: LatencyHistogram,
    /// Transactions that took more than one attempt and were committed, swallowed, rolled back,
    /// given up or abandoned (pgbench: "transactions retried").
    pub retried_transactions: u64,
    /// Their attempts after the first (pgbench: "total number of retries"). Unlike
    /// [`Ledger::retries`] this excludes transactions that were cut off, and retries inside the
    /// server.
    pub retries: u64,
    /// Transactions given up after a deadlock (pgbench: "deadlock failures"). The others given up
    /// met a serialization failure.
    pub deadlock_failures: u64,
    /// Transactions given up after an error that is retried although it is no conflict.
    pub further_failures: u64,
    /// Transactions abandoned after an error other than a conflict, whose clients continued
    /// (pgbench: "other failures"). The others that errored ended their clients.
    pub abandoned: u64,
    /// Delay of transactions behind their scheduled start; empty in an unpaced run (pgbench:
    /// schedule lag).
    pub lag: Moments,
    /// One record for each command of the script; empty unless asked for.
    pub commands: Vec<CommandRecord>,
    /// One record for each assertion of the script (lines `--@ holds`); empty unless the run is
    /// recorded.
    pub assertions: Vec<AssertionRecord>,
    /// One record for each `\if` and `\elif` of the script.
    pub branches: Vec<BranchRecord>,
    /// The isolation levels that its transactions reported just before their COMMIT, with the number
    /// of answers; empty unless the job asks ([`crate::Job::asking_level`]).
    pub levels: BTreeMap<String, u64>,
}

/// The outcomes of a condition of a script, in all attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BranchRecord {
    /// The command, `\if` or `\elif`, from 0.
    pub command: usize,
    /// Number of times it was evaluated.
    pub evaluated: u64,
    /// Those in which it was true.
    pub held: u64,
    /// Those since it was last true, of each worker, added up.
    pub since_held: u64,
    /// Those since it was last false, likewise.
    pub since_failed: u64,
}

impl BranchRecord {
    /// Counts an outcome.
    pub(crate) fn count(&mut self, held: bool) {
        self.evaluated += 1;
        self.held += u64::from(held);
        (self.since_held, self.since_failed) =
            if held { (0, self.since_failed + 1) } else { (self.since_held + 1, 0) };
    }

    /// Adds what another worker has counted in the same time.
    fn merge(&mut self, other: &BranchRecord) {
        self.evaluated += other.evaluated;
        self.held += other.held;
        self.since_held += other.since_held;
        self.since_failed += other.since_failed;
    }

    /// Forgets what came before a later outcome.
    pub(crate) fn precede(&mut self, later: &BranchRecord) {
        if later.held > 0 {
            self.since_held = 0;
        }
        if later.held < later.evaluated {
            self.since_failed = 0;
        }
    }
}

/// The results of an assertion of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssertionRecord {
    /// Its name in the script.
    pub name: String,
    /// Committed transactions in which it was evaluated.
    pub checked: u64,
    /// Those of them in which it was false at least once.
    pub broken: u64,
}

impl AssertionRecord {
    pub(crate) fn new(name: &str) -> AssertionRecord {
        AssertionRecord { name: name.to_owned(), checked: 0, broken: 0 }
    }
}

/// The counts of one command (pgbench: `-r`).
#[derive(Debug, Clone, Default)]
pub struct CommandRecord {
    /// Time from sending the command (meta-commands: from its start) to the end of its reply,
    /// without failed executions.
    pub latency: Moments,
    /// Executions whose error ended the transaction.
    pub failures: u64,
    /// Executions whose error was followed by a retry.
    pub retries: u64,
}

/// The most objects that are counted separately for one code and reason. Later ones are counted as
/// [`OTHERS`], so that a workload with many hot rows doesn't make the table, and the search in it,
/// grow without bound.
const MOST_OBJECTS: usize = 50;

/// The object of conflicts that aren't counted separately.
const OTHERS: &str = "others";

/// The number of attempts that ended in one kind of conflict at one command, or that the server
/// retried inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictCount {
    /// The server's error code.
    pub sqlstate: SqlState,
    /// Index of the script.
    pub script: usize,
    /// Index of the command in the script.
    pub command: usize,
    /// The reason, in the terms of the server's product.
    pub reason: Cow<'static, str>,
    /// The table or row that the conflict was about, if the server reports it; `others` beyond the
    /// first 50 of a code and reason.
    pub object: Option<Cow<'static, str>>,
    /// Number of attempts.
    pub count: u64,
}

/// An attempt that has ended, if the run keeps them ([`crate::RunSpec::keeps_attempts`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedAttempt {
    /// Its number, the value of the variable `attempt_id`.
    pub id: u64,
    /// Nanoseconds from the start of the run to its end.
    pub at: u64,
    /// What the client knows of its outcome.
    pub end: AttemptEnd,
}

/// What a client knows of the outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Its commit was acknowledged.
    Acknowledged,
    /// Its commit may have been executed, but no answer came.
    Unknown,
    /// It wasn't committed: the server said so, or no commit was sent.
    Failed,
}

/// The counts of one worker in a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder {
    pub(crate) scripts: Vec<ScriptRecord>,
    pub(crate) conflicts: Vec<ConflictCount>,
    /// The errors that are retried although they are no conflicts.
    pub(crate) further_errors: Vec<ConflictCount>,
    /// Counts over time, if asked for.
    pub(crate) series: Option<SeriesCounter>,
    /// Sessions that were lost and replaced ([`crate::OnLost::Reconnect`]).
    pub(crate) lost_sessions: u64,
    /// The attempts, with the clock's instants of their ends; empty unless they are kept.
    pub(crate) ended: Vec<EndedAttempt>,
}

impl ScriptRecord {
    /// Counts the attempts of a transaction that has ended.
    #[inline]
    pub(crate) fn count_tries(&mut self, tries: u32) {
        self.retried_transactions += u64::from(tries > 1);
        self.retries += u64::from(tries.saturating_sub(1));
    }

    fn merge(&mut self, other: &ScriptRecord) {
        self.ledger.merge(&other.ledger);
        self.latency.merge(&other.latency);
        self.retried_transactions += other.retried_transactions;
        self.retries += other.retries;
        self.deadlock_failures += other.deadlock_failures;
        self.further_failures += other.further_failures;
        self.abandoned += other.abandoned;
        self.lag.merge(&other.lag);
        for (mine, theirs) in self.commands.iter_mut().zip(&other.commands) {
            mine.latency.merge(&theirs.latency);
            mine.failures += theirs.failures;
            mine.retries += theirs.retries;
        }
        for (mine, theirs) in self.assertions.iter_mut().zip(&other.assertions) {
            mine.checked += theirs.checked;
            mine.broken += theirs.broken;
        }
        for (level, count) in &other.levels {
            *self.levels.entry(level.clone()).or_default() += count;
        }
        for (mine, theirs) in self.branches.iter_mut().zip(&other.branches) {
            mine.merge(theirs);
        }
    }
}

impl Recorder {
    /// An empty recorder for scripts with these numbers of commands; `per_command` turns on the
    /// commands' records.
    pub(crate) fn new(commands: impl Iterator<Item = usize>, per_command: bool) -> Recorder {
        let scripts = commands
            .map(|count| ScriptRecord {
                commands: vec![CommandRecord::default(); if per_command { count } else { 0 }],
                ..ScriptRecord::default()
            })
            .collect();
        Recorder { scripts, ..Recorder::default() }
    }

    /// Counts attempts that ended in a conflict.
    pub(crate) fn conflict(&mut self, now: Nanos, conflict: ConflictCount) {
        self.scripts[conflict.script].ledger.conflicts += conflict.count;
        if let Some(series) = &mut self.series {
            series.at(now).conflicts += conflict.count;
        }
        self.add_conflict(conflict);
    }

    /// Counts attempts that ended in an error that is retried although it is no conflict.
    pub(crate) fn further_error(&mut self, error: ConflictCount) {
        self.scripts[error.script].ledger.further_errors += error.count;
        self.add_further_error(error);
    }

    fn add_further_error(&mut self, new: ConflictCount) {
        match position(&self.further_errors, &new) {
            Some(old) => self.further_errors[old].count += new.count,
            None => self.further_errors.push(new),
        }
    }

    fn add_conflict(&mut self, mut new: ConflictCount) {
        let known = position(&self.conflicts, &new).is_some();
        if new.object.is_some() && !known && self.objects(&new) >= MOST_OBJECTS {
            new.object = Some(Cow::Borrowed(OTHERS));
        }
        match position(&self.conflicts, &new) {
            Some(old) => self.conflicts[old].count += new.count,
            None => self.conflicts.push(new),
        }
    }

    /// The number of entries of the same code and reason that have an object.
    fn objects(&self, new: &ConflictCount) -> usize {
        let same = |old: &&ConflictCount| (old.sqlstate, &old.reason) == (new.sqlstate, &new.reason);
        self.conflicts.iter().filter(same).filter(|old| old.object.is_some()).count()
    }

    pub(crate) fn merge(&mut self, other: &Recorder) {
        for (mine, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            mine.merge(theirs);
        }
        for conflict in &other.conflicts {
            self.add_conflict(conflict.clone());
        }
        for error in &other.further_errors {
            self.add_further_error(error.clone());
        }
        self.lost_sessions += other.lost_sessions;
        self.ended.extend_from_slice(&other.ended);
        match (&mut self.series, &other.series) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, theirs) => mine.clone_from(theirs),
            (Some(_), None) => {}
        }
    }

    /// The figures shown while the run goes on.
    pub(crate) fn progress(&self) -> RunProgress {
        progress(&self.scripts, &self.conflicts)
    }

    /// The latencies shown while the run goes on.
    pub(crate) fn latencies(&self) -> LatencyCounts {
        latencies(&self.scripts)
    }
}

/// The progress that these counts come to, without latencies.
pub(crate) fn progress(scripts: &[ScriptRecord], conflicts: &[ConflictCount]) -> RunProgress {
    let mut sum = RunProgress::default();
    for script in scripts {
        sum.ledger.merge(&script.ledger);
        sum.abandoned += script.abandoned;
        sum.retried += script.retried_transactions;
        sum.retries += script.retries;
        // Sums can be subtracted, so a display can show an interval of its own; means can't.
        let count = script.latency.len() as f64;
        let (mean, stddev) =
            (script.latency.mean_ms().unwrap_or(0.0), script.latency.stddev_ms().unwrap_or(0.0));
        sum.latency_sum_ms += mean * count;
        sum.latency_squares_ms += (stddev * stddev + mean * mean) * count;
        sum.lag_sum_ms += script.lag.mean_ms().unwrap_or(0.0) * script.lag.count() as f64;
    }
    for conflict in conflicts {
        if conflict.sqlstate == SqlState::DEADLOCK_DETECTED {
            sum.deadlocks += conflict.count;
        } else {
            sum.serialization_failures += conflict.count;
        }
    }
    sum
}

/// The latencies of all scripts.
pub(crate) fn latencies(scripts: &[ScriptRecord]) -> LatencyCounts {
    let mut sum = LatencyCounts::default();
    for script in scripts {
        sum.merge(&LatencyCounts::of(&script.latency));
    }
    sum
}

/// The index at which conflicts or errors of this kind are counted.
fn position(counts: &[ConflictCount], new: &ConflictCount) -> Option<usize> {
    counts.iter().position(|old| {
        (old.sqlstate, old.script, old.command) == (new.sqlstate, new.script, new.command)
            && (&old.reason, &old.object) == (&new.reason, &new.object)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_conflicts_are_counted_together() {
        let mut recorder = Recorder::new([3].into_iter(), false);
        let mut other = recorder.clone();
        recorder.conflict(Nanos(1), conflict(1, None));
        other.conflict(Nanos(1), conflict(1, None));
        other.conflict(Nanos(1), conflict(2, None));
        other.conflict(Nanos(1), conflict(1, Some("a")));
        other
            .conflict(Nanos(1), ConflictCount { sqlstate: SqlState::DEADLOCK_DETECTED, ..conflict(1, None) });
        recorder.merge(&other);
        let counts: Vec<u64> = recorder.conflicts.iter().map(|conflict| conflict.count).collect();
        assert_eq!(counts, [2, 1, 1, 1]);
        let progress = recorder.progress();
        assert_eq!((progress.serialization_failures, progress.deadlocks), (4, 1));
    }

    #[test]
    fn few_objects_are_counted_separately() {
        let mut recorder = Recorder::new([3].into_iter(), false);
        let mut other = recorder.clone();
        for row in 0..60 {
            let name = format!("row {row}");
            recorder.conflict(Nanos(1), conflict(row % 3, Some(&name)));
            recorder.conflict(Nanos(1), conflict(row % 3, Some(&name)));
            other.conflict(Nanos(1), conflict(row % 3, Some(&format!("row {}", row + 30))));
        }
        recorder.conflict(Nanos(1), conflict(0, None));
        recorder
            .conflict(Nanos(1), ConflictCount { reason: "another".into(), ..conflict(0, Some("row 99")) });
        recorder.merge(&other);
        let count = |object: Option<&str>| {
            let same = recorder.conflicts.iter().filter(|conflict| conflict.object.as_deref() == object);
            same.map(|conflict| conflict.count).sum::<u64>()
        };
        assert_eq!((count(Some("row 0")), count(Some("row 30")), count(Some("row 49"))), (2, 3, 3));
        assert_eq!((count(Some("row 50")), count(Some("row 99")), count(None)), (0, 1, 1));
        assert_eq!(count(Some(OTHERS)), 20 + 40);
        assert_eq!(recorder.conflicts.len(), 50 + 3 + 2);
        assert_eq!(recorder.conflicts.iter().map(|conflict| conflict.count).sum::<u64>(), 182);
    }

    fn conflict(command: usize, object: Option<&str>) -> ConflictCount {
        ConflictCount {
            sqlstate: SqlState::SERIALIZATION_FAILURE,
            script: 0,
            command,
            reason: Cow::Borrowed("concurrent update"),
            object: object.map(|name| Cow::Owned(name.to_owned())),
            count: 1,
        }
    }
}
