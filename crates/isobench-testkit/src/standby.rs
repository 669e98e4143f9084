//! A hot standby of a running PostgreSQL: `pg_basebackup`, and a server that follows the primary.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use isobench_pgwire::{ConnectOptions, Connection, Host};

/// The maximum time to wait for the standby, which tests shouldn't reach.
const PATIENCE: Duration = Duration::from_mins(1);

/// A hot standby; dropping it ends it.
#[derive(Debug)]
pub struct Standby {
    server: Child,
    folder: PathBuf,
    primary: Host,
}

impl Standby {
    /// Copies a primary and starts a standby that follows it, with further settings (`name=value`).
    /// `programs` is the folder of its programs; `folder` is the one with its socket. It must be
    /// owned by the server's user, who also runs the standby, and will contain the standby's
    /// folder.
    ///
    /// # Panics
    /// If the copy fails, or the standby doesn't accept connections.
    pub fn start(programs: &Path, folder: &Path, port: u16, settings: &[&str]) -> Self {
        let home = folder.join("standby");
        let data = home.join("data");
        let mut copy = as_owner(&programs.join("pg_basebackup"), folder);
        copy.arg("-h").arg(folder).arg("-p").arg(port.to_string()).args(["-U", "postgres", "-R"]);
        copy.args(["-X", "stream", "-c", "fast", "-D"]).arg(&data);
        let copied = copy.output().expect("pg_basebackup can be run");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let log = File::create(folder.join("standby.log")).expect("a log");
        let mut server = as_owner(&programs.join("postgres"), folder);
        server.arg("-D").arg(&data).arg("-k").arg(&home).args(["-c", "listen_addresses=", "-p", "5432"]);
        for setting in settings {
            server.args(["-c", setting]);
        }
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let server = server.expect("postgres can be run");
        let standby = Standby { server, folder: home, primary: Host::unix(folder, port) };
        let log = || fs::read_to_string(folder.join("standby.log")).unwrap_or_default();
        until("the standby takes connections", || {
            standby.try_connect().is_ok().then_some(()).ok_or_else(log)
        });
        standby
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The host to connect to.
    pub fn host(&self) -> Host {
        Host::unix(&self.folder, 5432)
    }

    /// Opens a session as the superuser.
    ///
    /// # Panics
    /// If the standby doesn't accept connections.
    pub fn connect(&self) -> Connection {
        self.try_connect().expect("a session on the standby")
    }

    fn try_connect(&self) -> Result<Connection, isobench_pgwire::Error> {
        Connection::open(&ConnectOptions::new(self.host(), "postgres", "postgres"))
    }

    /// Waits until it has replayed everything that the primary has written so far.
    ///
    /// # Panics
    /// If one of them is gone, or it takes too long.
    pub fn catch_up(&self) {
        let options = ConnectOptions::new(self.primary.clone(), "postgres", "postgres");
        let mut primary = Connection::open(&options).expect("a session on the primary");
        let written = primary.value("select pg_current_wal_flush_lsn()").expect("a position");
        let question =
            format!("select pg_last_wal_replay_lsn() >= '{}'", written.expect("a primary has a position"));
        let mut session = self.connect();
        until("the standby catches up", || match session.value(&question) {
            Ok(Some(answer)) if answer == "t" => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        // An immediate shutdown, SIGQUIT, ends the whole server; SIGKILL would leave its processes
        // behind.
        if let Some(pid) = i32::try_from(self.server.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        }
        let _ = self.server.wait();
    }
}

/// A command that is run by the owner of the folder.
fn as_owner(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_remove("PGOPTIONS");
    if let Ok(owner) = fs::metadata(folder)
        && rustix::process::geteuid().is_root()
    {
        command.uid(owner.uid()).gid(owner.gid());
    }
    command
}

/// Repeats a check until it succeeds.
///
/// # Panics
/// If it doesn't succeed in time, with the check's last error.
pub fn until(what: &str, mut holds: impl FnMut() -> Result<(), String>) {
    let began = Instant::now();
    while let Err(why) = holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: {why}");
        thread::sleep(Duration::from_millis(20));
    }
}
