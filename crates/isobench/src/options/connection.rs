//! The choice of the server: libpq's connection options, or the embedded PostgreSQL if no server is
//! named.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use isobench_comparison::ServerPlan;
use isobench_pgserver::{MajorVersion, ServerOptions};
use isobench_pgwire::Given;

use isobench_plan::{Setting, StandbyMode};

/// libpq's connection options. `-h` is the host, so help is `-?` or `--help`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection options (without any, an embedded PostgreSQL is used)")]
pub struct ConnectionOptions {
    /// Database server host or socket directory
    #[arg(short = 'h', long, value_name = "HOSTNAME")]
    pub host: Option<String>,
    /// Database server port number
    #[arg(short = 'p', long, value_name = "PORT")]
    pub port: Option<String>,
    /// Connect as this database user
    #[arg(short = 'U', long, value_name = "USERNAME")]
    pub username: Option<String>,
    /// Database name, connection string or URI
    #[arg(short = 'd', long, value_name = "DBNAME")]
    pub dbname: Option<String>,
    /// Print help
    #[arg(short = '?', long, action = ArgAction::HelpShort)]
    help: Option<bool>,
}

impl ConnectionOptions {
    /// Returns the options for libpq's parser. `database` takes precedence over `-d`.
    pub fn given(&self, database: Option<&str>) -> Given {
        Given {
            host: self.host.clone(),
            port: self.port.clone(),
            user: self.username.clone(),
            dbname: database.map(str::to_owned).or_else(|| self.dbname.clone()),
            password: None,
        }
    }
}

/// The choice and the settings of the embedded PostgreSQL.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Embedded PostgreSQL")]
pub struct EmbeddedOptions {
    /// Folder with the server's programs (initdb, postgres)
    #[arg(long = "server-bin", value_name = "DIR")]
    pub bin: Option<PathBuf>,
    /// Fetch and use this major version, 14 to 18 (19 once there is a build)
    #[arg(long = "server-version", value_name = "MAJOR")]
    pub version: Option<MajorVersion>,
    /// A setting of the server, such as fsync=off (repeatable)
    #[arg(long = "server-setting", value_name = "NAME=VALUE")]
    pub settings: Vec<Setting>,
    /// The number of its standbys.
    #[arg(skip)]
    standbys: usize,
    /// Clients reach it by a relay.
    #[arg(skip)]
    relayed: bool,
}

impl EmbeddedOptions {
    /// Returns the options of the embedded server.
    pub fn server_options(&self) -> ServerOptions {
        let settings = self.settings.iter().map(|setting| (setting.name.clone(), setting.value.clone()));
        ServerOptions {
            bin: self.bin.clone(),
            version: self.version,
            settings: settings.collect(),
            standbys: self.standbys,
            relayed: self.relayed,
        }
    }

    /// Returns whether they choose the server's programs.
    pub fn chooses(&self) -> bool {
        self.bin.is_some() || self.version.is_some()
    }

    /// Returns these options with a plan's settings added, which those of the command line
    /// override.
    #[must_use]
    pub fn with(&self, settings: &[Setting]) -> EmbeddedOptions {
        let named = |name: &str| self.settings.iter().any(|known| known.name == name);
        let plans = settings.iter().filter(|setting| !named(&setting.name));
        EmbeddedOptions { settings: plans.chain(&self.settings).cloned().collect(), ..self.clone() }
    }

    /// Returns these options for this version.
    #[must_use]
    pub fn of_version(&self, version: MajorVersion) -> EmbeddedOptions {
        EmbeddedOptions { version: Some(version), ..self.clone() }
    }

    /// Returns these options for one of the servers of a plan.
    pub fn of(&self, server: &ServerPlan) -> EmbeddedOptions {
        let setting =
            |(name, value): (&String, &String)| Setting { name: name.clone(), value: value.clone() };
        EmbeddedOptions {
            bin: server.bin.clone().or_else(|| self.bin.clone()),
            version: server.version.or(self.version),
            settings: self
                .settings
                .iter()
                .cloned()
                .chain(server.settings.iter().map(setting))
                .chain(server.standby.map(waiting).unwrap_or_default())
                .collect(),
            standbys: server.standbys,
            relayed: self.relayed,
        }
    }

    /// Returns these options for servers that clients reach by relays, or directly.
    #[must_use]
    pub fn relayed(&self, relayed: bool) -> EmbeddedOptions {
        EmbeddedOptions { relayed, ..self.clone() }
    }

    /// Returns these options for a server with a standby that commits don't wait for. Those that wait for
    /// a synchronous one (`synchronous_commit` = on) wait until they are cancelled.
    #[must_use]
    pub fn with_standby_that_nobody_waits_for(&self) -> EmbeddedOptions {
        let setting = |name: &str, value: &str| Setting { name: name.to_owned(), value: value.to_owned() };
        let own = [setting("synchronous_standby_names", "nobody"), setting("synchronous_commit", "local")];
        EmbeddedOptions { standbys: 1, ..self.with(&own) }
    }

    /// Returns whether any of them is set, which contradicts a named server.
    pub fn any(&self) -> bool {
        self.chooses() || !self.settings.is_empty()
    }
}

/// The settings with which commits wait for standbys that follow in this way.
fn waiting(mode: StandbyMode) -> Vec<Setting> {
    let setting = |name: &str, value: &str| Setting { name: name.to_owned(), value: value.to_owned() };
    // Of several standbys commits wait for the first.
    let first = setting("synchronous_standby_names", "isobench_1");
    match mode {
        StandbyMode::Async => Vec::new(),
        StandbyMode::Sync => vec![first],
        StandbyMode::RemoteWrite => vec![first, setting("synchronous_commit", "remote_write")],
        StandbyMode::RemoteApply => vec![first, setting("synchronous_commit", "remote_apply")],
    }
}
