//! `isobench probe --certificate`: several servers and kinds of tables on one page.

use std::path::Path;
use std::sync::Arc;

use isobench_comparison::{Failure, Outcome, Target, refusal};
use isobench_isolation::Level;
use isobench_probe::{
    Matrix, Options, Subject, Tables, Transcript, certificate as page, probe as run, render,
};
use isobench_runner::{Control, Urgency};

use super::{SESSIONS, embedded, limits, opener, require_method, verdict, why};
use crate::destination::{Kind, check_file};
use crate::options::{EmbeddedOptions, ProbeOptions};
use crate::output::{self, is_stream, say, shown};
use crate::servers::{Clients, find, start_another};

/// The program with its version, as pages name it.
const GENERATOR: &str = concat!("isobench ", env!("CARGO_PKG_VERSION"));

/// Probes each server with each kind of tables, and writes the page.
///
/// # Errors
/// A server isn't there or is lost, the probe is stopped, or a promise is broken.
pub fn certificate(options: &ProbeOptions, path: &Path) -> Outcome {
    check_file("--certificate", path, Kind::Page)?;
    let chosen = embedded(options, true)?;
    let mut servers: Vec<EmbeddedOptions> =
        options.versions.iter().map(|version| chosen.of_version(*version)).collect();
    if servers.is_empty() {
        servers.push(chosen);
    }
    let mut control: Option<Arc<Control>> = None;
    let mut subjects = Vec::new();
    for server in &servers {
        let clients = Clients { number: SESSIONS, confined: false };
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
            options.tables().iter().try_for_each(|tables| {
                subjects.push(subject(options, &target, *tables, control)?);
                Ok(())
            })
        });
        let closed = target.close(false);
        probed.and(closed)?;
    }
    output::save(path, &page(&subjects, GENERATOR))?;
    if !is_stream(path) {
        let number = subjects.len();
        let what = if number == 1 { "server with its tables" } else { "servers with their tables" };
        say(&format!("{number} {what} probed; the page is in {}", shown(path)));
    }
    subjects.iter().try_for_each(|subject| verdict(&subject.matrix, options.strict))
}

/// Probes a server with one kind of tables.
fn subject(options: &ProbeOptions, target: &Target, tables: Tables, control: &Control) -> Outcome<Subject> {
    let mut transcript = Transcript::default();
    let levels = options.levels.clone().unwrap_or_else(|| Level::ALL.to_vec());
    let own = Options { tables, ..limits(options) };
    let (matrix, outcome) = run(
        &opener(target, options.table_access_method.as_deref()),
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
    let name = name(&matrix, tables, options.table_access_method.as_deref());
    let text = render(&matrix);
    // The first line, and the summary of each level.
    let levels = matrix.levels.iter().map(|row| format!("  {}", row.sentence));
    let lines = std::iter::once(text.lines().next().unwrap_or(&name).to_owned()).chain(levels);
    output::print(&(lines.collect::<Vec<_>>().join("\n") + "\n"))?;
    Ok(Subject { name, matrix, transcript })
}

/// "PostgreSQL 15.18, partitioned tables, access method heap2".
fn name(matrix: &Matrix, tables: Tables, method: Option<&str>) -> String {
    let kind = (tables != Tables::Ordinary).then(|| format!("{tables} tables"));
    let method = method.map(|method| format!("access method {method}"));
    let server = format!("{} {}", matrix.product, matrix.version);
    [Some(server), kind, method].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
