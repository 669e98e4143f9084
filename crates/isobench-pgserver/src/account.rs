//! The user who runs the server: the caller, or an unprivileged user if the caller is root.
//!
//! PostgreSQL refuses to run as root. The user is changed by std's `CommandExt::uid` and `gid`,
//! which also drop root's supplementary groups, so neither `su` nor `setpriv` is needed.
//!
//! A folder owned by that user can contain anything, and can change at any moment. So root works in
//! it only by processes of that user: `initdb`, `cp`, `rm` and the server itself.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{ServerError, log};

/// The users who can run the server for root, in order of preference.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// The user who runs the server.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// Set if the caller is root and another user runs the server.
    other: Option<Other>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Other {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// Chooses the user: the caller, or for root the first of [`UNPRIVILEGED`] that exists.
    pub(crate) fn for_server() -> Result<Self, ServerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { other: None });
        }
        let path = Path::new("/etc/passwd");
        let passwd = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|source| ServerError::io("read", path, source))?,
        };
        let other = find_unprivileged(&passwd).ok_or(ServerError::NoUnprivilegedUser)?;
        Ok(Self { other: Some(other) })
    }

    /// True if the server is run by a user other than the caller.
    pub(crate) fn is_other(&self) -> bool {
        self.other.is_some()
    }

    /// The name of the other user, if any.
    pub(crate) fn other_name(&self) -> Option<&str> {
        self.other.as_ref().map(|other| other.name.as_str())
    }

    /// The owner of a file or folder: the caller, or another user whose privileges suffice for
    /// working in it.
    pub(crate) fn owner(meta: &Metadata) -> Self {
        let (uid, gid) = (meta.uid(), meta.gid());
        let is_other = uid != rustix::process::geteuid().as_raw();
        Self { other: is_other.then(|| Other { name: format!("number {uid}"), uid, gid }) }
    }

    /// Prepares a command that runs as this user, isolated from the terminal's signals, without the
    /// environment variables that PostgreSQL reads, and with messages in English.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // A process group of its own, so that Ctrl-C in the terminal doesn't reach it.
        command.process_group(0).current_dir("/").stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C");
        if let Some(other) = &self.other {
            command.uid(other.uid).gid(other.gid);
        }
        command
    }

    /// Creates an empty folder of mode 0700 owned by this user, in a folder of the caller.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)?;
        let Some(other) = &self.other else { return Ok(()) };
        lchown(path, Some(other.uid), Some(other.gid))
    }

    /// Lets this user pass through a folder of the caller, but not list it or write in it.
    pub(crate) fn admit(&self, path: &Path) -> io::Result<()> {
        let Some(other) = &self.other else { return Ok(()) };
        lchown(path, None, Some(other.gid))?;
        fs::set_permissions(path, Permissions::from_mode(0o710))
    }

    /// Runs a command and waits for it to end. Returns its messages if it fails.
    ///
    /// # Errors
    /// [`ServerError::Io`] if it can't be started, [`ServerError::NoSpace`] if it reports that, or
    /// the result of `failed` for its messages. `folder` is where it writes.
    pub(crate) fn run(
        command: &mut Command,
        folder: &Path,
        failed: impl FnOnce(String) -> ServerError,
    ) -> Result<(), ServerError> {
        let output = command.output();
        let output =
            output.map_err(|error| ServerError::io("run", Path::new(command.get_program()), error))?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("No space left on device") {
            return Err(ServerError::NoSpace { folder: folder.to_owned() });
        }
        let message = log::reason(&errors).unwrap_or_else(|| log::last_lines(&errors).replace('\n', "; "));
        Err(failed(if message.is_empty() { output.status.to_string() } else { message }))
    }

    /// Checks that this user can access a path.
    ///
    /// # Errors
    /// [`ServerError::Unreachable`] with the first inaccessible folder. The caller is never refused
    /// here, because the system's own error is clear enough.
    pub(crate) fn check_reach(&self, path: &Path) -> Result<(), ServerError> {
        let Some(other) = &self.other else { return Ok(()) };
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match closed_folder(&real, other) {
            None => Ok(()),
            Some(closed) => {
                Err(ServerError::Unreachable { path: path.to_owned(), closed, user: other.name.clone() })
            }
        }
    }
}

/// Finds the first folder on the path to `path` (inclusive) that `user` can't enter.
fn closed_folder(path: &Path, user: &Other) -> Option<PathBuf> {
    let mut folders: Vec<&Path> = path.ancestors().collect();
    folders.reverse();
    folders
        .into_iter()
        .find(|folder| {
            fs::metadata(folder).is_ok_and(|meta| {
                let bit = if meta.uid() == user.uid {
                    0o100
                } else if meta.gid() == user.gid {
                    0o010
                } else {
                    0o001
                };
                meta.is_dir() && meta.mode() & bit == 0
            })
        })
        .map(Path::to_owned)
}

/// Finds the user to run the server in the text of `/etc/passwd`.
fn find_unprivileged(passwd: &str) -> Option<Other> {
    UNPRIVILEGED.iter().find_map(|name| {
        passwd.lines().find_map(|line| {
            // name:password:uid:gid:comment:home:shell
            let mut fields = line.split(':');
            let found = fields.next()? == *name;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            (found && uid != 0).then(|| Other { name: (*name).to_owned(), uid, gid })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, uid: u32, gid: u32) -> Other {
        Other { name: name.to_owned(), uid, gid }
    }

    #[test]
    fn postgres_is_preferred_to_nobody() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533:::\npostgres:x:105:109::/:\n";
        assert_eq!(find_unprivileged(passwd), Some(user("postgres", 105, 109)));
        assert_eq!(
            find_unprivileged(&passwd.replace("postgres", "pgsql")),
            Some(user("nobody", 65534, 65533))
        );
    }

    #[test]
    fn damaged_or_privileged_entries_are_no_users() {
        for passwd in ["", "postgres", "postgres:x:abc:1:::", "postgres:x:0:0:::", "nobody:x:\n::::"] {
            assert_eq!(find_unprivileged(passwd), None, "{passwd:?}");
        }
    }

    #[test]
    fn a_closed_folder_on_the_way_is_named() {
        let top = tempfile::tempdir().expect("temporary folder");
        let inner = top.path().join("closed/inner");
        fs::create_dir_all(&inner).expect("create");
        fs::set_permissions(top.path(), Permissions::from_mode(0o755)).expect("chmod");
        fs::set_permissions(top.path().join("closed"), Permissions::from_mode(0o750)).expect("chmod");
        let stranger = user("stranger", 4_000_000, 4_000_000);
        assert_eq!(closed_folder(&inner, &stranger), Some(top.path().join("closed")));
        assert_eq!(closed_folder(top.path(), &stranger), None);
        let owner = fs::metadata(&inner).expect("metadata");
        assert_eq!(closed_folder(&inner, &user("owner", owner.uid(), 4_000_000)), None);
    }
}
