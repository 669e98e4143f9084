//! The resolved options of a connection, as values. `resolve.rs` determines them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Secret, SslMode, TlsOptions, shown};
use crate::patience::Patience;

/// The options for opening a connection.
///
/// Other crates modify single fields, for example `options` to add a setting to every session.
/// `Debug` doesn't print passwords.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConnectOptions {
    /// The servers to try, in order; never empty.
    pub hosts: Vec<Host>,
    /// The role.
    pub user: String,
    /// The password for all hosts; a host's own one (from the password file) is used only if this
    /// is `None`.
    pub password: Option<Secret>,
    /// The database.
    pub dbname: String,
    /// Command-line options for the session, such as `-csearch_path=isobench` (blanks in values are
    /// escaped by `\`).
    pub options: Option<String>,
    /// The name of the session in the server's views.
    pub application_name: Option<String>,
    /// The name used if `application_name` is `None`.
    pub fallback_application_name: Option<String>,
    /// The maximum time to wait for one host (each address of it); `None` for no limit.
    pub connect_timeout: Option<Duration>,
    /// The client encoding; `None` for the database's own.
    pub client_encoding: Option<String>,
    /// Further run-time parameters for the start-up packet.
    pub extra: Vec<(String, String)>,
    /// The use of encryption.
    pub ssl_mode: SslMode,
    /// The kind of encryption, and the trusted certificates.
    pub tls: TlsOptions,
    /// The required kind of session.
    pub target_session_attrs: TargetSessionAttrs,
    /// TCP keepalives.
    pub keepalives: Keepalives,
    /// The time for which sent data may be unacknowledged before TCP gives up; `None` for the
    /// system's default.
    pub tcp_user_timeout: Option<Duration>,
    /// Harmless problems in putting the options together, to be shown once.
    pub warnings: Vec<String>,
    /// The time limits of blocking calls.
    pub patience: Patience,
}

/// A server in the list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    /// The location.
    pub address: Address,
    /// The numeric address to connect to, which avoids name lookup.
    pub hostaddr: Option<String>,
    /// The port; for a Unix socket, a part of the socket's name.
    pub port: u16,
    /// The password for this host from the password file.
    pub password: Option<Secret>,
}

/// The location of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Address {
    /// The folder of the socket; a name that starts with `@` is in the abstract namespace (Linux).
    Unix(PathBuf),
    /// A host name or a numeric address.
    Tcp(String),
}

/// The required kind of session. Source: libpq: `target_session_attrs`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TargetSessionAttrs {
    /// Any.
    #[default]
    Any,
    /// One that can write by default.
    ReadWrite,
    /// One that can't.
    ReadOnly,
    /// One of a server that isn't a hot standby.
    Primary,
    /// One of a hot standby.
    Standby,
    /// One of a hot standby if there is one among the hosts, otherwise any.
    PreferStandby,
}

/// TCP keepalives. Source: libpq: keepalives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Keepalives {
    /// True if they are sent.
    pub enabled: bool,
    /// The idle time before the first; `None` for the system's default.
    pub idle: Option<Duration>,
    /// The interval between two; `None` for the system's default.
    pub interval: Option<Duration>,
    /// The number that may be lost; `None` for the system's default.
    pub count: Option<u32>,
}

impl Default for Keepalives {
    fn default() -> Self {
        Self { enabled: true, idle: None, interval: None, count: None }
    }
}

impl Host {
    /// The server whose socket is in the folder `directory`.
    pub fn unix(directory: impl Into<PathBuf>, port: u16) -> Self {
        Self { address: Address::Unix(directory.into()), hostaddr: None, port, password: None }
    }

    /// The server that listens at `name` (or a numeric address).
    pub fn tcp(name: impl Into<String>, port: u16) -> Self {
        Self { address: Address::Tcp(name.into()), hostaddr: None, port, password: None }
    }

    /// The path of the socket, if it is a Unix socket.
    pub fn socket_path(&self) -> Option<PathBuf> {
        match &self.address {
            Address::Unix(directory) if self.hostaddr.is_none() => Some(socket_path(directory, self.port)),
            _ => None,
        }
    }

    /// The name of the host in messages: the folder, the name, or the numeric address.
    pub fn name(&self) -> String {
        match (&self.address, &self.hostaddr) {
            (Address::Tcp(name), _) if !name.is_empty() => name.clone(),
            (_, Some(address)) => address.clone(),
            (Address::Tcp(name), None) => name.clone(),
            (Address::Unix(directory), None) => directory.display().to_string(),
        }
    }

    /// The location for messages: `name:port`.
    pub fn describe(&self) -> String {
        let name = self.name();
        let brackets = if name.contains(':') { ("[", "]") } else { ("", "") };
        format!("{}{name}{}:{}", brackets.0, brackets.1, self.port)
    }
}

fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

impl ConnectOptions {
    /// Options for one host, with defaults for everything else.
    pub fn new(host: Host, user: impl Into<String>, dbname: impl Into<String>) -> Self {
        Self {
            hosts: vec![host],
            user: user.into(),
            password: None,
            dbname: dbname.into(),
            options: None,
            application_name: None,
            fallback_application_name: Some("isobench".to_owned()),
            connect_timeout: None,
            client_encoding: None,
            extra: Vec::new(),
            ssl_mode: SslMode::default(),
            tls: TlsOptions::default(),
            target_session_attrs: TargetSessionAttrs::default(),
            keepalives: Keepalives::default(),
            tcp_user_timeout: None,
            warnings: Vec::new(),
            patience: Patience::default(),
        }
    }

    /// The target of the connection for messages: `host:port/db as user`, without the password.
    pub fn describe(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(Host::describe).collect();
        format!("{}/{} as {}", hosts.join(","), shown(&self.dbname), self.user)
    }

    /// The same options with only this host.
    #[must_use]
    pub fn at(&self, host: Host) -> Self {
        Self { hosts: vec![host], ..self.clone() }
    }

    /// The parameters of the start-up packet.
    pub fn startup_parameters(&self) -> Vec<(&str, &str)> {
        let application_name = self.application_name.as_ref().or(self.fallback_application_name.as_ref());
        let optional = [
            ("options", self.options.as_ref()),
            ("application_name", application_name),
            ("client_encoding", self.client_encoding.as_ref()),
        ];
        let mut parameters = vec![("user", self.user.as_str()), ("database", self.dbname.as_str())];
        let given = optional.into_iter().filter_map(|(name, value)| Some((name, value?.as_str())));
        parameters.extend(given.filter(|(_, value)| !value.is_empty()));
        parameters.extend(self.extra.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_hide_the_password() {
        let mut options = ConnectOptions::new(Host::tcp("db.example", 5433), "me", "shop");
        options.password = Some(Secret::new("hunter2"));
        options.hosts.push(Host::unix("/tmp", 5432));
        options.hosts.push(Host::tcp("::1", 1));
        assert_eq!(options.describe(), "db.example:5433,/tmp:5432,[::1]:1/shop as me");
        assert!(!format!("{options:?}").contains("hunter2"));
    }

    #[test]
    fn application_name_falls_back() {
        let mut options = ConnectOptions::new(Host::unix("/tmp", 1), "u", "d");
        let expected = vec![("user", "u"), ("database", "d"), ("application_name", "isobench")];
        assert_eq!(options.startup_parameters(), expected);
        options.application_name = Some("mine".to_owned());
        assert_eq!(options.startup_parameters()[2], ("application_name", "mine"));
    }
}
