//! Opens a server to TCP connections from this machine, which any user of it may make: so with a
//! password.
//!
//! Used only if the caller sets `listen_addresses`. The socket needs no password: its folder is
//! closed. That the others do is what `initdb` is asked for; so there is nothing to write into the
//! data folder, which is another user's for root.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::postmaster::Place;
use crate::settings::Settings;
use crate::{ServerError, log, process};

/// Where the password comes from.
const RANDOM: &str = "/dev/urandom";
/// How long the server may take to store the password.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Prepares a data folder whose server isn't running yet; returns the password of its superuser.
pub(crate) fn require_password(place: &Place) -> Result<String, ServerError> {
    let password = random_password();
    let password = password.map_err(|source| ServerError::io("read", Path::new(RANDOM), source))?;
    // A stand-alone backend takes SQL from its standard input, one statement a line.
    let mut arguments: Vec<OsString> = ["--single".into(), "-D".into(), place.data().into()].into();
    arguments.extend(["-c", "password_encryption=scram-sha-256", "postgres"].map(OsString::from));
    let mut child = place.spawn(&arguments, Stdio::piped())?;
    let stdin = child.stdin.take();
    let written =
        stdin.map_or(Ok(()), |mut stdin| writeln!(stdin, "ALTER ROLE postgres PASSWORD '{password}';"));
    let done = process::wait_for(&mut child, TIMEOUT);
    process::end_server(&place.data(), Some(&mut child));
    if written.is_ok() && done.is_some_and(|status| status.success()) {
        return Ok(password);
    }
    let message = format!("its password could not be set: {}", log::tail(&place.log()));
    Err(ServerError::Start { version: String::new(), message })
}

/// Finds a port nobody listens on, for a caller who gave none.
pub(crate) fn free_port(settings: &Settings) -> Result<u16, ServerError> {
    let address = settings.listen.first().map_or("127.0.0.1", String::as_str);
    let port = TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr());
    port.map(|address| address.port()).map_err(|error| ServerError::Setting {
        name: "listen_addresses".to_owned(),
        value: settings.listen.join(","),
        reason: format!("cannot listen on {address}: {error}"),
    })
}

/// Letters and digits only: nothing to quote in SQL, a shell or a URI.
fn random_password() -> io::Result<String> {
    let mut bytes = [0; size_of::<u128>()];
    File::open(RANDOM)?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_long_plain_and_different() {
        let (one, two) = (random_password().expect("random"), random_password().expect("random"));
        assert_ne!(one, two);
        assert!(one.len() == 32 && one.bytes().all(|letter| letter.is_ascii_alphanumeric()), "{one}");
    }
}
