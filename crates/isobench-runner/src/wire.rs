//! Outcomes on their way between machines: exact, in JSON.
//!
//! Not here: how several become one (`fleet.rs`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use isobench_pgwire::SqlState;
use isobench_stats::{
    Attempts, EncodedHistogram, HistogramError, LatencyHistogram, Ledger, Moments, TimeLedger, Transactions,
};
use serde::{Deserialize, Serialize};

use crate::event_loop::{ChosenLoop, EventLoop};
use crate::fleet::RunOutcome;
use crate::load::WorkerLoad;
use crate::recorder::{
    AssertionRecord, AttemptEnd, BranchRecord, CommandRecord, ConflictCount, EndedAttempt, ScriptRecord,
};
use crate::series::{Bin, Series};

/// Bytes that aren't an outcome.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Not the form.
    #[error("what a machine sent isn't the outcome of its clients: {0}")]
    Form(#[from] serde_json::Error),
    /// Not a distribution.
    #[error("what a machine sent isn't a distribution: {0}")]
    Histogram(#[from] HistogramError),
}

#[derive(Serialize, Deserialize)]
struct Outcome {
    elapsed: u64,
    idle: u64,
    turns: u32,
    scripts: Vec<Script>,
    conflicts: Vec<Conflict>,
    further_errors: Vec<Conflict>,
    aborted: usize,
    aborted_in: Option<usize>,
    interrupted: bool,
    reconnecting: u64,
    series: Option<(u64, Vec<[u64; 4]>)>,
    event_loop: Option<(bool, Option<String>)>,
    load: Vec<Load>,
    lost_sessions: u64,
    away: usize,
    ended: Vec<(u64, u64, u8)>,
}

#[derive(Serialize, Deserialize)]
struct Script {
    attempts: Attempts,
    transactions: Transactions,
    /// Useful, wasted, backoff, waiting; conflicts, further errors, retries, late.
    time: [u64; 4],
    counts: [u64; 4],
    latency: EncodedHistogram,
    /// Retried transactions, retries, deadlock failures, further failures, abandoned.
    failures: [u64; 5],
    lag: Moments,
    commands: Vec<(Moments, u64, u64)>,
    assertions: Vec<(String, u64, u64)>,
    branches: Vec<(usize, [u64; 4])>,
    levels: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
struct Conflict {
    sqlstate: [u8; 5],
    script: usize,
    command: usize,
    reason: String,
    object: Option<String>,
    count: u64,
}

#[derive(Serialize, Deserialize)]
struct Load {
    clients: usize,
    elapsed: u64,
    busy: u64,
    cpu: Option<u64>,
    starved: Option<u64>,
    passes: u64,
    lag: EncodedHistogram,
    timers: EncodedHistogram,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl RunOutcome {
    /// The outcome in bytes, without any loss.
    ///
    /// # Errors
    /// Never for an outcome of a run.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        let outcome = Outcome {
            elapsed: nanos(self.elapsed),
            idle: nanos(self.idle),
            turns: self.turns,
            scripts: self.scripts.iter().map(Script::from).collect(),
            conflicts: self.conflicts.iter().map(Conflict::from).collect(),
            further_errors: self.further_errors.iter().map(Conflict::from).collect(),
            aborted: self.aborted,
            aborted_in: self.aborted_in,
            interrupted: self.interrupted,
            reconnecting: nanos(self.reconnecting),
            series: self.series.as_ref().map(|series| {
                let bin = |bin: &Bin| [bin.committed, bin.conflicts, bin.attempts, bin.latency_ns];
                (nanos(series.bin), series.bins.iter().map(bin).collect())
            }),
            event_loop: self
                .event_loop
                .as_ref()
                .map(|chosen| (chosen.event_loop == EventLoop::IoUring, chosen.reason.clone())),
            load: self.load.iter().map(Load::from).collect(),
            lost_sessions: self.lost_sessions,
            away: self.away,
            ended: self.ended.iter().map(|attempt| (attempt.id, attempt.at, code(attempt.end))).collect(),
        };
        Ok(serde_json::to_vec(&outcome)?)
    }

    /// Reads an outcome from the bytes of [`RunOutcome::to_bytes`].
    ///
    /// # Errors
    /// They are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<RunOutcome, WireError> {
        let outcome: Outcome = serde_json::from_slice(bytes)?;
        let series = outcome.series.map(|(bin, bins)| {
            let of = |[committed, conflicts, attempts, latency_ns]: [u64; 4]| Bin {
                committed,
                conflicts,
                attempts,
                latency_ns,
            };
            Series { bin: Duration::from_nanos(bin), bins: bins.into_iter().map(of).collect() }
        });
        let event_loop = outcome.event_loop.map(|(ring, reason)| ChosenLoop {
            event_loop: if ring { EventLoop::IoUring } else { EventLoop::Epoll },
            reason,
        });
        Ok(RunOutcome {
            elapsed: Duration::from_nanos(outcome.elapsed),
            idle: Duration::from_nanos(outcome.idle),
            turns: outcome.turns,
            scripts: outcome.scripts.iter().map(ScriptRecord::try_from).collect::<Result<_, _>>()?,
            conflicts: outcome.conflicts.into_iter().map(ConflictCount::from).collect(),
            further_errors: outcome.further_errors.into_iter().map(ConflictCount::from).collect(),
            aborted: outcome.aborted,
            aborted_in: outcome.aborted_in,
            interrupted: outcome.interrupted,
            reconnecting: Duration::from_nanos(outcome.reconnecting),
            series,
            event_loop,
            load: outcome.load.iter().map(WorkerLoad::try_from).collect::<Result<_, _>>()?,
            lost_sessions: outcome.lost_sessions,
            away: outcome.away,
            ended: outcome
                .ended
                .into_iter()
                .map(|(id, at, end)| EndedAttempt { id, at, end: of_code(end) })
                .collect(),
        })
    }
}

fn code(end: AttemptEnd) -> u8 {
    match end {
        AttemptEnd::Acknowledged => 0,
        AttemptEnd::Unknown => 1,
        AttemptEnd::Failed => 2,
    }
}

/// A code that isn't known says that nothing is known.
fn of_code(code: u8) -> AttemptEnd {
    match code {
        0 => AttemptEnd::Acknowledged,
        2 => AttemptEnd::Failed,
        _ => AttemptEnd::Unknown,
    }
}

impl From<&ScriptRecord> for Script {
    fn from(record: &ScriptRecord) -> Script {
        let Ledger { attempts, transactions, time, conflicts, further_errors, retries, late } = record.ledger;
        let command = |command: &CommandRecord| (command.latency, command.failures, command.retries);
        let assertion = |one: &AssertionRecord| (one.name.clone(), one.checked, one.broken);
        let branch =
            |one: &BranchRecord| (one.command, [one.evaluated, one.held, one.since_held, one.since_failed]);
        Script {
            attempts,
            transactions,
            time: [time.useful, time.wasted, time.backoff, time.waiting],
            counts: [conflicts, further_errors, retries, late],
            latency: EncodedHistogram::from(&record.latency),
            failures: [
                record.retried_transactions,
                record.retries,
                record.deadlock_failures,
                record.further_failures,
                record.abandoned,
            ],
            lag: record.lag,
            commands: record.commands.iter().map(command).collect(),
            assertions: record.assertions.iter().map(assertion).collect(),
            branches: record.branches.iter().map(branch).collect(),
            levels: record.levels.clone(),
        }
    }
}

impl TryFrom<&Script> for ScriptRecord {
    type Error = HistogramError;

    fn try_from(script: &Script) -> Result<ScriptRecord, HistogramError> {
        let [useful, wasted, backoff, waiting] = script.time;
        let [conflicts, further_errors, retries, late] = script.counts;
        let [retried_transactions, client_retries, deadlock_failures, further_failures, abandoned] =
            script.failures;
        let command = |(latency, failures, retries): &(Moments, u64, u64)| CommandRecord {
            latency: *latency,
            failures: *failures,
            retries: *retries,
        };
        let assertion = |(name, checked, broken): &(String, u64, u64)| AssertionRecord {
            name: name.clone(),
            checked: *checked,
            broken: *broken,
        };
        let branch = |(command, counts): &(usize, [u64; 4])| {
            let [evaluated, held, since_held, since_failed] = *counts;
            BranchRecord { command: *command, evaluated, held, since_held, since_failed }
        };
        Ok(ScriptRecord {
            ledger: Ledger {
                attempts: script.attempts,
                transactions: script.transactions,
                time: TimeLedger { useful, wasted, backoff, waiting },
                conflicts,
                further_errors,
                retries,
                late,
            },
            latency: LatencyHistogram::try_from(&script.latency)?,
            retried_transactions,
            retries: client_retries,
            deadlock_failures,
            further_failures,
            abandoned,
            lag: script.lag,
            commands: script.commands.iter().map(command).collect(),
            assertions: script.assertions.iter().map(assertion).collect(),
            branches: script.branches.iter().map(branch).collect(),
            levels: script.levels.clone(),
        })
    }
}

impl From<&ConflictCount> for Conflict {
    fn from(conflict: &ConflictCount) -> Conflict {
        Conflict {
            sqlstate: conflict.sqlstate.0,
            script: conflict.script,
            command: conflict.command,
            reason: conflict.reason.clone().into_owned(),
            object: conflict.object.clone().map(Cow::into_owned),
            count: conflict.count,
        }
    }
}

impl From<Conflict> for ConflictCount {
    fn from(conflict: Conflict) -> ConflictCount {
        ConflictCount {
            sqlstate: SqlState(conflict.sqlstate),
            script: conflict.script,
            command: conflict.command,
            reason: Cow::Owned(conflict.reason),
            object: conflict.object.map(Cow::Owned),
            count: conflict.count,
        }
    }
}

impl From<&WorkerLoad> for Load {
    fn from(load: &WorkerLoad) -> Load {
        Load {
            clients: load.clients,
            elapsed: nanos(load.elapsed),
            busy: nanos(load.busy),
            cpu: load.cpu.map(nanos),
            starved: load.starved.map(nanos),
            passes: load.passes,
            lag: EncodedHistogram::from(&load.lag),
            timers: EncodedHistogram::from(&load.timers),
        }
    }
}

impl TryFrom<&Load> for WorkerLoad {
    type Error = HistogramError;

    fn try_from(load: &Load) -> Result<WorkerLoad, HistogramError> {
        Ok(WorkerLoad {
            clients: load.clients,
            elapsed: Duration::from_nanos(load.elapsed),
            busy: Duration::from_nanos(load.busy),
            cpu: load.cpu.map(Duration::from_nanos),
            starved: load.starved.map(Duration::from_nanos),
            passes: load.passes,
            lag: LatencyHistogram::try_from(&load.lag)?,
            timers: LatencyHistogram::try_from(&load.timers)?,
        })
    }
}
