//! The servers that the options select: the one that they or the environment name, or embedded
//! ones; signals are watched from then on.
//!
//! Not here: the use of a server (`target.rs`).

use std::sync::Arc;

use isobench_pgserver::{MajorVersion, Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Given, process_environment};
use isobench_runner::Control;

use crate::interrupt;
use crate::options::{ConnectionOptions, EmbeddedOptions};
use crate::output::say;
use isobench_comparison::{Failure, Outcome};
use isobench_comparison::{Target, enough_connections};

/// Finds the named server, or starts an embedded one for this number of clients, and reports it in
/// one line. From then on signals are watched, so that servers are stopped and schemas removed;
/// before that, Ctrl-C simply ends the program while it waits for a server.
///
/// # Errors
/// Wrong connection options, the server is missing, or the embedded server doesn't start.
pub fn find(
    connection: &ConnectionOptions,
    database: Option<&str>,
    embedded: &EmbeddedOptions,
    clients: usize,
) -> Outcome<(Target, Arc<Control>)> {
    let given = connection.given(database);
    let control = Arc::new(Control::new());
    if is_named(&given) {
        if embedded.any() {
            return Err(Failure::setup(
                "--server-bin, --server-version and --server-setting belong to the embedded PostgreSQL, but a server \
                 is named by option or environment; leave out one or the other",
            ));
        }
        let mut options = resolve(&given)?;
        options.patience = control.patience().clone();
        let target = Target::connect(options, &say)?;
        interrupt::watch(&control)?;
        return Ok((target, control));
    }
    let options = embedded.server_options();
    enough_connections(&options, clients)?;
    interrupt::watch(&control)?;
    let target = start_target(&options, &control)?;
    Ok((target, control))
}

/// Finds the servers of a plan: the named one, or an embedded one of each version (without
/// versions: the installed one), all running before the measurement.
///
/// # Errors
/// As [`find`].
pub fn find_all(
    connection: &ConnectionOptions,
    embedded: &EmbeddedOptions,
    versions: &[MajorVersion],
    clients: usize,
) -> Outcome<(Vec<Target>, Arc<Control>)> {
    let Some((first, rest)) = versions.split_first() else {
        let (target, control) = find(connection, None, embedded, clients)?;
        return Ok((vec![target], control));
    };
    let at = |version: &MajorVersion| EmbeddedOptions { version: Some(*version), ..embedded.clone() };
    let (target, control) = find(connection, None, &at(first), clients)?;
    let mut targets = vec![target];
    for version in rest {
        targets.push(start_target(&at(version).server_options(), &control)?);
    }
    Ok((targets, control))
}

fn start_target(options: &ServerOptions, control: &Control) -> Outcome<Target> {
    interrupt::blame(control, Target::start(options, control.patience(), &say))
}

/// Starts an embedded server.
///
/// # Errors
/// No programs, wrong settings, or any failure to start.
pub fn start(embedded: &EmbeddedOptions) -> Outcome<Server> {
    Server::start(&embedded.server_options(), &mut say).map_err(Failure::setup)
}

/// Returns connection options for the named server; `None` if there isn't one. Prints warnings.
///
/// # Errors
/// Wrong connection options.
pub fn named_server(
    connection: &ConnectionOptions,
    database: Option<&str>,
) -> Outcome<Option<ConnectOptions>> {
    let given = connection.given(database);
    if !is_named(&given) {
        return Ok(None);
    }
    let options = resolve(&given)?;
    for warning in &options.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(Some(options))
}

/// Returns whether options or environment name a server.
pub fn names_server(connection: &ConnectionOptions) -> bool {
    is_named(&connection.given(None))
}

fn is_named(given: &Given) -> bool {
    ConnectOptions::names_server(given, &process_environment)
}

fn resolve(given: &Given) -> Outcome<ConnectOptions> {
    ConnectOptions::resolve(given, &process_environment).map_err(Failure::setup)
}
