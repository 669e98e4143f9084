//! A real PostgreSQL for one test.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use isobench_pgwire::{ConnectOptions, Connection, Host, connect};
use isobench_testkit::installed::postgresql_programs;

/// A server in its own folder; dropping it stops it and removes the folder.
pub struct Server {
    folder: tempfile::TempDir,
    bin: PathBuf,
    port: u16,
    process: Child,
}

/// The user and group id for running PostgreSQL; `None` for those of this process.
pub fn account() -> Result<Option<(u32, u32)>, String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let accounts = std::fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
    let find = |wanted: &str| {
        let line = accounts.lines().find(|line| line.split(':').next() == Some(wanted))?;
        let ids: Vec<u32> = line.split(':').skip(2).take(2).filter_map(|id| id.parse().ok()).collect();
        Some((*ids.first()?, *ids.get(1)?))
    };
    find("postgres").or_else(|| find("nobody")).map(Some).ok_or("no unprivileged user".to_owned())
}

fn command(program: &Path, account: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some((user, group)) = account {
        command.uid(user).gid(group);
    }
    command
}

impl Server {
    /// Starts a server; `rules` are those of `pg_hba.conf`, `settings` are passed on the command
    /// line.
    pub fn start(rules: &str, settings: &[String], port: u16) -> Result<Self, String> {
        let bin = postgresql_programs().ok_or("no pg_config tells where PostgreSQL's programs are")?;
        if !bin.join("postgres").exists() {
            return Err(format!("no server in {}", bin.display()));
        }
        let account = account()?;
        let folder = tempfile::Builder::new().prefix("pgw").tempdir().map_err(|error| error.to_string())?;
        if let Some((user, group)) = account {
            chown(folder.path(), Some(user), Some(group)).map_err(|error| error.to_string())?;
        }
        let data = folder.path().join("data");
        let status = command(&bin.join("initdb"), account)
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data)
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err("initdb failed".to_owned());
        }
        std::fs::write(data.join("pg_hba.conf"), rules).map_err(|error| error.to_string())?;
        let process = command(&bin.join("postgres"), account)
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum=off", "-k"])
            .arg(folder.path())
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string()])
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .spawn()
            .map_err(|error| error.to_string())?;
        let server = Self { folder, bin, port, process };
        for _ in 0..1000 {
            match connect(&server.options("postgres")) {
                Ok(_) => return Ok(server),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Err("the server does not come up".to_owned())
    }

    /// The folder of its socket and of the folder `data`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of PostgreSQL's programs.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// The options for connecting over the Unix socket.
    pub fn options(&self, user: &str) -> ConnectOptions {
        ConnectOptions::new(Host::unix(self.folder.path(), self.port), user, "postgres")
    }

    /// Opens a session as the superuser.
    pub fn connection(&self) -> Connection {
        Connection::open(&self.options("postgres")).expect("a session")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An immediate shutdown. If it fails, the server isn't running any more.
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        }
        let _ = self.process.wait();
    }
}
