//! The programs that are measured, and their command lines for a case.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::case::Case;
use crate::raw_loop::requests::Workload;

/// The address of a server.
#[derive(Clone, Debug)]
pub struct Address {
    /// The folder of the Unix socket, or the host name.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User.
    pub user: String,
    /// Database.
    pub database: String,
    /// The scale of its tables.
    pub scale: u32,
}

/// A program that is measured.
#[derive(Clone, Debug)]
pub enum Contender {
    /// isobench (`isobench run`, or without `run` if the file is called pgbench: the drop-in, or
    /// the real one).
    Isobench(PathBuf),
    /// `isobench run` with this `--event-loop`.
    IsobenchWith(PathBuf, &'static str),
    /// pgbench.
    Pgbench(PathBuf),
    /// This program's own raw loop.
    Raw(PathBuf),
    /// The same on `io_uring`.
    RawRing(PathBuf),
}

/// isobench and pgbench.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// isobench.
    pub isobench: &'a Contender,
    /// pgbench.
    pub pgbench: &'a Contender,
}

impl<'a> Pair<'a> {
    /// Both with their names.
    pub fn named(self) -> [(&'static str, &'a Contender); 2] {
        [("isobench", self.isobench), ("pgbench", self.pgbench)]
    }
}

impl Contender {
    /// The command that runs a case for this time.
    pub fn command(&self, case: Case, address: &Address, time: Duration) -> Command {
        let seconds = time.as_secs().max(1).to_string();
        let mut command = Command::new(self.program());
        match self {
            Contender::Isobench(_) if !self.takes_pgbench_options() => {
                command.arg("run");
            }
            Contender::IsobenchWith(_, event_loop) => {
                command.args(["run", "--event-loop", event_loop]);
            }
            Contender::Raw(_) | Contender::RawRing(_) => {
                command.args(["raw-loop", "-s", &address.scale.to_string()]);
                if matches!(self, Contender::RawRing(_)) {
                    command.arg("--ring");
                }
            }
            _ => {}
        }
        command.args(["-h", &address.host, "-p", &address.port.to_string()]);
        command.args(["-U", &address.user]);
        command.args(["-c", &case.clients.to_string(), "-T", &seconds, "-M", case.mode.name()]);
        if !matches!(self, Contender::Raw(_) | Contender::RawRing(_)) {
            command.args(["-j", "1", "-n"]);
        }
        if case.workload == Workload::SelectOnly {
            command.arg("-S");
        }
        if self.takes_pgbench_options() {
            // Not -d: in version 15, for example, it means --debug, which prints several lines per
            // transaction and makes pgbench seem several times as expensive. The database name as
            // the last argument is right in all versions.
            command.arg(&address.database);
        } else {
            command.args(["-d", &address.database]);
        }
        command
    }

    /// True for pgbench, or a program of that name, which has the same command line.
    fn takes_pgbench_options(&self) -> bool {
        match self {
            Contender::Isobench(path) => path.file_name().is_some_and(|name| name == "pgbench"),
            Contender::Pgbench(_) => true,
            Contender::IsobenchWith(..) | Contender::Raw(_) | Contender::RawRing(_) => false,
        }
    }

    /// The program's file.
    pub fn program(&self) -> &Path {
        match self {
            Contender::Isobench(path)
            | Contender::IsobenchWith(path, _)
            | Contender::Pgbench(path)
            | Contender::Raw(path)
            | Contender::RawRing(path) => path,
        }
    }
}

/// Finds the installed pgbench: in `PATH`, or in `pg_config --bindir`.
pub fn find_pgbench() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("pgbench")).find(|file| file.is_file());
    found.or_else(|| {
        let output = Command::new("pg_config").arg("--bindir").output().ok()?;
        let file = Path::new(String::from_utf8(output.stdout).ok()?.trim()).join("pgbench");
        file.is_file().then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::select;
    use crate::client::shown;

    fn line(contender: &Contender, case: &str) -> String {
        let case = select(&[case.to_string()], false).unwrap()[0];
        let address =
            Address { host: "/s".into(), port: 7, user: "x".into(), database: "y".into(), scale: 3 };
        shown(&contender.command(case, &address, Duration::from_secs(2)))
    }

    #[test]
    fn isobench_and_pgbench_get_the_same_options() {
        let options = "-h /s -p 7 -U x -c 8 -T 2 -M prepared -j 1 -n -S";
        let case = "unix/select-only/prepared/8";
        assert_eq!(
            line(&Contender::Isobench("/b/isobench".into()), case),
            format!("/b/isobench run {options} -d y")
        );
        assert_eq!(line(&Contender::Pgbench("/b/pgbench".into()), case), format!("/b/pgbench {options} y"));
        assert_eq!(line(&Contender::Isobench("/c/pgbench".into()), case), format!("/c/pgbench {options} y"));
    }

    #[test]
    fn the_raw_loop_is_told_the_scale() {
        assert_eq!(
            line(&Contender::Raw("/b/me".into()), "tcp/tpcb-like/simple/1"),
            "/b/me raw-loop -s 3 -h /s -p 7 -U x -c 1 -T 2 -M simple -d y"
        );
    }

    #[test]
    fn the_event_loop_is_named() {
        let case = "unix/tpcb-like/simple/1";
        let options = "-h /s -p 7 -U x -c 1 -T 2 -M simple";
        assert_eq!(
            line(&Contender::IsobenchWith("/b/isobench".into(), "epoll"), case),
            format!("/b/isobench run --event-loop epoll {options} -j 1 -n -d y")
        );
        assert_eq!(
            line(&Contender::RawRing("/b/me".into()), case),
            format!("/b/me raw-loop -s 3 --ring {options} -d y")
        );
    }
}
