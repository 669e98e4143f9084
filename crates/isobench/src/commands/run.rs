//! `isobench run`: one benchmark run, with pgbench's options and summary, and the account of every attempt.

use std::fmt::Write as _;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::time::Duration;

use isobench_database::Writes;
use isobench_isolation::{EffectiveLevel, Level};
use isobench_report::{CellLevel, Document, Plan as PlanDocument, Round, Server, summarise};
use isobench_runner::{
    Backoff, Control, Event, OnError, Outcome as Run, Progress, Protocol, RetryPolicy, RunSpec, Stop, Watch,
};
use isobench_script::builtins;

use crate::cell::{Books, cpu_seconds, round};
use crate::environment::{client, now};
use crate::failure::{Failure, Outcome};
use crate::messages::Messages;
use crate::options::RunOptions;
use crate::output;
use crate::plan::{GRACE, cell_entry, count, milliseconds, pacing, pacing_figures, protocol, seconds};
use crate::sessions;
use crate::summary::Summary;
use crate::target::Target;
use crate::workload::{Source, Sources};

/// Carries out the run and prints its summary.
///
/// # Errors
/// Wrong options, no server, no tables, aborted clients, a broken invariant. What was measured is printed before.
pub fn run(options: &RunOptions) -> Outcome {
    if options.builtin.iter().any(|name| name == "list") {
        list_builtins();
        return Ok(());
    }
    let settings = Settings::resolve(options)?;
    let (target, control) =
        Target::find(&options.connection, options.database.as_deref(), &options.embedded, options.client)?;
    let outcome = measure(options, &settings, &target, &control);
    let closed = target.close(false);
    outcome?;
    closed
}

/// What the options say together, checked before anything is started.
struct Settings {
    sources: Sources,
    spec: RunSpec,
    stop: Stop,
    level: Option<Level>,
    defined: Vec<(String, String)>,
}

impl Settings {
    fn resolve(options: &RunOptions) -> Outcome<Settings> {
        let sources = Sources::new(sources(options)?)?;
        let stop = match (options.transactions, options.time) {
            (None, None) => Stop::Transactions(10),
            (Some(0), _) => return Err(Failure::setup("--transactions: must be at least 1")),
            (Some(count), _) => Stop::Transactions(count),
            (None, Some(time)) => Stop::Time(seconds("time", time, 0.001)?),
        };
        for (name, value) in [("client", options.client), ("jobs", options.jobs)] {
            if value == 0 {
                return Err(Failure::setup(format!("--{name}: must be at least 1")));
            }
        }
        let max_tries = NonZeroU32::new(options.max_tries);
        let endless = max_tries.is_none() && options.latency_limit.is_none();
        if endless && matches!(stop, Stop::Transactions(_)) {
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
            },
            protocol: protocol(&options.protocol)?,
            on_error: if options.continue_on_error { OnError::Continue } else { OnError::Abort },
            seed: seed(&options.random_seed)?,
            per_command: options.report_per_command,
            grace: GRACE,
            ..RunSpec::default()
        };
        sources.check(spec.protocol)?;
        let level = options.isolation.as_deref().map(str::parse::<Level>).transpose();
        let level = level.map_err(|error| Failure::setup(format!("--isolation: {error}")))?;
        let defined = options.define.iter().map(|define| definition(define)).collect::<Outcome<_>>()?;
        Ok(Settings { sources, spec, stop, level, defined })
    }
}

/// The scripts asked for, in pgbench's way: TPC-B-like if there are none.
fn sources(options: &RunOptions) -> Outcome<Vec<Source>> {
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
    Ok(sources)
}

fn list_builtins() {
    eprintln!("Available builtin scripts:");
    for builtin in builtins() {
        eprintln!("  {:>13}: {}", builtin.name, builtin.description);
    }
}

fn definition(text: &str) -> Outcome<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(Failure::setup(format!("invalid variable definition: \"{text}\""))),
    }
}

/// The seed: an integer, or one made of the time or the system's randomness.
fn seed(text: &str) -> Outcome<u64> {
    match text {
        "time" => {
            let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
            Ok(u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
        }
        "rand" => {
            let mut bytes = [0; 8];
            std::fs::File::open("/dev/urandom")
                .and_then(|mut file| file.read_exact(&mut bytes))
                .map_err(|error| Failure::setup(format!("could not generate random seed: {error}")))?;
            Ok(u64::from_ne_bytes(bytes))
        }
        number => number.parse::<u64>().map_err(|_| {
            Failure::setup(format!(
                "unrecognized random seed option \"{number}\": expecting an unsigned integer, \"time\" or \"rand\""
            ))
        }),
    }
}

fn measure(options: &RunOptions, settings: &Settings, target: &Target, control: &Control) -> Outcome {
    for warning in settings.sources.warnings()? {
        eprintln!("isobench: warning: {warning}");
    }
    let scale = prepare_tables(options, settings, target)?;
    // Asked now: afterwards the server may be lost.
    let server = options.json.as_ref().map(|_| target.describe()).transpose()?;
    let started_at = now();
    let workload = settings.sources.workload(scale, settings.spec.seed, &settings.defined)?;
    let job = sessions::job(settings.spec.clone(), workload, &target.database);
    let connector = target.connector();
    let (mut fleet, effective) = sessions::open(&job, &connector, &target.database, settings.level)?;
    // The books need a sum over the accounts before and after; only a run at a level of its own asks for that.
    let writes =
        settings.sources.writes().filter(|writes| writes.iter().any(|writes| *writes != Writes::Nothing));
    let books = settings.level.and(writes).map(|writes| Books::open(&connector, Some(writes)));
    let messages = Messages::aloud();
    let report = |event: Event| messages.take(&event, &job);
    let mut lines = ProgressLines::new(options);
    let cpu = cpu_seconds();
    let every = Duration::from_millis(100);
    let watch = Watch { every, show: &mut |elapsed, progress| lines.show(elapsed, progress) };
    let outcome = fleet.run(&job, settings.stop, control, &report, watch, &mut []);
    let cpu = cpu_seconds() - cpu;
    let connecting = fleet.connecting();
    drop(fleet);
    let invariants = books.map_or_else(Vec::new, |books| books.close(&connector, &outcome));
    let summary = Summary {
        job: &job,
        run: &outcome,
        stop: settings.stop,
        scale,
        connecting,
        level: (settings.level, &effective),
        failures_detailed: options.failures_detailed,
        per_command: options.report_per_command,
        stddev: options.progress.is_some() || options.rate.is_some() || options.latency_limit.is_some(),
        invariants: &invariants,
    };
    let printed = output::print(&summary.render());
    if let (Some(path), Some(server)) = (&options.json, server) {
        let mut round = round(&job, &outcome, 1, messages.into_errors());
        round.client_cpu_s = Some(cpu);
        round.connect_s = Some(connecting.as_secs_f64());
        round.invariants.clone_from(&invariants);
        let mut document = document(settings, target, server, scale, effective, round);
        document.started_at = Some(started_at);
        output::save(path, &document.to_json())?;
    }
    printed?;
    verdict(&outcome, invariants.iter().any(|invariant| invariant.held == Some(false)))
}

/// The exit status that the run deserves.
fn verdict(outcome: &Run, violated: bool) -> Outcome {
    if let Err(error) = outcome.check() {
        return Err(Failure::Incomplete(error.to_string()));
    }
    if !outcome.is_complete() {
        let why = if outcome.interrupted { "interrupted" } else { "aborted" };
        return Err(Failure::Incomplete(format!("Run was {why}; the above results are incomplete.")));
    }
    if violated {
        return Err(Failure::Broken("an invariant does not hold; see above".to_owned()));
    }
    Ok(())
}

/// Makes the tables on the embedded server; vacuums those of a named one as pgbench does. Returns the scale.
fn prepare_tables(options: &RunOptions, settings: &Settings, target: &Target) -> Outcome<u32> {
    if target.is_embedded() {
        let scale = options.scale.unwrap_or(1);
        target.reset(&options.tables.at_scale(scale)).map_err(Failure::setup)?;
        return Ok(scale);
    }
    if !options.no_vacuum && target.database.product.dialect.vacuum.is_some() {
        vacuum(options, target)?;
    }
    if !settings.sources.has_builtin() {
        return Ok(options.scale.unwrap_or(1));
    }
    let scale = target.scale()?;
    if options.scale.is_some_and(|given| given != scale) {
        eprintln!(
            "isobench: warning: scale option ignored, using count from pgbench_branches table ({scale})"
        );
    }
    Ok(scale)
}

/// What pgbench does before a run, also of the user's own scripts, with its lines. That tables are missing is no error yet.
fn vacuum(options: &RunOptions, target: &Target) -> Outcome {
    let mut connection = target.open().map_err(Failure::setup)?;
    let mut work = |title: &str, statements: &[&str]| {
        eprint!("starting {title}...");
        for statement in statements {
            match connection.execute(statement) {
                Err(isobench_pgwire::Error::Server(error)) if !error.is_fatal() => {
                    eprintln!("isobench: error: {error}");
                    eprintln!("isobench: detail: (ignoring this error and continuing anyway)");
                }
                outcome => drop(outcome.map_err(Failure::setup)?),
            }
        }
        eprintln!("end.");
        Ok(())
    };
    work("vacuum", &["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"])?;
    if options.vacuum_all {
        work("vacuum pgbench_accounts", &["vacuum analyze pgbench_accounts"])?;
    }
    connection.close();
    Ok(())
}

/// The result document of a run: one cell with one round.
fn document(
    settings: &Settings,
    target: &Target,
    server: Server,
    scale: u32,
    effective: EffectiveLevel,
    round: Round,
) -> Document {
    let mut document = Document::new(server, client(), plan_document(settings, target, scale));
    let level = CellLevel::new(settings.level, effective);
    let mut cell = cell_entry(&settings.sources, scale, &settings.spec, level);
    document.complete = round.complete;
    cell.rounds.push(round);
    document.cells.push(cell);
    summarise(&mut document);
    document
}

fn plan_document(settings: &Settings, target: &Target, scale: u32) -> PlanDocument {
    let spec = &settings.spec;
    let (time_s, transactions) = match settings.stop {
        Stop::Time(time) => (Some(time.as_secs_f64()), None),
        Stop::Transactions(count) => (None, Some(count)),
    };
    let (rate, think_time_ms) = pacing_figures(spec.pacing);
    PlanDocument {
        levels: settings.level.into_iter().collect(),
        workload: settings.sources.planned(),
        clients: vec![count(spec.clients)],
        jobs: count(spec.workers),
        scale,
        time_s,
        transactions,
        rounds: 1,
        max_tries: spec.retry.max_tries.map(NonZeroU32::get),
        backoff: vec![spec.retry.backoff.to_string()],
        protocol: Protocol::name(spec.protocol).to_owned(),
        seed: Some(spec.seed),
        rate,
        think_time_ms,
        latency_limit_ms: spec.latency_limit.map(|limit| limit.as_secs_f64() * 1e3),
        server_settings: target.server_settings.iter().cloned().collect(),
        ..PlanDocument::default()
    }
}

/// pgbench's progress lines (`-P`).
struct ProgressLines {
    every: Option<Duration>,
    next: Duration,
    last: (Duration, Progress),
    paced: bool,
    skips: bool,
    retries: bool,
}

impl ProgressLines {
    fn new(options: &RunOptions) -> ProgressLines {
        let every = options.progress.map(|seconds| Duration::from_secs(seconds.into()));
        ProgressLines {
            every,
            next: every.unwrap_or(Duration::MAX),
            last: (Duration::ZERO, Progress::default()),
            paced: options.rate.is_some(),
            skips: options.latency_limit.is_some(),
            retries: options.max_tries != 1,
        }
    }

    fn show(&mut self, elapsed: Duration, now: Progress) {
        let Some(every) = self.every else { return };
        if elapsed < self.next {
            return;
        }
        let (before, last) = &self.last;
        let seconds = elapsed.saturating_sub(*before).as_secs_f64();
        let committed = (now.committed - last.committed) as f64;
        // An interval without a commit has a latency of 0, as in pgbench.
        let sample = committed.max(1.0);
        let mean = (now.latency_sum_ms - last.latency_sum_ms) / sample;
        let variance = (now.latency_squares_ms - last.latency_squares_ms) / sample - mean * mean;
        let mut line = format!(
            "progress: {:.1} s, {:.1} tps, lat {mean:.3} ms stddev {:.3}, {} failed",
            elapsed.as_secs_f64(),
            committed / seconds,
            variance.max(0.0).sqrt(),
            now.given_up - last.given_up
        );
        // Writing to a String can't fail.
        if self.paced {
            let began = committed + (now.given_up - last.given_up) as f64;
            let lag = (now.lag_sum_ms - last.lag_sum_ms) / began.max(1.0);
            let _ = write!(line, ", lag {lag:.3} ms");
            if self.skips {
                let _ = write!(line, ", {} skipped", now.skipped - last.skipped);
            }
        }
        if self.retries {
            let (transactions, attempts) = (now.retried - last.retried, now.retries - last.retries);
            let _ = write!(line, ", {transactions} retried, {attempts} retries");
        }
        eprintln!("{line}");
        self.last = (elapsed, now);
        self.next = elapsed + every;
    }
}
