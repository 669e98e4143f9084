//! The settings of a run: its options combined, and checked before anything is started.

use std::num::NonZeroU32;
use std::time::Duration;

use isobench_comparison::{
    Condition, Failure, Outcome, Source, Sources, event_loop, first_attempt, milliseconds, pacing, protocol,
    seconds,
};
use isobench_isolation::Level;
use isobench_limits::LIMITS;
use isobench_pgbench::Version;
use isobench_pgbench::options::{parse_definition, parse_seed};
use isobench_runner::{Backoff, Detail, LogSettings, OnError, RetryPolicy, RunSpec, StopCondition};

use crate::options::RunOptions;

/// The settings of a run.
pub(super) struct RunSettings {
    pub(super) sources: Sources,
    pub(super) spec: RunSpec,
    pub(super) stop: StopCondition,
    pub(super) level: Option<Level>,
    pub(super) defined: Vec<(String, String)>,
    /// The version of pgbench whose layout the summary has.
    pub(super) layout: Version,
    pub(super) log: Option<LogSettings>,
    /// The user's own conditions.
    pub(super) conditions: Vec<Condition>,
}

impl RunSettings {
    /// # Errors
    /// Something is out of range or missing, or two things exclude each other.
    pub(super) fn resolve(options: &RunOptions) -> Outcome<RunSettings> {
        let sources = sources(options)?;
        let stop = match (options.transactions, options.time) {
            (None, None) => StopCondition::Transactions(10),
            (Some(0), _) => return Err(Failure::setup("--transactions: must be at least 1")),
            (Some(count), _) => StopCondition::Transactions(count),
            (None, Some(time)) => StopCondition::Time(seconds("time", time, 0.001)?),
        };
        for (name, value) in [("client", options.client), ("jobs", options.jobs)] {
            if value == 0 {
                return Err(Failure::setup(format!("--{name}: must be at least 1")));
            }
        }
        let max_tries = NonZeroU32::new(options.max_tries);
        let endless = max_tries.is_none() && options.latency_limit.is_none();
        if endless && matches!(stop, StopCondition::Transactions(_)) {
            return Err(Failure::setup(
                "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
            ));
        }
        let latency_limit = options.latency_limit.map(|limit| milliseconds("latency-limit", limit));
        let spec = RunSpec {
            clients: options.client,
            workers: options.jobs.min(options.client),
            pacing: pacing(options.rate, options.think_time)?,
            latency_limit: latency_limit.transpose()?,
            retry: RetryPolicy {
                max_tries,
                backoff: options.backoff.parse::<Backoff>().map_err(Failure::setup)?,
                ..RetryPolicy::NEVER
            },
            protocol: protocol(&options.protocol)?,
            on_error: match (options.continue_on_error, options.exit_on_abort) {
                (true, _) => OnError::Continue,
                (false, true) => OnError::EndRun,
                (false, false) => OnError::Abort,
            },
            connect_each: options.connect,
            event_loop: event_loop(options.event_loop),
            detail: Detail { errors: options.verbose_errors, steps: options.debug, variables: false },
            seed: seed(&options.random_seed)?,
            attempts_from: first_attempt(),
            per_command: options.report_per_command,
            grace: LIMITS.grace,
            ..RunSpec::default()
        };
        sources.check(spec.protocol)?;
        let level = options.isolation.as_deref().map(level).transpose()?;
        if level.is_some() {
            sources.leave_level_alone()?;
        }
        let defined = options.define.iter().map(|define| definition(define)).collect::<Outcome<_>>()?;
        // The newest layout that can show all effects of the options.
        let others = options.continue_on_error || !options.retry_sqlstate.is_empty();
        let layout = if others { Version::V19 } else { Version::default() };
        let log = log(options, layout, stop)?;
        let conditions = Condition::list(&options.invariant)?;
        Ok(RunSettings { sources, spec, stop, level, defined, layout, log, conditions })
    }
}

fn level(text: &str) -> Outcome<Level> {
    text.parse().map_err(|error| {
        let one = if text.contains(',') { "run measures one level, compare several; " } else { "" };
        Failure::setup(format!("--isolation: {one}{error}"))
    })
}

/// Returns the settings of the transaction log, if one is requested.
fn log(options: &RunOptions, version: Version, stop: StopCondition) -> Outcome<Option<LogSettings>> {
    if !options.log {
        return Ok(None);
    }
    if let Some(rate) = options.sampling_rate
        && !(rate > 0.0 && rate <= 1.0)
    {
        return Err(Failure::setup(format!("--sampling-rate: {rate} isn't a number above 0 and up to 1")));
    }
    let interval = options.aggregate_interval.map(|seconds| Duration::from_secs(seconds.into()));
    if let (Some(interval), StopCondition::Time(time)) = (interval, stop)
        && interval > time
    {
        return Err(Failure::setup("--aggregate-interval: must not be longer than the duration (-T)"));
    }
    Ok(Some(LogSettings {
        prefix: options.log_prefix.clone(),
        sampling_rate: options.sampling_rate,
        aggregate_interval: interval,
        failures_detailed: options.failures_detailed,
        other_failures: version.continue_on_error(),
    }))
}

/// Returns the requested checked workload, or the scripts as in pgbench, by default TPC-B-like.
fn sources(options: &RunOptions) -> Outcome<Sources> {
    if let Some(name) = &options.workload {
        return Sources::named(name);
    }
    let mut sources = Vec::new();
    for name in &options.builtin {
        sources.push(Source::builtin(name)?);
    }
    for name in &options.file {
        sources.push(Source::file(name)?);
    }
    if options.skip_some_updates {
        sources.push(Source::builtin("simple-update")?);
    }
    if options.select_only {
        sources.push(Source::builtin("select-only")?);
    }
    if sources.is_empty() {
        sources.push(Source::builtin("tpcb-like")?);
    }
    Sources::new(sources)
}

fn definition(text: &str) -> Outcome<(String, String)> {
    let (name, value) = parse_definition(text).map_err(Failure::setup)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn seed(text: &str) -> Outcome<u64> {
    parse_seed(text).map_err(|error| match error.detail() {
        Some(detail) => Failure::setup(format!("{error}: {detail}")),
        None => Failure::setup(error),
    })
}
