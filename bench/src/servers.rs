//! The servers under test, each started when the first case needs it.
//!
//! The null server runs as a thread of this program; PostgreSQL is an embedded one with its default
//! settings (but for the number of connections), or one that is running already.

use std::path::Path;
use std::process::{Command, Stdio};

use isobench_pgserver::{Server, ServerError, ServerOptions};
use tempfile::TempDir;

use crate::case::Target;
use crate::contender::Address;
use crate::null_server::{NullServer, NullServerError};

/// Connections the embedded server admits: the most clients of a case, and some.
const MAX_CONNECTIONS: &str = "600";

/// What is needed to have the servers.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// A running PostgreSQL to use instead of an embedded one.
    pub postgres: Option<Address>,
    /// Scale of PostgreSQL's tables.
    pub scale: u32,
    /// Binaries of the embedded server, if not the newest installed.
    pub server_bin: Option<std::path::PathBuf>,
}

/// The servers started so far; dropping them stops them.
#[derive(Debug)]
pub struct Servers {
    plan: ServerPlan,
    null: Option<(NullServer, TempDir)>,
    postgres: Option<(Option<Server>, Address)>,
}

/// Why a server can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ServersError {
    /// No folder for the null server's socket.
    #[error("can't make a folder for the null server's socket: {0}")]
    Folder(std::io::Error),
    /// The null server.
    #[error(transparent)]
    Null(#[from] NullServerError),
    /// The embedded PostgreSQL.
    #[error("can't start PostgreSQL: {0}")]
    Postgres(#[from] ServerError),
    /// Its tables.
    #[error("can't fill PostgreSQL's tables with {command}: {words}")]
    Fill {
        /// The command line.
        command: String,
        /// What it or the system said.
        words: String,
    },
}

impl Servers {
    /// No server yet.
    pub fn new(plan: ServerPlan) -> Servers {
        Servers { plan, null: None, postgres: None }
    }

    /// Where a case's server is reached; starts it, and fills its tables with `pgbench`, if need
    /// be.
    ///
    /// # Errors
    /// The server can't be started or its tables can't be filled.
    pub fn address(&mut self, target: Target, pgbench: &Path) -> Result<Address, ServersError> {
        match target {
            Target::NullUnix => {
                let server = self.null()?;
                Ok(null_address(server.directory().to_string_lossy().into_owned(), server.port()))
            }
            Target::NullTcp => Ok(null_address("127.0.0.1".to_string(), self.null()?.port())),
            Target::Postgres => self.postgres(pgbench),
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

/// Where the null server is reached at this folder or host.
pub fn null_address(host: String, port: u16) -> Address {
    Address { host, port, user: "x".to_string(), database: "y".to_string(), scale: 1 }
}

/// An embedded PostgreSQL without tables, and where it is reached.
///
/// # Errors
/// It can't be started.
pub fn embedded(plan: &ServerPlan) -> Result<(Option<Server>, Address), ServersError> {
    let options = ServerOptions {
        bin: plan.server_bin.clone(),
        version: None,
        settings: vec![("max_connections".to_string(), MAX_CONNECTIONS.to_string())],
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
    let failed = |words: String| ServersError::Fill { command: shown, words };
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
