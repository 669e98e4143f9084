//! The server's main process: starting it, waiting until it is ready, stopping it in all the ways in
//! which it may stop, ending it.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use isobench_limits::LIMITS;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::account::Account;
use crate::folder::{DATA, LOG, STANDBY};
use crate::pidfile::{PidFile, Status};
use crate::settings::ServerSettings;
use crate::{ServerError, Shutdown, log, process};

/// The files of a server and the user who runs it.
#[derive(Clone, Debug)]
pub(crate) struct ServerFiles {
    /// The program `postgres`.
    pub(crate) program: PathBuf,
    /// The user who runs it.
    pub(crate) account: Account,
    /// The run's folder, which contains the data folder and the log.
    pub(crate) folder: PathBuf,
    /// The name of the data folder in it.
    name: String,
}

impl ServerFiles {
    /// The files of the server itself, in a run's folder.
    pub(crate) fn new(program: PathBuf, account: Account, folder: &Path) -> Self {
        Self { program, account, folder: folder.to_owned(), name: DATA.to_owned() }
    }

    /// The files of the server that has this data folder.
    pub(crate) fn of(program: PathBuf, account: Account, data: &Path) -> Self {
        let name = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { program, account, folder: data.parent().unwrap_or(data).to_owned(), name }
    }

    /// The files of one of its standbys, by its number from 1.
    pub(crate) fn standby(&self, number: usize) -> Self {
        Self { name: format!("{STANDBY}{number}"), ..self.clone() }
    }

    /// The data folder, which also has the socket.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The log.
    pub(crate) fn log(&self) -> PathBuf {
        if self.name == DATA { self.folder.join(LOG) } else { self.folder.join(format!("{}.log", self.name)) }
    }

    /// Starts the program with its output going to the log.
    pub(crate) fn spawn(&self, arguments: &[OsString], stdin: Stdio) -> Result<Child, ServerError> {
        let path = self.log();
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let log = log.map_err(|source| ServerError::io("write", &path, source))?;
        let errors = log.try_clone().map_err(|source| ServerError::io("write", &path, source))?;
        let mut command = self.account.command(&self.program);
        command.args(arguments).stdin(stdin).stdout(log).stderr(errors);
        command.spawn().map_err(|source| ServerError::io("run", &self.program, source))
    }

    fn arguments(&self, settings: &ServerSettings) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = ["-D".into(), self.data().into()].into();
        arguments.extend(["-k".into(), self.data().into()]);
        arguments.extend(["-p".into(), settings.port().to_string().into()]);
        let listen = format!("listen_addresses={}", settings.listen.join(","));
        arguments.extend(["-c".into(), listen.into()]);
        for (name, value) in &settings.plain {
            arguments.extend(["-c".into(), format!("{name}={value}").into()]);
        }
        arguments
    }
}

/// A running main process; the server is ended when the value is dropped.
#[derive(Debug)]
pub(crate) struct Postmaster {
    child: Child,
    files: ServerFiles,
    settings: ServerSettings,
    /// For messages.
    version: String,
    /// Its processes are stopped until [`Postmaster::thaw`].
    frozen: bool,
    /// True once the server was ended, so that it is done only once.
    ended: bool,
}

impl Postmaster {
    /// Starts a server and waits until it accepts connections. `version` is for messages.
    ///
    /// # Errors
    /// The server's own reason, attributed to a setting if it names one.
    pub(crate) fn start(
        files: ServerFiles,
        settings: &ServerSettings,
        version: &str,
    ) -> Result<Self, ServerError> {
        let child = files.spawn(&files.arguments(settings), Stdio::null())?;
        let (settings, version) = (settings.clone(), version.to_owned());
        let mut postmaster = Self { child, files, settings, version, frozen: false, ended: false };
        // Ended before returning the error, because its folder is about to be removed.
        postmaster.wait_until_ready().inspect_err(|_| {
            let _ = postmaster.end();
        })?;
        Ok(postmaster)
    }

    /// Starts the server again after it has stopped, on the same data, and waits until it accepts
    /// connections: after a crash it first recovers what its log has.
    ///
    /// # Errors
    /// The server's own reason.
    pub(crate) fn start_again(&mut self) -> Result<(), ServerError> {
        self.child = self.files.spawn(&self.files.arguments(&self.settings), Stdio::null())?;
        self.wait_until_ready()
    }

    fn wait_until_ready(&self) -> Result<(), ServerError> {
        let ready = process::poll(LIMITS.start, || self.has_status(Status::Ready) || !self.is_running());
        let running = self.is_running();
        if running && ready {
            return Ok(());
        }
        let (version, message) = (self.version.clone(), log::tail(&self.files.log()));
        if running {
            return Err(ServerError::Timeout { version, seconds: LIMITS.start.as_secs(), message });
        }
        Err(start_error(&self.files, &self.settings, &version, &message))
    }

    /// Kills all processes of the server (SIGKILL), as when its machine fails, except that what the
    /// operating system has in its cache isn't lost.
    ///
    /// # Errors
    /// [`ServerError::Stop`] if a process remains.
    pub(crate) fn kill(&mut self) -> Result<(), ServerError> {
        self.frozen = false;
        let gone = process::kill_server(&self.files.data(), &mut self.child);
        if gone { Ok(()) } else { Err(ServerError::Stop { pid: self.child.id() }) }
    }

    /// Asks the server to stop, and waits until it has (PostgreSQL manual, "Shutting Down the
    /// Server").
    ///
    /// # Errors
    /// [`ServerError::Stop`] if it doesn't within a minute.
    pub(crate) fn shut_down(&mut self, how: Shutdown) -> Result<(), ServerError> {
        let signal = match how {
            Shutdown::Fast => Signal::INT,
            Shutdown::Immediate => Signal::QUIT,
        };
        // It fails if the process has just ended, which the wait below detects.
        let _ = kill_process(Pid::from_child(&self.child), signal);
        let stopped = process::wait_for(&mut self.child, LIMITS.start).is_some();
        if stopped { Ok(()) } else { Err(ServerError::Stop { pid: self.child.id() }) }
    }

    /// Stops all processes where they are, until [`Postmaster::thaw`].
    pub(crate) fn freeze(&mut self) {
        self.frozen = true;
        process::signal_server(&self.files.data(), &self.child, Signal::STOP);
    }

    /// Lets all processes go on.
    pub(crate) fn thaw(&mut self) {
        self.frozen = false;
        process::signal_server(&self.files.data(), &self.child, Signal::CONT);
    }

    /// Kills the process of one client's session (SIGKILL), a busy one if there is one. False if there
    /// is none at all. The server then ends all sessions, and recovers.
    pub(crate) fn kill_backend(&self) -> bool {
        process::kill_backend(&self.files.data())
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True if the process is alive. It is reaped by [`end`](Self::end).
    pub(crate) fn is_running(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !self.ended && matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }

    /// Ends the server immediately, and removes its resources outside its folder.
    ///
    /// # Errors
    /// [`ServerError::Stop`] if a process remains.
    pub(crate) fn end(&mut self) -> Result<(), ServerError> {
        if self.ended {
            return Ok(());
        }
        self.ended = true;
        if self.frozen {
            self.thaw();
        }
        let gone = process::end_server(&self.files.data(), Some(&mut self.child));
        release_shared_memory(&self.files);
        if gone { Ok(()) } else { Err(ServerError::Stop { pid: self.child.id() }) }
    }

    fn has_status(&self, status: Status) -> bool {
        let file = PidFile::read(&self.files.data());
        file.is_some_and(|file| u32::try_from(file.pid) == Ok(self.child.id()) && file.status == status)
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Removes the shared memory of a server that was killed.
///
/// A killed server can't remove its segments (`/dev/shm/PostgreSQL.*` and a System V one), and its
/// `postmaster.pid` remains. The next start in the same folder removes them, so the server is
/// started and stopped again.
pub(crate) fn release_shared_memory(files: &ServerFiles) {
    let data = files.data();
    if !PidFile::exists(&data) {
        return;
    }
    let arguments = files.arguments(&ServerSettings::default());
    let Ok(mut child) = files.spawn(&arguments, Stdio::null()) else {
        return;
    };
    process::poll(LIMITS.shared_memory, || {
        let file = PidFile::read(&data).filter(|file| u32::try_from(file.pid) == Ok(child.id()));
        let has_it = file.is_some_and(|file| file.status != Status::Unknown);
        has_it || !matches!(child.try_wait(), Ok(None))
    });
    process::end_server(&data, Some(&mut child));
}

/// Makes the error for a server that ended before it was ready.
fn start_error(files: &ServerFiles, settings: &ServerSettings, version: &str, log: &str) -> ServerError {
    if log.contains("No space left on device") && !log.contains("/dev/shm") {
        return ServerError::NoSpace { folder: files.folder.clone() };
    }
    let message = log::reason(log).unwrap_or_else(|| no_reason(log));
    let named = settings.plain.iter().rev().find(|(name, _)| message.contains(&format!("\"{name}\"")));
    match named {
        Some((name, value)) => ServerError::Setting {
            name: name.clone(),
            value: value.clone(),
            reason: format!("PostgreSQL {version} refuses it: {message}"),
        },
        None => ServerError::Start { version: version.to_owned(), message },
    }
}

fn no_reason(log: &str) -> String {
    if log.is_empty() { "it ended without a message in its log".to_owned() } else { log.to_owned() }
}
