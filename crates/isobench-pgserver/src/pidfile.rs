//! Reads `postmaster.pid`, in which a server writes its process id and whether it is ready.
//!
//! It has one item per line: process id, data folder, start time, port, socket folder, listen
//! address, shared memory, status (PostgreSQL: Database File Layout; `pg_ctl -w` waits for the same
//! status).

use std::fs;
use std::io::Read;
use std::path::Path;

use isobench_trust::open_plain;

/// The file's name.
const NAME: &str = "postmaster.pid";
/// The maximum size read from the file, in bytes.
const LONGEST: u64 = 16 * 1024;
/// The line of the status, from 0.
const STATUS_LINE: usize = 7;

/// The contents of `postmaster.pid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    /// The server's main process.
    pub(crate) pid: i32,
    /// The server's status.
    pub(crate) status: Status,
}

/// A server's status as it reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Not written yet: shared memory isn't set up.
    Unknown,
    /// Shared memory is set up; "starting", "stopping" or "standby".
    Busy,
    /// Accepts connections.
    Ready,
}

impl PidFile {
    /// Reads the file in a data folder; `None` if it doesn't exist or isn't complete yet.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let mut text = String::new();
        open_plain(&data.join(NAME)).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
        Self::parse(&text)
    }

    /// True if a data folder has the file: its server is running, or was killed.
    pub(crate) fn exists(data: &Path) -> bool {
        fs::symlink_metadata(data.join(NAME)).is_ok()
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        // A stand-alone backend writes its process id negated.
        let pid = lines.next()?.trim().parse::<i32>().ok().filter(|pid| *pid > 0)?;
        let status = match lines.nth(STATUS_LINE - 1).map(str::trim) {
            None | Some("") => Status::Unknown,
            Some("ready") => Status::Ready,
            Some(_) => Status::Busy,
        };
        Some(Self { pid, status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_servers_file_is_read() {
        let text = "4711\n/tmp/x/data\n1700000000\n5432\n/tmp/x\n\n  1234567   8\nready   \n";
        assert_eq!(PidFile::parse(text), Some(PidFile { pid: 4711, status: Status::Ready }));
        let starting = text.replace("ready   ", "starting");
        assert_eq!(PidFile::parse(&starting).map(|file| file.status), Some(Status::Busy));
    }

    #[test]
    fn unfinished_files_are_not_ready() {
        assert_eq!(PidFile::parse("4711\n/tmp/x"), Some(PidFile { pid: 4711, status: Status::Unknown }));
        for text in ["", "\n", "x", "-5\n/tmp", "0\n", "99999999999\n"] {
            assert_eq!(PidFile::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn only_a_plain_file_is_read() {
        let top = tempfile::tempdir().expect("folder");
        let (data, text) = (top.path().join("data"), "1\nx\n1\n1\n/\n\n0\nready\n");
        fs::create_dir(&data).expect("create");
        fs::write(top.path().join("elsewhere"), text).expect("write");
        std::os::unix::fs::symlink("../elsewhere", data.join(NAME)).expect("link");
        assert_eq!(PidFile::read(&data), None, "a link was followed");
        fs::remove_file(data.join(NAME)).expect("remove");
        rustix::fs::mkfifoat(rustix::fs::CWD, data.join(NAME), 0o600.into()).expect("a pipe");
        assert_eq!(PidFile::read(&data), None);
        fs::remove_file(data.join(NAME)).expect("remove");
        fs::write(data.join(NAME), text).expect("write");
        assert!(PidFile::read(&data).is_some());
    }
}
