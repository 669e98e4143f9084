//! Puts the options of a connection together. Connection strings take precedence over single
//! options, and these over the service file, the environment and defaults.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::connection_string::{is_connection_string, parse};
use super::passfile::PasswordFile;
use super::values::{Values, integer};
use super::{
    ConfigError, ConnectOptions, Env, Host, Keepalives, Secret, SslMode, TargetSessionAttrs, account,
    keywords, service, shown, tls, uri,
};

/// The default port.
const DEFAULT_PORT: u16 = 5432;

/// The default folders of sockets: that of Linux packages, and PostgreSQL's own.
const DEFAULT_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Variables that set run-time parameters. Source: libpq, Environment Variables.
const SESSION_VARIABLES: [(&str, &str); 3] =
    [("PGDATESTYLE", "datestyle"), ("PGTZ", "timezone"), ("PGGEQO", "geqo")];

/// The options of the command line.
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
    /// A password that the user entered.
    pub password: Option<String>,
}

impl Given {
    /// The connection string of the command line, or, as in pgbench, that of `PGDATABASE`.
    fn connection_string(&self, env: Env<'_>) -> Option<String> {
        let dbname = self.dbname.clone().filter(|dbname| !dbname.is_empty());
        dbname.or_else(|| env("PGDATABASE")).filter(|dbname| is_connection_string(dbname))
    }
}

impl ConnectOptions {
    /// Puts options together from the command line, the environment, the service file and the
    /// password file.
    ///
    /// As in pgbench, a connection string takes precedence over the single options of the command
    /// line.
    ///
    /// # Errors
    ///
    /// The errors of libpq, in its words, and options that isobench doesn't support.
    pub fn resolve(given: &Given, env: Env<'_>) -> Result<Self, ConfigError> {
        let values = collect(given, env)?;
        for (name, value) in values.iter() {
            if !keywords::is_secret(name) && shown::holds_secret(value) {
                return Err(ConfigError::PasswordInside(name));
            }
            if let Some(keyword) = keywords::find(name) {
                keyword.check(value)?;
            }
        }
        let user = match values.text("user") {
            Some(user) => user,
            None => account::name(env)?,
        };
        let dbname = values.text("dbname").unwrap_or_else(|| user.clone());
        let ssl_mode = ssl_mode(&values)?;
        let mut options = Self {
            hosts: hosts(&values)?,
            password: values.text("password").map(Secret::new),
            options: values.text("options"),
            application_name: values.text("application_name"),
            connect_timeout: seconds(&values, "connect_timeout")?,
            client_encoding: client_encoding(&values),
            extra: session_parameters(env),
            ssl_mode,
            tls: tls::resolve(&values, ssl_mode, env)?,
            target_session_attrs: target_session_attrs(&values)?,
            keepalives: keepalives(&values)?,
            tcp_user_timeout: positive(&values, "tcp_user_timeout")?
                .map(|limit| Duration::from_millis(limit.into())),
            // Replaced by the hosts above.
            ..Self::new(Host::unix("", DEFAULT_PORT), user, dbname)
        };
        if let Some(name) = values.text("fallback_application_name") {
            options.fallback_application_name = Some(name);
        }
        if options.password.is_none() {
            add_host_passwords(&mut options, &values, env);
        }
        Ok(options)
    }

    /// True if the command line or the environment specifies a server.
    ///
    /// Otherwise isobench uses an embedded one. Any connection option specifies a server, because a
    /// database or a role implies a server that has it. So do the environment variables for the
    /// server's location; `PGDATABASE` only if it contains a connection string, and `PGUSER` never,
    /// because both are often set permanently.
    pub fn names_server(given: &Given, env: Env<'_>) -> bool {
        ConnectOptions::named_by(given, env).is_some()
    }

    /// The option or environment variable that specifies the server, as users write it; `None` if
    /// none does. The rules are those of [`ConnectOptions::names_server`].
    pub fn named_by(given: &Given, env: Env<'_>) -> Option<&'static str> {
        let is_set = |value: Option<String>| value.is_some_and(|value| !value.is_empty());
        let options = [("-h", &given.host), ("-p", &given.port), ("-U", &given.user), ("-d", &given.dbname)];
        let option = options.into_iter().find(|(_, value)| is_set((*value).clone())).map(|(name, _)| name);
        let variable = || {
            let variables = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"];
            variables.into_iter().find(|name| is_set(env(name)))
        };
        let string = || given.connection_string(env).map(|_| "PGDATABASE");
        option.or_else(variable).or_else(string)
    }
}

/// All options from all sources; the first source of an option takes precedence.
fn collect(given: &Given, env: Env<'_>) -> Result<Values, ConfigError> {
    let mut values = Values::default();
    let single = [
        ("host", &given.host),
        ("port", &given.port),
        ("user", &given.user),
        ("password", &given.password),
        ("dbname", &given.dbname),
    ];
    for (name, value) in single {
        let value = value.as_deref().filter(|value| !value.is_empty());
        if let Some(value) = value.filter(|value| name != "dbname" || !is_connection_string(value)) {
            values.set(name, value)?;
        }
    }
    let string = given.connection_string(env);
    if let Some(text) = &string {
        let parsed = parse(text)?;
        if let Some(name) = uri::misplaced(text) {
            return Err(ConfigError::NotEncoded(name));
        }
        values.override_by(parsed);
    }
    service::apply(&mut values, env)?;
    for keyword in keywords::KEYWORDS {
        let value = Some(keyword.variable).filter(|name| !name.is_empty()).and_then(env);
        if let Some(value) = value.filter(|value| string.as_ref() != Some(value)) {
            values.set_default(keyword.name, value)?;
        }
    }
    if env("PGREQUIRESSL").is_some_and(|value| value.starts_with('1')) {
        values.set_default("sslmode", "require")?;
    }
    Ok(values)
}

/// The lists of hosts, addresses and ports, matched to each other.
fn hosts(values: &Values) -> Result<Vec<Host>, ConfigError> {
    let list = |name: &str| values.get(name).map(|list| list.split(',').collect::<Vec<_>>());
    let (names, addresses) = (list("host"), list("hostaddr"));
    let count = addresses.as_ref().or(names.as_ref()).map_or(1, Vec::len);
    if let Some(names) = &names
        && names.len() != count
    {
        let message = format!("could not match {} host names to {count} hostaddr values", names.len());
        return Err(ConfigError::InvalidValue(message));
    }
    let ports = list("port").unwrap_or_default();
    if ports.len() > 1 && ports.len() != count {
        let message = format!("could not match {} port numbers to {count} hosts", ports.len());
        return Err(ConfigError::InvalidValue(message));
    }
    let entry = |list: &Option<Vec<&str>>, index: usize| {
        list.as_ref()
            .and_then(|list| list.get(index))
            .filter(|entry| !entry.is_empty())
            .map(ToString::to_string)
    };
    (0..count)
        .map(|index| {
            let port = port(ports.get(index).or(ports.first()).copied().unwrap_or_default())?;
            let hostaddr = entry(&addresses, index);
            let host = match entry(&names, index) {
                Some(name) if name.starts_with(['/', '@']) => Host::unix(name, port),
                Some(name) => Host::tcp(name, port),
                None if hostaddr.is_some() => Host::tcp("", port),
                None => Host::unix(default_folder(port), port),
            };
            Ok(Host { hostaddr, ..host })
        })
        .collect()
}

fn port(text: &str) -> Result<u16, ConfigError> {
    if text.is_empty() {
        return Ok(DEFAULT_PORT);
    }
    match u16::try_from(integer("port", text)?) {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(ConfigError::InvalidValue(format!("invalid port number: \"{text}\""))),
    }
}

/// The default folder that contains the socket, or the first one that exists.
fn default_folder(port: u16) -> PathBuf {
    let [first, second] = DEFAULT_FOLDERS.map(Path::new);
    let has_socket = |folder: &Path| folder.join(format!(".s.PGSQL.{port}")).exists();
    let second_wins = !has_socket(first) && (has_socket(second) || !first.exists());
    if second_wins { second.to_owned() } else { first.to_owned() }
}

/// A positive number; libpq takes zero and negative numbers for "the default".
fn positive(values: &Values, name: &str) -> Result<Option<u32>, ConfigError> {
    let number = values.integer(name)?;
    Ok(number.and_then(|number| u32::try_from(number).ok()).filter(|&number| number > 0))
}

fn seconds(values: &Values, name: &str) -> Result<Option<Duration>, ConfigError> {
    Ok(positive(values, name)?.map(|seconds| Duration::from_secs(seconds.into())))
}

/// `auto` means the locale's encoding; isobench's texts are UTF-8.
fn client_encoding(values: &Values) -> Option<String> {
    values.text("client_encoding").map(|name| if name == "auto" { "UTF8".to_owned() } else { name })
}

fn session_parameters(env: Env<'_>) -> Vec<(String, String)> {
    let given = SESSION_VARIABLES.iter().filter_map(|(variable, name)| Some((name, env(variable)?)));
    given
        .filter(|(_, value)| !value.eq_ignore_ascii_case("default"))
        .map(|(name, value)| ((*name).to_owned(), value))
        .collect()
}

fn ssl_mode(values: &Values) -> Result<SslMode, ConfigError> {
    if values.get("sslmode").is_none() && values.get("sslrootcert") == Some("system") {
        // The system's authorities certify any host, so nothing weaker makes sense.
        return Ok(SslMode::VerifyFull);
    }
    let modes = [
        ("disable", SslMode::Disable),
        ("allow", SslMode::Allow),
        ("prefer", SslMode::Prefer),
        ("require", SslMode::Require),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ];
    values.choice("sslmode", &modes)
}

fn target_session_attrs(values: &Values) -> Result<TargetSessionAttrs, ConfigError> {
    let kinds = [
        ("any", TargetSessionAttrs::Any),
        ("read-write", TargetSessionAttrs::ReadWrite),
        ("read-only", TargetSessionAttrs::ReadOnly),
        ("primary", TargetSessionAttrs::Primary),
        ("standby", TargetSessionAttrs::Standby),
        ("prefer-standby", TargetSessionAttrs::PreferStandby),
    ];
    values.choice("target_session_attrs", &kinds)
}

fn keepalives(values: &Values) -> Result<Keepalives, ConfigError> {
    Ok(Keepalives {
        enabled: values.integer("keepalives")? != Some(0),
        idle: seconds(values, "keepalives_idle")?,
        interval: seconds(values, "keepalives_interval")?,
        count: positive(values, "keepalives_count")?,
    })
}

/// Looks up each host in the password file.
fn add_host_passwords(options: &mut ConnectOptions, values: &Values, env: Env<'_>) {
    let path = match values.text("passfile") {
        Some(path) => PathBuf::from(path),
        None => match account::home(env) {
            Some(home) => home.join(".pgpass"),
            None => return,
        },
    };
    let file = PasswordFile::read(&path, &mut options.warnings);
    for host in &mut options.hosts {
        host.password = file.find(host, &DEFAULT_FOLDERS, &options.dbname, &options.user);
    }
}
