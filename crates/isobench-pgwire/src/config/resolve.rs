//! Puts the options of a connection together: command line before environment before service file before defaults.

use super::{ConfigError, ConnectOptions, Host};

/// Looks up an environment variable; tests bring their own environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the command line gave.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Given {
    /// `-h`: host names, socket folders, or a list of them.
    pub host: Option<String>,
    /// `-p`: ports.
    pub port: Option<String>,
    /// `-U`: the role.
    pub user: Option<String>,
    /// `-d`: the database, a connection string, or a URI.
    pub dbname: Option<String>,
    /// A password that was asked for.
    pub password: Option<String>,
}

/// The environment of this process; variables that aren't UTF-8 count as unset.
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl ConnectOptions {
    /// Puts options together from the command line, the environment, the service file and the password file.
    ///
    /// # Errors
    ///
    /// Whatever libpq would refuse, in its words, and what isobench doesn't have.
    pub fn resolve(given: &Given, env: Env<'_>) -> Result<Self, ConfigError> {
        let pick = |given: &Option<String>, name: &str| given.clone().or_else(|| env(name));
        let user = pick(&given.user, "PGUSER").ok_or(ConfigError::NoUser(0))?;
        let dbname = pick(&given.dbname, "PGDATABASE").unwrap_or_else(|| user.clone());
        let host = pick(&given.host, "PGHOST").unwrap_or_else(|| "/var/run/postgresql".to_owned());
        let port = pick(&given.port, "PGPORT")
            .and_then(|port| port.parse().ok())
            .unwrap_or(5432);
        let host = if host.starts_with(['/', '@']) {
            Host::unix(host, port)
        } else {
            Host::tcp(host, port)
        };
        Ok(Self::new(host, user, dbname))
    }

    /// Whether command line or environment say where the server is.
    ///
    /// If not, isobench brings its own.
    pub fn names_server(given: &Given, env: Env<'_>) -> bool {
        given.host.is_some() || given.port.is_some() || env("PGHOST").is_some() || env("PGPORT").is_some()
    }
}
