//! The files of `-l`: one for each worker, with a line for each transaction or for each interval of time.
//!
//! | file | holds |
//! |---|---|
//! | `sink` | a file that is written in large pieces, and the first error that it met |
//! | `lines` | the lines |
//! | `intervals` | the sums of `--aggregate-interval` |

mod intervals;
mod lines;
mod sink;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use isobench_runner::{Ended, Fleet, Observer, Pacing, RunSpec};
use isobench_script::Prng;

use crate::console::Message;
use crate::version::Version;
use intervals::Intervals;
use lines::{Columns, transaction};
use sink::Sink;

/// What is logged, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSettings {
    /// Whose columns they have.
    pub version: Version,
    /// The beginning of the files' names (`--log-prefix`).
    pub prefix: String,
    /// The share of transactions that is logged, 0 to 1 (`--sampling-rate`).
    pub sampling_rate: Option<f64>,
    /// A line for each interval of so long, in whole seconds (`--aggregate-interval`).
    pub aggregate_interval: Option<Duration>,
    /// Failures by kind (`--failures-detailed`).
    pub failures_detailed: bool,
}

/// The open files of a run.
pub struct TransactionLogs {
    observers: Vec<Box<dyn Observer>>,
    failed: Arc<OnceLock<Message>>,
}

impl TransactionLogs {
    /// What the default prefix is.
    pub const PREFIX: &str = "pgbench_log";

    /// Opens a file for each worker of the fleet: `PREFIX.PID`, then `PREFIX.PID.1` and so on. Without settings there are none.
    ///
    /// # Errors
    /// A file can't be opened.
    pub fn open(settings: Option<&LogSettings>, spec: &RunSpec, fleet: &Fleet) -> Result<Self, Message> {
        let streams = fleet.sampling().collect();
        TransactionLogs::open_since(settings, spec, fleet.epoch(), streams)
    }

    fn open_since(
        settings: Option<&LogSettings>,
        spec: &RunSpec,
        epoch: SystemTime,
        streams: Vec<Prng>,
    ) -> Result<Self, Message> {
        let mut logs = TransactionLogs { observers: Vec::new(), failed: Arc::default() };
        let Some(settings) = settings else { return Ok(logs) };
        let process = std::process::id();
        for (worker, stream) in streams.into_iter().enumerate() {
            let name = match worker {
                0 => format!("{}.{process}", settings.prefix),
                worker => format!("{}.{process}.{worker}", settings.prefix),
            };
            let sink = Sink::create(&name, Arc::clone(&logs.failed))?;
            logs.observers.push(Box::new(TransactionLog::new(settings, spec, epoch, stream, sink)));
        }
        Ok(logs)
    }

    /// One for each worker.
    pub fn observers(&mut self) -> &mut [Box<dyn Observer>] {
        &mut self.observers
    }

    /// Writes what is left and closes the files.
    ///
    /// # Errors
    /// The first thing that couldn't be written; the logs then are incomplete.
    pub fn finish(self) -> Result<(), Message> {
        drop(self.observers);
        self.failed.get().map_or(Ok(()), |message| Err(message.clone()))
    }
}

/// The log of one worker.
struct TransactionLog {
    sink: Sink,
    /// µs since 1970 of the instant zero of the run's clock.
    epoch: u64,
    columns: Columns,
    /// The share to be logged, and what decides on each transaction.
    sampling: Option<(f64, Prng)>,
    intervals: Option<Intervals>,
}

impl TransactionLog {
    fn new(settings: &LogSettings, spec: &RunSpec, epoch: SystemTime, stream: Prng, sink: Sink) -> Self {
        let micros = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
        };
        let columns = Columns {
            lag: matches!(spec.pacing, Pacing::Rate(_)),
            retries: spec.retry.allows_another(1),
            failures_detailed: settings.failures_detailed,
            other_failures: settings.version.continue_on_error(),
        };
        let began = micros(SystemTime::now());
        TransactionLog {
            sink,
            epoch: micros(epoch),
            columns,
            sampling: settings.sampling_rate.map(|rate| (rate, stream)),
            intervals: settings.aggregate_interval.map(|every| Intervals::new(every.as_secs(), began)),
        }
    }
}

impl Observer for TransactionLog {
    fn ended(&mut self, ended: &Ended) {
        if let Some((rate, stream)) = &mut self.sampling
            && stream.double() > *rate
        {
            return;
        }
        let at = self.epoch.saturating_add(ended.at.0 / 1000);
        match &mut self.intervals {
            Some(intervals) => intervals.take(ended, at, self.columns, &mut self.sink),
            None => transaction(self.sink.buffer(), ended, at, self.columns),
        }
        self.sink.write_if_full();
    }
}
