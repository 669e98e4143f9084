//! CPU time and memory of the server's processes from `/proc`, if they run on this machine.

use isobench_pgwire::{Address, Host};
use procfs::process::{Process, all_processes};

/// The way to find a server on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalServer {
    /// Its main process, the postmaster.
    Postmaster(u32),
    /// It is reached over a Unix socket or the loopback address, so it may be here: the process ids
    /// of its sessions show that.
    Maybe,
}

impl LocalServer {
    /// The way to find a server at this address: behind a Unix socket or a loopback address may be
    /// a server on this machine (or a container, or a tunnel, which the process ids show).
    pub fn of_host(host: &Host) -> Option<LocalServer> {
        let loopback = |name: &str| {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        };
        let near = match (&host.address, &host.hostaddr) {
            (_, Some(address)) => loopback(address),
            (Address::Unix(_), None) => true,
            (Address::Tcp(name), None) => loopback(name),
        };
        near.then_some(LocalServer::Maybe)
    }
}

/// The processes of a server: a main process and its children.
#[derive(Debug, Clone, Copy)]
pub struct Processes {
    postmaster: i32,
}

/// The largest difference between the start of a session's process and the start that the session
/// reports, which is a little later, in seconds.
const START_TOLERANCE: f64 = 5.0;

impl Processes {
    /// Finds the processes. `session` is the process id of one of our sessions as the server
    /// reports it, with the session's start in seconds since 1970.
    ///
    /// # Errors
    /// The reason why they aren't known to be here.
    pub fn find(local: LocalServer, session: Option<(u32, f64)>) -> Result<Processes, String> {
        let postmaster = match (local, session) {
            (LocalServer::Postmaster(pid), _) => {
                i32::try_from(pid).map_err(|_| "no process id".to_owned())?
            }
            (LocalServer::Maybe, None) => return Err("the server doesn't tell its process id".to_owned()),
            (LocalServer::Maybe, Some((pid, began))) => parent(pid, began).ok_or(
                "the server's processes aren't to be seen on this machine (another one, or a container?)",
            )?,
        };
        let processes = Processes { postmaster };
        processes
            .cpu()
            .map(|_| processes)
            .ok_or_else(|| "the server's processes aren't to be seen".to_owned())
    }

    /// CPU time of all processes so far in seconds, including those that have ended. Kernels report
    /// it in hundredths of a second for each process.
    pub fn cpu(self) -> Option<f64> {
        let main = Process::new(self.postmaster).and_then(|process| process.stat()).ok()?;
        let reaped = main.cutime.max(0).unsigned_abs() + main.cstime.max(0).unsigned_abs();
        let mut ticks = main.utime + main.stime + reaped;
        for child in self.children() {
            // A process that is ending at this moment is in the main process' sum next time.
            if let Ok(stat) = child.stat() {
                ticks += stat.utime + stat.stime;
            }
        }
        Some(ticks as f64 / procfs::ticks_per_second() as f64)
    }

    /// The sum of the processes' proportional set sizes, in which shared memory is counted once, in
    /// bytes; `None` if they may not be read. The kernel walks through all their pages for it.
    pub fn memory(self) -> Option<u64> {
        let main = Process::new(self.postmaster).ok();
        let sum: Option<u64> = self.children().chain(main).map(|process| pss(&process)).sum();
        sum.filter(|bytes| *bytes > 0)
    }

    fn children(self) -> impl Iterator<Item = Process> {
        let postmaster = self.postmaster;
        all_processes()
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter(move |process| process.stat().is_ok_and(|stat| stat.ppid == postmaster))
    }
}

/// The proportional set size in bytes: 0 for a process that has ended, `None` if it may not be
/// read.
fn pss(process: &Process) -> Option<u64> {
    match process.smaps_rollup() {
        Ok(rollup) => rollup
            .memory_map_rollup
            .iter()
            .filter_map(|map| map.extension.map.get("Pss"))
            .copied()
            .reduce(|a, b| a + b),
        Err(procfs::ProcError::NotFound(_)) => Some(0),
        Err(_) => (!process.is_alive()).then_some(0),
    }
}

/// The parent of a session's process, if that process is here: it must be one of PostgreSQL's, and
/// as old as the session.
fn parent(session: u32, began: f64) -> Option<i32> {
    let stat = Process::new(i32::try_from(session).ok()?).and_then(|process| process.stat()).ok()?;
    let boot = procfs::boot_time_secs().ok()? as f64;
    let started = boot + stat.starttime as f64 / procfs::ticks_per_second() as f64;
    (stat.comm.contains("postgres") && (started - began).abs() < START_TOLERANCE).then_some(stat.ppid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn near_and_far_addresses() {
        assert_eq!(LocalServer::of_host(&Host::unix(Path::new("/run"), 5432)), Some(LocalServer::Maybe));
        for (name, local) in [("localhost", true), ("127.0.0.1", true), ("::1", true), ("db.example", false)]
        {
            assert_eq!(LocalServer::of_host(&Host::tcp(name, 5432)).is_some(), local, "{name}");
        }
    }

    #[test]
    fn a_process_that_isnt_a_server_is_refused() {
        let own = std::process::id();
        assert!(Processes::find(LocalServer::Maybe, Some((own, 0.0))).is_err());
        assert!(Processes::find(LocalServer::Maybe, None).is_err());
        assert!(Processes::find(LocalServer::Postmaster(u32::MAX), None).is_err());
    }

    #[test]
    fn own_children_are_counted() {
        let processes = Processes::find(LocalServer::Postmaster(std::process::id()), None).unwrap();
        assert!(processes.cpu().unwrap() >= 0.0);
        assert!(processes.memory().is_none_or(|bytes| bytes > 0));
    }
}
