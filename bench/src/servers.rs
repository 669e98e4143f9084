//! The servers under test, each started when the first case needs it.
//!
//! The null server is a thread of this program; PostgreSQL is an embedded server with its default
//! settings (except the number of connections), or a running one.

use std::path::Path;
use std::process::{Command, Stdio};

use isobench_pgserver::{Server, ServerError, ServerOptions};
use tempfile::TempDir;

use crate::case::ServerKind;
use crate::contender::Address;
use crate::null_server::{NullServer, NullServerError};

/// The maximum number of connections of the embedded server: the largest number of clients in a
/// case, and some more.
const MAX_CONNECTIONS: &str = "600";

/// The parameters of the servers.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// A running PostgreSQL to use instead of an embedded one.
    pub postgres: Option<Address>,
    /// The scale of PostgreSQL's tables.
    pub scale: u32,
    /// The binaries of the embedded server, by default the newest installed.
    pub server_bin: Option<std::path::PathBuf>,
}

/// The servers started so far; dropping them stops them.
#[derive(Debug)]
pub struct Servers {
    plan: ServerPlan,
    null: Option<(NullServer, TempDir)>,
    postgres: Option<(Option<Server>, Address)>,
}

/// The reason that a server isn't available.
#[derive(Debug, thiserror::Error)]
pub enum ServersError {
    /// The folder for the null server's socket can't be created.
    #[error("can't make a folder for the null server's socket: {0}")]
    Folder(std::io::Error),
    /// The null server.
    #[error(transparent)]
    Null(#[from] NullServerError),
    /// The embedded PostgreSQL.
    #[error("can't start PostgreSQL: {0}")]
    Postgres(#[from] ServerError),
    /// Its tables can't be filled.
    #[error("can't fill PostgreSQL's tables with {command}: {output}")]
    Fill {
        /// The command line.
        command: String,
        /// The message of the command or the system.
        output: String,
    },
}

impl Servers {
    /// No servers yet.
    pub fn new(plan: ServerPlan) -> Servers {
        Servers { plan, null: None, postgres: None }
    }

    /// The address of a case's server; starts it, and fills its tables with `pgbench`, if
    /// necessary.
    ///
    /// # Errors
    /// If the server can't be started or its tables can't be filled.
    pub fn address(&mut self, server: ServerKind, pgbench: &Path) -> Result<Address, ServersError> {
        match server {
            ServerKind::NullUnix => {
                let server = self.null()?;
                Ok(null_address(server.directory().to_string_lossy().into_owned(), server.port()))
            }
            ServerKind::NullTcp => Ok(null_address("127.0.0.1".to_string(), self.null()?.port())),
            ServerKind::Postgres => self.postgres(pgbench),
        }
    }

    fn null(&mut self) -> Result<&NullServer, ServersError> {
        let (server, _) = match &mut self.null {
            Some(running) => running,
            none => {
                let folder = TempDir::with_prefix("isobench-null-").map_err(ServersError::Folder)?;
                none.insert((NullServer::start(folder.path(), 0)?, folder))
            }
        };
        Ok(server)
    }

    fn postgres(&mut self, pgbench: &Path) -> Result<Address, ServersError> {
        if let Some((_, address)) = &self.postgres {
            return Ok(address.clone());
        }
        let (server, address) = match &self.plan.postgres {
            Some(address) => (None, address.clone()),
            None => embedded(&self.plan)?,
        };
        fill(pgbench, &address)?;
        self.postgres = Some((server, address.clone()));
        Ok(address)
    }
}

/// The address of the null server at this folder or host.
pub fn null_address(host: String, port: u16) -> Address {
    Address { host, port, user: "x".to_string(), database: "y".to_string(), scale: 1 }
}

/// An embedded PostgreSQL without tables, and its address.
///
/// # Errors
/// If it can't be started.
pub fn embedded(plan: &ServerPlan) -> Result<(Option<Server>, Address), ServersError> {
    let options = ServerOptions {
        bin: plan.server_bin.clone(),
        settings: vec![("max_connections".to_string(), MAX_CONNECTIONS.to_string())],
        ..ServerOptions::default()
    };
    let server = Server::start(&options, &mut |line| eprintln!("{line}"))?;
    eprintln!(
        "PostgreSQL {} ({}), max_connections {MAX_CONNECTIONS}, else its defaults",
        server.version(),
        server.origin()
    );
    let address = Address {
        host: server.socket_dir().to_string_lossy().into_owned(),
        port: server.port(),
        user: server.user().to_string(),
        database: server.database().to_string(),
        scale: plan.scale,
    };
    Ok((Some(server), address))
}

fn fill(pgbench: &Path, address: &Address) -> Result<(), ServersError> {
    eprintln!("filling the tables, scale {}", address.scale);
    let mut command = Command::new(pgbench);
    command.args(["-i", "-q", "-s", &address.scale.to_string(), "-h", &address.host]);
    command.args(["-p", &address.port.to_string(), "-U", &address.user, &address.database]);
    let shown = crate::client::shown(&command);
    let failed = |output: String| ServersError::Fill { command: shown, output };
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => return Err(failed(error.to_string())),
    };
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_string()))
    }
}
