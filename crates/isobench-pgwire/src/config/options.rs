//! The options of a connection as values, all of them resolved. Where they come from is in
//! `resolve.rs`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Secret, TlsOptions, shown};
use crate::patience::Patience;

/// Everything that is needed to open a connection.
///
/// Other crates change single fields, for instance `options` to add a setting for every session.
/// `Debug` doesn't print passwords.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConnectOptions {
    /// The servers to try, in this order; never empty.
    pub hosts: Vec<Host>,
    /// The role.
    pub user: String,
    /// The password for all hosts; a host's own (from the password file) counts only where this is
    /// `None`.
    pub password: Option<Secret>,
    /// The database.
    pub dbname: String,
    /// Command-line options for the session, such as `-csearch_path=isobench` (blanks in values
    /// escaped by `\`).
    pub options: Option<String>,
    /// The name under which the server lists the session.
    pub application_name: Option<String>,
    /// The name used where `application_name` is `None`.
    pub fallback_application_name: Option<String>,
    /// Longest time to wait for one host (each address of it); `None`: no limit.
    pub connect_timeout: Option<Duration>,
    /// The encoding of texts; `None`: the database's own.
    pub client_encoding: Option<String>,
    /// Further run-time parameters for the start-up packet.
    pub extra: Vec<(String, String)>,
    /// Whether to encrypt.
    pub ssl_mode: SslMode,
    /// How to encrypt, and whose certificates count.
    pub tls: TlsOptions,
    /// Which kind of session is acceptable.
    pub target_session_attrs: TargetSessionAttrs,
    /// TCP keepalives.
    pub keepalives: Keepalives,
    /// How long sent data may stay unacknowledged before TCP gives up; `None`: the system's
    /// default.
    pub tcp_user_timeout: Option<Duration>,
    /// What went wrong without consequence while the options were put together; to be shown once.
    pub warnings: Vec<String>,
    /// How long blocking calls wait.
    pub patience: Patience,
}

/// One server of the list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    /// Where it is.
    pub address: Address,
    /// The numeric address to connect to, so that no name is looked up.
    pub hostaddr: Option<String>,
    /// Its port; over a Unix socket a part of the socket's name.
    pub port: u16,
    /// The password that the password file has for this host.
    pub password: Option<Secret>,
}

/// Where a server is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Address {
    /// A folder with the socket in it; a name that begins with `@` is in the abstract namespace
    /// (Linux).
    Unix(PathBuf),
    /// A host name or a numeric address.
    Tcp(String),
}

/// Whether a connection is encrypted. Source: libpq: sslmode.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SslMode {
    /// Never.
    Disable,
    /// Only if the server insists.
    Allow,
    /// If the server can.
    #[default]
    Prefer,
    /// Always.
    Require,
    /// Always, with a certificate of a trusted authority.
    VerifyCa,
    /// Always, with a certificate for this very host.
    VerifyFull,
}

/// Which kind of session is acceptable. Source: libpq: `target_session_attrs`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TargetSessionAttrs {
    /// Any.
    #[default]
    Any,
    /// One that can write by default.
    ReadWrite,
    /// One that can't.
    ReadOnly,
    /// One of a server that is no hot standby.
    Primary,
    /// One of a hot standby.
    Standby,
    /// One of a hot standby if there is any among the hosts, else any.
    PreferStandby,
}

/// TCP keepalives. Source: libpq: keepalives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Keepalives {
    /// Whether they are sent at all.
    pub enabled: bool,
    /// Idle time before the first; `None`: the system's default.
    pub idle: Option<Duration>,
    /// Time between two; `None`: the system's default.
    pub interval: Option<Duration>,
    /// How many may get lost; `None`: the system's default.
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

    /// The host as messages name it: the folder, the name, or the numeric address.
    pub fn name(&self) -> String {
        match (&self.address, &self.hostaddr) {
            (Address::Tcp(name), _) if !name.is_empty() => name.clone(),
            (_, Some(address)) => address.clone(),
            (Address::Tcp(name), None) => name.clone(),
            (Address::Unix(directory), None) => directory.display().to_string(),
        }
    }

    /// Where it is, for people: `name:port`.
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
    /// Options for one host, all else at its default.
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

    /// Where this leads to, for people: `host:port/db as user`, without the password.
    pub fn describe(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(Host::describe).collect();
        format!("{}/{} as {}", hosts.join(","), shown(&self.dbname), self.user)
    }

    /// The same with this host alone.
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
