//! The machines that the options name: which one this is, the secret that they share, and their
//! meeting.
//!
//! Not here: what they do together (`isobench_comparison`).

use std::io;
use std::time::Duration;

use isobench_comparison::{Failure, Machines, Outcome};
use isobench_peers::{Credentials, Place, Secret, digest, refuse};
use isobench_trust::open_to_show;
use serde::Serialize;

use crate::options::MachineOptions;
use crate::output::say;

/// The variable with the secret that all machines share.
const SECRET: &str = "ISOBENCH_PEERS_SECRET";

/// Meets the other machines, if any are named, to share at least so many `clients`. `task` has
/// everything that must be the same on all of them; `named` is true if a server is.
///
/// # Errors
/// No server is named, it isn't known which machine this is, one is missing, or differs.
pub fn meet(
    options: &MachineOptions,
    named: bool,
    clients: usize,
    task: &impl Serialize,
) -> Outcome<Option<Machines>> {
    if !options.any() {
        return match options.rank {
            None => Ok(None),
            Some(_) => Err(unnamed()),
        };
    }
    if !named {
        return Err(Failure::setup(
            "--peers: an embedded server can't be reached by other machines; name a server (-h, -p, -d)",
        ));
    }
    let task = serde_json::to_string(task).map_err(Failure::setup)?;
    let place = place(options)?;
    if clients < place.number() {
        let few = Err(Failure::setup(format!(
            "--clients: {clients} are fewer than the {} machines of --peers, so some would have nothing to do; use \
             more clients or fewer machines",
            place.number()
        )));
        return heard(options, few);
    }
    join(options, place, &task).map(Some)
}

/// Meets the other machines to check a recording. `task` has everything that must be the same on all of
/// them.
///
/// # Errors
/// It isn't known which machine this is, one is missing, or differs.
pub fn meet_to_check(options: &MachineOptions, task: &str) -> Outcome<Machines> {
    if !options.any() {
        return Err(unnamed());
    }
    join(options, place(options)?, task)
}

fn unnamed() -> Failure {
    Failure::setup("--rank: says which of several machines this is; name them by --peers")
}

fn join(options: &MachineOptions, place: Place, task: &str) -> Outcome<Machines> {
    let credentials = credentials(options, task)?;
    say(&format!(
        "rank {} of {} at {}: waiting for the others …",
        place.rank,
        place.number(),
        place.addresses[place.rank]
    ));
    Machines::join(place, &credentials, patience(options))
}

/// Passes an outcome on. If it is a failure, the machines that wait for this one hear of it.
///
/// # Errors
/// The outcome's.
pub fn heard<T>(options: &MachineOptions, outcome: Outcome<T>) -> Outcome<T> {
    let Err(failure) = &outcome else { return outcome };
    if options.any()
        && let (Ok(place), Ok(credentials)) = (place(options), credentials(options, ""))
    {
        refuse(&place, &credentials, &failure.to_string());
    }
    outcome
}

/// The time to wait for the others at the start.
pub fn patience(options: &MachineOptions) -> Duration {
    Duration::from_secs(options.peers_wait.max(1))
}

/// What must be the same on all machines.
///
/// # Errors
/// There is no secret.
pub fn credentials(options: &MachineOptions, task: &str) -> Outcome<Credentials> {
    let secret = secret(&place(options)?)?;
    Ok(Credentials { secret, version: env!("CARGO_PKG_VERSION").to_owned(), task: digest(task) })
}

/// The place of this machine, by the options and what a launcher says.
///
/// # Errors
/// There is none.
pub fn place(options: &MachineOptions) -> Outcome<Place> {
    let addresses = match &options.peers_file {
        None => options.peers.clone(),
        Some(path) => {
            let text = open_to_show(path).and_then(io::read_to_string).map_err(|error| {
                Failure::setup(format!("--peers-file: could not read \"{}\": {error}", path.display()))
            })?;
            let plain = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
            text.lines().map(plain).filter(|line| !line.is_empty()).collect()
        }
    };
    Place::find(&addresses, options.rank, &|name| std::env::var(name).ok()).map_err(Failure::setup)
}

/// The secret that the machines share. On one machine alone there needn't be one.
fn secret(place: &Place) -> Outcome<Secret> {
    match std::env::var(SECRET) {
        Ok(text) if !text.is_empty() => Ok(Secret::new(&text)),
        _ if place.is_local() => Ok(Secret::new("")),
        _ => Err(Failure::setup(format!(
            "{SECRET} isn't set: all machines must have the same secret there, so that no other machine joins them \
             (for example: export {SECRET}=$(openssl rand -hex 16), copied to all)"
        ))),
    }
}
