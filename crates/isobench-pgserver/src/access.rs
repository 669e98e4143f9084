//! Opens a server to TCP connections from this machine. Any local user can make them, so they need
//! a password.
//!
//! Used only if the caller sets `listen_addresses`. The socket needs no password, because its
//! folder is closed to others. `initdb` sets up the authentication, so nothing has to be written to
//! the data folder, which is another user's if the caller is root.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use isobench_limits::LIMITS;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::postmaster::ServerFiles;
use crate::settings::ServerSettings;
use crate::{ServerError, log, process};

/// The source of the password.
const RANDOM: &str = "/dev/urandom";

/// Prepares a data folder whose server hasn't been started; returns the password of its superuser.
pub(crate) fn require_password(files: &ServerFiles) -> Result<String, ServerError> {
    let password = random_password();
    let password = password.map_err(|source| ServerError::io("read", Path::new(RANDOM), source))?;
    set_password(files, &password)?;
    Ok(password)
}

/// Sets the password of the superuser in a data folder whose server hasn't been started.
pub(crate) fn set_password(files: &ServerFiles, password: &str) -> Result<(), ServerError> {
    // A stand-alone backend reads SQL from its standard input, one statement per line.
    let mut arguments: Vec<OsString> = ["--single".into(), "-D".into(), files.data().into()].into();
    arguments.extend(["-c", "password_encryption=scram-sha-256", "postgres"].map(OsString::from));
    let mut child = files.spawn(&arguments, Stdio::piped())?;
    let stdin = child.stdin.take();
    let written =
        stdin.map_or(Ok(()), |mut stdin| writeln!(stdin, "ALTER ROLE postgres PASSWORD '{password}';"));
    let done = process::wait_for(&mut child, LIMITS.password);
    process::end_server(&files.data(), Some(&mut child));
    if written.is_ok() && done.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let message = format!("its password could not be set: {}", log::tail(&files.log()));
    Err(ServerError::Start { version: String::new(), message })
}

/// A TCP port that no one else is given while this exists: the operating system hands out no port
/// on which a socket is bound, and a server may listen on one on which no one does (Linux, socket(7),
/// `SO_REUSEADDR`). Elsewhere it is only a port that was free.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    _bound: Option<OwnedFd>,
    port: u16,
}

impl ReservedPort {
    /// Reserves a port on the first address to listen on.
    pub(crate) fn find(settings: &ServerSettings) -> Result<Self, ServerError> {
        let address = settings.listen.first().map_or("127.0.0.1", String::as_str);
        reserve(address).map_err(|error| ServerError::Setting {
            name: "listen_addresses".to_owned(),
            value: settings.listen.join(","),
            reason: format!("cannot listen on {address}: {error}"),
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn reserve(address: &str) -> io::Result<ReservedPort> {
    let none = || io::Error::from(io::ErrorKind::AddrNotAvailable);
    let address = (address, 0).to_socket_addrs()?.next().ok_or_else(none)?;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let bound = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_socket_reuseaddr(&bound, true)?;
    net::bind(&bound, &address)?;
    let port = SocketAddr::try_from(net::getsockname(&bound)?)?.port();
    Ok(ReservedPort { _bound: cfg!(target_os = "linux").then_some(bound), port })
}

/// Only letters and digits, which need no quoting in SQL, a shell or a URI.
fn random_password() -> io::Result<String> {
    let mut bytes = [0; size_of::<u128>()];
    File::open(RANDOM)?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use std::net::TcpListener;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_reserved_port_is_given_to_nobody_and_can_be_listened_on() {
        let reserved = reserve("127.0.0.1").expect("a port");
        let others: Vec<_> =
            (0..2000).map(|_| TcpListener::bind("127.0.0.1:0").expect("another port")).collect();
        let same = |other: &TcpListener| other.local_addr().expect("an address").port() == reserved.port();
        assert!(!others.iter().any(same));
        // The library asks for SO_REUSEADDR as PostgreSQL does.
        TcpListener::bind(("127.0.0.1", reserved.port())).expect("the reserved one");
    }

    #[test]
    fn passwords_are_long_plain_and_different() {
        let (one, two) = (random_password().expect("random"), random_password().expect("random"));
        assert_ne!(one, two);
        assert!(one.len() == 32 && one.bytes().all(|letter| letter.is_ascii_alphanumeric()), "{one}");
    }
}
