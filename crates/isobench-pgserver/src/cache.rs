//! The folder in which fetched binaries and prepared data folders are kept between runs.
//!
//! | part | content |
//! |---|---|
//! | `fetched/VERSION-ARCH/` | binaries of one version |
//! | `templates/KEY/` | a fresh data folder made by `initdb`, for the binaries at one path |
//! | `*.lock` | lock files for concurrent processes |

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::ServerError;
use crate::account::Account;
use isobench_trust::{PlaceError, safe_folder, safe_place};

/// The cache for root, whose home isn't accessible to the user who runs the server.
const ROOT_CACHE: &str = "/var/cache/isobench";

/// A cache folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cache {
    /// The folder; it may not exist yet.
    pub(crate) folder: PathBuf,
    /// True if it is the fallback in the temporary folder, which is used only for binaries that
    /// must be fetched.
    pub(crate) is_temporary: bool,
}

impl Cache {
    /// Chooses the folder: `ISOBENCH_CACHE`, or the first one that is writable, but not by other
    /// users, of `XDG_CACHE_HOME`, `~/.cache` (for root, `/var/cache`), and the temporary folder.
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

    /// Creates a folder in the cache that all users can enter but only the caller can write;
    /// returns its real path.
    ///
    /// # Errors
    /// [`ServerError::UnsafeCache`] if other users can write there or in a parent folder, because
    /// programs in it are executed.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, ServerError> {
        let folder = self.folder.join(name);
        make_safe_folder(&folder).map_err(|refused| match refused {
            PlaceError::Unsafe(reason) => ServerError::UnsafeCache { folder, reason },
            PlaceError::Io(source) => ServerError::io("create the folder", &folder, source),
        })
    }

    /// The real path of a folder in the cache, if it exists.
    ///
    /// # Errors
    /// As [`Cache::make`].
    pub(crate) fn find(&self, name: &str) -> Result<Option<PathBuf>, ServerError> {
        match safe_folder(&self.folder.join(name)) {
            Ok(folder) => Ok(Some(folder)),
            Err(PlaceError::Unsafe(reason)) => {
                Err(ServerError::UnsafeCache { folder: self.folder.clone(), reason })
            }
            Err(PlaceError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(PlaceError::Io(error)) => Err(ServerError::io("read", &self.folder.join(name), error)),
        }
    }
}

/// Opens a lock file.
pub(crate) fn lock_file(path: &Path) -> Result<File, ServerError> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o644).open(path);
    file.map_err(|source| ServerError::io("write the lock file", path, source))
}

fn candidates(xdg: Option<OsString>, home: Option<PathBuf>, for_other: bool) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    // XDG Base Directory Specification: relative paths must be ignored.
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

/// True if the folder exists or can be created, is writable, and is accessible to the server's
/// user.
fn is_usable(folder: &Path, account: &Account) -> bool {
    make_safe_folder(folder).is_ok()
        && access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_ok()
        && account.check_reach(folder).is_ok()
}

/// The fallback: a folder of this user in the temporary folder.
fn temporary() -> Cache {
    let uid = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("isobench-cache-{uid}"));
    Cache { folder, is_temporary: true }
}

/// Creates a folder and its parents, with mode 0755 regardless of the umask, and returns its real
/// path.
fn make_safe_folder(folder: &Path) -> Result<PathBuf, PlaceError> {
    make_in_safe_place(folder)?;
    safe_folder(folder)
}

fn make_in_safe_place(folder: &Path) -> Result<PathBuf, PlaceError> {
    match safe_place(folder) {
        Err(PlaceError::Io(error)) if error.kind() == io::ErrorKind::NotFound => (),
        there => return there,
    }
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(PlaceError::Io(io::ErrorKind::InvalidInput.into()));
    };
    let new = make_in_safe_place(parent)?.join(name);
    match fs::create_dir(&new) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
        made => made.and_then(|()| fs::set_permissions(&new, Permissions::from_mode(0o755)))?,
    }
    // Another process may have created something else there first.
    safe_place(&new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

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

    fn cache(folder: &Path) -> Cache {
        Cache { folder: folder.to_owned(), is_temporary: false }
    }

    #[test]
    fn a_cache_that_others_can_write_is_refused() {
        let top = tempfile::tempdir().expect("folder");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
        };
        mode(top.path(), 0o755);
        let folder = top.path().join("above/cache");
        let made = cache(&folder).make("fetched").expect("made");
        assert_eq!(fs::metadata(&made).expect("metadata").mode() & 0o777, 0o755);
        assert_eq!(cache(&folder).find("fetched").expect("safe"), Some(made.clone()));
        assert_eq!(cache(&folder).find("other").expect("safe"), None);
        for part in [made.as_path(), &folder, &top.path().join("above")] {
            mode(part, 0o777);
            for error in [cache(&folder).make("fetched").map(Some), cache(&folder).find("fetched")] {
                let message = error.expect_err("refused").to_string();
                assert!(
                    message.contains(&format!("other users can write in {}", part.display())),
                    "{message}"
                );
                assert!(message.contains("ISOBENCH_CACHE"), "{message}");
            }
            mode(part, 0o755);
        }
        assert!(cache(&folder).make("fetched").is_ok());
    }

    #[test]
    fn a_cache_behind_a_link_of_somebody_else_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: a_cache_behind_a_link_of_somebody_else_is_refused: not root");
        }
        let top = tempfile::tempdir().expect("folder");
        fs::set_permissions(top.path(), Permissions::from_mode(0o1777)).expect("chmod");
        let (link, target) = (top.path().join("link"), top.path().join("target"));
        std::os::unix::fs::symlink(&target, &link).expect("link");
        std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).expect("chown");
        for at in [link.as_path(), &link.join("below")] {
            assert!(matches!(cache(at).make("fetched"), Err(ServerError::UnsafeCache { .. })));
        }
        assert!(!target.exists(), "a folder was made where somebody else wanted it");
    }
}
