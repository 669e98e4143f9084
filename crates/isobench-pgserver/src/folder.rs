//! The folder of a run: its name, its location, and the lock that shows that its owner is alive.
//!
//! | in it | purpose |
//! |---|---|
//! | `owner` | the caller's; locked while the caller is alive, and contains the path of the server's program |
//! | `server.log` | the caller's; passed to the server as its standard error |
//! | `data` | owned by the user who runs the server: the data folder, with the socket |
//! | `relay-0`, `relay-1` … | the caller's: sockets to the server and its standbys that can be cut off |
//! | `standby-1`, `standby-1.log` … | the same of its standbys, if it has any |
//!
//! The folder itself is the caller's, in a place where no other user can replace it. So if the
//! caller is root, other users can't change what these names refer to.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::ServerError;
use crate::account::Account;
use isobench_trust::safe_place;

/// The name prefix of every run's folder.
pub(crate) const PREFIX: &str = "isobench-pg-";
/// The data folder, which also holds the socket.
pub(crate) const DATA: &str = "data";
/// The server's log.
pub(crate) const LOG: &str = "server.log";
/// The prefix of a standby's data folder and log, before its number from 1.
pub(crate) const STANDBY: &str = "standby-";
/// The most standbys of a server.
pub(crate) const MOST_STANDBYS: usize = 8;
/// A file that its owner keeps locked while it is alive; it contains the path of the server's
/// program.
pub(crate) const OWNER_FILE: &str = "owner";
/// The maximum length of a Unix socket's path, in bytes (`sun_path` without the terminating zero).
const SOCKET_PATH_LIMIT: usize = 107;
/// The longest name of a socket file, relative to the folder.
const SOCKET_NAME: &str = "/standby-8/.s.PGSQL.65535";
/// The number of random letters in the name.
const RANDOM_LETTERS: usize = 8;

/// A folder in the temporary folder, closed to all users except the caller (and, for passing
/// through, the user who runs the server). It is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// True if the data is in memory.
    pub(crate) in_memory: bool,
    /// The locked file; closing it, also when the process dies, releases the lock.
    _owner: File,
}

impl RunFolder {
    /// Creates a folder in the best available place, for a server of `program`.
    ///
    /// # Errors
    /// [`ServerError::NoPlace`] with the problem of each place.
    pub(crate) fn create(
        account: &Account,
        program: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, ServerError> {
        let mut tried = Vec::new();
        for place in places() {
            match Self::create_in(&place, account, program) {
                Ok(folder) => {
                    if !tried.is_empty() {
                        note(&format!(
                            "using {} for the data, because {}",
                            place.display(),
                            tried.join(", ")
                        ));
                    }
                    return Ok(folder);
                }
                Err(error @ ServerError::NoSpace { .. }) => return Err(error),
                Err(ServerError::Io { path, source, .. }) => {
                    tried.push(format!("{}: {source}", path.display()));
                }
                Err(error) => tried.push(error.to_string()),
            }
        }
        Err(ServerError::NoPlace { tried: tried.join(", ") })
    }

    fn create_in(place: &Path, account: &Account, program: &Path) -> Result<Self, ServerError> {
        let unusable = |reason: &str| {
            let source = io::Error::other(reason.to_owned());
            ServerError::Io { action: "use", path: place.to_owned(), source }
        };
        // Real paths, because the server's processes are identified by theirs.
        let place = &safe_place(place).map_err(|refused| ServerError::io("use", place, refused.into()))?;
        let length = place.as_os_str().len() + 1 + PREFIX.len() + RANDOM_LETTERS + SOCKET_NAME.len();
        if length > SOCKET_PATH_LIMIT {
            return Err(unusable("the path is too long for a socket"));
        }
        // unix_socket_directories is a list, in which these are separators or quotes.
        if place.to_str().is_none_or(|path| path.contains([',', '"', '\n'])) {
            return Err(unusable("the path has characters that PostgreSQL doesn't accept"));
        }
        account.check_reach(place)?;
        loop {
            let made = tempfile::Builder::new()
                .prefix(PREFIX)
                .rand_bytes(RANDOM_LETTERS)
                .permissions(fs::Permissions::from_mode(0o700))
                .tempdir_in(place);
            let made = made.map_err(|source| ServerError::io("create a folder in", place, source))?;
            if let Some(owner) = own(made.path(), program)
                .map_err(|source| ServerError::io("write in", made.path(), source))?
            {
                account.admit(made.path()).map_err(|source| ServerError::io("open", made.path(), source))?;
                let path = made.keep();
                let in_memory = is_in_memory(&path);
                return Ok(Self { path, in_memory, _owner: owner });
            }
        }
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the data folders.
    pub(crate) fn remove_data(&self) -> Result<(), ServerError> {
        remove_data(&self.path)
    }

    /// Removes the folder with all its contents.
    pub(crate) fn remove(&self) -> Result<(), ServerError> {
        remove(&self.path)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// Removes a folder with all its contents, without following links; it may no longer exist.
///
/// The contents owned by another user are removed by a process of that user, who may have moved
/// files there that only root could remove.
pub(crate) fn remove(path: &Path) -> Result<(), ServerError> {
    remove_data(path)?;
    remove_one(path)
}

/// Removes the data folders in a run's folder.
fn remove_data(run: &Path) -> Result<(), ServerError> {
    data_folders(run).iter().try_for_each(|data| remove_one(data))
}

fn remove_one(path: &Path) -> Result<(), ServerError> {
    match remove_with_rights_of_owner(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ServerError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// The data folders that a run's folder may have: the server's and its standbys'.
pub(crate) fn data_folders(run: &Path) -> Vec<PathBuf> {
    let standbys = (1..=MOST_STANDBYS).map(|number| format!("{STANDBY}{number}"));
    std::iter::once(DATA.to_owned()).chain(standbys).map(|name| run.join(name)).collect()
}

fn remove_with_rights_of_owner(path: &Path) -> io::Result<()> {
    let owner = Account::owner(&fs::symlink_metadata(path)?);
    if !owner.is_other() {
        return fs::remove_dir_all(path);
    }
    // It can't remove the folder itself, which is in the caller's folder; this isn't a failure.
    owner.command(Path::new("rm")).args(["-r", "-f", "--"]).arg(path).stderr(Stdio::null()).status()?;
    fs::remove_dir(path)
}

/// Writes and locks the owner file. `None` if a sweep just removed the folder.
fn own(folder: &Path, program: &Path) -> io::Result<Option<File>> {
    let path = folder.join(OWNER_FILE);
    let mut file = File::create_new(&path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    if file.try_lock().is_err() {
        return Ok(None);
    }
    file.write_all(program.as_os_str().as_encoded_bytes())?;
    let same = fs::metadata(&path).is_ok_and(|there| {
        file.metadata().is_ok_and(|ours| (there.dev(), there.ino()) == (ours.dev(), ours.ino()))
    });
    Ok(same.then_some(file))
}

/// Lists the folders for runs, in order of preference.
///
/// `TMPDIR` if it is set; then `/tmp` and `/var/tmp`, first the one on a disk, because in memory
/// (where many systems have `/tmp`) a commit doesn't write to disk, and a benchmark would be too
/// optimistic.
pub(crate) fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = ["/tmp", "/var/tmp"].map(PathBuf::from).into();
    places.sort_by_key(|place| is_in_memory(place));
    if let Some(chosen) = std::env::var_os("TMPDIR").filter(|chosen| chosen != OsStr::new("")) {
        places.insert(0, chosen.into());
    }
    places
}

#[cfg(target_os = "linux")]
fn is_in_memory(path: &Path) -> bool {
    /// `TMPFS_MAGIC` and `RAMFS_MAGIC` of statfs(2).
    const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(path)
        .is_ok_and(|stat| u32::try_from(stat.f_type).is_ok_and(|magic| IN_MEMORY.contains(&magic)))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        Account::for_server().expect("an account")
    }

    #[test]
    fn a_folder_is_private_and_goes_with_its_value() {
        let folder = RunFolder::create(&account(), Path::new("/bin/x"), &mut |_| ()).expect("folder");
        let path = folder.path().to_owned();
        let expected = if account().is_other() { 0o710 } else { 0o700 };
        assert_eq!(fs::metadata(&path).expect("metadata").mode() & 0o777, expected);
        assert_eq!(fs::read_to_string(path.join(OWNER_FILE)).expect("read"), "/bin/x");
        assert!(File::open(path.join(OWNER_FILE)).expect("open").try_lock().is_err());
        fs::write(path.join("file"), "x").expect("write");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn long_odd_and_missing_places_are_refused_with_the_reason() {
        let top = tempfile::tempdir().expect("folder");
        let long = top.path().join("x".repeat(80));
        let comma = top.path().join("a,b");
        let open = top.path().join("open");
        fs::create_dir(&long).expect("create");
        fs::create_dir(&comma).expect("create");
        fs::create_dir(&open).expect("create");
        for (folder, mode) in [(top.path(), 0o755), (open.as_path(), 0o777)] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("chmod");
        }
        for (place, reason) in [
            (long, "too long"),
            (comma, "characters"),
            (open, "other users can write in"),
            (top.path().join("missing"), "No such file"),
            (Path::new("/proc").to_owned(), "/proc"),
        ] {
            let error = RunFolder::create_in(&place, &account(), Path::new("/bin/x"))
                .expect_err("refused")
                .to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
