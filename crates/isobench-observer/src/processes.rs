//! CPU time and memory of the server's processes from `/proc`, if they run on this machine.

use isobench_pgwire::{Address, Host};
use procfs::FromRead;
use procfs::process::{Process, Stat, all_processes};

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
            (LocalServer::Maybe, None) => return Err("the server doesn't report its process id".to_owned()),
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
        self.cpu_except(&[])
    }

    /// The same without the processes of these sessions, which are idle: reading it takes some time
    /// for each process.
    pub(crate) fn cpu_except(self, idle: &[u32]) -> Option<f64> {
        let main = stat(self.postmaster)?;
        let reaped = main.cutime.max(0).unsigned_abs() + main.cstime.max(0).unsigned_abs();
        let mut ticks = main.utime + main.stime + reaped;
        for child in self.children() {
            if u32::try_from(child).is_ok_and(|pid| idle.contains(&pid)) {
                continue;
            }
            // A process that is ending at this moment is in the main process' sum next time.
            if let Some(stat) = stat(child) {
                ticks += stat.utime + stat.stime;
            }
        }
        Some(ticks as f64 / procfs::ticks_per_second() as f64)
    }

    /// The sum of the processes' proportional set sizes, in which shared memory is counted once, in
    /// bytes; `None` if they may not be read. The kernel walks through all their pages for it.
    pub fn memory(self) -> Option<u64> {
        let main = Process::new(self.postmaster).ok();
        let children = self.children().into_iter().filter_map(|child| Process::new(child).ok());
        let sum: Option<u64> = children.chain(main).map(|process| pss(&process)).sum();
        sum.filter(|bytes| *bytes > 0)
    }

    /// The children of the main process, which has one thread.
    fn children(self) -> Vec<i32> {
        let main = Process::new(self.postmaster).and_then(|process| process.task_main_thread());
        let Ok(main) = main else { return Vec::new() };
        // While one of them ends, another one may be missing in the kernel's list; hardly twice.
        let Ok(mut children) = main.children() else { return self.search_children() };
        children.extend(main.children().unwrap_or_default());
        children.sort_unstable();
        children.dedup();
        children.into_iter().filter_map(|pid| i32::try_from(pid).ok()).collect()
    }

    /// The same from a list of all processes, for a kernel without that list.
    fn search_children(self) -> Vec<i32> {
        let all = all_processes().into_iter().flatten().filter_map(Result::ok);
        let own = |process: &Process| process.stat().is_ok_and(|stat| stat.ppid == self.postmaster);
        all.filter(own).map(|process| process.pid()).collect()
    }
}

/// The state of a process; `None` if it has ended.
fn stat(pid: i32) -> Option<Stat> {
    Stat::from_file(format!("/proc/{pid}/stat")).ok()
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

    #[test]
    fn the_kernels_list_of_children_has_all_of_them() {
        use std::io::Read;
        use std::process::{Command, Stdio};
        // They end with the input.
        let script = "exec 3<&0; cat <&3 & cat <&3 & cat <&3 & echo started; wait";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdout.take().unwrap().read_exact(&mut [0; 8]).unwrap();
        let processes = Processes { postmaster: i32::try_from(shell.id()).unwrap() };
        let children = processes.children();
        assert_eq!(children.len(), 3);
        assert_eq!(children, processes.search_children());
        assert!(children.iter().all(|pid| stat(*pid).unwrap().ppid == processes.postmaster));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(processes.children().is_empty());
    }
}
