//! Where fetched binaries and prepared data folders are kept between runs.
//!
//! | part | content |
//! |---|---|
//! | `fetched/VERSION-ARCH/` | binaries of one version |
//! | `templates/KEY/` | a data folder fresh from `initdb`, for the binaries of one path |
//! | `*.lock` | files that two processes at once lock |

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::ServerError;
use crate::account::Account;

/// Root's cache: its home is closed to the user who runs the server.
const ROOT_CACHE: &str = "/var/cache/isobench";

/// A folder to keep things in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cache {
    /// The folder; it may not exist yet.
    pub(crate) folder: PathBuf,
    /// Whether it is the last resort in the temporary folder, used only for what must be fetched.
    pub(crate) is_temporary: bool,
}

impl Cache {
    /// Chooses the folder: `ISOBENCH_CACHE`; else the first that can be written of `XDG_CACHE_HOME`,
    /// `~/.cache` (for root instead `/var/cache`), the temporary folder.
    pub(crate) fn locate(account: &Account) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(chosen) = variable("ISOBENCH_CACHE") {
            let folder = std::path::absolute(&chosen).unwrap_or_else(|_| chosen.into());
            return Self { folder, is_temporary: false };
        }
        let candidates = candidates(variable("XDG_CACHE_HOME"), std::env::home_dir(), account.is_other());
        let lasting = candidates.into_iter().find(|folder| is_usable(folder, account));
        lasting.map_or_else(temporary, |folder| Self { folder, is_temporary: false })
    }

    /// Makes a folder of the cache that all users may enter.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, ServerError> {
        if self.is_temporary {
            check_private(&self.folder)?;
        }
        let folder = self.folder.join(name);
        make_open_folder(&folder).map_err(|source| ServerError::io("create the folder", &folder, source))?;
        Ok(folder)
    }
}

/// Opens a file to be locked.
pub(crate) fn lock_file(path: &Path) -> Result<File, ServerError> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o644).open(path);
    file.map_err(|source| ServerError::io("write the lock file", path, source))
}

fn candidates(xdg: Option<OsString>, home: Option<PathBuf>, for_other: bool) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    // XDG Base Directory Specification: a relative path is to be ignored.
    folders
        .extend(xdg.map(PathBuf::from).filter(|path| path.is_absolute()).map(|path| path.join("isobench")));
    if for_other {
        folders.push(ROOT_CACHE.into());
    } else {
        let home = home.filter(|home| home.is_absolute());
        folders.extend(home.map(|home| home.join(".cache/isobench")));
    }
    folders
}

/// Whether the folder is there (or could be made) and can be written and reached by the server's user.
fn is_usable(folder: &Path, account: &Account) -> bool {
    make_open_folder(folder).is_ok()
        && access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_ok()
        && account.check_reach(folder).is_ok()
}

/// The last resort: a folder of this user in the temporary folder.
fn temporary() -> Cache {
    let uid = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("isobench-cache-{uid}"));
    Cache { folder, is_temporary: true }
}

/// Makes the last resort; refuses one that somebody else put there, as programs are run from it.
fn check_private(folder: &Path) -> Result<(), ServerError> {
    let made = DirBuilder::new().mode(0o755).create(folder);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(ServerError::io("create the folder", folder, error));
        }
        _ => (),
    }
    let meta = fs::symlink_metadata(folder).map_err(|source| ServerError::io("read", folder, source))?;
    let own = meta.uid() == rustix::process::geteuid().as_raw();
    if own && meta.is_dir() && meta.mode() & 0o022 == 0 {
        return Ok(());
    }
    let source = io::Error::other("it belongs to somebody else; set ISOBENCH_CACHE to another folder");
    Err(ServerError::io("use the folder", folder, source))
}

/// Makes a folder and its parents, each that is new with mode 0755 whatever the umask.
fn make_open_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_open_folder(parent)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(0o755)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_user_has_xdg_then_home() {
        let home = Some(PathBuf::from("/home/a"));
        assert_eq!(
            candidates(Some("/x".into()), home.clone(), false),
            [Path::new("/x/isobench"), Path::new("/home/a/.cache/isobench")]
        );
        assert_eq!(candidates(Some("rel".into()), home, false), [Path::new("/home/a/.cache/isobench")]);
        assert!(candidates(None, None, false).is_empty());
    }

    #[test]
    fn root_never_uses_a_home() {
        assert_eq!(candidates(None, Some("/root".into()), true), [Path::new(ROOT_CACHE)]);
    }

    #[test]
    fn a_temporary_cache_of_somebody_else_is_refused() {
        let top = tempfile::tempdir().expect("folder");
        let folder = top.path().join("cache");
        check_private(&folder).expect("made");
        check_private(&folder).expect("found again");
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("chmod");
        assert!(check_private(&folder).is_err());
        let link = top.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).expect("link");
        assert!(check_private(&link).expect_err("a link").to_string().contains("ISOBENCH_CACHE"));
    }
}
