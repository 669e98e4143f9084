//! The measured part of a run: connected clients do their work while logs are written and progress
//! is shown. The drop-in, `isobench run` and the cells of a comparison all run their clients here.

use isobench_runner::{Control, EventHandler, Fleet, Job, NoThreads, RunOutcome, StopCondition, Watch};

use crate::transaction_log::{LogError, LogSettings, TransactionLogs};

/// A run that has ended.
#[derive(Debug)]
pub struct Loaded {
    /// The outcome of the clients' work.
    pub outcome: RunOutcome,
    /// An error if the logs are incomplete.
    pub logged: Result<(), LogError>,
}

/// A run that didn't start.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A log file can't be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There are no threads for the workers.
    #[error(transparent)]
    NoThreads(#[from] NoThreads),
}

/// Runs the clients to the end, with a log file for each worker if there are settings for it.
///
/// # Errors
/// The run didn't start.
pub fn load(
    fleet: &mut Fleet,
    job: &Job,
    stop: StopCondition,
    control: &Control,
    report: &EventHandler<'_>,
    watch: Watch<'_>,
    log: Option<&LogSettings>,
) -> Result<Loaded, LoadError> {
    let mut logs = TransactionLogs::open(log, job.spec(), fleet)?;
    let outcome = fleet.run(job, stop, control, report, watch, logs.observers())?;
    Ok(Loaded { outcome, logged: logs.finish() })
}
