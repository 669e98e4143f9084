//! Logs of transactions in pgbench's format (`-l`): a file for each worker, with a line for each
//! transaction or for each interval.
//!
//! | file | holds |
//! |---|---|
//! | `log_file` | a file that is written in large pieces, and its first error |
//! | `lines` | the lines |
//! | `intervals` | the sums of `--aggregate-interval` |

mod intervals;
mod lines;
mod log_file;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use isobench_script::Prng;

use crate::control::Control;
use crate::event::EventHandler;
use crate::fleet::{Fleet, NoThreads, RunOutcome, Watch};
use crate::job::Job;
use crate::observer::{EndedTransaction, TransactionObserver};
use crate::spec::{Pacing, RunSpec, StopCondition};
use intervals::Intervals;
use lines::{LogColumns, transaction};
pub use log_file::LogError;
use log_file::LogFile;

/// The settings of the logs.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSettings {
    /// Start of the files' names (`--log-prefix`).
    pub prefix: String,
    /// Share of the transactions that is logged, 0 to 1 (`--sampling-rate`).
    pub sampling_rate: Option<f64>,
    /// Length of the aggregated intervals, in whole seconds (`--aggregate-interval`).
    pub aggregate_interval: Option<Duration>,
    /// Failures by kind (`--failures-detailed`).
    pub failures_detailed: bool,
    /// Failures other than conflicts, in lines of intervals (pgbench: since 19).
    pub other_failures: bool,
}

impl LogSettings {
    /// The default prefix.
    pub const PREFIX: &str = "pgbench_log";
}

/// A run that has ended, and its logs.
#[derive(Debug)]
pub struct LoggedRun {
    /// The outcome of the clients' work.
    pub outcome: RunOutcome,
    /// An error if the logs are incomplete.
    pub logged: Result<(), LogError>,
}

/// A run that didn't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A log file can't be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There are no threads for the workers.
    #[error(transparent)]
    NoThreads(#[from] NoThreads),
}

impl Fleet {
    /// The same as [`Fleet::run`], with a log file for each worker if there are settings for it.
    ///
    /// # Errors
    /// The run didn't start.
    pub fn run_logged(
        &mut self,
        job: &Job,
        stop: StopCondition,
        control: &Control,
        report: &EventHandler<'_>,
        watch: Watch<'_>,
        log: Option<&LogSettings>,
    ) -> Result<LoggedRun, StartError> {
        let mut logs = TransactionLogs::open(log, job.spec(), self)?;
        let outcome = self.run(job, stop, control, report, watch, &mut logs.observers)?;
        Ok(LoggedRun { outcome, logged: logs.finish() })
    }
}

/// The open files of a run.
struct TransactionLogs {
    observers: Vec<Box<dyn TransactionObserver>>,
    failed: Arc<OnceLock<LogError>>,
}

impl TransactionLogs {
    /// Opens a file for each worker of the fleet: `PREFIX.PID`, then `PREFIX.PID.1` and so on.
    /// Without settings there are none.
    ///
    /// # Errors
    /// A file can't be opened.
    fn open(settings: Option<&LogSettings>, spec: &RunSpec, fleet: &Fleet) -> Result<Self, LogError> {
        let streams = fleet.sampling().collect();
        TransactionLogs::open_since(settings, spec, fleet.epoch(), streams)
    }

    fn open_since(
        settings: Option<&LogSettings>,
        spec: &RunSpec,
        epoch: SystemTime,
        streams: Vec<Prng>,
    ) -> Result<Self, LogError> {
        let mut logs = TransactionLogs { observers: Vec::new(), failed: Arc::default() };
        let Some(settings) = settings else { return Ok(logs) };
        let process = std::process::id();
        for (worker, stream) in streams.into_iter().enumerate() {
            let name = match worker {
                0 => format!("{}.{process}", settings.prefix),
                worker => format!("{}.{process}.{worker}", settings.prefix),
            };
            let file = LogFile::create(&name, Arc::clone(&logs.failed))?;
            logs.observers.push(Box::new(TransactionLog::new(settings, spec, epoch, stream, file)));
        }
        Ok(logs)
    }

    /// Writes the remaining lines and closes the files.
    ///
    /// # Errors
    /// The first error of a write; the logs are incomplete then.
    fn finish(self) -> Result<(), LogError> {
        drop(self.observers);
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}

/// The log of one worker.
struct TransactionLog {
    file: LogFile,
    /// Origin of the run's clock, µs since 1970.
    epoch: u64,
    columns: LogColumns,
    /// The share to be logged, and the random stream that samples.
    sampling: Option<(f64, Prng)>,
    intervals: Option<Intervals>,
}

impl TransactionLog {
    fn new(settings: &LogSettings, spec: &RunSpec, epoch: SystemTime, stream: Prng, file: LogFile) -> Self {
        let micros = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
        };
        let columns = LogColumns {
            lag: matches!(spec.pacing, Pacing::Rate(_)),
            retries: spec.retry.allows_another(1),
            failures_detailed: settings.failures_detailed,
            other_failures: settings.other_failures,
        };
        let began = micros(SystemTime::now());
        TransactionLog {
            file,
            epoch: micros(epoch),
            columns,
            sampling: settings.sampling_rate.map(|rate| (rate, stream)),
            intervals: settings.aggregate_interval.map(|every| Intervals::new(every.as_secs(), began)),
        }
    }
}

impl TransactionObserver for TransactionLog {
    fn ended(&mut self, ended: &EndedTransaction) {
        if let Some((rate, stream)) = &mut self.sampling
            && stream.double() > *rate
        {
            return;
        }
        let at = self.epoch.saturating_add(ended.at.0 / 1000);
        match &mut self.intervals {
            Some(intervals) => intervals.take(ended, at, self.columns, &mut self.file),
            None => transaction(self.file.buffer(), ended, at, self.columns),
        }
        self.file.write_if_full();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::TransactionEnd;
    use crate::retry::RetryPolicy;
    use crate::time::Nanos;
    use isobench_script::Streams;

    fn settings(folder: &tempfile::TempDir) -> LogSettings {
        LogSettings {
            prefix: folder.path().join("log").display().to_string(),
            sampling_rate: None,
            aggregate_interval: None,
            failures_detailed: false,
            other_failures: false,
        }
    }

    /// Logs of runs whose clock started a second after 1970.
    fn open(settings: &LogSettings, spec: &RunSpec, streams: Vec<Prng>) -> TransactionLogs {
        let epoch = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        TransactionLogs::open_since(Some(settings), spec, epoch, streams).unwrap()
    }

    fn read(settings: &LogSettings, worker: usize) -> String {
        let suffix = if worker == 0 { String::new() } else { format!(".{worker}") };
        std::fs::read_to_string(format!("{}.{}{suffix}", settings.prefix, std::process::id())).unwrap()
    }

    fn committed(client: usize, number: u64, at: u64) -> EndedTransaction {
        let (end, at) = (TransactionEnd::Committed, Nanos(at));
        EndedTransaction { client, number, script: 0, end, tries: 1, latency: 2_000_000, lag: 0, at }
    }

    #[test]
    fn each_worker_has_a_file_and_one_clock_stamps_them() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder);
        let mut logs = open(&settings, &RunSpec::default(), vec![Prng::seed(0), Prng::seed(0)]);
        for (client, observer) in logs.observers.iter_mut().enumerate() {
            observer.ended(&committed(client, 1, 1_500_000_000));
        }
        assert_eq!(logs.finish(), Ok(()));
        assert_eq!(
            (read(&settings, 0).as_str(), read(&settings, 1).as_str()),
            ("0 1 2000 0 2 500000\n", "1 1 2000 0 2 500000\n")
        );
    }

    /// The transactions of two clients in two threads that pgbench 15 and 18 log with `-t 20
    /// --sampling-rate=0.3`, by seed.
    const SAMPLES: [(u64, [&[u64]; 2]); 3] = [
        (1, [&[1, 2, 7, 8, 13, 18, 19], &[3, 5, 6, 7, 9, 20]]),
        (2, [&[1, 3, 4, 7, 10, 11, 15, 18, 19], &[2, 4, 6, 9, 11, 13, 14, 16, 20]]),
        (3, [&[8, 9, 13, 14, 19], &[3, 7, 8, 10, 12, 15, 16, 17, 19]]),
    ];

    #[test]
    fn the_sample_is_pgbenchs() {
        for (seed, expected) in SAMPLES {
            // As the runner splits them: two clients, the variable default_seed, then three streams
            // for each worker.
            let mut streams = Streams::new(seed);
            let _ = (streams.split(), streams.split(), streams.number());
            let workers = (0..2).map(|_| [streams.split(), streams.split(), streams.split()]);
            let sampling = workers.map(|[_choice, _schedule, sampling]| sampling).collect();
            let folder = tempfile::tempdir().unwrap();
            let settings = LogSettings { sampling_rate: Some(0.3), ..settings(&folder) };
            let mut logs = open(&settings, &RunSpec::default(), sampling);
            for (client, observer) in logs.observers.iter_mut().enumerate() {
                (1..=20).for_each(|number| observer.ended(&committed(client, number, 0)));
            }
            logs.finish().unwrap();
            for (client, expected) in expected.into_iter().enumerate() {
                let numbers: Vec<u64> = read(&settings, client)
                    .lines()
                    .map(|line| line.split(' ').nth(1).unwrap().parse().unwrap())
                    .collect();
                assert_eq!(numbers, expected, "seed {seed}, client {client}");
            }
        }
    }

    #[test]
    fn large_logs_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder);
        let mut logs = open(&settings, &RunSpec::default(), vec![Prng::seed(0)]);
        (1..=20_000).for_each(|number| logs.observers[0].ended(&committed(0, number, 0)));
        logs.finish().unwrap();
        let text = read(&settings, 0);
        assert_eq!(text.lines().count(), 20_000);
        assert!(text.ends_with("0 20000 2000 0 1 0\n"));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_reported_in_pgbenchs_words() {
        let settings =
            LogSettings { prefix: "/nowhere/log".to_owned(), ..settings(&tempfile::tempdir().unwrap()) };
        let opened = TransactionLogs::open_since(
            Some(&settings),
            &RunSpec::default(),
            SystemTime::UNIX_EPOCH,
            vec![Prng::seed(0)],
        );
        let name = format!("/nowhere/log.{}", std::process::id());
        assert_eq!(
            opened.err().map(|error| error.to_string()),
            Some(format!("could not open logfile \"{name}\": No such file or directory"))
        );
    }

    #[test]
    fn a_full_disk_is_reported_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder);
        let name = format!("{}.{}", settings.prefix, std::process::id());
        std::os::unix::fs::symlink("/dev/full", &name).unwrap();
        let mut logs = open(&settings, &RunSpec::default(), vec![Prng::seed(0)]);
        logs.observers[0].ended(&committed(0, 1, 0));
        let reported = logs.finish().map_err(|error| error.to_string());
        assert_eq!(reported, Err(format!("could not write to logfile \"{name}\": No space left on device")));
    }

    #[test]
    fn without_settings_there_is_no_log() {
        let logs = TransactionLogs::open_since(
            None,
            &RunSpec::default(),
            SystemTime::UNIX_EPOCH,
            vec![Prng::seed(0)],
        );
        assert!(logs.unwrap().observers.is_empty());
    }

    fn intervals(settings: LogSettings, spec: &RunSpec, transactions: &[EndedTransaction]) -> String {
        let file = LogFile::create(&settings.prefix, Arc::default()).unwrap();
        let mut log = TransactionLog::new(&settings, spec, SystemTime::UNIX_EPOCH, Prng::seed(0), file);
        log.intervals = Some(Intervals::new(settings.aggregate_interval.unwrap().as_secs(), 1_700_000));
        for ended in transactions {
            log.ended(ended);
        }
        drop(log);
        std::fs::read_to_string(settings.prefix).unwrap()
    }

    #[test]
    fn an_interval_is_written_when_a_transaction_ends_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let settings = LogSettings { aggregate_interval: Some(Duration::from_secs(2)), ..settings(&folder) };
        let seconds = |seconds: f64| Duration::from_secs_f64(seconds).as_nanos().try_into().unwrap();
        let slow = EndedTransaction { latency: 4_000_999, ..committed(0, 2, seconds(2.999)) };
        let transactions = [committed(0, 1, seconds(1.8)), slow, committed(0, 3, seconds(7.0))];
        let expected = "1 2 6000 20000000 2000 4000 0 0 0 0 0 0 0 0 0\n\
            3 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n5 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(intervals(settings, &RunSpec::default(), &transactions), expected);
    }

    #[test]
    fn intervals_count_what_did_not_commit() {
        let spec = RunSpec { pacing: Pacing::Rate(1.0), retry: RetryPolicy::UNLIMITED, ..RunSpec::default() };
        let ends = [
            TransactionEnd::Committed,
            TransactionEnd::Deadlock,
            TransactionEnd::Serialization,
            TransactionEnd::Serialization,
            TransactionEnd::OtherError,
            TransactionEnd::Skipped,
        ];
        let mut transactions: Vec<EndedTransaction> = ends
            .into_iter()
            .map(|end| EndedTransaction {
                end,
                tries: if end == TransactionEnd::Skipped { 0 } else { 3 },
                lag: 5_000,
                ..committed(0, 1, 1_900_000_000)
            })
            .collect();
        transactions.push(committed(0, 7, 2_000_000_000));
        let lines = |failures_detailed: bool, other_failures: bool| {
            let folder = tempfile::tempdir().unwrap();
            let aggregate_interval = Some(Duration::from_secs(1));
            let settings =
                LogSettings { aggregate_interval, failures_detailed, other_failures, ..settings(&folder) };
            intervals(settings, &spec, &transactions)
        };
        let head = "1 1 2000 4000000 2000 2000 5 25 5 5 1 5 10";
        assert_eq!(lines(false, false), format!("{head} 0 0\n"));
        assert_eq!(lines(true, false), format!("{head} 2 1\n"));
        assert_eq!(lines(true, true), format!("{head} 2 1 1\n"));
    }
}
