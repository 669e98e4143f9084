//! Errors, each as a sentence with the problem, its place and a remedy.

use std::io;
use std::path::{Path, PathBuf};

use crate::MajorVersion;

/// The reason that an embedded PostgreSQL could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Both a folder of binaries and a version to fetch were given.
    #[error("--server-bin and --server-version exclude each other: give the folder or the version to fetch")]
    BinAndVersion,
    /// The given folder lacks one of the server's programs.
    #[error(
        "there is no {program} in {}: --server-bin takes the folder that holds PostgreSQL's initdb \
         and postgres, such as /usr/lib/postgresql/18/bin",
        folder.display()
    )]
    MissingProgram {
        /// The folder.
        folder: PathBuf,
        /// The missing program.
        program: &'static str,
    },
    /// A program exists but can't be executed.
    #[error(
        "{} does not run on this machine: {message}; use binaries for this system (install \
         PostgreSQL, or point --server-bin at its folder)",
        program.display()
    )]
    WontRun {
        /// The program.
        program: PathBuf,
        /// The message of the system or the program.
        message: String,
    },
    /// The server is too old to be supported.
    #[error("{} is PostgreSQL {version}: versions before 10 are not supported", program.display())]
    TooOld {
        /// The server's program.
        program: PathBuf,
        /// Its version.
        version: String,
    },
    /// isobench runs as root, and there is no other user to run PostgreSQL.
    #[error(
        "PostgreSQL refuses to run as root, and /etc/passwd has neither a user \"postgres\" nor \
         \"nobody\" to run it as: run isobench as an ordinary user, or add one of them"
    )]
    NoUnprivilegedUser,
    /// isobench runs as root, but isn't permitted to change the user.
    #[error(
        "PostgreSQL refuses to run as root, and root is not permitted to become the user \"{user}\" \
         here ({source}): run isobench as an ordinary user, or allow it to change its user"
    )]
    CannotBecome {
        /// The intended user.
        user: String,
        /// The system's reason.
        source: io::Error,
    },
    /// isobench runs as root, and the unprivileged user can't access a file it needs.
    #[error(
        "user \"{user}\", who runs PostgreSQL for root, cannot reach {}: folder {} is closed to it; \
         move the files, or run isobench as an ordinary user",
        path.display(),
        closed.display()
    )]
    Unreachable {
        /// The file or folder.
        path: PathBuf,
        /// The inaccessible folder on its path.
        closed: PathBuf,
        /// The unprivileged user.
        user: String,
    },
    /// No PostgreSQL is installed and none could be fetched.
    #[error(
        "PostgreSQL {version} could not be fetched: {message}; install PostgreSQL, or point \
         --server-bin at the folder of its programs"
    )]
    Fetch {
        /// The version.
        version: MajorVersion,
        /// The problem.
        message: String,
    },
    /// No temporary folder can store the server's data.
    #[error("no temporary folder can be used ({tried}): set TMPDIR to a writable folder with a short path")]
    NoPlace {
        /// The folders tried, with reasons.
        tried: String,
    },
    /// Other users can modify the cache, from which programs are executed.
    #[error(
        "cannot use the cache {}: {reason}; remove the write permission of others (chmod go-w), or \
         set ISOBENCH_CACHE to another folder",
        folder.display()
    )]
    UnsafeCache {
        /// The folder.
        folder: PathBuf,
        /// The reason: which users, or which folder.
        reason: String,
    },
    /// The disk is full.
    #[error("no space left in {}: free some, or set TMPDIR (or ISOBENCH_CACHE) to a folder on \
             another disk", folder.display())]
    NoSpace {
        /// The folder.
        folder: PathBuf,
    },
    /// An operation on a file failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, such as "create the folder".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// `initdb` failed.
    #[error("{} could not prepare a data folder: {message}", program.display())]
    Initdb {
        /// The program.
        program: PathBuf,
        /// Its messages.
        message: String,
    },
    /// A setting isn't allowed.
    #[error("--server-setting {name}={value}: {reason}")]
    Setting {
        /// The name of the setting.
        name: String,
        /// The value.
        value: String,
        /// The reason, and a remedy.
        reason: String,
    },
    /// The server ended before it was ready.
    #[error("PostgreSQL {version} did not start: {message}")]
    Start {
        /// Its version.
        version: String,
        /// The server's messages in its log.
        message: String,
    },
    /// The server wasn't ready in time.
    #[error("PostgreSQL {version} was not ready after {seconds} s; the end of its log: {message}")]
    Timeout {
        /// Its version.
        version: String,
        /// The time waited, in seconds.
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
    /// Makes the error for a failed file operation; a full disk has its own variant.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { folder: path.to_owned() }
            }
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }
}
