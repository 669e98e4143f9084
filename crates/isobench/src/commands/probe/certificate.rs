//! `isobench probe --certificate`: several servers and kinds of tables in one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use isobench_comparison::{Failure, Outcome, Target, refusal};
use isobench_database::Database;
use isobench_database::products::UNKNOWN;
use isobench_isolation::Level;
use isobench_probe::anomalies::Tests;
use isobench_probe::output::text;
use isobench_probe::{
    Event, Matrix, Options, Part, RunError, Spec, SpecOutcome, SpecRun, Subject, Tables, Tester, Transcript,
    probe as run, render,
};
use isobench_report::{CertificateLayout, certificate as written};
use isobench_runner::{Control, Urgency};

use super::{
    SESSIONS, admit_roles, asked, embedded, limits, opener, read, require_method, tester, verdict, why,
};
use crate::destination::{Kind, check_file};
use crate::options::{EmbeddedOptions, ProbeOptions};
use crate::output::{self, is_stream, say, shown};
use crate::servers::{Clients, find, start_another};

/// The program with its version, as pages name it.
const GENERATOR: &str = concat!("isobench ", env!("CARGO_PKG_VERSION"));

/// Probes each server with each kind of tables, and writes the file.
///
/// # Errors
/// A server isn't there or is lost, the probe is stopped, or a promise is broken.
pub fn certificate(options: &ProbeOptions, path: &Path) -> Outcome {
    let (layout, kind) = layout(path);
    check_file("--certificate", path, kind)?;
    let chosen = embedded(options, true)?;
    let mut servers: Vec<EmbeddedOptions> =
        options.versions.iter().map(|version| chosen.of_version(*version)).collect();
    if servers.is_empty() {
        servers.push(chosen);
    }
    let read = options.spec.iter().map(|path| read(path)).collect::<Outcome<Vec<(Spec, bool)>>>()?;
    let confined = read.iter().any(|(_, recorded)| *recorded);
    let specs: Vec<(&Spec, &Path)> =
        read.iter().map(|(spec, _)| spec).zip(options.spec.iter().map(PathBuf::as_path)).collect();
    let mut control: Option<Arc<Control>> = None;
    let mut subjects = Vec::new();
    for server in &servers {
        let clients = Clients { number: SESSIONS, confined };
        let mut target = if let Some(control) = &control {
            start_another(server, clients, control)?
        } else {
            let (target, found) = find(&options.connection, None, server, clients)?;
            control = Some(found);
            target
        };
        if target.standby {
            return Err(refusal(&target.place(), "probing takes transactions that write"));
        }
        require_method(options, &target)?;
        target.claim_namespace(&say)?;
        let probed = control.as_ref().map_or(Ok(()), |control| {
            for (number, tables) in options.tables().into_iter().enumerate() {
                let mut subject = subject(options, &target, tables, control)?;
                // They make tables of their own.
                if number == 0 && !specs.is_empty() {
                    admit_roles(&target)?;
                    subject.specs = run_specs(options, &specs, &target, control)?;
                }
                subjects.push(subject);
            }
            Ok(())
        });
        let closed = target.close(false);
        probed.and(closed)?;
    }
    output::save(path, &written(&subjects, GENERATOR, layout))?;
    if !is_stream(path) {
        let number = subjects.len();
        let what = if number == 1 { "server with its tables" } else { "servers with their tables" };
        say(&format!("{number} {what} probed; the certificate is in {}", shown(path)));
    }
    let matrices = || subjects.iter().flat_map(|subject| &subject.parts).map(|part| &part.matrix);
    if matrices().all(|matrix| matrix.levels.iter().all(|row| row.cells.is_empty())) {
        return Err(Failure::Incomplete("the server refuses each of these levels; see above".to_owned()));
    }
    let broken = matrices().find(|matrix| matrix.broken().count() > 0);
    let limited = || matrices().find(|matrix| matrix.limited().count() > 0);
    broken.or_else(limited).map_or(Ok(()), |matrix| verdict(matrix, options.strict))
}

/// The layout of a file by its suffix, and what an earlier one has to be.
fn layout(path: &Path) -> (CertificateLayout, Kind) {
    let suffix = path.extension().unwrap_or_default();
    if suffix.eq_ignore_ascii_case("md") {
        (CertificateLayout::Markdown, Kind::Markdown)
    } else {
        (CertificateLayout::Page, Kind::Page)
    }
}

/// Runs specifications at the server's default level, and compares what they print.
fn run_specs(
    options: &ProbeOptions,
    specs: &[(&Spec, &Path)],
    target: &Target,
    control: &Control,
) -> Outcome<Vec<SpecRun>> {
    let stopped = || control.urgency() > Urgency::None;
    let mut settings = asked(options);
    settings.extend(OF_TESTS.map(|(name, value)| (name, value.to_owned())));
    let tester = Tester { open: opener(target, settings), ..tester(options, target, None, &stopped) };
    let mut runs = Vec::new();
    for (spec, path) in specs {
        let mut output = String::new();
        let ran = tester.run(spec, &mut |event| match &event {
            // PostgreSQL's tests keep both of the tester's streams.
            Event::Warning(warning) => output.extend([warning.as_str(), "\n"]),
            _ => output.push_str(&text(&event)),
        });
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        runs.push(match ran {
            Ok(()) => SpecRun::compared(name, output, &expected(path)?),
            Err(error @ (RunError::Stopped | RunError::Connection { .. })) => {
                return Err(Failure::Incomplete(format!("{}: {error}", path.display())));
            }
            Err(error) => {
                let why = error.to_string().lines().next().unwrap_or_default().to_owned();
                SpecRun { name, outcome: SpecOutcome::Failed(why), output }
            }
        });
    }
    Ok(runs)
}

/// Settings of PostgreSQL's own tests (`pg_regress`).
const OF_TESTS: [(&str, &str); 2] = [("datestyle", "Postgres, MDY"), ("timezone", "PST8PDT")];

/// The most files of expected output for one specification (`pg_regress` looks for ten).
const MOST_EXPECTED: usize = 10;

/// The expected outputs of a specification, in PostgreSQL's layout: `specs/a.spec`, `expected/a.out`,
/// `expected/a_1.out`.
///
/// # Errors
/// One of them can't be read.
fn expected(spec: &Path) -> Outcome<Vec<String>> {
    let name = spec.file_stem().unwrap_or_default().to_string_lossy();
    let folder = spec.parent().unwrap_or(Path::new("")).join("../expected");
    let numbered = (1..MOST_EXPECTED).map(|number| format!("{name}_{number}.out"));
    let files = std::iter::once(format!("{name}.out")).chain(numbered).map(|file| folder.join(file));
    let read = |file: PathBuf| {
        isobench_trust::read_to_string(&file).map_err(|error| {
            Failure::setup(format!("--spec: could not read \"{}\": {error}", file.display()))
        })
    };
    files.filter(|file| file.is_file()).map(read).collect()
}

/// The collections of interleavings of a certificate: those of anomalies come with races and indexes.
fn collections(tests: Tests) -> &'static [Tests] {
    match tests {
        Tests::Anomalies => &[Tests::Anomalies, Tests::Races, Tests::Indexes],
        Tests::Races => &[Tests::Races],
        Tests::Indexes => &[Tests::Indexes],
        Tests::Tpcc => &[Tests::Tpcc],
    }
}

/// Probes a server with one kind of tables.
fn subject(options: &ProbeOptions, target: &Target, tables: Tables, control: &Control) -> Outcome<Subject> {
    let parts = collections(options.tests).iter().map(|tests| {
        let own = Options { tables, tests: *tests, ..limits(options) };
        part(options, own, target, control)
    });
    let parts = parts.collect::<Outcome<Vec<Part>>>()?;
    let matrix = parts.first().map(|part| &part.matrix);
    let method = options.table_access_method.as_deref();
    let name = matrix.map_or_else(String::new, |matrix| name(matrix, &target.database, tables, method));
    Ok(Subject { name, parts, specs: Vec::new() })
}

/// Executes a collection of interleavings, and prints a line for each level.
fn part(options: &ProbeOptions, own: Options, target: &Target, control: &Control) -> Outcome<Part> {
    let mut transcript = Transcript::default();
    let levels = options.levels.clone().unwrap_or_else(|| Level::ALL.to_vec());
    let (matrix, outcome) = run(
        &opener(target, asked(options)),
        &target.database,
        &levels,
        own,
        &|| control.urgency() > Urgency::None,
        &mut |progress| transcript.take(&progress),
    );
    outcome.map_err(|error| {
        if matrix.levels.is_empty() && !error.is_stopped() {
            why(&error, target)
        } else {
            Failure::Incomplete(format!("the probe is incomplete, so no certificate is written: {error}"))
        }
    })?;
    let shown = render(&matrix);
    let levels = matrix.levels.iter().map(|row| format!("  {}", row.sentence));
    let lines = std::iter::once(shown.lines().next().unwrap_or_default().to_owned()).chain(levels);
    output::print(&(lines.collect::<Vec<_>>().join("\n") + "\n"))?;
    Ok(Part { matrix, transcript })
}

/// "PostgreSQL 15.18, partitioned tables, access method heap2". A product that isobench doesn't know has the
/// name that it gives itself.
fn name(matrix: &Matrix, database: &Database, tables: Tables, method: Option<&str>) -> String {
    let kind = (tables != Tables::Ordinary).then(|| format!("{tables} tables"));
    let method = method.map(|method| format!("access method {method}"));
    let server = if database.product.name == UNKNOWN.name && !database.version_text.is_empty() {
        format!("unknown product \"{}\"", database.version_text)
    } else {
        format!("{} {}", matrix.product, matrix.version)
    };
    [Some(server), kind, method].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
