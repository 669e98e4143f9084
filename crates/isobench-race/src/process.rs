//! The processes that run commands, each in a process group of its own, and whose a connection is.
//!
//! Not here: what comes of it (`stage`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use procfs::net::TcpNetEntry;
use procfs::process::FDTarget;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use crate::RaceError;
use crate::answer::{Answer, CURL_FORMAT};

/// The variable that has a command's name.
pub(crate) const MARK: &str = "ISOBENCH_COMMAND";

/// The variable of the application that isobench starts, with a number of its own.
pub(crate) const SERVED: &str = "ISOBENCH_SERVED";

/// The time that killed processes have to be gone.
const GONE: Duration = Duration::from_secs(5);

/// The most bytes of an output that are kept.
const LONGEST_OUTPUT: u64 = 1 << 20;

/// The time that a process' output may stay open after its end, by processes that it left behind.
const LEFT_OPEN: Duration = Duration::from_millis(500);

/// Variables of the environment, and those to take away.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Variables to set.
    pub set: Vec<(String, String)>,
    /// Variables to remove: they would lead an application past the relay.
    pub unset: Vec<String>,
}

/// A shell's command with this environment, in a process group of its own.
pub(crate) fn shell(text: &str, environment: &Environment) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).envs(environment.set.iter().map(|(name, value)| (name, value)));
    for name in &environment.unset {
        command.env_remove(name);
    }
    command.process_group(0).stdin(Stdio::null());
    command
}

/// A command's text as it is run: `curl` also prints the status.
pub(crate) fn with_status(text: &str) -> String {
    match text.trim_start().strip_prefix("curl") {
        Some(rest) if rest.starts_with(char::is_whitespace) => format!("curl -sS -w '{CURL_FORMAT}'{rest}"),
        _ => text.to_owned(),
    }
}

/// Starts a command, and calls `ended` from another thread when it has ended. Returns its process group.
///
/// # Errors
/// There is no shell, process or thread.
pub(crate) fn start(
    text: &str,
    environment: &Environment,
    ended: impl FnOnce(Answer) + Send + 'static,
) -> Result<u32, RaceError> {
    let problem = |why: String| RaceError::Start { command: text.to_owned(), why };
    let mut child = shell(&with_status(text), environment)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| problem(error.to_string()))?;
    let (output, errors) = (child.stdout.take().map(read), child.stderr.take().map(read));
    let group = child.id();
    let wait = move || {
        let status = child.wait();
        let text = |reader: Option<Receiver<String>>| {
            reader.and_then(|reader| reader.recv_timeout(LEFT_OPEN).ok()).unwrap_or_default()
        };
        ended(Answer { exit: status.map_or(1, code), output: text(output), errors: text(errors) });
    };
    thread::Builder::new()
        .name("command".to_owned())
        .spawn(wait)
        .map_err(|error| problem(error.to_string()))?;
    Ok(group)
}

/// Reads a pipe to its end in another thread.
fn read(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    let read = move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe;
        // What was read until it broke counts.
        let _ = pipe.by_ref().take(LONGEST_OUTPUT).read_to_end(&mut bytes);
        // Nobody may wait for it any more.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        // The rest is read so that the command doesn't wait.
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    };
    // Without a thread the output is empty, and compared as such.
    let _ = thread::Builder::new().name("output".to_owned()).spawn(read);
    receiver
}

/// The exit status as a shell has it.
pub(crate) fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Sends a signal to a process group that was started here.
pub(crate) fn signal(group: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = kill_process_group(pid, signal);
    }
}

/// True if no process is left in a group that was started here.
pub(crate) fn is_gone(group: u32) -> bool {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    group.is_none_or(|group| test_kill_process_group(group) == Err(Errno::SRCH))
}

/// Ends processes that commands left behind in their groups. Each has the mark of a command, so that no
/// other process is meant that has got the number of a group meanwhile.
pub(crate) fn end_left_behind(groups: &[u32]) {
    // Most commands leave nothing behind, and a look at all processes takes long.
    let groups: Vec<u32> = groups.iter().filter(|group| !is_gone(**group)).copied().collect();
    if groups.is_empty() {
        return;
    }
    let Ok(processes) = procfs::process::all_processes() else { return };
    for process in processes.flatten() {
        let group = process.stat().ok().and_then(|stat| u32::try_from(stat.pgrp).ok());
        let is_one = group.is_some_and(|group| groups.contains(&group));
        let is_marked = || process.environ().is_ok_and(|variables| variables.contains_key(OsStr::new(MARK)));
        if is_one
            && is_marked()
            && let Some(pid) = Pid::from_raw(process.pid)
        {
            // It may have ended already.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Processes that live and belong to this group, or have this value of a variable: a process that was
/// started with it, and its descendants, whatever their groups are.
fn marked(group: u32, variable: &str, value: &str) -> Vec<Pid> {
    let Ok(processes) = procfs::process::all_processes() else { return Vec::new() };
    let is_marked = |process: &procfs::process::Process| {
        let Ok(stat) = process.stat() else { return false };
        // One that is about to end has no environment any more, but its sockets.
        let own = process.environ().ok();
        let is_own = own.is_some_and(|own| own.get(OsStr::new(variable)).is_some_and(|own| own == value));
        !matches!(stat.state, 'Z' | 'X') && (u32::try_from(stat.pgrp) == Ok(group) || is_own)
    };
    processes.flatten().filter(is_marked).filter_map(|process| Pid::from_raw(process.pid)).collect()
}

/// Ends a process that was started here with this value of a variable, and all its descendants: they have
/// some time to end by themselves.
pub(crate) fn end(child: &mut Child, (variable, value): (&str, &str), patience: Duration) {
    let wait = |child: &mut Child, patience: Duration| {
        let end = std::time::Instant::now() + patience;
        loop {
            let over =
                !matches!(child.try_wait(), Ok(None)) && marked(child.id(), variable, value).is_empty();
            if over || std::time::Instant::now() > end {
                return over;
            }
            thread::sleep(Duration::from_millis(10));
        }
    };
    // Only the group: a server ends its workers in its own order.
    signal(child.id(), Signal::TERM);
    if wait(child, patience) {
        return;
    }
    signal(child.id(), Signal::KILL);
    for process in marked(child.id(), variable, value) {
        // It may have ended already.
        let _ = kill_process(process, Signal::KILL);
    }
    wait(child, GONE);
}

/// The command of whose process group a process has opened the connection from one port to another.
pub(crate) fn owner_of(from: u16, to: u16, groups: &[(u32, usize)]) -> Option<usize> {
    if groups.is_empty() {
        return None;
    }
    let tables = [procfs::net::tcp, procfs::net::tcp6].into_iter().filter_map(|table| table().ok());
    let is_it = |entry: &TcpNetEntry| entry.local_address.port() == from && entry.remote_address.port() == to;
    let socket = tables.flatten().find(is_it)?.inode;
    let known: BTreeSet<u32> = groups.iter().map(|(group, _)| *group).collect();
    for process in procfs::process::all_processes().ok()?.flatten() {
        let Some(group) = process.stat().ok().and_then(|stat| u32::try_from(stat.pgrp).ok()) else {
            continue;
        };
        if !known.contains(&group) {
            continue;
        }
        let Ok(open) = process.fd() else { continue };
        if open.flatten().any(|file| matches!(file.target, FDTarget::Socket(inode) if inode == socket)) {
            return groups.iter().find(|(known, _)| *known == group).map(|(_, command)| *command);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_curl_is_asked_for() {
        assert_eq!(
            with_status("curl -X POST u"),
            r"curl -sS -w '\n[HTTP %{http_code} %{redirect_url}]' -X POST u"
        );
        assert_eq!(with_status("curly x"), "curly x");
    }

    #[test]
    fn a_command_answers_with_its_output_and_status() {
        let (sender, receiver) = channel();
        let environment = Environment {
            set: vec![("RACE_TEST".to_owned(), "here".to_owned())],
            unset: vec!["HOME".to_owned()],
        };
        let text = "echo \"$RACE_TEST${HOME-}\"; echo wrong >&2; exit 3";
        start(text, &environment, move |answer| sender.send(answer).expect("received")).expect("started");
        let answer = receiver.recv().expect("an answer");
        assert_eq!(answer, Answer { exit: 3, output: "here\n".to_owned(), errors: "wrong\n".to_owned() });
    }

    #[test]
    fn descendants_end_with_their_process_whatever_their_groups_are() {
        let value = format!("descendants {}", std::process::id());
        let environment = Environment { set: vec![(SERVED.to_owned(), value.clone())], unset: Vec::new() };
        let text = "setsid sleep 60 & sh -c 'trap \"\" TERM; sleep 60; sleep 60'";
        let mut child = shell(text, &environment).spawn().expect("started");
        while marked(child.id(), SERVED, &value).len() < 4 {
            thread::sleep(Duration::from_millis(5));
        }
        end(&mut child, (SERVED, &value), Duration::from_millis(50));
        assert!(marked(child.id(), SERVED, &value).is_empty());
    }

    #[test]
    fn a_process_left_behind_is_not_waited_for() {
        let (sender, receiver) = channel();
        let ended = move |answer: Answer| sender.send(answer).expect("received");
        let mark = (MARK.to_owned(), "A".to_owned());
        let environment = Environment { set: vec![mark], unset: Vec::new() };
        let group = start("sleep 30 & echo $!; exit 0", &environment, ended).expect("started");
        let answer = receiver.recv_timeout(Duration::from_secs(10)).expect("an answer");
        assert_eq!(answer.exit, 0);
        let is_there = || {
            let stats = procfs::process::all_processes().expect("processes").flatten();
            let mut groups = stats.filter_map(|process| process.stat().ok()).filter(|stat| stat.state != 'Z');
            groups.any(|stat| u32::try_from(stat.pgrp) == Ok(group))
        };
        assert!(is_there() && !is_gone(group), "it is in the command's group");
        end_left_behind(&[group]);
        while is_there() || !is_gone(group) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
