//! The running server and what a caller may ask it.

use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::binaries::{self, Binaries};
use crate::cache::Cache;
use crate::folder::RunFolder;
use crate::postmaster::{Place, Postmaster};
use crate::settings::Settings;
use crate::{ServerError, ServerOptions, access, log, sweep, template};

/// A running throw-away PostgreSQL; dropping it stops it at once and removes its folder.
///
/// The server runs in a process group of its own, so a Ctrl-C in the terminal reaches the caller
/// alone, who then drops this value. Its data and its socket lie in a folder of mode 0700 that
/// belongs to the user who runs it (the caller, or for root `postgres` or `nobody`), which lies in
/// one of the caller's.
#[derive(Debug)]
pub struct Server {
    // Dropped in this order: first the processes end, then their folder goes.
    postmaster: Postmaster,
    folder: RunFolder,
    place: Place,
    data: PathBuf,
    port: u16,
    version: String,
    origin: String,
    tcp: Option<Tcp>,
}

/// How the server is reached over TCP.
#[derive(Debug)]
struct Tcp {
    address: String,
    password: String,
}

impl Server {
    /// Starts a server and waits until it accepts connections; takes a quarter of a second, the
    /// first time with some binaries a second or two, plus the download if there is nothing
    /// installed.
    ///
    /// `note` is called with lines of progress for people. Leftovers of killed runs are removed
    /// first. Must not be called from asynchronous code (it may run a download to its end).
    ///
    /// # Errors
    /// Every [`ServerError`] but [`ServerError::Stop`]; nothing is left behind.
    pub fn start(options: &ServerOptions, note: &mut dyn FnMut(&str)) -> Result<Self, ServerError> {
        let mut settings = Settings::check(&options.settings)?;
        let account = Account::for_server()?;
        sweep::sweep_leftovers();
        let cache = Cache::locate(&account);
        let binaries = binaries::find(options, &account, &cache, note)?;
        let program = binaries.program("postgres");
        let folder = RunFolder::create(&account, &program, note)?;
        if folder.in_memory {
            note(&format!(
                "{} lies in memory: a commit costs no disk write; set TMPDIR to a folder on a disk to measure one",
                folder.path().display()
            ));
        }
        let place = Place { program, account, folder: folder.path().to_owned() };
        template::make_data(&binaries, &place, &cache, note)?;
        let tcp = open_tcp(&place, &mut settings)?;
        let Binaries { version, origin, .. } = binaries;
        let postmaster = Postmaster::start(place.clone(), &settings, &version.text)?;
        Ok(Self {
            postmaster,
            folder,
            data: place.data(),
            place,
            port: settings.port(),
            version: version.text,
            origin,
            tcp,
        })
    }

    /// Folder of the Unix socket, mode 0700.
    pub fn socket_dir(&self) -> &Path {
        &self.data
    }

    /// Port; unless the setting `listen_addresses` was given it only names the socket file.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Name of the superuser. Over the socket it needs no password.
    pub fn user(&self) -> &'static str {
        "postgres"
    }

    /// Name of the database to connect to.
    pub fn database(&self) -> &'static str {
        "postgres"
    }

    /// The superuser's random password over TCP, if the setting `listen_addresses` was given.
    pub fn password(&self) -> Option<&str> {
        self.tcp.as_ref().map(|tcp| tcp.password.as_str())
    }

    /// Version as the server states it, such as "18.3".
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Where the binaries come from: "fetched", "installed at FOLDER" or "--server-bin".
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether the data lies in memory (tmpfs), where a commit costs no disk write.
    pub fn in_memory(&self) -> bool {
        self.folder.in_memory
    }

    /// Shell command that connects psql to the server: over TCP if that was asked for, else by the
    /// socket.
    pub fn psql_line(&self) -> String {
        let (port, user, database) = (self.port, self.user(), self.database());
        if let Some(Tcp { address, password }) = &self.tcp {
            format!("PGPASSWORD={password} psql -h {address} -p {port} -U {user} {database}")
        } else {
            let folder = quote(&self.socket_dir().to_string_lossy());
            format!("psql -h {folder} -p {port} -U {user} {database}")
        }
    }

    /// Process id of the server's main process (the postmaster).
    pub fn pid(&self) -> u32 {
        self.postmaster.pid()
    }

    /// The server's data folder.
    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    /// The last lines of the server's log, 4 KiB at most.
    pub fn log_tail(&self) -> String {
        log::tail(&self.place.log())
    }

    /// The server's log; it is gone with the server.
    pub fn log_path(&self) -> PathBuf {
        self.place.log()
    }

    /// Whether the main process is alive.
    pub fn is_running(&self) -> bool {
        self.postmaster.is_running()
    }

    /// Stops the server at once, without a checkpoint, and removes its folder. Dropping does the
    /// same, but can't tell what went wrong.
    ///
    /// # Errors
    /// [`ServerError::Stop`] or [`ServerError::Io`] if something had to be left behind. That the
    /// server had ended before is no error.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.postmaster.end()?;
        self.folder.remove()
    }
}

/// Prepares what the setting `listen_addresses` asks for, and chooses a port if none was given.
fn open_tcp(place: &Place, settings: &mut Settings) -> Result<Option<Tcp>, ServerError> {
    let Some(address) = settings.listen.first().cloned() else {
        return Ok(None);
    };
    if !settings.port_is_given() {
        settings.set_port(access::free_port(settings)?);
    }
    let password = access::require_password(place)?;
    Ok(Some(Tcp { address, password }))
}

/// Quotes a text for a shell if it has to be.
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
