//! What can go wrong, each as a sentence that says what, where and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::MajorVersion;

/// Why an embedded PostgreSQL could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Both a folder of binaries and a version to fetch were given.
    #[error("--server-bin and --server-version exclude each other: give the folder or the version to fetch")]
    BinAndVersion,
    /// The given folder lacks a program of PostgreSQL's server.
    #[error(
        "there is no {program} in {}: --server-bin takes the folder that holds PostgreSQL's initdb and postgres, such as /usr/lib/postgresql/18/bin",
        folder.display()
    )]
    MissingProgram {
        /// The folder given.
        folder: PathBuf,
        /// The program that isn't there.
        program: &'static str,
    },
    /// A program is there but can't be executed.
    #[error(
        "{} does not run on this machine: {message}; use binaries for this system (install PostgreSQL, or point --server-bin at its folder)",
        program.display()
    )]
    WontRun {
        /// The program tried.
        program: PathBuf,
        /// What the system or the program said.
        message: String,
    },
    /// The server is older than this crate can drive.
    #[error("{} is PostgreSQL {version}: versions before 10 are not supported", program.display())]
    TooOld {
        /// The server's program.
        program: PathBuf,
        /// The version it states.
        version: String,
    },
    /// The program runs as root, and no other user is there to run PostgreSQL.
    #[error(
        "PostgreSQL refuses to run as root, and /etc/passwd has neither a user \"postgres\" nor \"nobody\" to run it as: run isobench as an ordinary user, or add one of them"
    )]
    NoUnprivilegedUser,
    /// The program runs as root, but without the right to become somebody else.
    #[error(
        "PostgreSQL refuses to run as root, and root may not become the user \"{user}\" here ({source}): run isobench as an ordinary user, or allow it to change its user"
    )]
    CannotBecome {
        /// Whom it tried to become.
        user: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The program runs as root, and the unprivileged user can't get to a file it needs.
    #[error(
        "user \"{user}\", who runs PostgreSQL for root, cannot reach {}: folder {} is closed to it; move the files, or run isobench as an ordinary user",
        path.display(),
        closed.display()
    )]
    Unreachable {
        /// The file or folder needed.
        path: PathBuf,
        /// The folder on the way that is closed.
        closed: PathBuf,
        /// Who can't pass.
        user: String,
    },
    /// No PostgreSQL is installed and none could be fetched.
    #[error(
        "PostgreSQL {version} could not be fetched: {message}; install PostgreSQL, or point --server-bin at the folder of its programs"
    )]
    Fetch {
        /// The version wanted.
        version: MajorVersion,
        /// What went wrong.
        message: String,
    },
    /// No temporary folder can hold the server's data.
    #[error("no temporary folder can be used ({tried}): set TMPDIR to a writable folder with a short path")]
    NoPlace {
        /// Each folder tried and why it doesn't do.
        tried: String,
    },
    /// The cache, from which programs are run, can be changed by other users.
    #[error(
        "cannot use the cache {}: {reason}; take the right to write from others (chmod go-w), or set ISOBENCH_CACHE to another folder",
        folder.display()
    )]
    UnsafeCache {
        /// The folder.
        folder: PathBuf,
        /// Who can change it, or where.
        reason: String,
    },
    /// The disk is full.
    #[error("no space left in {}: free some, or set TMPDIR (or ISOBENCH_CACHE) to a folder on another disk", folder.display())]
    NoSpace {
        /// Where the space is missing.
        folder: PathBuf,
    },
    /// An operation on a file failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, such as "create the folder".
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// `initdb` failed.
    #[error("{} could not prepare a data folder: {message}", program.display())]
    Initdb {
        /// The program run.
        program: PathBuf,
        /// Its own words.
        message: String,
    },
    /// A setting can't be given.
    #[error("--server-setting {name}={value}: {reason}")]
    Setting {
        /// Name of the setting.
        name: String,
        /// Value given.
        value: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The server ended before it was ready.
    #[error("PostgreSQL {version} did not start: {message}")]
    Start {
        /// Its version.
        version: String,
        /// The server's own words from its log.
        message: String,
    },
    /// The server wasn't ready in time.
    #[error("PostgreSQL {version} was not ready after {seconds} s; the end of its log: {message}")]
    Timeout {
        /// Its version.
        version: String,
        /// How long it was waited for.
        seconds: u64,
        /// The end of its log.
        message: String,
    },
    /// The server can't be stopped.
    #[error("PostgreSQL's process {pid} could not be stopped: end it by hand")]
    Stop {
        /// The server's main process.
        pid: u32,
    },
}

impl ServerError {
    /// Makes an error of a failed file operation; a full disk gets its own kind.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { folder: path.to_owned() }
            }
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }
}
