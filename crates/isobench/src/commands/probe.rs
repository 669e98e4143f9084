//! `isobench probe`: the anomalies that each level permits, or the output of PostgreSQL's isolation
//! tester.

mod certificate;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isobench_isolation::{Allocation, Level};
use isobench_plan::Setting;
use isobench_probe::anomalies::Tests;
use isobench_probe::interleaving::{Found, LevelFound};
use isobench_probe::output::text;
use isobench_probe::{
    Event, Matrix, Opener, Options, ProbeError, Progress, RunError, Spec, Tester, WaitDetection,
    probe as run, render,
};
use isobench_report::gate::of_tried;
use isobench_report::witness;
use isobench_result::Tried;
use isobench_result::view::tried::{self as view, AtLevel};
use isobench_runner::{Control, Urgency};

use crate::gates;
use crate::options::{EmbeddedOptions, ProbeOptions};
use crate::output::{self, say};
use crate::servers::{Clients, find, named_server};
use isobench_comparison::interleavings::{Attempt, Extent, tried};
use isobench_comparison::refusal;
use isobench_comparison::{Condition, Failure, Outcome, Sources, Target};

/// Number of concurrent sessions: those of an interleaving, the control connection, and one that
/// holds the schema.
const SESSIONS: usize = 8;

/// The form of what was found of scripts, in JSON.
const FORMAT: &str = "isobench/interleavings";

/// The line of a specification whose SQL was recorded, as that of scripts.
const RECORDED_SPEC: &str = "# --@ recorded\n";

/// The levels at which scripts are tried by default: those that PostgreSQL tells apart.
const TRIED: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// The embedded server's `max_connections`, low so that it soon summarizes old transactions.
const FEW_CONNECTIONS: &str = "20";

/// Probes, or runs specifications.
///
/// # Errors
/// Wrong options or files, no server; interrupted, or the server is lost; a level is weaker than
/// promised, with `--strict` even if that is a known limitation of the product; scripts are unsafe at a
/// level that was asked for.
pub fn probe(options: &ProbeOptions) -> Outcome {
    gates::check(&options.gates)?;
    if options.standby && options.tests != Tests::Anomalies {
        return Err(Failure::setup("--standby: these tests (--tests) read on no standby; leave out one"));
    }
    if let Some(path) = &options.certificate {
        require_scripts(options, false)?;
        return certificate::certificate(options, path);
    }
    if options.tables().len() > 1 {
        return Err(Failure::setup("--tables: several kinds of tables need --certificate FILE; give one"));
    }
    if let Some(option) = options.useless_for_specs().filter(|_| !options.spec.is_empty()) {
        return Err(Failure::setup(format!(
            "{option}: specifications (--spec) make their own tables and steps; leave out one, or add --certificate FILE"
        )));
    }
    let attempt = attempt(options)?;
    require_scripts(options, attempt.is_some())?;
    let read = options.spec.iter().map(|path| read(path)).collect::<Outcome<Vec<(Spec, bool)>>>()?;
    let of_specs = read.iter().any(|(_, recorded)| *recorded);
    let specs: Vec<Spec> = read.into_iter().map(|(spec, _)| spec).collect();
    let embedded = embedded(options, specs.is_empty())?;
    let confined = of_specs || attempt.as_ref().is_some_and(Attempt::runs_recorded_sql);
    let clients = Clients { number: SESSIONS, confined };
    let (mut target, control) = find(&options.connection, None, &embedded, clients)?;
    if target.standby {
        return Err(refusal(&target.place(), "probing takes transactions that write"));
    }
    require_method(options, &target)?;
    target.claim_namespace(&say)?;
    let outcome = if let Some(attempt) = &attempt {
        interleavings(options, attempt, &target, &control)
    } else if specs.is_empty() {
        matrix(options, &target, &control)
    } else {
        admit_roles(&target).and_then(|()| specifications(options, &specs, &target, &control))
    };
    let closed = target.close(false);
    outcome.and(closed)
}

/// Refuses levels of scripts where there are none.
fn require_scripts(options: &ProbeOptions, are_there: bool) -> Outcome {
    let allocation = (!options.allocation.is_empty()).then_some("--allocation");
    match allocation.or(options.gates.given()).filter(|_| !are_there) {
        Some(option) => Err(Failure::setup(format!(
            "{option}: needs scripts to try: --file with --setup, --builtin or --workload"
        ))),
        None => Ok(()),
    }
}

/// The scripts to try against each other, if there are any.
fn attempt(options: &ProbeOptions) -> Outcome<Option<Attempt>> {
    let sources = match &options.workload {
        Some(name) => Sources::checked_workload(name)?,
        None if options.file.is_empty() && options.builtin.is_empty() => return Ok(None),
        None => Sources::mixed(&options.builtin, &options.file)?,
    };
    sources.leave_level_alone()?;
    Attempt::new(sources, options.setup.as_deref(), 1, options.define.clone()).map(Some)
}

/// Tries scripts against each other and prints what was found.
fn interleavings(options: &ProbeOptions, attempt: &Attempt, target: &Target, control: &Control) -> Outcome {
    let levels = options.levels.clone().unwrap_or_else(|| TRIED.to_vec());
    let allocations: Vec<Allocation> =
        levels.into_iter().map(Allocation::uniform).chain(options.allocation.iter().cloned()).collect();
    let extent = Extent {
        combinations: None,
        allocations: &allocations,
        budget: Duration::from_secs_f64(options.budget),
        conditions: &Condition::list(&options.invariant)?,
        options: limits(options),
        literals: false,
    };
    let found = attempt.carry_out(&target.site(), extent, control)?;
    let tried: Vec<(String, Tried)> =
        found.levels.iter().map(|level| (level.allocation.to_string(), tried(&found, level))).collect();
    let shown: Vec<AtLevel<'_>> = tried.iter().map(|(level, tried)| (level.clone(), tried)).collect();
    let printed = output::print(&report(&shown));
    if let Some(path) = &options.json {
        output::save(path, &in_json(&tried))?;
    }
    gates::write(&options.gates, "probe", of_tried(&shown, &attempt.names()))?;
    if let Some(path) = &options.replay {
        replay(attempt, &found, path)?;
    }
    printed?;
    let asked = if options.levels.is_some() { 0 } else { TRIED.len() };
    let wrong = |level: &&LevelFound| level.gravest().is_some();
    let levels: Vec<String> =
        found.levels.iter().skip(asked).filter(wrong).map(|level| level.allocation.to_string()).collect();
    if levels.is_empty() {
        return Ok(());
    }
    Err(Failure::Broken(format!("the scripts were shown to be unsafe at {}; see above", levels.join("; "))))
}

/// Saves the first wrong outcome as a specification.
fn replay(attempt: &Attempt, found: &Found, path: &Path) -> Outcome {
    let wrong = found.levels.iter().find_map(|level| Some((&level.allocation, level.gravest()?)));
    let Some((allocation, witness)) = wrong else {
        say("--replay: no outcome was wrong, so there is nothing to write");
        return Ok(());
    };
    let setup = attempt.setup().map_err(|place| {
        Failure::Incomplete(format!(
            "--replay: a spec can't hold the rows that follow the COPY at {place}; write INSERTs (pg_dump --inserts)"
        ))
    })?;
    let spec = witness.to_spec(&setup, allocation).map_err(|sql| {
        Failure::Incomplete(format!("--replay: a spec can't hold braces, but this statement does: {sql}"))
    })?;
    let file = path.display();
    let levels = allocation.level().map_or_else(String::new, |level| format!(" --levels '{level}'"));
    let mark = if attempt.runs_recorded_sql() { RECORDED_SPEC } else { "" };
    output::save(path, &format!("# isobench probe --spec {file}{levels}\n{mark}{spec}"))
}

/// What was found: a line for each level, the wrong outcomes step by step, and what wasn't tried.
fn report(levels: &[AtLevel<'_>]) -> String {
    let width = levels.iter().map(|(level, _)| level.len()).max().unwrap_or(0);
    let mut lines: Vec<String> =
        levels.iter().map(|(level, tried)| format!("{level:width$}  {}", view::summary(tried))).collect();
    let masked = view::masked(levels);
    for (wrong, at) in view::wrong_outcomes(levels) {
        lines.push(String::new());
        lines.extend(witness(wrong, &at, &masked, output::width()));
    }
    let notes = view::notes(levels);
    if !notes.is_empty() {
        lines.push(String::new());
    }
    lines.extend(notes);
    lines.join("\n") + "\n"
}

/// The same as JSON: for each level what the document of a comparison has in `tried`.
fn in_json(levels: &[(String, Tried)]) -> String {
    let level = |(level, tried): &(String, Tried)| serde_json::json!({"level": level, "tried": tried});
    format!(
        "{:#}\n",
        serde_json::json!({"format": FORMAT, "levels": levels.iter().map(level).collect::<Vec<_>>()})
    )
}

/// A specification, and whether its SQL was recorded.
fn read(path: &Path) -> Outcome<(Spec, bool)> {
    let file = path.display().to_string();
    let text = isobench_trust::read_to_string(path)
        .map_err(|error| Failure::setup(format!("--spec: could not read \"{file}\": {error}")))?;
    let recorded =
        text.lines().take_while(|line| line.starts_with('#')).any(|line| line == RECORDED_SPEC.trim());
    let spec = Spec::parse(&file, &text).map_err(|error| Failure::setup(format!("--spec: {error}")))?;
    Ok((spec, recorded))
}

/// Returns the embedded server's options: by default with few connections, if that saves time.
fn embedded(options: &ProbeOptions, few: bool) -> Outcome<EmbeddedOptions> {
    let mut embedded = options.embedded.clone();
    if options.standby {
        if named_server(&options.connection, None)?.is_some() {
            return Err(Failure::setup(
                "--standby: the interleaving needs settings of the server and a standby, which isobench makes on its \
                 embedded PostgreSQL only; leave out the server's name or --standby",
            ));
        }
        embedded = embedded.with_standby_that_nobody_waits_for();
    }
    let given = embedded.settings.iter().any(|setting| setting.name.eq_ignore_ascii_case("max_connections"));
    if few && !given && named_server(&options.connection, None)?.is_none() {
        embedded
            .settings
            .push(Setting { name: "max_connections".to_owned(), value: FEW_CONNECTIONS.to_owned() });
    }
    Ok(embedded)
}

/// Grants roles that a specification creates access to its schema, as they have in PostgreSQL's
/// schema `public`. Privileges on the tables are up to the specification. Products without schema
/// privileges don't need the grant.
///
/// # Errors
/// The server is lost.
fn admit_roles(target: &Target) -> Outcome {
    if target.is_embedded() {
        return Ok(());
    }
    let mut connection = target.open().map_err(Failure::setup)?;
    let schema = connection.value("SELECT quote_ident(current_schema())").ok().flatten();
    if let Some(schema) = schema {
        match connection.execute(&format!("GRANT USAGE ON SCHEMA {schema} TO PUBLIC")) {
            Err(error) if error.is_connection_lost() => return Err(Failure::setup(error)),
            _ => {}
        }
    }
    connection.close();
    Ok(())
}

/// Checks that the server has the table access method of the options, if they name one.
///
/// # Errors
/// It hasn't, or isn't `PostgreSQL`.
fn require_method(options: &ProbeOptions, target: &Target) -> Outcome {
    let Some(method) = &options.table_access_method else { return Ok(()) };
    let wrong =
        |why: &dyn std::fmt::Display| Failure::setup(format!("--table-access-method {method}: {why}"));
    let mut connection = target.controller().open().map_err(Failure::setup)?;
    let known = connection.query("SELECT amname FROM pg_catalog.pg_am WHERE amtype = 't' ORDER BY amname");
    let known: Vec<String> =
        known.map_err(|error| wrong(&error))?.rows.into_iter().flatten().flatten().collect();
    connection.close();
    if known.contains(method) {
        return Ok(());
    }
    Err(wrong(&format!("the server has no such method; it has {}", known.join(", "))))
}

/// Returns a function that opens sessions in the schema of the tables, with these settings.
fn opener(target: &Target, settings: Vec<(&'static str, String)>) -> Opener {
    let (connector, standby) = (target.connector(), target.site().standby().cloned());
    let set = |(name, value): (&str, String)| format!("SET {name} = '{}'", value.replace('\'', "''"));
    let set: Vec<String> = settings.into_iter().map(set).collect();
    Arc::new(move |name| {
        let mut session = match &standby {
            Some(standby) if name.starts_with("standby") => standby.open(),
            _ => connector.open(),
        }?;
        for set in &set {
            session.execute(set)?;
        }
        Ok(session)
    })
}

/// The settings of sessions that the options ask for.
fn asked(options: &ProbeOptions) -> Vec<(&'static str, String)> {
    options.table_access_method.iter().map(|method| ("default_table_access_method", method.clone())).collect()
}

fn limits(options: &ProbeOptions) -> Options {
    Options {
        step_timeout: Duration::from_secs_f64(options.step_timeout),
        waits_after: Duration::from_millis(options.wait_after),
        standby: options.standby,
        tests: options.tests,
        tables: options.tables()[0],
        ..Options::default()
    }
}

/// Prints one event: output on standard output, warnings on standard error.
fn show(event: &Event) -> Outcome {
    if let Event::Warning(warning) = event {
        eprintln!("{warning}");
    }
    let shown = text(event);
    if shown.is_empty() { Ok(()) } else { output::print(&shown) }
}

/// What the matrix leaves open: these are anomalies of made-up transactions.
const NEXT: &str = "Which of your own transactions need a higher level: isobench advise -f SCRIPT.sql --setup \
     TABLES.sql\nWhat a level costs: isobench compare -f SCRIPT.sql --setup TABLES.sql";

/// Runs the anomalies and prints the matrix.
fn matrix(options: &ProbeOptions, target: &Target, control: &Control) -> Outcome {
    let levels = options.levels.clone().unwrap_or_else(|| Level::ALL.to_vec());
    let mut printed = Ok(());
    let mut tell = |progress: Progress<'_>| match progress {
        Progress::Begin(level, probe, after) => {
            if let Some(count) = after {
                eprintln!("{level}, {}: {count} transactions commit in between", probe.known_as);
            }
            if options.verbose && printed.is_ok() {
                printed = output::print(&format!("\n== {level}: {}, {}\n", probe.name, probe.known_as));
            }
        }
        Progress::Event(event) if options.verbose && printed.is_ok() => printed = show(event),
        Progress::Event(_) | Progress::End(..) => {}
    };
    let (matrix, outcome) = run(
        &opener(target, asked(options)),
        &target.database,
        &levels,
        limits(options),
        &|| control.urgency() > Urgency::None,
        &mut tell,
    );
    printed?;
    if let Err(error) = &outcome
        && matrix.levels.is_empty()
        && !error.is_stopped()
    {
        return Err(why(error, target));
    }
    let heading = if options.verbose { "\n" } else { "" };
    let printed = output::print(&format!("{heading}{}\n{NEXT}\n", render(&matrix)));
    if let Some(path) = &options.json {
        output::save(path, &matrix.to_json())?;
    }
    printed?;
    outcome.map_err(|error| Failure::Incomplete(format!("the probe is incomplete: {error}")))?;
    verdict(&matrix, options.strict)
}

fn why(error: &ProbeError, target: &Target) -> Failure {
    match target.log_tail() {
        Some(log) if !log.is_empty() => {
            Failure::setup(format!("{error}\nthe embedded server's log ends with:\n{log}"))
        }
        _ => Failure::setup(error),
    }
}

fn verdict(matrix: &Matrix, strict: bool) -> Outcome {
    let anomalies = |count| if count == 1 { "anomaly" } else { "anomalies" };
    let (broken, limited) = (matrix.broken().count(), matrix.limited().count());
    let (product, promiser) = (&matrix.product, matrix.promiser());
    if broken > 0 {
        let what = anomalies(broken);
        return Err(Failure::Broken(format!(
            "{product} permits {broken} {what} that {promiser} excludes; see above"
        )));
    }
    let what = anomalies(limited);
    let known =
        format!("{product} permits {limited} {what} that {promiser} excludes, as is known of it; see above");
    match (limited, strict) {
        (0, _) => Ok(()),
        (_, true) => Err(Failure::Broken(known)),
        (_, false) => {
            eprintln!("note: {known} (with --strict this is exit status 3)");
            Ok(())
        }
    }
}

/// What runs specifications.
fn tester<'a>(
    options: &ProbeOptions,
    target: &Target,
    level: Option<Level>,
    stopped: &'a dyn Fn() -> bool,
) -> Tester<'a> {
    Tester {
        open: opener(target, asked(options)),
        product: target.database.product,
        level,
        options: limits(options),
        wait_detection: WaitDetection::View,
        stopped,
    }
}

/// Runs the user's specifications, at each requested level.
fn specifications(options: &ProbeOptions, specs: &[Spec], target: &Target, control: &Control) -> Outcome {
    let levels: Vec<Option<Level>> = match &options.levels {
        Some(levels) => levels.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    for level in levels {
        if let Some(level) = level {
            eprintln!("at {level}:");
        }
        let stopped = || control.urgency() > Urgency::None;
        let tester = tester(options, target, level, &stopped);
        for (spec, path) in specs.iter().zip(&options.spec) {
            let mut printed = Ok(());
            let ran = tester.run(spec, &mut |event| {
                if printed.is_ok() {
                    printed = show(&event);
                }
            });
            printed?;
            ran.map_err(|error| incomplete(&error, path))?;
        }
    }
    Ok(())
}

fn incomplete(error: &RunError, path: &Path) -> Failure {
    Failure::Incomplete(format!("{}: {error}", path.display()))
}
