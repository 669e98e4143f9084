//! Safe places, which other users can't change. Files are created, and found by name, only there.
//!
//! A user who can write in a folder can replace its entries, also by links, between any two steps.
//! A place is safe if that isn't possible in any folder on its path, including those that links
//! lead through.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The bits of a mode that permit group and others to write.
const WRITABLE: u32 = 0o022;
/// The bits of a mode that permit group and others to pass through a folder.
const PASSABLE: u32 = 0o011;
/// The bit of a mode that protects users' files from each other in a folder writable by all.
const STICKY: u32 = 0o1000;
/// The maximum number of links in a path, as in Linux; more are taken for a circle.
pub(crate) const MOST_LINKS: usize = 40;

/// The reason that a place isn't used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Other users could change its contents; the text has the users or the folder.
    #[error("{0}")]
    Unsafe(String),
    /// It can't be examined; usually it doesn't exist.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<PlaceError> for io::Error {
    fn from(refused: PlaceError) -> Self {
        match refused {
            PlaceError::Unsafe(text) => Self::other(text),
            PlaceError::Io(error) => error,
        }
    }
}

/// The real path of an existing folder that other users can't replace; files in it may belong to
/// others (`/tmp`).
///
/// # Errors
/// Others can replace it, or it can't be examined.
pub fn safe_place(path: &Path) -> Result<PathBuf, PlaceError> {
    walk(path).map(|way| way.real)
}

/// The real path of an existing folder whose entries other users can't create, remove or replace.
///
/// # Errors
/// Others can, or it can't be examined.
pub fn safe_folder(path: &Path) -> Result<PathBuf, PlaceError> {
    let way = walk(path)?;
    let closed = way.private || is_closed(&fs::symlink_metadata(&way.real)?);
    if closed { Ok(way.real) } else { Err(writable(&way.real)) }
}

/// Why a program isn't to be run by this user: it is missing, or, for root, others could replace it. A name
/// without a slash is looked for in the folders of `PATH`, as a shell does.
pub fn untrusted_program(program: &Path) -> Option<String> {
    let found = if program.components().count() > 1 || program.is_absolute() {
        program.is_file().then(|| program.to_owned())
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(|one| one.is_file())
    };
    let Some(found) = found else { return Some("there is no such program".to_owned()) };
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let folder = found.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let safe = std::path::absolute(folder).map_err(PlaceError::from).and_then(|folder| safe_folder(&folder));
    safe.err().map(|why| format!("root runs no program that others can replace: {why}"))
}

/// Why nothing is made by name in a folder by this user: it is missing, or, for root, others can write
/// in it.
pub fn untrusted_folder(folder: &Path) -> Option<String> {
    if !folder.is_dir() {
        return Some("there is no such folder".to_owned());
    }
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    safe_folder(folder).err().map(|why| format!("root makes nothing where others can replace it: {why}"))
}

/// A path that was found to be safe.
pub(crate) struct CheckedPath {
    /// The real path so far.
    pub real: PathBuf,
    /// True if other users can't pass through one of its folders, so that the modes below are
    /// irrelevant.
    pub private: bool,
}

impl CheckedPath {
    fn start() -> Self {
        Self { real: PathBuf::from("/"), private: false }
    }

    /// Checks the entry `next`, a folder or link in the current folder.
    fn check(&self, next: &Path) -> Result<Metadata, PlaceError> {
        let meta = fs::symlink_metadata(next)?;
        if !is_trusted(meta.uid())? {
            let text = format!("{} belongs to another user (number {})", next.display(), meta.uid());
            return Err(PlaceError::Unsafe(text));
        }
        let replaceable = !self.private && meta.is_dir() && !is_closed(&meta) && meta.mode() & STICKY == 0;
        if replaceable { Err(writable(next)) } else { Ok(meta) }
    }
}

/// Follows a path from `/`, through links.
pub(crate) fn walk(path: &Path) -> Result<CheckedPath, PlaceError> {
    let mut way = CheckedPath::start();
    let mut rest = components(&std::path::absolute(path)?);
    let mut links = 0;
    way.check(Path::new("/"))?;
    while let Some(name) = rest.pop_front() {
        // Starts again after a link or `..`, which may lead out of a private folder.
        let mut again = |target: &Path| {
            let mut resolver = components(target);
            resolver.append(&mut rest);
            (CheckedPath::start(), resolver)
        };
        let next = way.real.join(&name);
        if name == ".." {
            (way, rest) = again(way.real.parent().unwrap_or(Path::new("/")));
            continue;
        }
        let meta = way.check(&next)?;
        if meta.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(PlaceError::Unsafe(format!("{} leads through too many links", path.display())));
            }
            (way, rest) = again(&way.real.join(fs::read_link(&next)?));
            continue;
        }
        way.private |= meta.mode() & PASSABLE == 0;
        way.real = next;
    }
    Ok(way)
}

/// True for a folder (not a link to one) that is the caller's and isn't writable by other users.
pub fn is_own_folder(meta: &Metadata) -> bool {
    meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && is_closed(meta)
}

/// The components of an absolute path.
fn components(path: &Path) -> VecDeque<OsString> {
    path.components().skip(1).map(|part| part.as_os_str().to_owned()).collect()
}

fn is_closed(meta: &Metadata) -> bool {
    meta.mode() & WRITABLE == 0
}

/// True for users who can do anything here anyway: the caller, root, and the owner of `/`, who in
/// some containers is root under another number.
pub(crate) fn is_trusted(uid: u32) -> io::Result<bool> {
    Ok(uid == 0 || uid == rustix::process::geteuid().as_raw() || uid == fs::symlink_metadata("/")?.uid())
}

/// True for a file that others than its owner can write. Only root is in its group.
pub(crate) fn is_open_file(meta: &Metadata) -> bool {
    let others = if meta.gid() == 0 { 0o002 } else { WRITABLE };
    meta.mode() & others != 0
}

fn writable(path: &Path) -> PlaceError {
    PlaceError::Unsafe(format!("other users can write in {}", path.display()))
}

/// Opens a file that may come from another user: only a regular file, without following links or
/// waiting for a pipe. Its folder must be a safe place.
///
/// # Errors
/// It is no such file, or can't be opened.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    fn top() -> tempfile::TempDir {
        let top = tempfile::tempdir().expect("a folder");
        // Accessible to other users, because an inaccessible folder is safe.
        fs::create_dir_all(top.path().join("a/b")).expect("create");
        for folder in ["", "a", "a/b"] {
            mode(&top.path().join(folder), 0o755);
        }
        top
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    }

    fn refusal(result: Result<PathBuf, PlaceError>) -> String {
        result.expect_err("refused").to_string()
    }

    #[test]
    fn a_folder_that_others_can_write_is_unsafe_and_so_is_what_lies_below() {
        let top = top();
        let (a, b) = (top.path().join("a"), top.path().join("a/b"));
        let real = fs::canonicalize(&b).expect("path");
        assert_eq!(safe_folder(&b).expect("safe"), real);
        for open in [0o777, 0o775, 0o757] {
            mode(&a, open);
            for unsafe_ in [safe_place(&b), safe_folder(&b), safe_folder(&a), safe_place(&a)] {
                assert!(refusal(unsafe_).contains("other users can write in"), "{open:o}");
            }
        }
        // Like /tmp: the caller's files are protected, but other users can add theirs.
        mode(&a, 0o1777);
        assert_eq!(safe_folder(&b).expect("safe"), real);
        assert!(safe_place(&a).is_ok());
        assert!(refusal(safe_folder(&a)).contains("other users can write in"));
    }

    #[test]
    fn below_a_folder_that_nobody_else_can_enter_all_is_safe() {
        let top = top();
        mode(&top.path().join("a/b"), 0o777);
        mode(&top.path().join("a"), 0o700);
        assert!(safe_folder(&top.path().join("a/b")).is_ok());
        assert!(safe_folder(&top.path().join("a/b/../../a/b")).is_ok());
        symlink("../c", top.path().join("a/out")).expect("link");
        fs::create_dir(top.path().join("c")).expect("create");
        mode(&top.path().join("c"), 0o777);
        // The temporary folder of this test would be another closed one.
        mode(top.path(), 0o755);
        assert!(refusal(safe_folder(&top.path().join("a/out"))).contains("other users can write in"));
        assert!(refusal(safe_folder(&top.path().join("a/../c"))).contains("other users can write in"));
    }

    #[test]
    fn links_are_followed_where_nobody_else_can_turn_them() {
        let top = top();
        let (a, real) = (top.path().join("a"), fs::canonicalize(top.path().join("a/b")).expect("path"));
        symlink("a/b", top.path().join("relative")).expect("link");
        symlink(&a, top.path().join("absolute")).expect("link");
        symlink("circle", top.path().join("circle")).expect("link");
        assert_eq!(safe_folder(&top.path().join("relative")).expect("safe"), real);
        assert_eq!(safe_folder(&top.path().join("absolute/b/../b")).expect("safe"), real);
        assert!(refusal(safe_folder(&top.path().join("circle"))).contains("too many links"));
        mode(&a, 0o777);
        assert!(refusal(safe_folder(&top.path().join("absolute/b"))).contains("can write in"));
        assert!(safe_folder(&top.path().join("missing")).is_err());
    }

    #[test]
    fn what_belongs_to_another_user_is_unsafe() {
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: what_belongs_to_another_user_is_unsafe: not root");
        }
        let top = top();
        symlink("a", top.path().join("link")).expect("link");
        lchown(top.path().join("link"), Some(65534), Some(65534)).expect("chown");
        assert!(refusal(safe_folder(&top.path().join("link"))).contains("belongs to another user"));
        lchown(top.path().join("a"), Some(65534), Some(65534)).expect("chown");
        assert!(refusal(safe_folder(&top.path().join("a/b"))).contains("belongs to another user"));
        assert!(!is_own_folder(&fs::metadata(top.path().join("a")).expect("metadata")));
    }
}
