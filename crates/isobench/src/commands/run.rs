//! `isobench run`: one benchmark run, with pgbench's options and summary, and an account of all
//! attempts.

mod settings;

use std::num::NonZeroU32;
use std::time::Duration;

use isobench_comparison::{
    AsWritten, Condition, Conditions, Entered, Failure, Invariants, Judging, Machines, Measured, Measurement,
    Messages, Onlooker, Open, Others, Outcome, Recorded, SoFar, Tables as WorkloadTables, Target,
    WATCH_EVERY, cell_entry, client, count, job, no_serializable, now, observer, recorded_at, refusal,
    require_log, serve,
};
use isobench_database::Writes;
use isobench_isolation::{EffectiveLevel, Level};
use isobench_observer::Part;
use isobench_pgbench::Version;
use isobench_pgbench::progress::ProgressLines;
use isobench_pgbench::scripts;
use isobench_pgbench::setup::{self, Tables, Vacuum};
use isobench_pgbench::summary::Summary;
use isobench_plan::{Observe, Plan, Setting};
use isobench_report::{to_csv, wrap};
use isobench_result::diagnosis::diagnoses;
use isobench_result::{
    CellLevel, Document, Observation, RequirementResult, Round, Server, Workload, judge, requirement_lines,
    summarise,
};
use isobench_runner::{
    Control, Job, OnError, Pacing, Protocol, RunOutcome, RunSpec, RunWorkload, StopCondition,
};
use isobench_script::find_builtin;

use super::compare::requirements;
use crate::destination::{Kind, check_file, one_stream};
use crate::interrupt;
use crate::machines;
use crate::monitor::{self, Follower, Monitor};
use crate::options::RunOptions;
use crate::output::{self, is_stream, say};
use crate::servers::{self, Clients};
use crate::summary::Account;
use settings::RunSettings;

/// Carries out the run and prints its summary.
///
/// # Errors
/// Wrong options, no server, no tables, aborted clients, a broken invariant. The measured part is
/// printed first.
pub fn run(options: &RunOptions) -> Outcome {
    if options.builtin.iter().any(|name| name == "list") {
        eprint!("{}", scripts::list());
        return Ok(());
    }
    if let Some(name) = &options.show_script {
        let builtin = find_builtin(name).map_err(Failure::setup)?;
        eprint!("{}", scripts::show(builtin.name).map_err(Failure::setup)?);
        return Ok(());
    }
    let settings = machines::heard(&options.machines, resolve(options))?;
    let machines = meet(options, &settings)?;
    if let Some(machines) = machines.as_ref().filter(|machines| machines.rank() > 0) {
        monitor::leave_to_rank_0(&options.monitor);
        return take_part(options, &settings, machines);
    }
    let outcome = lead(options, &settings, machines.as_ref());
    if let Some(machines) = machines {
        let early = outcome.as_ref().err().filter(|failure| matches!(failure, Failure::Setup(_)));
        machines.end(early.map(Failure::to_string).as_deref());
    }
    outcome
}

/// The settings of the options.
///
/// # Errors
/// They don't go together, or a file can't be written.
fn resolve(options: &RunOptions) -> Outcome<RunSettings> {
    let settings = RunSettings::resolve(options)?;
    check_files(options)?;
    let levels = Some(settings.level.into_iter().collect());
    let asked = Plan { levels, require: Some(options.require.clone()), ..Plan::default() };
    asked.unmatched_requirement().map_or(Ok(()), |why| Err(Failure::Setup(why)))?;
    Ok(settings)
}

/// The settings, with the share of the clients that this machine has.
fn share(settings: &RunSettings, machines: Option<&Machines>) -> RunSpec {
    let spec = settings.spec.clone();
    RunSpec { share: machines.map(|machines| machines.share(spec.clients)), ..spec }
}

/// Meets the other machines that measure together with this one, if there are any.
///
/// # Errors
/// One is missing or was given something else to do, no server is named, or log files are asked
/// for.
fn meet(options: &RunOptions, settings: &RunSettings) -> Outcome<Option<Machines>> {
    if options.machines.any() && options.log {
        return Err(Failure::setup(
            "--log: isn't written where several machines measure together; leave it out",
        ));
    }
    let named = servers::names_server(&options.connection) || options.database.is_some();
    // Rank 0 says what depends on the time.
    let spec = RunSpec { seed: 0, attempts_from: 0, ..settings.spec.clone() };
    let RunSettings { sources, stop, level, defined, .. } = settings;
    let settings = format!("{spec:?} {stop:?} {level:?} {defined:?} {:?}", options.observe);
    machines::meet(&options.machines, named, options.client, &(settings, sources.planned("")))
}

/// The clients of the run.
fn clients(options: &RunOptions, settings: &RunSettings) -> Clients {
    Clients { number: options.client, confined: settings.sources.are_recorded() }
}

/// Takes part in the run that rank 0 makes.
///
/// # Errors
/// The server can't be reached, or the run ends early.
fn take_part(options: &RunOptions, settings: &RunSettings, machines: &Machines) -> Outcome {
    let (target, control) = servers::find(
        &options.connection,
        options.database.as_deref(),
        &options.embedded,
        clients(options, settings),
    )?;
    let checked = settings.sources.checked().is_some();
    let scale = match options.scale {
        _ if settings.sources.has_builtin() && !checked => target.scale()?,
        given => given.unwrap_or(1),
    };
    let mut enter = |open: &Open| {
        let mut workload = settings.sources.workload(scale, open.seed, &settings.defined)?;
        let spec =
            RunSpec { seed: open.seed, attempts_from: open.attempts_from, ..share(settings, Some(machines)) };
        let as_written = Some(AsWritten::of_another(&open.as_written));
        let recorded = how_recorded(options, settings, &target, &mut workload, as_written)?;
        let job = job(spec, workload, &options.retry_sqlstate, &target.database, &target.connector());
        Entered::new(
            open,
            job,
            target.site(),
            &settings.sources,
            (settings.level, None, (0, false)),
            &recorded,
            &control,
        )
    };
    say(&format!("rank {} of {} works for {}", machines.rank(), machines.number(), machines.name(0)));
    serve(machines, &control, &say, &mut enter).map(|_| ())
}

/// Carries out the run, as the first of these machines if there are several.
fn lead(options: &RunOptions, settings: &RunSettings, machines: Option<&Machines>) -> Outcome {
    let monitor = Monitor::open(&options.monitor)?;
    let named = servers::names_server(&options.connection) || options.database.is_some();
    let needed = options.observe.server_setting().filter(|_| !named);
    let embedded = options.embedded.with(needed.as_slice());
    let (target, control) = servers::find(
        &options.connection,
        options.database.as_deref(),
        &embedded,
        clients(options, settings),
    )?;
    if settings.level.is_some() {
        target.require_sessions()?;
    }
    if let Some(note) = interrupt::blame(&control, require_log(&target.site(), options.observe))? {
        eprintln!("isobench: note: {note}");
    }
    let follower = monitor.follower(std::slice::from_ref(&target));
    let outcome = measure(options, settings, &target, machines, follower.as_ref(), &control);
    let closed = target.close(false);
    interrupt::blame(&control, outcome)?;
    closed
}

/// Checks that the files can be written.
fn check_files(options: &RunOptions) -> Outcome {
    for (option, path, kind) in [
        ("--json", &options.json, Kind::Result),
        ("--csv", &options.csv, Kind::Lines),
        ("--history", &options.history, Kind::History),
    ] {
        path.iter().try_for_each(|path| check_file(option, path, kind))?;
    }
    one_stream(&[("--json", &options.json), ("--csv", &options.csv)]).map(|_| ())
}

fn measure(
    options: &RunOptions,
    settings: &RunSettings,
    target: &Target,
    machines: Option<&Machines>,
    follower: Option<&Follower>,
    control: &Control,
) -> Outcome {
    for warning in settings.sources.warnings() {
        eprintln!("isobench: warning: {warning}");
    }
    if target.standby {
        only_read(settings, target)?;
    }
    let tables = prepare_tables(options, settings, target)?;
    Conditions::require(&settings.conditions, &target.connector())?;
    // Before the run, since the server may be lost afterwards.
    let observer = watches_server(options, settings).then(|| observer(target));
    let server = wants_document(options, settings).then(|| target.describe(&say)).transpose()?;
    let started_at = now();
    let scale = u32::try_from(tables.scale).unwrap_or(u32::MAX);
    let mut workload = settings.sources.workload(scale, settings.spec.seed, &settings.defined)?;
    let recorded = how_recorded(options, settings, target, &mut workload, None)?;
    let judging = Judging { folder: None, stop_on_broken: options.stop_on_broken, between: false };
    let judged = !matches!(recorded, Recorded::Nothing);
    let site = target.site();
    let measurement = Measurement {
        mixed: None,
        site: &site,
        sources: &settings.sources,
        level: settings.level,
        strict: false,
        warmup: (Duration::ZERO, Duration::ZERO),
        stop: settings.stop,
        log: settings.log.as_ref(),
        fresh_tables: target.is_embedded(),
        invariants: if checks_invariants(settings) {
            Invariants::Checked { own_tables: false }
        } else {
            Invariants::Skipped
        },
        conditions: Conditions::holding(&settings.conditions),
        judging: judged.then_some(&judging),
        recorded: &recorded,
        history: options.history.clone(),
        faults: None,
        background: isobench_plan::Background::None,
        readers: 0,
        readers_wait: false,
        observer: observer.as_ref().map(|observer| (observer, Part::default())),
        others: machines.map(|machines| Others { machines, cell: (0, None), name: String::new() }),
        control,
    };
    let retried = &options.retry_sqlstate;
    let job = job(share(settings, machines), workload, retried, &target.database, &target.connector());
    let job = measurement.job(job)?;
    let mut shown = Shown::new(options, settings, follower);
    let mut onlooker = Onlooker {
        every: shown.every(),
        latencies: follower.is_some(),
        show: &mut |so_far| shown.show(so_far),
    };
    let second = measurement.second_source(options.observe)?;
    let mut measured = measurement.run(&job, 1, &Messages::aloud(&say), &mut onlooker)?;
    let mut text = summary(options, settings, &tables, &job, &measured);
    if let Some(report) = measurement.judge(job, second, &mut measured) {
        text.push('\n');
        text += &report;
    }
    for note in &measured.notes {
        eprintln!("isobench: warning: {note}");
    }
    let Measured { round, run, effective, logged, broken: ended_by, .. } = measured;
    if let Some(what) = &ended_by {
        eprintln!("isobench: note: --stop-on-broken ended the run: {what}");
    }
    let incomplete = incomplete(settings, &run, &round, ended_by.is_some());
    let hint = retry_hint(settings, &run);
    let withheld = round.verdict.as_ref().and_then(|verdict| verdict.withheld.first()).cloned();
    let unwritten = options.history.is_some() && round.verdict.is_some() && round.history.is_none();
    let (broken, violated) = (round.breaks_promise(), round.is_violated());
    let document = server.map(|server| {
        let mut document = document(options, settings, target, server, scale, effective, round);
        document.started_at = Some(started_at);
        document.observations = seen(settings, &recorded).into_iter().collect();
        document.incomplete_reason = incomplete.as_ref().map(|(reason, _)| reason.clone());
        document.complete &= document.incomplete_reason.is_none();
        document.plan.require = Some(options.require.clone()).filter(|required| !required.is_empty());
        document.requirements = judge(&document, &options.require);
        document
    });
    text.extend(document.as_ref().map(diagnosed));
    deliver(options, &text, document.as_ref())?;
    if let Some(hint) = hint {
        say(&hint);
    }
    logged.map_err(|error| Failure::Output(error.to_string()))?;
    let required = document.map_or_else(Vec::new, |document| document.requirements);
    status(incomplete, broken, violated, &required)?;
    if unwritten {
        return Err(Failure::Incomplete("--history: it couldn't be written; see above".to_owned()));
    }
    withheld.map_or(Ok(()), |withheld| Err(Failure::withheld(&withheld.reason)))
}

/// True if the server's statistics are sampled: where a level is set, as without one a run does what pgbench does.
fn watches_server(options: &RunOptions, settings: &RunSettings) -> bool {
    settings.level.is_some() && !options.no_server_side
}

/// True if the run is described: for files, thresholds, or diagnoses.
fn wants_document(options: &RunOptions, settings: &RunSettings) -> bool {
    let files = options.json.is_some() || options.csv.is_some();
    watches_server(options, settings) || files || !options.require.is_empty()
}

/// Why transactions failed more often than they would have to, as a comparison says it.
fn diagnosed(document: &Document) -> String {
    let wrapped = |sentence: &str| wrap(sentence, output::width(), 2).join("\n");
    let said = diagnoses(document).into_iter().map(|diagnosis| wrapped(&diagnosis.sentence));
    said.fold(String::new(), |text, sentence| text + "\n" + &sentence + "\n")
}

/// What is shown while the clients work: the lines of `-P`, and metrics.
struct Shown<'a> {
    settings: &'a RunSettings,
    follower: Option<&'a Follower>,
    lines: ProgressLines,
    /// Time between two lines.
    interval: Duration,
    /// When the next line is due.
    due: Duration,
}

impl<'a> Shown<'a> {
    fn new(options: &RunOptions, settings: &'a RunSettings, follower: Option<&'a Follower>) -> Shown<'a> {
        let lines = ProgressLines::new(&settings.spec, options.progress_timestamp);
        let interval = options.progress.map_or(Duration::MAX, |seconds| Duration::from_secs(seconds.into()));
        Shown { settings, follower, lines, interval, due: interval }
    }

    /// How often to look: a whole number of times between two lines.
    fn every(&self) -> Duration {
        if self.follower.is_some() { WATCH_EVERY } else { self.interval }
    }

    fn show(&mut self, so_far: &SoFar) {
        if so_far.elapsed >= self.due {
            self.due = self.due.saturating_add(self.interval);
            eprintln!("{}", self.lines.line(so_far.elapsed, &so_far.progress));
        }
        if let Some(follower) = self.follower {
            let RunSettings { level, sources, spec, .. } = self.settings;
            follower.see_run(*level, &sources.name(), spec.clients, so_far);
        }
    }
}

/// Returns how the history is recorded, and prepares the scripts for it. `known` has the statements
/// that rank 0 sends as written; without it plans are compared.
///
/// # Errors
/// It is to be written, and there is none, or the server is gone.
fn how_recorded(
    options: &RunOptions,
    settings: &RunSettings,
    target: &Target,
    workload: &mut RunWorkload,
    known: Option<AsWritten>,
) -> Outcome<Recorded> {
    if options.no_verdict {
        return Ok(Recorded::Nothing);
    }
    let recorded = recorded_at(&target.site(), workload, &settings.spec, options.observe, known)?;
    let wants = [("--history", options.history.is_some()), ("--stop-on-broken", options.stop_on_broken)];
    if let Some((option, _)) =
        wants.iter().find(|(_, wanted)| *wanted && matches!(recorded, Recorded::Nothing))
    {
        return Err(Failure::setup(format!(
            "{option}: nothing shows what the scripts read and write; use --observe rows on PostgreSQL, a checked \
             workload (-w), or lines --@",
        )));
    }
    if options.observe == Observe::Snapshot && !matches!(recorded, Recorded::Rows(_)) {
        return Err(Failure::setup(
            "--observe snapshot: rows aren't observed where transactions are paced, where retries start at a \
             savepoint, or where lines --@ say what a statement does that isn't seen",
        ));
    }
    Ok(recorded)
}

/// What was seen of the statements, for the result; `None` if rows weren't observed.
fn seen(settings: &RunSettings, recorded: &Recorded) -> Option<Observation> {
    let Recorded::Rows(seen) = recorded else { return None };
    Some(Observation {
        workload: settings.sources.name(),
        statements: seen.report(),
        carried: seen.carried(),
        proved: seen.proved.clone(),
        ..Observation::default()
    })
}

/// pgbench's summary of a run, and the account of every attempt.
fn summary(
    options: &RunOptions,
    settings: &RunSettings,
    tables: &Tables,
    job: &Job,
    measured: &Measured,
) -> String {
    let summary = Summary {
        version: settings.layout,
        job,
        run: &measured.run,
        stop: settings.stop,
        scale: tables.scale,
        partitions: tables.partitions,
        connecting: measured.connecting,
        failures_detailed: options.failures_detailed,
        per_command: options.report_per_command,
        progress: options.progress.is_some(),
    };
    let account = Account {
        job,
        run: &measured.run,
        level: (settings.level, &measured.effective),
        measured_above: summary.reports_measured_latency(),
        invariants: &measured.round.invariants,
    };
    summary.render() + &account.render()
}

/// The exit status of a run, the gravest reason first: `docs/reference/exit-status.md`.
fn status(
    incomplete: Option<(String, String)>,
    broken: bool,
    violated: bool,
    required: &[RequirementResult],
) -> Outcome {
    if let Some((_, message)) = incomplete {
        return Err(Failure::Incomplete(message));
    }
    if broken {
        return Err(Failure::Broken("the level did not give what it promises; see above".to_owned()));
    }
    if violated {
        return Err(Failure::Broken("an invariant does not hold; see above".to_owned()));
    }
    requirements(required)
}

/// Prints the summary and what came of the thresholds, and writes the files.
fn deliver(options: &RunOptions, text: &str, document: Option<&Document>) -> Outcome {
    let files = [(&options.json, Document::to_json as fn(&Document) -> String), (&options.csv, to_csv)];
    let takes_stdout = files.iter().filter_map(|(path, _)| path.as_deref()).any(is_stream);
    let required = document.map_or_else(String::new, |document| requirement_lines(&document.requirements));
    let printed = output::tell(&format!("{text}{required}"), takes_stdout);
    for (path, render) in files {
        if let (Some(path), Some(document)) = (path, document) {
            output::save(path, &render(document))?;
        }
    }
    printed
}

/// Returns whether the tables have invariants to check. For pgbench's tables that takes a sum over
/// the accounts before and after, and is done only if the run sets a level.
fn checks_invariants(settings: &RunSettings) -> bool {
    let writes = settings.sources.writes();
    let writes = writes.is_some_and(|writes| writes.iter().any(|writes| *writes != Writes::Nothing));
    settings.sources.checked().is_some() || settings.level.is_some() && writes
}

/// Returns what repeats the transactions that were given up after the only try.
fn retry_hint(settings: &RunSettings, outcome: &RunOutcome) -> Option<String> {
    let given_up = outcome.ledger().transactions.given_up;
    (given_up > 0 && settings.spec.retry.max_tries == Some(NonZeroU32::MIN)).then(|| {
        let transactions = if given_up == 1 { "transaction was" } else { "transactions were" };
        format!(
            "note: {given_up} {transactions} given up after one try, as by pgbench; with -T, --max-tries 0 repeats them"
        )
    })
}

/// Returns the reason why the run is incomplete, if it is: for the document, and in pgbench's words
/// for the user. One that a broken promise has `ended`, as wanted, isn't.
fn incomplete(
    settings: &RunSettings,
    outcome: &RunOutcome,
    round: &Round,
    ended: bool,
) -> Option<(String, String)> {
    if let Err(error) = outcome.check() {
        return Some((error.to_string(), error.to_string()));
    }
    let ended = ended && outcome.aborted == 0;
    if !outcome.is_complete() && !ended {
        let ended_by_abort = settings.spec.on_error == OnError::EndRun && outcome.aborted > 0;
        let interrupted = outcome.interrupted && !ended_by_abort;
        let first = || round.errors.first().cloned();
        let (why, reason) = if interrupted {
            ("interrupted", "interrupted".to_owned())
        } else {
            ("aborted", first().unwrap_or_else(|| "clients ended before their time".to_owned()))
        };
        return Some((reason, format!("Run was {why}; the above results are incomplete.")));
    }
    nothing_committed(outcome).map(|text| (text.clone(), text))
}

/// Returns a message if transactions were started but none committed, which pgbench reports as a
/// success.
fn nothing_committed(outcome: &RunOutcome) -> Option<String> {
    let transactions = outcome.ledger().transactions;
    if transactions.committed > 0 || transactions.total == transactions.skipped {
        return None;
    }
    let failed = transactions.given_up + transactions.errored;
    let also = [
        (transactions.cut_off, "were cut off by the end of the run"),
        (transactions.ambiguous, "ended with an unknown outcome"),
        (transactions.swallowed, "were acknowledged with their work undone"),
        (transactions.rolled_back, "were rolled back by their own script"),
    ];
    let also = also.iter().filter(|(count, _)| *count > 0);
    let also = also.fold(String::new(), |text, (count, what)| format!("{text}, {count} {what}"));
    Some(format!(
        "No transaction committed: {failed} failed{also}; the above results measure no work that was done."
    ))
}

/// Creates the tables on the embedded server; vacuums those of a named one as pgbench does. Returns
/// their description.
fn prepare_tables(options: &RunOptions, settings: &RunSettings, target: &Target) -> Outcome<Tables> {
    let unknown = |scale: u32| Tables { scale: scale.into(), partitions: None };
    if target.is_embedded() {
        let scale = options.scale.unwrap_or(1);
        let tables = match settings.sources.checked() {
            Some(chosen) => WorkloadTables::Checked(chosen.clone()),
            None => {
                WorkloadTables::Pgbench { options: options.tables.at_scale(scale), functions: Vec::new() }
            }
        };
        tables.make(&target.site())?;
        target.site().checkpoint()?;
        return Ok(unknown(scale));
    }
    if let Some(chosen) = settings.sources.checked() {
        let mut connection = target.open().map_err(Failure::setup)?;
        isobench_workloads::require_tables(&mut connection, &target.database, chosen)
            .map_err(Failure::setup)?;
        connection.close();
        return Ok(unknown(options.scale.unwrap_or(1)));
    }
    if !options.no_vacuum && !target.standby && target.database.product.dialect.vacuum.is_some() {
        vacuum(options, target)?;
    }
    if !settings.sources.has_builtin() {
        return Ok(unknown(options.scale.unwrap_or(1)));
    }
    let scale = target.scale()?;
    if options.scale.is_some_and(|given| given != scale) {
        eprintln!(
            "isobench: warning: scale option ignored, using count from pgbench_branches table ({scale})"
        );
    }
    let mut connection = target.open().map_err(Failure::setup)?;
    let partitions =
        setup::tables(&mut connection, "", Version::default()).ok().and_then(|tables| tables.partitions);
    connection.close();
    Ok(Tables { scale: scale.into(), partitions })
}

/// Refuses runs that are impossible on a hot standby, and reports omitted steps.
fn only_read(settings: &RunSettings, target: &Target) -> Outcome {
    if let Some(why) = settings.sources.writing() {
        return Err(refusal(&target.place(), &why));
    }
    if !settings.conditions.is_empty() {
        return Err(Failure::setup(
            "--invariant: nothing is written on a hot standby, so no run can break it",
        ));
    }
    if let Some(level @ Level::Serializable) = settings.level {
        return Err(Failure::setup(format!("--isolation: {}", no_serializable(level))));
    }
    eprintln!(
        "isobench: reading the tables that are there on {}, a hot standby; nothing is vacuumed",
        target.place()
    );
    Ok(())
}

/// Vacuums as pgbench does before a run, even of the user's own scripts, with its messages. Missing
/// tables aren't an error yet.
fn vacuum(options: &RunOptions, target: &Target) -> Outcome {
    let mut connection = target.open().map_err(Failure::setup)?;
    let tell = |step: Vacuum<'_>| match step {
        Vacuum::Starting(title) => eprint!("starting {title}..."),
        Vacuum::Refused(why) => {
            eprintln!(
                "isobench: error: {why}\nisobench: detail: (ignoring this error and continuing anyway)"
            );
        }
        Vacuum::End => eprintln!("end."),
    };
    setup::vacuum(&mut connection, options.vacuum_all, &tell).map_err(Failure::setup)?;
    connection.close();
    Ok(())
}

/// The result document of a run: one cell with one round.
fn document(
    options: &RunOptions,
    settings: &RunSettings,
    target: &Target,
    server: Server,
    scale: u32,
    effective: EffectiveLevel,
    round: Round,
) -> Document {
    let mut document = Document::new(server, client(target), plan(options, settings, target, scale));
    document.workload = Workload { scripts: settings.sources.planned(""), strategies: Vec::new() };
    let level = CellLevel::new(settings.level, effective);
    let mut cell = cell_entry(&settings.sources, scale, &settings.spec, level);
    document.complete = round.complete;
    cell.rounds.push(round);
    document.cells.push(cell);
    summarise(&mut document);
    document
}

/// The run as the plan of a comparison: one cell, one round, no warm-up.
fn plan(options: &RunOptions, settings: &RunSettings, target: &Target, scale: u32) -> Plan {
    let spec = &settings.spec;
    let (time, transactions) = match settings.stop {
        StopCondition::Time(time) | StopCondition::Turn(time) => (Some(time.as_secs_f64()), None),
        StopCondition::Transactions(count) => (None, Some(count)),
    };
    let (rate, think_time) = match spec.pacing {
        Pacing::Unpaced => (None, None),
        Pacing::Rate(rate) => (Some(vec![rate]), None),
        Pacing::ThinkTime(pause) => (None, Some(pause.as_secs_f64() * 1e3)),
    };
    let settings_given = target.server_settings.iter();
    let setting = |(name, value): &(String, String)| Setting { name: name.clone(), value: value.clone() };
    Plan {
        levels: Some(settings.level.into_iter().collect()),
        invariant: (!settings.conditions.is_empty())
            .then(|| settings.conditions.iter().map(Condition::written).collect()),
        clients: Some(vec![count(spec.clients)]),
        jobs: Some(count(spec.workers)),
        scale: Some(scale),
        time,
        transactions,
        warmup: Some(0.0),
        max_warmup: Some(0.0),
        rounds: Some(1),
        max_tries: Some(spec.retry.max_tries.map_or(0, NonZeroU32::get)),
        backoff: Some(vec![spec.retry.backoff.to_string()]),
        protocol: Some(Protocol::name(spec.protocol).to_owned()),
        seed: Some(spec.seed),
        observe: Some(options.observe),
        rate,
        think_time,
        latency_limit: spec.latency_limit.map(|limit| limit.as_secs_f64() * 1e3),
        retry_sqlstate: (!options.retry_sqlstate.is_empty()).then(|| options.retry_sqlstate.clone()),
        continue_on_error: Some(options.continue_on_error),
        connect: Some(spec.connect_each),
        event_loop: Some(options.event_loop),
        no_server_side: Some(!watches_server(options, settings)),
        server_settings: Some(settings_given.map(setting).collect()),
        ..settings.sources.named_in().or(Plan::defaults())
    }
}
