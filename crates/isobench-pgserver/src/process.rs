//! Ends a server's processes, whoever started them, and no others.
//!
//! Every process of a PostgreSQL server has its data folder as its working directory
//! (`/proc/PID/cwd`) and runs as that folder's owner, and two embedded servers never share one. So
//! a process id from a file is never trusted: a process that works in the folder as its owner
//! belongs to the server. Signals are sent through a handle (pidfd) of the examined process, so
//! they can't reach another process that reuses its number.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::pidfile::PidFile;

/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(4);

/// Stops the server that works in `data` by an immediate shutdown, then kills what remains.
///
/// `child` is its main process if this process started it; it is reaped. Returns true if nothing
/// remains.
pub(crate) fn end_server(data: &Path, child: Option<&mut Child>) -> bool {
    let stopped = if let Some(child) = child {
        stop_child(child)
    } else {
        stop_stranger(data);
        true
    };
    stopped & kill_rest(data)
}

/// Kills all processes of the server that works in `data`, its main process first. Returns true if
/// nothing remains.
pub(crate) fn kill_server(data: &Path, child: &mut Child) -> bool {
    // It fails if the process has just ended.
    let _ = child.kill();
    kill_rest(data) & wait_for(child, LIMITS.kill).is_some()
}

/// Sends a signal to all processes of the server that works in `data`, its main process first, which
/// then starts no others.
pub(crate) fn signal_server(data: &Path, child: &Child, signal: Signal) {
    let main = Pid::from_child(child);
    // These fail if the process has just ended.
    let _ = kill_process(main, signal);
    for process in working_in(data).iter().filter(|process| process.pid != main) {
        process.signal(signal);
    }
}

/// Kills a process that serves a client of the server that works in `data`, a busy one if there is one.
/// False if there is none.
pub(crate) fn kill_backend(data: &Path) -> bool {
    let mut backends: Vec<(bool, ServerProcess)> = working_in(data)
        .into_iter()
        .filter_map(|process| Some((serves_idle_client(process.pid)?, process)))
        .collect();
    backends.sort_by_key(|(idle, _)| *idle);
    let first = backends.first();
    first.inspect(|(_, process)| process.signal(Signal::KILL)).is_some()
}

/// Sends a signal to the process by which a standby that works in `data` receives the log. False if there
/// is none.
pub(crate) fn signal_receiver(data: &Path, signal: Signal) -> bool {
    let receives =
        |process: &ServerProcess| title(process.pid).is_some_and(|title| title.contains("walreceiver"));
    let receiver = working_in(data).into_iter().find(receives);
    receiver.inspect(|process| process.signal(signal)).is_some()
}

/// A process's title (PostgreSQL manual, "Standard Unix Tools").
fn title(pid: Pid) -> Option<String> {
    let title = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).ok()?;
    Some(String::from_utf8_lossy(&title).into_owned())
}

/// Whether the client that a process serves is idle, by the process's title; `None` if it serves none.
fn serves_idle_client(pid: Pid) -> Option<bool> {
    idle_client(&title(pid)?)
}

/// The same from the title: "postgres: USER DATABASE HOST ACTIVITY", where the host is "[local]" or an
/// address with the port in parentheses (PostgreSQL manual, "Standard Unix Tools").
fn idle_client(title: &str) -> Option<bool> {
    let title = title.trim_end_matches(['\0', ' ']);
    let has_port = |word: &str| {
        let port = word.strip_suffix(')').and_then(|word| word.split_once('('));
        port.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    let of_client = title.split(' ').any(|word| word == "[local]" || has_port(word));
    (of_client && !title.contains("walsender")).then(|| title.ends_with("idle"))
}

/// Waits for a child process to end; `None` if it doesn't in time.
pub(crate) fn wait_for(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let mut status = None;
    poll(timeout, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    status
}

/// Checks every few milliseconds until `done` or the time is over; returns whether it was done.
pub(crate) fn poll(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + timeout;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(PAUSE);
    }
}

fn stop_child(child: &mut Child) -> bool {
    if matches!(child.try_wait(), Ok(None)) {
        // SIGQUIT is PostgreSQL's immediate shutdown, without a checkpoint, since the data is
        // discarded. It fails if the process has just ended, which the wait below detects.
        let _ = kill_process(Pid::from_child(child), Signal::QUIT);
    }
    if wait_for(child, LIMITS.stop).is_some() {
        return true;
    }
    let _ = child.kill();
    wait_for(child, LIMITS.kill).is_some()
}

fn stop_stranger(data: &Path) {
    let main = PidFile::read(data).and_then(|file| Pid::from_raw(file.pid));
    if let Some(main) = main.and_then(|main| ServerProcess::find(main, data)) {
        main.signal(Signal::QUIT);
        poll(LIMITS.stop, || working_in(data).is_empty());
    }
}

fn kill_rest(data: &Path) -> bool {
    poll(LIMITS.kill, || {
        let rest = working_in(data);
        for worker in &rest {
            worker.signal(Signal::KILL);
        }
        rest.is_empty()
    })
}

/// Finds the processes that work in a folder as its owner; processes that can't be examined aren't
/// the server's.
fn working_in(folder: &Path) -> Vec<ServerProcess> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter_map(|pid| ServerProcess::find(pid, folder))
        .collect()
}

/// A process that works in a folder as its owner.
struct ServerProcess {
    pid: Pid,
    /// `None` if the system has no process handles.
    handle: Option<OwnedFd>,
}

impl ServerProcess {
    fn find(pid: Pid, folder: &Path) -> Option<Self> {
        if !works_in(pid, folder) {
            return None;
        }
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
        // Checked again, because now the handle refers to the examined process.
        works_in(pid, folder).then_some(Self { pid, handle })
    }

    /// Sends a signal. It fails if the process has just ended.
    fn signal(&self, signal: Signal) {
        let _ = match &self.handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None => kill_process(self.pid, signal),
        };
    }
}

fn works_in(pid: Pid, folder: &Path) -> bool {
    let process = PathBuf::from(format!("/proc/{}", pid.as_raw_pid()));
    let owner = |path: &Path| fs::symlink_metadata(path).map(|meta| meta.uid()).ok();
    fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder)
        && owner(&process).is_some_and(|uid| owner(folder) == Some(uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_what_works_in_the_folder_is_ended() {
        let top = tempfile::tempdir().expect("folder");
        let top = top.path().canonicalize().expect("path");
        let sleeper = |folder: &Path| {
            fs::create_dir_all(folder).expect("create");
            Command::new("sleep").arg("100").current_dir(folder).spawn().expect("sleep")
        };
        let (ours, theirs) = (top.join("ours"), top.join("theirs"));
        let mut in_ours = sleeper(&ours);
        let mut in_theirs = sleeper(&theirs);
        // The process id in the file has been reused by another process, so it must not be trusted.
        fs::write(ours.join("postmaster.pid"), format!("{}\n", in_theirs.id())).expect("write");
        let reaper = std::thread::spawn(move || in_ours.wait());
        assert!(end_server(&ours, None));
        assert!(!reaper.join().expect("thread").expect("wait").success());
        assert!(matches!(in_theirs.try_wait(), Ok(None)));
        in_theirs.kill().expect("kill");
        in_theirs.wait().expect("wait");
    }

    #[test]
    fn somebody_else_in_the_folder_is_left_alone() {
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: somebody_else_in_the_folder_is_left_alone: not root");
        }
        let top = tempfile::tempdir().expect("folder");
        let data = top.path().canonicalize().expect("path");
        let mut admin = Command::new("sleep").arg("100").current_dir(&data).spawn().expect("sleep");
        std::os::unix::fs::chown(&data, Some(65534), None).expect("chown");
        assert!(end_server(&data, None));
        assert!(matches!(admin.try_wait(), Ok(None)), "root's process was killed");
        admin.kill().expect("kill");
        admin.wait().expect("wait");
    }

    #[test]
    fn titles_say_whom_a_process_serves() {
        for (title, idle) in [
            ("postgres: postgres postgres [local] INSERT", Some(false)),
            ("postgres: bench: me db 127.0.0.1(34567) idle\0", Some(true)),
            ("postgres: postgres postgres [local] idle in transaction", Some(false)),
            ("postgres: walsender postgres [local] streaming 0/3000148", None),
            ("postgres: checkpointer ", None),
            ("postgres: autovacuum worker (postgres)", None),
            ("/usr/lib/postgresql/15/bin/postgres -D /tmp/x/data", None),
        ] {
            assert_eq!(idle_client(title), idle, "{title}");
        }
    }

    #[test]
    fn a_server_that_is_gone_is_ended() {
        assert!(end_server(Path::new("/nonexistent"), None));
    }
}
