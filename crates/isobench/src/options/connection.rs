//! Which server: libpq's connection options, and the embedded PostgreSQL where none is named.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use isobench_pgserver::{MajorVersion, ServerOptions};
use isobench_pgwire::Given;

use isobench_plan::Setting;

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
    /// The same as libpq takes them. A database that is named elsewhere counts before that of `-d`.
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

/// How the embedded PostgreSQL is chosen and set.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Embedded PostgreSQL")]
pub struct EmbeddedOptions {
    /// Folder with the server's programs (initdb, postgres)
    #[arg(long = "server-bin", value_name = "DIR")]
    pub bin: Option<PathBuf>,
    /// Fetch and use this major version, 14 to 18
    #[arg(long = "server-version", value_name = "MAJOR")]
    pub version: Option<MajorVersion>,
    /// A setting of the server, such as `max_connections=500` (repeatable)
    #[arg(long = "server-setting", value_name = "NAME=VALUE")]
    pub settings: Vec<Setting>,
}

impl EmbeddedOptions {
    /// The same as the embedded server takes them.
    pub fn server_options(&self) -> ServerOptions {
        let settings = self.settings.iter().map(|setting| (setting.name.clone(), setting.value.clone()));
        ServerOptions { bin: self.bin.clone(), version: self.version, settings: settings.collect() }
    }

    /// True if they say which programs to use.
    pub fn chooses(&self) -> bool {
        self.bin.is_some() || self.version.is_some()
    }

    /// The same with a plan's settings, which those of the command line override.
    #[must_use]
    pub fn with(&self, settings: &[Setting]) -> EmbeddedOptions {
        let named = |name: &str| self.settings.iter().any(|known| known.name == name);
        let plans = settings.iter().filter(|setting| !named(&setting.name));
        EmbeddedOptions { settings: plans.chain(&self.settings).cloned().collect(), ..self.clone() }
    }

    /// True if any of them was given, which makes no sense with a server that is named.
    pub fn any(&self) -> bool {
        self.chooses() || !self.settings.is_empty()
    }
}
