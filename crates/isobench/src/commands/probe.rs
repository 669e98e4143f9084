//! `isobench probe`: which anomalies each level permits, or what PostgreSQL's isolation tester would print.

use std::fs;
use std::path::Path;
use std::time::Duration;

use isobench_isolation::Level;
use isobench_probe::output::text;
use isobench_probe::{
    Event, Matrix, Options, ProbeError, Progress, RunError, Spec, Tester, probe as run, render,
};
use isobench_runner::{Control, Urgency};

use crate::failure::{Failure, Outcome};
use crate::options::{EmbeddedOptions, ProbeOptions};
use crate::output;
use crate::plan::refusal;
use crate::target::{Target, named_server};

/// Sessions at the same time: those of an interleaving, the control connection, and one that holds the place.
const SESSIONS: usize = 8;

/// The embedded server's `max_connections`, so that it summarises old transactions soon.
const FEW_CONNECTIONS: &str = "20";

/// Probes, or runs specifications.
///
/// # Errors
/// Wrong options or files, no server; interrupted, or the server is lost; a level is weaker than promised.
pub fn probe(options: &ProbeOptions) -> Outcome {
    let specs = options.spec.iter().map(|path| read(path)).collect::<Outcome<Vec<Spec>>>()?;
    let embedded = embedded(options, specs.is_empty())?;
    let (mut target, control) = Target::find(&options.connection, None, &embedded, SESSIONS)?;
    if target.standby {
        return Err(refusal(&target.place(), "probing takes transactions that write"));
    }
    target.claim_namespace()?;
    let outcome = if specs.is_empty() {
        matrix(options, &target, &control)
    } else {
        specifications(options, &specs, &target, &control)
    };
    let closed = target.close(false);
    outcome.and(closed)
}

fn read(path: &Path) -> Outcome<Spec> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::setup(format!("--spec: could not read \"{file}\": {error}")))?;
    Spec::parse(&file, &text).map_err(|error| Failure::setup(format!("--spec: {error}")))
}

/// The embedded server's options: with few connections, unless told otherwise, where that saves time.
fn embedded(options: &ProbeOptions, few: bool) -> Outcome<EmbeddedOptions> {
    let mut embedded = options.embedded.clone();
    let given = embedded.settings.iter().any(|(name, _)| name.eq_ignore_ascii_case("max_connections"));
    if few && !given && named_server(&options.connection, None)?.is_none() {
        embedded.settings.push(("max_connections".to_owned(), FEW_CONNECTIONS.to_owned()));
    }
    Ok(embedded)
}

fn limits(options: &ProbeOptions) -> Options {
    Options {
        step_timeout: Duration::from_secs_f64(options.step_timeout),
        waits_after: Duration::from_millis(options.wait_after),
    }
}

/// Shows one event: what belongs to the output, and warnings beside it.
fn show(event: &Event) -> Outcome {
    if let Event::Warning(warning) = event {
        eprintln!("{warning}");
    }
    let shown = text(event);
    if shown.is_empty() { Ok(()) } else { output::print(&shown) }
}

/// Runs the anomalies and prints the matrix.
fn matrix(options: &ProbeOptions, target: &Target, control: &Control) -> Outcome {
    let connector = target.connector();
    let levels = options.levels.clone().unwrap_or_else(|| Level::ALL.to_vec());
    let mut printed = Ok(());
    let mut tell = |progress: Progress<'_>| match progress {
        Progress::Begin(level, probe, after) => {
            if let Some(count) = after {
                eprintln!("{level}, {}: {count} transactions commit meanwhile", probe.known_as);
            }
            if options.verbose && printed.is_ok() {
                printed = output::print(&format!("\n== {level}: {}, {}\n", probe.name, probe.known_as));
            }
        }
        Progress::Event(event) if options.verbose && printed.is_ok() => printed = show(event),
        Progress::Event(_) | Progress::End(..) => {}
    };
    let (matrix, outcome) = run(
        &|| connector.open(),
        &target.database,
        &levels,
        limits(options),
        &|| control.urgency() > Urgency::None,
        &mut tell,
    );
    printed?;
    if matrix.levels.is_empty() {
        return outcome.map_err(|error| why(&error, target));
    }
    let heading = if options.verbose { "\n" } else { "" };
    let printed = output::print(&format!("{heading}{}", render(&matrix)));
    if let Some(path) = &options.json {
        output::save(path, &matrix.to_json())?;
    }
    printed?;
    outcome.map_err(|error| Failure::Incomplete(format!("the probe is incomplete: {error}")))?;
    verdict(&matrix)
}

fn why(error: &ProbeError, target: &Target) -> Failure {
    match target.log_tail() {
        Some(log) if !log.is_empty() => {
            Failure::setup(format!("{error}\nthe embedded server's log ends with:\n{log}"))
        }
        _ => Failure::setup(error),
    }
}

fn verdict(matrix: &Matrix) -> Outcome {
    match matrix.broken().count() {
        0 => Ok(()),
        count => Err(Failure::Broken(format!(
            "{} permits {count} {} that its manual excludes; see above",
            matrix.product,
            if count == 1 { "anomaly" } else { "anomalies" }
        ))),
    }
}

/// Runs the user's specifications, at each level that is asked for.
fn specifications(options: &ProbeOptions, specs: &[Spec], target: &Target, control: &Control) -> Outcome {
    let connector = target.connector();
    let levels: Vec<Option<Level>> = match &options.levels {
        Some(levels) => levels.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    for level in levels {
        if let Some(level) = level {
            eprintln!("at {level}:");
        }
        let tester = Tester {
            open: &|| connector.open(),
            product: target.database.product,
            level,
            options: limits(options),
            stopped: &|| control.urgency() > Urgency::None,
        };
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
