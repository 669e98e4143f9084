//! Who runs the server: the caller, or an unprivileged user when the caller is root.
//!
//! PostgreSQL refuses to run as root. The change of user is std's `CommandExt::uid` and `gid`, which
//! also drops root's supplementary groups, so neither `su` nor `setpriv` is needed.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ServerError;

/// Users who may run the server for root, best first.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// The user who runs the server.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// Set if we are root and run the server as somebody else.
    other: Option<Other>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Other {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// Picks the user: ourselves, or for root the first of [`UNPRIVILEGED`] that exists.
    pub(crate) fn for_server() -> Result<Self, ServerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { other: None });
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let other = find_unprivileged(&passwd).ok_or(ServerError::NoUnprivilegedUser)?;
        Ok(Self { other: Some(other) })
    }

    /// Whether the server runs as another user than ourselves.
    pub(crate) fn is_other(&self) -> bool {
        self.other.is_some()
    }

    /// Name of the other user, if there is one.
    pub(crate) fn other_name(&self) -> Option<&str> {
        self.other.as_ref().map(|other| other.name.as_str())
    }

    /// Whether files of this user id can be a server's of ours: our own, or the other user's.
    pub(crate) fn is_ours(&self, uid: u32) -> bool {
        uid == rustix::process::geteuid().as_raw()
            || self.other.as_ref().is_some_and(|other| other.uid == uid)
    }

    /// Prepares a command that runs as this user, away from our terminal's signals, with nothing
    /// of the environment that PostgreSQL would read and with messages in English.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // A process group of its own: Ctrl-C in the terminal reaches us alone.
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

    /// Gives a file or folder of ours to this user; does nothing if that's ourselves.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        let Some(other) = &self.other else { return Ok(()) };
        lchown(path, Some(other.uid), Some(other.gid))
    }

    /// Checks that this user can get to a path.
    ///
    /// # Errors
    /// [`ServerError::Unreachable`] names the first closed folder. Ourselves are never refused here:
    /// the system's own error is clear enough.
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

/// Finds the first folder on the way to (and including) `path` that `user` may not enter.
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

/// Finds the user to run the server as in the text of `/etc/passwd`.
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
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().expect("temporary folder");
        let inner = top.path().join("closed/inner");
        fs::create_dir_all(&inner).expect("create");
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        fs::set_permissions(top.path().join("closed"), fs::Permissions::from_mode(0o750)).expect("chmod");
        let stranger = user("stranger", 4_000_000, 4_000_000);
        assert_eq!(closed_folder(&inner, &stranger), Some(top.path().join("closed")));
        assert_eq!(closed_folder(top.path(), &stranger), None);
        let owner = fs::metadata(&inner).expect("metadata");
        assert_eq!(closed_folder(&inner, &user("owner", owner.uid(), 4_000_000)), None);
    }
}
