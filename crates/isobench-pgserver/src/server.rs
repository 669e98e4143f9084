//! The running server and its properties.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;

use crate::access::ReservedPort;
use crate::account::Account;
use crate::binaries::{self, Binaries};
use crate::cache::Cache;
use crate::folder::{MOST_STANDBYS, RunFolder};
use crate::postmaster::{Postmaster, ServerFiles};
use crate::relay::Relay;
use crate::settings::ServerSettings;
use crate::{ServerError, ServerOptions, access, log, process, sweep, template};

/// A running temporary PostgreSQL; dropping it stops it immediately and removes its folder.
///
/// The server runs in a process group of its own, so Ctrl-C in the terminal reaches only the
/// caller, who then drops this value. Its data and socket are in a folder of mode 0700 owned by the
/// user who runs it (the caller, or for root `postgres` or `nobody`), which is in a folder of the
/// caller.
#[derive(Debug)]
pub struct Server {
    // Dropped in this order: first the processes end, then their folder is removed.
    nodes: Mutex<Vec<Postmaster>>,
    /// Between the clients and each node, if there are any.
    relays: Vec<Relay>,
    folder: RunFolder,
    files: ServerFiles,
    data: PathBuf,
    settings: ServerSettings,
    standbys: usize,
    binaries: Binaries,
    cache: Cache,
    tcp: Option<Tcp>,
}

/// The prefix of the folder of a node's relay, before its number.
const RELAY: &str = "relay-";

/// How a server is asked to stop (PostgreSQL manual, "Shutting Down the Server").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Sessions are ended, then everything is written (SIGINT).
    Fast,
    /// Everything is left as it is (SIGQUIT), so that the next start is a recovery.
    Immediate,
}

/// The parameters of TCP connections.
#[derive(Debug)]
struct Tcp {
    address: String,
    password: String,
    /// Kept as long as the server, which is started again on the same port.
    _reserved: Option<ReservedPort>,
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
        let files = ServerFiles::new(program, account, folder.path());
        template::make_data(&binaries, &files, &cache, note)?;
        let tcp = open_tcp(&files, &mut settings)?;
        let standbys = options.standbys.min(MOST_STANDBYS);
        let relay = |node: usize| {
            let server = if node == 0 { files.data() } else { files.standby(node).data() };
            Relay::open(&folder.path().join(format!("{RELAY}{node}")), &server, settings.port())
        };
        let relays = (0..=standbys).filter(|_| options.relayed).map(relay).collect::<Result<_, _>>()?;
        let server = Self {
            nodes: Mutex::default(),
            relays,
            data: files.data(),
            folder,
            files,
            settings,
            standbys,
            binaries,
            cache,
            tcp,
        };
        server.start_primary()?;
        Ok(server)
    }

    /// Copies the data for the standbys, and starts the server on its own.
    fn start_primary(&self) -> Result<(), ServerError> {
        // What a server that was shut down in order has left is a base copy for its standbys.
        for number in 1..=self.standbys {
            template::copy_for_standby(&self.files, &self.files.standby(number))?;
        }
        let version = &self.binaries.version.text;
        let primary = Postmaster::start(self.files.clone(), &self.settings, version)?;
        *self.nodes() = vec![primary];
        Ok(())
    }

    /// Starts the standbys, as planned, and waits until they can be read. Each streams through a
    /// replication slot, whose name is [`Server::slot`]; it must be there.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_standbys(&self) -> Result<(), ServerError> {
        let mut nodes = self.nodes();
        for number in nodes.len()..=self.standbys {
            let settings = self.settings.following(self.socket_dir(), &self.slot(number));
            let (files, version) = (self.files.standby(number), &self.binaries.version.text);
            nodes.push(Postmaster::start(files, &settings, version)?);
        }
        Ok(())
    }

    /// The number of standbys that the server is to have.
    pub fn standbys(&self) -> usize {
        self.standbys
    }

    /// The name of a standby, by its number from 1: of its replication slot, and of its session.
    pub fn slot(&self, number: usize) -> String {
        format!("isobench_{number}")
    }

    /// The folder of a standby's Unix socket, by its number from 1.
    pub fn standby_socket_dir(&self, number: usize) -> PathBuf {
        self.files.standby(number).data()
    }

    /// The folder of the Unix socket by which clients reach a node: its own, or its relay's.
    pub fn client_socket_dir(&self, node: usize) -> PathBuf {
        match self.relays.get(node) {
            Some(relay) => relay.folder().to_owned(),
            None if node == 0 => self.data.clone(),
            None => self.standby_socket_dir(node),
        }
    }

    /// Lets nothing pass between clients and servers until [`Server::let_pass`]; nothing is lost. Does
    /// nothing without [`ServerOptions::relayed`].
    pub fn hold_up(&self) {
        self.relays.iter().for_each(Relay::hold);
    }

    /// Lets everything pass again.
    pub fn let_pass(&self) {
        self.relays.iter().for_each(Relay::go_on);
    }

    /// Cuts all connections between clients and servers, which can be opened again. Does nothing without
    /// [`ServerOptions::relayed`].
    pub fn cut(&self) {
        self.relays.iter().for_each(Relay::cut);
    }

    /// Stops the processes by which standbys receive the log (SIGSTOP), until
    /// [`Server::let_standbys_receive`]. False if there is none.
    pub fn hold_up_standbys(&self) -> bool {
        self.signal_receivers(Signal::STOP)
    }

    /// Lets the standbys receive the log again.
    pub fn let_standbys_receive(&self) {
        self.signal_receivers(Signal::CONT);
    }

    fn signal_receivers(&self, signal: Signal) -> bool {
        let standbys = (1..=self.standbys).map(|number| self.standby_socket_dir(number));
        standbys.map(|data| process::signal_receiver(&data, signal)).fold(false, |any, one| any | one)
    }

    /// Kills all processes of a node (SIGKILL): the server itself is 0, its standbys have their number.
    /// Unlike in a power failure, what the operating system has in its cache isn't lost.
    ///
    /// # Errors
    /// [`ServerError::Stop`] if a process remains.
    pub fn kill(&self, node: usize) -> Result<(), ServerError> {
        self.nodes().get_mut(node).map_or(Ok(()), Postmaster::kill)
    }

    /// Asks a node to stop, and waits until it has.
    ///
    /// # Errors
    /// [`ServerError::Stop`] if it doesn't.
    pub fn shut_down(&self, node: usize, how: Shutdown) -> Result<(), ServerError> {
        self.nodes().get_mut(node).map_or(Ok(()), |node| node.shut_down(how))
    }

    /// Starts a node again that has stopped, and waits until it accepts connections.
    ///
    /// # Errors
    /// The server's own reason.
    pub fn start_again(&self, node: usize) -> Result<(), ServerError> {
        self.nodes().get_mut(node).map_or(Ok(()), Postmaster::start_again)
    }

    /// Stops all processes of a node where they are (SIGSTOP), until [`Server::thaw`].
    pub fn freeze(&self, node: usize) {
        if let Some(node) = self.nodes().get_mut(node) {
            node.freeze();
        }
    }

    /// Lets all processes of a node go on (SIGCONT).
    pub fn thaw(&self, node: usize) {
        if let Some(node) = self.nodes().get_mut(node) {
            node.thaw();
        }
    }

    /// Kills the process of one client's session (SIGKILL), a busy one if there is one. False if there
    /// is no client. The server then ends all sessions, and recovers by itself.
    pub fn kill_backend(&self, node: usize) -> bool {
        self.nodes().get(node).is_some_and(Postmaster::kill_backend)
    }

    /// Ends the server and its standbys, and starts them on fresh data, at the same addresses. The
    /// standbys have to be started again. `note` is as in [`Server::start`].
    ///
    /// # Errors
    /// As [`Server::start`]; the server is then gone.
    pub fn renew(&self, note: &mut dyn FnMut(&str)) -> Result<(), ServerError> {
        let mut nodes = std::mem::take(&mut *self.nodes());
        for node in nodes.iter_mut().rev() {
            node.end()?;
        }
        self.folder.remove_data()?;
        template::make_data(&self.binaries, &self.files, &self.cache, note)?;
        if let Some(Tcp { password, .. }) = &self.tcp {
            access::set_password(&self.files, password)?;
        }
        self.start_primary()
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<Postmaster>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of the Unix socket, with mode 0700.
    pub fn socket_dir(&self) -> &Path {
        &self.data
    }

    /// The port. Without the setting `listen_addresses` it only determines the name of the socket
    /// file.
    pub fn port(&self) -> u16 {
        self.settings.port()
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
        &self.binaries.version.text
    }

    /// The origin of the binaries: "fetched", "installed at FOLDER" or "--server-bin".
    pub fn origin(&self) -> &str {
        &self.binaries.origin
    }

    /// True if the data is in memory (tmpfs), where a commit doesn't write to disk.
    pub fn in_memory(&self) -> bool {
        self.folder.in_memory
    }

    /// A shell command that connects psql to the server: over TCP if that is enabled, otherwise
    /// over the socket.
    pub fn psql_line(&self) -> String {
        let (port, user, database) = (self.port(), self.user(), self.database());
        if let Some(Tcp { address, password, .. }) = &self.tcp {
            format!("PGPASSWORD={password} psql -h {address} -p {port} -U {user} {database}")
        } else {
            let folder = quote(&self.socket_dir().to_string_lossy());
            format!("psql -h {folder} -p {port} -U {user} {database}")
        }
    }

    /// The process id of the server's main process (the postmaster); 0 if it couldn't be started again.
    pub fn pid(&self) -> u32 {
        self.nodes().first().map_or(0, Postmaster::pid)
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
        self.nodes().first().is_some_and(Postmaster::is_running)
    }

    /// Stops the server immediately, without a checkpoint, and removes its folder. Dropping the
    /// value does the same, but doesn't report errors.
    ///
    /// # Errors
    /// [`ServerError::Stop`] or [`ServerError::Io`] if something had to be left behind. It isn't an
    /// error if the server had already ended.
    pub fn stop(self) -> Result<(), ServerError> {
        for node in self.nodes().iter_mut().rev() {
            node.end()?;
        }
        self.folder.remove()
    }
}

/// Prepares TCP connections if `listen_addresses` is set, and chooses a port if none is given.
fn open_tcp(files: &ServerFiles, settings: &mut ServerSettings) -> Result<Option<Tcp>, ServerError> {
    let Some(address) = settings.listen.first().cloned() else {
        return Ok(None);
    };
    let mut reserved = None;
    if !settings.port_is_given() {
        let port = ReservedPort::find(settings)?;
        settings.set_port(port.port());
        reserved = Some(port);
    }
    let password = access::require_password(files)?;
    Ok(Some(Tcp { address, password, _reserved: reserved }))
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
