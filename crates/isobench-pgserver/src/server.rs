//! The running server and what a caller may ask it.

use std::path::{Path, PathBuf};

use crate::{ServerError, ServerOptions};

/// A running throw-away PostgreSQL; dropping it stops it and removes its folder.
#[derive(Debug)]
pub struct Server {
    folder: PathBuf,
    data: PathBuf,
    version: String,
    origin: String,
}

impl Server {
    /// Starts a server and waits until it accepts connections.
    ///
    /// `note` is called with lines of progress for people.
    ///
    /// # Errors
    /// Every [`ServerError`]; nothing is left behind.
    pub fn start(options: &ServerOptions, note: &mut dyn FnMut(&str)) -> Result<Self, ServerError> {
        crate::sweep_leftovers();
        note("looking for PostgreSQL");
        Err(ServerError::Start { version: format!("{:?}", options.version), message: String::new() })
    }

    /// Folder of the Unix socket, mode 0700.
    pub fn socket_dir(&self) -> &Path {
        &self.folder
    }

    /// Port; without `listen_addresses` it only names the socket file.
    pub fn port(&self) -> u16 {
        5432
    }

    /// Name of the superuser.
    pub fn user(&self) -> &'static str {
        "postgres"
    }

    /// Name of the database to connect to.
    pub fn database(&self) -> &'static str {
        "postgres"
    }

    /// Version as the server states it, such as "18.3".
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Where the binaries come from: "fetched", "installed at …" or "--server-bin".
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Shell command that connects psql to the server.
    pub fn psql_line(&self) -> String {
        format!("psql -h {} -p {} -U {} {}", self.folder.display(), self.port(), self.user(), self.database())
    }

    /// Process id of the server's main process (the postmaster).
    pub fn pid(&self) -> u32 {
        0
    }

    /// The server's data folder.
    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    /// The last lines of the server's log.
    pub fn log_tail(&self) -> String {
        String::new()
    }

    /// Whether the main process is alive.
    pub fn is_running(&self) -> bool {
        false
    }

    /// Stops the server at once and removes its folder.
    ///
    /// # Errors
    /// [`ServerError::Stop`] or [`ServerError::Io`] if something had to be left behind.
    pub fn stop(self) -> Result<(), ServerError> {
        Ok(())
    }
}
