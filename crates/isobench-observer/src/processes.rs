//! CPU time and memory of the server's processes from `/proc`, if they run on this machine.

use std::fs;
use std::io::ErrorKind;

use isobench_pgwire::{Address, Host};
use rustix::param::clock_ticks_per_second;

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
    postmaster: u32,
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
            (LocalServer::Postmaster(pid), _) => pid,
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
        let mut ticks = main.ticks + main.reaped_ticks;
        for child in self.children().into_iter().filter(|child| !idle.contains(child)) {
            // A process that is ending at this moment is in the main process' sum next time.
            ticks += stat(child).map_or(0, |stat| stat.ticks);
        }
        Some(seconds(ticks))
    }

    /// The sum of the processes' proportional set sizes, in which shared memory is counted once, in
    /// bytes; `None` if they may not be read. The kernel walks through all their pages for it.
    pub fn memory(self) -> Option<u64> {
        let sum: Option<u64> = self.children().into_iter().chain([self.postmaster]).map(pss).sum();
        sum.filter(|bytes| *bytes > 0)
    }

    /// The children of the main process, which has one thread.
    fn children(self) -> Vec<u32> {
        let list = || fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.postmaster));
        // While one of them ends, another one may be missing in the kernel's list; hardly twice.
        let Ok(lists) = list().map(|first| first + " " + &list().unwrap_or_default()) else {
            return self.search_children();
        };
        let mut children: Vec<u32> = lists.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        children.sort_unstable();
        children.dedup();
        children
    }

    /// The same from a list of all processes, for a kernel without that list.
    fn search_children(self) -> Vec<u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let own = |pid: &u32| stat(*pid).is_some_and(|stat| stat.parent == self.postmaster);
        let mut children: Vec<u32> = all.filter(own).collect();
        children.sort_unstable();
        children
    }
}

/// The state of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// The program's name, at most 15 bytes of it.
    name: String,
    /// Its parent hasn't asked yet how it ended.
    ended: bool,
    parent: u32,
    /// CPU time, and that of its ended children, in ticks of the clock.
    ticks: u64,
    reaped_ticks: u64,
    /// Its start after the system's, in ticks.
    start: u64,
}

/// The state of a process; `None` if it has ended.
fn stat(pid: u32) -> Option<Stat> {
    Stat::of(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

impl Stat {
    /// Reads the line that `proc_pid_stat(5)` describes. The name may have blanks and parentheses.
    fn of(line: &[u8]) -> Option<Stat> {
        let line = String::from_utf8_lossy(line);
        let (before, after) = line.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        // The first of them is the third of the line, as the manual counts.
        let number = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        // Times of children are signed, but never below zero.
        Some(Stat {
            name: before.split_once('(')?.1.to_owned(),
            ended: matches!(*fields.first()?, "Z" | "X"),
            parent: u32::try_from(number(4)?).ok()?,
            ticks: number(14)? + number(15)?,
            reaped_ticks: number(16)? + number(17)?,
            start: number(22)?,
        })
    }
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / clock_ticks_per_second() as f64
}

/// The proportional set size in bytes: 0 for a process that has ended, `None` if it may not be
/// read.
fn pss(pid: u32) -> Option<u64> {
    match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        Ok(text) => {
            let size = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            Some(size.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Some(0),
        // Of a process that is just ending the file can be opened, and not read.
        Err(_) => stat(pid).is_none_or(|stat| stat.ended).then_some(0),
    }
}

/// The parent of a session's process, if that process is here: it must be one of PostgreSQL's, and
/// as old as the session.
fn parent(session: u32, began: f64) -> Option<u32> {
    let stat = stat(session)?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let started = boot + seconds(stat.start);
    (stat.name.contains("postgres") && (started - began).abs() < START_TOLERANCE).then_some(stat.parent)
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
    fn a_name_may_have_anything() {
        let line =
            b"7 (a) (b c) S 3 7 7 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 900 1000 10 18446744073709551615";
        let (name, parent) = ("a) (b c".to_owned(), 3);
        assert_eq!(
            Stat::of(line),
            Some(Stat { name, ended: false, parent, ticks: 110, reaped_ticks: 15, start: 900 })
        );
        for end in 0..line.len() - 40 {
            assert_eq!(Stat::of(&line[..end]), None, "{end} bytes");
        }
    }

    #[test]
    fn own_state_is_that_of_this_process() {
        let own = stat(std::process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(pss(std::process::id()).is_some_and(|bytes| bytes > 100_000));
        assert_eq!((stat(u32::MAX), pss(u32::MAX)), (None, Some(0)));
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
        let processes = Processes { postmaster: shell.id() };
        let children = processes.children();
        assert_eq!(children.len(), 3);
        assert_eq!(children, processes.search_children());
        assert!(children.iter().all(|pid| stat(*pid).unwrap().parent == processes.postmaster));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(processes.children().is_empty());
    }
}
