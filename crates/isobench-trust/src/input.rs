//! Files that lead to SQL or programs being run: scripts, set-ups, plans, captures, specs and results.
//!
//! Root gives its rights to whoever wrote such a file. So it reads only files of root's own in places
//! where nobody else can replace them. Other users run what they name.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::links::refuse_foreign_links;
use crate::place::{MOST_LINKS, PlaceError, is_open_file, is_own_folder, is_trusted, walk};

/// Opens a file.
///
/// # Errors
/// It can't be opened; a link of another user leads to it; or, for root, another user could have written
/// it.
pub fn open(path: &Path) -> io::Result<File> {
    refuse_foreign_links(path)?;
    if rustix::process::geteuid().is_root() {
        require_roots(path)?;
    }
    File::open(path)
}

/// Reads a file; see [`open`].
///
/// # Errors
/// As [`open`], or it can't be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text; see [`open`].
///
/// # Errors
/// As [`open`], or it can't be read or isn't UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Makes sure that a folder is the caller's, and that nobody else can write in it.
///
/// # Errors
/// It isn't.
pub fn require_own(folder: &Path) -> io::Result<()> {
    let own = is_own_folder(&fs::symlink_metadata(folder)?);
    own.then_some(()).ok_or_else(|| io::Error::other("it isn't yours alone to write"))
}

/// Makes sure that a file, or what links lead to, can't be another user's.
fn require_roots(path: &Path) -> io::Result<()> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..=MOST_LINKS {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            path = fs::canonicalize(&path)?;
            if path.parent().is_none() {
                return Ok(());
            }
            continue;
        };
        let way = walk(folder).map_err(refusal)?;
        let real = way.real.join(name);
        let meta = fs::symlink_metadata(&real)?;
        if meta.is_symlink() {
            // A file descriptor of this process (`/dev/stdin`, `<(…)`).
            let descriptor = real.starts_with("/proc");
            if descriptor && !fs::metadata(&real)?.is_file() {
                return Ok(());
            }
            path = way.real.join(fs::read_link(&real)?);
            continue;
        }
        let device = !meta.is_file() && real.starts_with("/dev");
        if !device && !is_trusted(meta.uid())? {
            let text = format!("{} belongs to another user (number {})", real.display(), meta.uid());
            return Err(refusal(PlaceError::Unsafe(text)));
        }
        if meta.is_file() && !way.private && is_open_file(&meta) {
            let text = format!("other users can write {}", real.display());
            return Err(refusal(PlaceError::Unsafe(text)));
        }
        return Ok(());
    }
    Err(io::Error::other(format!("{} leads through too many links", path.display())))
}

fn refusal(error: PlaceError) -> io::Error {
    match error {
        PlaceError::Unsafe(why) => io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("root executes nothing that others could have written: {why}"),
        ),
        PlaceError::Io(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::path::PathBuf;

    /// A folder with a script in it, of these modes.
    fn scene(folder: u32, file: u32) -> (tempfile::TempDir, PathBuf) {
        let scene = tempfile::tempdir().expect("a folder");
        // The temporary folder of a test is closed, so that all below it would be safe.
        fs::set_permissions(scene.path(), Permissions::from_mode(0o755)).expect("chmod");
        let inside = scene.path().join("in");
        fs::create_dir(&inside).expect("a folder");
        let script = inside.join("a.sql");
        fs::write(&script, "SELECT 1;").expect("a file");
        fs::set_permissions(&script, Permissions::from_mode(file)).expect("chmod");
        fs::set_permissions(&inside, Permissions::from_mode(folder)).expect("chmod");
        (scene, script)
    }

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn own_files_are_read() {
        for (folder, file) in [(0o755, 0o644), (0o700, 0o666), (0o1777, 0o600)] {
            let (_scene, script) = scene(folder, file);
            assert_eq!(read_to_string(&script).expect("a script"), "SELECT 1;", "{folder:o} {file:o}");
        }
        assert!(read(Path::new("/dev/null")).expect("a device").is_empty());
        assert_eq!(open(Path::new("nosuch")).expect_err("none").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn root_reads_nothing_that_others_can_write() {
        if !is_root() {
            return println!("skipped: root_reads_nothing_that_others_can_write: not root");
        }
        for (folder, file) in [(0o777, 0o644), (0o755, 0o666), (0o1777, 0o646)] {
            let (_scene, script) = scene(folder, file);
            let error = read(&script).expect_err("refused").to_string();
            assert!(error.contains("others could have written"), "{folder:o} {file:o}: {error}");
        }
    }

    #[test]
    fn root_reads_nothing_of_others_through_links_either() {
        if !is_root() {
            return println!("skipped: root_reads_nothing_of_others_through_links_either: not root");
        }
        let (scene, script) = scene(0o755, 0o644);
        let link = scene.path().join("link.sql");
        symlink(&script, &link).expect("a link");
        assert!(read(&link).is_ok());
        chown(&script, Some(65534), None).expect("chown");
        for path in [&script, &link] {
            let error = read(path).expect_err("refused").to_string();
            assert!(error.contains("belongs to another user (number 65534)"), "{error}");
        }
    }

    #[test]
    fn a_pipe_of_this_process_is_read() {
        let (reader, writer) = io::pipe().expect("a pipe");
        {
            use io::Write as _;
            let mut writer = writer;
            writer.write_all(b"SELECT 2;").expect("room");
        }
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read_to_string(Path::new(&path)).expect("a script"), "SELECT 2;");
    }

    #[test]
    fn a_folder_is_own_if_only_the_caller_can_write_in_it() {
        let (_scene, script) = scene(0o755, 0o644);
        let folder = script.parent().expect("its folder");
        assert!(require_own(folder).is_ok());
        fs::set_permissions(folder, Permissions::from_mode(0o775)).expect("chmod");
        assert!(require_own(folder).is_err());
    }
}
