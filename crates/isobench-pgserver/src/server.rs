//! The running server and its properties.

use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::binaries::{self, Binaries};
use crate::cache::Cache;
use crate::folder::RunFolder;
use crate::postmaster::{Postmaster, ServerFiles};
use crate::settings::ServerSettings;
use crate::{ServerError, ServerOptions, access, log, sweep, template};

/// A running temporary PostgreSQL; dropping it stops it immediately and removes its folder.
///
/// The server runs in a process group of its own, so Ctrl-C in the terminal reaches only the
/// caller, who then drops this value. Its data and socket are in a folder of mode 0700 owned by the
/// user who runs it (the caller, or for root `postgres` or `nobody`), which is in a folder of the
/// caller.
#[derive(Debug)]
pub struct Server {
    // Dropped in this order: first the processes end, then their folder is removed.
    postmaster: Postmaster,
    folder: RunFolder,
    files: ServerFiles,
    data: PathBuf,
    port: u16,
    version: String,
    origin: String,
    tcp: Option<Tcp>,
}

/// The parameters of TCP connections.
#[derive(Debug)]
struct Tcp {
    address: String,
    password: String,
}

impl Server {
    /// Starts a server and waits until it accepts connections. This takes a quarter of a second;
    /// the first time with certain binaries, a second or two, plus the download if no server is
    /// installed.
    ///
    /// `note` is called with progress messages for the user. Leftovers of killed runs are removed
    /// first. Must not be called from asynchronous code (it may run a download to its end).
    ///
    /// # Errors
    /// Any [`ServerError`] except [`ServerError::Stop`]; nothing is left behind.
    pub fn start(options: &ServerOptions, note: &mut dyn FnMut(&str)) -> Result<Self, ServerError> {
        let mut settings = ServerSettings::check(&options.settings)?;
        let account = Account::for_server()?;
        sweep::sweep_leftovers();
        let cache = Cache::locate(&account);
        let binaries = binaries::find(options, &account, &cache, note)?;
        let program = binaries.program("postgres");
        let folder = RunFolder::create(&account, &program, note)?;
        if folder.in_memory {
            note(&format!(
                "{} is in memory: a commit doesn't write to disk; set TMPDIR to a folder on a disk to measure that",
                folder.path().display()
            ));
        }
        let files = ServerFiles { program, account, folder: folder.path().to_owned() };
        template::make_data(&binaries, &files, &cache, note)?;
        let tcp = open_tcp(&files, &mut settings)?;
        let Binaries { version, origin, .. } = binaries;
        let postmaster = Postmaster::start(files.clone(), &settings, &version.text)?;
        Ok(Self {
            postmaster,
            folder,
            data: files.data(),
            files,
            port: settings.port(),
            version: version.text,
            origin,
            tcp,
        })
    }

    /// The folder of the Unix socket, with mode 0700.
    pub fn socket_dir(&self) -> &Path {
        &self.data
    }

    /// The port. Without the setting `listen_addresses` it only determines the name of the socket
    /// file.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name of the superuser, who needs no password over the socket.
    pub fn user(&self) -> &'static str {
        "postgres"
    }

    /// The name of the database to connect to.
    pub fn database(&self) -> &'static str {
        "postgres"
    }

    /// The superuser's random password over TCP, if the setting `listen_addresses` was given.
    pub fn password(&self) -> Option<&str> {
        self.tcp.as_ref().map(|tcp| tcp.password.as_str())
    }

    /// The version as reported by the server, such as "18.3".
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The origin of the binaries: "fetched", "installed at FOLDER" or "--server-bin".
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// True if the data is in memory (tmpfs), where a commit doesn't write to disk.
    pub fn in_memory(&self) -> bool {
        self.folder.in_memory
    }

    /// A shell command that connects psql to the server: over TCP if that is enabled, otherwise
    /// over the socket.
    pub fn psql_line(&self) -> String {
        let (port, user, database) = (self.port, self.user(), self.database());
        if let Some(Tcp { address, password }) = &self.tcp {
            format!("PGPASSWORD={password} psql -h {address} -p {port} -U {user} {database}")
        } else {
            let folder = quote(&self.socket_dir().to_string_lossy());
            format!("psql -h {folder} -p {port} -U {user} {database}")
        }
    }

    /// The process id of the server's main process (the postmaster).
    pub fn pid(&self) -> u32 {
        self.postmaster.pid()
    }

    /// The server's data folder.
    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    /// The last lines of the server's log, at most 4 KiB.
    pub fn log_tail(&self) -> String {
        log::tail(&self.files.log())
    }

    /// The path of the server's log, which is removed with the server.
    pub fn log_path(&self) -> PathBuf {
        self.files.log()
    }

    /// True if the main process is alive.
    pub fn is_running(&self) -> bool {
        self.postmaster.is_running()
    }

    /// Stops the server immediately, without a checkpoint, and removes its folder. Dropping the
    /// value does the same, but doesn't report errors.
    ///
    /// # Errors
    /// [`ServerError::Stop`] or [`ServerError::Io`] if something had to be left behind. It isn't an
    /// error if the server had already ended.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.postmaster.end()?;
        self.folder.remove()
    }
}

/// Prepares TCP connections if `listen_addresses` is set, and chooses a port if none is given.
fn open_tcp(files: &ServerFiles, settings: &mut ServerSettings) -> Result<Option<Tcp>, ServerError> {
    let Some(address) = settings.listen.first().cloned() else {
        return Ok(None);
    };
    if !settings.port_is_given() {
        settings.set_port(access::free_port(settings)?);
    }
    let password = access::require_password(files)?;
    Ok(Some(Tcp { address, password }))
}

/// Quotes a text for a shell if necessary.
fn quote(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/-_.".contains(letter);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_quoted_if_need_be() {
        assert_eq!(quote("/tmp/isobench-pg-a1_B.c"), "/tmp/isobench-pg-a1_B.c");
        assert_eq!(quote("/tmp/it's here"), r"'/tmp/it'\''s here'");
    }
}
